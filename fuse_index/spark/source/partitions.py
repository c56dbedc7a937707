"""A plan, cut into tasks that carry all they need: a task opens block files, and asks the table for nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from fuse_index.pruning.planner import ScanPlan
from fuse_storage import BlockFrame

ROWS_PER_TASK = 1_000_000
"""A task gets blocks until it has so many rows to read."""


@dataclass(frozen=True, slots=True)
class ScanUnits:
    """What a scan asks of ``BlockFrame``, of some of them. Small and picklable, where those hold on to the whole
    snapshot.
    """

    files: tuple[Any, ...]
    zone_offsets: npt.NDArray[np.int64]
    zone_rows: npt.NDArray[np.int64]

    @classmethod
    def from_blocks(cls, blocks: BlockFrame) -> ScanUnits:
        return cls(tuple(blocks.file(block) for block in range(len(blocks))), blocks.zone_offsets, blocks.zone_rows)

    def __len__(self) -> int:
        return len(self.files)

    def file(self, block: int) -> Any:
        return self.files[block]


def split_plan(plan: ScanPlan) -> Iterator[ScanPlan]:
    """The plan in pieces of about ``TASK_ROWS`` rows, in order; a block is never divided."""
    if not len(plan.blocks):
        return
    rows = np.add.reduceat(np.where(plan.zones, plan.blocks.zone_rows, 0), plan.blocks.zone_offsets[:-1])
    task = (np.cumsum(rows) - 1) // ROWS_PER_TASK
    for number in np.unique(task):
        yield _plan_slice(plan, np.flatnonzero(task == number))


def _plan_slice(whole: ScanPlan, chosen: npt.NDArray[np.int64]) -> ScanPlan:
    part = whole.take(chosen)
    return replace(part, blocks=cast(BlockFrame, ScanUnits.from_blocks(part.blocks)))
