"""Rows that come to a table with a primary key: tasks write hot blocks of them, and one hot commit makes these visible.

A task with few rows hands them to the committer, which makes one block of them all. Of the blocks of other tasks it
reads the keys, to see that none comes twice. Where rows lack columns it gets all rows, and completes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import pyarrow as pa

import fuse_storage as storage
from fuse_index.changes.columns import CHANGE_COLUMNS, CHANGE_TYPE, COMMIT_VERSION
from fuse_index.errors import InputError
from fuse_index.hot.append import commit_staged_by_key, was_committed
from fuse_index.indexes.registry import Host
from fuse_index.ingest.schema_merge import evolved_table
from fuse_index.spark.source.task_rows import MAX_HANDED_BYTES, TaskRows, to_stream
from fuse_index.statements.key_changes import (
    KeyChanges,
    check_has_key,
    in_columns,
    in_commit_order,
    last_changes,
    missing_columns,
)
from fuse_storage import (
    Conflict,
    RepeatedKey,
    SchemaChange,
    SchemaError,
    Snapshot,
    StagedPuts,
    StoredTable,
    WriteOptions,
)

MAX_PARTIAL_BYTES = 256 << 20
"""The rows that lack columns, all of them in one process, of one batch have at most so many bytes."""
_ATTEMPTS = 5
"""How often a statement is committed anew, where others tiered meanwhile, and changed no row."""


TaskPuts = TaskRows[StagedPuts]
"""What one task has that puts rows and deletes keys."""


@dataclass(frozen=True)
class KeyedWrite:
    """The ``RowWrite`` of a table with a primary key: one hot commit that puts rows.

    ``changes``: whether ``_change_type`` says what each row does. ``schema_change``: as of a ``HeapWrite``.
    ``at_head``: whether rows come to the table as it is when they are committed.
    """

    table: StoredTable
    host: Host
    changes: bool
    schema_change: SchemaChange | None = None
    at_head: bool = False

    def write(self, batches: Iterable[pa.RecordBatch]) -> TaskPuts:
        """Hand few rows over, or write hot blocks of them."""
        return stage_keyed(batches, evolved_table(self.table, self.schema_change), self.changes)

    def commit(self, tasks: Sequence[TaskPuts], application: tuple[str, int] | None = None) -> None:
        """Commit what all tasks have. Raises InputError for a key that several have, and as ``Table.upsert``."""
        table = self.table.refresh() if self.at_head else self.table
        done = commit_keyed(table, self.host, tasks, application, schema_change=self.schema_change)
        if done is None and application is not None:
            table.transaction().commit("upsert", application=application, enter=True)


def resolve_keyed_names(rows: pa.Schema, snapshot: Snapshot) -> tuple[str, ...]:
    """The table's name for each column of rows that are to be put, without case; those that say changes stay.

    Raises SchemaError for columns that do not fit, and where the key lacks one.
    """
    schema, names = snapshot.schema, list[str]()
    is_change = has_changes(rows.names, snapshot)
    for name in rows.names:
        if is_change and name.lower() in CHANGE_COLUMNS.names:
            names.append(name.lower())
            continue
        try:
            names.append(schema.find([name], case_sensitive=name in schema.names).name)
        except SchemaError as unknown:
            raise SchemaError(f"the DataFrame has a column {name!r} that does not fit: {unknown}") from unknown
    empty = storage.empty_table(pa.schema([field.with_name(name) for field, name in zip(rows, names, strict=True)]))
    check_has_key(empty, snapshot, "a write to this table")
    in_columns(empty.drop_columns([name for name in names if is_change and name in CHANGE_COLUMNS.names]), snapshot)
    return tuple(names)


def hand_over(puts: pa.Table, deletes: pa.Table, table: StoredTable) -> TaskPuts:
    """What a task has that puts rows and deletes keys, each key once."""
    schema = table.snapshot.schema
    if puts.nbytes + deletes.nbytes > MAX_HANDED_BYTES or CHANGE_TYPE in schema.names:
        return TaskPuts(schema, staged=(storage.stage_puts(table, puts, deletes),))
    parts = [
        rows.append_column(CHANGE_TYPE, pa.repeat(pa.scalar(change), len(rows)))
        for rows, change in ((puts, "insert"), (deletes, "delete"))
    ]
    return TaskPuts(schema, to_stream(pa.concat_tables(parts, promote_options="permissive")))


def stage_keyed(batches: Iterable[pa.RecordBatch], table: StoredTable, changes: bool) -> TaskPuts:
    """Take the rows of a task, which has the memory of a block for them.

    ``changes``: whether ``_change_type`` says what each does. Raises InputError, SchemaError.
    """
    snapshot, remaining, taken, size = table.snapshot, iter(batches), list[pa.RecordBatch](), 0
    names: Sequence[str] = ()
    for batch in remaining:
        names = batch.schema.names
        limit = MAX_PARTIAL_BYTES if missing_columns(names, snapshot) else MAX_HANDED_BYTES
        taken.append(batch)
        size += batch.nbytes
        if size > limit:
            break
    else:
        rows = pa.Table.from_batches(taken) if taken else None
        return TaskPuts(snapshot.schema, None if rows is None or not len(rows) else to_stream(rows))
    _check_partial_size(missing_columns(names, snapshot), size)
    staged = []
    for rows in _portions(chain(taken, remaining), WriteOptions.from_properties(snapshot.properties)):
        found = _read(rows, snapshot, changes)
        if len(found.puts) or len(found.deletes):
            staged.append(storage.stage_puts(table, found.puts, found.deletes))
    return TaskPuts(snapshot.schema, staged=tuple(staged))


def commit_keyed(
    table: StoredTable,
    host: Host,
    tasks: Sequence[TaskPuts],
    application: tuple[str, int] | None = None,
    *,
    unless_changed: bool = False,
    schema_change: SchemaChange | None = None,
) -> StoredTable | None:
    """Commit what tasks have as one hot commit; None if that is nothing. Gives the table after it.

    ``unless_changed``: rows that others changed since the table's state are a Conflict. ``schema_change``: the step to
    the columns that the rows have, of which none is missing; it is of the same commit. Raises InputError for a key that
    several tasks have, and as ``Table.upsert``.
    """
    evolved = evolved_table(table, schema_change)
    snapshot = evolved.snapshot
    if application is not None and was_committed(snapshot, *application):
        return table
    for task in tasks:
        if changed := storage.changed_column_names(task.schema, snapshot.schema):
            raise Conflict(f"column {changed[0]!r} was changed while rows were written: write them again", snapshot.id)
    parts = [pa.ipc.open_stream(task.handed).read_all() for task in tasks if task.handed is not None]
    staged = [each for task in tasks for each in task.staged]
    if not parts and not staged:
        return None
    try:
        if not parts:
            return _commit(table, host, staged, application, unless_changed, schema_change)
        changes = has_changes(parts[0].column_names, snapshot)
        rows = _merge(parts, snapshot, changes)
        missing = missing_columns(rows.column_names, snapshot)
        if missing and not staged:
            _check_partial_size(missing, rows.nbytes)
            from fuse_index.table.table import Table  # all of it, which no other writer needs

            handle = Table(table, host)
            handle.apply(rows, application) if changes else handle.upsert(rows, application)
            return handle.stored
        found = _read(rows, snapshot, changes)
        if len(found.puts) or len(found.deletes):
            staged.append(storage.stage_puts(evolved, found.puts, found.deletes))
        return _commit(table, host, staged, application, unless_changed, schema_change) if staged else None
    except RepeatedKey as repeated:
        if unless_changed:
            raise InputError(f"{repeated}. The statement makes several rows of it") from repeated
        raise InputError(
            f"{repeated}. Several tasks have rows of this key: give their order, by fuse_index.spark.upsert(df, url, "
            f"order_by=…) or, in streams, .foreachBatch(fuse_index.spark.upserting(url, 'job', order_by=…))"
        ) from repeated


def _commit(
    table: StoredTable,
    host: Host,
    staged: Sequence[StagedPuts],
    application: tuple[str, int] | None,
    unless_changed: bool,
    schema_change: SchemaChange | None,
) -> StoredTable:
    for _ in range(_ATTEMPTS if unless_changed else 0):
        try:
            return commit_staged_by_key(table, host, staged, application, _never, schema_change)
        except Conflict:
            head = table.refresh()
            states = [table.snapshot, *(state for _, state in head.commits_since(table.snapshot)())]
            if head is table or not all(storage.keeps_rows(*pair) for pair in pairwise(states)):
                raise
            table = head
    still_holds = _never if unless_changed else None
    return commit_staged_by_key(table, host, staged, application, still_holds, schema_change)


def _never(head: StoredTable) -> bool:
    """What a statement read is not known here, so that it may follow from no later state."""
    return False


def has_changes(names: Sequence[str], snapshot: Snapshot) -> bool:
    """Whether rows with columns of these names say what each does to the table."""
    return CHANGE_TYPE in (name.lower() for name in names) and CHANGE_TYPE not in snapshot.schema.names


def _read(rows: pa.Table, snapshot: Snapshot, changes: bool) -> KeyChanges:
    if changes:
        return KeyChanges.from_changes(rows, snapshot)
    return KeyChanges.from_rows(rows, snapshot, "upsert")


def _merge(parts: Sequence[pa.Table], snapshot: Snapshot, changes: bool) -> pa.Table:
    """One row of each key. Of several tasks that have it the one with the greatest ``_commit_version`` decides.

    Raises RepeatedKey where that says nothing.
    """
    key = snapshot.key
    last = [last_changes(part, snapshot) if changes else storage.last_of_each_key(part, key) for part in parts]
    rows = pa.concat_tables(last).combine_chunks()
    if len(last) == 1:
        return rows
    has_versions = changes and COMMIT_VERSION in rows.column_names
    storage.check_keys_once(rows, (*key, COMMIT_VERSION) if has_versions else key)
    return storage.last_of_each_key(in_commit_order(rows), key) if has_versions else rows


def _check_partial_size(missing: Sequence[str], size: int) -> None:
    if missing and size > MAX_PARTIAL_BYTES:
        raise InputError(
            f"the rows lack column {missing[0]!r}, and are completed in one process: bring at most "
            f"{MAX_PARTIAL_BYTES >> 20} MiB of such rows at once, or rows with all columns"
        )


def _portions(batches: Iterator[pa.RecordBatch], options: WriteOptions) -> Iterator[pa.Table]:
    """The rows, as many at a time as make a block."""
    taken, rows, size = list[pa.RecordBatch](), 0, 0
    for batch in batches:
        taken.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
        if rows >= options.block_rows or size >= options.block_bytes:
            yield pa.Table.from_batches(taken)
            taken, rows, size = [], 0, 0
    if rows:
        yield pa.Table.from_batches(taken)
