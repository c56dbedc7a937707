"""Statements on tables with a primary key: puts and deletes in one hot commit, and no block is rewritten.

Of rows that change only the key is read, where they lie; new rows are looked up, since a key that is there would have
two.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
import pyarrow as pa

import fuse_storage as storage
from fuse_index.errors import InputError
from fuse_index.spark.answers import Sealed
from fuse_index.spark.jobs.changed_rows import (
    NEW_ROWS,
    BlockPlaces,
    Slices,
    is_deleted,
    row_numbers,
    run_by_block,
    table_columns,
)
from fuse_index.spark.jobs.dml import map_tasks, write_in_tasks
from fuse_index.spark.jobs.statement import ALWAYS, Statement
from fuse_index.spark.schemas import to_arrow_schema
from fuse_index.spark.source.keyed_write import (
    KeyedWrite,
    TaskPuts,
    commit_keyed,
    hand_over,
    has_changes,
    resolve_keyed_names,
)
from fuse_index.statements.key_changes import no_keys
from fuse_index.table.table import Table
from fuse_storage import PartitionSpec, StoredTable

_KEYS_AT_ONCE = 10_000
"""Keys of new rows that are looked up at a time."""


class KeyedStatement(Statement):
    """A statement on a table with a primary key."""

    def append(self) -> None:
        """Put rows."""
        write, tasks = self._put_rows()
        write.commit(tasks)

    def insert_unmatched(self) -> None:
        self._commit([task.open() for task in map_tasks(self.dataframe(), partial(_read_new, self._target))])

    def overwrite(self) -> None:
        """Fill a table that has no rows, as Spark does with one that it makes anew. Raises InputError for others."""
        if self.condition not in (None, ALWAYS) or self.table.snapshot.row_count:
            raise _not_overwritten()
        self._commit(self._put_rows()[1])

    def overwrite_partitions(self) -> None:
        if PartitionSpec.from_snapshot(self.table.snapshot) is not None:
            raise _not_overwritten()
        self.overwrite()

    def delete(self) -> None:
        self.table.delete("true" if self.condition is None else self.condition)

    def change_rows(self, operation: str) -> None:
        """Put and delete the rows that change. Raises InputError for a key that changes, or that is there already."""
        read = partial(_read_groups, self._target)
        self._commit([task.open() for task in run_by_block(self.dataframe(), self.task_count, read)])

    @property
    def _target(self) -> Sealed[Table]:
        return Sealed(Table(self.evolved, self.table.host))

    def _put_rows(self) -> tuple[KeyedWrite, list[TaskPuts]]:
        rows, snapshot = self.dataframe(), self.evolved.snapshot
        names = resolve_keyed_names(to_arrow_schema(rows.schema), snapshot)
        write = KeyedWrite(self.table.stored, self.table.host, has_changes(names, snapshot), self.step)
        tasks = write_in_tasks(write, rows.toDF(*names))
        return write, tasks

    def _commit(self, tasks: list[TaskPuts]) -> None:
        """Commit puts and deletes that follow from what was read, only where it is as it was."""
        commit_keyed(self.table.stored, self.table.host, tasks, unless_changed=True, schema_change=self.step)


def _not_overwritten() -> InputError:
    return InputError(
        "INSERT OVERWRITE is not for tables with a primary key: INSERT INTO puts rows by their keys, and DELETE "
        "deletes those that are to go"
    )


def _read_new(sealed: Sealed[Table], batches: Iterable[pa.RecordBatch]) -> Sealed[TaskPuts]:
    table, rows = sealed.open(), [pa.Table.from_batches([batch]) for batch in batches]
    stored = table.stored
    puts = pa.concat_tables(rows) if rows else stored.snapshot.schema.empty_table()
    _check_new(table, puts)
    return Sealed(hand_over(puts, no_keys(stored.snapshot), stored))


def _read_groups(sealed: Sealed[Table], groups: Iterable[tuple[str, Slices]]) -> TaskPuts:
    """The puts and deletes of a task, which holds them in memory."""
    table = sealed.open()
    stored, snapshot = table.stored, table.stored.snapshot
    places, puts, deletes = BlockPlaces(stored), [snapshot.schema.empty_table()], [no_keys(snapshot)]
    for name, slices in groups:
        rows = pa.concat_tables([part for _, part in slices])
        goes = is_deleted(rows)
        stays = rows.filter(pa.array(~goes))
        if len(stays):
            coming = table_columns(stays, snapshot.schema.names)
            puts.append(storage.conform_rows(coming, snapshot.schema))
        if name == NEW_ROWS:
            _check_new(table, puts[-1])
            continue
        keys = _read_keys(stored, places.find(name), row_numbers(rows))
        deletes.append(keys.filter(pa.array(goes)))
        if len(stays) and not puts[-1].select(keys.column_names).equals(keys.filter(pa.array(~goes))):
            raise InputError(f"the primary key {list(snapshot.key)} of a row stays: delete the row, and insert another")
    return hand_over(pa.concat_tables(puts), pa.concat_tables(deletes), stored)


def _read_keys(table: StoredTable, number: int, rows: np.ndarray) -> pa.Table:
    """The keys of rows of a block, by their numbers in its file."""
    block = table.blocks().take(np.array([number], np.int64))
    live = storage.live_among(block, 0)
    places = rows if live is None else (np.cumsum(live) - 1)[rows]
    found = storage.read_live_rows(table, block, 0, table.snapshot.key)
    return storage.conform_rows(found.take(pa.array(places)), storage.key_schema_of(table.snapshot))


def _check_new(table: Table, rows: pa.Table) -> None:
    """Raise InputError for a key that the table has, RepeatedKey for one that comes twice."""
    key = list(table.stored.snapshot.key)
    keys = storage.conform_rows(rows.select(key), storage.key_schema_of(table.stored.snapshot))
    storage.check_keys_once(keys, key)
    for start in range(0, len(keys), _KEYS_AT_ONCE):
        found = table.lookup(keys.slice(start, _KEYS_AT_ONCE), key)
        if len(found):
            raise InputError(
                f"a row of the key {found.slice(0, 1).to_pylist()[0]} is there already, and would be two: compare the "
                f"whole key by =, so that the row is matched"
            )
