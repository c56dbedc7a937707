"""Rows made to fit the columns of a table, by name and without loss, or refused.

A value is never parsed, rounded or given a time zone on the way: whoever wants that casts first and knows it. What rows
lack is its write default, or NULL; what the table lacks is refused, since it might be misspelt.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_storage.errors import SchemaError
from fuse_storage.schema import types
from fuse_storage.schema.castable import castable_type, to_castable
from fuse_storage.schema.nested import child_fields, nested_type_like
from fuse_storage.schema.nested_arrays import child_arrays, holds_variant, of_child_arrays, repeat_scalar
from fuse_storage.schema.schema import Field, Schema
from fuse_storage.schema.variant import check_variant_type, is_variant, to_variants


def conform_rows(rows: pa.Table | pa.RecordBatch, schema: Schema) -> pa.Table:
    """Put rows into the logical schema, its order and its types. Raises SchemaError naming the column."""
    table = pa.Table.from_batches([rows]) if isinstance(rows, pa.RecordBatch) else rows
    if schema.allows_null and table.schema.equals(schema.arrow):
        if table.schema.equals(schema.arrow, check_metadata=True):
            return table
        return pa.Table.from_arrays(table.columns, schema=schema.arrow)  # no value is to be checked
    names = table.schema.names  # made anew each time that it is asked for
    given = dict(zip(names, table.columns, strict=True))
    if len(given) != len(names):
        twice = next(name for name, count in Counter(names).items() if count > 1)
        raise SchemaError(f"the rows have more than one column called {twice!r}: rename one")
    fields_by_name = {field.name: field for field in schema.fields}
    if unknown := [name for name in names if name not in fields_by_name]:
        raise SchemaError(_unknown_problem(unknown[0], list(fields_by_name), "the rows have a column", "the table"))
    for field in schema.fields:
        if field.name not in given and not field.may_be_missing:
            raise SchemaError(
                f"the rows lack column {field.name!r}, which is NOT NULL and has no default: they have {names}"
            )
    columns = [
        _conform_column(given[field.name], field)
        if field.name in given
        else pa.chunked_array([repeat_scalar(field.write_scalar, table.num_rows)], field.type)
        for field in schema.fields
    ]
    return pa.Table.from_arrays(columns, schema=schema.arrow)


def _unknown_problem(name: str, known: Sequence[str], subject: str, owner: str) -> str:
    near = difflib.get_close_matches(name, known, 1) or [each for each in known if each.lower() == name.lower()]
    hint = f"did you mean {near[0]!r}?" if near else f"it has {list(known)}."
    return f"{subject} {name!r} that {owner} lacks: {hint} To add it, write with merge_schema"


def _conform_column(column: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
    if column.type != field.type:
        _check_types(column.type, field, field.name)
        column = pa.chunked_array(
            [_with_all_fields(chunk, field) for chunk in column.chunks], _type_with_all_fields(column.type, field)
        )
    for chunk in column.chunks:
        _check_nulls(chunk, field, field.name)
    if column.type != field.type:
        try:
            column = _cast(column, field)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as refusal:
            raise SchemaError(
                f"column {field.name!r} is {field.type}, and not all of its {column.type} values fit: {refusal}"
            ) from refusal
    return column


def _cast(column: pa.ChunkedArray, field: Field) -> pa.ChunkedArray:
    if is_.is_integer(column.type) and is_.is_decimal(field.type):
        # Arrow asks for room for any integer before it looks at the values; so make room first
        column = pc.cast(column, pa.decimal128(38, field.type.scale))
    if not field.children:
        return pc.cast(column, field.type)
    # Arrow asks of a field that is NOT NULL a value also where the struct around it is NULL; ours are checked already
    lenient = pc.cast(column, _nullable_field(field).type)
    return pa.chunked_array([rename_array_fields(chunk, field.type) for chunk in lenient.chunks], field.type)


def _nullable_field(field: Field) -> pa.Field:
    """The field in Arrow, nullable, and all within it but keys of maps."""
    data_type = nested_type_like(field.type, [_nullable_field(child) for child in field.children])
    return pa.field(field.name, data_type)


def _check_types(given_type: pa.DataType, field: Field, where: str) -> None:
    """Raise SchemaError unless values of the given type can be held exactly, value by value."""
    if is_variant(field.type):
        check_variant_type(given_type, where)
    elif field.children and not is_.is_null(given_type):
        parts = _child_types(types.to_storage_type(given_type, where), field, where)
        if parts is None:
            raise SchemaError(f"column {where!r} is {field.type}, and the rows have {given_type}: their fields differ")
        for part, child in parts:
            _check_types(part, child, f"{where}.{child.name}")
    elif not _fits_exactly(given_type, field.type, where):
        raise SchemaError(f"column {where!r} is {field.type}, and the rows have {given_type}: cast it first")


def _child_types(given_type: pa.DataType, field: Field, where: str) -> list[tuple[pa.DataType, Field]] | None:
    """Pair the types of what is given within with the fields of the table; None if it is nested otherwise.

    Raises SchemaError for a field of a struct that one side lacks, unless it is one that may be missing.
    """
    if types.storage_type_name(given_type) != types.storage_type_name(field.type):
        return None
    if is_.is_map(given_type):
        return list(zip([given_type.key_type, given_type.item_type], field.children, strict=True))
    if not is_.is_struct(given_type):
        return [(given_type.value_type, field.children[0])]
    names = [part.name for part in given_type]
    known = {child.name: child for child in field.children}
    if unknown := [name for name in names if name not in known]:
        raise SchemaError(
            _unknown_problem(unknown[0], list(known), f"column {where!r} has in the rows a field", "the table's struct")
        )
    if twice := [name for name in names if names.count(name) > 1]:
        raise SchemaError(f"column {where!r} has in the rows more than one field called {twice[0]!r}: rename one")
    if missing := [name for name, child in known.items() if name not in names and not child.nullable]:
        raise SchemaError(
            f"the rows lack field {missing[0]!r} of column {where!r}, which is NOT NULL: they have {names}"
        )
    return [(part.type, known[part.name]) for part in given_type]


def _type_with_all_fields(given_type: pa.DataType, field: Field) -> pa.DataType:
    """The given type with the fields of structs in the table's order, those that it lacks in the table's type.

    Values that are told by reference, as categories are, are of a type that Arrow casts.
    """
    if is_variant(field.type) or (is_.is_null(given_type) and holds_variant(field.type)):
        return field.type
    if is_.is_null(given_type) or not field.children:
        return castable_type(given_type)
    if is_.is_dictionary(given_type):
        return _type_with_all_fields(given_type.value_type, field)
    if is_.is_struct(given_type):
        known = {part.name: part for part in given_type}
        return pa.struct(
            [
                known[child.name].with_type(_type_with_all_fields(known[child.name].type, child))
                if child.name in known
                else child.arrow
                for child in field.children
            ]
        )
    if is_.is_map(given_type):
        key, value = field.children
        return pa.map_(
            given_type.key_field.with_type(_type_with_all_fields(given_type.key_type, key)),
            given_type.item_field.with_type(_type_with_all_fields(given_type.item_type, value)),
        )
    element = given_type.value_field.with_type(_type_with_all_fields(given_type.value_type, field.children[0]))
    return given_type if element.type == given_type.value_type else pa.list_(element)


def _with_all_fields(values: pa.Array, field: Field) -> pa.Array:
    """Put fields of structs into the table's order, with NULL in those that the values lack."""
    data_type = _type_with_all_fields(values.type, field)
    if data_type == values.type:
        return values
    if is_.is_null(values.type):
        return pa.nulls(len(values), data_type)
    if is_variant(field.type):
        return to_variants(values, field.name)
    if not field.children:
        return to_castable(values)
    if is_.is_dictionary(values.type):
        return _with_all_fields(values.dictionary.take(values.indices), field)
    if is_.is_struct(data_type):
        names = [part.name for part in values.type]
        parts = [
            _with_all_fields(values.field(child.name), child)
            if child.name in names
            else pa.nulls(len(values), part.type)
            for child, part in zip(field.children, data_type, strict=True)
        ]
    else:
        within = zip(child_arrays(values), field.children, strict=True)
        parts = [_with_all_fields(part, child) for part, child in within]
    return of_child_arrays(values, parts, data_type)


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
    # what a NULL struct has in its fields is of no account; Arrow's drop_null fails where nothing but NULL is a VARIANT
    present = values.filter(values.is_valid()) if values.null_count else values
    for child, part in zip(field.children, child_arrays(present), strict=True):
        _check_nulls(part, child, f"{where}.{child.name}")


