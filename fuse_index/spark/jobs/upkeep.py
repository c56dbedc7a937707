"""Blocks compacted, tiered and reclustered by all executors: ``table.maintenance``, as Spark's jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING

from fuse_index.hot.tier import TierJob
from fuse_index.indexes.builder import index_builders
from fuse_index.indexes.registry import Host
from fuse_index.operations.compact import start_compaction
from fuse_index.operations.recluster import (
    DEFAULT_PASSES,
    DEFAULT_STEP_BLOCKS,
    DEFAULT_STEP_BYTES,
    ReclusterCallback,
    ReclusterStep,
    start_reclustering,
)
from fuse_index.operations.rewrite_job import RewriteJob
from fuse_index.spark.jobs.dml import DmlTarget, run_dml_job
from fuse_index.spark.jobs.write import build_index, task_slots
from fuse_index.table.arguments import check_arguments
from fuse_index.table.tier import start_tiering
from fuse_index.upkeep.due_blocks import compact_job, recluster_job
from fuse_index.upkeep.steps import Step, Stepped
from fuse_index.upkeep.task import DueTask, UpkeepContext

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@check_arguments
def compact(
    spark: SparkSession,
    url: str,
    where: str | None = None,
    *,
    branch: str = "main",
    host: Host | None = None,
    **store: str,
) -> None:
    """Join small blocks and segments by all executors, as ``table.maintenance.compact`` does.

    Args:
        spark: A session, classic or Connect.
        url: Where the table is.
        where: As for ``Maintenance.compact``, SQL text.
        branch: Which branch.
        host: Index kinds and functions; by default what is installed where the table is planned.
        store: Options of the object store.

    Raises:
        WhereError: The condition cannot be read.
        OpaqueError: Only Spark can evaluate it.
        Conflict: Somebody replaced one of the blocks meanwhile; what was committed before is kept.
        StorageError: The store fails.

    Example:
        fuse_spark.compact(spark, "/data/orders")
    """
    to = DmlTarget.for_session(spark, url, branch, host, store)
    run_dml_job(spark, lambda: start_compaction(to.open(), where), to.task_count)


@check_arguments
def tier(
    spark: SparkSession,
    url: str,
    min_age: timedelta | str | None = None,
    *,
    branch: str = "main",
    host: Host | None = None,
    **store: str,
) -> None:
    """Move hot rows into sorted, indexed blocks by all executors, as ``table.maintenance.tier`` does.

    Args:
        spark: A session, classic or Connect.
        url: Where the table is.
        min_age: Only rows that are older: a timedelta, or text such as ``"10s"``.
        branch: Which branch.
        host: Index kinds and functions; by default what is installed where the table is planned.
        store: Options of the object store.

    Raises:
        InputError: ``min_age`` is no duration.
        StorageError: The store fails.

    Example:
        fuse_spark.tier(spark, "/data/orders", min_age="10s")
    """
    to = DmlTarget.for_session(spark, url, branch, host, store)
    run_dml_job(spark, lambda: start_tiering(to.open(), min_age), to.task_count)


@check_arguments
def recluster(
    spark: SparkSession,
    url: str,
    depth: int = 2,
    step_blocks: int = DEFAULT_STEP_BLOCKS,
    step_bytes: int = DEFAULT_STEP_BYTES,
    passes: int = DEFAULT_PASSES,
    progress: ReclusterCallback | None = None,
    *,
    branch: str = "main",
    host: Host | None = None,
    **store: str,
) -> None:
    """Sort blocks that overlap by the clustering key, by all executors, as ``table.maintenance.recluster`` does.

    Each task sorts a group of blocks that has none in common with another's, and the groups of a round are one commit.
    So executors need the memory of a step for each task that they run at a time.

    Args:
        spark: A session, classic or Connect.
        url: Where the table is.
        depth: As for ``Maintenance.recluster``.
        step_blocks: As for ``Maintenance.recluster``.
        step_bytes: As for ``Maintenance.recluster``.
        passes: As for ``Maintenance.recluster``.
        progress: Called with a ``ReclusterStep`` for each group.
        branch: Which branch.
        host: Index kinds and functions; by default what is installed where the table is planned.
        store: Options of the object store.

    Raises:
        InputError: The table has no clustering key, or a number is out of its range.
        Conflict: Somebody replaced one of the blocks meanwhile; what was committed before is kept.
        StorageError: The store fails.

    Example:
        fuse_spark.recluster(spark, "/data/orders", depth=1)
    """
    to, numbers = DmlTarget.for_session(spark, url, branch, host, store), count(1)

    def report(steps: Sequence[Sequence[int]]) -> None:
        for step in steps:
            if progress is not None:
                progress(replace(ReclusterStep(*step), number=next(numbers)))

    bounds = depth, step_blocks, step_bytes, passes
    run_dml_job(spark, lambda: start_reclustering(to.open(), *bounds), task_slots(spark), report)


def spark_steps(spark: SparkSession) -> Mapping[str, Step]:
    """Make the steps of upkeep that executors do, by task: all of what is due of a kind at a table, and not a part."""

    def by_job(start: Callable[[UpkeepContext], RewriteJob]) -> Step:
        def step(context: UpkeepContext, task: DueTask) -> Stepped:
            run_dml_job(spark, lambda: start(context), task_slots(spark))
            return _stepped(context)

        return step

    def refresh(context: UpkeepContext, task: DueTask) -> Stepped:
        options = dict(getattr(context.table.store, "options", None) or {})
        place = {"branch": context.table.branch, "host": context.host, **options}
        build_index(spark, context.table.store.url, str(task.index), **place)
        return _stepped(context)

    return {
        "compact": by_job(_compaction),
        "recluster": by_job(_reclustering),
        "tier": by_job(_tiering),
        "refresh": refresh,
    }


def _stepped(context: UpkeepContext) -> Stepped:
    after = context.table.refresh()
    return Stepped(after, after is not context.table)


def _compaction(context: UpkeepContext) -> RewriteJob:
    return compact_job(context.table, index_builders(context.table.snapshot, context.host))


def _reclustering(context: UpkeepContext) -> RewriteJob:
    builders = index_builders(context.table.snapshot, context.host)
    job = recluster_job(context.table, context.host, context.policy.target_depth, builders)
    assert job is not None  # as it is due
    return job


def _tiering(context: UpkeepContext) -> RewriteJob:
    return TierJob(context.table, index_builders(context.table.snapshot, context.host))
