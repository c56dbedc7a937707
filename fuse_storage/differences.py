"""What two snapshots differ in: told by segments and blocks that only one of them has, so shared ones are never opened."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from fuse_storage import columnar
from fuse_storage.errors import StorageError
from fuse_storage.schema import Field, Schema
from fuse_storage.segments import parts
from fuse_storage.snapshots import Snapshot
from fuse_storage.table import Table
from fuse_storage.type_names import name_of


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
        raise StorageError(f"{before.store.url} and {after.store.url} are two tables: only snapshots of one can be compared")
    shared = set(before.segments().ids) & set(after.segments().ids)
    was, now = _blocks_besides(before, shared), _blocks_besides(after, shared)
    gone, came = _without(was, now), _without(now, was)
    added, removed = _extent(came), _extent(gone)
    old = before.snapshot
    kept = Extent(old.block_count - removed.blocks, old.row_count - removed.rows, old.bytes - removed.bytes)
    columns, definitions = tuple(_columns(old.schema, after.snapshot.schema)), tuple(_definitions(old, after.snapshot))
    return Difference(old.id, after.snapshot.id, added, removed, kept, columns, definitions)


def _blocks_besides(table: Table, shared: set[str]) -> pa.Table:
    """Ids, rows and bytes of the blocks in segments that are not shared."""
    listed = table.segments()
    group = ("id", "row_count", "size")
    own = [part for id, part in zip(listed.ids, parts(listed.table), strict=True) if id not in shared]
    empty = pa.table({"id": pa.array([], pa.string()), "row_count": pa.array([], pa.int64()), "size": pa.array([], pa.int64())})
    return pa.concat_tables([empty, *(columnar.read(table.store, part, [group])[0] for part in own)])


def _without(blocks: pa.Table, others: pa.Table) -> pa.Table:
    return blocks.filter(pc.invert(pc.is_in(blocks.column("id"), others.column("id").combine_chunks())))


def _extent(blocks: pa.Table) -> Extent:
    return Extent(len(blocks), int(columnar.numbers(blocks, "row_count").sum()), int(columnar.numbers(blocks, "size").sum()))


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
    """Fields and their dotted paths. By id and physical name: two branches may each have given an id to a new column."""
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
