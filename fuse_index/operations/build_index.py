"""Building what an index lacks: which blocks, in which portions, in how many processes, committed as it goes.

A build reads blocks and writes sidecars; rows are never touched. Each portion is a picklable task that a process pool,
or a Spark job, runs as it is. What is done is committed every few seconds, so an interrupted build only has to go on.
"""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from fuse_index.errors import BuildError
from fuse_index.indexes.builder import IndexBuilder
from fuse_index.indexes.definition import IndexDefinition, UnavailableIndex, redefine_index
from fuse_index.indexes.registry import Host, PluginWarning
from fuse_storage import BlockFrame, FormatError, NotFound, Sidecar, SidecarRows, StagedSidecars, StoredTable

MAX_BLOCKS_PER_TASK = 64
"""Blocks that one task indexes: their payloads share packs, and so much is lost at most when a build is interrupted."""
COMMIT_INTERVAL_SECONDS = 10.0
"""What is done is committed about so often."""

_BlockNumbers = npt.NDArray[np.int64]
ProgressCallback = Callable[[int, int], None]
"""Told after each step how many blocks are done, and how many there are to do."""


@dataclass(frozen=True)
class BuildTask:
    """Some blocks of a snapshot to be indexed. ``parts``: numbers of segments, each with the numbers of blocks in
    it.
    """

    table: StoredTable
    builder: IndexBuilder
    blocks_by_segment: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def block_count(self) -> int:
        return sum(len(places) for _, places in self.blocks_by_segment)


@dataclass(frozen=True)
class BuildResult:
    """What a task wrote: sidecars that nobody sees yet, of how many blocks, and what went wrong. Picklable and
    small.
    """

    staged: tuple[StagedSidecars, ...]
    block_count: int
    warning_texts: tuple[str, ...] = ()


def refresh_index(
    table: StoredTable,
    definition: IndexDefinition,
    host: Host,
    processes: int = 1,
    progress: ProgressCallback | None = None,
    *,
    strict: bool = False,
    commit_seconds: float = COMMIT_INTERVAL_SECONDS,
) -> StoredTable:
    """Index the blocks that the index lacks, and only those; the table as that left it.

    A block that its kind cannot index stays as it is, with a PluginWarning that names it; ``strict`` raises IndexFault
    instead. Raises BuildError if a process died (what was done before is kept), StorageError.
    """
    return _run_and_commit(
        table, plan_refresh(table, definition, host, processes, strict), processes, progress, commit_seconds
    )


def rebuild_index(
    table: StoredTable,
    existing: IndexDefinition | UnavailableIndex,
    host: Host,
    processes: int = 1,
    progress: ProgressCallback | None = None,
    *,
    strict: bool = False,
    commit_seconds: float = COMMIT_INTERVAL_SECONDS,
) -> StoredTable:
    """Index every block anew, as the index would be defined today; the old sidecars serve until the new ones are there.

    Raises as ``refresh`` and ``rebuilding`` do.
    """
    work = plan_rebuild(table, existing, host, processes, strict)
    return _run_and_commit(work[0].table if work else table.refresh(), work, processes, progress, commit_seconds)


def plan_refresh(
    table: StoredTable, definition: IndexDefinition, host: Host, processes: int = 1, strict: bool = False
) -> list[BuildTask]:
    """The work of indexing the blocks that the index lacks."""
    builder = IndexBuilder.for_definition(definition, host, strict)
    return split_into_tasks(table, builder, unindexed_blocks(table, builder), processes)


def plan_rebuild(
    table: StoredTable,
    existing: IndexDefinition | UnavailableIndex,
    host: Host,
    processes: int = 1,
    strict: bool = False,
) -> list[BuildTask]:
    """The work of indexing every block anew, for the table as it is in each task.

    Where the kind's payload version or a column's type has changed, the old sidecars are of no use, and the index gets
    a new key first, in a commit. Raises DefinitionError if it can no longer be defined.
    """
    definition = redefine_index(existing, table.snapshot.schema, host)
    if definition.key != existing.key:
        transaction = table.transaction().drop_index(existing.name).add_index(existing.name, definition.content)
        table = transaction.commit("redefine index", summary={"index": existing.name})
    return split_into_tasks(
        table,
        IndexBuilder.for_definition(definition, host, strict),
        np.arange(table.segments().total_blocks),
        processes,
    )


def unindexed_blocks(table: StoredTable, builder: IndexBuilder) -> _BlockNumbers:
    """Numbers of the blocks that are not indexed, in a version that cannot be read, or whose pack is gone or cut
    short.
    """
    sidecars = table.blocks().sidecars(builder.key)
    if sidecars is None:
        return np.arange(table.segments().total_blocks)
    usable = sidecars.indexed & np.isin(sidecars.versions, list(builder.kind.reads))
    usable[_blocks_without_pack(table, sidecars)] = False
    return np.flatnonzero(~usable)


def _blocks_without_pack(table: StoredTable, sidecars: SidecarRows) -> _BlockNumbers:
    packs = sidecars.packs()
    folders = {pack.key.rpartition("/")[0] for pack, _ in packs}
    sizes = {held.key: held.size for folder in folders for held in table.store.list(folder)}
    gone = [members for pack, members in packs if sizes.get(pack.key) != pack.length]
    return np.concatenate([np.zeros(0, np.int64), *gone])


