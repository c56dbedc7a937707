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
from fuse_index.indexes.builder import Builder
from fuse_index.indexes.definition import Definition, Unavailable, renewed
from fuse_index.indexes.registry import Host, PluginWarning
from fuse_storage import Blocks, FormatError, NotFound, Sidecar, SidecarRows, StagedSidecars, Table

TASK_BLOCKS = 64
"""Blocks that one task indexes: their payloads share packs, and so much is lost at most when a build is interrupted."""
COMMIT_SECONDS = 10.0
"""What is done is committed about so often."""

Numbers = npt.NDArray[np.int64]
Progress = Callable[[int, int], None]
"""Told after each step how many blocks are done, and how many there are to do."""


@dataclass(frozen=True)
class Task:
    """Some blocks of a snapshot to be indexed. ``parts``: numbers of segments, each with the numbers of blocks in
    it.
    """

    table: Table
    builder: Builder
    parts: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def blocks(self) -> int:
        return sum(len(places) for _, places in self.parts)


@dataclass(frozen=True)
class Built:
    """What a task wrote: sidecars that nobody sees yet, of how many blocks, and what went wrong. Picklable and
    small.
    """

    staged: tuple[StagedSidecars, ...]
    blocks: int
    problems: tuple[str, ...] = ()


def refresh(
    table: Table,
    definition: Definition,
    host: Host,
    processes: int = 1,
    progress: Progress | None = None,
    *,
    strict: bool = False,
    commit_seconds: float = COMMIT_SECONDS,
) -> Table:
    """Index the blocks that the index lacks, and only those; the table as that left it.

    A block that its kind cannot index stays as it is, with a PluginWarning that names it; ``strict`` raises IndexFault
    instead. Raises BuildError if a process died (what was done before is kept), StorageError.
    """
    return _build(table, refreshing(table, definition, host, processes, strict), processes, progress, commit_seconds)


def rebuild(
    table: Table,
    found: Definition | Unavailable,
    host: Host,
    processes: int = 1,
    progress: Progress | None = None,
    *,
    strict: bool = False,
    commit_seconds: float = COMMIT_SECONDS,
) -> Table:
    """Index every block anew, as the index would be defined today; the old sidecars serve until the new ones are there.

    Raises as ``refresh`` and ``rebuilding`` do.
    """
    work = rebuilding(table, found, host, processes, strict)
    return _build(work[0].table if work else table.refresh(), work, processes, progress, commit_seconds)


def refreshing(
    table: Table, definition: Definition, host: Host, processes: int = 1, strict: bool = False
) -> list[Task]:
    """The work of indexing the blocks that the index lacks."""
    builder = Builder.of(definition, host, strict)
    return tasks(table, builder, missing(table, builder), processes)


def rebuilding(
    table: Table, found: Definition | Unavailable, host: Host, processes: int = 1, strict: bool = False
) -> list[Task]:
    """The work of indexing every block anew, for the table as it is in each task.

    Where the kind's payload version or a column's type has changed, the old sidecars are of no use, and the index gets
    a new key first, in a commit. Raises DefinitionError if it can no longer be defined.
    """
    definition = renewed(found, table.snapshot.schema, host)
    if definition.key != found.key:
        transaction = table.transaction().undefine(found.name).define(found.name, definition.content)
        table = transaction.commit("redefine index", summary={"index": found.name})
    return tasks(table, Builder.of(definition, host, strict), np.arange(table.segments().total_blocks), processes)


def missing(table: Table, builder: Builder) -> Numbers:
    """Numbers of the blocks that are not indexed, in a version that cannot be read, or whose pack is gone or cut
    short.
    """
    sidecars = table.blocks().sidecars(builder.key)
    if sidecars is None:
        return np.arange(table.segments().total_blocks)
    usable = sidecars.indexed & np.isin(sidecars.versions, list(builder.kind.reads))
    usable[_without_pack(table, sidecars)] = False
    return np.flatnonzero(~usable)


def _without_pack(table: Table, sidecars: SidecarRows) -> Numbers:
    packs = sidecars.packs()
    folders = {pack.key.rpartition("/")[0] for pack, _ in packs}
    sizes = {held.key: held.size for folder in folders for held in table.store.list(folder)}
    gone = [members for pack, members in packs if sizes.get(pack.key) != pack.length]
    return np.concatenate([np.zeros(0, np.int64), *gone])


