"""The tail of a table: what is in it, and how it becomes indexed blocks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa

import fuse_storage as storage
from fuse_index.handle import TableHandle, writable_head
from fuse_index.hot.tier import TierJob
from fuse_index.indexes.builder import index_builders
from fuse_index.table.arguments import parse_duration

TAIL_VIEW_SCHEMA = pa.schema(
    [
        ("commits", pa.int64()),
        ("blocks", pa.int64()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("oldest", pa.timestamp("us", "UTC")),
        ("newest", pa.timestamp("us", "UTC")),
    ]
)


@dataclass(frozen=True, slots=True, repr=False)
class Tail(storage.Shown):
    """What is not tiered yet: hot commits, their blocks, rows and bytes, and when the oldest and newest were made."""

    _shown = "commits blocks rows bytes oldest newest"

    commits: int
    blocks: int
    rows: int
    bytes: int
    oldest: datetime | None
    newest: datetime | None


class TierMixin(TableHandle):
    """The part of ``fuse_index.Table`` that counts the states of a branch and what is not tiered of them."""

    @property
    def version(self) -> int:
        """The number of this state of the branch: commits of all kinds are counted, hot ones too.

        Example:
            >>> table = fuse.create_table("memory://table-version", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}])
            >>> table.version
            2
        """
        return self.snapshot.version

    @property
    def tail(self) -> Tail:
        """What is not tiered yet of the state that this handle reads.

        Example:
            >>> table = fuse.create_table("memory://table-tail", "id BIGINT", primary_key=["id"])
            >>> snapshot = table.upsert([{"id": 1}])
            >>> table.tail.rows
            1
        """
        if (found := self.snapshot.tail) is None:
            return Tail(0, 0, 0, 0, None, None)
        times = storage.tail_times(self.stored.store, self.snapshot)
        return Tail(found.commits, found.blocks, found.rows, found.bytes, min(times), max(times))


def start_tiering(table: TableHandle, min_age: timedelta | str | None = None) -> TierJob:
    """Start tiering of a table's head as a job, whose tasks Spark's executors may run.

    Raises InputError for a text that is no duration, ReadOnly.
    """
    age = None if min_age is None else parse_duration(min_age, "min_age")
    head = writable_head(table)
    return TierJob(head, index_builders(head.snapshot, table.host), age)
