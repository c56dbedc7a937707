"""The clustering key of a table is chosen here, and how well its blocks follow it is measured by statistics alone.

A table has a clustering key: columns, and the order that they make. What is measured of a linear key is the overlap of
blocks in that order; along a curve there is no order that statistics could tell of, and each column is measured for
itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import fuse_storage as storage
from fuse_index.clustering import overlaps
from fuse_index.clustering.key import ClusterKey
from fuse_index.clustering.overlaps import Intervals, OverlapStatistics
from fuse_index.errors import InputError
from fuse_index.handle import TableHandle
from fuse_storage import Advice, BlockFrame, ColumnStatistics, Snapshot

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult


_PROFILE_POINTS = 400
"""Points along an order at which a picture shows the depth."""

CLUSTERING_SCHEMA = pa.schema(
    [
        ("key", pa.string()),
        ("method", pa.string()),
        ("blocks", pa.int64()),
        ("constant_blocks", pa.int64()),
        ("unknown_blocks", pa.int64()),
        ("average_overlaps", pa.float64()),
        ("maximum_overlaps", pa.int64()),
        ("average_depth", pa.float64()),
        ("maximum_depth", pa.int64()),
        ("depth_histogram", pa.list_(pa.struct([("depth", pa.int64()), ("blocks", pa.int64())]))),
    ]
)
"""One row for each order that was measured. ``depth`` in a histogram: at most this, and more than the one before."""


@dataclass(frozen=True, slots=True)
class OrderReport:
    """An order of rows, and how blocks overlap in it. ``profile``: how many blocks hold each of some points."""

    names: tuple[str, ...]
    overlaps: OverlapStatistics
    profile: tuple[int, ...]

    @property
    def name(self) -> str:
        return ", ".join(self.names)


@dataclass(frozen=True, slots=True, repr=False)
class ClusteringReport(storage.Shown):
    """How blocks overlap in the order of a clustering key.

    ``orders``: of a linear key, the key itself, then each column if there are several; of a curve, each column. The
    averages are those of the key, or the means over the columns of a curve.
    """

    _shown = "cluster_by method blocks average_depth average_overlaps maximum_depth"

    cluster_by: tuple[str, ...]
    method: str
    orders: tuple[OrderReport, ...]

    def _sections(self) -> list[str]:
        return [self.to_svg()]

    @property
    def blocks(self) -> int:
        return self.orders[0].overlaps.blocks

    @property
    def average_depth(self) -> float:
        return self._mean([order.overlaps.average_depth for order in self.orders])

    @property
    def average_overlaps(self) -> float:
        return self._mean([order.overlaps.average_overlaps for order in self.orders])

    @property
    def maximum_depth(self) -> int:
        return max(order.overlaps.maximum_depth for order in self._key_orders)

    @property
    def _key_orders(self) -> tuple[OrderReport, ...]:
        return self.orders[:1] if self.method == "linear" else self.orders

    def _mean(self, values: Sequence[float]) -> float:
        return values[0] if self.method == "linear" else sum(values) / len(values)

    def to_dict(self) -> dict[str, Any]:
        """Describe everything but the pictures, in plain values as JSON has them.

        Example:
            >>> table = fuse.create_table("memory://clustering-dict", "id BIGINT", ["id"])
            >>> table.inspect.clustering().to_dict()["blocks"]
            0
        """
        totals = {"blocks": self.blocks, "average_overlaps": self.average_overlaps, "average_depth": self.average_depth}
        description = {
            "cluster_by": list(self.cluster_by),
            "method": self.method,
            **totals,
            "maximum_depth": self.maximum_depth,
        }
        return description | {"orders": self.to_arrow().to_pylist()}

    def to_arrow(self) -> pa.Table:
        """Make a table of one row per order; see ``CLUSTERING_SCHEMA``.

        Example:
            >>> table = fuse.create_table("memory://clustering-arrow", "id BIGINT", ["id"])
            >>> table.inspect.clustering().to_arrow().num_rows
            1
        """
        return pa.Table.from_pylist([_row(order, self.method) for order in self.orders], CLUSTERING_SCHEMA)

    def to_svg(self) -> str:
        """Draw the depth along each order, and how many blocks are how deep.

        Example:
            >>> table = fuse.create_table("memory://clustering-svg", "id BIGINT", ["id"])
            >>> table.inspect.clustering().to_svg()[:4]
            '<svg'
        """
        title = (
            f"Overlaps by {', '.join(self.cluster_by)} ({self.method}), {self.blocks:,} blocks, average depth "
            f"{self.average_depth:.2f}"
        )
        from fuse_index.clustering.svg import OrderChart, clustering_svg  # few queries draw

        charts = [OrderChart(order.name, order.profile, order.overlaps.histogram) for order in self.orders]
        return clustering_svg(title, charts)

    def __str__(self) -> str:
        head = f"overlaps by {', '.join(self.cluster_by)} ({self.method}): {self.blocks:,} blocks"
        return "\n".join([head, *(f"  {_sentence(order)}" for order in self.orders)])

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield str(self)
        key_order = self._key_orders[0]
        from rich.table import Table as Grid

        grid = Grid(title=f"depths of {key_order.name}", title_justify="left", box=None, pad_edge=False)
        for name in ("depth", "blocks"):
            grid.add_column(name, justify="right")
        grid.add_column("")
        maximum = max(key_order.overlaps.histogram.values(), default=1)
        for depth, blocks in key_order.overlaps.histogram.items():
            depths = f"{depth}" if depth <= overlaps.MAX_EXACT_DEPTH else f"{depth // 2 + 1}-{depth}"
            grid.add_row(depths, f"{blocks:,}", "█" * max(round(blocks / maximum * 40), 1))
        yield grid


class ClusteringMixin(TableHandle):
    """The part of ``fuse_index.Table`` that says how rows are to be clustered."""

    def cluster_by(self, columns: Sequence[str] | None, method: str = "linear") -> Snapshot:
        """Choose by which columns rows are kept together, the first deciding. Only metadata changes.

        ``append`` sorts by them from now on; what is there already is sorted by ``table.maintenance.recluster``.

        Args:
            columns: Their names, with dots for fields of structs; None for no order.
            method: ``"linear"``, or along a curve through 2 to 8 columns, ``"zorder"`` or ``"hilbert"``, which keeps
                rows together that are near in all of them.

        Returns:
            The new snapshot.

        Raises:
            InvalidArgument: There is no such method, or it takes another number of columns.
            SchemaError: There is no such column, or it cannot be in an order.
            Conflict: Somebody else changed the table's order.
            ReadOnly: The handle only reads.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://cluster-by", "id BIGINT, land STRING")
            >>> table.cluster_by(["land", "id"]).cluster_by
            ('land', 'id')
        """
        self._check_writable()
        storage.cluster_by(self.snapshot, tuple(columns or ()), method)  # refused before anything is written
        summary = {"columns": list(columns or ()), "method": method}
        return self._move_to(self.stored.transaction().cluster_by(tuple(columns or ()), method).commit(summary=summary))


def resolve_cluster_key(snapshot: Snapshot, by: Sequence[str] | None, method: str | None) -> ClusterKey:
    """Find the table's key, or make the one that is given. Raises as ``Inspect.clustering``."""
    if by:
        return ClusterKey.from_names(snapshot, tuple(by), method or "linear")
    table_key = ClusterKey.from_snapshot(snapshot)  # by its ids: a name may have come to mean another column
    if by is not None or table_key is None:
        raise InputError(
            "the table has no clustering key: give it one with "
            + Advice.call("cluster_by", [...])
            + ", or say which columns to look at: "
            + Advice.argument("clustering", by=[...])
        )
    if method in (None, table_key.method):
        return table_key
    return ClusterKey.from_names(snapshot, table_key.names, method)


