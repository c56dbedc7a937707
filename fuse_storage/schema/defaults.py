"""Defaults of columns, as JSON has them: made of values that users give, and checked where files have them."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from fuse_storage.errors import SchemaError
from fuse_storage.schema import types
from fuse_storage.schema.given_values import describe_given, scalar_of_type
from fuse_storage.schema.schema import Field


def encode_column_default(value: Any, field: Field, new_type: pa.DataType | None = None) -> Any:
    """Encode a default of a field, of its type or of the new one. Raises SchemaError if it is not of that type."""
    if value is None:
        return None
    data_type = new_type or field.type
    if field.children:
        raise SchemaError(
            f"column {field.name!r} is {types.storage_type_name(data_type)} and cannot have a default: leave it NULL"
        )
    try:
        return types.encode_default(scalar_of_type(value, data_type).as_py())
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as problem:
        raise SchemaError(
            f"{value!r} cannot be the default of column {field.name!r}, "
            f"which is {types.storage_type_name(data_type)}: give {describe_given(data_type)}"
        ) from problem


def check_stored_defaults(field: Field) -> None:
    """Raise ValueError for a default that a file has, and that is of another type than its column."""
    for encoded, value in ((field.initial_default, field.initial_scalar), (field.write_default, field.write_scalar)):
        if encoded is not None and value.as_py() is None:
            raise ValueError(f"column {field.name!r} has a default {encoded!r} of another type")
