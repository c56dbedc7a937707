"""The types a column may have, and how they and their values are written in JSON.

They are Spark's types, held as Arrow's; a type that Spark lacks is replaced by the narrowest one that holds all its
values, or refused. Names are Spark SQL's own ("bigint", "decimal(10,2)", "timestamp_ntz"), so that a person can read
them.
"""

from __future__ import annotations

import base64
import math
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from fuse_storage.errors import SchemaError, Unsupported

NAMES: dict[str, pa.DataType] = {
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
}
TYPES = {type: name for name, type in NAMES.items()}
DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")

REPLACED: dict[pa.DataType, pa.DataType] = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}
"""Arrow types that Spark lacks, and what is stored instead, without loss."""


def name_of(type: pa.DataType) -> str:
    """Spark's name of a column's type; nested types by their outermost word, their parts being fields of their own."""
    if is_.is_decimal(type):
        return f"decimal({type.precision},{type.scale})"
    if is_.is_nested(type):
        return "struct" if is_.is_struct(type) else "map" if is_.is_map(type) else "array"
    return TYPES[type]


def named(name: str) -> pa.DataType:
    """The type of a name that is not nested. Raises Unsupported."""
    if found := DECIMAL.fullmatch(name):
        return pa.decimal128(int(found[1]), int(found[2]))
    if name not in NAMES:
        raise Unsupported(f"type {name!r} is not known to this version: upgrade fuse-index to read this table")
    return NAMES[name]


def stored(type: pa.DataType, where: str) -> pa.DataType:
    """The type in which values of ``type`` are stored. Raises SchemaError naming ``where``, the field."""
    if is_.is_dictionary(type) or is_.is_run_end_encoded(type):
        return stored(type.value_type, where)
    if isinstance(type, pa.BaseExtensionType):
        return stored(type.storage_type, where)
    if is_.is_timestamp(type):
        return NAMES["timestamp_ntz" if type.tz is None else "timestamp"]
    if is_.is_decimal(type) and type.precision <= 38 and 0 <= type.scale <= type.precision:
        return pa.decimal128(type.precision, type.scale)
    if is_.is_fixed_size_binary(type):
        return pa.binary()
    if is_.is_struct(type) and type.num_fields:
        return pa.struct([f.with_type(stored(f.type, f"{where}.{f.name}")) for f in type])
    if is_.is_map(type):
        return pa.map_(
            stored(type.key_type, f"{where}.key"), type.item_field.with_type(stored(type.item_type, f"{where}.value"))
        )
    if is_list(type):
        return pa.list_(type.value_field.with_name("element").with_type(stored(type.value_type, f"{where}.element")))
    if type in TYPES or type in REPLACED:
        return REPLACED.get(type, type)
    raise SchemaError(f"column {where!r} has type {type}, which Spark has no equivalent of: cast it first")


def is_list(type: pa.DataType) -> bool:
    """Any of Arrow's list types; a map is none."""
    tests = (is_.is_list, is_.is_large_list, is_.is_fixed_size_list, is_.is_list_view, is_.is_large_list_view)
    return any(test(type) for test in tests)


def encode_default(value: Any) -> Any:
    """A value as JSON can hold it: text for what JSON has no word for. None is null. Raises SchemaError."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case Decimal():
            return str(value)
        case datetime() | date():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
    raise SchemaError(f"{value!r} cannot be a default: only values of plain types can")


def decode_default(value: Any, type: pa.DataType) -> Any:
    """The value that ``encode_default`` wrote."""
    if value is None:
        return None
    if is_.is_floating(type):
        return float(value)
    if is_.is_decimal(type):
        return Decimal(value)
    if is_.is_date(type):
        return date.fromisoformat(value)
    if is_.is_timestamp(type):
        found = datetime.fromisoformat(value)
        return found if type.tz is None else found.astimezone(UTC)
    return base64.b64decode(value) if is_.is_binary(type) else value
