"""The rows of blocks that only one of two snapshots has: which are changes, and which of these form pairs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.changes.columns import CHANGE_TYPE, DELETE, INSERT, UPDATE_POSTIMAGE, UPDATE_PREIMAGE
from fuse_index.changes.multiset import match_keys, multiset_difference
from fuse_index.changes.row_hash import ROW_HASH_TYPE, row_hashes
from fuse_index.expressions.evaluate import evaluate
from fuse_index.indexes.engine import Engine
from fuse_index.predicate import Predicate
from fuse_storage import BlockFrame, StoredTable, live_among, live_row_masks, pack_mask, unpack_mask

_Mask = npt.NDArray[np.bool_]
_Indices = npt.NDArray[np.int64]
_MAX_KEPT_ROWS = 1_000_000
"""Rows of all blocks that stay in memory at most until it is known whether they are changes."""


class ChangedRowsQuery(Protocol):
    """The rows that are asked for, and the snapshot in whose columns they come: ``Changes`` is one."""

    @property
    def schema_table(self) -> StoredTable: ...
    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def predicate(self) -> Predicate | None: ...
    @property
    def engine(self) -> Engine: ...


@dataclass
class ChangedBlocks:
    """Blocks that only one of the snapshots has.

    ``among``: of blocks whose files the other snapshot has, too, which rows count here and not there, by number.
    ``changed_rows``: for each block, which of its rows are changes. Both are booleans, shape (rows,); None: not known
    yet.
    """

    changes: ChangedRowsQuery
    blocks: BlockFrame
    among: dict[int, _Mask] = dataclasses.field(default_factory=dict)
    changed_rows: list[_Mask] | None = None
    _kept: dict[int, tuple[_Indices, pa.Table]] = dataclasses.field(default_factory=dict)
    _room: int = dataclasses.field(default_factory=lambda: _MAX_KEPT_ROWS)

    def read(self, block: int, columns: Sequence[str], rows: _Mask | None = None) -> pa.Table:
        """Read a block in the schema of the later snapshot. ``rows``: which of them, booleans, shape (rows,)."""
        if rows is not None and block in self._kept:
            numbers, kept = self._kept[block]
            return kept.select(list(columns)).filter(pack_mask(rows[numbers]))
        return self.changes.schema_table.read_block(self.blocks, block, columns, row_mask=rows)

    def compare(self, others: ChangedBlocks) -> None:
        """Find out which rows are changes, of these blocks, which only the earlier snapshot has, and of the later's."""
        sides = [[each.candidates(block) for block in range(len(each.blocks))] for each in (self, others)]
        differences = multiset_difference(*([hashes for _, hashes in side] for side in sides))
        for each, side, difference in zip((self, others), sides, differences, strict=True):
            each.changed_rows = []
            for (mask, _), is_changed in zip(side, difference, strict=True):
                changed = np.zeros(len(mask), np.bool_)
                changed[np.flatnonzero(mask)[is_changed]] = True
                each.changed_rows.append(changed)

    def candidates(self, block: int) -> tuple[_Mask, pa.Array]:
        """The rows of a block that may be changes: bool, shape (rows,), and their hashes, ``fixed_size_binary[16]``."""
        mask, names = self.among.get(block), self.changes.schema_table.snapshot.schema.names
        rows = self.read(block, names, mask)
        matching = self._matching_mask(rows)
        if mask is None:
            mask = live_among(self.blocks, block, matching)
            if mask is None:
                return np.ones(len(rows), np.bool_), row_hashes(rows)
            return mask, row_hashes(rows.filter(pack_mask(mask)))
        if matching is not None:
            mask, rows = mask.copy(), rows.filter(pack_mask(matching))
            mask[mask] = matching
        if len(rows) <= self._room:  # of few rows most pages are read: not once more
            self._kept[block], self._room = (np.flatnonzero(mask), rows), self._room - len(rows)
        return mask, row_hashes(rows)

    def to_tables(self, kind: str) -> Iterator[pa.Table]:
        """Give the rows that are changes, block after block. ``kind``: the type of change."""
        columns = self.changes.columns
        for block in range(len(self.blocks)):
            mask = (
                live_among(self.blocks, block, self._matching_rows_of(block))
                if self.changed_rows is None
                else self.changed_rows[block]
            )
            if mask is None or mask.any():
                yield _with_change_type(self.read(block, columns, mask), kind)

    def _matching_rows_of(self, block: int) -> _Mask | None:
        among = self.among.get(block)
        if self.changes.predicate is None:
            return among
        matching = self._matching_mask(self.read(block, self.changes.schema_table.snapshot.schema.names))
        return matching if among is None or matching is None else matching & among

    def _matching_mask(self, rows: pa.Table) -> _Mask | None:
        predicate, engine = self.changes.predicate, self.changes.engine
        if predicate is None:
            return None
        return unpack_mask(evaluate(predicate, rows, engine.context, engine.functions))

    def key_hashes(self, names: Sequence[str]) -> list[pa.Array]:
        """Hash the keys of the rows that are changes, and of no others; NULL where a part of the key is NULL."""
        return [self._block_key_hashes(block, mask, names) for block, mask in enumerate(self.changed_rows or ())]

    def _block_key_hashes(self, block: int, mask: _Mask, names: Sequence[str]) -> pa.Array:
        if not mask.any():
            return pa.nulls(0, ROW_HASH_TYPE)
        rows = self.read(block, names, mask)
        is_whole = np.logical_and.reduce([np.asarray(column.is_valid()) for column in rows.columns])
        return _scatter(row_hashes(rows.filter(pack_mask(is_whole))), is_whole)

    @property
    def changed_numbers(self) -> _Indices:
        """The rows that are changes, counted through all blocks: int64, shape (changes,)."""
        return np.flatnonzero(np.concatenate([np.zeros(0, np.bool_), *(self.changed_rows or ())]))

    @cached_property
    def row_offsets(self) -> _Indices:
        """The row at which each block begins, counted through all, and at last the end: int64, shape (blocks + 1,)."""
        return np.concatenate([[0], np.cumsum(self.blocks.row_counts)])


