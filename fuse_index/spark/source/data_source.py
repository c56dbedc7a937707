"""``format("fuse")``: a table as a Python data source, for reading and writing, Spark Connect included.

Planning, reading and committing run in Python workers that are neither the driver nor each other, and no plugin needs
to be discoverable there. So the class that is registered carries what they need: index kinds (by reference), and what
depends on the session. Blocks are skipped for the ``where`` option alone. Filters that Spark pushes are not taken:
Spark keeps one plan for all scans of a relation, the last one made, so that a filter of one query removes rows from the
next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from fuse_index.changes.changes import check_is_ancestor, check_without_preimages
from fuse_index.changes.follow import BatchLimit, CommitStep, OnChange, TableFollower
from fuse_index.expressions.evaluable import check_evaluable
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.registry import Host
from fuse_index.predicate import Context, Predicate
from fuse_index.pruning.planner import plan_scan
from fuse_index.query.scan import Scan
from fuse_index.spark import schemas
from fuse_index.spark.placement import active_session
from fuse_index.spark.source import options
from fuse_index.spark.source.batch_writer import BatchWriter
from fuse_index.spark.source.change_feed import SPARK_BATCH_ROWS, ChangeQuery, ChangesReader, with_change_columns
from fuse_index.spark.source.options import OptionError
from fuse_index.spark.source.partitions import split_plan
from fuse_index.spark.source.stream_reader import RefusedStream, StreamReader
from fuse_index.spark.source.stream_writer import StreamWriter
from fuse_index.spark.source.write_target import HeapTarget, KeyedTarget, open_target
from fuse_index.spark.workers import ExplainedInWorkers, is_worker, told_without_frames
from fuse_index.sql.parse import parse_predicate
from fuse_storage import CodedError, SchemaError, StoredTable, is_keyed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class FuseSource(DataSource):
    """A table as a Python data source.

    Options: ``path``, ``branch``, ``at``, ``version``, ``tail``, ``where``, ``columns``, ``timezone`` and ``store.*``;
    of changes and streams ``since``, ``read_changes``, ``preimages``, ``skip_changes``, ``key``,
    ``max_blocks_per_trigger`` and ``max_rows_per_trigger``; of writes ``mergeSchema`` and ``hot``.
    A DataFrame reads the snapshot that was the head when it was loaded; a stream has its columns.
    """

    host: ClassVar[Host]
    context: ClassVar[Context]
    pinned_snapshot: str | None = None
    planned_table: StoredTable | None = None
    """The table when ``schema`` was asked. A stream outlives that snapshot, and needs no more of it than is here."""

    @classmethod
    def name(cls) -> str:
        return "fuse"

    @told_without_frames()
    def schema(self) -> StructType:
        """The columns to read; checks ``where``, too, so that a mistake shows at ``load``.

        Raises OptionError, StorageError, WhereError.
        """
        table, names = self._table(options.READ_OPTIONS)
        self._where(table)
        self._tells_preimages()
        self.pinned_snapshot, self.planned_table = table.snapshot.id, table
        return schemas.to_spark_schema(self._offered_schema(table, names))

    @told_without_frames()
    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of a batch. ``schema`` is ours, or the user's own: then it picks columns, by name."""
        table, names = self._table(options.BATCH_READ_OPTIONS)
        since = self._since_table(table)
        if (since is not None) != options.parse_flag(self.options, "read_changes"):
            raise OptionError(
                "read_changes and since go together in a batch: the changes since a snapshot, to that which is read"
            )
        if since is not None:
            check_is_ancestor(since, table)
            query = self._change_query(table, names, schema)
            return ChangesReader(query, CommitStep(since, table, preimages=query.preimages))
        requested = schemas.to_arrow_schema(schema)
        _check_requested_schema(requested, _select_columns(table, names))
        return BatchReader(table, requested, self._where(table), self._engine())

    @told_without_frames()
    def streamReader(self, schema: StructType) -> StreamReader | RefusedStream:
        """A reader of a stream of commits. Raises OptionError, StorageError, WhereError, StreamError.

        In a worker of Spark's it raises nothing: what the worker then tells is a failure of its own.
        """
        try:
            return self.commit_reader(schema)
        except CodedError as reason:
            if not is_worker():
                raise
            return RefusedStream(reason)

    def commit_reader(self, schema: StructType) -> StreamReader:
        """What ``streamReader`` gives, and raises, outside of workers."""
        table, names = self._table(options.STREAM_READ_OPTIONS, self.planned_table)
        skip_changes, read_changes = (
            options.parse_flag(self.options, name) for name in ("skip_changes", "read_changes")
        )
        if skip_changes and read_changes:
            raise OptionError("skip_changes and read_changes contradict each other: set one of them")
        if is_keyed(table.snapshot) and not read_changes:
            raise OptionError(
                f"{table.store.url} has a primary key, so rows that come take the place of others: set read_changes, "
                f"by which a stream tells both"
            )
        on_change = OnChange.SKIP if skip_changes else OnChange.READ if read_changes else OnChange.REFUSE
        limit = BatchLimit(
            *(options.parse_count(self.options, f"max_{what}_per_trigger") for what in ("blocks", "rows"))
        )
        query = self._change_query(table, names, schema)
        follower = TableFollower(table, on_change, query.preimages)
        return StreamReader(query, follower, limit, self.options.get("since"))

    @told_without_frames()
    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        """A writer of a batch; checks the schema at once, and creates the table if there is none.

        Raises OptionError, StorageError.
        """
        target = self._write_target(options.BATCH_WRITE_OPTIONS, schema, overwrite)
        return BatchWriter(target, self.host, overwrite)

    @told_without_frames()
    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        """A writer of micro-batches, as ``writer``; ``overwrite`` in complete mode.

        Raises OptionError, StorageError.
        """
        target = self._write_target(options.STREAM_WRITE_OPTIONS, schema, overwrite)
        return StreamWriter(target, self.host, overwrite)

    def _write_target(self, known: tuple[str, ...], schema: StructType, overwrite: bool) -> HeapTarget | KeyedTarget:
        location = options.parse_location(self.options, known)
        merge_schema = options.parse_flag(self.options, "mergeschema")
        hot = options.parse_choice(self.options, "hot")
        target = replace(open_target(location, schema, merge_schema), hot=hot)
        target.check(overwrite)
        return target

    def _table(self, known: tuple[str, ...], planned: StoredTable | None = None) -> tuple[StoredTable, tuple[str, ...]]:
        """The table at the snapshot that is read, and the columns that the options ask for."""
        location = options.parse_location(self.options, known)
        if self.pinned_snapshot:
            location = replace(location, at=self.pinned_snapshot, version=None)
        table = planned or location.open()
        table.snapshot.check_rows()
        return table, options.parse_column_list(
            self.options.get("columns"), table.snapshot.schema, self.context.case_sensitive
        )

    def _since_table(self, table: StoredTable) -> StoredTable | None:
        since = self.options.get("since")
        return StoredTable.open(table.store, branch=table.branch, at=since) if since is not None else None

    def _offered_schema(self, table: StoredTable, names: tuple[str, ...]) -> pa.Schema:
        columns = _select_columns(table, names)
        return with_change_columns(columns) if options.parse_flag(self.options, "read_changes") else columns

    def _change_query(self, table: StoredTable, names: tuple[str, ...], schema: StructType) -> ChangeQuery:
        requested, read_changes = schemas.to_arrow_schema(schema), options.parse_flag(self.options, "read_changes")
        _check_requested_schema(requested, self._offered_schema(table, names))
        text = self.options.get("key")
        if text and not read_changes:
            raise OptionError(f"option key={text!r} makes pairs of changes: set read_changes too")
        key = options.parse_column_list(text, table.snapshot.schema, self.context.case_sensitive) if text else ()
        preimages, where = self._tells_preimages(), self._where(table)
        if not preimages:
            check_without_preimages(table.snapshot, table.snapshot.key if text is None else key, where)
        named = None if text is None else key
        return ChangeQuery(table, requested, named, where, self._engine(), read_changes, preimages)

    def _tells_preimages(self) -> bool:
        if options.parse_choice(self.options, "preimages") is not False:
            return True
        if not options.parse_flag(self.options, "read_changes"):
            raise OptionError("option preimages=false is about changes: set read_changes too")
        return False

    def _engine(self) -> Engine:
        time_zone = self.options.get("timezone", self.context.time_zone)
        return Engine(self.host, replace(self.context, time_zone=time_zone))

    def _where(self, table: StoredTable) -> Predicate | None:
        text = self.options.get("where")
        if text is None:
            return None
        engine = self._engine()
        predicate = parse_predicate(text, table.snapshot.schema, engine.context, engine.functions)
        check_evaluable(predicate, engine.context, engine.functions)
        return predicate


