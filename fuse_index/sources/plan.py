"""What a sync is to change: a state of a source is compared with a table, and files that came are looked into."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import partial

import numpy as np

from fuse_index.errors import InputError
from fuse_index.indexes.engine import Engine
from fuse_index.sources.compare import as_opened, compare_files
from fuse_index.sources.deletes.deleted_rows import DeletedRows
from fuse_index.sources.deletes.key_holders import find_holders
from fuse_index.sources.file_columns import OpenedFiles, columns_of_files, votable_columns_of_files, without_unreadable
from fuse_index.sources.source import ChosenColumns, Source, SourceState
from fuse_storage import (
    VOTES_PROPERTIES,
    ColumnMatch,
    NotFound,
    RowMask,
    Snapshot,
    SourceChoice,
    SourceFile,
    SourceVersion,
    Store,
    StoredTable,
    Unsupported,
    open_source_files,
)

FileProgress = Callable[[int, int], None]
"""Told how many files were looked into, and of how many."""


@dataclass(frozen=True, slots=True)
class SyncPlan:
    """What is to change. ``removed``: blocks by id; ``segment_ids``: those that they are in.

    ``marked``: by number of a block, bool, shape (rows,), True where a row does not count any more; ``names``: what the
    source calls these deletes. ``unknown``: why a file that came is not opened, by its place.
    """

    state: SourceState
    added: tuple[SourceFile, ...]
    opened: OpenedFiles
    removed: tuple[str, ...]
    segment_ids: frozenset[str]
    match: ColumnMatch
    chosen: ChosenColumns
    marked: Mapping[int, RowMask] = field(default_factory=dict)
    names: Mapping[int, str | None] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)


def plan_sync(
    head: StoredTable,
    source: Source,
    state: SourceState,
    progress: FileProgress | None = None,
    reread: bool = False,
    engine: Engine | None = None,
) -> SyncPlan:
    """Compare a table with a state of its source, and look into the files that came. Raises as ``sync_table``."""
    blocks, votes_only = head.blocks(), head.snapshot.votes_only
    if state.columns is None and len(blocks) and not state.files:  # no log says that this is so
        raise NotFound(
            f"{source.url} has no Parquet file, and the table has {len(blocks)} of its files: bring them back; where "
            f"all rows are to go, leave a file without any"
        )
    unknown = dict[str, str]() if votes_only else None
    look_into = partial(open_files, head.store, source, state, progress=progress, unknown=unknown)
    every = look_into(state.files) if reread else ()
    live = [as_opened(*pair) for pair in every] if reread else state.files
    found = compare_files(blocks, live, [opened for _, opened in every])
    holders = None if engine is None or votes_only else partial(find_holders, head, engine)
    deleted = DeletedRows(state, head.snapshot, holders)
    marked = found.mark(blocks, deleted.of_blocks(blocks, live, found.kept), _keeps_columns(head.snapshot, state))
    added = tuple(file for file in state.files if file.location not in found.kept)
    opened = [pair for pair in every if pair[0].location not in found.kept] if reread else look_into(added)
    gone = found.gone(_dropped_files(head.snapshot, state))
    kept = len(blocks) > len(gone)
    before = head.snapshot if kept else None  # where no file is left of those that were, their columns bind nobody
    about = SourceVersion.of(head.snapshot)
    chosen = columns_of_state(before, state, opened, votes_only, about.choice)
    match = ColumnMatch.of(head.snapshot, chosen.columns)
    came = {each.id for each in match.fields} - {each.id for each in head.snapshot.schema.fields}
    if any(came & file.absent.keys() for file in state.files if file.location in found.kept):
        match.reread = True  # blocks say what they hold of a column that their files lack
    if match.reread and kept:
        added, opened, gone = tuple(state.files), look_into(state.files), list(range(len(blocks)))
        chosen = columns_of_state(None, state, opened, votes_only, about.choice)
        match = ColumnMatch.of(head.snapshot, chosen.columns)
        match.reread, marked = True, {}
    opened, removed = deleted.of_files(opened), blocks.take(np.array(gone, np.int64))
    segment_ids = head.segments().segments_containing(np.array([*gone, *marked], np.int64))
    names = deleted.names(blocks, marked)
    return SyncPlan(state, added, opened, tuple(removed.ids), segment_ids, match, chosen, marked, names, unknown or {})


def _keeps_columns(snapshot: Snapshot, state: SourceState) -> bool:
    if state.columns is None:
        return False
    found = without_unreadable(state.columns, (), snapshot)
    chosen = choose_columns(snapshot, found, SourceVersion.of(snapshot).choice)
    return ColumnMatch.of(snapshot, chosen.columns).fields == snapshot.schema.fields


def _dropped_files(snapshot: Snapshot, state: SourceState) -> int:
    """How many files stay known that left the source's newest version: older ones, of which a log tells, have them."""
    if state.columns is None or not snapshot.votes_only:
        return 0
    return int(snapshot.properties.get("max_dropped_files", VOTES_PROPERTIES["max_dropped_files"]))


def open_files(
    store: Store,
    source: Source,
    state: SourceState,
    files: Sequence[SourceFile],
    progress: FileProgress | None,
    unknown: dict[str, str] | None,
) -> OpenedFiles:
    try:
        return open_source_files(store, source.url, files, progress, unknown)
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


def columns_of_state(
    before: Snapshot | None, state: SourceState, opened: OpenedFiles, votes_only: bool, choice: SourceChoice
) -> ChosenColumns:
    """The columns of a state; where only files say it, those of the table's kept files and of these."""
    if state.columns is not None:
        return choose_columns(before, without_unreadable(state.columns, opened, before), choice)
    if votes_only:
        return votable_columns_of_files(before, state, opened)
    return choose_columns(before, columns_of_files(before, state, opened, choice), choice)


def choose_columns(before: Snapshot | None, found: ChosenColumns, choice: SourceChoice) -> ChosenColumns:
    """The columns that were wanted when the source was attached, also if they are called otherwise by now."""
    if (wanted := choice.columns) is None:
        return found
    fields = () if before is None else before.schema.fields
    known = {each.id for each in fields} | {each.physical_name for each in fields}
    chosen = [
        each
        for each in found.columns
        if each.name in wanted or (each.physical_name if each.id is None else each.id) in known
    ]
    left_out = {name: reason for name, reason in found.left_out.items() if name in wanted}
    names = found.names or tuple(each.name for each in found.columns)
    return replace(found, columns=tuple(chosen), left_out=left_out, names=names)


def raise_if_missing(found: ChosenColumns, choice: SourceChoice, where: str) -> None:
    """Raise InputError for a wanted column that there is not, Unsupported for one that cannot be read."""
    if choice.columns == ():
        raise InputError("columns=[] names none: name some, or leave it out for all")
    there = [each.name for each in found.columns]
    names = found.names or there
    for name in choice.columns or ():
        if name in found.left_out:
            raise Unsupported(found.left_out[name])
        if name not in there:
            near = get_close_matches(name, names, 3)
            hint = f"did you mean {near}?" if near else f"it has {list(names[:10])}"
            raise InputError(f"columns: {where} has no column {name!r}; {hint}")