def without_shared_rows(removed: ChangedBlocks, added: ChangedBlocks) -> tuple[ChangedBlocks, ChangedBlocks]:
    """Leave out rows of one file that count in both snapshots, and blocks of which none is left.

    A deletion vector, or keys that came since, hide few rows of a file: the others are no changes, and not read.
    """
    places = [_own_files(each.blocks) for each in (removed, added)]
    if not (shared := places[0].keys() & places[1].keys()):
        return removed, added
    live = [
        live_row_masks(each.blocks, [place[location] for location in shared])
        for each, place in zip((removed, added), places, strict=True)
    ]
    among: tuple[dict[int, _Mask], dict[int, _Mask]] = {}, {}
    for location in shared:
        before, after = (place[location] for place in places)
        everything = np.ones(int(removed.blocks.row_counts[before]), np.bool_)
        counted, counts = live[0].get(before, everything), live[1].get(after, everything)
        among[0][before], among[1][after] = counted & ~counts, counts & ~counted
    return _rows_among(removed, among[0]), _rows_among(added, among[1])


def _own_files(blocks: BlockFrame) -> dict[str, int]:
    """The number of each block by its file, which nobody else writes."""
    return {place: number for number, place in enumerate(blocks.locations) if not blocks.foreign.mask[number]}


def _rows_among(each: ChangedBlocks, among: dict[int, _Mask]) -> ChangedBlocks:
    chosen = [number for number in range(len(each.blocks)) if number not in among or among[number].any()]
    kept = {place: among[number] for place, number in enumerate(chosen) if number in among}
    return ChangedBlocks(each.changes, each.blocks.take(np.array(chosen, np.int64)), kept)