def measure_clustering(table: storage.StoredTable, key: ClusterKey) -> ClusteringReport:
    blocks = table.blocks(statistics=[field.id for field in key.fields])
    return ClusteringReport(key.names, key.method, tuple(_orders(key, key_intervals(blocks, key))))


def key_intervals(blocks: BlockFrame, key: ClusterKey) -> list[Intervals]:
    """Place the blocks in the order of each column of the key: one Intervals per column, each of all blocks."""
    column_stats = [
        blocks.statistics(field.id) or ColumnStatistics.unknown(field.type, len(blocks)) for field in key.fields
    ]
    return [overlaps.column_intervals(stats, blocks.row_counts) for stats in column_stats]


def _orders(key: ClusterKey, column_intervals: Sequence[Intervals]) -> Iterator[OrderReport]:
    if key.method == "linear":
        yield _order(key.names, overlaps.lexicographic_intervals(column_intervals))
    if len(column_intervals) > 1 or key.method != "linear":
        yield from (_order((name,), intervals) for name, intervals in zip(key.names, column_intervals, strict=True))


def _order(names: tuple[str, ...], intervals: Intervals) -> OrderReport:
    return OrderReport(
        names, overlaps.measure_overlaps(intervals), tuple(overlaps.depth_profile(intervals, _PROFILE_POINTS).tolist())
    )


def _row(order: OrderReport, method: str) -> dict[str, Any]:
    measures = asdict(order.overlaps)
    histogram = [{"depth": depth, "blocks": blocks} for depth, blocks in measures.pop("histogram").items()]
    counts = {f"{name}_blocks": measures.pop(name) for name in ("constant", "unknown")}
    return {"key": order.name, "method": method, **counts, **measures, "depth_histogram": histogram}


def _sentence(order: OrderReport) -> str:
    measures = order.overlaps
    depth = f"depth {measures.average_depth:.2f} on average, {measures.maximum_depth:,} at most"
    others = f"overlaps with {measures.average_overlaps:.2f} on average, {measures.maximum_overlaps:,} at most"
    rest = [
        f"{count:,} {what}"
        for count, what in ((measures.constant, "constant"), (measures.unknown, "without bounds"))
        if count
    ]
    return f"{order.name}: {'; '.join([depth, others, *rest])}"
