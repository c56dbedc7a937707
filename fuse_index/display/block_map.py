"""A picture of a plan: each block of a snapshot in its place, read, read in part, or who took it out.

Blocks beyond a few hundred share cells, so that the picture of a large table is no larger than that of a small one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from itertools import pairwise

import numpy as np
import numpy.typing as npt

READ, IN_PART = 0, 1
"""Fates of a block that is read, and of one of which only some zones or rows are; then those of ``BlockMap.takers``."""

MAX_CELLS, MAX_KEYS = 512, 16
"""What is drawn at most: cells, and colours that are explained."""
_COLUMNS, _CELL, _GAP = 64, 13, 2
READ_COLOR, PART, PALE = "#e4572e", ".3", ".45"
"""The colour of what is read, and how opaque a block is that is read in part, and one that is not."""
_TAKER_COLORS = ("#4f8fd6", "#3aa17e", "#a77bd1", "#c29a2b", "#5bb3c9", "#d07fa6", "#8a9a5b", "#8c8c8c")
Fates = npt.NDArray[np.uint16]
_BlockIndices = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]
_UNKNOWN = np.iinfo(np.uint16).max

DELETED = "deletions: no row is left"
"""What takes blocks out of which no vote took the last row."""


@dataclass(frozen=True, eq=False)
class BlockMap:
    """What became of each block.

    ``takers``: what took blocks out, as text. ``fates``: uint16, one per block of the snapshot, in their order:
    ``READ``, ``IN_PART``, or the number of a taker, from 2 on.
    """

    takers: tuple[str, ...]
    fates: Fates

    def counts(self) -> list[int]:
        """How many blocks have each fate, by its number."""
        return [int(count) for count in np.bincount(self.fates, minlength=len(self.takers) + 2)]

    def color(self, taker: int) -> str:
        """The colour of a taker, by its place."""
        return _TAKER_COLORS[taker % len(_TAKER_COLORS)]

    def to_svg(self) -> str:
        """Draw the blocks row by row; a cell's title says which they are, and what became of them."""
        blocks = len(self.fates)
        if not blocks:
            return ""
        cells = min(blocks, MAX_CELLS)
        bounds = (np.arange(cells + 1) * blocks // cells).tolist()
        rows = -(-cells // _COLUMNS)
        step = _CELL + _GAP
        drawn: dict[str, list[str]] = {}
        for place, (first, end) in enumerate(pairwise(bounds)):
            self._draw(drawn, first, end, f"M{place % _COLUMNS * step} ", place // _COLUMNS * step)
        shapes = "".join(f"<g {fill}>{''.join(paths)}</g>" for fill, paths in drawn.items())
        width, height = min(cells, _COLUMNS) * step - _GAP, rows * step - _GAP
        counts = self.counts()
        says = f"Of {blocks:,} blocks {counts[READ] + counts[IN_PART]:,} are read"
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="fuse-map" role="img" aria-label="{says}" width="{width}" '
            f'height="{height}" viewBox="0 0 {width} {height}">{shapes}</svg>'
        )

    def _draw(self, drawn: dict[str, list[str]], first: int, end: int, left: str, top: int) -> None:
        """Draw the cell of the blocks from ``first`` to before ``end``: its ground, and as much as is read of it."""
        counts = np.bincount(self.fates[first:end], minlength=2)
        kept, total = int(counts[READ] + counts[IN_PART]), end - first
        where = f"block {first:,}" if total == 1 else f"blocks {first:,} to {end - 1:,}"
        if kept == 0:
            taker = int(np.argmax(counts)) - 2
            fill, why, height = _fill(self.color(taker), PALE), f"left out by {self.takers[taker]}", 0
        else:
            fill = _fill(READ_COLOR, PART)
            why = f"{kept:,} of {total:,} read" if total > 1 else "read in part" if counts[IN_PART] else "read"
            height = _CELL if kept == total and not counts[IN_PART] else max(round(_CELL * kept / total / 2), 3)
        ground = f'<path d="{left}{top}h{_CELL}v{_CELL}h-{_CELL}z"><title>{where}: {_text(why, 60)}</title></path>'
        drawn.setdefault(fill, []).append(ground)
        if height:
            read = f'<path d="{left}{top + _CELL - height}h{_CELL}v{height}h-{_CELL}z" pointer-events="none"/>'
            drawn.setdefault(_fill(READ_COLOR, "1"), []).append(read)

    def legend(self) -> list[tuple[str, str, str]]:
        """What the colours mean: each with its opacity, and how many blocks it stands for."""
        counts = self.counts()
        entries = [
            (READ_COLOR, "1", f"{counts[READ]:,} read"),
            (READ_COLOR, PART, f"{counts[IN_PART]:,} read in part"),
            *(
                (self.color(taker), PALE, f"{counts[taker + 2]:,} left out by {text}")
                for taker, text in enumerate(self.takers)
            ),
        ]
        used = [entry for entry, count in zip(entries, counts, strict=True) if count]
        return used[:MAX_KEYS]


def swatch(color: str, opacity: str, text: str) -> str:
    """A square of a colour and what it means, as HTML."""
    return (
        f'<svg width="11" height="11" aria-hidden="true"><rect width="11" height="11" rx="2" '
        f"{_fill(color, opacity)}/></svg> {_text(text, 160)}"
    )


def _fill(color: str, opacity: str) -> str:
    return f'fill="{color}" fill-opacity="{opacity}"'


def _text(text: str, most: int) -> str:
    return escape(text if len(text) <= most else f"{text[: most - 1]}…")


def map_blocks(blocks: int, touched: Iterable[tuple[str, _BlockIndices]], kept: _BlockIndices, part: _Mask) -> BlockMap:
    """The map of a plan.

    ``touched``: what took all or a part out of blocks, in the order of doing so, and their numbers, int64, shape (k,).
    ``kept``: the numbers of blocks that are read, int64, shape (n,); ``part``: bool, one per kept block.
    """
    takers: dict[str, int] = {}
    fates = np.full(blocks, _UNKNOWN, np.uint16)
    for taker, numbers in touched:
        fates[numbers] = takers.setdefault(taker, min(len(takers) + 2, _UNKNOWN - 1))
    fates[kept] = np.where(part, IN_PART, READ)
    rest = fates == _UNKNOWN
    if rest.any():
        fates[rest] = takers.setdefault(DELETED, min(len(takers) + 2, _UNKNOWN - 1))
    return BlockMap(tuple(takers), fates)
