"""Columns as Iceberg describes them: fields with ids, types, and values of rows that are older than a column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as is_

from fuse_index.export.live_files import TableFormat
from fuse_storage import Field

if TYPE_CHECKING:
    from pyiceberg.schema import Schema as IcebergSchema

    from fuse_storage import Schema


def _widens(before: pa.DataType, now: pa.DataType) -> bool:
    """Whether Iceberg reads values of the one type as the other, with what it calls both."""
    if is_.is_decimal(before) and is_.is_decimal(now):
        return bool(before.scale == now.scale and before.precision <= now.precision)
    return bool(
        (is_.is_integer(before) and is_.is_integer(now) and before.bit_width < now.bit_width)
        or (is_.is_float32(before) and is_.is_float64(now))
    )


ICEBERG_FORMAT = TableFormat("Iceberg", tells_defaults=True, widens=_widens)


def iceberg_schema(schema: Schema, has_defaults: bool) -> IcebergSchema:
    """The columns of a snapshot. ``has_defaults``: with both defaults, as format version 3 can say."""
    from pyiceberg.schema import Schema

    fields = [_field(part, has_defaults) for part in schema.fields]
    return Schema(*fields, schema_id=schema.id, identifier_field_ids=[])


def iceberg_type(part: Field) -> Any:
    """The type of a column, or of a part of one."""
    from pyiceberg import types

    if is_.is_decimal(part.type):
        return types.DecimalType(part.type.precision, part.type.scale)
    if is_.is_struct(part.type):
        return types.StructType(*map(_field, part.children))
    if is_.is_map(part.type):
        key, value = part.children
        return types.MapType(
            key.id, iceberg_type(key), value.id, iceberg_type(value), value_required=not value.nullable
        )
    if is_.is_list(part.type):
        (element,) = part.children
        return types.ListType(element.id, iceberg_type(element), element_required=not element.nullable)
    if is_.is_timestamp(part.type):
        return types.TimestampType() if part.type.tz is None else types.TimestamptzType()
    if is_.is_integer(part.type):
        return types.LongType() if is_.is_int64(part.type) else types.IntegerType()
    plain = {
        pa.bool_(): types.BooleanType,
        pa.float32(): types.FloatType,
        pa.float64(): types.DoubleType,
        pa.string(): types.StringType,
        pa.binary(): types.BinaryType,
        pa.date32(): types.DateType,
    }
    return plain[part.type]()


def _field(part: Field, has_defaults: bool = False) -> Any:
    from pyiceberg.types import NestedField

    return NestedField(
        field_id=part.id,
        name=part.name,
        field_type=iceberg_type(part),
        required=not part.nullable,
        doc=part.comment,
        initial_default=part.initial_scalar.as_py() if has_defaults else None,
        write_default=part.write_scalar.as_py() if has_defaults else None,
    )
