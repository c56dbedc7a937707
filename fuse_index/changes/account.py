"""What changes are read from: told by the blocks that came and went, without reading one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow.compute as pc

from fuse_index.changes.changes import Changes
from fuse_index.pruning.account.uses import ChangesUse
from fuse_index.pruning.explanation import Explanation, Totals, Vote
from fuse_index.pruning.planner import plan_scan
from fuse_storage import BlockFrame, changed_blocks


def explain_changes(changes: Changes) -> Explanation:
    """Explain changes: counted are the blocks that only one of both snapshots has, and which of them are read.

    Raises StorageError.
    """
    came_and_went = changed_blocks(changes.before, changes.after)
    if (operations := changes.key_operations()) is not None:
        hot, how = operations.hot_blocks, "what hot commits put and deleted is read, and no other block"
        sizes = int(pc.sum(hot.column("size")).as_py() or 0) if "size" in hot.column_names else 0
        read = (0, len(hot), len(hot), operations.row_count, sizes)
    else:
        removed, added, appended = changes.blocks_to_read()
        frames = [removed.blocks, added.blocks] if appended is None else appended
        read, how = _sums(frames), _how(len(removed.blocks), len(added.blocks), appended is not None)
    gone, came = came_and_went
    versions = changes.before.snapshot.version, changes.after.snapshot.version
    total = tuple(map(max, _sums(came_and_went), read))
    levels = ("segments", "blocks", "zones", "rows", "bytes")
    counts: dict[str, Any] = {name: Totals(*pair) for name, *pair in zip(levels, total, read, strict=True)}
    return Explanation(
        snapshot=changes.after.snapshot.id,
        predicate=changes.predicate,
        votes=tuple(_votes(changes)),
        table=changes.after.store.url,
        changes=ChangesUse(*versions, len(came), len(gone), how),
        **counts,
    )


def _how(removed: int, added: int, only_appends: bool) -> str:
    if only_appends:
        return "only appends brought rows, and only what they brought is read"
    if removed and added:
        return "rows of both are compared"
    return "what may match is read, and nothing is compared" if removed or added else "nothing is read"


def _sums(frames: Iterable[BlockFrame]) -> tuple[int, int, int, int, int]:
    """Segments, blocks, zones, rows and bytes of some blocks."""
    counts = np.zeros(5, np.int64)
    for blocks in frames:
        segments = np.searchsorted(blocks.segments.block_offsets, blocks.ordinals, side="right")
        counts += (
            len(np.unique(segments)),
            len(blocks),
            blocks.zone_counts.sum(),
            blocks.row_counts.sum(),
            blocks.sizes.sum(),
        )
    return tuple(map(int, counts))  # type: ignore[return-value]


def _votes(changes: Changes) -> Iterable[Vote]:
    if changes.predicate is not None and changes.key_operations() is None:
        yield from plan_scan(changes.after, changes.predicate, changes.engine).explanation.votes
