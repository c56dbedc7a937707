"""A table taken to a state of its source: files that came are looked into, and one commit names what is live.

Only footers of files that came are read, unless columns change so that what was made of older footers may not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import numpy as np

from fuse_index.errors import InputError
from fuse_index.sources.compare import as_opened, compare_files
from fuse_index.sources.file_columns import OpenedFiles, columns_of_files, votable_columns_of_files
from fuse_index.sources.source import Source, SourceState, SourceVersionId
from fuse_storage import (
    VOTES_PROPERTIES,
    AppendSegments,
    BlockReplacement,
    ColumnMatch,
    Field,
    NotFound,
    ReplaceBlocks,
    RowMask,
    SetSource,
    SidecarBuilder,
    Snapshot,
    SourceColumn,
    SourceFile,
    SourceVersion,
    StagedFiles,
    Store,
    StoredTable,
    can_widen,
    create_attached_table,
    first_attached_snapshot,
    mark_narrower,
    open_source_files,
    reads_as_logged,
    set_source,
    stage_deletions,
    stage_source_files,
)

FileProgress = Callable[[int, int], None]
"""Told how many files were looked into, and of how many."""


@dataclass(frozen=True, slots=True)
class SyncResult:
    """What a sync did. ``version``: of the source, as it calls it. ``rows``: in the table now.

    ``reread``: all files were looked into, since columns changed, or it was asked for. ``snapshot``: the table's, the
    former one if nothing had changed. ``unknown_files``: of a table for votes alone, which it cannot know.
    """

    version: SourceVersionId
    added_files: int
    removed_files: int
    kept_files: int
    rows: int
    reread: bool
    snapshot: str
    unknown_files: int = 0

    def to_dict(self) -> Mapping[str, Any]:
        """JSON-able."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """What is to change. ``removed``: blocks by id; ``segment_ids``: those that they are in.

    ``without_votes``: why a column of the source is none of the table, by its name. ``marked``: by number of a block,
    bool, shape (rows,), True where a row does not count any more.
    """

    state: SourceState
    added: tuple[SourceFile, ...]
    opened: OpenedFiles
    removed: tuple[str, ...]
    segment_ids: frozenset[str]
    match: ColumnMatch
    without_votes: Mapping[str, str]
    marked: Mapping[int, RowMask] = field(default_factory=dict)


def sync_table(
    head: StoredTable,
    source: Source,
    to: SourceVersionId | None = None,
    progress: FileProgress | None = None,
    reread: bool = False,
    builders: Sequence[SidecarBuilder] = (),
) -> tuple[StoredTable, SyncResult]:
    """Take a table to the newest state of its source, or to another one, in one commit; none if it is there.

    ``reread``: all files are looked into, and those that are otherwise in any way than they were become new blocks.
    ``builders``: of indexes, which go along where only rows of a file were deleted.
    Raises Conflict where somebody else synced it just now, NotFound where a file vanished meanwhile, InputError,
    SchemaError and Unsupported for what cannot be followed, StorageError.
    """
    votes_only = head.snapshot.votes_only
    plan = plan_sync(head, source, source.state(to, votes_only), progress, reread)
    fields, staged = _stage_plan(head.store, head.snapshot, plan, votes_only)
    done = _commit_staged(head, plan, fields, staged, builders)
    blocks = sum(segment.block_count for segment in staged.segments)
    unknown = len(plan.added) - len(plan.opened) + staged.unknown
    result = SyncResult(
        plan.state.version,
        len(plan.added) - unknown,
        len(plan.removed),
        max(done.snapshot.block_count - blocks, 0),
        done.snapshot.row_count,
        reread or plan.match.reread,
        done.snapshot.id,
        unknown,
    )
    return done, result


def plan_sync(
    head: StoredTable,
    source: Source,
    state: SourceState,
    progress: FileProgress | None = None,
    reread: bool = False,
) -> SyncPlan:
    """Compare a table with a state of its source, and look into the files that came. Raises as ``sync_table``."""
    blocks, votes_only = head.blocks(), head.snapshot.votes_only
    if state.columns is None and len(blocks) and not state.files:  # no log says that this is so
        raise NotFound(
            f"{source.url} has no Parquet file, and the table has {len(blocks)} of its files: bring them back; where "
            f"all rows are to go, leave a file without any"
        )
    look_into = partial(_open, head.store, source, state, progress=progress, votes_only=votes_only)
    every = look_into(state.files) if reread else ()
    live = [as_opened(*pair) for pair in every] if reread else state.files
    found = compare_files(blocks, live, [opened for _, opened in every])
    marked = {} if votes_only else found.mark(blocks, live, _keeps_columns(head.snapshot, state))
    added = tuple(file for file in state.files if file.location not in found.kept)
    opened = [pair for pair in every if pair[0].location not in found.kept] if reread else look_into(added)
    gone = found.gone(_dropped_files(head.snapshot, state))
    kept = len(blocks) > len(gone)
    before = head.snapshot if kept else None  # where no file is left of those that were, their columns bind nobody
    columns, without_votes = _columns(before, state, opened, votes_only)
    match = ColumnMatch.of(head.snapshot, columns)
    if match.reread and kept:
        added, opened, gone = tuple(state.files), look_into(state.files), list(range(len(blocks)))
        columns, without_votes = _columns(None, state, opened, votes_only)
        match = ColumnMatch.of(head.snapshot, columns)
        match.reread, marked = True, {}
    removed = blocks.take(np.array(gone, np.int64))
    segment_ids = head.segments().segments_containing(np.array([*gone, *marked], np.int64))
    return SyncPlan(state, added, opened, tuple(removed.ids), segment_ids, match, without_votes, marked)


def _keeps_columns(snapshot: Snapshot, state: SourceState) -> bool:
    return state.columns is not None and ColumnMatch.of(snapshot, state.columns).fields == snapshot.schema.fields


def _dropped_files(snapshot: Snapshot, state: SourceState) -> int:
    """How many files stay known that left the source's newest version: older ones, of which a log tells, have them."""
    if state.columns is None or not snapshot.votes_only:
        return 0
    return int(snapshot.properties.get("max_dropped_files", VOTES_PROPERTIES["max_dropped_files"]))


