"""Rows of a DataFrame brought into a table by their keys, by all executors, however many rows there are.

No process holds a source of more than a few rows: Spark joins it with the keys of the blocks that may have a matching
row, and brings each block's rows of the source to the task that rewrites the block. What indexes are asked is which
blocks hold its keys or, where those are too many, values between the least and the greatest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.functions import col, lit

from fuse_index.indexes.registry import Host
from fuse_index.operations.dml_job import DmlJob
from fuse_index.operations.merge_clauses import MergeClauseSpec
from fuse_index.operations.merge_match import MAX_KEYS_IN_PREDICATE, KeyValues, MergeSpec
from fuse_index.operations.rewrite_job import RewriteOutcome, RewriteTask
from fuse_index.spark.answers import Sealed, refusals_decoded
from fuse_index.spark.jobs.changed_rows import BLOCK_COLUMN, run_by_block
from fuse_index.spark.jobs.dml import DmlTarget, map_tasks, run_dml_job
from fuse_index.spark.jobs.merge_tasks import (
    conform_source,
    edit_blocks,
    name_blocks,
    read_block_keys,
    stage_inserts,
)
from fuse_index.spark.placement import run_where_reachable
from fuse_index.spark.schemas import all_nullable, collect_arrow, to_arrow_schema, to_spark_schema
from fuse_index.spark.workers import map_in_workers, worker_problems_explained
from fuse_index.statements.jobs import merge_job
from fuse_index.statements.row_store import MergeClauseSpecs
from fuse_index.table.arguments import check_arguments
from fuse_index.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

MAX_ROWS_IN_TASKS = 1000
"""Rows of a source that each task is handed: of so few, joining them takes longer than merging them."""
_Batches = Iterator[pa.RecordBatch]
_Spec = Sealed[tuple[Table, MergeSpec]]


@check_arguments
def merge(
    spark: SparkSession,
    url: str,
    source: DataFrame,
    on: Sequence[str] | None = None,
    matched: MergeClauseSpec = "update",
    not_matched: MergeClauseSpec = "insert",
    not_matched_by_source: MergeClauseSpec = None,
    *,
    merge_schema: bool = False,
    branch: str = "main",
    host: Host | None = None,
    **store: str,
) -> None:
    """Bring in the rows of a DataFrame by their keys, as ``Table.merge`` does, by executors.

    Args:
        spark: A session, classic or Connect.
        url: Where the table is.
        source: The rows, of any number; it is evaluated once.
        on: As for ``Table.merge``.
        matched: As for ``Table.merge``.
        not_matched: As for ``Table.merge``.
        not_matched_by_source: As for ``Table.merge``.
        merge_schema: As for ``Table.merge``.
        branch: Which branch.
        host: Index kinds and functions; by default what is installed where the table is planned.
        store: Options of the object store.

    Raises:
        InputError: Several rows of the source match one, or there is no such clause or key.
        SchemaError: Columns do not fit.
        WhereError: A clause's condition is none.
        OpaqueError: A condition that cannot be evaluated here.
        Conflict: Others changed such rows meanwhile, or added some.
        StorageError: The store fails.

    Example:
        fuse_spark.merge(spark, "/data/orders", spark.table("staging.orders"), on=["id"])
    """
    to, clauses = DmlTarget.for_session(spark, url, branch, host, store), (matched, not_matched, not_matched_by_source)
    rows_schema = all_nullable(to_arrow_schema(source.schema))
    sealed, columns, key_columns = run_where_reachable(
        spark, lambda: _check_merge(to.open(), rows_schema, on, clauses, merge_schema)
    )
    rows = MergeSource(spark, sealed, clauses, columns.schema, key_columns, to.task_count)
    rows.load(source)
    if (few := rows.collect_few()) is not None:
        run_dml_job(spark, lambda: _start_small(sealed, few), to.task_count)
    else:
        keys = rows.key_values()
        run_dml_job(spark, lambda: _start_large(sealed, keys), to.task_count, run=rows.run)


def _check_merge(
    table: Table, rows: pa.Schema, on: Sequence[str] | None, clauses: Any, merge_schema: bool
) -> tuple[_Spec, pa.Table, list[str]]:
    """Give what the merge does, the columns of the source in the types that it is read in, and those of the key."""
    spec = table.merge_spec(rows, on, clauses, merge_schema)
    return Sealed((table, spec)), spec.source_schema.empty_table(), list(spec.key_columns)


class MergeSource:
    """The source of a merge as Spark holds it: columns are called by their numbers, since names may hold anything."""

    def __init__(
        self,
        spark: SparkSession,
        spec: _Spec,
        clauses: MergeClauseSpecs,
        schema: pa.Schema,
        key_columns: Sequence[str],
        task_count: int,
    ) -> None:
        self.spark, self.spec, self.schema, self.task_count = spark, spec, schema, task_count
        self.clauses = clauses
        self.names = [f"c{number}" for number in range(len(schema))]
        self.keys = [self.names[schema.names.index(name)] for name in key_columns]
        self.key_columns = list(key_columns)
        self.types = to_spark_schema(all_nullable(pa.schema(list(zip(self.names, schema.types, strict=True)))))

    def load(self, source: DataFrame) -> None:
        """Evaluate the source once, in the types of the table: what is random in it must not change on the way.

        Raises SchemaError for values that do not fit.
        """
        conformed = map_in_workers(
            source.toDF(*self.names), conform_source(self.spec, self.schema.names, self.names), self.types
        )
        with refusals_decoded(), worker_problems_explained():
            self.rows = conformed.localCheckpoint()

    def collect_few(self) -> pa.Table | None:
        """All rows, if each task may have them in memory; None if they are too many."""
        if not MAX_ROWS_IN_TASKS:
            return None
        found = collect_arrow(self.rows.limit(MAX_ROWS_IN_TASKS + 1))
        return found.rename_columns(self.schema.names) if len(found) <= MAX_ROWS_IN_TASKS else None

    def run(self, job: Sealed[DmlJob], tasks: list[Sealed[RewriteTask]]) -> list[Sealed[RewriteOutcome]]:
        """Write all that changes in the blocks of these tasks, and what is new; nobody sees it yet."""
        spec, names = self.spec, self.schema.names  # tasks cannot have the session
        matched, not_matched, not_matched_by_source = self.clauses
        outcomes: list[Sealed[RewriteOutcome]] = []
        blocks = self._block_keys(job, tasks)
        try:
            by_key = reduce(lambda left, right: left & right, map(self._same_key, self.keys))
            if tasks and (matched or not_matched_by_source):
                changes = blocks.join(self.rows, by_key).select(BLOCK_COLUMN, *self.names)
                if not_matched_by_source:
                    changes = changes.union(self._markers(tasks))
                outcomes += run_by_block(changes, self.task_count, partial(edit_blocks, job, spec, names))
            if not_matched:
                others = self.rows.join(blocks, by_key, "left_anti").coalesce(self.task_count)
                outcomes += map_tasks(others, partial(stage_inserts, job, spec, names))
        finally:
            blocks.unpersist()
        return outcomes

    def _same_key(self, name: str) -> Column:
        return col(f"t{name}") == col(name)

    def key_values(self) -> dict[str, pa.Table]:
        """By column of the key, its distinct values as a column or, where there are too many, two for the bounds."""
        whole = reduce(lambda rows, name: rows.where(col(name).isNotNull()), self.keys, self.rows)
        found = {}
        for column, name in zip(self.key_columns, self.keys, strict=True):
            values = whole.select(name).distinct().limit(MAX_KEYS_IN_PREDICATE + 1).toArrow()
            if len(values) > MAX_KEYS_IN_PREDICATE:
                values = whole.selectExpr(f"min({name})", f"max({name})").toArrow()
            found[column] = values
        return found

    def _block_keys(self, job: Sealed[DmlJob], tasks: Sequence[Sealed[RewriteTask]]) -> DataFrame:
        """The keys of each block that may have matching rows, each once for a block. They are read once."""
        types = to_spark_schema(
            pa.schema(
                [(BLOCK_COLUMN, pa.string())]
                + [(f"t{name}", self.schema.field(self.names.index(name)).type) for name in self.keys]
            )
        )
        count = len(tasks)
        numbers = self.spark.range(0, count, 1, max(count, 1))
        return map_in_workers(numbers, read_block_keys(job, self.spec, tasks, types.names), types).persist()

    def _markers(self, tasks: Sequence[Sealed[RewriteTask]]) -> DataFrame:
        """A row without a source for each block, so that a task sees all blocks, also those that nothing matches."""
        count = len(tasks)
        numbers = map_in_workers(self.spark.range(0, count, 1, count), name_blocks(tasks), f"{BLOCK_COLUMN} string")
        empty = [lit(None).cast(field.dataType).alias(field.name) for field in self.types]
        return numbers.select(BLOCK_COLUMN, *empty)


def _start_small(spec: _Spec, source: pa.Table) -> DmlJob:
    table, merge_ = spec.open()
    return merge_job(table, merge_, source)


def _start_large(spec: _Spec, keys: dict[str, pa.Table]) -> DmlJob:
    table, merge_ = spec.open()
    values = {}
    for name, found in keys.items():
        columns = [column.cast(merge_.source_schema.find([name]).type) for column in found.columns]
        is_range = len(columns) > 1
        values[name] = KeyValues(pa.chunked_array([c for column in columns for c in column.chunks]), is_range)
    return table.merging(merge_, values)
