"""``variant_get``: what lies at a path of a VARIANT, cast to a type as Spark does it.

A whole number, a double, a decimal and so on is cast as a column of that type would be, by the rules of ANSI; what
has no such cast, or does not fit, is NULL here and raises in Spark, but by ``try_variant_get``. JSON's null, and
nothing at the path, are NULL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from fuse_index.expressions import casts, datetimes
from fuse_index.expressions.errors import NotReproducible, SparkWouldRaise
from fuse_index.expressions.json import path as json_paths
from fuse_index.expressions.variant.columns import map_values
from fuse_index.expressions.variant.decode import MISSING, Exotic, Float32, VariantStep, decode_at
from fuse_index.expressions.variant.encode import encode
from fuse_index.expressions.variant.text import decimal_text, variant_json
from fuse_index.predicate import Context
from fuse_storage import VARIANT, VARIANT_STORAGE, MalformedVariant, is_variant

VARIANT_PATH = re.compile(r"\$(?:\.[A-Za-z_][A-Za-z0-9_]*|\['[^'\"\[\]?*\s][^'\"\[\]?]*'\]|\[[0-9]{1,9}\])*")
"""Paths that ``variant_get`` and ``get_json_object`` read alike."""

_ANSI_CASTS = {
    "boolean": ("int", "float", "decimal", "string", "boolean"),
    "int": ("int", "float", "decimal", "string", "boolean", "timestamp"),
    "float": ("int", "float", "decimal", "string", "boolean", "timestamp"),
    "decimal": ("int", "float", "decimal", "string", "boolean", "timestamp"),
    "date": ("date", "timestamp", "ntz", "string"),
    "timestamp": ("int", "float", "decimal", "date", "timestamp", "ntz", "string"),
    "ntz": ("date", "timestamp", "ntz", "string"),
    "binary": ("binary", "string"),
}
"""What Spark casts by the rules of ANSI. Text is cast to anything that is known here."""


def variant_steps(path: str) -> tuple[VariantStep, ...]:
    """The names and places along a path. Raises NotReproducible for a path that only Spark reads."""
    steps = json_paths.parse(path) if VARIANT_PATH.fullmatch(path) else None
    if steps is None:
        raise NotReproducible(f"the path {path!r}, of other than names and places")
    return tuple(step for step in steps if isinstance(step, str | int))


def variant_get(values: pa.ExtensionArray, path: str, target: pa.DataType, strict: bool, context: Context) -> pa.Array:
    """What lies at the path of each value, as a type; NULL where it cannot be.

    Raises NotReproducible for what only Spark can say, and, if ``strict``, SparkWouldRaise.
    """
    steps, known = variant_steps(path), dict[Any, Any]()

    def found(value: bytes, metadata: bytes) -> Any:
        tree = decode_at(value, metadata, steps)
        if tree is MISSING:
            return None
        if is_variant(target):
            return dict(zip(("value", "metadata"), encode(tree), strict=True))
        if tree is None:
            return None
        if isinstance(tree, dict | list):
            made = _text_of(tree, context) if target == pa.string() else None
        else:
            key = (type(tree), repr(tree))
            if key not in known:
                known[key] = cast_scalar(tree, target, context)
            made = known[key]
        if made is None and strict:
            raise SparkWouldRaise(f"{variant_json(tree)[:100]} cannot be cast")
        return made

    try:
        found_values = list(map_values(values, found, None))
        if is_variant(target):
            return pa.ExtensionArray.from_storage(VARIANT, pa.array(found_values, VARIANT_STORAGE))
        return pa.array(found_values, target)
    except MalformedVariant as damage:
        raise NotReproducible(str(damage)) from None


def _text_of(tree: Any, context: Context) -> str:
    if _has_doubtful_text(tree):
        raise NotReproducible("an object with numbers whose digits depend on Java's version")
    return variant_json(tree, context.time_zone)


def _has_doubtful_text(tree: Any) -> bool:
    if isinstance(tree, dict | list):
        return any(map(_has_doubtful_text, tree.values() if isinstance(tree, dict) else tree))
    return isinstance(tree, float | Exotic)


def cast_scalar(value: Any, target: pa.DataType, context: Context) -> Any:
    """A scalar as one of a type; None where Spark has no such cast, or it fails, and for objects and arrays."""
    if value is None or isinstance(value, dict | list):
        return None
    if isinstance(value, Decimal):
        value = Decimal(decimal_text(value))
    source = _type_of(value)
    if source != target and source != pa.string():
        into = casts.cast_class(target)
        if into not in _ANSI_CASTS[casts.cast_class(source)]:
            return None
        if into == "timestamp" and is_.is_decimal(source):
            return _instant(value)
        if into == "timestamp" and source == pa.int64():
            return _instant(Decimal(value))
    return casts.cast_value(float(value) if isinstance(value, Float32) else value, source, target, "try", context)


def _instant(seconds: Decimal) -> datetime | None:
    microseconds = int(seconds * 1_000_000)
    if not -(1 << 63) <= microseconds < 1 << 63:
        return None
    try:
        return datetimes.EPOCH_UTC + timedelta(microseconds=microseconds)
    except OverflowError as beyond:
        raise NotReproducible(f"an instant beyond those of Python: {beyond}") from None


def _type_of(value: Any) -> pa.DataType:
    match value:
        case Exotic():
            raise NotReproducible("a variant of a type that Spark lacks")
        case bool():
            return pa.bool_()
        case int():
            return pa.int64()
        case Float32():
            return pa.float32()
        case float():
            return pa.float64()
        case Decimal():
            digits = value.as_tuple()
            return _decimal_type(digits.digits, int(digits.exponent))
        case str():
            return pa.string()
        case bytes():
            return pa.binary()
        case datetime():
            return pa.timestamp("us") if value.tzinfo is None else pa.timestamp("us", "UTC")
        case date():
            return pa.date32()
    raise TypeError(f"{value!r} is no variant")


def _decimal_type(digits: Sequence[int], exponent: int) -> pa.DataType:
    """The narrowest type of a decimal: it plays no part in what casts from it give."""
    scale = max(-exponent, 0)
    return pa.decimal128(min(max(len(digits) + max(exponent, 0), scale, 1), 38), scale)
