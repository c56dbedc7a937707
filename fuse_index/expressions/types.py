"""Spark's types, as JSON and as SQL names, and the Arrow types that stand for them here. Imports no Spark.

Only types that a column of a table can have are known; whatever else Spark sends (intervals, VARIANT, collated text,
user-defined types) has no Arrow type here, and what is built on it is not understood.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

NAMES: Mapping[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}
JSON_NAMES: Mapping[str, str] = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
"""Where ``DataType.json`` uses another word than SQL does."""
SYNONYMS: Mapping[str, str] = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "timestamp_ltz": "timestamp",
    "bool": "boolean",
}

DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\((\d+)(?:,(-?\d+))?\))?")


def from_json(described: Any) -> pa.DataType | None:
    """The Arrow type of a parsed ``DataType.json``; None for what is not known here."""
    match described:
        case str():
            return (
                None
                if described in SYNONYMS.keys() - JSON_NAMES.keys()
                else from_name(JSON_NAMES.get(described, described))
            )
        case {"type": "struct", "fields": fields}:
            parts = [(field["name"], field_type(field), field["nullable"]) for field in fields]
            if any(kind is None for _, kind, _ in parts):
                return None
            return pa.struct([pa.field(name, kind, nullable) for name, kind, nullable in parts])
        case {"type": "array", "elementType": element, "containsNull": nullable}:
            kind = from_json(element)
            return None if kind is None else pa.list_(pa.field("element", kind, nullable))
        case {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": nullable}:
            kinds = from_json(key), from_json(value)
            return None if None in kinds else pa.map_(kinds[0], pa.field("value", kinds[1], nullable))
        case _:
            return None


def field_type(field: Mapping[str, Any]) -> pa.DataType | None:
    """The type of one field of a struct; None too for CHAR, VARCHAR and collated text, which compare in their own
    ways.
    """
    metadata = field.get("metadata", {})
    return None if compares_specially(metadata) else from_json(field["type"])


def compares_specially(metadata: Mapping[str, Any]) -> bool:
    return "__CHAR_VARCHAR_TYPE_STRING" in metadata or "__COLLATIONS" in metadata


def from_name(name: str) -> pa.DataType | None:
    """The Arrow type of a plain type's SQL name, in any case; None for what is not known here."""
    word = re.sub(r"\s+", "", name.lower())
    if found := DECIMAL.fullmatch(word):
        precision, scale = int(found[1] or 10), int(found[2] or 0)
        return pa.decimal128(precision, scale) if 0 < precision <= 38 and 0 <= scale <= precision else None
    return NAMES.get(SYNONYMS.get(word, word))


def name_of(kind: pa.DataType) -> str:
    """Spark's SQL name of an Arrow type; Arrow's own name where Spark has none."""
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{name_of(field.type)}' for field in kind)}>"
    if pa.types.is_map(kind):
        return f"map<{name_of(kind.key_type)},{name_of(kind.item_type)}>"
    if pa.types.is_list(kind):
        return f"array<{name_of(kind.value_type)}>"
    return next((name for name, known in NAMES.items() if known == kind), str(kind))
