"""Writing a DataFrame, or micro-batches, into a table with a primary key: each is one hot commit that puts its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from fuse_index.errors import InputError
from fuse_index.indexes.registry import Host
from fuse_index.spark.source.batch_writer import WriteTarget
from fuse_index.spark.source.keyed_rows import TaskPuts, commit_keyed, has_changes, stage_keyed
from fuse_index.spark.source.stream_writer import DataSourceStreamArrowWriter, open_known_table, query_id_of_task
from fuse_index.spark.workers import ExplainedInWorkers
from fuse_storage import StorageError


@dataclass(frozen=True)
class KeyedCommitMessage(WriterCommitMessage):
    """What one task wrote or hands over; of a stream, the id of its query, too."""

    puts: TaskPuts
    query_id: str = ""


class KeyedBatchWriter(ExplainedInWorkers, DataSourceArrowWriter):
    """Puts the rows of a DataFrame, or does what they say by ``_change_type``."""

    def __init__(self, target: WriteTarget, host: Host) -> None:
        self.table, self.names, self.host = target.table, target.names, host
        self.changes = has_changes(target.names, target.table.snapshot)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> KeyedCommitMessage:
        """In a task: hand few rows over, or write hot blocks of them."""
        renamed = (batch.rename_columns(list(self.names)) for batch in iterator)
        return KeyedCommitMessage(stage_keyed(renamed, self.table, self.changes))

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit what all tasks have. Raises InputError for a key that several have, and as ``Table.upsert``."""
        commit_keyed(self.table.refresh(), self.host, [message.puts for message in _keyed(messages)])

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Do nothing, for the reasons that ``BatchWriter.abort`` gives."""


class KeyedStreamWriter(ExplainedInWorkers, DataSourceStreamArrowWriter):
    """Puts the rows of micro-batches, each once."""

    def __init__(self, target: WriteTarget, host: Host) -> None:
        self.table, self.names, self.host = target.table, target.names, host
        self.changes = has_changes(target.names, target.table.snapshot)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> KeyedCommitMessage:
        """In a task: as in a batch, in the columns that the table has by now."""
        query_id = query_id_of_task()
        renamed = (batch.rename_columns(list(self.names)) for batch in iterator)
        return KeyedCommitMessage(stage_keyed(renamed, self.table.refresh(), self.changes), query_id)

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Commit a batch, unless it was committed before. Raises as ``StreamWriter.commit``, and in a batch."""
        found = _keyed(messages)
        if not found:
            return
        application, table = open_known_table(self.table, {message.query_id for message in found}, batchId)
        if commit_keyed(table, self.host, [message.puts for message in found], (application, batchId)) is None:
            table.transaction().commit("upsert", application=(application, batchId), enter=True)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:
        """Do nothing, for the reasons that ``BatchWriter.abort`` gives."""


def check_puts(overwrite: bool, merge_schema: bool, hot: bool | None) -> None:
    """Raise InputError for a way to write that a table with a primary key does not have."""
    if overwrite:
        raise InputError(
            "a table with a primary key is not overwritten by Spark's writers: append, which puts rows by their keys, "
            "and delete those that are to go"
        )
    if merge_schema or hot is False:
        raise InputError(
            "rows of a table with a primary key are put by hot commits: no hot=false, and no mergeSchema (add columns "
            "by ALTER TABLE … ADD COLUMNS or Table.add_column)"
        )


def _keyed(messages: Sequence[WriterCommitMessage | None]) -> list[KeyedCommitMessage]:
    """The answers of tasks. Raises StorageError if one is none."""
    if odd := [message for message in messages if not isinstance(message, KeyedCommitMessage)]:
        raise StorageError(
            f"Spark wants to commit, but the answer of a task is {odd[0]!r}: rows would be lost, so nothing was "
            f"committed"
        )
    return [message for message in messages if isinstance(message, KeyedCommitMessage)]
