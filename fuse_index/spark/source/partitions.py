"""A scan plan, cut into tasks that carry all they need: a task opens files, and asks the table for nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fuse_index.pruning.planner import ScanPlan
from fuse_storage import BlockFrame

ROWS_PER_TASK = 1_000_000
"""A task gets blocks until it has so many rows to read."""


@dataclass(frozen=True, slots=True)
class TaskBlocks:
    """The n blocks of one task: small and picklable, where a ``BlockFrame`` holds on to the whole snapshot.

    ``zone_offsets``: int64, shape (n + 1,), the zones of block i are ``zone_offsets[i]`` up to ``zone_offsets[i + 1]``.
    ``zone_rows``: int64, shape (number of zones,), their rows. ``in_tail``: bool, shape (n,), blocks of hot commits.
    """

    files: tuple[Any, ...]
    """The file of each block, as ``BlockFrame.file`` gives it."""
    zone_offsets: npt.NDArray[np.int64]
    zone_rows: npt.NDArray[np.int64]
    in_tail: npt.NDArray[np.bool_]

    @classmethod
    def from_frame(cls, blocks: BlockFrame) -> TaskBlocks:
        files = tuple(blocks.file(block) for block in range(len(blocks)))
        return cls(files, blocks.zone_offsets, blocks.zone_rows, blocks.in_tail)

    def __len__(self) -> int:
        return len(self.files)

    def file(self, block: int) -> Any:
        return self.files[block]


def split_plan(plan: ScanPlan[BlockFrame]) -> Iterator[ScanPlan[TaskBlocks]]:
    """Split a plan into parts of about ``ROWS_PER_TASK`` rows, in order; a block is never divided."""
    if not len(plan.blocks):
        return
    rows = np.add.reduceat(np.where(plan.zones, plan.blocks.zone_rows, 0), plan.blocks.zone_offsets[:-1])
    task_of_block = (np.cumsum(rows) - 1) // ROWS_PER_TASK
    for task in np.unique(task_of_block):
        part = plan.take(np.flatnonzero(task_of_block == task))
        yield ScanPlan(
            part.table,
            part.predicate,
            part.context,
            TaskBlocks.from_frame(part.blocks),
            part.zones,
            part.always_matching_zones,
            part.row_masks,
            part.explanation,
        )
