"""Writing a DataFrame into a table: tasks write blocks with all their sidecars, one commit makes them visible.

The writer is made, used and ended in different processes. A task hands over small descriptions of what it wrote, and
Spark passes on only those of the attempts that it accepted: what a failed, retried or speculative attempt wrote is
named nowhere, and stays for vacuum to collect.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage
from pyspark.sql.types import StructType

from fuse_index.after_commit import after_commit
from fuse_index.clustering.key import ClusterKey
from fuse_index.clustering.sorted_writer import write_sorted_runs
from fuse_index.export.keep_up import merge_columns
from fuse_index.hot.append import hot_row_limit
from fuse_index.indexes.builder import (
    IndexBuilder,
    index_builders,
    recorded_warnings,
    unavailable_indexes,
)
from fuse_index.indexes.registry import Host
from fuse_index.ingest.schema_merge import evolved_table
from fuse_index.spark import schemas
from fuse_index.spark.source.hot_rows import commit_few, stage_handed, take_few
from fuse_index.spark.source.keyed_rows import resolve_keyed_names
from fuse_index.spark.source.options import OptionError, TableLocation
from fuse_index.spark.workers import ExplainedInWorkers
from fuse_storage import (
    AlreadyExists,
    NotFound,
    SchemaChange,
    SchemaError,
    StagedSegment,
    StorageError,
    StoredTable,
    is_keyed,
)


@dataclass(frozen=True)
class TaskCommitMessage(WriterCommitMessage):
    """The segments that one task wrote, which nobody sees yet, and what stood in the way of indexes."""

    staged: tuple[StagedSegment, ...]
    warning_texts: tuple[str, ...] = field(default=(), kw_only=True)
    handed: tuple[bytes, ...] = field(default=(), kw_only=True)
    """The rows of a task that has few, which are in no segment yet."""


@dataclass(frozen=True)
class WriteTarget:
    """The table that a DataFrame is written to. ``names``: what each of its columns is called there.

    ``rows``: the DataFrame's schema under these names, if columns are to be made such that it fits; None if not.
    ``hot``: whether few rows are a hot commit; None for what the table says.
    """

    table: StoredTable
    names: tuple[str, ...]
    rows: pa.Schema | None = None
    hot: bool | None = None

    def hot_row_limit(self, table: StoredTable) -> int:
        """How many rows may be committed hot to the table as it is by now; 0 for none."""
        return 0 if self.rows is not None else hot_row_limit(table.snapshot, self.hot)

    def schema_change(self, table: StoredTable) -> SchemaChange | None:
        """The step that makes the columns fit, as the table is by now. Raises SchemaError, DefinitionError."""
        return None if self.rows is None else merge_columns(self.rows, table)


class BatchWriter(ExplainedInWorkers, DataSourceArrowWriter):
    """Writes a DataFrame in tasks. ``problems``: sentences on indexes that cannot be built."""

    def __init__(
        self, target: WriteTarget, builders: Sequence[IndexBuilder], overwrite: bool, problems: Sequence[str] = ()
    ) -> None:
        self.table, self.builders, self.names, self.overwrite = target.table, tuple(builders), target.names, overwrite
        self.schema_change, self.problems = target.schema_change(target.table), tuple(problems)
        self.hot_limit = 0 if overwrite else target.hot_row_limit(target.table)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskCommitMessage:
        """In a task: write blocks and sidecars in one pass, in the memory of a few blocks, however many rows come.

        Where the clustering key is a curve, of which Spark knows nothing, rows are sorted in runs, as in an append.
        """
        key = ClusterKey.from_snapshot(self.table.snapshot)
        writer = evolved_table(self.table, self.schema_change).writer(self.builders)
        try:
            renamed = (batch.rename_columns(list(self.names)) for batch in iterator)
            handed, rest = take_few(renamed, self.table, self.hot_limit)
            if handed is not None:
                writer.abort()
                return TaskCommitMessage((), handed=(handed,))
            with recorded_warnings() as texts:
                write_sorted_runs(writer, rest, None if key is None or key.method == "linear" else key)
                staged = tuple(writer.finish())
            return TaskCommitMessage(staged, warning_texts=tuple(texts))
        except BaseException:  # a cancelled task is stopped by an exception, too
            writer.abort()
            raise

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit what all tasks wrote. Raises Conflict, CommitUnknown (which says how to ask later), StorageError."""
        staged = [segment for message in messages for segment in staged_segments(message)]
        handed = handed_rows(messages)
        if handed and not staged and commit_few(self.table, Host.discover(), handed, self.hot_limit) is not None:
            return
        staged += stage_handed(self.table, self.builders, handed)
        transaction = self.table.transaction(self.builders)
        if self.schema_change is not None and staged:
            transaction.evolve_schema(self.schema_change)
        if self.overwrite:
            transaction.overwrite(staged)
        else:
            transaction.append(staged)
        after = transaction.commit("overwrite" if self.overwrite else "append")
        after_commit(after, (*self.problems, *warnings_of(messages)))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Do nothing: there is nothing to undo, since nothing is visible.

        Nor is anything deleted: Spark aborts after a commit that got no answer, too, and that commit may have happened.
        Vacuum collects what no snapshot names.
        """


def staged_segments(message: WriterCommitMessage | None) -> tuple[StagedSegment, ...]:
    """The segments of a task that Spark wants to commit. Raises StorageError if its message names none."""
    if not isinstance(message, TaskCommitMessage):
        raise StorageError(
            f"Spark wants to commit, but the answer of a task is {message!r}: rows would be lost, "
            f"so nothing was committed"
        )
    return message.staged


def handed_rows(messages: Sequence[WriterCommitMessage | None]) -> list[bytes]:
    """The rows of small tasks, each an Arrow stream."""
    return [data for message in messages if isinstance(message, TaskCommitMessage) for data in message.handed]


def warnings_of(messages: Sequence[WriterCommitMessage | None]) -> Iterator[str]:
    """What tasks were warned of."""
    for message in messages:
        yield from message.warning_texts if isinstance(message, TaskCommitMessage) else ()


def create_batch_writer(target: WriteTarget, overwrite: bool, host: Host) -> BatchWriter:
    """The writer of a DataFrame into a table without a primary key. Raises StorageError."""
    snapshot = target.table.snapshot
    return BatchWriter(target, index_builders(snapshot, host), overwrite, unavailable_indexes(snapshot, host))


def open_target(location: TableLocation, schema: StructType, merge_schema: bool = False) -> WriteTarget:
    """The table to write to, created if there is none.

    ``merge_schema``: columns that it lacks are to be added with the rows. Raises OptionError, SchemaError (naming the
    field), StorageError.
    """
    if location.at is not None:
        raise OptionError("writing goes to the head of a branch: leave out the option 'at'")
    row_schema = schemas.to_arrow_schema(schema)
    table = _open_or_create(location, row_schema)
    if is_keyed(table.snapshot):
        return WriteTarget(table, resolve_keyed_names(row_schema, table.snapshot))
    names = _resolve_names(row_schema, table, merge_schema)
    renamed = pa.schema([field.with_name(name) for field, name in zip(row_schema, names, strict=True)])
    target = WriteTarget(table, tuple(names), schemas.all_nullable(renamed) if merge_schema else None)
    trial_writer = evolved_table(table, target.schema_change(table)).writer()
    try:
        trial_writer.write(pa.Table.from_batches([], renamed))
    finally:
        trial_writer.abort()
    return target


def _open_or_create(location: TableLocation, row_schema: pa.Schema) -> StoredTable:
    try:
        return location.open()
    except NotFound:
        if location.branch != "main":
            raise
    try:
        return StoredTable.create(location.url, schemas.all_nullable(row_schema), options=dict(location.store_options))
    except AlreadyExists:  # someone else was faster
        return location.open()


def _resolve_names(row_schema: pa.Schema, table: StoredTable, merge_schema: bool) -> list[str]:
    """The table's name for each column of the rows: exactly, or else without case, as Spark itself resolves names."""
    schema, names = table.snapshot.schema, []
    for name in row_schema.names:
        if merge_schema and name.lower() not in [known.lower() for known in schema.names]:
            names.append(name)
            continue
        try:
            names.append(schema.find([name], case_sensitive=name in schema.names).name)
        except SchemaError as unknown:
            advice = "" if "ambiguous" in str(unknown) else ". The option mergeSchema adds columns"
            raise SchemaError(f"the DataFrame has a column {name!r} that does not fit: {unknown}{advice}") from unknown
    return names
