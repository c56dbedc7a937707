"""Columns of a table are made such that rows fit: those that it lacks are added, and types widened without loss."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

import fuse_storage as storage
from fuse_index.errors import DefinitionError
from fuse_storage import Field, SchemaChange, SchemaError, Snapshot, StoredTable


def schema_merge(rows: pa.Schema, snapshot: Snapshot) -> SchemaChange | None:
    """Make the step by which rows of this schema fit a table; None if they do already. The step can be pickled.

    Columns and fields of structs that the table lacks come last, NULL in all rows that are there; columns of a wider
    type are widened as far as ``change_type`` can. Raises SchemaError for a column that cannot be added, and
    DefinitionError for one that would be widened and has an index on it.
    """
    step = partial(_merge_fields, rows=pa.schema([_stored_like(field) for field in rows]))
    evolved = step(snapshot)
    if evolved is snapshot:
        return None
    before = {part.id: part.type for top in snapshot.schema.fields for part in top.walk() if part.is_leaf}
    for top in evolved.schema.fields:
        for part in top.walk():
            if before.get(part.id, part.type) != part.type and (names := indexes_on_columns(snapshot, {part.id})):
                raise DefinitionError(
                    f"column {top.name!r} would become {part.type}, and has index {names[0]!r} on it: "
                    f"cast the rows, or change its type first and rebuild the index"
                )
    return step


def indexes_on_columns(snapshot: Snapshot, column_ids: set[int]) -> list[str]:
    """Name the indexes on these columns, even where their kind is not installed."""
    return [
        name
        for name, definition in snapshot.definitions.items()
        if column_ids.intersection(_referenced_column_ids([definition.get("inputs"), definition.get("where")]))
    ]


def _referenced_column_ids(stored: Any) -> Iterator[int]:
    """Yield the ids of the columns that stored terms and conditions are on."""
    if isinstance(stored, dict):
        if isinstance(column_id := stored.get("column"), int):
            yield column_id
        stored = list(stored.values())
    if isinstance(stored, list):
        for part in stored:
            yield from _referenced_column_ids(part)


def evolved_table(table: StoredTable, step: SchemaChange | None) -> StoredTable:
    """The table at the same snapshot, as its columns will be: blocks are read and written with them."""
    return table if step is None else table.at_entry(table.entry, step(table.snapshot))


def peek_schema(batches: Iterable[pa.RecordBatch]) -> tuple[pa.Schema | None, Iterator[pa.RecordBatch]]:
    """The schema of the first batch, and all batches; None if there is none."""
    rest = iter(batches)
    first = next(rest, None)
    return (None, rest) if first is None else (first.schema, chain([first], rest))


def _stored_like(field: pa.Field) -> pa.Field:
    """The field in the type that a table would hold it in. Raises SchemaError."""
    return field if is_.is_null(field.type) else storage.Schema.create(pa.schema([field])).fields[0].arrow


def _merge_fields(snapshot: Snapshot, rows: pa.Schema) -> Snapshot:
    """The step itself. Raises SchemaError."""
    return _merge_siblings(snapshot, list(rows), snapshot.schema.fields, ())


def _merge_siblings(
    snapshot: Snapshot, given: Sequence[pa.Field], known: Sequence[Field], above: tuple[str, ...]
) -> Snapshot:
    fields: Mapping[str, Field] = {field.name: field for field in known}
    for field in given:
        path = (*above, field.name)
        if field.name not in fields:
            if is_.is_null(field.type):
                raise SchemaError(
                    f"column {'.'.join(path)!r} of the rows has only NULLs, and so no type: leave it out, or cast it"
                )
            snapshot = storage.add_column(snapshot, path, field.type)
        else:
            snapshot = _merge_types(snapshot, field.type, fields[field.name], path)
    return snapshot


def _merge_types(snapshot: Snapshot, given: pa.DataType, field: Field, path: tuple[str, ...]) -> Snapshot:
    if is_.is_struct(field.type) and is_.is_struct(given):
        return _merge_siblings(snapshot, list(given), field.children, path)
    if is_.is_map(field.type) and is_.is_map(given):
        key, value = field.children
        snapshot = _merge_types(snapshot, given.key_type, key, (*path, key.name))
        return _merge_types(snapshot, given.item_type, value, (*path, value.name))
    if is_.is_list(field.type) and is_.is_list(given):
        (element,) = field.children
        return _merge_types(snapshot, given.value_type, element, (*path, element.name))
    if field.is_leaf and not is_.is_nested(given) and storage.can_widen(field.type, given):
        return storage.change_type(snapshot, path, given)
    return snapshot
