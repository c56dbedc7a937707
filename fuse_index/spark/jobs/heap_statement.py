"""Statements on tables without a primary key: tasks write blocks, and rewrite those in which rows change."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

from pyspark.sql import DataFrame
from pyspark.sql.functions import col

import fuse_storage as storage
from fuse_index.after_commit import after_commit
from fuse_index.clustering.key import ClusterKey
from fuse_index.hot.append import hot_row_limit
from fuse_index.indexes.builder import index_builders
from fuse_index.operations.dml_job import DmlJob
from fuse_index.operations.row_edits import RowCondition
from fuse_index.predicate import Predicate
from fuse_index.spark.answers import Sealed
from fuse_index.spark.jobs.changed_rows import stage_changed_rows
from fuse_index.spark.jobs.dml import overwrite_rows, run_dml_job, stage_in_tasks, write_in_tasks
from fuse_index.spark.jobs.partitions import partition_condition
from fuse_index.spark.jobs.statement import Statement
from fuse_index.spark.native.java_compiler import jvm_bridge
from fuse_index.spark.native.relation import quote_path
from fuse_index.spark.placement import is_on_driver
from fuse_index.spark.source.heap_write import HeapWrite
from fuse_storage import Conflict, PartitionSpec, StoredTable, TableUrl


class HeapStatement(Statement):
    """A statement on a table without a primary key."""

    def append(self) -> None:
        """Add rows: by a hot commit if the table allows it for so few."""
        stored, host = self.table.stored, self.table.host
        write = HeapWrite(
            stored,
            host,
            index_builders(stored.snapshot, host),
            ClusterKey.from_snapshot(self.evolved.snapshot),
            hot_row_limit(stored.snapshot, None) if self.step is None else 0,
            self.step,
        )
        tasks = write_in_tasks(write, self._rows_to_add())
        write.commit(tasks)

    def insert_unmatched(self) -> None:
        """Add rows that the table lacks: unlike an append, this has read the table."""
        job = self._start("merge", self.condition)
        staged = stage_in_tasks(
            Sealed(replace(job, condition=RowCondition(None, job.condition.engine))), self._rows_to_add()
        )
        for segments in staged:
            job.add_staged(segments.open())
        while job.commit([]):
            pass
        after_commit(job.table, ())

    def overwrite(self) -> None:
        """Replace rows by others."""
        overwrite_rows(self.spark, lambda: self._start_overwrite(self.condition), self._rows_to_add(), self.task_count)

    def overwrite_partitions(self) -> None:
        """Replace the partitions that rows come for; all rows, in a table that has none."""
        spec = PartitionSpec.from_snapshot(self.table.snapshot)
        if spec is None:
            return self.overwrite()
        staged = stage_in_tasks(Sealed(self._start("overwrite", None)), self._rows_to_add())
        segments = list(chain.from_iterable(each.open() for each in staged))
        if segments:
            found = storage.staged_partitions(self.table.stored.store, segments, spec)
            job = self._start_overwrite(partition_condition(spec, found))
            job.add_staged(segments)
            run_dml_job(self.spark, lambda: job, self.task_count)

    def delete(self) -> None:
        """Delete the rows of the condition, which is evaluable here."""
        run_dml_job(self.spark, lambda: self.table.deleting(self.condition), self.task_count)

    def change_rows(self, operation: str) -> None:
        """Put the rows that change into the place of those that they were, wherever these lie by the commit."""
        job, rows = self._start(operation, self.condition), self.dataframe()
        while True:
            read = job.table
            outcomes = stage_changed_rows(Sealed(job), rows, self.task_count)
            if not job.commit(outcomes):
                break
            rows = self._moved_rows(rows, read, job.table)
        after_commit(job.table, ())

    def _start(self, operation: str, condition: Predicate | None) -> DmlJob:
        return replace(self.table.changing(operation, condition), schema_change=self.step)

    def _start_overwrite(self, condition: Predicate | None) -> DmlJob:
        return replace(self.table.overwriting(condition), schema_change=self.step)

    def _moved_rows(self, rows: DataFrame, read: StoredTable, head: StoredTable) -> DataFrame:
        """Ask the query of a later state, in which the rows that it is about lie elsewhere."""
        files, url = self.planner.register_state(head), head.store.url
        moved = jvm_bridge(self.spark).movedRows(rows._jdf, url, read.snapshot.id, head.snapshot.id, files)
        if moved is None:
            raise Conflict(
                "the rows of " + TableUrl(url) + " were moved while this statement ran: run it again", head.snapshot.id
            )
        return DataFrame(moved, self.spark)

    def _rows_to_add(self) -> DataFrame:
        """The rows, in one task where Spark knows that they fit into one block and they are not here already."""
        rows = self.dataframe()
        if is_on_driver(rows):
            return rows
        spec = PartitionSpec.from_snapshot(self.table.snapshot)
        most = rows._jdf.queryExecution().optimizedPlan().maxRows()
        if most.isDefined() and most.get() <= self.table.snapshot.properties.get("block_rows", 1_000_000):
            return rows.coalesce(1)
        if spec is not None:  # each partition into few tasks, though a large one into several
            return rows.hint("rebalance", *(col(quote_path([name])) for name in spec.names))
        return rows
