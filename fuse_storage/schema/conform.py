"""Rows made to fit the columns of a table, by name and without loss, or refused.

A value is never parsed, rounded or given a time zone on the way: whoever wants that casts first and knows it.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_storage.errors import SchemaError
from fuse_storage.schema import types
from fuse_storage.schema.schema import Field, Schema


def conform_rows(rows: pa.Table | pa.RecordBatch, schema: Schema) -> pa.Table:
    """The same rows in the logical schema, its order and its types. Raises SchemaError naming the column."""
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    if len(set(table.column_names)) != table.num_columns:
        twice = next(name for name in table.column_names if table.column_names.count(name) > 1)
        raise SchemaError(f"the rows have more than one column called {twice!r}: rename one")
    if missing := [name for name in schema.names if name not in table.column_names]:
        raise SchemaError(
            f"the rows lack column {missing[0]!r}: they have {table.column_names}; add it, of nulls if need be"
        )
    if unknown := [name for name in table.column_names if name not in schema.names]:
        raise SchemaError(f"the rows have a column {unknown[0]!r} that the table lacks: it has {schema.names}")
    columns = [_conform_column(table.column(field.name), field) for field in schema.fields]
    return pa.Table.from_arrays(columns, schema=schema.arrow)


def _conform_column(column: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
    if column.type != field.type:
        _check_types(column.type, field, field.name)
    for chunk in column.chunks:
        _check_nulls(chunk, field, field.name)
    if column.type != field.type:
        try:
            column = _cast(column, field.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as refusal:
            raise SchemaError(
                f"column {field.name!r} is {field.type}, and not all of its {column.type} values fit: {refusal}"
            ) from refusal
    return column


def _cast(column: pa.ChunkedArray, data_type: pa.DataType) -> pa.ChunkedArray:
    if is_.is_integer(column.type) and is_.is_decimal(data_type):
        # Arrow asks for room for any integer before it looks at the values; so make room first
        column = pc.cast(column, pa.decimal128(38, data_type.scale))
    return pc.cast(column, data_type)


def _check_types(given_type: pa.DataType, field: Field, where: str) -> None:
    """Raise SchemaError unless values of the given type can be held exactly, value by value."""
    if field.children and not is_.is_null(given_type):
        parts = _child_types(types.to_storage_type(given_type, where), field)
        if parts is None:
            raise SchemaError(f"column {where!r} is {field.type}, and the rows have {given_type}: their fields differ")
        for part, child in zip(parts, field.children, strict=True):
            _check_types(part, child, f"{where}.{child.name}")
    elif not _fits_exactly(given_type, field.type, where):
        raise SchemaError(f"column {where!r} is {field.type}, and the rows have {given_type}: cast it first")


def _child_types(given_type: pa.DataType, field: Field) -> list[pa.DataType] | None:
    if types.storage_type_name(given_type) != types.storage_type_name(field.type):
        return None
    if is_.is_map(given_type):
        return [given_type.key_type, given_type.item_type]
    if not is_.is_struct(given_type):
        return [given_type.value_type]
    names = [part.name for part in given_type]
    return [part.type for part in given_type] if names == [child.name for child in field.children] else None


def _fits_exactly(given_type: pa.DataType, column_type: pa.DataType, where: str) -> bool:
    if is_.is_null(given_type):
        return True
    stored_type = types.to_storage_type(given_type, where)
    if stored_type == column_type:
        return True
    numbers = (is_.is_integer(stored_type), is_.is_floating(stored_type), is_.is_decimal(stored_type))
    into = (is_.is_integer(column_type), is_.is_floating(column_type), is_.is_decimal(column_type))
    match numbers, into:
        case (True, _, _), (True, _, _) | (_, True, _) | (_, _, True):
            return True  # the cast itself refuses values that do not fit
        case (_, True, _), (_, True, _):
            return bool(stored_type.bit_width < column_type.bit_width)
        case (_, _, True), (_, _, True) | (True, _, _):
            return True
    return False


def _check_nulls(values: pa.Array, field: Field, where: str) -> None:
    if not field.nullable and values.null_count:
        raise SchemaError(f"column {where!r} is NOT NULL, and {values.null_count} rows have NULL in it")
    if is_.is_null(values.type) or all(part.nullable for child in field.children for part in child.walk()):
        return
    present = values.drop_null()  # what a NULL struct has in its fields is of no account
    for child, part in zip(field.children, child_arrays(present), strict=True):
        _check_nulls(part, child, f"{where}.{child.name}")


def child_arrays(values: pa.Array) -> list[pa.Array]:
    """The arrays right below a nested one, those of a struct or of its elements, keys and values."""
    if is_.is_struct(values.type):
        return list(values.flatten())
    if is_.is_map(values.type):
        # keys and items of a slice are those of the whole, so they are cut by the slice's offsets
        return [pa.ListArray.from_arrays(values.offsets, part).flatten() for part in (values.keys, values.items)]
    return [values.flatten()]


class _RenamedBatch:
    """A record batch that says to be of another schema, whose types differ in names only."""

    def __init__(self, batch: pa.RecordBatch, schema: pa.Schema) -> None:
        self.batch, self.schema = batch, schema

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return self.schema.__arrow_c_schema__(), self.batch.__arrow_c_array__()[1]


def rename_table_fields(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The same columns under other names, nested ones too, without copying. The types must differ in names only."""
    batches = [pa.record_batch(_RenamedBatch(batch, schema)) for batch in rows.to_batches()]
    return pa.Table.from_batches(batches, schema)


def rename_array_fields(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    """The same values under other names within."""
    if values.type == data_type:
        return values
    batch = pa.RecordBatch.from_arrays([values], [""])
    return pa.record_batch(_RenamedBatch(batch, pa.schema([("", data_type)]))).column(0)
