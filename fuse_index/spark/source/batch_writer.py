"""Writing a DataFrame into a table: tasks write blocks with all their sidecars, one commit makes them visible.

The writer is made, used and ended in different processes. A task hands over small descriptions of what it wrote, and
Spark passes on only those of the attempts that it accepted: what a failed, retried or speculative attempt wrote is
named nowhere, and stays for vacuum to collect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from fuse_index.clustering.key import ClusterKey
from fuse_index.clustering.sorted_writer import write_sorted_runs
from fuse_index.indexes.builder import IndexBuilder, index_builders
from fuse_index.indexes.registry import Host
from fuse_index.spark import schemas
from fuse_index.spark.source.options import OptionError, TableLocation
from fuse_storage import AlreadyExists, NotFound, SchemaError, StagedSegment, StorageError, StoredTable


@dataclass(frozen=True)
class TaskCommitMessage(WriterCommitMessage):
    """What one task wrote: segments that nobody sees yet."""

    staged: tuple[StagedSegment, ...]


class BatchWriter(DataSourceArrowWriter):
    """``names``: the table's columns, in the order of the DataFrame's."""

    def __init__(
        self, table: StoredTable, builders: Sequence[IndexBuilder], names: Sequence[str], overwrite: bool
    ) -> None:
        self.table, self.builders, self.names, self.overwrite = table, tuple(builders), tuple(names), overwrite

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskCommitMessage:
        """In a task: cut blocks, build sidecars, all in one pass. A few blocks' worth of memory, however many rows.

        Where the clustering key is a curve, of which Spark knows nothing, rows are sorted in runs as a local append's
        are.
        """
        key = ClusterKey.from_snapshot(self.table.snapshot)
        writing = self.table.writer(self.builders)
        try:
            renamed = (batch.rename_columns(list(self.names)) for batch in iterator)
            write_sorted_runs(writing, renamed, None if key is None or key.method == "linear" else key)
            return TaskCommitMessage(tuple(writing.finish()))
        except BaseException:  # a cancelled task is stopped by an exception, too
            writing.abort()
            raise

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """One commit. Raises Conflict, CommitUnknown (which says how to ask later) and other StorageErrors."""
        staged = [segment for message in messages for segment in staged_segments(message)]
        transaction = self.table.transaction(self.builders)
        if self.overwrite:
            transaction.overwrite(staged)
        else:
            transaction.append(staged)
        transaction.commit("overwrite" if self.overwrite else "append")

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Nothing to undo, since nothing is visible; and nothing to delete: Spark aborts after a commit that got no
        answer, too, and that commit may have happened. Vacuum collects what no snapshot names.
        """


def staged_segments(message: WriterCommitMessage | None) -> tuple[StagedSegment, ...]:
    """What a task that Spark wants to commit wrote. Raises StorageError if it does not say."""
    if not isinstance(message, TaskCommitMessage):
        raise StorageError(
            f"Spark wants to commit, but the answer of a task is {message!r}: rows would be lost, "
            f"so nothing was committed"
        )
    return message.staged


def create_batch_writer(place: TableLocation, schema: StructType, overwrite: bool, host: Host) -> BatchWriter:
    """The writer for a DataFrame with this schema. Raises OptionError, SchemaError (naming the field), StorageError."""
    table, names = open_target(place, schema)
    return BatchWriter(table, index_builders(table.snapshot, host), names, overwrite)


def open_target(place: TableLocation, schema: StructType) -> tuple[StoredTable, list[str]]:
    """The table to be written to, made if there is none, and its columns in the order of a DataFrame with this
    schema.
    """
    if place.at is not None:
        raise OptionError("writing goes to the head of a branch: leave out the option 'at'")
    given = schemas.to_arrow_schema(schema)
    table = _open_or_create(place, given)
    names = _resolve_names(given, table)
    trial = table.writer()
    try:
        trial.write(pa.Table.from_batches([], given).rename_columns(names))
    finally:
        trial.abort()
    return table, names


def _open_or_create(place: TableLocation, given: pa.Schema) -> StoredTable:
    try:
        return place.open()
    except NotFound:
        if place.branch != "main":
            raise
    try:
        return StoredTable.create(place.url, schemas.all_nullable(given), options=dict(place.store_options))
    except AlreadyExists:  # someone else was faster
        return place.open()


def _resolve_names(given: pa.Schema, table: StoredTable) -> list[str]:
    """The table's name for each of the given columns: exactly, or else without case, as Spark itself resolves names."""
    schema, names = table.snapshot.schema, []
    for name in given.names:
        try:
            names.append(schema.find([name], case_sensitive=name in schema.names).name)
        except SchemaError as unknown:
            raise SchemaError(f"the DataFrame has a column {name!r} that does not fit: {unknown}") from unknown
    return names
