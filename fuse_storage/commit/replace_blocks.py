"""Blocks that are replaced by others: what deletes, updates, merges and compactions come down to.

A block goes and what was made of it comes into its place, so the order of rows is kept. Only segments that hold such
blocks are written anew; what indexes know of the blocks that stay goes along with them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from fuse_storage.commit.actions import check_columns_unchanged
from fuse_storage.commit.draft import Draft
from fuse_storage.commit.merge_segments import SegmentMerger
from fuse_storage.errors import Conflict, StorageError
from fuse_storage.hot.tail import read_tail
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.metadata_table import IndexArray
from fuse_storage.metadata.segment import StagedSegment
from fuse_storage.metadata.segment_list import assemble_segment_list, read_segment_list, segment_files
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.primary_key.row_rules import row_rules
from fuse_storage.schema.schema import Schema

UnseenBlockFinder = Callable[[str], Collection[str]]
"""From the id of a snapshot to the ids of its blocks that may hold rows which the action would have had to see."""


@dataclass(frozen=True, slots=True)
class BlockReplacement:
    """Blocks that go, by id in order, and how many of the staged ones come in their place, at that of the first."""

    removed: tuple[str, ...]
    new_block_count: int = 0


@dataclass(frozen=True, slots=True)
class ReplaceBlocks:
    """Put some blocks in place of others. ``staged`` hold the blocks that come, in the order of the replacements.

    ``source_segment_ids``: of the segments that the blocks were found in. ``find_unseen_blocks``: where rows were
    chosen by a condition; then a later change of columns is a Conflict too, for the condition may mean something else.
    ``same_rows``: the rows that come are those that go, in whatever order; the snapshot says so, and who follows the
    table passes over it. ``by_key``: what comes in the place of blocks of the tail are the rows of it that count, and
    no other row has one of their keys; rows that count are as many as before, though lists do not tell.
    """

    replacements: Sequence[BlockReplacement]
    staged: Sequence[StagedSegment]
    source_segment_ids: frozenset[str]
    find_unseen_blocks: UnseenBlockFinder | None = None
    name: str = "rewrite"
    same_rows: bool = False
    by_key: bool = False

    def apply(self, draft: Draft) -> None:
        if self.find_unseen_blocks is not None and _columns(draft.head) != _columns(draft.base):
            winner = draft.first_conflicting_commit(lambda before, after: _columns(before) != _columns(after))
            raise Conflict(f"columns were changed by {winner}: read the rows again", str(winner))
        check_columns_unchanged(self.staged, draft)
        self._check_unseen_blocks(draft)
        if not self.replacements:
            return
        positions = self._locate_removed_blocks(draft)
        takes_tail = any(segment >= len(draft.segment_rows) for segment, _ in positions.values())
        row_rules(draft.head).check_commit(draft.schema_state, self.by_key or not takes_tail, self.name)
        rows_before, bytes_before = _row_count(draft), _byte_count(draft) - draft.summary.get("added_bytes", 0)
        edits = _SegmentEdits(draft, self.staged)
        for replacement in self.replacements:
            edits.replace([positions[block_id] for block_id in replacement.removed], replacement.new_block_count)
        draft.segment_rows = edits.rows()
        new_rows = sum(segment.live_rows for segment in self.staged)
        draft.summary["removed_blocks"] = sum(len(replacement.removed) for replacement in self.replacements)
        draft.summary["removed_bytes"] = bytes_before + draft.summary.get("added_bytes", 0) - _byte_count(draft)
        removed_rows = draft.summary["removed_rows"] = rows_before + new_rows - _row_count(draft)
        if self.same_rows and not self.by_key and new_rows != removed_rows:
            raise StorageError(
                f"this {self.name} would put {new_rows} rows in the place of {removed_rows}: it was to keep them all"
            )
        # The base has each key once, and the tail wins over it: where blocks of it go, nothing older comes to light.
        takes_base_alone = not self.staged and not takes_tail
        kept = draft.keeps_key or (takes_base_alone and draft.same_rows)
        draft.keeps_key = kept and (self.same_rows or takes_base_alone)
        draft.same_rows = draft.same_rows and self.same_rows
        draft.changed = True
        draft.merge_small_segments()

    def _locate_removed_blocks(self, draft: Draft) -> dict[str, tuple[int, int]]:
        """Find each block that goes: number of its segment, and of it in that. Raises Conflict if one is gone."""
        known = set(draft.base_segment_rows.column("id").to_pylist()) - self.source_segment_ids
        removed = {block_id for replacement in self.replacements for block_id in replacement.removed}
        all_positions = _block_positions(draft, draft.segment_rows, known) | {
            block_id: (len(draft.segment_rows), number) for number, block_id in enumerate(_tail_ids(draft.tail_rows))
        }
        positions = {block_id: position for block_id, position in all_positions.items() if block_id in removed}
        if gone := removed - set(positions):

            def lacks_some(_: Snapshot, after: Snapshot) -> bool:
                return not gone <= _present_ids(draft, after, known)

            winner = draft.first_conflicting_commit(lacks_some)
            raise Conflict(
                f"rows that this {self.name} read were replaced by {winner}: read them again, and decide again",
                str(winner),
            )
        return positions

    def _check_unseen_blocks(self, draft: Draft) -> None:
        """Raise Conflict if blocks that came since may hold rows that matter."""
        if self.find_unseen_blocks is None or draft.head.id == draft.base.id:
            return
        known = set(draft.base_segment_rows.column("id").to_pylist())
        new = set(_block_positions(draft, draft.segment_rows, known)) | set(_tail_ids(draft.tail_rows))
        new -= _present_ids(draft, draft.base, ()) if new else set()
        if new and (unseen := new & set(self.find_unseen_blocks(draft.head.id))):
            winner = draft.first_conflicting_commit(lambda _, after: bool(unseen & _present_ids(draft, after, known)))
            raise Conflict(
                f"rows that this {self.name} has not seen were added by {winner}: read again, and decide again",
                str(winner),
            )


def _columns(snapshot: Snapshot) -> tuple[int, Mapping[int, Schema]]:
    """Give what a condition is resolved by; schemas only grow in number, so that no commit between can be missed."""
    return snapshot.schema_id, snapshot.schemas


def _row_count(draft: Draft) -> int:
    in_tail = 0 if draft.tail_rows is None else int(metadata_table.column_as_int64(draft.tail_rows, "row_count").sum())
    return int(metadata_table.column_as_int64(draft.segment_rows, "live_rows").sum()) + in_tail


def _byte_count(draft: Draft) -> int:
    in_tail = 0 if draft.tail_rows is None else int(metadata_table.column_as_int64(draft.tail_rows, "size").sum())
    return int(metadata_table.column_as_int64(draft.segment_rows, "size").sum()) + in_tail


def _tail_ids(rows: pa.Table | None) -> list[str]:
    return [] if rows is None else list(rows.column("id").to_pylist())


def _present_ids(draft: Draft, snapshot: Snapshot, known: Collection[str]) -> set[str]:
    """Find the blocks of a snapshot: those of its segments that are not ``known``, and of its tail."""
    in_segments = _block_positions(draft, read_segment_list(draft.store, snapshot), known)
    return in_segments.keys() | set(_tail_ids(read_tail(draft.store, snapshot)))


def _block_positions(draft: Draft, rows: pa.Table, known: Collection[str]) -> dict[str, tuple[int, int]]:
    """Find the blocks of the segments that are not ``known``: by id, number of the segment, and of the block in it."""
    positions: dict[str, tuple[int, int]] = {}
    files = zip(rows.column("id").to_pylist(), segment_files(rows), strict=True)
    for segment, (segment_id, file) in enumerate(files):
        if segment_id not in known:
            (ids,) = metadata_table.read_column_groups(draft.store, file, [("id",)])
            positions |= {block_id: (segment, block) for block, block_id in enumerate(ids.column("id").to_pylist())}
    return positions


@dataclass
class _SegmentEdits:
    """What happens to each segment of a list. Blocks that come are numbered through all that were staged.

    The tail counts as one more segment, behind the list: what comes in the place of its blocks is a segment there.

    ``removed``: by segment, the blocks in it that go. ``inserted``: by (segment, block), the staged blocks that come
    right before that place.
    """

    draft: Draft
    staged: Sequence[StagedSegment]
    removed: dict[int, set[int]] = field(default_factory=dict)
    inserted: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    next_staged_block: int = 0

    def replace(self, positions: Sequence[tuple[int, int]], new_block_count: int) -> None:
        """Put the next staged blocks in place of the blocks at these (segment, block)."""
        for segment, block in positions:
            self.removed.setdefault(segment, set()).add(block)
        staged_blocks = range(self.next_staged_block, self.next_staged_block + new_block_count)
        self.inserted.setdefault(min(positions), []).extend(staged_blocks)
        self.next_staged_block += new_block_count

    def rows(self) -> pa.Table:
        """Write the segments that change, and give the rows of the list as it is then."""
        draft, pieces, position = self.draft, [], 0
        new_rows = draft.assign_row_ids(self.staged)
        offsets = metadata_table.counts_to_offsets(np.array([segment.block_count for segment in self.staged], np.int64))
        tail = len(draft.segment_rows)
        for segment in sorted(self.removed.keys() - {tail}):
            pieces += [
                draft.segment_rows.slice(position, segment - position),
                *self._rewrite_segment(segment, new_rows, offsets),
            ]
            position = segment + 1
        pieces += [draft.segment_rows.slice(position), *self._take_out_of_tail(tail, new_rows, offsets)]
        return assemble_segment_list(pieces, draft.schema, draft.index_keys)

    def _take_out_of_tail(self, tail: int, new_rows: Sequence[pa.Table], offsets: IndexArray) -> list[pa.Table]:
        """Leave blocks out of the tail, and give rows of the list for what comes in their place.

        ``offsets``: int64, shape (staged segments + 1,), as of ``_rewrite_segment``.
        """
        draft, removed = self.draft, self.removed.get(tail)
        if not removed or draft.tail_rows is None:
            return []
        kept = np.setdiff1d(np.arange(len(draft.tail_rows)), sorted(removed))
        draft.tail_rows = draft.tail_rows.take(pa.array(kept)) if len(kept) else None
        inserted = [
            number for place, numbers in sorted(self.inserted.items()) if place[0] == tail for number in numbers
        ]
        owners = np.unique(np.searchsorted(offsets, inserted, side="right") - 1)
        counts = offsets[owners + 1] - offsets[owners]
        if np.array_equal(inserted, metadata_table.ranges_to_indices(offsets[owners], counts)):
            return [new_rows[owner] for owner in owners.tolist()]  # segments as they were staged
        return self._write_segments(None, [(True, number) for number in inserted], new_rows, offsets)

    def _rewrite_segment(self, segment: int, new_rows: Sequence[pa.Table], offsets: IndexArray) -> list[pa.Table]:
        """Write what comes in place of a segment, and give its rows of the list; none if no block is left.

        ``new_rows``: of the staged segments. ``offsets``: int64, shape (staged segments + 1,), where the blocks of each
        begin among all staged blocks.
        """
        row = self.draft.segment_rows.slice(segment, 1)
        count = row.column("block_count")[0].as_py()
        blocks: list[
            tuple[bool, int]
        ] = []  # whether it is a staged block, and its number among those, or in the segment
        for block in range(count):
            blocks += [(True, staged) for staged in self.inserted.get((segment, block), ())]
            blocks += [] if block in self.removed[segment] else [(False, block)]
        return self._write_segments(row, blocks, new_rows, offsets)

    def _write_segments(
        self,
        row: pa.Table | None,
        blocks: Sequence[tuple[bool, int]],
        new_rows: Sequence[pa.Table],
        offsets: IndexArray,
    ) -> list[pa.Table]:
        """Write segments of these blocks, and give their rows of the list.

        ``row``: that of the segment in which some of them are. ``blocks``: whether each is a staged block, and its
        number. ``offsets``: int64, shape (staged segments + 1,), as of ``_rewrite_segment``.
        """
        count = 0 if row is None else row.column("block_count")[0].as_py()
        owners = np.searchsorted(offsets, [number for is_staged, number in blocks if is_staged], side="right") - 1
        used = np.unique(owners).tolist()
        # The merger numbers blocks through all the segments that it is given: this one, then the staged ones in use.
        used_offsets = metadata_table.counts_to_offsets(
            np.array([self.staged[owner].block_count for owner in used], np.int64)
        )
        starts = dict(zip(used, count + used_offsets, strict=False))
        coming = iter(owners.tolist())
        block_indices = [
            int(starts[owner := next(coming)] + number - offsets[owner]) if is_staged else number
            for is_staged, number in blocks
        ]
        draft, limit = self.draft, self.draft.segment_blocks
        sources = [*([] if row is None else [row]), *(new_rows[owner] for owner in used)]
        rows = assemble_segment_list(sources, draft.schema, draft.index_keys)
        merger = SegmentMerger(draft.store, draft.schema, draft.index_keys, draft.builders)
        return [
            merger.rearrange_blocks(rows, np.array(block_indices[start : start + limit]))
            for start in range(0, len(block_indices), limit)
        ]
