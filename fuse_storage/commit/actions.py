"""What a transaction does: actions that can each be applied to a newer head, or say why they cannot.

An action is applied to a ``Draft`` of the next snapshot, which begins as the head that there is by then. The commits
since the action was decided on either go together with it, and it is applied as if it came after them (it "rebases");
or they matter to it, and it raises Conflict, naming the first of them that does:

====================  ============================================  ==============================================
action                goes together with                            is a Conflict with
====================  ============================================  ==============================================
AppendSegments        all else                                      a change of a column that the rows hold (1)
OverwriteSegments     deletes of whole blocks, index changes, what  rows that were added (unless ``force``); (1)
                      leaves all rows as they were (``same_rows``)
ReplaceBlocks         all that leaves its blocks where they were,   a block of its own that was replaced; new blocks
                      and appends of rows that it need not see      with rows that it would have had to see; (1), (2)
AttachSidecars        everything: sidecars follow their blocks,     nothing; if the index was dropped, it does nothing
                      and those of blocks that are gone are dropped
AddIndex              all else                                      an index of the same name
DropIndex             all else, its being dropped by others too     an index of the same name that was redefined
CompactSegments       everything                                    nothing
EvolveSchema          all else                                      other changes of columns; of indexes and
                                                                    rows that come, if it depends on them
SetTableKey           all else                                      changes of columns, or of the same key
RestoreSnapshot       attached sidecars, joined segments, what      all else
                      leaves all rows as they were (``same_rows``)
====================  ============================================  ==============================================

(1) A column was dropped, renamed, given another type or NOT NULL since the rows were written, or a NOT NULL column
without a default was added. (2) Where rows were chosen by a condition, any change of columns. ReplaceBlocks is in
``replace_blocks``, AttachSidecars in ``attach_sidecars``. Nothing here knows how a draft becomes a commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from fuse_storage.commit.draft import Draft, keeps_rows
from fuse_storage.commit.merge_segments import plan_segment_compaction
from fuse_storage.commit.schema_evolution import SchemaChange
from fuse_storage.errors import AlreadyExists, Conflict, NotFound, SchemaError
from fuse_storage.hot.tail import read_tail
from fuse_storage.metadata.segment import StagedSegment
from fuse_storage.metadata.segment_list import read_segment_list
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.partitions.spec import check_partition_columns
from fuse_storage.schema.schema import Field, Schema
from fuse_storage.schema.types import storage_type_name


class Action(Protocol):
    """One thing that a transaction does. ``name`` is what it is called in the history."""

    @property
    def name(self) -> str: ...

    def apply(self, draft: Draft) -> None:
        """Change the draft, or leave it if there is nothing to do. Raises Conflict, or another StorageError."""
        ...


@dataclass(frozen=True, slots=True)
class AppendSegments:
    """Put new segments at the end."""

    staged: Sequence[StagedSegment]
    name: str = "append"

    def apply(self, draft: Draft) -> None:
        check_columns_unchanged(self.staged, draft)
        draft.append_segments(self.staged)
        draft.merge_small_segments()


@dataclass(frozen=True, slots=True)
class OverwriteSegments:
    """Put new segments in place of all. ``force``: also of unseen rows. ``keys_once``: no key is twice there."""

    staged: Sequence[StagedSegment]
    force: bool = False
    name: str = "overwrite"
    keys_once: bool = False

    def apply(self, draft: Draft) -> None:
        check_columns_unchanged(self.staged, draft)
        winner = None if self.force else draft.first_conflicting_commit(_brings_rows)
        if winner is not None:
            raise Conflict(
                f"rows that this overwrite has not seen were added by {winner}: read again, and decide again",
                str(winner),
            )
        removed = draft.head.row_count
        if not removed and not self.staged:
            return
        draft.same_rows = False
        draft.segment_rows, draft.tail_rows = draft.segment_rows.slice(0, 0), None
        draft.append_segments(self.staged)
        draft.keeps_key = self.keys_once
        draft.summary["removed_rows"] = removed
        draft.merge_small_segments()


@dataclass(frozen=True, slots=True)
class AddIndex:
    """Add a definition of an index. ``definition`` is JSON-able and has a "key"."""

    index_name: str
    definition: Mapping[str, Any]
    name: str = "define"

    def apply(self, draft: Draft) -> None:
        if self.index_name in draft.definitions:
            if self.index_name in draft.base.definitions:
                raise AlreadyExists(
                    draft.named + f" already has a definition {self.index_name!r}: drop it "
                    f"first, or choose another name"
                )
            winner = draft.first_conflicting_commit(lambda before, after: self.index_name in after.definitions)
            raise Conflict(f"a definition {self.index_name!r} was made by {winner}: choose another name", str(winner))
        draft.definitions[self.index_name] = dict(self.definition)
        draft.changed = True


@dataclass(frozen=True, slots=True)
class DropIndex:
    """Forget a definition of an index, and all that is known by it."""

    index_name: str
    name: str = "undefine"

    def apply(self, draft: Draft) -> None:
        was = draft.base.definitions.get(self.index_name)
        if was is None:
            raise NotFound(
                draft.named + f" has no definition {self.index_name!r}: it has {sorted(draft.base.definitions)}"
            )
        now = draft.definitions.get(self.index_name)
        if now is None:
            return  # somebody else did
        if now != was:
            winner = draft.first_conflicting_commit(
                lambda before, after: after.definitions.get(self.index_name) != before.definitions.get(self.index_name)
            )
            raise Conflict(
                f"definition {self.index_name!r} was replaced by {winner}: look at it again before dropping it",
                str(winner),
            )
        del draft.definitions[self.index_name]
        draft.changed = True


@dataclass(frozen=True, slots=True)
class RestoreSnapshot:
    """Make the table what it was at another snapshot: rows, columns, definitions, properties.

    What only grows stays: ids of columns and rows, all names, versions of applications. ``force``: despite others.
    """

    old: Snapshot
    force: bool = False
    name: str = "restore"

    def apply(self, draft: Draft) -> None:
        old, head = self.old, draft.head
        if old.id == head.id:
            return
        winner = draft.first_conflicting_commit(lambda before, after: not _only_sidecars_changed(before, after))
        if winner is not None and not self.force:
            raise Conflict(f"the table was changed by {winner}: look at it again before it is replaced", str(winner))
        names = {
            column_id: tuple(dict.fromkeys([*head.names.get(column_id, ()), *old.names.get(column_id, ())]))
            for column_id in {*head.names, *old.names}
        }
        draft.schema_state = replace(
            head,
            schema_id=old.schema_id,
            schemas={**head.schemas, **old.schemas},
            names=names,
            cluster_ids=old.cluster_ids,
            last_column_id=max(head.last_column_id, old.last_column_id),
            properties=old.properties,
        )
        draft.segment_rows, draft.definitions = read_segment_list(draft.store, old), dict(old.definitions)
        draft.tail_rows = read_tail(draft.store, old)
        draft.next_row_id = max(head.next_row_id, old.next_row_id)
        draft.summary["restored"] = old.id
        draft.same_rows, draft.keeps_key = False, True
        draft.changed = True


def _only_sidecars_changed(before: Snapshot, after: Snapshot) -> bool:
    """Tell whether a commit changed nothing but what indexes know, and in which blocks rows are."""
    fields = ["row_count", "schema_id", "schemas", "definitions", "properties", "cluster_ids"]
    fields += [] if keeps_rows(before, after) else ["next_row_id", "block_count"]
    return all(getattr(before, name) == getattr(after, name) for name in fields)


@dataclass(frozen=True, slots=True)
class CompactSegments:
    """Make as few segments as there can be."""

    name: str = "gather"

    def apply(self, draft: Draft) -> None:
        before = len(draft.segment_rows)
        draft.merge_spans(
            plan_segment_compaction(draft.segment_rows.column("block_count").to_pylist(), draft.segment_blocks)
        )
        draft.changed = draft.changed or len(draft.segment_rows) < before


@dataclass(frozen=True, slots=True)
class EvolveSchema:
    """Change columns. ``depends_on_indexes``, ``depends_on_rows``: other definitions, new rows are Conflicts too."""

    schema_change: SchemaChange
    depends_on_indexes: bool = False
    depends_on_rows: bool = False
    name: str = "evolve"

    def apply(self, draft: Draft) -> None:
        winner = draft.first_conflicting_commit(
            lambda before, after: before.schemas != after.schemas or before.schema_id != after.schema_id
        )
        if winner is None and self.depends_on_indexes:
            winner = draft.first_conflicting_commit(lambda before, after: before.definitions != after.definitions)
        if winner is None and self.depends_on_rows:
            winner = draft.first_conflicting_commit(_brings_rows)
        if winner is not None:
            what = "rows, columns or indexes" if self.depends_on_rows else "columns or indexes"
            raise Conflict(f"{what} were changed by {winner}: look at them again before changing more", str(winner))
        evolved = self.schema_change(draft.schema_state)
        check_partition_columns(draft.schema_state, evolved)
        draft.changed = draft.changed or evolved is not draft.schema_state
        draft.schema_state = evolved


@dataclass(frozen=True, slots=True)
class SetTableKey:
    """Choose other columns for the clustering key, or for the key of the table.

    ``description``: what the key is called in messages. ``snapshot_fields``: attributes of a snapshot that hold it.
    """

    schema_change: SchemaChange
    description: str
    snapshot_fields: Sequence[str]
    name: str

    def apply(self, draft: Draft) -> None:
        def relevant_state(snapshot: Snapshot) -> list[Any]:
            return [getattr(snapshot, name) for name in ("schema_id", "schemas", *self.snapshot_fields)]

        winner = draft.first_conflicting_commit(lambda before, after: relevant_state(before) != relevant_state(after))
        if winner:
            raise Conflict(
                f"columns or the {self.description} were changed by {winner}: look at them again before choosing",
                str(winner),
            )
        rekeyed = self.schema_change(draft.schema_state)
        draft.changed = draft.changed or rekeyed is not draft.schema_state
        draft.schema_state = rekeyed


def _brings_rows(before: Snapshot, after: Snapshot) -> bool:
    return after.next_row_id > before.next_row_id and not keeps_rows(before, after)


def check_columns_unchanged(staged: Sequence[StagedSegment], draft: Draft) -> None:
    """Raise Conflict where columns that these rows hold were changed since they were written."""
    for schema_id in sorted({segment.schema_id for segment in staged}):
        was, known = draft.base.schemas.get(schema_id), draft.schema_state.schemas.get(schema_id)
        if was is not None and known != was:  # another history took over here
            winner = draft.first_conflicting_commit(lambda before, after: before.schemas != after.schemas)
            raise Conflict(f"the columns were replaced by {winner}: write the rows again", str(winner))
        if known is None:
            raise SchemaError(draft.named + f" never had the schema {schema_id} with which these rows were written")
        if known is not draft.schema and (changed := changed_column_names(known, draft.schema)):
            winner = draft.first_conflicting_commit(lambda before, after: before.schema_id != after.schema_id)
            message = f"column {changed[0]!r} was changed by {winner or 'an earlier commit'}: write the rows again"
            raise Conflict(message, None if winner is None else str(winner))


def changed_column_names(before: Schema, current: Schema) -> list[str]:
    """Name the columns of ``before`` that are no longer what they were: dropped, renamed, of another type, or NOT NULL.

    And columns that came since without allowing NULL, which rows written before would lack. Fields of a struct are
    judged each by itself: one that came since is NULL in such rows.
    """
    after, changed = {part.id: part for top in current.fields for part in top.walk()}, list[str]()
    for part in (part for top in before.fields for part in top.walk()):
        kept = after.pop(part.id, None)
        if kept is None or _identity(kept) != _identity(part) or (part.nullable and not kept.nullable):
            changed.append(part.name)
    return changed + [part.name for part in after.values() if not part.nullable and part.initial_default is None]


def _identity(field: Field) -> tuple[str, str]:
    """The name and the type of a column; of a nested one without what is in it."""
    return field.name, storage_type_name(field.type)
