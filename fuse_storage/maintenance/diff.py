"""What two snapshots differ in: told by segments and blocks that only one of them has, so shared ones are never
opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fuse_storage.commit.schema_evolution import widens
from fuse_storage.errors import StorageError
from fuse_storage.metadata.block_frame import Blocks
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.schema.schema import Field, Schema
from fuse_storage.schema.types import name_of
from fuse_storage.table import Table


@dataclass(frozen=True, slots=True)
class Extent:
    """So many blocks, with so many rows, of so many bytes in their files."""

    blocks: int = 0
    rows: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class Difference:
    """What came, went and stayed from one snapshot to another.

    A rewritten block counts as gone and as come. ``columns`` and ``definitions``: sentences, in order, such as
    "added 'city' string" and "dropped 'by_id'".
    """

    before: str
    after: str
    added: Extent
    removed: Extent
    kept: Extent
    columns: tuple[str, ...]
    definitions: tuple[str, ...]

    @property
    def empty(self) -> bool:
        return not (self.added.blocks or self.removed.blocks or self.columns or self.definitions)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def difference(before: Table, after: Table) -> Difference:
    """From ``before`` to ``after``, two snapshots of one table in any order. Raises StorageError."""
    if before.store.url != after.store.url:
        raise StorageError(
            f"{before.store.url} and {after.store.url} are two tables: only snapshots of one can be compared"
        )
    gone, came = exchanged(before, after)
    added, removed = _extent(came), _extent(gone)
    old = before.snapshot
    kept = Extent(old.block_count - removed.blocks, old.row_count - removed.rows, old.bytes - removed.bytes)
    columns, definitions = tuple(_columns(old.schema, after.snapshot.schema)), tuple(_definitions(old, after.snapshot))
    return Difference(old.id, after.snapshot.id, added, removed, kept, columns, definitions)


def exchanged(before: Table, after: Table) -> tuple[Blocks, Blocks]:
    """The blocks that only ``before`` has, and those that only ``after`` has, each in their order."""
    shared = set(before.segments().ids) & set(after.segments().ids)
    was, now = _besides(before, shared), _besides(after, shared)
    return _without(was, now), _without(now, was)


def _besides(table: Table, shared: set[str]) -> Blocks:
    """The blocks in segments that are not shared."""
    return table.blocks([number for number, id in enumerate(table.segments().ids) if id not in shared])


def _without(blocks: Blocks, others: Blocks) -> Blocks:
    known = set(others.ids)
    return blocks.take(np.array([place for place, id in enumerate(blocks.ids) if id not in known], np.int64))


def _extent(blocks: Blocks) -> Extent:
    return Extent(len(blocks), int(blocks.row_counts.sum()), int(blocks.sizes.sum()))


def narrowed(before: Schema, after: Schema) -> list[str]:
    """Columns, by their names in ``after``, whose values of ``before`` need not fit their type in ``after``."""
    old = _named(before)
    both = [(path, old[id][1], field) for id, (path, field) in _named(after).items() if id in old]
    return [
        path
        for path, was, now in both
        if was.is_leaf and now.is_leaf and was.type != now.type and not widens(was.type, now.type)
    ]


def _columns(before: Schema, after: Schema) -> Iterator[str]:
    old, new = _named(before), _named(after)
    for id, (path, field) in new.items():
        if id not in old:
            yield f"added {path!r} {name_of(field.type)}"
            continue
        was, former = old[id]
        if was != path and was.rpartition(".")[2] != field.name:
            yield f"renamed {was!r} to {path!r}"
        if former.type != field.type and (former.is_leaf or field.is_leaf):
            yield f"changed {path!r} from {name_of(former.type)} to {name_of(field.type)}"
        if former.nullable != field.nullable:
            yield f"{path!r} {'may now be' if field.nullable else 'can no longer be'} NULL"
    yield from (f"dropped {path!r}" for id, (path, _) in old.items() if id not in new)
    if [id for id in new if id in old] != [id for id in old if id in new]:
        yield "reordered: " + ", ".join(after.names)


def _named(schema: Schema) -> Mapping[tuple[int, str], tuple[str, Field]]:
    """Fields and their dotted paths. By id and physical name: two branches may each have given an id to a new
    column.
    """
    return {(field.id, field.physical): (path, field) for top in schema.fields for path, field in _paths(top, "")}


def _paths(field: Field, above: str) -> Iterator[tuple[str, Field]]:
    yield above + field.name, field
    for child in field.children:
        yield from _paths(child, f"{above}{field.name}.")


def _definitions(before: Snapshot, after: Snapshot) -> Iterator[str]:
    old, new = before.definitions, after.definitions
    yield from (f"added {name!r}" for name in new if name not in old)
    yield from (f"changed {name!r}" for name in new if name in old and new[name] != old[name])
    yield from (f"dropped {name!r}" for name in old if name not in new)
