"""Rows as what they do to a table with a primary key: they put rows, or delete those of their keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import fuse_storage as storage
from fuse_index.changes.columns import (
    CHANGE_TYPE,
    COMMIT_TIMESTAMP,
    COMMIT_VERSION,
    DELETE,
    INSERT,
    UPDATE_POSTIMAGE,
    UPDATE_PREIMAGE,
)
from fuse_index.errors import InputError
from fuse_index.ingest import arrow_input
from fuse_index.ingest.input_files import find_input_files
from fuse_index.ingest.read_files import InputFiles, to_path_list
from fuse_storage import Field, Operation, Schema, Snapshot


def read_uniform_rows(data: Any, schema: pa.Schema) -> pa.Table:
    """All rows, in whatever form ``append`` takes them, which all have the same columns.

    Raises InputError for dicts that lack columns that others have, and would set them to NULL; those that say by
    ``_change_type`` that a row goes may. And for files, or other parts of the rows, that differ in their columns.
    """
    if isinstance(data, Iterator) and not hasattr(data, "__arrow_c_stream__"):
        data = tuple(data)
    for rows in (data, *data) if isinstance(data, list | tuple) else ():
        if isinstance(rows, list | tuple) and all(isinstance(row, dict) for row in rows):
            _check_like_dicts(rows)
    if arrow_input.are_paths(data):
        data = InputFiles.open(find_input_files(to_path_list(data)), schema, in_part=True).reader()
    batches = list(arrow_input.to_record_batches(data, schema))
    if not batches:
        return pa.table({})
    names = batches[0].schema.names
    if twice := [name for place, name in enumerate(names) if name in names[:place]]:
        raise InputError(f"the rows have more than one column called {twice[0]!r}: rename one")
    if odd := next((each for each in batches if each.schema.names != names), None):
        raise InputError(f"parts of the rows differ in their columns: {names}; {odd.schema.names}")
    return pa.concat_tables([pa.Table.from_batches([batch]) for batch in batches], promote_options="permissive")


def _check_like_dicts(rows: Sequence[dict[str, Any]]) -> None:
    names = dict.fromkeys(name for row in rows for name in row)
    come = (row for row in rows if row.get(CHANGE_TYPE) not in (DELETE, UPDATE_PREIMAGE))
    if lacking := next((row for row in come if len(row) < len(names)), None):
        name = next(name for name in names if name not in lacking)
        raise InputError(
            f"{lacking!r} lacks {name!r}, which other rows have: give it None, or put rows of like columns together, "
            f"so that those that they lack stay as they are"
        )


@dataclass(frozen=True, slots=True)
class KeyChanges:
    """What some rows do: of each key one thing. ``puts``: in the table's types; they may lack columns of it.

    ``deletes``: the columns of the key.
    """

    puts: pa.Table
    deletes: pa.Table

    @staticmethod
    def from_rows(rows: pa.Table, snapshot: Snapshot, method: str) -> KeyChanges:
        """Rows that are put; of several of one key the last. Raises SchemaError.

        ``method``: what a refusal names.
        """
        check_has_key(rows, snapshot, method)
        puts = storage.last_of_each_key(in_columns(rows, snapshot), snapshot.key)
        return KeyChanges(puts, no_keys(snapshot))

    @staticmethod
    def from_changes(rows: pa.Table, snapshot: Snapshot) -> KeyChanges:
        """What rows say by ``_change_type``, in the order of ``_commit_version``: see ``Table.apply``.

        Raises InputError for a change of another type, SchemaError.
        """
        rows = last_changes(rows, snapshot)
        about = [name for name in (COMMIT_VERSION, COMMIT_TIMESTAMP) if name not in snapshot.schema.names]
        rows = rows.drop_columns([name for name in about if name in rows.column_names])
        goes = pc.fill_null(pc.equal(_cast(rows, CHANGE_TYPE, pa.string()), DELETE), False)
        puts = in_columns(rows.filter(pc.invert(goes)).drop_columns([CHANGE_TYPE]), snapshot)
        deletes = rows.filter(goes).select(list(snapshot.key))
        return KeyChanges(puts, storage.conform_rows(deletes, storage.key_schema_of(snapshot)))


def last_changes(rows: pa.Table, snapshot: Snapshot) -> pa.Table:
    """Keep the last change of each key that counts, as it came. Raises as ``KeyChanges.from_changes``."""
    if CHANGE_TYPE not in rows.column_names:
        raise InputError(f"the changes have no column {CHANGE_TYPE!r}: they have {rows.column_names}")
    check_has_key(rows, snapshot, "apply")
    types = _cast(rows, CHANGE_TYPE, pa.string())
    known = pa.array([INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE, DELETE])
    if unknown := types.filter(pc.invert(pc.is_in(types, value_set=known))).drop_null().unique().to_pylist():
        raise InputError(f"{CHANGE_TYPE} {unknown[0]!r}: there are {', '.join(known.to_pylist())}")
    effective = rows.filter(pc.invert(is_passed_over(types)))
    storage.conform_rows(effective.select(list(snapshot.key)), storage.key_schema_of(snapshot))  # or it is no key
    return storage.last_of_each_key(in_commit_order(effective), snapshot.key)


def in_commit_order(rows: pa.Table) -> pa.Table:
    """Changes by ``_commit_version``, if there is such a column, NULL first; of one version as they come.

    Raises InputError for versions that are no whole numbers.
    """
    if COMMIT_VERSION not in rows.column_names:
        return rows
    versions = _cast(rows, COMMIT_VERSION, pa.int64()).fill_null(np.iinfo(np.int64).min)
    return rows.take(pa.array(np.argsort(versions.to_numpy(), kind="stable")))


def _cast(rows: pa.Table, name: str, data_type: pa.DataType) -> pa.ChunkedArray:
    """A column that tells of changes. Raises InputError where its values are no such."""
    given = rows.column(name)
    chunks = [storage.to_castable(chunk) for chunk in given.chunks]
    try:
        return pa.chunked_array(chunks, storage.castable_type(given.type)).cast(data_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as refusal:
        raise InputError(
            f"column {name!r} is to be {data_type}, and the rows have other values: {refusal}"
        ) from refusal


def is_passed_over(types: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Which changes say what was: bool. ``types``: as in ``_change_type``."""
    return pc.fill_null(pc.equal(types, UPDATE_PREIMAGE), False)


