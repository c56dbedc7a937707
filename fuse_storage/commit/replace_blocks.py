"""Blocks that are replaced by others: what deletes, updates, merges and compactions come down to.

A block goes and what was made of it comes into its place, so the order of rows is kept. Only segments that hold such
blocks are written anew; what indexes know of the blocks that stay goes along with them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from fuse_storage.commit.actions import refuse_other_columns
from fuse_storage.commit.draft import Draft
from fuse_storage.commit.merge_segments import Merger
from fuse_storage.errors import Conflict, StorageError
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.metadata_table import Indices
from fuse_storage.metadata.segment import MAX_BLOCKS, StagedSegment, listed, parts, read_list
from fuse_storage.metadata.snapshot import Snapshot

Unseen = Callable[[str], Collection[str]]
"""Told the id of a snapshot, says which of its blocks (by their ids) may hold rows that the change would have had to
see.
"""


@dataclass(frozen=True, slots=True)
class Swap:
    """Blocks that go, in order, and how many of the staged ones come in their place, at that of the first."""

    removed: tuple[str, ...]
    made: int = 0


@dataclass(frozen=True, slots=True)
class Rewrite:
    """Some blocks in place of others. ``staged`` hold the blocks that come, in the order of the swaps.

    ``touched``: ids of the segments that the blocks were found in. ``unseen``: where rows were chosen by a condition;
    then a later change of columns is a Conflict too, for the condition may mean something else. ``same_rows``: those
    that come are those that go, in whatever order; the snapshot says so, and who follows the table passes over it.
    """

    swaps: Sequence[Swap]
    staged: Sequence[StagedSegment]
    touched: frozenset[str]
    unseen: Unseen | None = None
    name: str = "rewrite"
    same_rows: bool = False

    def apply(self, draft: Draft) -> None:
        if self.unseen is not None and (winner := draft.since(lambda before, after: before.schemas != after.schemas)):
            raise Conflict(f"columns were changed by {winner}: read the rows again", str(winner))
        refuse_other_columns(self.staged, draft)
        self._refuse_unseen(draft)
        if not self.swaps:
            return
        places = self._places(draft)
        before = sum(metadata_table.numbers(draft.rows, "row_count"))
        edits = _Edits(draft, self.staged)
        for swap in self.swaps:
            edits.swap([places[id] for id in swap.removed], swap.made)
        draft.rows = edits.rows()
        made = sum(segment.row_count for segment in self.staged)
        draft.summary["removed_blocks"] = sum(len(swap.removed) for swap in self.swaps)
        removed = draft.summary["removed_rows"] = int(
            before + made - sum(metadata_table.numbers(draft.rows, "row_count"))
        )
        if self.same_rows and made != removed:
            raise StorageError(
                f"this {self.name} would put {made} rows in the place of {removed}: it was to keep them all"
            )
        draft.same_rows = draft.same_rows and self.same_rows
        draft.changed = True
        draft.merge_small()

    def _places(self, draft: Draft) -> dict[str, tuple[int, int]]:
        """Number of segment, and of block in it, of each block that goes. Raises Conflict if one is gone already."""
        known = set(draft.base_rows.column("id").to_pylist()) - self.touched
        wanted = {id for swap in self.swaps for id in swap.removed}
        places = {id: place for id, place in _blocks(draft, draft.rows, known).items() if id in wanted}
        if gone := wanted - set(places):

            def lost(_: Snapshot, after: Snapshot) -> bool:
                return not gone <= _blocks(draft, read_list(draft.store, after), known).keys()

            winner = draft.since(lost)
            raise Conflict(
                f"rows that this {self.name} read were replaced by {winner}: read them again, and decide again",
                str(winner),
            )
        return places

    def _refuse_unseen(self, draft: Draft) -> None:
        """Raise Conflict if blocks that came since may hold rows that matter."""
        if self.unseen is None or draft.head.id == draft.base.id:
            return
        known = set(draft.base_rows.column("id").to_pylist())
        new = set(_blocks(draft, draft.rows, known))
        new -= set(_blocks(draft, draft.base_rows, ())) if new else set()
        if new and (matter := new & set(self.unseen(draft.head.id))):
            winner = draft.since(
                lambda _, after: bool(matter & _blocks(draft, read_list(draft.store, after), known).keys())
            )
            raise Conflict(
                f"rows that this {self.name} has not seen were added by {winner}: read again, and decide again",
                str(winner),
            )


def _blocks(draft: Draft, rows: pa.Table, known: Collection[str]) -> dict[str, tuple[int, int]]:
    """Where each block is, by its id, of the segments that are not known."""
    found: dict[str, tuple[int, int]] = {}
    for number, (id, part) in enumerate(zip(rows.column("id").to_pylist(), parts(rows), strict=True)):
        if id not in known:
            (ids,) = metadata_table.read(draft.store, part, [("id",)])
            found |= {block: (number, place) for place, block in enumerate(ids.column("id").to_pylist())}
    return found


@dataclass
class _Edits:
    """What happens to each segment of a list. Blocks that come are numbered through all that were staged."""

    draft: Draft
    staged: Sequence[StagedSegment]
    gone: dict[int, set[int]] = field(default_factory=dict)
    coming: dict[tuple[int, int], list[int]] = field(default_factory=dict)
    next: int = 0

    def swap(self, places: Sequence[tuple[int, int]], made: int) -> None:
        for segment, place in places:
            self.gone.setdefault(segment, set()).add(place)
        self.coming.setdefault(min(places), []).extend(range(self.next, self.next + made))
        self.next += made

    def rows(self) -> pa.Table:
        """The list as it is then."""
        draft, pieces, at = self.draft, [], 0
        new = draft.numbered(self.staged)
        starts = metadata_table.offsets(np.array([segment.block_count for segment in self.staged], np.int64))
        for number in sorted(self.gone):
            pieces += [draft.rows.slice(at, number - at), *self._rewritten(number, new, starts)]
            at = number + 1
        return listed([*pieces, draft.rows.slice(at)], draft.schema, draft.keys)

    def _rewritten(self, number: int, new: Sequence[pa.Table], starts: Indices) -> list[pa.Table]:
        """The rows in place of a segment's, none if no block is left."""
        row = self.draft.rows.slice(number, 1)
        count = row.column("block_count")[0].as_py()
        wanted: list[
            tuple[int, int]
        ] = []  # 0 and the block's place in the segment, or 1 and its number among the staged
        for place in range(count):
            wanted += [(1, block) for block in self.coming.get((number, place), ())]
            wanted += [] if place in self.gone[number] else [(0, place)]
        owners = np.searchsorted(starts, [block for kind, block in wanted if kind], side="right") - 1
        used = np.unique(owners).tolist()
        first = dict(
            zip(
                used,
                count + metadata_table.offsets(np.array([self.staged[one].block_count for one in used], np.int64)),
                strict=False,
            )
        )
        coming = iter(owners.tolist())
        blocks = [
            place if not kind else int(first[owner := next(coming)] + place - starts[owner]) for kind, place in wanted
        ]
        rows = listed([row, *(new[one] for one in used)], self.draft.schema, self.draft.keys)
        merger = Merger(self.draft.store, self.draft.schema, self.draft.keys, self.draft.builders)
        return [
            merger.rearranged(rows, np.array(blocks[at : at + MAX_BLOCKS])) for at in range(0, len(blocks), MAX_BLOCKS)
        ]