def split_into_tasks(
    table: StoredTable, builder: IndexBuilder, blocks: _BlockNumbers, processes: int = 1
) -> list[BuildTask]:
    """The work of indexing these blocks (by their numbers in the snapshot), cut so that every process has some."""
    size = max(1, min(MAX_BLOCKS_PER_TASK, -(-len(blocks) // max(processes, 1))))
    first = table.segments().block_offsets
    owners = np.searchsorted(first, blocks, side="right") - 1
    portions = [slice(start, start + size) for start in range(0, len(blocks), size)]
    return [
        BuildTask(table, builder, tuple(_blocks_by_segment(owners[portion], blocks[portion], first)))
        for portion in portions
    ]


def _blocks_by_segment(
    owners: _BlockNumbers, blocks: _BlockNumbers, first: _BlockNumbers
) -> Iterator[tuple[int, tuple[int, ...]]]:
    for owner in np.unique(owners):
        yield int(owner), tuple((blocks[owners == owner] - first[owner]).tolist())


def run_build_task(task: BuildTask, progress: Callable[[], None] = lambda: None) -> BuildResult:
    """Build the sidecars of a task's blocks; ``progress`` is told after each. Nothing of it is visible until committed.

    Blocks that cannot be read or indexed are warned of, and stay as they are.
    """
    ids = task.table.segments().ids
    writer = task.table.sidecar_writer(task.builder)
    try:
        for segment, places in task.blocks_by_segment:
            blocks = task.table.blocks(np.array([segment]))
            for place in range(len(blocks)):
                if place in places:
                    writer.add(_build_sidecar(task, blocks, place))
                    progress()
                else:
                    writer.add(None)
            writer.end_segment(ids[segment])
        return BuildResult(tuple(writer.finish()), task.block_count)
    except BaseException:
        writer.abort()
        raise


def _build_sidecar(task: BuildTask, blocks: BlockFrame, place: int) -> Sidecar | None:
    start, end = blocks.zone_offsets[place], blocks.zone_offsets[place + 1]
    zones = np.append(0, np.cumsum(blocks.zone_rows[start:end]))
    try:
        rows = task.table.read_block(blocks, place, task.builder.columns, None)
    except (FormatError, NotFound) as damage:
        if task.builder.strict:
            raise
        name = task.builder.definition.name
        warnings.warn(
            f"index {name!r} leaves out block {blocks.ids[place]}, which cannot be read: {damage}",
            PluginWarning,
            stacklevel=2,
        )
        return None
    return task.builder.build(rows, zones, f"block {blocks.ids[place]}")


def commit_build_results(builder: IndexBuilder, table: StoredTable, results: Iterable[BuildResult]) -> StoredTable:
    """Make sidecars visible that were built for this table's snapshot, whatever happened to it since."""
    transaction = table.transaction([builder])
    count = 0
    for built in results:
        transaction.attach_sidecars(builder.key, {staged.segment: staged for staged in built.staged})
        count += sum(staged.indexed for staged in built.staged)
    return transaction.commit("build index", summary={"index": builder.definition.name, "indexed_blocks": count})


def _run_and_commit(
    table: StoredTable,
    work: Sequence[BuildTask],
    processes: int,
    progress: ProgressCallback | None,
    commit_seconds: float,
) -> StoredTable:
    """Run the tasks, committing now and then, and whatever ends them."""
    if not work:
        return table
    if table.store.url.startswith("memory:"):
        processes = 1  # other processes would find nothing there
    meter, keeper = (
        _ProgressMeter(sum(task.block_count for task in work), progress),
        _Committer(work[0].builder, table, commit_seconds),
    )
    try:
        with closing(_run_tasks(work, min(processes, len(work)), meter)) as results:
            for built in results:
                keeper.add(built)
    finally:
        keeper.commit()
    return keeper.head


@dataclass
class _Committer:
    """Commits what is done, about every so many seconds, always from the snapshot that the tasks are of."""

    builder: IndexBuilder
    table: StoredTable
    seconds: float

    def __post_init__(self) -> None:
        self.head, self._waiting, self._last = self.table, list[BuildResult](), time.monotonic()

    def add(self, built: BuildResult) -> None:
        if built.staged:
            self._waiting.append(built)
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


def _run_tasks(work: Sequence[BuildTask], processes: int, meter: _ProgressMeter) -> Generator[BuildResult, None, None]:
    if processes > 1:
        yield from _run_in_processes(work, processes, meter)
    else:
        yield from (run_build_task(task, meter.step) for task in work)


def _run_in_processes(work: Sequence[BuildTask], processes: int, meter: _ProgressMeter) -> Iterator[BuildResult]:
    """Results as they come. Processes are spawned: threads of this one (Arrow's, the stores') do not survive a fork."""
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"))
    try:
        for future in as_completed([pool.submit(run_build_task_in_worker, task) for task in work]):
            built = future.result()
            for problem in built.warning_texts:
                warnings.warn(problem, PluginWarning, stacklevel=2)
            meter.step(built.block_count)
            yield built
    except BrokenProcessPool as death:
        advice = "it may have run out of memory: what was done is kept, refresh the index with fewer processes"
        raise BuildError(f"a process that built index {work[0].builder.definition.name!r} died; {advice}") from death
    finally:
        pool.shutdown(cancel_futures=True)


def run_build_task_in_worker(task: BuildTask) -> BuildResult:
    """In another process, whose warnings nobody would see: they are among the results."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        built = run_build_task(task)
    return replace(
        built,
        warning_texts=tuple(str(warning.message) for warning in caught if issubclass(warning.category, PluginWarning)),
    )
