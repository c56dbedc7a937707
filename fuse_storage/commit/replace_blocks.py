"""Blocks that are replaced by others: what deletes, updates, merges and compactions come down to.

A block goes and what was made of it comes into its place, so the order of rows is kept. Only segments that hold such
blocks are written anew; what indexes know of the blocks that stay goes along with them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from fuse_storage.commit.actions import check_columns_unchanged
from fuse_storage.commit.draft import Draft
from fuse_storage.commit.merge_segments import SegmentMerger
from fuse_storage.errors import Conflict, StorageError
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.metadata_table import IndexArray
from fuse_storage.metadata.segment import MAX_BLOCKS_PER_SEGMENT, StagedSegment
from fuse_storage.metadata.segment_list import assemble_segment_list, read_segment_list, segment_files
from fuse_storage.metadata.snapshot import Snapshot

UnseenBlockFinder = Callable[[str], Collection[str]]
"""Told the id of a snapshot, says which of its blocks (by their ids) may hold rows that the change would have had to
see.
"""


@dataclass(frozen=True, slots=True)
class BlockReplacement:
    """Blocks that go, in order, and how many of the staged ones come in their place, at that of the first."""

    removed: tuple[str, ...]
    new_block_count: int = 0


@dataclass(frozen=True, slots=True)
class ReplaceBlocks:
    """Some blocks in place of others. ``staged`` hold the blocks that come, in the order of the swaps.

    ``touched``: ids of the segments that the blocks were found in. ``unseen``: where rows were chosen by a condition;
    then a later change of columns is a Conflict too, for the condition may mean something else. ``same_rows``: those
    that come are those that go, in whatever order; the snapshot says so, and who follows the table passes over it.
    """

    replacements: Sequence[BlockReplacement]
    staged: Sequence[StagedSegment]
    source_segment_ids: frozenset[str]
    find_unseen_blocks: UnseenBlockFinder | None = None
    name: str = "rewrite"
    same_rows: bool = False

    def apply(self, draft: Draft) -> None:
        if self.find_unseen_blocks is not None and (
            winner := draft.first_conflicting_commit(lambda before, after: before.schemas != after.schemas)
        ):
            raise Conflict(f"columns were changed by {winner}: read the rows again", str(winner))
        check_columns_unchanged(self.staged, draft)
        self._check_unseen_blocks(draft)
        if not self.replacements:
            return
        places = self._locate_removed_blocks(draft)
        before = sum(metadata_table.column_as_int64(draft.segment_rows, "row_count"))
        edits = _SegmentEdits(draft, self.staged)
        for swap in self.replacements:
            edits.replace([places[id] for id in swap.removed], swap.new_block_count)
        draft.segment_rows = edits.rows()
        made = sum(segment.row_count for segment in self.staged)
        draft.summary["removed_blocks"] = sum(len(swap.removed) for swap in self.replacements)
        removed = draft.summary["removed_rows"] = int(
            before + made - sum(metadata_table.column_as_int64(draft.segment_rows, "row_count"))
        )
        if self.same_rows and made != removed:
            raise StorageError(
                f"this {self.name} would put {made} rows in the place of {removed}: it was to keep them all"
            )
        draft.same_rows = draft.same_rows and self.same_rows
        draft.changed = True
        draft.merge_small_segments()

    def _locate_removed_blocks(self, draft: Draft) -> dict[str, tuple[int, int]]:
        """Number of segment, and of block in it, of each block that goes. Raises Conflict if one is gone already."""
        known = set(draft.base_segment_rows.column("id").to_pylist()) - self.source_segment_ids
        wanted = {id for swap in self.replacements for id in swap.removed}
        places = {id: place for id, place in _block_positions(draft, draft.segment_rows, known).items() if id in wanted}
        if gone := wanted - set(places):

            def lost(_: Snapshot, after: Snapshot) -> bool:
                return not gone <= _block_positions(draft, read_segment_list(draft.store, after), known).keys()

            winner = draft.first_conflicting_commit(lost)
            raise Conflict(
                f"rows that this {self.name} read were replaced by {winner}: read them again, and decide again",
                str(winner),
            )
        return places

    def _check_unseen_blocks(self, draft: Draft) -> None:
        """Raise Conflict if blocks that came since may hold rows that matter."""
        if self.find_unseen_blocks is None or draft.head.id == draft.base.id:
            return
        known = set(draft.base_segment_rows.column("id").to_pylist())
        new = set(_block_positions(draft, draft.segment_rows, known))
        new -= set(_block_positions(draft, draft.base_segment_rows, ())) if new else set()
        if new and (matter := new & set(self.find_unseen_blocks(draft.head.id))):
            winner = draft.first_conflicting_commit(
                lambda _, after: bool(
                    matter & _block_positions(draft, read_segment_list(draft.store, after), known).keys()
                )
            )
            raise Conflict(
                f"rows that this {self.name} has not seen were added by {winner}: read again, and decide again",
                str(winner),
            )


def _block_positions(draft: Draft, rows: pa.Table, known: Collection[str]) -> dict[str, tuple[int, int]]:
    """Where each block is, by its id, of the segments that are not known."""
    found: dict[str, tuple[int, int]] = {}
    for number, (id, part) in enumerate(zip(rows.column("id").to_pylist(), segment_files(rows), strict=True)):
        if id not in known:
            (ids,) = metadata_table.read_column_groups(draft.store, part, [("id",)])
            found |= {block: (number, place) for place, block in enumerate(ids.column("id").to_pylist())}
    return found


@dataclass
class _SegmentEdits:
    """What happens to each segment of a list. Blocks that come are numbered through all that were staged."""

    draft: Draft
    staged: Sequence[StagedSegment]
    removed: dict[int, set[int]] = field(default_factory=dict)
    inserted: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    next_staged_block: int = 0

    def replace(self, places: Sequence[tuple[int, int]], made: int) -> None:
        for segment, place in places:
            self.removed.setdefault(segment, set()).add(place)
        self.inserted.setdefault(min(places), []).extend(range(self.next_staged_block, self.next_staged_block + made))
        self.next_staged_block += made

    def rows(self) -> pa.Table:
        """The list as it is then."""
        draft, pieces, at = self.draft, [], 0
        new = draft.assign_row_ids(self.staged)
        starts = metadata_table.counts_to_offsets(np.array([segment.block_count for segment in self.staged], np.int64))
        for number in sorted(self.removed):
            pieces += [draft.segment_rows.slice(at, number - at), *self._rewritten(number, new, starts)]
            at = number + 1
        return assemble_segment_list([*pieces, draft.segment_rows.slice(at)], draft.schema, draft.index_keys)

    def _rewritten(self, number: int, new: Sequence[pa.Table], starts: IndexArray) -> list[pa.Table]:
        """The rows in place of a segment's, none if no block is left."""
        row = self.draft.segment_rows.slice(number, 1)
        count = row.column("block_count")[0].as_py()
        wanted: list[
            tuple[int, int]
        ] = []  # 0 and the block's place in the segment, or 1 and its number among the staged
        for place in range(count):
            wanted += [(1, block) for block in self.inserted.get((number, place), ())]
            wanted += [] if place in self.removed[number] else [(0, place)]
        owners = np.searchsorted(starts, [block for kind, block in wanted if kind], side="right") - 1
        used = np.unique(owners).tolist()
        first = dict(
            zip(
                used,
                count
                + metadata_table.counts_to_offsets(np.array([self.staged[one].block_count for one in used], np.int64)),
                strict=False,
            )
        )
        coming = iter(owners.tolist())
        blocks = [
            place if not kind else int(first[owner := next(coming)] + place - starts[owner]) for kind, place in wanted
        ]
        rows = assemble_segment_list([row, *(new[one] for one in used)], self.draft.schema, self.draft.index_keys)
        merger = SegmentMerger(self.draft.store, self.draft.schema, self.draft.index_keys, self.draft.builders)
        return [
            merger.rearrange_blocks(rows, np.array(blocks[at : at + MAX_BLOCKS_PER_SEGMENT]))
            for at in range(0, len(blocks), MAX_BLOCKS_PER_SEGMENT)
        ]
