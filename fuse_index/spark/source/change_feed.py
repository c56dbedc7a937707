"""What a table's commits add and change, as Spark's tasks read it: cut into pieces, with or without telling of
changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from fuse_index.changes.changes import Changes
from fuse_index.changes.follow import Step
from fuse_index.changes.row_diff import CHANGE_TYPE, INSERT
from fuse_index.indexes.registry import Host
from fuse_index.predicate import Context, Predicate
from fuse_index.pruning.planner import plan, unvoted
from fuse_index.query.scan import Scan
from fuse_index.spark.source.partitions import TASK_ROWS, cut
from fuse_storage import SchemaError, Table

BATCH_ROWS = 65_536
"""At most so many rows are handed to Spark at once."""

TOLD = pa.schema(
    [
        pa.field(CHANGE_TYPE, pa.string(), nullable=False),
        pa.field("_commit_version", pa.int64(), nullable=False),
        pa.field("_commit_timestamp", pa.timestamp("us", "UTC"), nullable=False),
    ]
)
"""What is told of a change besides its row: its kind, and the commit that made it, by its number and time."""


@dataclass(frozen=True)
class Asked:
    """What is asked of a table's commits: columns of ``shape``, and where ``telling``, those of ``TOLD``.

    ``key``: None for that which the table had at each commit, so that a commit is told alike whenever it is read.
    """

    shape: Table
    schema: pa.Schema
    key: tuple[str, ...] | None
    where: Predicate | None
    host: Host
    context: Context
    telling: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of the table."""
        return tuple(name for name in self.schema.names if not (self.telling and name in TOLD.names))

    def pieces(self, steps: Iterable[Step]) -> list[InputPartition]:
        """The tasks that read these commits, in order; none needs the table any more to know what to read.

        Small ones share a task, so that a reader that was away for long does not come back with a task for each commit.
        """
        groups: list[list[Part]] = []
        room = 0
        for part in (part for step in steps for part in self._parts(step)):
            if part.rows > room or not groups:
                groups.append([])
                room = TASK_ROWS
            groups[-1].append(part)
            room -= part.rows
        return [Piece(tuple(group)) for group in groups]

    def _parts(self, step: Step) -> Iterator[Part]:
        stamp = (step.after.snapshot.sequence, step.after.snapshot.timestamp)
        if step.changed:
            assert step.before is not None
            found = Changes(
                step.before, step.after, self.shape, self.columns, self._key(step), self.where, self.host, self.context
            )
            yield Part(found.checked(), int(step.sizes.sum()), *stamp)
            return
        if step.before is None and self.where is not None and step.after.snapshot.schema == self.shape.snapshot.schema:
            made = plan(step.after, self.where, self.host, self.context)
            made = made.take(np.flatnonzero(np.isin(made.blocks.ordinals, step.came.ordinals)))
        else:
            made = unvoted(self.shape, self.where, self.context, step.came)
        for part in cut(made):
            yield Part(Scan(part, self.columns, self.host.functions), int(part.blocks.zone_rows.sum()), *stamp)

    def _key(self, step: Step) -> tuple[str, ...]:
        if self.key is not None:
            return self.key
        names, ids = {field.id: field.name for field in self.shape.snapshot.schema.fields}, step.after.snapshot.key_ids
        return tuple(names[id] for id in ids) if names.keys() >= set(ids) else ()

    def read(self, piece: Piece) -> Iterator[pa.RecordBatch]:
        """The rows of a task, in the types and order that Spark was promised."""
        for part in piece.value:
            told = (
                {CHANGE_TYPE: INSERT, "_commit_version": part.number, "_commit_timestamp": part.time}
                if self.telling
                else {}
            )
            for batch in part.value.to_batches():
                rows = pa.Table.from_batches([batch])
                for name, value in told.items():
                    if name not in rows.column_names:
                        rows = rows.append_column(name, pa.repeat(pa.scalar(value, TOLD.field(name).type), len(rows)))
                yield from rows.select(self.schema.names).cast(self.schema).to_batches(BATCH_ROWS)


@dataclass(frozen=True)
class Part:
    """Rows that came with a commit, or a comparison of what it replaced; and the commit's number and time."""

    value: Scan | Changes
    rows: int
    number: int
    time: datetime


class Piece(InputPartition):
    """What one task reads."""

    value: tuple[Part, ...]


class ChangesReader(DataSourceReader):
    """The net changes between two snapshots, as a batch."""

    def __init__(self, asked: Asked, step: Step) -> None:
        self.asked, self.step = asked, step

    def partitions(self) -> list[InputPartition]:
        """Rows that only came are read by many tasks; where rows went, one task compares."""
        return self.asked.pieces([self.step])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, Piece):
            yield from self.asked.read(partition)


def telling(schema: pa.Schema) -> pa.Schema:
    """These columns and those of ``TOLD``. Raises SchemaError where a name is taken."""
    for name in TOLD.names:
        if name in schema.names:
            raise SchemaError(
                f"the table has a column {name!r}, which is what changes are told by: rename it, "
                f"or leave it out of columns"
            )
    return pa.schema([*(field.with_nullable(True) for field in schema), *TOLD])
