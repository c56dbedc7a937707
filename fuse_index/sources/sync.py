"""A table taken to a state of its source: files that came are looked into, and one commit names what is live.

Only footers of files that came are read, unless columns change so that what was made of older footers may not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from fuse_index.errors import InputError
from fuse_index.sources.source import Source, SourceState, SourceVersionId
from fuse_storage import (
    AppendSegments,
    BlockFrame,
    BlockReplacement,
    ColumnMatch,
    Field,
    NotFound,
    OpenedFile,
    ReplaceBlocks,
    SetSource,
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
    merge_file_schemas,
    modified_microseconds,
    open_source_files,
    plain_source_columns,
    read_file_schema,
    reads_as_logged,
    set_source,
    stage_source_files,
    storable_schema,
)

FileProgress = Callable[[int, int], None]
"""Told how many files were looked into, and of how many."""


@dataclass(frozen=True, slots=True)
class SyncResult:
    """What a sync did. ``version``: of the source, as it calls it. ``rows``: in the table now.

    ``reread``: all files were looked into, since columns changed, or it was asked for. ``snapshot``: the table's, the
    former one if nothing had changed.
    """

    version: SourceVersionId
    added_files: int
    removed_files: int
    kept_files: int
    rows: int
    reread: bool
    snapshot: str

    def to_dict(self) -> Mapping[str, Any]:
        """JSON-able."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """What is to change. ``removed``: blocks by id; ``segment_ids``: those that they are in."""

    state: SourceState
    added: tuple[SourceFile, ...]
    opened: tuple[OpenedFile, ...]
    removed: tuple[str, ...]
    segment_ids: frozenset[str]
    match: ColumnMatch


def sync_table(
    head: StoredTable,
    source: Source,
    to: SourceVersionId | None = None,
    progress: FileProgress | None = None,
    reread: bool = False,
) -> tuple[StoredTable, SyncResult]:
    """Take a table to the newest state of its source, or to another one, in one commit; none if it is there.

    ``reread``: all files are looked into, and those that are otherwise in any way than they were become new blocks.
    Raises Conflict where somebody else synced it just now, NotFound where a file vanished meanwhile, InputError,
    SchemaError and Unsupported for what cannot be followed, StorageError.
    """
    plan = plan_sync(head, source, source.state(to), progress, reread)
    done = commit_sync(head, plan)
    kept = done.snapshot.block_count - sum(1 for each in plan.opened if each.parsed.row_count)
    result = SyncResult(
        plan.state.version,
        len(plan.added),
        len(plan.removed),
        max(kept, 0),
        done.snapshot.row_count,
        reread or plan.match.reread,
        done.snapshot.id,
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
    blocks = head.blocks()
    if state.columns is None and len(blocks) and not state.files:  # no log says that this is so
        raise NotFound(
            f"{source.url} has no Parquet file, and the table has {len(blocks)} of its files: bring them back; where "
            f"all rows are to go, leave a file without any"
        )
    if reread:
        every = _open(head.store, source, state, state.files, progress)
        gone, kept = _compare(blocks, [_as_opened(*pair) for pair in zip(state.files, every, strict=True)], every)
        chosen = [pair for pair in zip(state.files, every, strict=True) if pair[0].location not in kept]
        added, opened = tuple(file for file, _ in chosen), [each for _, each in chosen]
    else:
        gone, kept = _compare(blocks, state.files)
        added = tuple(file for file in state.files if file.location not in kept)
        opened = _open(head.store, source, state, added, progress)
    before = head.snapshot if kept else None  # where no file is left of those that were, their columns bind nobody
    match = ColumnMatch.of(head.snapshot, _columns(before, state, added, opened))
    if match.reread and kept:
        opened = _open(head.store, source, state, state.files, progress)
        added, gone = tuple(state.files), list(range(len(blocks)))
        match = ColumnMatch.of(head.snapshot, _columns(None, state, added, opened))
        match.reread = True
    removed = blocks.take(np.array(gone, np.int64))
    segment_ids = head.segments().segments_containing(removed.ordinals)
    return SyncPlan(state, added, tuple(opened), tuple(removed.ids), segment_ids, match)


def commit_sync(head: StoredTable, plan: SyncPlan) -> StoredTable:
    """Stage the files that came, and commit what changed."""
    return _commit_staged(head, plan, *_stage_plan(head.store, head.snapshot, plan))


def _stage_plan(store: Store, snapshot: Snapshot, plan: SyncPlan) -> tuple[tuple[Field, ...], StagedFiles]:
    """Stage the files that came, and tell the columns that they are staged for."""
    fields = plan.match.fields
    staged = _stage(store, snapshot, plan, fields)
    narrower = staged.narrower - {part.id for top in fields for part in top.walk() if part.type_changed}
    if narrower:
        fields = mark_narrower(fields, narrower)
        staged = _stage(store, snapshot, plan, fields)
    return fields, staged


def _commit_staged(head: StoredTable, plan: SyncPlan, fields: tuple[Field, ...], staged: StagedFiles) -> StoredTable:
    before = SourceVersion.of(head.snapshot)
    unread = staged.unread if plan.match.reread else staged.unread | set(before.unread)
    version = SourceVersion(before.format, before.url, plan.state.version, tuple(sorted(unread)))
    transaction = head.transaction().stage(SetSource(version, fields))
    if plan.removed:
        removals = tuple(BlockReplacement((block_id,)) for block_id in plan.removed)
        transaction.stage(ReplaceBlocks(removals, (), plan.segment_ids, name="sync"))
    if staged.segments:
        transaction.stage(AppendSegments(staged.segments), staged.segments)
    return transaction.commit("sync", summary={"source_version": plan.state.version})


def _stage(store: Store, snapshot: Snapshot, plan: SyncPlan, fields: tuple[Field, ...]) -> StagedFiles:
    schema = set_source(snapshot, SourceVersion.of(snapshot), fields).schema
    widens = can_widen if plan.state.columns is None else reads_as_logged
    return stage_source_files(store, schema, plan.state.by_id, plan.added, plan.opened, widens)


def _as_opened(file: SourceFile, opened: OpenedFile) -> SourceFile:
    """The file as its store had it when it was opened, where it was asked."""
    if opened.meta is None:
        return file
    return replace(file, modified=modified_microseconds(opened.meta), etag=opened.meta.etag)


def _compare(
    blocks: BlockFrame, files: Sequence[SourceFile], opened: Sequence[OpenedFile] = ()
) -> tuple[list[int], set[str]]:
    """The blocks whose files are gone or changed, by their numbers in the frame, and the locations of all others.

    ``opened``: the files, where they were looked into.
    """
    live = {file.location: file for file in files}
    seals = {file.location: each.seal for file, each in zip(files, opened, strict=False)}
    gone, kept = [], set[str]()
    known = zip(blocks.sizes.tolist(), blocks.seals.tolist(), strict=True)
    versions = zip(blocks.foreign.modified.tolist(), blocks.foreign.etags, strict=True)
    rows = zip(blocks.locations, known, versions, strict=True)
    for number, (location, (size, seal), version) in enumerate(rows):
        file = live.get(location)
        same = file is not None and (size, seals.get(location, seal)) == (file.size, seal)
        if file is None or not same or location in kept or _is_newer(file, *version):
            gone.append(number)
        else:
            kept.add(location)
    return gone, kept


def _is_newer(file: SourceFile, modified: int, etag: str | None) -> bool:
    """Whether what a store says of a file is not what it said once, as far as it says anything."""
    return file.modified not in (None, modified) or (None not in (file.etag, etag) and file.etag != etag)


def _open(
    store: Store,
    source: Source,
    state: SourceState,
    files: Sequence[SourceFile],
    progress: FileProgress | None,
) -> list[OpenedFile]:
    try:
        return open_source_files(store, source.url, files, progress)
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
    before: Snapshot | None, state: SourceState, files: Sequence[SourceFile], opened: Sequence[OpenedFile]
) -> tuple[SourceColumn, ...]:
    """The columns of a state; where only files say it, those of the table's kept files and of these."""
    if state.columns is not None:
        return state.columns
    constants = set(state.partitions.names)
    found: dict[str, pa.Schema] = {}
    if before is not None:
        kept = [field for field in before.schema.parquet_schema if field.name not in constants]
        found["the table"] = pa.schema([_plain(field) for field in kept])
    for file, each in zip(files, opened, strict=True):
        footer = each.footer()
        schema = storable_schema(read_file_schema(footer), footer, each.where)
        found[file.location] = pa.schema([field for field in schema if field.name not in constants])
    merged = merge_file_schemas(found, can_widen)
    return plain_source_columns([*merged, *state.partitions])


