"""``writeStream.format("fuse")``: each micro-batch is one commit, made once, whoever is killed and whenever.

A query keeps its id over restarts from one checkpoint, and numbers its batches; the table keeps, for each application,
the last version that it committed. So a batch that was committed before Spark noted it down, and comes again, is known
and not committed twice. What it wrote again is named nowhere, and stays for vacuum to collect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage

from fuse_index.after_commit import after_commit
from fuse_index.errors import StreamError
from fuse_index.indexes.builder import index_builders, recorded_warnings, unavailable_indexes
from fuse_index.indexes.registry import Host
from fuse_index.ingest.schema_merge import evolved_table
from fuse_index.spark.source.batch_writer import (
    TaskCommitMessage,
    WriteTarget,
    handed_rows,
    staged_segments,
    warnings_of,
)
from fuse_index.spark.source.hot_rows import commit_few, stage_handed, take_few
from fuse_index.spark.workers import ExplainedInWorkers
from fuse_storage import Conflict, Schema, SchemaChange, StorageError, StoredTable, changed_column_names

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter as DataSourceStreamArrowWriter
except ImportError:  # before 4.1 any writer that is one of Arrow batches gets them

    class DataSourceStreamArrowWriter(DataSourceStreamWriter, DataSourceArrowWriter):  # type: ignore[no-redef, misc]
        pass


QUERY_ID_PROPERTY = "sql.streaming.queryId"
"""The property of a task that holds the id of its query: the same after a restart from the same checkpoint."""


@dataclass(frozen=True)
class StreamCommitMessage(TaskCommitMessage):
    """The segments that one task wrote, in columns of this schema, and the id of its query."""

    query_id: str
    schema: Schema


class StreamWriter(ExplainedInWorkers, DataSourceStreamArrowWriter):
    """Writes micro-batches. ``complete``: all rows anew.

    Columns that somebody adds meanwhile are NULL, or their default, in the rows that come.
    """

    def __init__(self, target: WriteTarget, host: Host, complete: bool) -> None:
        self.target, self.table, self.names = target, target.table, target.names
        self.host, self.complete = host, complete

    def write(self, iterator: Iterator[pa.RecordBatch]) -> StreamCommitMessage:
        """In a task: write blocks and sidecars, with the indexes that the table has by now."""
        query_id, table = query_id_of_task(), self.table.refresh()
        problems, builders = unavailable_indexes(table.snapshot, self.host), index_builders(table.snapshot, self.host)
        evolved = evolved_table(table, self.target.schema_change(table))
        renamed = (batch.rename_columns(list(self.names)) for batch in iterator)
        limit = 0 if self.complete else self.target.hot_row_limit(table)
        handed, rest = take_few(renamed, table, limit)
        if handed is not None:
            return StreamCommitMessage((), query_id, evolved.snapshot.schema, handed=(handed,))
        with recorded_warnings() as texts, evolved.writer(builders) as writer:
            for batch in rest:
                writer.write(batch)
            staged = tuple(writer.finish())
        return StreamCommitMessage(staged, query_id, evolved.snapshot.schema, warning_texts=(*problems, *texts))

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Commit a batch, unless it was committed before. Raises Conflict, CommitUnknown, StorageError, StreamError.

        The first batch is committed even without rows, so that the table knows the query from then on: a table that
        does not know it later is another one, which lacks the rows of all batches before.
        """
        staged = [segment for message in messages for segment in staged_segments(message)]
        query_ids = {message.query_id for message in messages if isinstance(message, StreamCommitMessage)}
        if not query_ids:
            return
        application, table = open_known_table(self.table, query_ids, batchId)
        handed, limit = handed_rows(messages), self.target.hot_row_limit(table)
        _check_handed(table, messages)
        if handed and not staged and commit_few(table, self.host, handed, limit, (application, batchId)) is not None:
            return
        builders = index_builders(table.snapshot, self.host)
        staged += stage_handed(table, builders, handed)
        transaction = table.transaction(builders)
        if staged and (step := self._schema_change(table, messages)) is not None:
            transaction.evolve_schema(step)
        if self.complete:
            transaction.overwrite(staged, force=True)
        else:
            transaction.append(staged)
        operation = "overwrite" if self.complete else "append"
        after = transaction.commit(operation, application=(application, batchId), enter=True)
        after_commit(after, warnings_of(messages))

    def _schema_change(self, table: StoredTable, messages: Sequence[WriterCommitMessage | None]) -> SchemaChange | None:
        """The step to the columns that tasks wrote; None if the table has them. Raises Conflict if it has others."""
        known, step = table.snapshot.schemas, self.target.schema_change(table)
        coming = evolved_table(table, step).snapshot.schema
        for written in (message.schema for message in messages if isinstance(message, StreamCommitMessage)):
            if known.get(written.id) != written and coming != written:
                raise Conflict(
                    f"{table.store.url}: columns were changed while the batch was written: start the query again"
                )
        return step

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing, for the reasons that ``BatchWriter.abort`` gives."""


def query_id_of_task() -> str:
    """The id of the query that this task is of. Raises StorageError where Spark does not say it."""
    context = TaskContext.get()
    query_id = context.getLocalProperty(QUERY_ID_PROPERTY) if context is not None else None
    if query_id is None:
        raise StorageError(
            "Spark does not say which query this task is of: a batch could be committed twice, so none is written"
        )
    return str(query_id)


def open_known_table(planned: StoredTable, query_ids: Set[str], batch: int) -> tuple[str, StoredTable]:
    """What the table calls the query of a batch, and the table as it is now. Raises StorageError.

    And StreamError for a table that lacks the batches before.
    """
    if len(query_ids) > 1:
        raise StorageError(
            f"the tasks of batch {batch} are of several queries, {sorted(query_ids)}: nothing was committed"
        )
    application = f"spark-query-{next(iter(query_ids))}"
    table = StoredTable.open(planned.store, branch=planned.branch)  # perhaps another by now
    if batch > 0 and application not in table.snapshot.applications:
        raise StreamError(
            f"{table.store.url} knows no batch of this query, whose checkpoint says that it has written {batch}: "
            f"the table was dropped and made anew, or restored to before. Nothing was committed; start the query "
            f"with another checkpoint to write all rows again, or bring the former table back"
        )
    return application, table


def _check_handed(table: StoredTable, messages: Sequence[WriterCommitMessage | None]) -> None:
    """Raise Conflict if a column of rows that were handed over is another by now: they have no ids, but names alone."""
    handing = [message for message in messages if isinstance(message, StreamCommitMessage) and message.handed]
    for message in handing:
        if changed := changed_column_names(message.schema, table.snapshot.schema):
            raise Conflict(
                f"{table.store.url}: column {changed[0]!r} was changed while the batch was written: start the query "
                f"again"
            )
