"""Building what an index lacks: which blocks, in which tasks, in how many processes, committed as it goes.

A build reads blocks and writes sidecars; rows are never touched. Each task is picklable, and a process pool or a Spark
job runs it as it is. What is done is committed every few seconds, so an interrupted build only has to go on.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fuse_index.errors import BuildError
from fuse_index.indexes.builder import IndexBuilder, MissingBuilder, recorded_warnings
from fuse_index.indexes.define import redefine_index
from fuse_index.indexes.definition import IndexDefinition, UnavailableIndex
from fuse_index.indexes.registry import Host, PluginWarning
from fuse_index.operations.unindexed import unindexed_blocks
from fuse_index.signals.build_failures import BUILD_FAILURES, nothing_built, record_failure
from fuse_index.signals.events import IndexBuilt
from fuse_index.signals.listeners import emit
from fuse_storage import BlockFrame, FormatError, NotFound, Sidecar, StagedSidecars, StoredTable

_MAX_BLOCKS_PER_TASK = 64
"""Blocks that one task indexes: their payloads share packs, and so much is lost at most when a build is interrupted."""
_COMMIT_INTERVAL_SECONDS = 10.0
"""What is done is committed about so often."""

_BlockNumbers = npt.NDArray[np.int64]
ProgressCallback = Callable[[int, int], None]
"""Told after each step how many blocks are done, and how many there are to do."""


@dataclass(frozen=True)
class BuildTask:
    """Some blocks of a snapshot to be indexed. Picklable.

    ``blocks_by_segment``: numbers of segments, each with the numbers of blocks in it.
    """

    table: StoredTable
    builder: IndexBuilder
    blocks_by_segment: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def block_count(self) -> int:
        return sum(len(block_numbers) for _, block_numbers in self.blocks_by_segment)


@dataclass(frozen=True)
class BuildResult:
    """What a task wrote: sidecars that nobody sees yet, of how many blocks, warnings and its kind's failure. Small."""

    staged: tuple[StagedSidecars, ...]
    block_count: int
    warning_texts: tuple[str, ...] = ()
    failure: str | None = None

    @property
    def indexed(self) -> int:
        return sum(staged.indexed for staged in self.staged)


def plan_refresh(
    table: StoredTable, definition: IndexDefinition, host: Host, processes: int = 1, strict: bool = False
) -> list[BuildTask]:
    """Plan to index the blocks that the index lacks, and only those; ``strict`` as in ``run_build_tasks``."""
    builder = IndexBuilder.for_definition(definition, host, strict)
    return split_into_tasks(table, builder, unindexed_blocks(table, builder), processes)


def plan_rebuild(
    table: StoredTable,
    existing: IndexDefinition | UnavailableIndex,
    host: Host,
    processes: int = 1,
    strict: bool = False,
) -> list[BuildTask]:
    """Plan to index every block anew, as the index would be defined today, for the table as it is in each task.

    The old sidecars serve until the new ones are there. Where the kind's payload version or a column's type has
    changed, they are of no use, and the index gets a new key first, in a commit. Raises DefinitionError if it can no
    longer be defined.
    """
    definition = redefine_index(existing, table.snapshot.schema, host)
    if definition.key != existing.key:
        transaction = table.transaction().drop_index(existing.name).add_index(existing.name, definition.content)
        table = transaction.commit("redefine index", summary={"index": existing.name})
    return split_into_tasks(
        table,
        IndexBuilder.for_definition(definition, host, strict),
        np.arange(table.segments().base_block_count),
        processes,
    )