class BatchReader(ExplainedInWorkers, DataSourceReader):
    """Plans in one process, reads in others: what a task needs travels in its partition."""

    def __init__(self, table: StoredTable, schema: pa.Schema, where: Predicate | None, engine: Engine) -> None:
        self.table, self.schema, self.where, self.engine = table, schema, where, engine

    @told_without_frames()
    def partitions(self) -> list[InputPartition]:
        """The tasks that read the blocks which may hold an answer; of none, Spark makes one empty task."""
        plan = plan_scan(self.table, self.where, self.engine)
        return [ScanTask(Scan(part, tuple(self.schema.names), self.engine.functions)) for part in split_plan(plan)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with told_without_frames():
            for batch in partition.value.to_batches() if isinstance(partition, ScanTask) else ():
                rows = pa.Table.from_batches([batch]).cast(self.schema)
                yield from schemas.as_spark_has_it(rows).to_batches(SPARK_BATCH_ROWS)


class ScanTask(InputPartition):
    """The scan of the blocks of one task."""

    value: Scan


def register_source(spark: SparkSession, host: Host | None = None) -> type[FuseSource]:
    """Make ``format("fuse")`` known to this session, with the index kinds of ``host``, by default all installed.

    The settings that ``where`` depends on are read now: the session's time zone, ANSI mode and case sensitivity.
    Registering again replaces the former.
    """
    source = source_class(host or Host.discover(), session_context(spark))
    with active_session(spark):  # or another session's source of this name is taken for a stranger's
        spark.dataSource.register(source)
    return source


def source_class(host: Host, context: Context) -> type[FuseSource]:
    """Make a class of its own, found in no module: so it is pickled by value, with what it carries."""
    return type("RegisteredFuseSource", (FuseSource,), {"host": host, "context": context, "__module__": "__main__"})


def session_context(spark: SparkSession) -> Context:
    """The settings of this session that conditions depend on, as they are now."""
    zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    return Context(zone, _is_on(spark, "spark.sql.ansi.enabled"), _is_on(spark, "spark.sql.caseSensitive"))


def _is_on(spark: SparkSession, name: str) -> bool:
    return str(spark.conf.get(name, "false")).lower() == "true"


def _select_columns(table: StoredTable, names: tuple[str, ...]) -> pa.Schema:
    table_schema = table.snapshot.schema.arrow
    return pa.schema([table_schema.field(name) for name in names])


def _check_requested_schema(requested: pa.Schema, offered: pa.Schema) -> None:
    for field in requested:
        if field.name not in offered.names:
            raise SchemaError(
                f"the schema given to load() has a column {field.name!r} that the table lacks: it has {offered.names}"
            )
        offered_field = offered.field(field.name)
        if offered_field.type != field.type:
            raise SchemaError(
                f"column {field.name!r} is {offered_field.type}, and the schema given to load() says {field.type}: "
                "leave it out"
            )
        if offered_field.nullable and not field.nullable:
            raise SchemaError(f"column {field.name!r} may be NULL, and the schema given to load() says NOT NULL")