class _RenamedBatch:
    """A record batch that says to be of another schema, whose types differ in names only."""

    def __init__(self, batch: pa.RecordBatch, schema: pa.Schema) -> None:
        self.batch, self.schema = batch, schema

    def __arrow_c_array__(self, requested_schema: Any = None) -> tuple[Any, Any]:
        return self.schema.__arrow_c_schema__(), self.batch.__arrow_c_array__()[1]


def rename_table_fields(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Give columns other names, nested ones too, without copying. The types must differ in names only."""
    batches = [pa.record_batch(_RenamedBatch(batch, schema)) for batch in rows.to_batches()]
    return pa.Table.from_batches(batches, schema)


def rename_array_fields(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Give nested values other names within."""
    if values.type == data_type:
        return values
    batch = pa.RecordBatch.from_arrays([values], [""])
    return pa.record_batch(_RenamedBatch(batch, pa.schema([("", data_type)]))).column(0)


def fill_under_nulls(values: pa.Array, nullable: bool = True) -> pa.Array:
    """Put something into every field that is NOT NULL, also where the struct around it is NULL.

    Parquet's writer wants it so, and writes nothing of it.
    """
    kind, has_nulls = values.type, bool(values.null_count)
    if not is_.is_nested(kind):
        if nullable or not has_nulls:
            return values
        return pa.Array.from_buffers(kind, len(values), [None, *values.buffers()[1:]], 0, values.offset)
    if is_.is_struct(kind):
        parts = [fill_under_nulls(values.field(number), part.nullable) for number, part in enumerate(kind)]
    else:
        within = zip(child_arrays(values), child_fields(kind), strict=True)
        parts = [fill_under_nulls(part, field.nullable) for part, field in within]
    return of_child_arrays(values, parts, kind, nullable)
