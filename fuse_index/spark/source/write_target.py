"""The table that a DataFrame, or micro-batches, are written to: opened or created, and its names of their columns."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.types import StructType

from fuse_index.clustering.key import ClusterKey
from fuse_index.errors import InputError
from fuse_index.export.keep_up import merge_columns
from fuse_index.hot.append import hot_row_limit
from fuse_index.indexes.builder import index_builders, unavailable_indexes
from fuse_index.indexes.registry import Host
from fuse_index.ingest.schema_merge import evolved_table
from fuse_index.spark import schemas
from fuse_index.spark.source.heap_write import HeapWrite
from fuse_index.spark.source.keyed_write import KeyedWrite, has_changes, resolve_keyed_names
from fuse_index.spark.source.options import OptionError, TableLocation
from fuse_storage import (
    AlreadyExists,
    NotFound,
    PartitionSpec,
    SchemaChange,
    SchemaError,
    Snapshot,
    StoredTable,
    is_keyed,
    open_store,
)

_DEFAULT_BLOCK_ROWS = 1_000_000


@dataclass(frozen=True, slots=True)
class WriteLayout:
    """The order and size of blocks that a table wants: paths of the columns to sort by, and rows to a block.

    First of them are the columns that the table is partitioned by.
    """

    sort_by: tuple[tuple[str, ...], ...] = ()
    block_rows: int = _DEFAULT_BLOCK_ROWS
    keeps_tasks: bool = False
    """Rows are not to be moved: of those of one key in a task the last counts."""


@dataclass(frozen=True)
class HeapTarget:
    """A table without a primary key. ``names``: what each column of the DataFrame is called there.

    ``rows``: the DataFrame's schema under these names, if columns are to be made such that it fits; None if not.
    ``hot``: whether few rows are a hot commit; None for what the table says.
    """

    table: StoredTable
    names: tuple[str, ...]
    rows: pa.Schema | None = None
    hot: bool | None = None

    @staticmethod
    def open(table: StoredTable, row_schema: pa.Schema, merge_schema: bool) -> HeapTarget:
        """The target of rows with this schema; see ``open_target``."""
        names = _resolve_names(row_schema, table, merge_schema)
        renamed = pa.schema([field.with_name(name) for field, name in zip(row_schema, names, strict=True)])
        target = HeapTarget(table, tuple(names), schemas.all_nullable(renamed) if merge_schema else None)
        trial_writer = evolved_table(table, target.schema_change(table)).writer()
        try:
            trial_writer.write(pa.Table.from_batches([], renamed))
        finally:
            trial_writer.abort()
        return target

    @staticmethod
    def layout(snapshot: Snapshot) -> WriteLayout:
        """The blocks that rows of a batch are best written to."""
        key = ClusterKey.from_snapshot(snapshot)
        cluster_by = key.paths if key is not None and key.method == "linear" else ()
        spec = PartitionSpec.from_snapshot(snapshot)
        partition_by = () if spec is None else tuple((name,) for name in spec.names)
        sort_by = tuple(dict.fromkeys([*partition_by, *cluster_by]))
        return WriteLayout(sort_by, int(snapshot.properties.get("block_rows", _DEFAULT_BLOCK_ROWS)))

    def check(self, overwrite: bool) -> None:
        """Allow every way to write."""

    def schema_change(self, table: StoredTable) -> SchemaChange | None:
        """The step that makes the columns fit, as the table is by now. Raises SchemaError, DefinitionError."""
        return None if self.rows is None else merge_columns(self.rows, table)

    def start(self, table: StoredTable, host: Host, overwrite: bool, *, is_stream: bool) -> HeapWrite:
        """Start a write to the table as it is by now.

        Where the clustering key is a curve, of which Spark knows nothing, tasks of a batch sort their rows.
        """
        snapshot, key = table.snapshot, ClusterKey.from_snapshot(table.snapshot)
        return HeapWrite(
            table,
            host,
            index_builders(snapshot, host),
            None if is_stream or key is None or key.method == "linear" else key,
            0 if overwrite or self.rows is not None else hot_row_limit(snapshot, self.hot),
            self.schema_change(table),
            overwrite,
            unavailable_indexes(snapshot, host),
        )


@dataclass(frozen=True)
class KeyedTarget:
    """A table with a primary key. ``names``: as of a ``HeapTarget``; some may say by ``_change_type`` what rows do."""

    table: StoredTable
    names: tuple[str, ...]
    merge_schema: bool = False
    hot: bool | None = None

    @staticmethod
    def open(table: StoredTable, row_schema: pa.Schema, merge_schema: bool) -> KeyedTarget:
        """The target of rows with this schema; see ``open_target``."""
        return KeyedTarget(table, resolve_keyed_names(row_schema, table.snapshot), merge_schema)

    @staticmethod
    def layout(snapshot: Snapshot) -> WriteLayout:
        """Each task keeps its rows: their order says which of a key is the last."""
        return WriteLayout(keeps_tasks=True)

    def check(self, overwrite: bool) -> None:
        """Raise InputError for a way to write that a table with a primary key does not have."""
        if overwrite:
            raise InputError(
                "a table with a primary key is not overwritten by Spark's writers: append, which puts rows by their "
                "keys, and delete those that are to go"
            )
        if self.merge_schema or self.hot is False:
            raise InputError(
                "rows of a table with a primary key are put by hot commits: no hot=false, and no mergeSchema (add "
                "columns by ALTER TABLE … ADD COLUMNS or Table.add_column)"
            )

    def start(self, table: StoredTable, host: Host, overwrite: bool, *, is_stream: bool) -> KeyedWrite:
        """Start a write to the table as it is by now, or to its head."""
        return KeyedWrite(table, host, has_changes(self.names, self.table.snapshot), at_head=not is_stream)


def target_kind(snapshot: Snapshot) -> type[HeapTarget] | type[KeyedTarget]:
    """How rows of Spark come into a table: by its primary key, or without one."""
    return KeyedTarget if is_keyed(snapshot) else HeapTarget


def open_target(location: TableLocation, schema: StructType, merge_schema: bool = False) -> HeapTarget | KeyedTarget:
    """The table to write to, created if there is none.

    ``merge_schema``: columns that it lacks are to be added with the rows. Raises OptionError, SchemaError (naming the
    field), StorageError.
    """
    if location.at is not None:
        raise OptionError("writing goes to the head of a branch: leave out the option 'at'")
    row_schema = schemas.to_arrow_schema(schema)
    table = _open_or_create(location, row_schema)
    return target_kind(table.snapshot).open(table, row_schema, merge_schema)


def _open_or_create(location: TableLocation, row_schema: pa.Schema) -> StoredTable:
    try:
        return location.open()
    except NotFound:
        if location.branch != "main":
            raise
    try:
        return StoredTable.create(
            open_store(location.url, dict(location.store_options)), schemas.all_nullable(row_schema)
        )
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
            problem = f"the DataFrame has a column {name!r} that does not fit: {unknown}"
            if "ambiguous" not in problem:
                problem += f"{'' if problem.endswith(('.', '?')) else '.'} The option mergeSchema adds columns"
            raise SchemaError(problem) from unknown
    return names
