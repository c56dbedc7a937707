"""Differences of two snapshots: blocks, columns and definitions that came, went or stayed.

They are found by the ids of segments and blocks that only one snapshot has, so shared segments are never opened.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from fuse_storage.card import Shown, bytes_text
from fuse_storage.commit.schema_evolution import can_widen
from fuse_storage.errors import StorageError, TableUrl
from fuse_storage.metadata.block_frame import BlockFrame
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.parquet.pages import RowMask
from fuse_storage.schema.schema import Field, Schema
from fuse_storage.schema.types import storage_type_name
from fuse_storage.table import StoredTable


@dataclass(frozen=True, slots=True, repr=False)
class BlockTotals(Shown):
    """The numbers of some blocks, of their rows, and of bytes in their files."""

    _shown = "blocks rows bytes"

    blocks: int = 0
    rows: int = 0
    bytes: int = 0

    def __str__(self) -> str:
        return f"blocks: {self.blocks:,}, rows: {self.rows:,}, {bytes_text(self.bytes)}"


@dataclass(frozen=True, slots=True, repr=False)
class SnapshotDiff(Shown):
    """Blocks, columns and definitions that came, went or stayed from one snapshot to another.

    A rewritten block counts as gone and as come. ``columns`` and ``definitions``: sentences, in order, such as
    "added 'city' string" and "dropped 'by_id'".
    """

    _shown = "before after added removed kept columns definitions"
    _offered = "empty to_dict"

    before: str
    after: str
    added: BlockTotals
    removed: BlockTotals
    kept: BlockTotals
    columns: tuple[str, ...]
    definitions: tuple[str, ...]

    @property
    def empty(self) -> bool:
        return not (self.added.blocks or self.removed.blocks or self.columns or self.definitions)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


def diff_snapshots(before: StoredTable, after: StoredTable) -> SnapshotDiff:
    """Compare two snapshots of one table, from ``before`` to ``after``, in any order. Raises StorageError."""
    if before.store.url != after.store.url:
        raise StorageError(
            TableUrl(before.store.url)
            + " and "
            + TableUrl(after.store.url)
            + " are two tables: only snapshots of one can be compared"
        )
    removed_blocks, added_blocks = changed_blocks(before, after)
    added, removed = _totals(added_blocks), _totals(removed_blocks)
    old = before.snapshot
    kept = BlockTotals(old.block_count - removed.blocks, old.row_count - removed.rows, old.bytes - removed.bytes)
    columns, definitions = (
        tuple(_describe_columns(old.schema, after.snapshot.schema)),
        tuple(_describe_definitions(old, after.snapshot)),
    )
    return SnapshotDiff(old.id, after.snapshot.id, added, removed, kept, columns, definitions)


def changed_blocks(before: StoredTable, after: StoredTable) -> tuple[BlockFrame, BlockFrame]:
    """The blocks that only ``before`` has, and those that only ``after`` has, each in their order.

    With a primary key, a block of which other rows are hidden in one of them than in the other is among both.
    """
    if before.segments().hidden_rows or after.segments().hidden_rows:
        return _changed_by_key(before, after)
    shared = set(before.segments().ids) & set(after.segments().ids)
    old_blocks, new_blocks = _unshared_blocks(before, shared), _unshared_blocks(after, shared)
    return _blocks_not_in(old_blocks, new_blocks), _blocks_not_in(new_blocks, old_blocks)


def _changed_by_key(before: StoredTable, after: StoredTable) -> tuple[BlockFrame, BlockFrame]:
    live = []
    for table in (before, after):
        masks, ids = table.segments().hidden_rows, table.blocks().ids
        live.append({block_id: masks.get(number) for number, block_id in enumerate(ids)})
    same = {block_id for block_id in live[0].keys() & live[1].keys() if _equal(live[0][block_id], live[1][block_id])}
    chosen = ([number for number, block_id in enumerate(each) if block_id not in same] for each in live)
    old, new = (np.array(numbers, np.int64) for numbers in chosen)
    return before.blocks().take(old), after.blocks().take(new)


def _equal(one: RowMask | None, other: RowMask | None) -> bool:
    return one is other if one is None or other is None else np.array_equal(one, other)


def _unshared_blocks(table: StoredTable, shared: set[str]) -> BlockFrame:
    """The blocks in segments that are not shared."""
    return table.blocks([number for number, segment_id in enumerate(table.segments().ids) if segment_id not in shared])


def _blocks_not_in(blocks: BlockFrame, others: BlockFrame) -> BlockFrame:
    other_ids = set(others.ids)
    return blocks.take(
        np.array([index for index, block_id in enumerate(blocks.ids) if block_id not in other_ids], np.int64)
    )


def _totals(blocks: BlockFrame) -> BlockTotals:
    return BlockTotals(len(blocks), int(blocks.live_row_counts.sum()), int(blocks.sizes.sum()))


def narrowed_columns(before: Schema, after: Schema) -> list[str]:
    """Columns, by their names in ``after``, whose values of ``before`` need not fit their type in ``after``."""
    old = _fields_by_id(before)
    shared_fields = [
        (path, old[field_key][1], field)
        for field_key, (path, field) in _fields_by_id(after).items()
        if field_key in old
    ]
    return [
        path
        for path, old_field, new_field in shared_fields
        if old_field.is_leaf
        and new_field.is_leaf
        and old_field.type != new_field.type
        and not can_widen(old_field.type, new_field.type)
    ]


def _describe_columns(before: Schema, after: Schema) -> Iterator[str]:
    old, new = _fields_by_id(before), _fields_by_id(after)
    for field_key, (path, field) in new.items():
        if field_key not in old:
            yield f"added {path!r} {storage_type_name(field.type)}"
            continue
        old_path, old_field = old[field_key]
        if old_path != path and old_path.rpartition(".")[2] != field.name:
            yield f"renamed {old_path!r} to {path!r}"
        if old_field.type != field.type and (old_field.is_leaf or field.is_leaf):
            yield f"changed {path!r} from {storage_type_name(old_field.type)} to {storage_type_name(field.type)}"
        if old_field.nullable != field.nullable:
            yield f"{path!r} {'may now be' if field.nullable else 'can no longer be'} NULL"
    yield from (f"dropped {path!r}" for field_key, (path, _) in old.items() if field_key not in new)
    if [field_key for field_key in new if field_key in old] != [field_key for field_key in old if field_key in new]:
        yield "reordered: " + ", ".join(after.names)


def _fields_by_id(schema: Schema) -> Mapping[tuple[int, str], tuple[str, Field]]:
    """Fields and their dotted paths, by id and physical name.

    The id alone is not enough: two branches may each have given the same one to a new column.
    """
    return {(field.id, field.physical_name): (path, field) for top in schema.fields for path, field in _paths(top, "")}


def _paths(field: Field, above: str) -> Iterator[tuple[str, Field]]:
    yield above + field.name, field
    for child in field.children:
        yield from _paths(child, f"{above}{field.name}.")


def _describe_definitions(before: Snapshot, after: Snapshot) -> Iterator[str]:
    old, new = before.definitions, after.definitions
    yield from (f"added {name!r}" for name in new if name not in old)
    yield from (f"changed {name!r}" for name in new if name in old and new[name] != old[name])
    yield from (f"dropped {name!r}" for name in old if name not in new)
