"""Rows that come to a table without a primary key: tasks write blocks, and few rows are a hot commit of them all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from fuse_index.after_commit import after_commit
from fuse_index.clustering.key import ClusterKey
from fuse_index.clustering.sorted_writer import write_sorted_runs
from fuse_index.hot.append import commit_hot
from fuse_index.indexes.builder import IndexBuilder, recorded_warnings
from fuse_index.indexes.registry import Host
from fuse_index.ingest.schema_merge import evolved_table
from fuse_index.operations.row_edits import stage_rows
from fuse_index.spark.source.task_rows import TaskRows, take_few
from fuse_storage import Conflict, SchemaChange, StagedSegment, StoredTable, changed_column_names


@dataclass(frozen=True)
class HeapWrite:
    """The ``RowWrite`` of a table without a primary key: an append or, with ``overwrite``, all rows anew.

    ``sort_key``: by which each task sorts its rows, as many at a time as an append; None leaves them as they come.
    ``hot_limit``: how many rows may be a hot commit; 0 for none. ``schema_change``: the step to the columns of the
    rows; it is of the same commit. ``problems``: sentences on indexes that cannot be built.
    """

    table: StoredTable
    host: Host
    builders: tuple[IndexBuilder, ...]
    sort_key: ClusterKey | None = None
    hot_limit: int = 0
    schema_change: SchemaChange | None = None
    overwrite: bool = False
    problems: tuple[str, ...] = ()

    def write(self, batches: Iterable[pa.RecordBatch]) -> TaskRows[StagedSegment]:
        """Write blocks and sidecars in one pass, in the memory of a few blocks, however many rows come."""
        evolved = evolved_table(self.table, self.schema_change)
        schema = evolved.snapshot.schema
        handed, rest = take_few(batches, self.table, self.hot_limit)
        if handed is not None:
            return TaskRows(schema, handed)
        with recorded_warnings() as texts, evolved.writer(self.builders) as writer:
            write_sorted_runs(writer, rest, self.sort_key)
            staged = tuple(writer.finish())
        return TaskRows(schema, staged=staged, warning_texts=tuple(texts))

    def commit(self, tasks: Sequence[TaskRows[StagedSegment]], application: tuple[str, int] | None = None) -> None:
        """Commit, hot if no task wrote and all that they handed over is few."""
        self._check_columns(tasks)
        handed = [pa.ipc.open_stream(task.handed).read_all() for task in tasks if task.handed is not None]
        staged = [segment for task in tasks for segment in task.staged]
        if handed and not staged and sum(map(len, handed)) <= self.hot_limit:
            commit_hot(self.table, self.host, pa.concat_tables(handed), application)
            return
        staged += stage_rows(self.table, self.builders, handed) if handed else []
        is_stream = application is not None
        transaction = self.table.transaction(self.builders)
        if staged and self.schema_change is not None:
            transaction.evolve_schema(self.schema_change)
        if self.overwrite:
            transaction.overwrite(staged, force=is_stream)
        else:
            transaction.append(staged)
        operation = "overwrite" if self.overwrite else "append"
        after = transaction.commit(operation, application=application, enter=is_stream)
        after_commit(after, (*self.problems, *(text for task in tasks for text in task.warning_texts)))

    def _check_columns(self, tasks: Sequence[TaskRows[StagedSegment]]) -> None:
        """Raise Conflict if columns that tasks wrote, or handed over by their names alone, are others by now."""
        known = self.table.snapshot.schemas
        coming = evolved_table(self.table, self.schema_change).snapshot.schema
        for task in tasks:
            changed = changed_column_names(task.schema, self.table.snapshot.schema) if task.handed is not None else ()
            if changed or (task.staged and known.get(task.schema.id) != task.schema and task.schema != coming):
                what = f"column {changed[0]!r} was" if changed else "columns were"
                raise Conflict(
                    f"{self.table.store.url}: {what} changed while the batch was written: start the query again"
                )
