"""``readStream.format("fuse")``: first the rows that are there, then what each commit adds, every row once.

The reader lives in a Python process of the driver as long as the query runs; tasks get pieces that need nothing of it.
What is read between two offsets never changes, so a query that was killed reads the same again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from fuse_index.changes.follow import Follower, Limit, Position
from fuse_index.spark.source.change_feed import Asked, Piece
from fuse_storage import Table

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


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are positions of ``following``. ``since``: the snapshot, tag or time after which the first run begins."""

    def __init__(self, asked: Asked, follower: Follower, limit: Limit, since: str | None) -> None:
        self.asked, self.follower, self.limit, self.since = asked, follower, limit, since
        self.begun: Position | None = None
        self.position: Position | None = None
        self.newest: int | None = None

    def initialOffset(self) -> dict[str, Any]:
        return self._begin().to_json()

    def _begin(self) -> Position:
        """Where the first run of a query begins: the same whenever it is asked, since Spark before 4.2 asks late."""
        if self.begun is None:
            shape = self.asked.shape
            self.begun = self.follower.begin(
                Table.open(shape.store, branch=shape.branch, at=self.since) if self.since else None
            )
        return self.begun

    def getDefaultReadLimit(self) -> ReadLimit:
        """Spark hands it back in ``latestOffset``, or another, if the trigger is to read all."""
        if self.limit.blocks is not None:
            return ReadMaxFiles(self.limit.blocks)
        return ReadAllAvailable() if self.limit.rows is None else ReadMaxRows(self.limit.rows)

    def latestOffset(self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None) -> dict[str, Any]:
        """Raises StreamError for what cannot be gone past.

        Spark before 4.2 gives neither argument. It asks on from what it was told last; after a restart, from what
        ``partitions`` was told first; and of a query's first run before anything else.
        """
        position = Position.from_json(start) if start is not None else self.position or self._begin()
        newest = self.follower.head() if self.newest is None else self.newest
        bounded = Limit() if isinstance(limit, ReadAllAvailable) else self.limit
        self.position = self.follower.latest(position, bounded, max(newest, position.sequence))
        return self.position.to_json()

    def prepareForTriggerAvailableNow(self) -> None:
        self.newest = self.follower.head()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Also how Spark before 4.2 tells a reader where its query was when it was stopped: nothing, from there to
        there.
        """
        self.position = Position.from_json(end)
        steps = self.follower.between(Position.from_json(start), self.position) if start != end else ()
        return self.asked.pieces(steps)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, Piece):
            yield from self.asked.read(partition)
