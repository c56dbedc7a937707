"""Spark's types, as JSON and as SQL names, and the Arrow types that stand for them here. Imports no Spark.

Only types that a column of a table can have are known; whatever else Spark sends (intervals, collated text,
user-defined types) has no Arrow type here, and what is built on it is not understood.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from fuse_storage import SPARK_TYPES_BY_NAME, is_variant

_TYPES_BY_NAME: Mapping[str, pa.DataType] = {**SPARK_TYPES_BY_NAME, "void": pa.null()}
"""A literal may be of type void (NULL), which no column is."""
_JSON_NAMES: Mapping[str, str] = {"byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint"}
"""Where ``DataType.json`` uses another word than SQL does."""
_SYNONYMS: Mapping[str, str] = {
    "byte": "tinyint",
    "short": "smallint",
    "integer": "int",
    "long": "bigint",
    "real": "float",
    "timestamp_ltz": "timestamp",
    "bool": "boolean",
}

_DECIMAL = re.compile(r"(?:decimal|dec|numeric)(?:\((\d+)(?:,(-?\d+))?\))?")


def type_from_spark_json(described: Any) -> pa.DataType | None:
    """The Arrow type of a parsed ``DataType.json``; None for what is not known here."""
    match described:
        case str():
            return (
                None
                if described in _SYNONYMS.keys() - _JSON_NAMES.keys()
                else type_from_spark_name(_JSON_NAMES.get(described, described))
            )
        case {"type": "struct", "fields": fields}:
            parts = [(field["name"], _field_type(field), field["nullable"]) for field in fields]
            if any(data_type is None for _, data_type, _ in parts):
                return None
            return pa.struct([pa.field(name, data_type, nullable) for name, data_type, nullable in parts])
        case {"type": "array", "elementType": element, "containsNull": nullable}:
            data_type = type_from_spark_json(element)
            return None if data_type is None else pa.list_(pa.field("element", data_type, nullable))
        case {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": nullable}:
            data_types = type_from_spark_json(key), type_from_spark_json(value)
            return None if None in data_types else pa.map_(data_types[0], pa.field("value", data_types[1], nullable))
        case _:
            return None


def _field_type(field: Mapping[str, Any]) -> pa.DataType | None:
    """The type of a struct's field; None too for CHAR, VARCHAR and collated text, which compare in their own ways."""
    metadata = field.get("metadata", {})
    limited = _TEXT_LIMIT_KEY in metadata
    return None if limited or is_char_or_collated(metadata) else type_from_spark_json(field["type"])


_TEXT_LIMIT_KEY = "__CHAR_VARCHAR_TYPE_STRING"
_CHAR = re.compile(r"(?<!var)char\(")


def is_char_or_collated(metadata: Mapping[str, Any]) -> bool:
    """The metadata of a field of Spark says CHAR or a collation: such text compares in a way of its own.

    Text of VARCHAR compares as any text does.
    """
    return "__COLLATIONS" in metadata or bool(_CHAR.search(str(metadata.get(_TEXT_LIMIT_KEY, "")).lower()))


def type_from_spark_name(name: str) -> pa.DataType | None:
    """The Arrow type of a plain type's SQL name, in any case; None for what is not known here."""
    word = re.sub(r"\s+", "", name.lower())
    if match := _DECIMAL.fullmatch(word):
        precision, scale = int(match[1] or 10), int(match[2] or 0)
        return pa.decimal128(precision, scale) if 0 < precision <= 38 and 0 <= scale <= precision else None
    return _TYPES_BY_NAME.get(_SYNONYMS.get(word, word))


def is_compound(data_type: pa.DataType) -> bool:
    """Whether values have parts, as those of nested types and of VARIANT do: none of these is compared here."""
    return bool(pa.types.is_nested(data_type) or is_variant(data_type))


def spark_type_name(data_type: pa.DataType) -> str:
    """Spark's SQL name of an Arrow type; Arrow's own name where Spark has none."""
    if pa.types.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    if pa.types.is_struct(data_type):
        return f"struct<{','.join(f'{field.name}:{spark_type_name(field.type)}' for field in data_type)}>"
    if pa.types.is_map(data_type):
        return f"map<{spark_type_name(data_type.key_type)},{spark_type_name(data_type.item_type)}>"
    if pa.types.is_list(data_type):
        return f"array<{spark_type_name(data_type.value_type)}>"
    return next((name for name, known in _TYPES_BY_NAME.items() if known == data_type), str(data_type))
