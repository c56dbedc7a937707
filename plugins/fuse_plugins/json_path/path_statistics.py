"""What a block holds at one path, in a hundred bytes: which kinds of values, and their ranges as text, as numbers and
as days.

``CAST`` gives a number, a day or a truth only for some texts; a range is over those, and says nothing of the others,
which are NULL. Whatever a cast might read and this module does not is a bit in ``kinds``, which means: of that cast,
nothing is known.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

STRING, INTEGER, FLOAT, BOOLEAN, OBJECT, ARRAY = 1, 2, 4, 8, 16, 32
SPELLING = 64
"""Some text has another spelling in other versions of Java: a float far from one, or what holds one."""
ODD_NUMBERS, ODD_DAYS = 128, 256
"""Some text may be a number, a day or a moment to Spark, and is in no range here."""
YES, NO = 512, 1024
"""Some text is TRUE, or FALSE, as a boolean."""

KINDS: Mapping[type, int] = {str: STRING, int: INTEGER, float: FLOAT, bool: BOOLEAN, dict: OBJECT, list: ARRAY}
STRUCTURES = {"{": OBJECT, "[": ARRAY}
VALUES = STRING | INTEGER | FLOAT | BOOLEAN | OBJECT | ARRAY
NAMES = {STRING: "string", INTEGER: "integer", FLOAT: "float", BOOLEAN: "boolean", OBJECT: "object", ARRAY: "array"}

LONGEST = 32
"""Letters of a text's bound that are kept."""
FACTS = pa.struct(
    [
        ("path", pa.string()),
        ("kinds", pa.int16()),
        ("present", pa.int32()),  # documents with a text at the path; null: a path of many values
        ("low", pa.string()),
        ("high", pa.string()),  # bounds of all texts, cut ones too; null: unbounded
        ("least", pa.float64()),
        ("greatest", pa.float64()),  # of texts that a cast may make numbers of; null: there are none
        ("first", pa.int32()),
        ("last", pa.int32()),  # of texts that begin like 2024-03-10, as 20240310; null: there are none
    ]
)

BLANK = "".join(map(chr, range(33))) + "\x7f"
BLANKS = r"[\x00-\x20\x7f]*"
READABLE = rf"^{BLANKS}(?:[-+.0-9]|T|(?i:inf|nan|t|y|f|n))"
"""Texts of which some cast might make something; all others are NULL to all of them."""
PLAIN_NUMBER = r"^-?[0-9]{1,15}(?:\.[0-9]{1,15})?$"
PLAIN_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[^0-9]|$)"
NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[dDfF]?", re.ASCII)
POINT = re.compile(r"[+-]?\.", re.ASCII)
"""Spark's older cast to an integer reads it as zero."""
WORD = re.compile(r"([+-]?)(inf|infinity|nan)", re.IGNORECASE)
MAYBE_NUMBER = re.compile(r"[+-]?(?:0x|inf|nan)", re.IGNORECASE)
MAYBE_DAY = re.compile(r"[+-]?\d|T")
TRUTHS = {**dict.fromkeys(("t", "true", "y", "yes", "1"), YES), **dict.fromkeys(("f", "false", "n", "no", "0"), NO)}


def facts(texts: pa.StringArray, kinds: int) -> dict[str, Any]:
    """The ranges of texts that are not null; those of objects and arrays, which are not among them, are added."""
    low, high = pc.min_max(texts).as_py().values()
    lows, highs = ([low[:LONGEST]], [_rounded_up(high)]) if low is not None else ([], [])
    for sign, kind in STRUCTURES.items():
        if kinds & kind:
            lows.append(sign)
            highs.append(chr(ord(sign) + 1))
    readable = texts.filter(pc.match_substring_regex(texts, READABLE))
    is_day = pc.match_substring_regex(readable, PLAIN_DAY)
    days, readable = readable.filter(is_day), readable.filter(pc.invert(is_day))
    is_number = pc.match_substring_regex(readable, PLAIN_NUMBER)
    plain, others = readable.filter(is_number), readable.filter(pc.invert(is_number))
    numbers = [number for number in pc.min_max(plain.cast(pa.float64())).as_py().values() if number is not None]
    if len(plain):
        kinds |= ODD_DAYS  # 2024 is a day to Spark, and 20240310 may be one
        held = set(pc.unique(plain.filter(pc.is_in(plain, pa.array(["0", "1"])))).to_pylist())
        kinds |= (YES if "1" in held else 0) | (NO if "0" in held else 0)
    for text in others.to_pylist():
        trimmed = text.strip(BLANK)
        number = _number(trimmed)
        numbers += [] if number is None else [number]
        kinds |= ODD_NUMBERS if number is None and MAYBE_NUMBER.match(trimmed) else 0
        kinds |= (ODD_DAYS if MAYBE_DAY.match(trimmed) else 0) | TRUTHS.get(trimmed.lower(), 0)
    return {
        "kinds": kinds,
        "low": min(lows, default=None),
        "high": None if None in highs else max(highs, default=None),  # type: ignore[type-var]
        **_span("least", "greatest", numbers),
        **_span(
            "first",
            "last",
            [int(day[:10].replace("-", "")) for day in pc.min_max(days).as_py().values() if day is not None],
        ),
    }


def merged(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The facts of several zones or blocks together."""
    held = [part for part in parts if part["kinds"] & VALUES]
    bounds = {
        name: [part[name] for part in held if part[name] is not None] for name in ("least", "greatest", "first", "last")
    }
    return {
        "kinds": reduce(or_, (part["kinds"] for part in parts), 0),
        "low": min((part["low"] for part in held), default=None),
        "high": None
        if any(part["high"] is None for part in held)
        else max((part["high"] for part in held), default=None),
        **_span("least", "greatest", bounds["least"] + bounds["greatest"]),
        **_span("first", "last", bounds["first"] + bounds["last"]),
    }


def _span(low: str, high: str, values: Sequence[Any]) -> dict[str, Any]:
    """The least and the greatest, NaN being greater than all numbers."""
    ordered = sorted(values, key=lambda value: (isinstance(value, float) and math.isnan(value), value))
    return {low: ordered[0] if ordered else None, high: ordered[-1] if ordered else None}


def _number(text: str) -> float | None:
    """The number that any of Spark's casts may make of a text, or one that is less than one away; None if there is
    none.
    """
    if NUMBER.fullmatch(text):
        return float(text.rstrip("dDfF"))
    if POINT.fullmatch(text):
        return 0.0
    word = WORD.fullmatch(text)
    return None if word is None else math.nan if word[2].lower() == "nan" else -math.inf if word[1] == "-" else math.inf


def _rounded_up(text: str) -> str | None:
    """The text, or if it is too long, one that is greater than all that begin like it; None if there is none."""
    if len(text) <= LONGEST:
        return text
    stem = text[:LONGEST].rstrip("\U0010ffff")
    if not stem:
        return None
    following = ord(stem[-1]) + 1
    return stem[:-1] + chr(0xE000 if following == 0xD800 else following)  # surrogates are no characters
