"""Whole jobs: a clustered write, and indexes built by all executors. They run on classic sessions and on Connect.

Nothing here knows how a block or an index is made: tasks call what a local build calls.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.functions import col
from pyspark.sql.types import StructType

from fuse_index.indexes.registry import Host, PluginWarning
from fuse_index.operations.build_index import BuildResult, BuildTask, commit_build_results, run_build_task_in_worker
from fuse_index.signals.build_failures import BUILD_FAILURES, nothing_built, record_failure
from fuse_index.spark.answers import Sealed
from fuse_index.spark.native.relation import quote_path
from fuse_index.spark.placement import active_session, is_connect, run_as_tasks, run_where_reachable
from fuse_index.spark.source.options import BATCH_WRITE_OPTIONS, STORE_PREFIX, TableLocation, parse_location
from fuse_index.spark.source.write_target import WriteLayout, target_kind
from fuse_index.spark.workers import worker_problems_explained
from fuse_index.table.arguments import check_arguments
from fuse_index.table.indexes import plan_index_tasks
from fuse_index.table.table import Table
from fuse_storage import Conflict, NotFound, commits_checked_by

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_TARGET_BLOCK_FILL = 0.85
"""The part of a block that is planned for: ranges are sampled, and a larger one would leave a crumb of a block."""

_CONNECT_TASK_SLOTS = 16
"""The parallelism that a Connect client assumes of its server, which it cannot ask."""
_TASKS_PER_SLOT_AND_COMMIT = 4
"""Tasks for each slot after which an index build commits: so much is lost at most when it is interrupted."""


@check_arguments
def write(
    df: DataFrame,
    url: str,
    mode: str = "append",
    *,
    merge_schema: bool = False,
    branch: str = "main",
    rows: int | None = None,
    **store: str,
) -> None:
    """Write like ``df.write.format("fuse").mode(mode).save(url)``, with rows kept together and blocks filled.

    With a linear cluster key, or in a partitioned table, rows are divided by ranges of these columns and sorted within;
    else Spark's partitions are only merged until they fill blocks, and along a curve tasks sort their own rows. Into a
    table with a primary key rows are put from where they are; see ``upsert``. ``install`` must have been called for
    this session.

    Args:
        df: The rows.
        url: Where the table is.
        mode: As of ``DataFrameWriter.mode``.
        merge_schema: Add columns that the table lacks with the rows, as by the option ``mergeSchema``.
        branch: Which branch.
        rows: How many there are, which spares counting them first.
        store: Options of the object store.

    Raises:
        SchemaError: A column does not fit.
        StorageError: The store fails; what a task raises arrives as Spark's own error, as with ``save``.

    Example:
        fuse_spark.write(spark.table("staging.orders"), "/data/orders")
    """
    options = _source_options(branch, store)
    location = parse_location({"path": url, **options}, BATCH_WRITE_OPTIONS)
    sort_by, *others = run_where_reachable(df.sparkSession, lambda: astuple(write_layout(location)))
    layout = WriteLayout(tuple(map(tuple, sort_by)), *others)
    arranged = df
    if not layout.keeps_tasks:
        arranged = _arrange_rows(df, layout, df.count() if rows is None else rows)
    if merge_schema:
        options["mergeSchema"] = "true"
    with active_session(df.sparkSession), worker_problems_explained():
        arranged.write.format("fuse").mode(mode).options(**options).save(url)


def write_layout(location: TableLocation) -> WriteLayout:
    """The layout of a table; a default where there is none yet. Raises StorageError."""
    try:
        snapshot = location.open().snapshot
    except NotFound:
        return WriteLayout()
    return target_kind(snapshot).layout(snapshot)


def _arrange_rows(df: DataFrame, layout: WriteLayout, rows: int) -> DataFrame:
    keys = [_column(path) for path in layout.sort_by if _has_column(df, path)]
    if not keys:
        return df.coalesce(max(1, math.ceil(rows / layout.block_rows)))
    return df.repartitionByRange(
        max(1, math.ceil(rows / (_TARGET_BLOCK_FILL * layout.block_rows))), *keys
    ).sortWithinPartitions(*keys)


def _has_column(df: DataFrame, path: tuple[str, ...]) -> bool:
    """Whether rows have this column: one that they lack is the same in all of them, and orders nothing."""
    known = df.schema
    for name in path:
        fields = (
            [field for field in known if field.name.lower() == name.lower()] if isinstance(known, StructType) else []
        )
        if not fields:
            return False
        known = fields[0].dataType  # type: ignore[assignment]
    return True


def _column(path: tuple[str, ...]) -> Column:
    return col(quote_path(path))


@check_arguments
def build_index(
    spark: SparkSession,
    url: str,
    name: str,
    rebuild: bool = False,
    *,
    branch: str = "main",
    host: Host | None = None,
    **store: str,
) -> None:
    """Index, by all executors, the blocks that an index lacks.

    Rows are never touched; what is done is committed every few dozen tasks, so an interrupted build only has to go on.
    Warns of blocks that stay unindexed.

    Args:
        spark: A session, classic or Connect.
        url: Where the table is.
        name: Which index.
        rebuild: Index all blocks, anew.
        branch: Which branch.
        host: Index kinds and functions; by default what is installed where the table is planned.
        store: Options of the object store.

    Raises:
        DefinitionError: There is no such index, or it cannot be built.
        BuildError: Executors lack the plugin of its kind; or, with ``rebuild``, it failed on every block.
        StorageError: The store fails.

    Example:
        fuse_spark.build_index(spark, "/data/orders", "by_email")
    """
    location = target_location(url, branch, store)
    slots = task_slots(spark)
    tasks = run_where_reachable(spark, partial(_index_tasks, location, name, rebuild, slots, host))
    indexed = blocks = 0
    kind, failed = "", False
    for start in range(0, len(tasks), _TASKS_PER_SLOT_AND_COMMIT * slots):
        wave = tasks[start : start + _TASKS_PER_SLOT_AND_COMMIT * slots]
        results = run_as_tasks(spark, _run_sealed_build_task, wave)
        for problem in (text for _, texts in results for text in texts):
            warnings.warn(problem, PluginWarning, stacklevel=2)
        built = [result for result, _ in results]
        counts = run_where_reachable(spark, partial(_commit_index, wave[0], built, start == 0))
        indexed, blocks, kind, failed = indexed + counts[0], blocks + counts[1], counts[2], failed or counts[3]
    if rebuild and tasks and not indexed:
        raise nothing_built(name, kind, blocks, failed)


@contextmanager
def undefined_on_failure(table: Table, index: str) -> Iterator[None]:
    """Drop an index where what builds it fails, and where nobody awaits the statement any more, too."""
    try:
        yield
    except BaseException:
        # A conflict is one with another index of this name, of somebody who has dropped this one.
        with suppress(Conflict), commits_checked_by(lambda: None):
            table.drop_index(index)
        raise


def _index_tasks(
    location: TableLocation, name: str, rebuild: bool, slots: int, host: Host | None
) -> list[Sealed[BuildTask]]:
    tasks = plan_index_tasks(Table(location.open(), host or Host.discover()), name, rebuild, slots)
    return [Sealed(task) for task in tasks]


def _run_sealed_build_task(task: Sealed[BuildTask]) -> tuple[Sealed[BuildResult], tuple[str, ...]]:
    result = run_build_task_in_worker(task.open())
    return Sealed(result), result.warning_texts


def _commit_index(
    sealed_task: Sealed[BuildTask], sealed: Sequence[Sealed[BuildResult]], begins: bool
) -> tuple[int, int, str, bool]:
    """Commit what tasks built, and leave on record what they failed at; ``begins``: no task of this build did before.

    Gives how many blocks are indexed by it, of how many, of which kind the index is, and whether that failed on one.
    Doing it twice does no harm: the second time, the same is attached again.
    """
    task, results = sealed_task.open(), [result.open() for result in sealed]
    definition, failures = task.builder.definition, [result.failure for result in results if result.failure]
    if begins:
        BUILD_FAILURES.forget(definition.key)
    for failure in failures:
        BUILD_FAILURES.note(definition.key, failure)
    done = commit_build_results(task.builder, task.table, results)
    if begins or failures:
        record_failure(done, "build index", definition.name, definition.key)
    indexed, blocks = sum(each.indexed for each in results), sum(each.block_count for each in results)
    return indexed, blocks, definition.kind, bool(failures)


def task_slots(spark: SparkSession) -> int:
    """The number of tasks that run at the same time."""
    return _CONNECT_TASK_SLOTS if is_connect(spark) else spark.sparkContext.defaultParallelism


def target_location(url: str, branch: str, store: dict[str, str]) -> TableLocation:
    """The table that a job changes. Raises OptionError."""
    return parse_location({"path": url, **_source_options(branch, store)}, BATCH_WRITE_OPTIONS)


def _source_options(branch: str, store: dict[str, str]) -> dict[str, str]:
    return {f"{STORE_PREFIX}{key}": value for key, value in store.items()} | (
        {"branch": branch} if branch != "main" else {}
    )
