"""The live rows of blocks: masks by block and by zone, and reading these rows alone.

A block all of whose rows count has no mask, and a table without deletion vectors is not asked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_storage.deletion_vector import VectorRef, read_vector
from fuse_storage.errors import RESTORE_HINT, Corrupt, TableUrl
from fuse_storage.metadata.block_frame import BlockFrame
from fuse_storage.metadata.metadata_table import METADATA_READ_THREADS
from fuse_storage.parquet.pages import RowMask
from fuse_storage.primary_key.row_rules import row_rules
from fuse_storage.table import StoredTable

_MAX_DELETED_SHARE = 5
"""One row of so many of a block may be deleted before the block is better written anew."""


def stored_blocks(table: StoredTable) -> BlockFrame:
    """The blocks of a state, with all rows that no vector marks: for whoever moves rows, whether they count or not.

    Where a primary key hides some, none of the tail; they stay hidden wherever they are.
    """
    return row_rules(table.snapshot).without_hiding(table).blocks()


def is_worn(row_count: int, live_count: int) -> bool:
    """Whether so many rows of a block do not count that it is better written anew."""
    return (row_count - live_count) * _MAX_DELETED_SHARE > row_count


def are_worn(blocks: BlockFrame) -> npt.NDArray[np.bool_]:
    """Which of these blocks are better written anew: bool, shape (n,)."""
    return np.asarray((blocks.row_counts - blocks.live_row_counts) * _MAX_DELETED_SHARE > blocks.row_counts)


def live_row_masks(blocks: BlockFrame, chosen: Sequence[int] | None = None) -> dict[int, RowMask]:
    """The live rows of those blocks that have others: by position, bool, shape (rows of the block,).

    ``chosen``: positions of blocks, by default all. Raises Corrupt for a vector that is missing or damaged: which rows
    there are is not known then.
    """
    if not blocks.has_deleted_rows:
        return {}
    marked = np.flatnonzero(~blocks.has_all_rows).tolist()
    positions = marked if chosen is None else [position for position in chosen if not blocks.has_all_rows[position]]
    if len(positions) < 2:
        return {position: _live_rows(blocks, position) for position in positions}
    with ThreadPoolExecutor(min(METADATA_READ_THREADS, len(positions)), "fuse-vectors") as pool:
        return dict(zip(positions, pool.map(partial(_live_rows, blocks), positions), strict=True))


def _live_rows(blocks: BlockFrame, position: int) -> RowMask:
    if (known := blocks.segments.hidden_rows.get(int(blocks.ordinals[position]))) is not None:
        return known
    reference, store = blocks.deletion_vectors[position], blocks.segments.store
    if reference is None:
        raise Corrupt(
            TableUrl(store.url)
            + f": rows of block {blocks.ids[position]} were deleted, and nothing says which: {RESTORE_HINT}"
        )
    counts = int(blocks.row_counts[position]), int(blocks.live_row_counts[position])
    shares_files = blocks.segments.snapshot.shares_files
    return ~read_vector(store, VectorRef.parse(reference), *counts, shares_files)


def leave_out_deleted(
    blocks: BlockFrame, zones: npt.NDArray[np.bool_], row_masks: Mapping[int, RowMask]
) -> tuple[npt.NDArray[np.bool_], dict[int, RowMask]]:
    """Take deleted rows out of what is to be read of these blocks: zones to read, and masks of rows of some of them.

    ``zones``: bool, one per zone of the blocks; ``row_masks``: by number of a zone, bool, one per row of it. Returns
    both, without zones of which no row is left. Raises as ``live_row_masks``.
    """
    if not blocks.has_deleted_rows:
        return zones, dict(row_masks)
    left, masks = zones.copy(), dict(row_masks)
    owners = np.repeat(np.arange(len(blocks)), blocks.zone_counts)
    wanted = np.unique(owners[zones]).tolist()
    for position, live in live_row_masks(blocks, wanted).items():
        first, end = int(blocks.zone_offsets[position]), int(blocks.zone_offsets[position + 1])
        parts = np.split(live, np.cumsum(blocks.zone_rows[first:end])[:-1])
        for zone, rows in zip(range(first, end), parts, strict=True):
            if not zones[zone] or rows.all():
                continue
            masks[zone] = masks[zone] & rows if zone in masks else rows
            if not masks[zone].any():
                left[zone] = False
                del masks[zone]
    return left, masks


def read_live_rows(
    table: StoredTable, blocks: BlockFrame, position: int, columns: Sequence[str], among: RowMask | None = None
) -> pa.Table:
    """Read columns of the live rows of one block of the frame.

    ``among``: bool, shape (rows of the block,), those of its rows that are wanted. Raises as ``StoredTable.read_block``
    and ``live_row_masks``.
    """
    return table.read_block(blocks, position, columns, row_mask=live_among(blocks, position, among))


def live_among(blocks: BlockFrame, position: int, among: RowMask | None = None) -> RowMask | None:
    """Which rows of a block are live, and among these: bool, shape (rows,); None if all are. Raises as above."""
    live = live_row_masks(blocks, [position]).get(position)
    return among if live is None else live if among is None else live & among
