"""Types and values of columns, as they are given: by Spark SQL's names, by Arrow's, or as text."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

import fuse_storage as storage
from fuse_index.errors import InputError
from fuse_index.expressions.types import spark_type_name
from fuse_index.ingest import arrow_input


def parse_type(data_type: Any) -> pa.DataType:
    """Make an Arrow type of one, or of Spark SQL's name of it. Raises InputError, WhereError."""
    if isinstance(data_type, pa.DataType):
        return data_type
    if not isinstance(data_type, str):
        raise InputError(f"type={data_type!r}: give Spark SQL's name of a type, such as 'bigint', or a pa.DataType")
    columns = arrow_input.resolve_arrow_schema(f"c {data_type}")
    if len(columns) > 1 or not columns.field(0).nullable:
        raise InputError(f"type={data_type!r}: give the type alone; nullable=False says that it is NOT NULL")
    return columns.field(0).type


def parse_typed_value(text: str, type_name: Any) -> Any:
    """Read a value of this type from text. Raises SchemaError."""
    data_type = parse_type(type_name)
    try:
        return pa.scalar(text).cast(data_type).as_py()
    except (pa.ArrowException, ValueError) as problem:
        name = type_name if isinstance(type_name, str) else spark_type_name(data_type)
        raise storage.SchemaError(f"{text!r} is no value of type {name}") from problem
