"""Statistics of the values at one path: in a hundred bytes their kinds, and their ranges as text, numbers and days.

``CAST`` gives a number, a day or a boolean only for some texts; a range is over those, and says nothing of the others,
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

from fuse_index.plugin import prefix_end

STRING_KIND, INTEGER_KIND, FLOAT_KIND, BOOLEAN_KIND, OBJECT_KIND, ARRAY_KIND = 1, 2, 4, 8, 16, 32
SPELLING_VARIES = 64
"""Some text has another spelling in other versions of Java: a float far from one, or what holds one."""
ODD_NUMBERS, ODD_DAYS = 128, 256
"""Some text may be a number, a day or a moment to Spark, and is in no range here."""
MAY_CAST_TO_TRUE, MAY_CAST_TO_FALSE = 512, 1024
"""Some text is TRUE, or FALSE, as a boolean."""

KIND_OF_PYTHON_TYPE: Mapping[type, int] = {
    str: STRING_KIND,
    int: INTEGER_KIND,
    float: FLOAT_KIND,
    bool: BOOLEAN_KIND,
    dict: OBJECT_KIND,
    list: ARRAY_KIND,
}
KIND_OF_FIRST_SIGN = {"{": OBJECT_KIND, "[": ARRAY_KIND}
ALL_KINDS = STRING_KIND | INTEGER_KIND | FLOAT_KIND | BOOLEAN_KIND | OBJECT_KIND | ARRAY_KIND
KIND_NAMES = {
    STRING_KIND: "string",
    INTEGER_KIND: "integer",
    FLOAT_KIND: "float",
    BOOLEAN_KIND: "boolean",
    OBJECT_KIND: "object",
    ARRAY_KIND: "array",
}

_MAX_BOUND_LETTERS = 32
"""Letters of a text's bound that are kept."""
PATH_SUMMARY_TYPE = pa.struct(
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

_BLANK = "".join(map(chr, range(33))) + "\x7f"
_BLANKS = r"[\x00-\x20\x7f]*"
_CASTABLE_TEXT = rf"^{_BLANKS}(?:[-+.0-9]|T|(?i:inf|nan|t|y|f|n))"
"""Texts of which some cast might make something; all others are NULL to all of them."""
_PLAIN_NUMBER = r"^-?[0-9]{1,15}(?:\.[0-9]{1,15})?$"
_PLAIN_DAY = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}(?:[^0-9]|$)"
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?[dDfF]?", re.ASCII)
_POINT = re.compile(r"[+-]?\.", re.ASCII)
"""Spark's older cast to an integer reads it as zero."""
_NUMBER_WORD = re.compile(r"([+-]?)(inf|infinity|nan)", re.IGNORECASE)
_MAYBE_NUMBER = re.compile(r"[+-]?(?:0x|inf|nan)", re.IGNORECASE)
_MAYBE_DAY = re.compile(r"[+-]?\d|T")
_TRUTH_WORDS = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), MAY_CAST_TO_TRUE),
    **dict.fromkeys(("f", "false", "n", "no", "0"), MAY_CAST_TO_FALSE),
}


def summarize_path(texts: pa.StringArray, kinds: int) -> dict[str, Any]:
    """Summarize the distinct texts at a path, none of them null, and the kinds of their values.

    Objects and arrays, which are not among the texts, are in the range of texts too.
    """
    low, high = pc.min_max(texts).as_py().values()
    lows, highs = ([low[:_MAX_BOUND_LETTERS]], [_truncate_up(high)]) if low is not None else ([], [])
    for sign, kind in KIND_OF_FIRST_SIGN.items():
        if kinds & kind:
            lows.append(sign)
            highs.append(chr(ord(sign) + 1))
    readable = texts.filter(pc.match_substring_regex(texts, _CASTABLE_TEXT))
    is_day = pc.match_substring_regex(readable, _PLAIN_DAY)
    days, readable = readable.filter(is_day), readable.filter(pc.invert(is_day))
    is_number = pc.match_substring_regex(readable, _PLAIN_NUMBER)
    plain_numbers, others = readable.filter(is_number), readable.filter(pc.invert(is_number))
    numbers = [number for number in pc.min_max(plain_numbers.cast(pa.float64())).as_py().values() if number is not None]
    if len(plain_numbers):
        kinds |= ODD_DAYS  # 2024 is a day to Spark, and 20240310 may be one
        zeros_and_ones = set(pc.unique(plain_numbers.filter(pc.is_in(plain_numbers, pa.array(["0", "1"])))).to_pylist())
        kinds |= (MAY_CAST_TO_TRUE if "1" in zeros_and_ones else 0) | (
            MAY_CAST_TO_FALSE if "0" in zeros_and_ones else 0
        )
    for text in others.to_pylist():
        trimmed = text.strip(_BLANK)
        number = _parse_number(trimmed)
        numbers += [] if number is None else [number]
        kinds |= ODD_NUMBERS if number is None and _MAYBE_NUMBER.match(trimmed) else 0
        kinds |= (ODD_DAYS if _MAYBE_DAY.match(trimmed) else 0) | _TRUTH_WORDS.get(trimmed.lower(), 0)
    return {
        "kinds": kinds,
        "low": min(lows, default=None),
        "high": None if None in highs else max(highs, default=None),  # type: ignore[type-var]
        **_min_max("least", "greatest", numbers),
        **_min_max(
            "first",
            "last",
            [int(day[:10].replace("-", "")) for day in pc.min_max(days).as_py().values() if day is not None],
        ),
    }


def merge_path_summaries(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge the summaries of several zones or blocks."""
    not_empty = [part for part in parts if part["kinds"] & ALL_KINDS]
    bounds = {
        name: [part[name] for part in not_empty if part[name] is not None]
        for name in ("least", "greatest", "first", "last")
    }
    return {
        "kinds": reduce(or_, (part["kinds"] for part in parts), 0),
        "low": min((part["low"] for part in not_empty), default=None),
        "high": None
        if any(part["high"] is None for part in not_empty)
        else max((part["high"] for part in not_empty), default=None),
        **_min_max("least", "greatest", bounds["least"] + bounds["greatest"]),
        **_min_max("first", "last", bounds["first"] + bounds["last"]),
    }


def _min_max(low: str, high: str, values: Sequence[Any]) -> dict[str, Any]:
    """Name the least and the greatest of some values, NaN being greater than all numbers."""
    ordered = sorted(values, key=lambda value: (isinstance(value, float) and math.isnan(value), value))
    return {low: ordered[0] if ordered else None, high: ordered[-1] if ordered else None}


def _parse_number(text: str) -> float | None:
    """Return the number that any of Spark's casts may make of a text, or one that is less than one away.

    None if no cast makes a number of it.
    """
    if _NUMBER.fullmatch(text):
        return float(text.rstrip("dDfF"))
    if _POINT.fullmatch(text):
        return 0.0
    word = _NUMBER_WORD.fullmatch(text)
    return None if word is None else math.nan if word[2].lower() == "nan" else -math.inf if word[1] == "-" else math.inf


def _truncate_up(text: str) -> str | None:
    """Return the text, or if it is too long, one that is greater than all that begin like it; None if there is none."""
    if len(text) <= _MAX_BOUND_LETTERS:
        return text
    return prefix_end(text[:_MAX_BOUND_LETTERS])
