"""The rows that a table's commits add and change, cut into tasks of Spark, with or without change columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition

from fuse_index.changes.changes import Changes
from fuse_index.changes.columns import CHANGE_COLUMNS, CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION, INSERT
from fuse_index.changes.follow import CommitStep
from fuse_index.indexes.engine import Engine
from fuse_index.predicate import Predicate
from fuse_index.pruning.planner import ScanPlan, full_scan_plan, plan_scan
from fuse_index.query.scan import Scan
from fuse_index.spark.schemas import as_spark_has_it
from fuse_index.spark.source.partitions import ROWS_PER_TASK, split_plan
from fuse_index.spark.workers import ExplainedInWorkers
from fuse_storage import BlockFrame, SchemaError, StoredTable

SPARK_BATCH_ROWS = 65_536
"""The largest number of rows that is handed to Spark at once."""


@dataclass(frozen=True)
class ChangeQuery:
    """A query of a table's commits: columns of ``schema_table``, and with ``include_change_columns`` CHANGE_COLUMNS.

    ``key``: None for that which the table had at each commit, so that a commit gives the same rows whenever it is read.
    ``preimages``: as for ``Table.changes``.
    """

    schema_table: StoredTable
    schema: pa.Schema
    key: tuple[str, ...] | None
    where: Predicate | None
    engine: Engine
    include_change_columns: bool
    preimages: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that are the table's own."""
        return tuple(
            name for name in self.schema.names if not (self.include_change_columns and name in CHANGE_COLUMNS.names)
        )

    def plan_tasks(self, steps: Iterable[CommitStep]) -> list[InputPartition]:
        """The tasks that read these commits, in order; none needs the table any more to know what to read.

        Small ones share a task, so that a reader that was away for long does not come back with a task for each commit.
        """
        groups: list[list[CommitRows]] = []
        free_rows = 0
        for part in (part for step in steps for part in self._commit_rows(step)):
            if part.row_count > free_rows or not groups:
                groups.append([])
                free_rows = ROWS_PER_TASK
            groups[-1].append(part)
            free_rows -= part.row_count
        return [ChangeTask(tuple(group)) for group in groups]

    def _commit_rows(self, step: CommitStep) -> Iterator[CommitRows]:
        number_and_time = (step.after.snapshot.version, step.after.snapshot.timestamp)
        if (changes := self.changes_of(step)) is not None:
            yield CommitRows(changes.validate(), int(step.row_counts.sum()), *number_and_time)
            return
        for part in split_plan(self.plan_of(step)):
            yield CommitRows(
                Scan(part, self.columns, self.engine.functions), int(part.blocks.zone_rows.sum()), *number_and_time
            )

    def changes_of(self, step: CommitStep) -> Changes | None:
        """What is compared for a commit that may have taken rows; None of one whose blocks are read as they came."""
        if not step.may_remove_rows and (self.preimages or step.before is None):
            return None
        assert step.before is not None
        return Changes(
            step.before,
            step.after,
            self.schema_table,
            self.columns,
            self._key_at(step),
            self.where,
            self.engine,
            preimages=self.preimages,
        )

    def plan_of(self, step: CommitStep) -> ScanPlan[BlockFrame]:
        """The blocks that are read of those that came with a commit: indexes are asked about rows that are there."""
        snapshot = step.after.snapshot
        if step.before is not None or self.where is None or snapshot.schema != self.schema_table.snapshot.schema:
            return full_scan_plan(self.schema_table, self.where, self.engine.context, step.added_blocks)
        plan = plan_scan(step.after, self.where, self.engine)
        return plan.take(np.flatnonzero(np.isin(plan.blocks.ordinals, step.added_blocks.ordinals)))

    def _key_at(self, step: CommitStep) -> tuple[str, ...]:
        if self.key is not None:
            return self.key
        names = {field.id: field.name for field in self.schema_table.snapshot.schema.fields}
        key_ids = step.after.snapshot.key_ids
        return tuple(names[field_id] for field_id in key_ids) if names.keys() >= set(key_ids) else ()

    def read(self, task: ChangeTask) -> Iterator[pa.RecordBatch]:
        """The rows of a task, in the types and order that Spark was promised."""
        for part in task.value:
            change_values = (
                {
                    CHANGE_TYPE: INSERT,
                    COMMIT_VERSION: part.commit_version,
                    COMMIT_TIMESTAMP: part.commit_timestamp,
                }
                if self.include_change_columns
                else {}
            )
            for batch in part.source.to_batches():
                rows = pa.Table.from_batches([batch])
                for name, value in change_values.items():
                    if name not in rows.column_names:
                        rows = rows.append_column(
                            name, pa.repeat(pa.scalar(value, CHANGE_COLUMNS.field(name).type), len(rows))
                        )
                told = as_spark_has_it(rows.select(self.schema.names).cast(self.schema))
                yield from told.to_batches(SPARK_BATCH_ROWS)


@dataclass(frozen=True)
class CommitRows:
    """A scan of rows that came with a commit, or a comparison of those that it replaced; and its number and time."""

    source: Scan | Changes
    row_count: int
    commit_version: int
    commit_timestamp: datetime


class ChangeTask(InputPartition):
    """The rows that one task reads."""

    value: tuple[CommitRows, ...]


class ChangesReader(ExplainedInWorkers, DataSourceReader):
    """The net changes between two snapshots, as a batch."""

    def __init__(self, query: ChangeQuery, step: CommitStep) -> None:
        self.query, self.step = query, step

    def partitions(self) -> list[InputPartition]:
        """The tasks: many that read rows which only came; where rows went, one that compares."""
        return self.query.plan_tasks([self.step])

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        if isinstance(partition, ChangeTask):
            yield from self.query.read(partition)


def with_change_columns(schema: pa.Schema) -> pa.Schema:
    """A schema with CHANGE_COLUMNS added to it. Raises SchemaError where a name is taken."""
    for name in CHANGE_COLUMNS.names:
        if name in schema.names:
            raise SchemaError(
                f"the table has a column {name!r}, which is what changes are told by: rename it, "
                f"or leave it out of columns"
            )
    return pa.schema([*(field.with_nullable(True) for field in schema), *CHANGE_COLUMNS])