def split_into_tasks(
    table: StoredTable, builder: IndexBuilder, blocks: _BlockNumbers, processes: int = 1
) -> list[BuildTask]:
    """Divide blocks into tasks of at most 64, so that every process has some.

    ``blocks``: their numbers in the snapshot, int64, shape (n,), ascending.
    """
    task_size = max(1, min(_MAX_BLOCKS_PER_TASK, -(-len(blocks) // max(processes, 1))))
    segment_starts = table.segments().block_offsets
    segments = np.searchsorted(segment_starts, blocks, side="right") - 1
    shares = [slice(start, start + task_size) for start in range(0, len(blocks), task_size)]
    return [
        BuildTask(table, builder, tuple(_blocks_by_segment(segments[share], blocks[share], segment_starts)))
        for share in shares
    ]


def _blocks_by_segment(
    segments: _BlockNumbers, blocks: _BlockNumbers, segment_starts: _BlockNumbers
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Group blocks by segment; both int64, of one length. Gives segments, each with the numbers of its blocks in it."""
    for segment in np.unique(segments):
        yield int(segment), tuple((blocks[segments == segment] - segment_starts[segment]).tolist())


def run_build_task(task: BuildTask, progress: Callable[[], None] = lambda: None) -> BuildResult:
    """Build the sidecars of a task's blocks; ``progress`` is told after each. Nothing of it is visible until committed.

    Blocks that cannot be read or indexed are warned of, and stay as they are.
    """
    segment_ids = task.table.segments().ids
    writer = task.table.sidecar_writer(task.builder)
    try:
        for segment, block_numbers in task.blocks_by_segment:
            blocks = task.table.blocks(np.array([segment]))
            for number in range(len(blocks)):
                if number in block_numbers:
                    writer.add(_build_sidecar(task, blocks, number))
                    progress()
                else:
                    writer.add(None)
            writer.end_segment(segment_ids[segment])
        return BuildResult(tuple(writer.finish()), task.block_count)
    except BaseException:
        writer.abort()
        raise


def _build_sidecar(task: BuildTask, blocks: BlockFrame, number: int) -> Sidecar | None:
    start, end = blocks.zone_offsets[number], blocks.zone_offsets[number + 1]
    zones = np.append(0, np.cumsum(blocks.zone_rows[start:end]))
    try:
        rows = task.table.read_block(blocks, number, task.builder.columns, None)
    except (FormatError, NotFound) as damage:
        if isinstance(damage, NotFound) and task.table.snapshot.votes_only:
            return None  # a file that left the source stays known until others push it out
        if task.builder.strict:
            raise
        name = task.builder.definition.name
        warnings.warn(
            f"index {name!r} leaves out block {blocks.ids[number]}, which cannot be read: {damage}",
            PluginWarning,
            stacklevel=2,
        )
        return None
    return task.builder.build(rows, zones, f"block {blocks.ids[number]}")


def commit_build_results(builder: IndexBuilder, table: StoredTable, results: Iterable[BuildResult]) -> StoredTable:
    """Make sidecars visible that were built for this table's snapshot, whatever happened to it since."""
    transaction, indexed = table.transaction([builder]), 0
    for result in results:
        transaction.attach_sidecars(builder.key, {staged.segment: staged for staged in result.staged})
        indexed += result.indexed
    return transaction.commit("build index", summary={"index": builder.definition.name, "indexed_blocks": indexed})


def run_build_tasks(
    table: StoredTable,
    tasks: Sequence[BuildTask],
    processes: int = 1,
    progress: ProgressCallback | None = None,
    commit_seconds: float = _COMMIT_INTERVAL_SECONDS,
    *,
    must_build: bool = False,
) -> StoredTable:
    """Run the tasks that were planned for a table; commit now and then, and at the end, whatever that is.

    Returns the table as the last commit left it. A block that its kind cannot index stays as it is, with a
    PluginWarning that names it, unless the tasks are strict: then IndexFault is raised. Raises BuildError if a process
    died (what was done before is kept), or with ``must_build`` if no block was indexed; StorageError.
    """
    if not tasks:
        return table
    if table.store.url.startswith("memory:"):
        processes = 1  # other processes would find nothing there
    started, definition = time.perf_counter(), tasks[0].builder.definition
    meter = _ProgressMeter(sum(task.block_count for task in tasks), progress)
    BUILD_FAILURES.forget(definition.key)
    committer = _Committer(tasks[0].builder, table, commit_seconds)
    try:
        with closing(_run_tasks(tasks, min(processes, len(tasks)), meter)) as results:
            for result in results:
                committer.add(result)
    finally:
        committer.commit()
    head = record_failure(committer.head, "build index", definition.name, definition.key)
    if must_build and not committer.indexed:
        failed = BUILD_FAILURES.find(definition.key) is not None
        raise nothing_built(definition.name, definition.kind, meter.total, failed)
    index, seconds = {"index": definition.name, "kind": definition.kind}, time.perf_counter() - started
    emit(lambda: IndexBuilt(table=table.store.url, seconds=seconds, **index, blocks=committer.indexed))
    return head


@dataclass
class _Committer:
    """Commits what is done, about every so many seconds, always from the snapshot that the tasks are of."""

    builder: IndexBuilder
    table: StoredTable
    seconds: float
    indexed: int = 0

    def __post_init__(self) -> None:
        self.head, self._waiting, self._last = self.table, list[BuildResult](), time.monotonic()

    def add(self, result: BuildResult) -> None:
        if result.staged:
            self._waiting.append(result)
            self.indexed += result.indexed
        if time.monotonic() - self._last >= self.seconds:
            self.commit()

    def commit(self) -> None:
        if self._waiting:
            self.head = commit_build_results(self.builder, self.table, self._waiting)
        self._waiting, self._last = [], time.monotonic()


@dataclass
class _ProgressMeter:
    total: int
    progress: ProgressCallback | None
    done: int = 0

    def step(self, blocks: int = 1) -> None:
        self.done += blocks
        if self.progress is not None:
            self.progress(self.done, self.total)


def _run_tasks(tasks: Sequence[BuildTask], processes: int, meter: _ProgressMeter) -> Generator[BuildResult, None, None]:
    if processes > 1:
        yield from _run_in_processes(tasks, processes, meter)
    else:
        yield from (run_build_task(task, meter.step) for task in tasks)


def _run_in_processes(tasks: Sequence[BuildTask], processes: int, meter: _ProgressMeter) -> Iterator[BuildResult]:
    """Give results as they come. Processes are spawned: threads of this one (Arrow's, stores') die in a fork."""
    import multiprocessing  # which few builds need, and each worker of Spark would pay for
    from concurrent.futures import ProcessPoolExecutor, as_completed
    from concurrent.futures.process import BrokenProcessPool

    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"))
    try:
        for future in as_completed([pool.submit(run_build_task_in_worker, task) for task in tasks]):
            result = future.result()
            for problem in result.warning_texts:
                warnings.warn(problem, PluginWarning, stacklevel=2)
            if result.failure is not None:
                BUILD_FAILURES.note(tasks[0].builder.key, result.failure)
            meter.step(result.block_count)
            yield result
    except BrokenProcessPool as death:
        advice = "it may have run out of memory: what was done is kept, refresh the index with fewer processes"
        raise BuildError(f"a process that built index {tasks[0].builder.definition.name!r} died; {advice}") from death
    finally:
        pool.shutdown(cancel_futures=True)


def run_build_task_in_worker(task: BuildTask) -> BuildResult:
    """Run a task in another process, whose warnings nobody would see: they are in the result.

    Raises BuildError if the index's kind is not installed there.
    """
    arrived: object = task.builder
    if isinstance(arrived, MissingBuilder):
        raise BuildError(str(arrived))
    BUILD_FAILURES.forget(task.builder.key)
    with recorded_warnings() as texts:
        result = run_build_task(task)
    return replace(result, warning_texts=tuple(texts), failure=BUILD_FAILURES.find(task.builder.key))
