"""A table taken to a state of its source: files that came are looked into, and one commit names what is live.

Only footers of files that came are read, unless columns change so that what was made of older footers may not hold.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Any

from fuse_index.errors import InputError
from fuse_index.indexes.builder import index_builders
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.registry import Host
from fuse_index.sources.deletes.deleted_rows import DeletedRows
from fuse_index.sources.file_columns import widens_to_doubles
from fuse_index.sources.plan import FileProgress, SyncPlan, columns_of_state, open_files, plan_sync, raise_if_missing
from fuse_index.sources.source import Source, SourceVersionId
from fuse_storage import (
    AppendSegments,
    BlockReplacement,
    ColumnMatch,
    Field,
    FileRules,
    NotFound,
    ReplaceBlocks,
    SetSource,
    Shown,
    SidecarBuilder,
    Snapshot,
    SourceChoice,
    SourceVersion,
    StagedFiles,
    Store,
    StoredTable,
    Unsupported,
    can_widen,
    create_attached_table,
    first_attached_snapshot,
    has_page_zones,
    mark_narrower,
    reads_as_logged,
    set_source,
    stage_deletions,
    stage_source_files,
)

_ALL_COLUMNS = SourceChoice()
_MAX_REASONS = 10
"""Why so many files are not known is said in the summary of a commit."""


class LeftOutWarning(UserWarning):
    """Columns of a source are none of the table over it, since they cannot be read: ``table.inspect.left_out``."""


@dataclass(frozen=True, slots=True, repr=False)
class SyncResult(Shown):
    """What a sync did. ``version``: of the source, as it calls it. ``rows``: in the table now.

    ``reread``: all files were looked into, since columns changed, or it was asked for. ``snapshot``: the table's, the
    former one if nothing had changed. ``unknown_files``: of a table for votes alone, which it cannot know.
    """

    _shown = "version rows added_files removed_files kept_files reread unknown_files snapshot"

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


def sync_table(
    head: StoredTable,
    source: Source,
    to: SourceVersionId | None = None,
    progress: FileProgress | None = None,
    reread: bool = False,
    host: Host | None = None,
) -> tuple[StoredTable, SyncResult]:
    """Take a table to the newest state of its source, or to another one, in one commit; none if it is there.

    ``reread``: all files are looked into, and those that are otherwise in any way than they were become new blocks.
    ``host``: of the kinds of its indexes, which go along where only rows of a file were deleted, and know of keys.
    Raises Conflict where somebody else synced it just now, NotFound where a file vanished meanwhile, InputError,
    SchemaError and Unsupported for what cannot be followed, StorageError.
    """
    votes_only = head.snapshot.votes_only
    engine = None if host is None else Engine(host)
    plan = plan_sync(head, source, source.state(to, votes_only), progress, reread, engine)
    builders = () if host is None else index_builders(head.snapshot, host)
    fields, staged = _stage_plan(head.store, head.snapshot, plan, votes_only)
    done = _commit_staged(head, plan, fields, staged, builders)
    blocks = sum(segment.block_count for segment in staged.segments)
    unknown = len(plan.added) - len(plan.opened) + len(staged.unknown)
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
    kept = SourceVersion(before.format, before.url, None) if plan.match.reread else before
    version = replace(
        before,
        version=plan.state.version,
        unread=tuple(sorted(staged.unread.union(kept.unread))),
        deletes=None if plan.state.deletes is None else plan.state.deletes.followed,
        left_out=plan.chosen.left_out,
        converted=tuple(sorted(staged.converted.union(kept.converted))),
        shredded=tuple(sorted(staged.shredded.union(kept.shredded))),
        told_variants=staged.told_variants or kept.told_variants,
        untyped=plan.chosen.untyped,
        etag=plan.state.etag,
    )
    transaction = head.transaction(builders).stage(SetSource(version, fields))
    if plan.removed or plan.marked:
        marked = stage_deletions(head, builders, plan.marked, plan.names)
        replacements = [BlockReplacement((head.blocks().ids[number],), 1) for number in plan.marked]
        replacements += [BlockReplacement((block_id,)) for block_id in plan.removed]
        transaction.stage(ReplaceBlocks(replacements, marked, plan.segment_ids, name="sync"), marked)
    if staged.segments:
        transaction.stage(AppendSegments(staged.segments), staged.segments)
    summary: dict[str, Any] = {"source_version": plan.state.version}
    if unknown := {**plan.unknown, **staged.unknown}:
        reasons = dict(islice(unknown.items(), _MAX_REASONS))
        summary["unknown_files"] = {"count": len(unknown), "reasons": reasons}
    done = transaction.commit("sync", summary=summary)
    if not head.snapshot.votes_only:  # through these no row is read
        _warn_of_new(before.left_out, version)
    return done


def _warn_of_new(before: Collection[str], version: SourceVersion) -> None:
    """Warn of columns that are left out of a table from now on."""
    if came := {name: reason for name, reason in version.left_out.items() if name not in before}:
        told = "; ".join(f"{name!r} ({reason})" for name, reason in came.items())
        warnings.warn(f"left out of the table over {version.url}: {told}", LeftOutWarning, stacklevel=2)


def _stage(
    store: Store, snapshot: Snapshot, plan: SyncPlan, fields: tuple[Field, ...], votes_only: bool
) -> StagedFiles:
    schema = set_source(snapshot, SourceVersion.of(snapshot), fields).schema
    about = SourceVersion.of(snapshot)
    of_files = widens_to_doubles if about.choice.widen else can_widen
    widens = of_files if plan.state.columns is None else reads_as_logged
    rules = FileRules(plan.state.by_id, widens, votes_only, has_page_zones(snapshot))
    return stage_source_files(store, schema, rules, plan.opened)


def attach_source(
    store: Store,
    source: Source,
    properties: Mapping[str, Any],
    progress: FileProgress | None = None,
    votes_only: bool = False,
    choice: SourceChoice = _ALL_COLUMNS,
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
    unknown = dict[str, str]() if votes_only else None
    opened = open_files(store, source, state, state.files, progress, unknown)
    chosen = columns_of_state(None, state, opened, votes_only, choice)
    raise_if_missing(chosen, choice, source.url)
    if not chosen.columns and chosen.left_out and not votes_only:
        raise Unsupported(next(iter(chosen.left_out.values())))
    version = SourceVersion(source.format, source.url, None, choice=choice)
    first = first_attached_snapshot(store, chosen.columns, version, properties, votes_only)
    match = ColumnMatch.of(first, chosen.columns)
    opened = DeletedRows(state, first).of_files(opened)
    plan = SyncPlan(state, tuple(state.files), opened, (), frozenset(), match, chosen, unknown=unknown or {})
    staged = _stage_plan(store, first, plan, votes_only)
    return _commit_staged(create_attached_table(store, first), plan, *staged)
