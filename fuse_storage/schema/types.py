"""The types a column may have, and how they and their values are written in JSON.

They are Spark's types, held as Arrow's; a type that Spark lacks is replaced by the narrowest one that holds all its
values, or refused. Names are Spark SQL's own ("bigint", "decimal(10,2)", "timestamp_ntz"), so that a person can read
them.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from fuse_storage.errors import SchemaError, Unsupported
from fuse_storage.schema.variant import VARIANT, is_marked_struct, is_variant

SPARK_TYPES_BY_NAME: Mapping[str, pa.DataType] = {
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
    "variant": VARIANT,
}
"""Plain types by their names in Spark SQL, but decimals, which have digits in their names. All others refer to this."""
_NAMES_BY_TYPE = {data_type: name for name, data_type in SPARK_TYPES_BY_NAME.items()}
_DECIMAL_NAME = re.compile(r"decimal\((\d+),(\d+)\)")

_REPLACED_TYPES: dict[pa.DataType, pa.DataType] = {
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


def storage_type_name(data_type: pa.DataType) -> str:
    """Spark's name of a column's type; nested types by their outermost word, their parts being fields of their own."""
    if is_.is_decimal(data_type):
        return f"decimal({data_type.precision},{data_type.scale})"
    if is_.is_nested(data_type):
        return "struct" if is_.is_struct(data_type) else "map" if is_.is_map(data_type) else "array"
    return _NAMES_BY_TYPE[data_type]


def storage_type_from_name(name: str) -> pa.DataType:
    """The type of a name that is not nested. Raises Unsupported."""
    if decimal := _DECIMAL_NAME.fullmatch(name):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    if name not in SPARK_TYPES_BY_NAME:
        raise Unsupported(f"type {name!r} is not known to this version: upgrade fuse-index to read this table")
    return SPARK_TYPES_BY_NAME[name]


def to_storage_type(data_type: pa.DataType, where: str) -> pa.DataType:
    """The type in which values of ``data_type`` are stored. Raises SchemaError naming ``where``, the field."""
    if is_.is_dictionary(data_type) or is_.is_run_end_encoded(data_type):
        return to_storage_type(data_type.value_type, where)
    if is_variant(data_type) or is_marked_struct(data_type):
        return VARIANT
    if isinstance(data_type, pa.BaseExtensionType):
        return to_storage_type(data_type.storage_type, where)
    if is_.is_timestamp(data_type):
        return SPARK_TYPES_BY_NAME["timestamp_ntz" if data_type.tz is None else "timestamp"]
    if is_.is_decimal(data_type) and data_type.precision <= 38 and 0 <= data_type.scale <= data_type.precision:
        return pa.decimal128(data_type.precision, data_type.scale)
    if is_.is_fixed_size_binary(data_type):
        return pa.binary()
    if is_.is_struct(data_type) and data_type.num_fields:
        return pa.struct([f.with_type(to_storage_type(f.type, f"{where}.{f.name}")) for f in data_type])
    if is_.is_map(data_type):
        return pa.map_(
            to_storage_type(data_type.key_type, f"{where}.key"),
            data_type.item_field.with_type(to_storage_type(data_type.item_type, f"{where}.value")),
        )
    if is_list_type(data_type):
        return pa.list_(
            data_type.value_field.with_name("element").with_type(
                to_storage_type(data_type.value_type, f"{where}.element")
            )
        )
    if data_type in _NAMES_BY_TYPE or data_type in _REPLACED_TYPES:
        return _REPLACED_TYPES.get(data_type, data_type)
    if is_.is_time(data_type):
        raise SchemaError(
            f"column {where!r} has type {data_type}, and tables hold no times of day: cast it to string, or to "
            f"int64 as microseconds since midnight"
        )
    raise SchemaError(f"column {where!r} has type {data_type}, which Spark has no equivalent of: cast it first")


def is_list_type(data_type: pa.DataType) -> bool:
    """Tell whether a type is any of Arrow's list types; a map is none."""
    tests = (is_.is_list, is_.is_large_list, is_.is_fixed_size_list, is_.is_list_view, is_.is_large_list_view)
    return any(test(data_type) for test in tests)


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


def decode_constant(value: Any, data_type: pa.DataType) -> pa.Scalar:
    """The value that ``encode_default`` wrote, as one of a type; NULL where it is null."""
    if value is None:
        return pa.nulls(1, data_type)[0]  # Arrow makes no scalar of what has a VARIANT in it
    return pa.scalar(decode_default(value, data_type), data_type)


def decode_default(value: Any, data_type: pa.DataType) -> Any:
    """The value that ``encode_default`` wrote."""
    if value is None:
        return None
    if is_.is_floating(data_type):
        return float(value)
    if is_.is_decimal(data_type):
        return Decimal(value)
    if is_.is_date(data_type):
        return date.fromisoformat(value)
    if is_.is_timestamp(data_type):
        moment = datetime.fromisoformat(value)
        return moment if data_type.tz is None else moment.astimezone(UTC)
    return base64.b64decode(value) if is_.is_binary(data_type) else value