def _plain(field: pa.Field) -> pa.Field:
    """A column as ``storable_schema`` gives it: all of it nullable, and without ids."""
    kind = field.type
    if pa.types.is_struct(kind):
        kind = pa.struct([_plain(part) for part in kind])
    elif pa.types.is_map(kind):
        kind = pa.map_(_plain(kind.key_field).type, _plain(kind.item_field).type)
    elif pa.types.is_list(kind):
        kind = pa.list_(_plain(kind.value_field.with_name("element")))
    return pa.field(field.name, kind)


def attach_source(
    store: Store, source: Source, properties: Mapping[str, Any], progress: FileProgress | None = None
) -> StoredTable:
    """Create a table over a source, and bring it to its newest state. Raises as ``sync_table``.

    AlreadyExists where there is a table or anything else, InputError for a place within the source.

    All files are staged before there is a table: where one is refused, the place stays free.
    """
    if store.url.startswith(f"{source.url}/"):
        raise InputError(
            f"{store.url} is within {source.url}, where nothing is to be written: attach it to a place beside"
        )
    state = source.state()
    if state.columns is None and not state.files:
        raise NotFound(f"{source.url} has no Parquet file, which would say what columns there are: put one there first")
    opened = _open(store, source, state, state.files, progress)
    columns = _columns(None, state, state.files, opened)
    version = SourceVersion(source.format, source.url, None)
    first = first_attached_snapshot(store, columns, version, properties)
    match = ColumnMatch.of(first, columns)
    plan = SyncPlan(state, tuple(state.files), tuple(opened), (), frozenset(), match)
    staged = _stage_plan(store, first, plan)
    return _commit_staged(create_attached_table(store, first), plan, *staged)