def check_has_key(rows: pa.Table, snapshot: Snapshot, method: str) -> None:
    """Raise SchemaError for rows that lack a column of the key."""
    if lacking := [name for name in snapshot.key if name not in rows.column_names]:
        raise storage.SchemaError(
            Operation.call(method)
            + f" needs the primary key, and the rows lack column {lacking[0]!r}: they have {rows.column_names}"
        )


def check_same_columns(before: Schema, names: Sequence[str], snapshot: Snapshot) -> None:
    """Raise Conflict where others renamed, dropped or replaced one of these top-level columns since ``before``.

    So for parts of a nested column, and where it gained one: its values are put as a whole, without the new part.
    """
    now = {part.id: part.name for top in snapshot.schema.fields for part in top.walk()}
    for name in names:
        column = before.find([name])
        for path, part in _parts(column):
            if (found := now.get(part.id)) != part.name:
                what = "dropped" if found is None else f"renamed to {found!r}"
                raise _changed(f"column {path!r} was {what}", snapshot)
        known = {part.id for part in column.walk()}
        if gained := [path for path, part in _parts(snapshot.schema.by_id(column.id)) if part.id not in known]:
            raise _changed(f"column {name!r} gained {gained[0]!r}, which these rows would make NULL,", snapshot)


def _parts(field: Field, above: str = "") -> Iterator[tuple[str, Field]]:
    """A column and all below it, with their paths."""
    path = f"{above}{field.name}"
    yield path, field
    for child in field.children:
        yield from _parts(child, f"{path}.")


def _changed(what: str, snapshot: Snapshot) -> storage.Conflict:
    return storage.Conflict(
        f"{what} since this handle was opened: refresh() it, and give the rows by the columns of today", snapshot.id
    )


def in_columns(rows: pa.Table, snapshot: Snapshot) -> pa.Table:
    """Rows in the types of those columns of the table that they have, in its order. Raises SchemaError."""
    schema = snapshot.schema
    fields = tuple(field for field in schema.fields if field.name in rows.column_names)
    if unknown := [name for name in rows.column_names if name not in schema.names]:
        schema.find([unknown[0]])
    return storage.conform_rows(rows, Schema(schema.id, fields))


def no_keys(snapshot: Snapshot) -> pa.Table:
    """The columns of the key, without rows."""
    return storage.key_schema_of(snapshot).arrow.empty_table()


def missing_columns(names: Sequence[str], snapshot: Snapshot) -> list[str]:
    """The columns of the table that rows with columns of these names lack."""
    return [name for name in snapshot.schema.names if name not in names]
