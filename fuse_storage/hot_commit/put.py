"""Rows are put, and keys are deleted, in a table with a primary key: one hot commit, whatever the number of rows.

Nothing is read: which older rows no longer count is found out by whoever reads, and by tiering.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa

from fuse_storage.commit.head import COMMIT_TIMEOUT_SECONDS, Head
from fuse_storage.commit.segment_writer import WriteOptions
from fuse_storage.commit.table_keys import is_keyed
from fuse_storage.errors import InvalidArgument
from fuse_storage.hot.entry import DELETE_CHANGE, PUT_CHANGE, HotBlock
from fuse_storage.hot_commit.append import HotAttempt, commit_hot_blocks, write_hot_block
from fuse_storage.metadata.encoding import utc_now
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.primary_key.key_sets import key_table, last_of_each
from fuse_storage.schema.conform import conform_rows
from fuse_storage.schema.schema import Schema

_HeadT = TypeVar("_HeadT", bound=Head)


def put_rows(
    table: _HeadT,
    rows: pa.Table,
    deleted_keys: pa.Table,
    application: tuple[str, int] | None = None,
    operation: str = "upsert",
    only_next: bool = False,
) -> _HeadT:
    """Put rows, each in the place of the row of its key if there is one, and delete keys. Gives the table after it.

    ``rows`` have the table's columns, ``deleted_keys`` those of its key; together at least one row, and each key once.
    ``only_next``: any commit after the table's state is a Conflict. ``application``, and what else is raised: see
    ``append_hot``. Raises InvalidArgument for a key that comes twice, and for a table without a primary key.
    """
    base, started, clock = table.snapshot, utc_now(), time.monotonic()
    if not is_keyed(base):
        raise InvalidArgument(f"{table.store.url} has no primary key: rows are appended, and changed by merge")
    schema, key_schema = base.schema, key_schema_of(base)
    puts, deletes = conform_rows(rows, schema), conform_rows(deleted_keys, key_schema)
    _check_once([puts, deletes], base.key)
    blocks: list[HotBlock] = []
    for part in _portions(puts, base):
        blocks.append(write_hot_block(table, part, schema, PUT_CHANGE))
    for part in _portions(deletes, base):
        blocks.append(write_hot_block(table, part, key_schema, DELETE_CHANGE))
    if not blocks:
        raise InvalidArgument("a hot commit has at least one row")
    attempt = HotAttempt(base, tuple(blocks), application, operation, started, clock, only_next)
    return commit_hot_blocks(table, attempt, COMMIT_TIMEOUT_SECONDS)


def key_schema_of(snapshot: Snapshot) -> Schema:
    """The columns of the key, in its order."""
    return Schema(snapshot.schema_id, tuple(snapshot.schema.by_id(column_id) for column_id in snapshot.key_ids))


def last_of_each_key(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """Those rows that are the last of their keys, in their order. ``names``: the columns of the key."""
    chosen = last_of_each(key_table(rows, names).combine_chunks())
    return rows if len(chosen) == len(rows) else rows.take(pa.array(chosen))


def _check_once(parts: Sequence[pa.Table], names: Sequence[str]) -> None:
    """Raise InvalidArgument where a key comes twice."""
    keys = pa.concat_tables([key_table(part, names) for part in parts]).combine_chunks()
    last = last_of_each(keys)
    if len(last) < len(keys):
        place = int(np.setdiff1d(np.arange(len(keys)), last)[0])
        key = dict(zip(names, (column[place].as_py() for column in keys.columns), strict=True))
        raise InvalidArgument(f"the key {key} comes twice in one commit, and no order is guessed: give each key once")


def _portions(rows: pa.Table, base: Snapshot) -> Iterator[pa.Table]:
    """The rows as blocks of the size that the table's have."""
    limit = WriteOptions.from_properties(base.properties).block_rows
    return (rows.slice(start, limit) for start in range(0, len(rows), limit))
