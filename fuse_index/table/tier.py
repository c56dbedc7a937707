"""The tail of a table: what is in it, and how it becomes indexed blocks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa

import fuse_storage as storage
from fuse_index.handle import TableHandle
from fuse_index.hot.tier import TierJob, tier_table
from fuse_index.indexes.builder import index_builders
from fuse_index.operations.build_index import ProgressCallback
from fuse_index.table.arguments import parse_duration
from fuse_storage import Snapshot

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


@dataclass(frozen=True, slots=True)
class Tail:
    """What is not tiered yet: hot commits, their blocks, rows and bytes, and when the oldest and newest were made."""

    commits: int
    blocks: int
    rows: int
    bytes: int
    oldest: datetime | None
    newest: datetime | None


class TierMixin(TableHandle):
    """The part of ``fuse_index.Table`` that moves hot rows into indexed blocks."""

    @property
    def version(self) -> int:
        """The number of this state of the branch: commits of all kinds are counted, hot ones too."""
        return self.snapshot.version

    @property
    def tail(self) -> Tail:
        """What is not tiered yet of the state that this handle reads."""
        if (found := self.snapshot.tail) is None:
            return Tail(0, 0, 0, 0, None, None)
        times = storage.tail_times(self.stored.store, self.snapshot)
        return Tail(found.commits, found.blocks, found.rows, found.bytes, min(times), max(times))

    def tier(
        self,
        min_age: timedelta | str | None = None,
        progress: ProgressCallback | None = None,
    ) -> Snapshot:
        """Move the tail, or its commits older than ``min_age``, into blocks that are sorted and indexed.

        ``min_age``: a timedelta, or text such as ``"10s"``. ``progress`` is told how many hot blocks are done, and of
        how many. Nothing is committed if there is nothing to move, and it does not matter how many do it at once.
        Raises StorageError.
        """
        age = parse_duration(min_age, "min_age") if isinstance(min_age, str) else min_age
        head = self._writable_head()
        return self._move_on(head, tier_table(head, self.host, age, progress))

    def tiering(self, min_age: timedelta | str | None = None) -> TierJob:
        """Start ``tier`` as a job of tasks, which Spark's executors run; see ``RewriteJob``. Raises as ``tier``."""
        age = parse_duration(min_age, "min_age") if isinstance(min_age, str) else min_age
        head = self._writable_head()
        return TierJob(head, index_builders(head.snapshot, self.host), age)
