"""Pictures of how blocks overlap, as SVG text: no library is needed to draw them, and a browser shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import NamedTuple

from fuse_index.clustering.overlaps import MAX_EXACT_DEPTH

_CHART_WIDTH, _CHART_HEIGHT, _LEFT_MARGIN, _TOP_MARGIN, _ROW_GAP = 460, 150, 60, 64, 70
_MAX_BAR_WIDTH = 48
_TEXT_COLOR, _AXIS_COLOR, _FILL_COLOR = "#1f2937", "#cbd5e1", "#2563eb"


class OrderChart(NamedTuple):
    """One order of blocks to be drawn: the depth at points along it, and of each depth how many blocks are so deep."""

    name: str
    profile: Sequence[int]
    histogram: Mapping[int, int]


def clustering_svg(title: str, orders: Sequence[OrderChart]) -> str:
    """Draw each order in a row: the depth along it, and how many blocks are how deep."""
    rows = [
        part
        for number, order in enumerate(orders)
        for part in _row(order, _TOP_MARGIN + number * (_CHART_HEIGHT + _ROW_GAP))
    ]
    width, height = (
        2 * (_CHART_WIDTH + _LEFT_MARGIN) + 30,
        _TOP_MARGIN + len(orders) * (_CHART_HEIGHT + _ROW_GAP),
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'font-family="sans-serif" fill="{_TEXT_COLOR}">'
    )
    return "\n".join(
        [
            head,
            '<rect width="100%" height="100%" fill="white"/>',
            _text(_LEFT_MARGIN, 26, title, size=15),
            *rows,
            "</svg>",
            "",
        ]
    )


def _row(order: OrderChart, top: int) -> Iterator[str]:
    yield from _frame(_LEFT_MARGIN, top, f"blocks that hold a value, along {order.name}", max(order.profile, default=0))
    yield _step_area(order.profile, _LEFT_MARGIN, top)
    histogram = order.histogram
    left = 2 * _LEFT_MARGIN + _CHART_WIDTH
    yield from _frame(left, top, "blocks by depth", max(histogram.values(), default=0))
    yield from _bars(list(histogram.items()), left, top)


def _frame(left: int, top: int, title: str, maximum: int) -> Iterator[str]:
    yield _text(left, top - 8, title)
    yield f'<path d="M{left} {top}V{top + _CHART_HEIGHT}H{left + _CHART_WIDTH}" fill="none" stroke="{_AXIS_COLOR}"/>'
    yield _text(left - 6, top + 10, f"{maximum:,}", "end")
    yield _text(left - 6, top + _CHART_HEIGHT, "0", "end")


def _step_area(values: Sequence[int], left: int, top: int) -> str:
    """Draw an area with a level for each value."""
    maximum, step_width = max(values, default=0) or 1, _CHART_WIDTH / max(len(values), 1)
    levels = [
        f"L{left + index * step_width:.1f} {_y_position(value, maximum, top)}H{left + (index + 1) * step_width:.1f}"
        for index, value in enumerate(values)
    ]
    bottom = top + _CHART_HEIGHT
    return (
        f'<path d="M{left} {bottom}{"".join(levels)}V{bottom}Z" fill="{_FILL_COLOR}" fill-opacity="0.25" '
        f'stroke="{_FILL_COLOR}"/>'
    )


def _bars(histogram: Sequence[tuple[int, int]], left: int, top: int) -> Iterator[str]:
    maximum = max((count for _, count in histogram), default=1)
    bar_width = min(_CHART_WIDTH / max(len(histogram), 1), _MAX_BAR_WIDTH)
    for index, (depth, count) in enumerate(histogram):
        bar_top = _y_position(count, maximum, top)
        box = (
            f'x="{left + index * bar_width + 2:.1f}" y="{bar_top}" width="{bar_width - 4:.1f}" '
            f'height="{top + _CHART_HEIGHT - bar_top:.1f}"'
        )
        yield f'<rect {box} fill="{_FILL_COLOR}"/>'
        yield _text(
            left + (index + 0.5) * bar_width,
            top + _CHART_HEIGHT + 16,
            f"{depth}" if depth <= MAX_EXACT_DEPTH else f"≤{depth}",
            "middle",
        )


def _y_position(value: int, maximum: int, top: int) -> float:
    return round(top + _CHART_HEIGHT * (1 - value / maximum), 1)


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'
