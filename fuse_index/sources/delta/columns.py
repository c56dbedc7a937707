"""The columns of a Delta table, as its log describes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from fuse_storage import SourceColumn, Unsupported

_PADDED_TYPE = re.compile(r"(?<!var)char\(\d+\)", re.IGNORECASE)
_TYPES = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}


def read_column(described: Mapping[str, Any], mapped: str, where: str) -> SourceColumn:
    """A column, or a field of one, as a log describes it. ``mapped``: how names in files are mapped."""
    name, metadata = described["name"], described.get("metadata", {})
    if collations := metadata.get("__COLLATIONS"):
        raise Unsupported(f"{where}: column {name!r} is compared by a collation: {collations}")
    if padded := _PADDED_TYPE.search(metadata.get("__CHAR_VARCHAR_TYPE_STRING", "")):
        raise Unsupported(
            f"{where}: column {name!r} has texts of type {padded[0].upper()}, which Spark pads with spaces when it "
            f"reads them, and no reader here does: run ALTER TABLE … ALTER COLUMN {name} TYPE STRING at the source"
        )
    physical = name if mapped == "none" else metadata["delta.columnMapping.physicalName"]
    column = _typed(name, physical, described["type"], mapped, where)
    number = int(metadata["delta.columnMapping.id"]) if mapped == "id" else None
    return replace(column, id=number, comment=metadata.get("comment"))


def _typed(name: str, physical: str, described: Any, mapped: str, where: str) -> SourceColumn:
    if mapped == "id" and isinstance(described, Mapping) and described["type"] in ("array", "map"):
        raise Unsupported(f"{where}: column {name!r} has arrays or maps, whose parts have no ids in the log")
    match described:
        case {"type": "struct", "fields": fields}:
            children = tuple(read_column(each, mapped, where) for each in fields)
            kind = pa.struct([pa.field(child.name, child.type) for child in children])
        case {"type": "array", "elementType": element}:
            children = (_typed("element", "element", element, mapped, where),)
            kind = pa.list_(pa.field("element", children[0].type))
        case {"type": "map", "keyType": key, "valueType": value}:
            children = (_typed("key", "key", key, mapped, where), _typed("value", "value", value, mapped, where))
            kind = pa.map_(children[0].type, children[1].type)
        case str() as text:
            children, kind = (), _plain_type(text, name, where)
        case _:
            raise Unsupported(f"{where}: column {name!r} is of a type that is not known here: {described}")
    return SourceColumn(name, physical, kind, children=children)


def _plain_type(text: str, name: str, where: str) -> pa.DataType:
    if text.startswith("decimal("):
        precision, scale = text.removeprefix("decimal(").rstrip(")").split(",")
        return pa.decimal128(int(precision), int(scale))
    if text not in _TYPES:
        raise Unsupported(f"{where}: column {name!r} is of Delta's type {text!r}, which is not known here")
    return _TYPES[text]
