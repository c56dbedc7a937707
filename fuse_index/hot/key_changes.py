"""Rows as what they do to a table with a primary key: they put rows, or delete those of their keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
from fuse_storage import Schema, Snapshot, StoredTable


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
        rows = rows.drop_columns([name for name in (COMMIT_VERSION, COMMIT_TIMESTAMP) if name in rows.column_names])
        goes = pc.fill_null(pc.equal(rows.column(CHANGE_TYPE), DELETE), False)
        puts = in_columns(rows.filter(pc.invert(goes)).drop_columns([CHANGE_TYPE]), snapshot)
        deletes = rows.filter(goes).select(list(snapshot.key))
        return KeyChanges(puts, storage.conform_rows(deletes, storage.key_schema_of(snapshot)))


def last_changes(rows: pa.Table, snapshot: Snapshot) -> pa.Table:
    """Of each key the last of the changes that count, as it came. Raises as ``KeyChanges.from_changes``."""
    if CHANGE_TYPE not in rows.column_names:
        raise InputError(f"the changes have no column {CHANGE_TYPE!r}: they have {rows.column_names}")
    check_has_key(rows, snapshot, "apply")
    types = rows.column(CHANGE_TYPE).cast(pa.string())
    known = pa.array([INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE, DELETE])
    if unknown := types.filter(pc.invert(pc.is_in(types, value_set=known))).drop_null().unique().to_pylist():
        raise InputError(f"{CHANGE_TYPE} {unknown[0]!r}: there are {', '.join(known.to_pylist())}")
    order = np.arange(len(rows))
    if COMMIT_VERSION in rows.column_names:
        order = np.argsort(rows.column(COMMIT_VERSION).cast(pa.int64()).to_numpy(), kind="stable")
    passed = is_passed_over(types).to_numpy(zero_copy_only=False)
    return storage.last_of_each_key(rows.take(pa.array(order[~passed[order]])), snapshot.key)


def is_passed_over(types: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Which changes say what was: bool. ``types``: as in ``_change_type``."""
    return pc.fill_null(pc.equal(types, UPDATE_PREIMAGE), False)


def check_keyed(table: StoredTable, method: str) -> None:
    """Raise InputError for a table without a primary key. ``method``: what the refusal names."""
    if not storage.is_keyed(table.snapshot):
        raise InputError(
            f"{method} is for tables with a primary key, and {table.store.url} has none: create one with "
            f"primary_key=[...]"
        )


def check_has_key(rows: pa.Table, snapshot: Snapshot, method: str) -> None:
    """Raise SchemaError for rows that lack a column of the key."""
    if lacking := [name for name in snapshot.key if name not in rows.column_names]:
        raise storage.SchemaError(
            f"{method} needs the primary key, and the rows lack column {lacking[0]!r}: they have {rows.column_names}"
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
