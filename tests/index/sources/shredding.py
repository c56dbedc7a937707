"""Variants shredded by a way of any shape: a type of Arrow for each part that has one, as Parquet's specification does.

A way is None (nothing is shredded), a type of a scalar, a list of one way, or a dict of ways.
"""

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from fuse_index.expressions.variant.decode import Float32
from fuse_index.expressions.variant.encode import _Builder

_DEPTH = 100
SCALARS: dict[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    str: pa.string(),
    bytes: pa.binary(),
    float: pa.float64(),
    Float32: pa.float32(),
    Decimal: pa.decimal128(20, 5),
    date: pa.date32(),
}


def shredded(trees: list[Any], way: Any) -> pa.StructArray:
    """Variants of these values, shredded so; ``...`` is NULL."""
    found = []
    for tree in trees:
        if tree is ...:
            found.append(None)
            continue
        builder = _Builder()
        builder.value(tree, _DEPTH)  # names every id
        found.append({"metadata": builder.metadata(), **_group(tree, way, builder)})
    group = _group_type(way)
    return pa.array(found, pa.struct([pa.field("metadata", pa.binary(), False), *group]))


def _group_type(way: Any) -> pa.StructType:
    value = pa.field("value", pa.binary())
    return pa.struct([value] if way is None else [value, pa.field("typed_value", _typed(way))])


def _typed(way: Any) -> pa.DataType:
    match way:
        case dict():
            return pa.struct([pa.field(name, _group_type(part), False) for name, part in way.items()])
        case list():
            return pa.list_(pa.field("element", _group_type(way[0]), False))
    return way


def _group(tree: Any, way: Any, builder: _Builder) -> dict[str, Any]:
    match way, tree:
        case dict(), dict():
            parts = {name: _group(tree[name], way[name], builder) if name in tree else {} for name in way}
            rest = {name: value for name, value in tree.items() if name not in way}
            return {"value": builder.value(rest, _DEPTH) if rest else None, "typed_value": parts}
        case list(), list():
            return {"value": None, "typed_value": [_group(each, way[0], builder) for each in tree]}
    if tree is not None and not isinstance(way, dict | list) and way is not None and _type_of(tree) == way:
        return {"value": None, "typed_value": tree}
    return {"value": builder.value(tree, _DEPTH)}


def _type_of(tree: Any) -> pa.DataType | None:
    if isinstance(tree, datetime):
        return pa.timestamp("us", None if tree.tzinfo is None else "UTC")
    return SCALARS.get(type(tree))
