"""Nested types, taken apart into the fields of their parts, and made of them again."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.types as is_

from fuse_storage.errors import SchemaError
from fuse_storage.schema import types
from fuse_storage.schema.variant import VARIANT, VARIANT_STORAGE, is_variant


def nested_type_like(data_type: pa.DataType, parts: Sequence[pa.Field]) -> pa.DataType:
    """A nested type like ``data_type`` with these parts; ``data_type`` itself if it is plain."""
    return nested_type(types.storage_type_name(data_type), parts) if parts else data_type


def nested_type(name: str, fields: Sequence[pa.Field]) -> pa.DataType:
    """The nested type that Spark calls so, with these parts. Raises SchemaError for as many as it cannot have."""
    match name, list(fields):
        case "struct", _:
            return pa.struct(fields)
        case "map", [key, value]:
            return pa.map_(key.with_nullable(False), value)
        case "array", [element]:
            return pa.list_(element)
        case "variant", [_, _]:
            return VARIANT
    raise SchemaError(f"a {name} cannot have {len(fields)} parts")


def child_fields(data_type: pa.DataType) -> list[pa.Field]:
    """The fields right below a nested type; none of a plain one."""
    if is_.is_map(data_type):
        return [data_type.key_field, data_type.item_field]
    if is_.is_struct(data_type):
        return list(data_type)
    if is_variant(data_type):
        return list(VARIANT_STORAGE)
    return [data_type.value_field] if types.is_list_type(data_type) else []
