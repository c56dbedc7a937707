"""The columns of a Delta table, as its log describes them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from fuse_storage import VARIANT, SourceColumn, Unsupported

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
    "void": pa.string(),  # all of it is NULL
}


@dataclass(frozen=True, slots=True)
class ColumnReader:
    """Makes columns of what a log says. ``mapping``: how names in files are mapped: ``none``, ``name`` or ``id``.

    ``variants``: whether a column, or a part of one, may be VARIANT.
    """

    mapping: str
    where: str
    variants: bool = True

    def read(self, described: Mapping[str, Any]) -> SourceColumn:
        """A column. Raises Unsupported for one that no reader here reads."""
        return self._field(described)

    def _field(self, described: Mapping[str, Any]) -> SourceColumn:
        """A column, or a field of one."""
        name, metadata = described["name"], described.get("metadata", {})
        if collations := metadata.get("__COLLATIONS"):
            raise Unsupported(f"{self.where}: column {name!r} is compared by a collation: {collations}")
        if padded := _PADDED_TYPE.search(metadata.get("__CHAR_VARCHAR_TYPE_STRING", "")):
            raise Unsupported(
                f"{self.where}: column {name!r} has texts of type {padded[0].upper()}, which Spark pads as it "
                f"reads them, and no reader here: run ALTER TABLE … ALTER COLUMN {name} TYPE STRING at the source"
            )
        physical = name if self.mapping == "none" else metadata["delta.columnMapping.physicalName"]
        ids = metadata.get("delta.columnMapping.nested.ids", {}) if self.mapping == "id" else {}
        column = self._typed(name, physical, described["type"], (physical, ids))
        number = int(metadata["delta.columnMapping.id"]) if self.mapping == "id" else None
        return replace(column, id=number, comment=metadata.get("comment"))

    def _typed(self, name: str, physical: str, described: Any, nested: tuple[str, Mapping[str, int]]) -> SourceColumn:
        """``nested``: the path of this in its column, and the ids of elements, keys and values by their paths."""
        match described:
            case {"type": "struct", "fields": fields}:
                children = tuple(map(self._field, fields))
                kind = pa.struct([pa.field(child.name, child.type) for child in children])
            case {"type": "array", "elementType": element}:
                children = (self._part("element", element, nested),)
                kind = pa.list_(pa.field("element", children[0].type))
            case {"type": "map", "keyType": key, "valueType": value}:
                children = (self._part("key", key, nested), self._part("value", value, nested))
                kind = pa.map_(children[0].type, children[1].type)
            case "variant" if self.variants:
                children = tuple(SourceColumn(name, name, pa.binary()) for name in ("value", "metadata"))
                kind = VARIANT
            case str() as text:
                children, kind = (), _plain_type(text, name, self.where)
            case _:
                raise Unsupported(f"{self.where}: column {name!r} is of a type that is not known here: {described}")
        return SourceColumn(name, physical, kind, children=children)

    def _part(self, name: str, described: Any, nested: tuple[str, Mapping[str, int]]) -> SourceColumn:
        path, ids = f"{nested[0]}.{name}", nested[1]
        return replace(self._typed(name, name, described, (path, ids)), id=ids.get(path))


def _plain_type(text: str, name: str, where: str) -> pa.DataType:
    if text.startswith("decimal("):
        precision, scale = text.removeprefix("decimal(").rstrip(")").split(",")
        return pa.decimal128(int(precision), int(scale))
    if text not in _TYPES:
        raise Unsupported(f"{where}: column {name!r} is of Delta's type {text!r}, which is not known here")
    return _TYPES[text]