def tasks(table: Table, builder: Builder, blocks: Numbers, processes: int = 1) -> list[Task]:
    """The work of indexing these blocks (by their numbers in the snapshot), cut so that every process has some."""
    size = max(1, min(TASK_BLOCKS, -(-len(blocks) // max(processes, 1))))
    first = table.segments().first_block
    owners = np.searchsorted(first, blocks, side="right") - 1
    portions = [slice(start, start + size) for start in range(0, len(blocks), size)]
    return [Task(table, builder, tuple(_parts(owners[portion], blocks[portion], first))) for portion in portions]


def _parts(owners: Numbers, blocks: Numbers, first: Numbers) -> Iterator[tuple[int, tuple[int, ...]]]:
    for owner in np.unique(owners):
        yield int(owner), tuple((blocks[owners == owner] - first[owner]).tolist())


def run(task: Task, progress: Callable[[], None] = lambda: None) -> Built:
    """Build the sidecars of a task's blocks; ``progress`` is told after each. Nothing of it is visible until committed.

    Blocks that cannot be read or indexed are warned of, and stay as they are.
    """
    ids = task.table.segments().ids
    writer = task.table.sidecar_writer(task.builder)
    try:
        for segment, places in task.parts:
            blocks = task.table.blocks(np.array([segment]))
            for place in range(len(blocks)):
                if place in places:
                    writer.add(_sidecar(task, blocks, place))
                    progress()
                else:
                    writer.add(None)
            writer.end_segment(ids[segment])
        return Built(tuple(writer.finish()), task.blocks)
    except BaseException:
        writer.abort()
        raise


def _sidecar(task: Task, blocks: Blocks, place: int) -> Sidecar | None:
    start, end = blocks.zone_offsets[place], blocks.zone_offsets[place + 1]
    zones = np.append(0, np.cumsum(blocks.zone_rows[start:end]))
    try:
        rows = task.table.read(blocks, place, task.builder.columns, None)
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


def commit(builder: Builder, table: Table, done: Iterable[Built]) -> Table:
    """Make sidecars visible that were built for this table's snapshot, whatever happened to it since."""
    transaction = table.transaction([builder])
    count = 0
    for built in done:
        transaction.attach(builder.key, {staged.segment: staged for staged in built.staged})
        count += sum(staged.indexed for staged in built.staged)
    return transaction.commit("build index", summary={"index": builder.definition.name, "indexed_blocks": count})


def _build(
    table: Table, work: Sequence[Task], processes: int, progress: Progress | None, commit_seconds: float
) -> Table:
    """Run the tasks, committing now and then, and whatever ends them."""
    if not work:
        return table
    if table.store.url.startswith("memory:"):
        processes = 1  # other processes would find nothing there
    meter, keeper = _Meter(sum(task.blocks for task in work), progress), _Keeper(work[0].builder, table, commit_seconds)
    try:
        with closing(_results(work, min(processes, len(work)), meter)) as results:
            for built in results:
                keeper.add(built)
    finally:
        keeper.commit()
    return keeper.head


@dataclass
class _Keeper:
    """Commits what is done, about every so many seconds, always from the snapshot that the tasks are of."""

    builder: Builder
    table: Table
    seconds: float

    def __post_init__(self) -> None:
        self.head, self._waiting, self._last = self.table, list[Built](), time.monotonic()

    def add(self, built: Built) -> None:
        if built.staged:
            self._waiting.append(built)
        if time.monotonic() - self._last >= self.seconds:
            self.commit()

    def commit(self) -> None:
        if self._waiting:
            self.head = commit(self.builder, self.table, self._waiting)
        self._waiting, self._last = [], time.monotonic()


@dataclass
class _Meter:
    total: int
    progress: Progress | None
    done: int = 0

    def step(self, blocks: int = 1) -> None:
        self.done += blocks
        if self.progress is not None:
            self.progress(self.done, self.total)


def _results(work: Sequence[Task], processes: int, meter: _Meter) -> Generator[Built, None, None]:
    if processes > 1:
        yield from _in_processes(work, processes, meter)
    else:
        yield from (run(task, meter.step) for task in work)


def _in_processes(work: Sequence[Task], processes: int, meter: _Meter) -> Iterator[Built]:
    """Results as they come. Processes are spawned: threads of this one (Arrow's, the stores') do not survive a fork."""
    pool = ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"))
    try:
        for future in as_completed([pool.submit(run_elsewhere, task) for task in work]):
            built = future.result()
            for problem in built.problems:
                warnings.warn(problem, PluginWarning, stacklevel=2)
            meter.step(built.blocks)
            yield built
    except BrokenProcessPool as death:
        advice = "it may have run out of memory: what was done is kept, refresh the index with fewer processes"
        raise BuildError(f"a process that built index {work[0].builder.definition.name!r} died; {advice}") from death
    finally:
        pool.shutdown(cancel_futures=True)


def run_elsewhere(task: Task) -> Built:
    """In another process, whose warnings nobody would see: they are among the results."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        built = run(task)
    return replace(
        built, problems=tuple(str(warning.message) for warning in caught if issubclass(warning.category, PluginWarning))
    )
