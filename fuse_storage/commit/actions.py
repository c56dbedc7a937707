"""Changes to a table, each of which can be made again on a newer snapshot, or says why it cannot.

A change is applied to a **draft** of the next snapshot. Where the commits that came in between matter to it, it raises
Conflict, which names the first of them that does. Knows nothing of how a draft becomes a commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import pyarrow.compute as pc

from fuse_storage.commit.draft import Draft
from fuse_storage.commit.merge_segments import gathering
from fuse_storage.commit.schema_evolution import Step
from fuse_storage.errors import AlreadyExists, Conflict, NotFound, SchemaError
from fuse_storage.metadata.segment import StagedSegment, read_list
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.schema.schema import Schema


class Change(Protocol):
    """One thing that a transaction does."""

    @property
    def name(self) -> str: ...

    def apply(self, draft: Draft) -> None:
        """Change the draft, or leave it if there is nothing to do. Raises Conflict, or another StorageError."""
        ...


@dataclass(frozen=True, slots=True)
class Append:
    """New segments at the end. Goes together with anything but a change of a column that they hold."""

    staged: Sequence[StagedSegment]
    name: str = "append"

    def apply(self, draft: Draft) -> None:
        refuse_other_columns(self.staged, draft)
        draft.add(self.staged)
        draft.merge_small()


@dataclass(frozen=True, slots=True)
class Overwrite:
    """New segments instead of all that there are. ``force``: also of rows that were added since the base."""

    staged: Sequence[StagedSegment]
    force: bool = False
    name: str = "overwrite"

    def apply(self, draft: Draft) -> None:
        refuse_other_columns(self.staged, draft)
        winner = None if self.force else draft.since(lambda before, after: after.next_row_id > before.next_row_id)
        if winner is not None:
            raise Conflict(
                f"rows that this overwrite has not seen were added by {winner}: read again, and decide again",
                str(winner),
            )
        removed = int(pc.sum(draft.rows.column("row_count")).as_py() or 0)
        if not removed and not self.staged:
            return
        draft.same_rows = False
        draft.rows = draft.rows.slice(0, 0)
        draft.add(self.staged)
        draft.summary["removed_rows"] = removed
        draft.merge_small()


@dataclass(frozen=True, slots=True)
class Define:
    """A new definition. ``definition`` is JSON-able and has a "key"."""

    called: str
    definition: Mapping[str, Any]
    name: str = "define"

    def apply(self, draft: Draft) -> None:
        if self.called in draft.definitions:
            if self.called in draft.base.definitions:
                raise AlreadyExists(
                    f"{draft.store.url} already has a definition {self.called!r}: drop it first, or choose another name"
                )
            winner = draft.since(lambda before, after: self.called in after.definitions)
            raise Conflict(f"a definition {self.called!r} was made by {winner}: choose another name", str(winner))
        draft.definitions[self.called] = dict(self.definition)
        draft.changed = True


@dataclass(frozen=True, slots=True)
class Undefine:
    """Forget a definition, and all that is known by it."""

    called: str
    name: str = "undefine"

    def apply(self, draft: Draft) -> None:
        was = draft.base.definitions.get(self.called)
        if was is None:
            raise NotFound(
                f"{draft.store.url} has no definition {self.called!r}: it has {sorted(draft.base.definitions)}"
            )
        now = draft.definitions.get(self.called)
        if now is None:
            return  # somebody else did
        if now != was:
            winner = draft.since(
                lambda before, after: after.definitions.get(self.called) != before.definitions.get(self.called)
            )
            raise Conflict(
                f"definition {self.called!r} was replaced by {winner}: look at it again before dropping it", str(winner)
            )
        del draft.definitions[self.called]
        draft.changed = True


@dataclass(frozen=True, slots=True)
class Restore:
    """What the table was at another snapshot: rows, columns, definitions, properties.

    What must only grow stays: ids of columns and rows, names that were ever used, versions of applications.
    """

    old: Snapshot
    name: str = "restore"

    def apply(self, draft: Draft) -> None:
        old, head = self.old, draft.head
        if old.id == head.id:
            return
        if (winner := draft.since(lambda before, after: not _same_but_for_indexed(before, after))) is not None:
            raise Conflict(f"the table was changed by {winner}: look at it again before it is replaced", str(winner))
        names = {
            id: tuple(dict.fromkeys([*head.names.get(id, ()), *old.names.get(id, ())]))
            for id in {*head.names, *old.names}
        }
        draft.shape = replace(
            head,
            schema_id=old.schema_id,
            schemas={**head.schemas, **old.schemas},
            names=names,
            cluster_ids=old.cluster_ids,
            last_column_id=max(head.last_column_id, old.last_column_id),
            properties=old.properties,
        )
        draft.rows, draft.definitions = read_list(draft.store, old), dict(old.definitions)
        draft.next_row_id = max(head.next_row_id, old.next_row_id)
        draft.summary["restored"] = old.id
        draft.same_rows = False
        draft.changed = True


def _same_but_for_indexed(before: Snapshot, after: Snapshot) -> bool:
    """Whether a commit changed nothing but what indexes know."""
    parts = (
        "row_count",
        "next_row_id",
        "block_count",
        "schema_id",
        "schemas",
        "definitions",
        "properties",
        "cluster_ids",
    )
    return all(getattr(before, part) == getattr(after, part) for part in parts)


@dataclass(frozen=True, slots=True)
class Gather:
    """As few segments as there can be. Goes together with everything."""

    name: str = "gather"

    def apply(self, draft: Draft) -> None:
        before = len(draft.rows)
        draft.merge(gathering(draft.rows.column("block_count").to_pylist()))
        draft.changed = draft.changed or len(draft.rows) < before


@dataclass(frozen=True, slots=True)
class Evolve:
    """Other columns. Conflict if somebody else changed columns, or, where indexes matter to it, definitions."""

    step: Step
    indexed: bool = False
    name: str = "evolve"

    def apply(self, draft: Draft) -> None:
        winner = draft.since(
            lambda before, after: before.schemas != after.schemas or before.schema_id != after.schema_id
        )
        if winner is None and self.indexed:
            winner = draft.since(lambda before, after: before.definitions != after.definitions)
        if winner is not None:
            raise Conflict(
                f"columns or indexes were changed by {winner}: look at them again before changing more", str(winner)
            )
        evolved = self.step(draft.shape)
        draft.changed = draft.changed or evolved is not draft.shape
        draft.shape = evolved


@dataclass(frozen=True, slots=True)
class Choose:
    """Other columns for a part that some of them have. Conflict if somebody else chose these, or changed columns.

    ``told``: what is chosen. ``parts``: where snapshots have it.
    """

    step: Step
    told: str
    parts: Sequence[str]
    name: str

    def apply(self, draft: Draft) -> None:
        def seen(found: Snapshot) -> list[Any]:
            return [getattr(found, part) for part in ("schema_id", "schemas", *self.parts)]

        if winner := draft.since(lambda before, after: seen(before) != seen(after)):
            raise Conflict(
                f"columns or the {self.told} were changed by {winner}: look at them again before choosing", str(winner)
            )
        made = self.step(draft.shape)
        draft.changed = draft.changed or made is not draft.shape
        draft.shape = made


def refuse_other_columns(staged: Sequence[StagedSegment], draft: Draft) -> None:
    """Raise Conflict where columns that these rows hold were changed since they were written."""
    for id in sorted({segment.schema_id for segment in staged}):
        was, known = draft.base.schemas.get(id), draft.shape.schemas.get(id)
        if was is not None and known != was:  # another history took over here
            winner = draft.since(lambda before, after: before.schemas != after.schemas)
            raise Conflict(f"the columns were replaced by {winner}: write the rows again", str(winner))
        if known is None:
            raise SchemaError(f"{draft.store.url} never had the schema {id} with which these rows were written")
        if changed := columns_changed(known, draft.schema):
            winner = draft.since(lambda before, after: before.schema_id != after.schema_id)
            raise Conflict(f"column {changed[0]!r} was changed by {winner}: write the rows again", str(winner))


def columns_changed(before: Schema, now: Schema) -> list[str]:
    """The columns of ``before`` that are no longer what they were: dropped, renamed, of another type, or NOT NULL.

    And columns that came since without allowing NULL, which rows written before would lack.
    """
    after = {part.id: part for top in now.fields for part in top.walk()}
    changed = []
    for part in (part for top in before.fields for part in top.walk()):
        kept = after.pop(part.id, None)
        if kept is None or (kept.name, kept.type) != (part.name, part.type) or (part.nullable and not kept.nullable):
            changed.append(part.name)
    return changed + [part.name for part in after.values() if not part.nullable and part.default is None]
