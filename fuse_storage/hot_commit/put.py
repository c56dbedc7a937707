"""Rows are put, and keys are deleted, in a table with a primary key: one hot commit, whatever the number of rows.

Nothing is read: which older rows no longer count is found out by whoever reads, and by tiering. Blocks that several
processes wrote for one commit have their keys compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from fuse_storage.commit.head import COMMIT_TIMEOUT_SECONDS, Head
from fuse_storage.commit.schema_evolution import SchemaChange
from fuse_storage.commit.segment_writer import WriteOptions
from fuse_storage.commit.transaction import Transaction
from fuse_storage.errors import Conflict, InvalidArgument, RepeatedKey
from fuse_storage.hot.entry import DELETE_CHANGE, PUT_CHANGE, HotBlock
from fuse_storage.hot_commit.append import HotAttempt, commit_hot_blocks, write_hot_block
from fuse_storage.metadata.encoding import utc_now
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.primary_key.hidden_rows import read_keys
from fuse_storage.primary_key.key_sets import key_table, last_of_each
from fuse_storage.primary_key.row_rules import row_rules
from fuse_storage.schema.conform import conform_rows
from fuse_storage.schema.schema import Schema

_HeadT = TypeVar("_HeadT", bound=Head)


@dataclass(frozen=True, slots=True)
class StagedPuts:
    """Hot blocks that a process wrote, and that nobody sees before they are committed. Picklable.

    ``schema``: the table's columns by then. ``started``: when the first was begun, UTC.
    """

    blocks: tuple[HotBlock, ...]
    schema: Schema
    started: datetime

    @property
    def row_count(self) -> int:
        """The rows that are put."""
        return sum(block.row_count for block in self.blocks if block.change == PUT_CHANGE)


def put_rows(
    table: _HeadT,
    rows: pa.Table,
    deleted_keys: pa.Table,
    application: tuple[str, int] | None = None,
    operation: str = "upsert",
    still_holds: Callable[[_HeadT], bool] | None = None,
) -> _HeadT:
    """Put rows, each in the place of the row of its key if there is one, and delete keys. Gives the table after it.

    ``rows`` have the table's columns, ``deleted_keys`` those of its key; together at least one row, and each key once.
    ``still_holds``: asked, with the head by then, whether the rows follow from it as well, where others committed after
    the table's state; if not, that is a Conflict. ``application``, and what else is raised: see ``append_hot``.
    Raises RepeatedKey for a key that comes twice, InvalidArgument for a table without a primary key.
    """
    clock, staged = time.monotonic(), stage_puts(table, rows, deleted_keys)
    if not staged.blocks:
        raise InvalidArgument("a hot commit has at least one row")
    attempt = HotAttempt(table.snapshot, staged.blocks, application, operation, staged.started, clock, still_holds)
    return commit_hot_blocks(table, attempt, COMMIT_TIMEOUT_SECONDS)


def stage_puts(table: Head, rows: pa.Table, deleted_keys: pa.Table) -> StagedPuts:
    """Write what ``put_rows`` commits, or a part of it. Raises as that."""
    base, started, blocks = table.snapshot, utc_now(), list[HotBlock]()
    row_rules(base).check_puts(table.store.url)
    schema, key_schema = base.schema, key_schema_of(base)
    puts, deletes = conform_rows(rows, schema), conform_rows(deleted_keys, key_schema)
    _check_once([key_table(part, base.key) for part in (puts, deletes)], base.key)
    for part in _portions(puts, base):
        blocks.append(write_hot_block(table, part, schema, PUT_CHANGE))
    for part in _portions(deletes, base):
        blocks.append(write_hot_block(table, part, key_schema, DELETE_CHANGE))
    return StagedPuts(tuple(blocks), schema, started)


def commit_puts(
    table: _HeadT,
    staged: Sequence[StagedPuts],
    application: tuple[str, int] | None = None,
    operation: str = "upsert",
    still_holds: Callable[[_HeadT], bool] | None = None,
    schema_change: SchemaChange | None = None,
) -> _HeadT:
    """Commit what several processes wrote, at least one row, as one hot commit. Gives the table after it.

    Reads the keys of all rows. ``schema_change``: the step that gives the table the columns that the rows have; then
    the commit is a snapshot, with the rows in its tail. Raises RepeatedKey for a key that comes twice, and else as
    ``put_rows``.
    """
    base = table.snapshot if schema_change is None else schema_change(table.snapshot)
    clock = time.monotonic()
    for part in staged:
        if base.schemas.get(part.schema.id) != part.schema:
            raise Conflict("the columns were replaced since these rows were made: write them again", base.commit_id)
    blocks = tuple(block for part in staged for block in part.blocks)
    _check_once(read_keys(table.store, base, blocks), base.key)
    started = min(part.started for part in staged)
    begin = None if schema_change is None else lambda head: Transaction(head).evolve_schema(schema_change)
    attempt: HotAttempt[_HeadT] = HotAttempt(base, blocks, application, operation, started, clock, still_holds, begin)
    return commit_hot_blocks(table, attempt, COMMIT_TIMEOUT_SECONDS)


def key_schema_of(snapshot: Snapshot) -> Schema:
    """The columns of the key, in its order."""
    return Schema(snapshot.schema_id, tuple(snapshot.schema.by_id(column_id) for column_id in snapshot.key_ids))


def last_of_each_key(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Keep the rows that are the last of their keys, in their order. ``names``: the columns of the key."""
    chosen = last_of_each(key_table(rows, names).combine_chunks())
    return rows if len(chosen) == len(rows) else rows.take(pa.array(chosen))


def check_keys_once(rows: pa.Table, names: Sequence[str]) -> None:
    """Raise RepeatedKey where rows have a key twice. ``names``: the columns of the key."""
    _check_once([key_table(rows, names)], names)


def _check_once(parts: Sequence[pa.Table], names: Sequence[str]) -> None:
    """Raise RepeatedKey where a key comes twice. ``parts``: tables of keys."""
    keys = pa.concat_tables(parts).combine_chunks()
    last = last_of_each(keys)
    if len(last) < len(keys):
        place = int(np.setdiff1d(np.arange(len(keys)), last)[0])
        key = dict(zip(names, map(_describe, keys.slice(place, 1).columns), strict=True))
        raise RepeatedKey(f"the key {key} comes twice in one commit, and no order is guessed: give each key once")


def _describe(value: pa.ChunkedArray) -> Any:
    """The one value, or its text where Python has none such: its calendar ends with the year 9999."""
    try:
        return value[0].as_py()
    except (OverflowError, ValueError):
        return value.cast(pa.string())[0].as_py()


def _portions(rows: pa.Table, base: Snapshot) -> Iterator[pa.Table]:
    """The rows as blocks of the size that the table's have."""
    limit = WriteOptions.from_properties(base.properties).block_rows
    return (rows.slice(start, limit) for start in range(0, len(rows), limit))
