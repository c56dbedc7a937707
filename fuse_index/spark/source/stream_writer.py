"""``writeStream.format("fuse")``: each micro-batch is one commit, made once, whoever is killed and whenever.

A query keeps its id over restarts from one checkpoint, and numbers its batches; the table keeps, for each application,
the last version that it committed. So a batch that was committed before Spark noted it down, and comes again, is known
and not committed twice. What it wrote again is named nowhere, and stays for vacuum to collect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSourceArrowWriter, DataSourceStreamWriter, WriterCommitMessage

from fuse_index.errors import StreamError
from fuse_index.indexes.registry import Host
from fuse_index.spark.source.batch_writer import TaskCommitMessage, checked_messages
from fuse_index.spark.source.task_rows import RowWrite
from fuse_index.spark.source.write_target import HeapTarget, KeyedTarget
from fuse_index.spark.workers import ExplainedInWorkers, told_without_frames
from fuse_storage import StorageError, StoredTable

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter as DataSourceStreamArrowWriter
except ImportError:  # before 4.1 any writer that is one of Arrow batches gets them

    class DataSourceStreamArrowWriter(DataSourceStreamWriter, DataSourceArrowWriter):  # type: ignore[no-redef, misc]
        pass


QUERY_ID_PROPERTY = "sql.streaming.queryId"
"""The property of a task that holds the id of its query: the same after a restart from the same checkpoint."""


class StreamWriter(ExplainedInWorkers, DataSourceStreamArrowWriter):
    """Writes micro-batches. ``complete``: all rows anew.

    Columns that somebody adds meanwhile are NULL, or their default, in the rows that come.
    """

    def __init__(self, target: HeapTarget | KeyedTarget, host: Host, complete: bool) -> None:
        self.target, self.host, self.complete = target, host, complete

    @told_without_frames()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskCommitMessage:
        """In a task: write its rows, with the columns and the indexes that the table has by now."""
        query_id = query_id_of_task()
        batches = (batch.rename_columns(list(self.target.names)) for batch in iterator)
        return TaskCommitMessage(self._start(self.target.table.refresh()).write(batches), query_id)

    @told_without_frames()
    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Commit a batch, unless it was committed before. Raises as ``RowWrite.commit``, and StreamError.

        The first batch is committed even without rows, so that the table knows the query from then on: a table that
        does not know it later is another one, which lacks the rows of all batches before.
        """
        if not (found := checked_messages(messages)):
            return
        application, table = open_known_table(self.target.table, {message.query_id for message in found}, batchId)
        self._start(table).commit([message.rows for message in found], (application, batchId))

    def _start(self, table: StoredTable) -> RowWrite[Any]:
        return self.target.start(table, self.host, self.complete, is_stream=True)

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
