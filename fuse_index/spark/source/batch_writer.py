"""Writing a DataFrame into a table: tasks write blocks with all their sidecars, one commit makes them visible.

The writer is made, used and ended in different processes. A task hands over small descriptions of what it wrote, and
Spark passes on only those of the attempts that it accepted: what a failed, retried or speculative attempt wrote is
named nowhere, and stays for vacuum to collect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from fuse_index.indexes.registry import Host
from fuse_index.spark.source.task_rows import RowWrite, TaskRows
from fuse_index.spark.source.write_target import HeapTarget, KeyedTarget
from fuse_index.spark.workers import ExplainedInWorkers, told_without_frames
from fuse_storage import StorageError


@dataclass(frozen=True)
class TaskCommitMessage(WriterCommitMessage):
    """What one task wrote or hands over; of a stream, the id of its query, too."""

    rows: TaskRows[Any]
    query_id: str = ""


class BatchWriter(ExplainedInWorkers, DataSourceArrowWriter):
    """Writes a DataFrame in tasks."""

    def __init__(self, target: HeapTarget | KeyedTarget, host: Host, overwrite: bool) -> None:
        self.names = target.names
        self.rows: RowWrite[Any] = target.start(target.table, host, overwrite, is_stream=False)

    @told_without_frames()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskCommitMessage:
        """In a task: write its rows. Raises as ``RowWrite.write``."""
        return TaskCommitMessage(self.rows.write(batch.rename_columns(list(self.names)) for batch in iterator))

    @told_without_frames()
    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit what all tasks wrote. Raises as ``RowWrite.commit``."""
        self.rows.commit([message.rows for message in checked_messages(messages)])

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Do nothing: there is nothing to undo, since nothing is visible.

        Nor is anything deleted: Spark aborts after a commit that got no answer, too, and that commit may have happened.
        Vacuum collects what no snapshot names.
        """


def checked_messages(messages: Sequence[WriterCommitMessage | None]) -> list[TaskCommitMessage]:
    """The messages of the tasks that Spark wants to commit. Raises StorageError if one is none of ours."""
    checked = []
    for message in messages:
        if not isinstance(message, TaskCommitMessage):
            raise StorageError(
                f"Spark wants to commit, but the answer of a task is {message!r}: rows would be lost, "
                f"so nothing was committed"
            )
        checked.append(message)
    return checked
