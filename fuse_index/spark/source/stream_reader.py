"""``readStream.format("fuse")``: first the rows that are there, then what each commit adds, every row once.

The reader lives in a Python process of the driver as long as the query runs; tasks get pieces that need nothing of it.
What is read between two offsets never changes, so a query that was killed reads the same again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from fuse_index.changes.follow import BatchLimit, CommitStep, StreamOffset, TableFollower
from fuse_index.spark.source.change_feed import ChangeQuery, ChangeTask
from fuse_index.spark.workers import ExplainedInWorkers, told_without_frames
from fuse_storage import CodedError, StoredTable

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxFiles,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:  # before 4.2 sources are told neither the limit nor the trigger

    class ReadAllAvailable:  # type: ignore[no-redef]
        pass

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        pass


class StreamReader(ExplainedInWorkers, DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads commits between offsets, which are StreamOffsets of ``fuse_index.changes.follow``.

    ``since``: the snapshot, tag or time after which the first run of a query begins.
    """

    def __init__(self, query: ChangeQuery, follower: TableFollower, limit: BatchLimit, since: str | None) -> None:
        self.query, self.follower, self.limit, self.since = query, follower, limit, since
        self.start_offset: StreamOffset | None = None
        self.last_offset: StreamOffset | None = None
        self.available_now_head: int | None = None

    @told_without_frames()
    def initialOffset(self) -> dict[str, Any]:
        return self._resolve_start().to_json()

    def _resolve_start(self) -> StreamOffset:
        """The offset at which the first run of a query begins, found once: Spark before 4.2 asks for it late."""
        if self.start_offset is None:
            table, since = self.query.schema_table, self.since
            self.start_offset = self.follower.initial_offset(
                None if since is None else StoredTable.open(table.store, branch=table.branch, at=since)
            )
        return self.start_offset

    def getDefaultReadLimit(self) -> ReadLimit:
        """The limit that Spark hands back to ``latestOffset``, unless the trigger is to read all."""
        if self.limit.blocks is not None:
            return ReadMaxFiles(self.limit.blocks)
        return ReadAllAvailable() if self.limit.rows is None else ReadMaxRows(self.limit.rows)

    @told_without_frames()
    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        """The offset up to which the next batch reads. Raises StreamError for commits that cannot be gone past.

        Spark before 4.2 gives neither argument. It asks on from what it was told last; after a restart, from what
        ``partitions`` was told first; and of a query's first run before anything else.
        """
        offset = StreamOffset.from_json(start) if start is not None else self.last_offset or self._resolve_start()
        head = self.follower.head_sequence() if self.available_now_head is None else self.available_now_head
        bounded = BatchLimit() if isinstance(limit, ReadAllAvailable) else self.limit
        self.last_offset = self.follower.latest_offset(offset, bounded, max(head, offset.sequence))
        return self.last_offset.to_json()

    @told_without_frames()
    def prepareForTriggerAvailableNow(self) -> None:
        self.available_now_head = self.follower.head_sequence()

    @told_without_frames()
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """The tasks between two offsets.

        Two equal ones are how Spark before 4.2 says, after a restart, where the query was when it was stopped.
        """
        self.last_offset = StreamOffset.from_json(end)
        steps = self.follower.steps_between(StreamOffset.from_json(start), self.last_offset) if start != end else ()
        return self.query.plan_tasks(steps)

    def first_batch(self) -> tuple[StreamOffset, StreamOffset, list[CommitStep]]:
        """From where to where the first batch of a query that begins now reads, and the commits in between.

        Raises StreamError.
        """
        start = self._resolve_start()
        end = StreamOffset.from_json(self.latestOffset(start.to_json()))
        return start, end, [] if start == end else list(self.follower.steps_between(start, end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with told_without_frames():
            if isinstance(partition, ChangeTask):
                yield from self.query.read(partition)


class RefusedStream(DataSourceStreamReader):
    """A stream that cannot begin: whoever asks it for anything is told the reason.

    Spark's worker stops the reader of a stream also where there is none, since making it failed, and tells of that.
    """

    def __init__(self, reason: CodedError) -> None:
        self.reason = reason

    def initialOffset(self) -> NoReturn:
        self._refuse()

    def latestOffset(self, *start_and_limit: Any) -> NoReturn:
        self._refuse()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> NoReturn:
        self._refuse()

    def read(self, partition: InputPartition) -> NoReturn:
        self._refuse()

    @told_without_frames()
    def _refuse(self) -> NoReturn:
        raise self.reason
