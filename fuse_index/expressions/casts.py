"""``CAST`` of one value, as Spark does it: the definition that everything else here is measured by.

Three modes: ``legacy`` wraps numbers and gives NULL, ``try`` gives NULL, ``ansi`` raises an error in Spark and is
NULL here: which rows come back is promised, which rows raise is not. What is not exactly known raises NotReproducible.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation, localcontext
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as is_

from fuse_index.expressions import datetimes
from fuse_index.expressions.datetimes import TRIMMED_CHARACTERS
from fuse_index.expressions.errors import NotReproducible
from fuse_index.expressions.types import spark_type_name
from fuse_index.predicate import CastMode, Context

_FLOAT = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?[dDfF]?")
_INTEGER = re.compile(r"[+-]?\d+")
_INTEGER_AND_FRACTION = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?")
_JAVA_BLANKS = "".join(map(chr, range(33)))
"""What Java trims from text: to DECIMAL, FLOAT and DOUBLE, Spark casts what that leaves."""
_FLOAT_WORDS = {
    "inf": math.inf,
    "+inf": math.inf,
    "infinity": math.inf,
    "+infinity": math.inf,
    "-inf": -math.inf,
    "-infinity": -math.inf,
    "nan": math.nan,
}
_BOOLEAN_WORDS = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}
INTEGER_BITS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}


def cast_value(value: Any, source: pa.DataType, target: pa.DataType, mode: CastMode, context: Context) -> Any:
    """The value of type ``target``, or None for NULL. Raises NotReproducible for casts that are not known here."""
    if value is None:
        return None
    if source == target:
        return value
    try:
        return _cast_function(source, target)(value, target, mode, context)
    except OverflowError:
        raise NotReproducible(f"{value!r} as {spark_type_name(target)} lies outside of what Python can hold") from None


def check_cast(source: pa.DataType, target: pa.DataType, context: Context) -> None:
    """Raises NotReproducible for a cast that is not known here, whatever the value."""
    if source != target:
        _cast_function(source, target)
        if any(is_.is_timestamp(side) and side.tz for side in (source, target)):
            _session_zone(context)


def int_range(data_type: pa.DataType) -> tuple[int, int]:
    bits = INTEGER_BITS[data_type]
    return -(1 << bits - 1), (1 << bits - 1) - 1


def to_float32(exact: Decimal) -> float:
    """The nearest float, ties to even, decided exactly: by way of a double it would be rounded twice."""
    with np.errstate(over="ignore"):
        first = np.float32(float(exact))
    if not np.isfinite(first):
        return float(first)
    near = [first, np.nextafter(first, np.float32(np.inf)), np.nextafter(first, np.float32(-np.inf))]
    with localcontext(prec=1200):
        return float(
            min(
                (n for n in near if np.isfinite(n)),
                key=lambda n: (abs(Decimal(float(n)) - exact), int(n.view(np.int32)) & 1),
            )
        )


def _cast_function(source: pa.DataType, target: pa.DataType) -> Callable[[Any, pa.DataType, CastMode, Context], Any]:
    classes = cast_class(source), cast_class(target)
    if classes not in _CASTS:
        raise NotReproducible(f"a cast from {spark_type_name(source)} to {spark_type_name(target)} is not known here")
    return _CASTS[classes]


def cast_class(data_type: pa.DataType) -> str:
    """The word for all types between which casts go alike."""
    if data_type in INTEGER_BITS:
        return "int"
    if is_.is_floating(data_type):
        return "float"
    if is_.is_decimal(data_type):
        return "decimal"
    if is_.is_timestamp(data_type):
        return "ntz" if data_type.tz is None else "timestamp"
    return spark_type_name(data_type)


def _to_int(value: int, target: pa.DataType, mode: CastMode) -> int | None:
    low, high = int_range(target)
    if low <= value <= high:
        return value
    return (value - low) % (high - low + 1) + low if mode == "legacy" else None


def _number_to_int(value: Any, target: pa.DataType, mode: CastMode, _: Context) -> int | None:
    return _to_int(int(value), target, mode)


def _float_to_int(value: float, target: pa.DataType, mode: CastMode, _: Context) -> int | None:
    if mode == "legacy":  # Java's own: NaN is 0, too large is the largest; byte and short go by way of int
        wide = target if target == pa.int64() else pa.int32()
        return 0 if math.isnan(value) else _to_int(_saturated(value, wide), target, mode)
    if not math.isfinite(value):
        return None
    if target == pa.int64() and value == 2.0**63:
        return int_range(target)[1]  # Spark compares with the greatest long as a double, which is 2^63
    return _to_int(int(value), target, mode)


def _saturated(value: float, target: pa.DataType) -> int:
    low, high = int_range(target)
    return high if value >= high else low if value <= low else int(value)


def _number_to_float(value: Any, target: pa.DataType, _: CastMode, __: Context) -> float:
    if target == pa.float64():
        return float(value)
    if isinstance(value, float):
        with np.errstate(over="ignore"):
            return float(np.float32(value))
    return (
        to_float32(Decimal(value)) if isinstance(value, int) else float(np.float32(float(value)))
    )  # decimals go by way of double


def _number_to_decimal(value: Any, target: pa.DataType, _: CastMode, __: Context) -> Decimal | None:
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        value = Decimal(repr(value))
    return _to_decimal(Decimal(value), target)


def _to_decimal(value: Decimal, target: pa.DataType) -> Decimal | None:
    with localcontext(prec=2000):
        rounded = value.quantize(Decimal(1).scaleb(-target.scale), ROUND_HALF_UP)
        return rounded if abs(rounded) < Decimal(10) ** (target.precision - target.scale) else None


def _text_to_int(text: str, target: pa.DataType, mode: CastMode, _: Context) -> int | None:
    trimmed = text.strip(TRIMMED_CHARACTERS)
    low, high = int_range(target)
    if mode == "legacy":
        found = _INTEGER_AND_FRACTION.fullmatch(trimmed)
        if found is None or not trimmed.isascii() or not (found[2] or found[3] is not None) or trimmed in ("+", "-"):
            return None
        value = int(f"{found[1]}{found[2] or 0}")
    elif _INTEGER.fullmatch(trimmed) and trimmed.isascii():
        value = int(trimmed)
    else:
        return None
    return value if low <= value <= high else None


def _text_to_float(text: str, target: pa.DataType, _: CastMode, __: Context) -> float | None:
    trimmed = text.strip(_JAVA_BLANKS)
    if (word := trimmed.lower()) in _FLOAT_WORDS:
        return _FLOAT_WORDS[word]
    if not _FLOAT.fullmatch(trimmed) or not trimmed.isascii():
        if trimmed.lower().lstrip("+-").startswith(("0x", "nan", "inf")):
            raise NotReproducible(f"{text!r} may or may not be a number to Java")
        return None
    digits = trimmed.rstrip("dDfF")
    return float(digits) if target == pa.float64() else to_float32(Decimal(digits))


def _text_to_decimal(text: str, target: pa.DataType, _: CastMode, __: Context) -> Decimal | None:
    trimmed = text.strip(_JAVA_BLANKS)
    if not trimmed.isascii() and not _has_java_digits_only(trimmed):
        return None
    if not _FLOAT.fullmatch(trimmed) or trimmed[-1] in "dDfF":
        return None
    try:
        value = Decimal(trimmed)
    except InvalidOperation:
        return None
    if abs(value.adjusted()) > 1000:
        raise NotReproducible(f"{text!r} is too far from any decimal to say what Spark does with it")
    return _to_decimal(value, target)


def _has_java_digits_only(text: str) -> bool:
    """Whether each letter beyond ASCII is a digit to Java, of any script; it knows none beyond 16 bits here.

    Raises NotReproducible for a digit that Unicode 3.2 did not have, or a letter that this Python does not know yet.
    """
    for letter in text:
        if letter.isascii():
            continue
        category = unicodedata.category(letter)
        if letter > "\uffff" or category not in ("Nd", "Cn"):
            return False
        if unicodedata.ucd_3_2_0.category(letter) != "Nd":
            raise NotReproducible(f"whether {letter!r} is a digit depends on the edition of Unicode")
    return True


def _to_text(value: Any, _: pa.DataType, mode: CastMode, context: Context) -> str:
    match value:
        case bool():
            return str(value).lower()
        case Decimal():
            return str(value) if mode == "legacy" else f"{value:f}"
        case datetime():
            shown = (
                value
                if value.tzinfo is None
                else datetimes.wall_clock(value, datetimes.parse_time_zone(context.time_zone))
            )
            return shown.isoformat(" ", "seconds") + (
                f".{shown.microsecond:06}".rstrip("0") if shown.microsecond else ""
            )
        case _:
            return str(value)


def _decoded(value: bytes, *_: Any) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise NotReproducible(f"{value!r} is no UTF-8, which only Spark keeps in text") from None


def _seconds_to_timestamp(value: int, _: pa.DataType, __: CastMode, ___: Context) -> datetime:
    return datetimes.EPOCH_UTC + timedelta(seconds=value)


def _timestamp_to_int(value: datetime, target: pa.DataType, _: CastMode, __: Context) -> int | None:
    return _to_int((value - datetimes.EPOCH_UTC) // timedelta(seconds=1), target, "try")  # in no mode does it wrap


def _session_zone(context: Context) -> Any:
    return datetimes.parse_time_zone(context.time_zone)


_CASTS: dict[tuple[str, str], Callable[[Any, pa.DataType, CastMode, Context], Any]] = {
    ("int", "int"): _number_to_int,
    ("decimal", "int"): _number_to_int,
    ("float", "int"): _float_to_int,
    ("boolean", "int"): _number_to_int,
    ("string", "int"): _text_to_int,
    ("timestamp", "int"): _timestamp_to_int,
    ("int", "float"): _number_to_float,
    ("float", "float"): _number_to_float,
    ("decimal", "float"): _number_to_float,
    ("boolean", "float"): _number_to_float,
    ("string", "float"): _text_to_float,
    ("int", "decimal"): _number_to_decimal,
    ("float", "decimal"): _number_to_decimal,
    ("decimal", "decimal"): _number_to_decimal,
    ("boolean", "decimal"): _number_to_decimal,
    ("string", "decimal"): _text_to_decimal,
    ("int", "boolean"): lambda value, *_: value != 0,
    ("float", "boolean"): lambda value, *_: value != 0,
    ("decimal", "boolean"): lambda value, *_: value != 0,
    ("string", "boolean"): lambda text, *_: _BOOLEAN_WORDS.get(text.strip(TRIMMED_CHARACTERS).lower()),
    ("int", "string"): _to_text,
    ("decimal", "string"): _to_text,
    ("boolean", "string"): _to_text,
    ("date", "string"): _to_text,
    ("timestamp", "string"): _to_text,
    ("ntz", "string"): _to_text,
    ("string", "binary"): lambda text, *_: text.encode(),
    ("binary", "string"): _decoded,
    ("string", "date"): lambda text, *_: datetimes.parse_date(text),
    ("string", "timestamp"): lambda text, _, __, context: datetimes.parse_timestamp(text, _session_zone(context)),
    ("string", "ntz"): lambda text, *_: datetimes.parse_timestamp_ntz(text),
    ("date", "timestamp"): lambda day, _, __, context: datetimes.instant(
        datetimes.midnight(day), _session_zone(context)
    ),
    ("date", "ntz"): lambda day, *_: datetimes.midnight(day),
    ("timestamp", "date"): lambda moment, _, __, context: datetimes.wall_clock(moment, _session_zone(context)).date(),
    ("ntz", "date"): lambda wall, *_: wall.date(),
    ("ntz", "timestamp"): lambda wall, _, __, context: datetimes.instant(wall, _session_zone(context)),
    ("timestamp", "ntz"): lambda moment, _, __, context: datetimes.wall_clock(moment, _session_zone(context)),
    ("int", "timestamp"): _seconds_to_timestamp,
}
"""Spark's casts between plain types, as far as they are known here; a float as text is left to Java."""
