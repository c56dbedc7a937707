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
from fuse_index.clustering.sorted_writer import write_runs
from fuse_index.indexes.builder import Builder, builders
from fuse_index.indexes.registry import Host
from fuse_index.spark import schemas
from fuse_index.spark.source.options import OptionError, Place
from fuse_storage import AlreadyExists, NotFound, SchemaError, StagedSegment, StorageError, Table


@dataclass(frozen=True)
class Written(WriterCommitMessage):
    """What one task wrote: segments that nobody sees yet."""

    staged: tuple[StagedSegment, ...]


class Writer(DataSourceArrowWriter):
    """``names``: the table's columns, in the order of the DataFrame's."""

    def __init__(self, table: Table, builders: Sequence[Builder], names: Sequence[str], overwrite: bool) -> None:
        self.table, self.builders, self.names, self.overwrite = table, tuple(builders), tuple(names), overwrite

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """In a task: cut blocks, build sidecars, all in one pass. A few blocks' worth of memory, however many rows.

        Where the clustering key is a curve, of which Spark knows nothing, rows are sorted in runs as a local append's
        are.
        """
        key = ClusterKey.of(self.table.snapshot)
        writing = self.table.writer(self.builders)
        try:
            renamed = (batch.rename_columns(list(self.names)) for batch in iterator)
            write_runs(writing, renamed, None if key is None or key.method == "linear" else key)
            return Written(tuple(writing.finish()))
        except BaseException:  # a cancelled task is stopped by an exception, too
            writing.abort()
            raise

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """One commit. Raises Conflict, CommitUnknown (which says how to ask later) and other StorageErrors."""
        staged = [segment for message in messages for segment in accepted(message)]
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


def accepted(message: WriterCommitMessage | None) -> tuple[StagedSegment, ...]:
    """What a task that Spark wants to commit wrote. Raises StorageError if it does not say."""
    if not isinstance(message, Written):
        raise StorageError(
            f"Spark wants to commit, but the answer of a task is {message!r}: rows would be lost, "
            f"so nothing was committed"
        )
    return message.staged


def writer(place: Place, schema: StructType, overwrite: bool, host: Host) -> Writer:
    """The writer for a DataFrame with this schema. Raises OptionError, SchemaError (naming the field), StorageError."""
    table, names = target(place, schema)
    return Writer(table, builders(table.snapshot, host), names, overwrite)


def target(place: Place, schema: StructType) -> tuple[Table, list[str]]:
    """The table to be written to, made if there is none, and its columns in the order of a DataFrame with this
    schema.
    """
    if place.at is not None:
        raise OptionError("writing goes to the head of a branch: leave out the option 'at'")
    given = schemas.to_arrow(schema)
    table = _opened(place, given)
    names = _names(given, table)
    trial = table.writer()
    try:
        trial.write(pa.Table.from_batches([], given).rename_columns(names))
    finally:
        trial.abort()
    return table, names


def _opened(place: Place, given: pa.Schema) -> Table:
    try:
        return place.open()
    except NotFound:
        if place.branch != "main":
            raise
    try:
        return Table.create(place.url, schemas.all_nullable(given), options=dict(place.store))
    except AlreadyExists:  # someone else was faster
        return place.open()


def _names(given: pa.Schema, table: Table) -> list[str]:
    """The table's name for each of the given columns: exactly, or else without case, as Spark itself resolves names."""
    schema, names = table.snapshot.schema, []
    for name in given.names:
        try:
            names.append(schema.find([name], case_sensitive=name in schema.names).name)
        except SchemaError as unknown:
            raise SchemaError(f"the DataFrame has a column {name!r} that does not fit: {unknown}") from unknown
    return names
