"""Pictures of what is measured, as SVG text: they need no library to draw, and no program but a browser to look at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from fuse_index.clustering.overlaps import SINGLE

if TYPE_CHECKING:
    from fuse_index.clustering.report import Clustering, Order

WIDTH, HEIGHT, LEFT, TOP, GAP = 460, 150, 60, 64, 70
BAR = 48
INK, FAINT, BLUE = "#1f2937", "#cbd5e1", "#2563eb"


def clustering(found: Clustering) -> str:
    """Each order in a row: the depth along it, and how many blocks are how deep."""
    rows = [part for place, order in enumerate(found.orders) for part in _row(order, TOP + place * (HEIGHT + GAP))]
    size = (2 * (WIDTH + LEFT) + 30, TOP + len(found.orders) * (HEIGHT + GAP))
    title = (
        f"Overlaps by {', '.join(found.cluster_by)} ({found.method}), {found.blocks:,} blocks, average depth "
        f"{found.average_depth:.2f}"
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" '
        f'font-family="sans-serif" fill="{INK}">'
    )
    return "\n".join(
        [head, '<rect width="100%" height="100%" fill="white"/>', _text(LEFT, 26, title, size=15), *rows, "</svg>", ""]
    )


def _row(order: Order, top: int) -> Iterator[str]:
    yield from _frame(LEFT, top, f"blocks that hold a value, along {order.name}", max(order.profile, default=0))
    yield _steps(order.profile, LEFT, top)
    histogram = order.overlaps.histogram
    left = 2 * LEFT + WIDTH
    yield from _frame(left, top, "blocks by depth", max(histogram.values(), default=0))
    yield from _bars(list(histogram.items()), left, top)


def _frame(left: int, top: int, title: str, most: int) -> Iterator[str]:
    yield _text(left, top - 8, title)
    yield f'<path d="M{left} {top}V{top + HEIGHT}H{left + WIDTH}" fill="none" stroke="{FAINT}"/>'
    yield _text(left - 6, top + 10, f"{most:,}", "end")
    yield _text(left - 6, top + HEIGHT, "0", "end")


def _steps(values: Sequence[int], left: int, top: int) -> str:
    """An area with a level for each value."""
    most, wide = max(values, default=0) or 1, WIDTH / max(len(values), 1)
    levels = [
        f"L{left + place * wide:.1f} {_high(value, most, top)}H{left + (place + 1) * wide:.1f}"
        for place, value in enumerate(values)
    ]
    bottom = top + HEIGHT
    return f'<path d="M{left} {bottom}{"".join(levels)}V{bottom}Z" fill="{BLUE}" fill-opacity="0.25" stroke="{BLUE}"/>'


def _bars(counted: Sequence[tuple[int, int]], left: int, top: int) -> Iterator[str]:
    most, wide = max((count for _, count in counted), default=1), min(WIDTH / max(len(counted), 1), BAR)
    for place, (depth, count) in enumerate(counted):
        high = _high(count, most, top)
        box = f'x="{left + place * wide + 2:.1f}" y="{high}" width="{wide - 4:.1f}" height="{top + HEIGHT - high:.1f}"'
        yield f'<rect {box} fill="{BLUE}"/>'
        yield _text(
            left + (place + 0.5) * wide, top + HEIGHT + 16, f"{depth}" if depth <= SINGLE else f"≤{depth}", "middle"
        )


def _high(value: int, most: int, top: int) -> float:
    return round(top + HEIGHT * (1 - value / most), 1)


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
