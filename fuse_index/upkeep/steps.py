"""One step of a task that is due: a commit or a few, of bounded work, which any number may do beside writers.

In: the head of a table, the kinds that are installed, and the task. Out: the table after it. A step that finds nothing
to gain leaves that on record, so that nobody tries again before there are other blocks. How rows are tiered is for a
room above.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any, NamedTuple

import fuse_storage as storage
from fuse_index.errors import IndexFault
from fuse_index.indexes.builder import IndexBuilder, index_builders
from fuse_index.indexes.definition import IndexDefinition
from fuse_index.operations.build_index import plan_refresh, run_build_tasks
from fuse_index.operations.rewrite_job import RewriteJob
from fuse_index.operations.unindexed import blocks_to_index
from fuse_index.operations.verify_index import check_index
from fuse_index.signals.build_failures import BUILD_FAILURES, describe_failure
from fuse_index.sources.formats import open_source
from fuse_index.sources.sync import sync_table
from fuse_index.upkeep.due_blocks import compact_job, recluster_job
from fuse_index.upkeep.due_times import VERIFIED_BLOCKS
from fuse_index.upkeep.task import DueTask, UpkeepContext
from fuse_storage import SourceVersion, StoredTable, record_upkeep

_BUILD_TASKS_A_STEP = 4
"""Tasks of up to 64 blocks each."""


class Stepped(NamedTuple):
    """Where a step ended, whether it was of any use, and what a kind failed at in it."""

    table: StoredTable
    gained: bool = True
    problem: str | None = None


Step = Callable[[UpkeepContext, DueTask], Stepped]
"""Does one step at the head of a table."""


def run_step(step: Step, context: UpkeepContext, task: DueTask) -> Stepped:
    """Do a step, say in each of its commits why, and record if nothing was gained.

    Raises Conflict where others were faster, IndexFault for an index that is not sound, StorageError.
    """
    with _told(task):
        done = step(context, task)
        if done.gained:
            return done
        name, version = _record_name(context, task), context.table.snapshot.version
        return Stepped(
            record_upkeep(done.table, task.task, name, version, {"gain": "none before blocks come"}),
            False,
            done.problem,
        )


@contextmanager
def _told(task: DueTask) -> Iterator[None]:
    """Let commits say which task they are of, why it was due, how long it took until then, and what it was to read."""
    began = monotonic()

    def members() -> Mapping[str, Any]:
        told = {"task": task.task, "why": task.why, "seconds": round(monotonic() - began, 3), "bytes": task.bytes}
        return {"maintained": told if task.index is None else {**told, "index": task.index}}

    with storage.said_of_commits(members):
        yield


def _record_name(context: UpkeepContext, task: DueTask) -> str:
    return task.task if task.index is None else f"{task.task}:{_definition(context, task.index).key}"


def _definition(context: UpkeepContext, name: str | None) -> IndexDefinition:
    return next(each for each in context.definitions if each.name == name)


def _compact(context: UpkeepContext, task: DueTask) -> Stepped:
    return _one_commit(compact_job(context.table, index_builders(context.table.snapshot, context.host)))


def _recluster(context: UpkeepContext, task: DueTask) -> Stepped:
    builders = index_builders(context.table.snapshot, context.host)
    job = recluster_job(context.table, context.host, context.policy.target_depth, builders)
    return Stepped(context.table, gained=False) if job is None else _one_commit(job)


def _one_commit(job: RewriteJob) -> Stepped:
    """Run a job up to its first commit: of blocks that a rewrite would not improve it goes on to the next ones."""
    before = job.table
    while job.commit([job.run(each) for each in job.plan_tasks()]) and job.table is before:
        pass
    gained = job.table is not before and "removed_blocks" in job.table.snapshot.summary  # else segments were joined
    return Stepped(job.table, gained)


def _refresh(context: UpkeepContext, task: DueTask) -> Stepped:
    definition = _definition(context, task.index)
    builder = IndexBuilder.for_definition(definition, context.host)
    tasks = plan_refresh(context.table, definition, context.host)[:_BUILD_TASKS_A_STEP]
    done = run_build_tasks(context.table, tasks)
    before, after = (len(blocks_to_index(table, builder)) for table in (context.table, done))
    failure = BUILD_FAILURES.find(definition.key) if after else None
    return Stepped(done, after < before, failure and describe_failure(failure))


def _vacuum(context: UpkeepContext, task: DueTask) -> Stepped:
    found = storage.vacuum_table(context.table.store, context.policy.retention)
    summary = {"files": sum(found.files.values()), "deleted_bytes": sum(found.bytes.values())}
    return Stepped(record_upkeep(context.table, "vacuum", "vacuum", int(context.now.timestamp()), summary))


def _verify(context: UpkeepContext, task: DueTask) -> Stepped:
    table, faults = context.table, list[IndexFault]()
    for definition in context.definitions:
        found = check_index(table, definition, context.host, VERIFIED_BLOCKS, seed=table.snapshot.version)
        faults += [IndexFault(found.index, definition.kind, "not sound", text) for text in found.problems[:1]]
    summary = {"indexes": len(context.definitions), "problems": [str(fault) for fault in faults]}
    done = record_upkeep(table, "verify", "verify", int(context.now.timestamp()), summary)
    if faults:
        raise faults[0]
    return Stepped(done)


def _sync(context: UpkeepContext, task: DueTask) -> Stepped:
    table = context.table
    version, options = SourceVersion.of(table.snapshot), dict(getattr(table.store, "options", None) or {})
    return Stepped(sync_table(table, open_source(version.format, version.url, options), host=context.host)[0])


LOCAL_STEPS: Mapping[str, Step] = {
    "compact": _compact,
    "recluster": _recluster,
    "refresh": _refresh,
    "vacuum": _vacuum,
    "verify": _verify,
    "sync": _sync,
}
"""Steps in this process, by task."""