def commit_sync(head: StoredTable, plan: SyncPlan) -> StoredTable:
    """Stage the files that came, and commit what changed."""
    return _commit_staged(head, plan, *_stage_plan(head.store, head.snapshot, plan, head.snapshot.votes_only))


def _stage_plan(
    store: Store, snapshot: Snapshot, plan: SyncPlan, votes_only: bool
) -> tuple[tuple[Field, ...], StagedFiles]:
    """Stage the files that came, and tell the columns that they are staged for."""
    fields = plan.match.fields
    staged = _stage(store, snapshot, plan, fields, votes_only)
    narrower = staged.narrower - {part.id for top in fields for part in top.walk() if part.type_changed}
    if narrower:
        fields = mark_narrower(fields, narrower)
        staged = _stage(store, snapshot, plan, fields, votes_only)
    return fields, staged


def _commit_staged(
    head: StoredTable,
    plan: SyncPlan,
    fields: tuple[Field, ...],
    staged: StagedFiles,
    builders: Sequence[SidecarBuilder] = (),
) -> StoredTable:
    before = SourceVersion.of(head.snapshot)
    unread = staged.unread if plan.match.reread else staged.unread | set(before.unread)
    version = SourceVersion(before.format, before.url, plan.state.version, tuple(sorted(unread)))
    transaction = head.transaction(builders).stage(SetSource(version, fields))
    if plan.removed or plan.marked:
        marked = stage_deletions(head, builders, plan.marked)
        replacements = [BlockReplacement((head.blocks().ids[number],), 1) for number in plan.marked]
        replacements += [BlockReplacement((block_id,)) for block_id in plan.removed]
        transaction.stage(ReplaceBlocks(replacements, marked, plan.segment_ids, name="sync"), marked)
    if staged.segments:
        transaction.stage(AppendSegments(staged.segments), staged.segments)
    summary: dict[str, Any] = {"source_version": plan.state.version}
    if plan.without_votes:
        summary["without_votes"] = dict(plan.without_votes)
    return transaction.commit("sync", summary=summary)


def _stage(
    store: Store, snapshot: Snapshot, plan: SyncPlan, fields: tuple[Field, ...], votes_only: bool
) -> StagedFiles:
    schema = set_source(snapshot, SourceVersion.of(snapshot), fields).schema
    widens = can_widen if plan.state.columns is None else reads_as_logged
    return stage_source_files(store, schema, plan.state.by_id, plan.opened, widens, votes_only)


def _open(
    store: Store,
    source: Source,
    state: SourceState,
    files: Sequence[SourceFile],
    progress: FileProgress | None,
    votes_only: bool,
) -> OpenedFiles:
    try:
        return open_source_files(store, source.url, files, progress, votes_only)
    except NotFound as missing:
        raise NotFound(f"{missing}: {_why_missing(source, state)}") from missing


def _why_missing(source: Source, state: SourceState) -> str:
    """Say why a file of a state is not there, and what to do."""
    if state.columns is None:
        return f"it vanished from {source.url} while this looked into it; sync again"
    if (newest := source.state().version) != state.version:
        return (
            f"version {state.version} of {source.url} needs it, and it was deleted there since: sync to a later "
            f"version (the newest is {newest})"
        )
    return f"the newest version of {source.url} lists it: bring it back there, or repair the table at the source"


def _columns(
    before: Snapshot | None, state: SourceState, opened: OpenedFiles, votes_only: bool
) -> tuple[tuple[SourceColumn, ...], Mapping[str, str]]:
    """The columns of a state; where only files say it, those of the table's kept files and of these.

    And why there are no votes on others, by their names.
    """
    if state.columns is not None:
        return state.columns, state.without_votes
    if votes_only:
        return votable_columns_of_files(before, state, opened)
    return columns_of_files(before, state, opened), {}


def attach_source(
    store: Store,
    source: Source,
    properties: Mapping[str, Any],
    progress: FileProgress | None = None,
    votes_only: bool = False,
) -> StoredTable:
    """Create a table over a source, and bring it to its newest state. Raises as ``sync_table``.

    ``votes_only``: no row will be read through it.

    AlreadyExists where there is a table or anything else, InputError for a place within the source.

    All files are staged before there is a table: where one is refused, the place stays free.
    """
    if store.url.startswith(f"{source.url}/"):
        raise InputError(
            f"{store.url} is within {source.url}, where nothing is to be written: attach it to a place beside"
        )
    state = source.state(votes_only=votes_only)
    if state.columns is None and not state.files:
        raise NotFound(f"{source.url} has no Parquet file, which would say what columns there are: put one there first")
    opened = _open(store, source, state, state.files, progress, votes_only)
    columns, without_votes = _columns(None, state, opened, votes_only)
    version = SourceVersion(source.format, source.url, None)
    first = first_attached_snapshot(store, columns, version, properties, votes_only)
    match = ColumnMatch.of(first, columns)
    plan = SyncPlan(state, tuple(state.files), opened, (), frozenset(), match, without_votes)
    staged = _stage_plan(store, first, plan, votes_only)
    return _commit_staged(create_attached_table(store, first), plan, *staged)
