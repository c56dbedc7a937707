"""Rows deleted, updated and overwritten by all executors, and the loop that all jobs share.

The blocks in question are found where the table is planned, rewritten in tasks, and committed at once. On classic
sessions and on Connect. Conditions mean what they mean in the session: its time zone, ANSI mode and case sensitivity.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from fuse_index.after_commit import after_commit
from fuse_index.indexes.builder import recorded_warnings
from fuse_index.indexes.registry import Host, PluginWarning
from fuse_index.operations.dml_job import DmlJob
from fuse_index.operations.recluster import recluster_steps
from fuse_index.operations.rewrite_job import RewriteJob, RewriteOutcome, RewriteTask
from fuse_index.operations.row_edits import stage_rows
from fuse_index.predicate import Context
from fuse_index.spark.answers import ANSWER_SCHEMA, Sealed, capture_answer
from fuse_index.spark.jobs.write import target_location, task_slots
from fuse_index.spark.placement import collect_answers, is_connect, is_on_driver, run_as_tasks, run_where_reachable
from fuse_index.spark.schemas import all_nullable, collect_arrow, to_arrow_schema
from fuse_index.spark.source.data_source import session_context
from fuse_index.spark.source.options import TableLocation
from fuse_index.spark.source.task_rows import RowWrite, TaskRows
from fuse_index.spark.workers import map_in_workers
from fuse_index.table.arguments import check_arguments
from fuse_index.table.table import Table
from fuse_storage import StagedSegment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_Job = TypeVar("_Job", bound=RewriteJob)
_Answer = TypeVar("_Answer")
_Staged = TypeVar("_Staged")


@dataclass(frozen=True)
class DmlTarget:
    """A table to be changed, as the session sees it. Picklable."""

    location: TableLocation
    host: Host | None
    context: Context
    task_count: int

    @staticmethod
    def for_session(spark: SparkSession, url: str, branch: str, host: Host | None, store: dict[str, str]) -> DmlTarget:
        return DmlTarget(target_location(url, branch, store), host, session_context(spark), task_slots(spark) * 4)

    def open(self) -> Table:
        return Table(self.location.open(), self.host or Host.discover(), self.context)


@check_arguments
def delete(
    spark: SparkSession, url: str, where: str, *, branch: str = "main", host: Host | None = None, **store: str
) -> None:
    """Delete the rows that the condition is true on, as ``Table.delete`` does, by all executors.

    With a primary key that method does it, in the driver.

    Args:
        spark: A session, classic or Connect.
        url: Where the table is.
        where: A condition in Spark SQL, as it is meant in the session.
        branch: Which branch.
        host: Index kinds and functions; by default what is installed where the table is planned.
        store: Options of the object store.

    Raises:
        FuseIndexError: As ``Table.delete`` raises.
        Conflict: Others changed such rows meanwhile, or added some.
        StorageError: The store fails.

    Example:
        fuse_spark.delete(spark, "/data/orders", "day < '2026-01-01'")
    """
    to = DmlTarget.for_session(spark, url, branch, host, store)
    _change(spark, to, lambda table: table.deleting(where), lambda table: table.delete(where))


@check_arguments
def update(
    spark: SparkSession,
    url: str,
    where: str | None,
    set: Mapping[str, Any],  # noqa: A002  # promised
    *,
    branch: str = "main",
    host: Host | None = None,
    **store: str,
) -> None:
    """Give columns other values in the rows that the condition is true on, as ``Table.update`` does, by all executors.

    With a primary key that method does it, in the driver.

    Args:
        spark: A session, classic or Connect.
        url: Where the table is.
        where: A condition in Spark SQL, as it is meant in the session; None for all rows.
        set: As for ``Table.update``.
        branch: Which branch.
        host: Index kinds and functions; by default what is installed where the table is planned.
        store: Options of the object store.

    Raises:
        FuseIndexError: As ``Table.update`` raises.
        Conflict: Others changed such rows meanwhile, or added some.
        StorageError: The store fails.

    Example:
        fuse_spark.update(spark, "/data/orders", "id = 7", {"price": "price * 2"})
    """
    to = DmlTarget.for_session(spark, url, branch, host, store)
    _change(spark, to, lambda table: table.updating(where, set), lambda table: table.update(where, set))


@check_arguments
def overwrite(
    spark: SparkSession,
    url: str,
    rows: DataFrame,
    where: str | None = None,
    *,
    merge_schema: bool = False,
    branch: str = "main",
    host: Host | None = None,
    **store: str,
) -> None:
    """Replace rows by those of a DataFrame, as ``Table.overwrite`` does, by all executors.

    Args:
        spark: A session, classic or Connect.
        url: Where the table is.
        rows: The rows that come.
        where: The rows that go: those on which this condition is true, by default all. It must be true on all that
            come.
        merge_schema: As for ``Table.overwrite``.
        branch: Which branch.
        host: Index kinds and functions; by default what is installed where the table is planned.
        store: Options of the object store.

    Raises:
        FuseIndexError: As ``Table.overwrite`` raises.
        Conflict: Others changed such rows meanwhile, or added some.
        StorageError: The store fails.

    Example:
        fuse_spark.overwrite(spark, "/data/orders", spark.table("staging.orders"), "day = '2026-01-01'")
    """
    to, merged = DmlTarget.for_session(spark, url, branch, host, store), None
    if merge_schema:
        merged = all_nullable(to_arrow_schema(rows.schema))
    overwrite_rows(spark, lambda: to.open().overwriting(where, merged), rows, to.task_count)


def _change(
    spark: SparkSession, to: DmlTarget, start: Callable[[Table], DmlJob], by_key: Callable[[Table], object]
) -> None:
    """Run a job or, in a table with a primary key, a method. On Connect a task might be run twice, and change twice."""
    table = None if is_connect(spark) else to.open()
    if table is not None and not table.row_store.rewrites_blocks:
        by_key(table)
    else:
        run_dml_job(spark, lambda: start(to.open() if table is None else table), to.task_count)


def overwrite_rows(spark: SparkSession, start: Callable[[], DmlJob], rows: DataFrame, max_tasks: int) -> None:
    """Run a job, and add ``rows`` in its commit, on which its condition must be true."""
    plan = run_where_reachable(spark, lambda: _plan(start(), max_tasks))
    staged = stage_in_tasks(plan[0], rows)
    _run_tasks(spark, run_where_reachable(spark, lambda: _add_staged(*plan, staged)), max_tasks)


def stage_in_tasks(job: Sealed[DmlJob], rows: DataFrame) -> list[Sealed[list[StagedSegment]]]:
    """Write rows in executors, or here if they are here, for a job to add them; nobody sees them yet."""
    return map_tasks(rows, partial(_stage_batches, job))


def write_in_tasks(write: RowWrite[_Staged], rows: DataFrame) -> list[TaskRows[_Staged]]:
    """What tasks have of rows that come, for the write to commit."""
    sealed = Sealed(write)
    return [answer.open() for answer in map_tasks(rows, lambda batches: Sealed(sealed.open().write(batches)))]


def map_tasks(rows: DataFrame, write: Callable[[Iterator[pa.RecordBatch]], Sealed[_Answer]]) -> list[Sealed[_Answer]]:
    """What comes of writing rows in executors, task by task; or of all, here, if they are here."""
    # mapInArrow reads names as paths: dots and back-quotes mislead it.
    numbered = rows.toDF(*map(str, range(len(rows.columns))))
    if is_on_driver(numbered):
        return [write(iter(collect_arrow(numbered).rename_columns(rows.columns).to_batches()))]
    return collect_answers(map_in_workers(numbered, _write_task(write, rows.columns), ANSWER_SCHEMA))


_Plan = tuple[Sealed[_Job], list[Sealed[RewriteTask]] | None]
"""A job and the tasks of its next commit; None after its last. It arrives as a list."""
_StepsCallback = Callable[[Sequence[Sequence[int]]], None]
_RunTasks = Callable[[Sealed[Any], list[Sealed[RewriteTask]]], list[Sealed[RewriteOutcome]]]


def run_dml_job(
    spark: SparkSession,
    start: Callable[[], RewriteJob],
    max_tasks: int,
    on_commit: _StepsCallback = lambda steps: None,
    run: _RunTasks | None = None,
) -> None:
    """Start a job and plan it where the table can be reached, and run it to its end.

    ``run``: what is done of its tasks before each commit; by default each task runs by itself.
    """
    _run_tasks(spark, run_where_reachable(spark, lambda: _plan(start(), max_tasks)), max_tasks, on_commit, run)


def _run_tasks(
    spark: SparkSession,
    plan: _Plan[RewriteJob],
    max_tasks: int,
    on_commit: _StepsCallback = lambda steps: None,
    run: _RunTasks | None = None,
) -> None:
    """Run tasks in executors and commit what they wrote, until the job plans no more.

    ``on_commit`` is called after each commit with its steps, as numbers, if they are those of a reclustering.
    """
    job, tasks = plan
    while tasks is not None:
        outcomes = run(job, tasks) if run else run_as_tasks(spark, partial(_run_task, job), tasks)
        (job, tasks), steps, problems = run_where_reachable(spark, partial(_commit_and_plan, job, outcomes, max_tasks))
        warn_of_problems(problems)
        on_commit(steps)


def warn_of_problems(problems: Sequence[str]) -> None:
    """Warn here of what was found elsewhere."""
    for problem in problems:
        warnings.warn(problem, PluginWarning, stacklevel=3)


def _plan(job: _Job, max_tasks: int) -> _Plan[_Job]:
    tasks = job.plan_tasks(max_tasks)  # which the job notes
    return Sealed(job), [Sealed(task) for task in tasks]


def _add_staged(
    job: Sealed[DmlJob], tasks: list[Sealed[RewriteTask]] | None, staged: Sequence[Sealed[list[StagedSegment]]]
) -> _Plan[DmlJob]:
    planned = job.open()
    for segments in staged:
        planned.add_staged(segments.open())
    return Sealed(planned), tasks


def _run_task(job: Sealed[RewriteJob], task: Sealed[RewriteTask]) -> Sealed[RewriteOutcome]:
    return Sealed(job.open().run(task.open()))


def _commit_and_plan(
    sealed_job: Sealed[RewriteJob], sealed_outcomes: Sequence[Sealed[RewriteOutcome]], max_tasks: int
) -> tuple[_Plan[RewriteJob], list[tuple[int, ...]], list[str]]:
    """Commit, and plan on. Returns the steps that these outcomes were, as numbers, and warnings, too."""
    job, outcomes = sealed_job.open(), [outcome.open() for outcome in sealed_outcomes]
    plan = _plan(job, max_tasks) if job.commit(outcomes) else (Sealed(job), None)
    with recorded_warnings() as problems:
        after_commit(job.table, ())
    return plan, [astuple(step) for step in recluster_steps(outcomes, 0)], list(problems)


def _write_task(
    write: Callable[[Iterator[pa.RecordBatch]], Sealed[_Answer]], names: list[str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        named = (batch.rename_columns(names) for batch in batches)
        yield capture_answer(lambda: write(named))

    return run


def _stage_batches(sealed_job: Sealed[DmlJob], batches: Iterable[pa.RecordBatch]) -> Sealed[list[StagedSegment]]:
    job = sealed_job.open()
    return Sealed(stage_rows(job.evolved, job.builders, batches, job.condition))