@dataclass
class UpdatePairs:
    """Changes with a key: a row removed and one added under the same key are what a row was and became."""

    removed_blocks: ChangedBlocks
    added_blocks: ChangedBlocks
    key: Sequence[str]

    def to_tables(self) -> Iterator[pa.Table]:
        """Give what was deleted, then block after block updated rows next to what they were, and what was inserted."""
        removed_rows, added_rows = match_keys(
            self.removed_blocks.key_hashes(self.key), self.added_blocks.key_hashes(self.key)
        )
        removed_rows = self.removed_blocks.changed_numbers[removed_rows]
        added_rows = self.added_blocks.changed_numbers[added_rows]
        matched = np.zeros(self.removed_blocks.row_offsets[-1], np.bool_)
        matched[removed_rows] = True
        assert self.removed_blocks.changed_rows is not None
        assert self.added_blocks.changed_rows is not None
        self.removed_blocks.changed_rows = [
            mask & ~part
            for mask, part in zip(
                self.removed_blocks.changed_rows, np.split(matched, self.removed_blocks.row_offsets[1:-1]), strict=True
            )
        ]
        yield from self.removed_blocks.to_tables(DELETE)
        for block, mask in enumerate(self.added_blocks.changed_rows):
            start = self.added_blocks.row_offsets[block]
            first, last = np.searchsorted(added_rows, [start, start + len(mask)])
            updated, inserted = np.zeros(len(mask), np.bool_), mask.copy()
            updated[added_rows[first:last] - start] = True
            inserted[updated] = False
            if updated.any():
                yield self._interleave_updates(
                    removed_rows[first:last],
                    self.added_blocks.read(block, self.removed_blocks.changes.columns, updated),
                )
            if inserted.any():
                yield _with_change_type(
                    self.added_blocks.read(block, self.removed_blocks.changes.columns, inserted), INSERT
                )

    def _interleave_updates(self, removed_rows: _Indices, updated: pa.Table) -> pa.Table:
        """Put each removed row, by its number, before the one that it became."""
        both = pa.concat_tables(
            [
                _with_change_type(self._removed_rows(removed_rows), UPDATE_PREIMAGE),
                _with_change_type(updated, UPDATE_POSTIMAGE),
            ]
        )
        return both.take(pa.array(np.arange(2 * len(removed_rows)).reshape(2, -1).T.ravel()))

    def _removed_rows(self, row_numbers: _Indices) -> pa.Table:
        """Read rows that went, in this order. ``row_numbers``: int64, shape (n,), counted through all blocks."""
        order = np.argsort(row_numbers)
        ordered = row_numbers[order]
        tables, block_of_row = [], np.searchsorted(self.removed_blocks.row_offsets, ordered, side="right") - 1
        for block in np.unique(block_of_row).tolist():
            mask = np.zeros(self.removed_blocks.blocks.row_counts[block], np.bool_)
            mask[ordered[block_of_row == block] - self.removed_blocks.row_offsets[block]] = True
            tables.append(self.removed_blocks.read(block, self.removed_blocks.changes.columns, mask))
        return pa.concat_tables(tables).take(pa.array(np.argsort(order)))


def _with_change_type(rows: pa.Table, change_type: str) -> pa.Table:
    return rows.append_column(CHANGE_TYPE, pa.repeat(pa.scalar(change_type, pa.string()), rows.num_rows))


def without_preimages(changes: pa.Table, key: Sequence[str]) -> pa.Table:
    """Make puts of changes, which are ``update_postimage``, and deletes, which have the key, and NULL elsewhere."""
    kinds = changes.column(CHANGE_TYPE)
    changes = changes.filter(pc.not_equal(kinds, UPDATE_PREIMAGE))
    is_delete = pc.equal(changes.column(CHANGE_TYPE), DELETE)
    puts = pa.array(np.arange(len(changes)), mask=is_delete.to_numpy())
    for number, field in enumerate(changes.schema):
        if field.name == CHANGE_TYPE:
            values = pc.if_else(is_delete, DELETE, UPDATE_POSTIMAGE)
        elif field.name not in key:
            values = changes.column(number).take(puts)
        else:
            continue
        changes = changes.set_column(number, pa.field(field.name, field.type), values)
    return changes


def _scatter(values: pa.Array, mask: _Mask) -> pa.Array:
    """Put the values, in order, where the mask is set, and NULL elsewhere."""
    return (
        values.take(pa.array(np.where(mask, np.cumsum(mask) - 1, 0), mask=~mask))
        if len(values)
        else pa.nulls(len(mask), ROW_HASH_TYPE)
    )
