"""The stages of a plan: what was asked in each, what it left to read, and what it cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from fuse_storage import MeteredStore, SegmentFrame, Store


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of a plan.

    ``asked`` counts how often an index, or statistics, were asked about a leaf, ``votes`` what came of it. ``blocks``,
    ``zones`` and ``rows`` are those left to read when the stage ended. ``requests`` and ``bytes`` are what the stage
    itself fetched; None where nobody counted.
    """

    name: str
    asked: int
    votes: int
    blocks: int
    zones: int
    rows: int
    seconds: float
    requests: int | None = None
    bytes: int | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


class Stages(tuple[Stage, ...]):
    """The stages of a plan, in their order; ``print`` shows them as a table."""

    def __str__(self) -> str:
        heads = ("stage", "asked", "votes", "blocks", "zones", "rows", "requests", "bytes", "ms")
        rows = [heads, *(_cells(stage) for stage in self)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
        return "\n".join(
            "  ".join(
                [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
            )
            for row in rows
        )

    @property
    def requests(self) -> int | None:
        """All requests; None where nobody counted."""
        counts = [stage.requests for stage in self if stage.requests is not None]
        return sum(counts) if counts else None


NO_STAGES = Stages()


def _cells(stage: Stage) -> tuple[str, ...]:
    counts = (stage.asked, stage.votes, stage.blocks, stage.zones, stage.rows, stage.requests, stage.bytes)
    return (stage.name, *("-" if count is None else f"{count:,}" for count in counts), f"{1000 * stage.seconds:.1f}")


def segments_left(segments: SegmentFrame, living: npt.NDArray[np.int64]) -> tuple[int, int, int]:
    """Blocks, zones and rows of these segments. ``living``: their numbers, int64, shape (k,)."""
    blocks, zones, rows = (
        int(counts[living].sum()) for counts in (segments.block_counts, segments.zone_counts, segments.row_counts)
    )
    return blocks, zones, rows


@dataclass
class StageLog:
    """The stages of a plan that is being made. ``asked`` and ``votes`` count up from where the last stage ended."""

    asked: int = 0
    votes: int = 0
    ended: list[Stage] = field(default_factory=list)
    _started: float = field(default_factory=perf_counter)
    _requests: int = 0

    def end(self, name: str, store: Store, left: tuple[int, int, int]) -> None:
        """End a stage. ``left``: the blocks, zones and rows that are left to read. ``store``: who counts requests."""
        now, requests, size = perf_counter(), None, None
        if isinstance(store, MeteredStore):
            fetched = store.reads[self._requests :]
            requests, size = len(fetched), sum(count for _, _, count in fetched)
            self._requests += requests
        self.ended.append(Stage(name, self.asked, self.votes, *left, now - self._started, requests, size))
        self.asked = self.votes = 0
        self._started = now
