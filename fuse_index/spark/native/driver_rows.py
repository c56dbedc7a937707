"""Rows that the driver reads by itself for a query of Spark, where votes left few: Spark then starts no job.

In: a plan and bounds. Out: the rows that it leaves, as an Arrow stream; or why they are left to executors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.errors import OpaqueError
from fuse_index.expressions.function import Function
from fuse_index.expressions.traversal import conjoin, conjuncts, predicate_leaves
from fuse_index.indexes.engine import Engine
from fuse_index.predicate import Column, IsNull, Leaf, Not, Opaque
from fuse_index.pruning.planner import ScanPlan
from fuse_index.query.scan import Scan
from fuse_index.reasons import Reason
from fuse_index.spark.native.planner_callback import LeftToExecutors
from fuse_index.spark.protocol.words import LATE_ROWS
from fuse_index.spark.schemas import as_spark_has_it
from fuse_index.sql.call_markers import CALL_MARK_PREFIX
from fuse_storage import BlockFrame, empty_table

_BLOCK_BYTES = 16
"""So much a table that a plan keeps open takes at least for each of its blocks."""


@dataclass(frozen=True, slots=True)
class RowBounds:
    """``max_bytes``: of the rows in Arrow's memory. ``seconds``: for all reading and filtering.

    ``exact``: whether calls of plugins' functions must be evaluated here, because nobody else will.
    """

    max_bytes: int
    seconds: float
    exact: bool = False


@dataclass(frozen=True, slots=True)
class PlannedScan:
    """A plan, and what evaluates the conditions that it leaves to be filtered by."""

    plan: ScanPlan[BlockFrame]
    engine: Engine

    @property
    def nbytes(self) -> int:
        """The bytes that it keeps in memory, its table among them, which other plans may share."""
        plan = self.plan
        masks = [plan.zones, plan.always_matching_zones, *plan.row_masks.values()]
        return sum(mask.nbytes for mask in masks) + _BLOCK_BYTES * plan.table.segments().total_blocks


def certain_row_count(plan: ScanPlan[BlockFrame]) -> int:
    """On how many rows of the snapshot, at least, the condition of a plan is true."""
    certain = plan.zones & plan.always_matching_zones
    named = sum(
        int(np.count_nonzero(rows)) - int(plan.blocks.zone_rows[zone])
        for zone, rows in plan.row_masks.items()
        if certain[zone]
    )
    return max(int(plan.blocks.zone_rows[certain].sum()) + named, _not_null_row_count(plan))


def _not_null_row_count(plan: ScanPlan[BlockFrame]) -> int:
    """How many rows at least a plan leaves that leaves out NULLs of columns and nothing else; 0 of any other."""
    row_count = int(plan.blocks.live_row_counts.sum())
    for term in conjuncts(plan.predicate):
        match term:
            case Not(IsNull(Column(path))):
                field = plan.table.snapshot.schema.find(path)
                statistics = plan.blocks.statistics(field.id) if field.is_leaf else None
                if statistics is None or statistics.null_count.null_count:
                    return 0
                row_count -= pc.sum(statistics.null_count).as_py() or 0
            case _:
                return 0
    return max(0, row_count)


def named_row_count(plan: ScanPlan[BlockFrame]) -> int | None:
    """How many rows a plan leaves, if votes name them one by one in each zone that it leaves; else None."""
    zones = np.flatnonzero(plan.zones).tolist()
    if not all(zone in plan.row_masks for zone in zones):
        return None
    return sum(int(np.count_nonzero(plan.row_masks[zone])) for zone in zones)


def read_rows(
    plan: ScanPlan[BlockFrame], columns: Sequence[str], functions: Mapping[str, Function], bounds: RowBounds
) -> bytes:
    """The rows that a plan leaves, whole columns of these names, as an Arrow stream of one batch.

    Conditions that nobody here understands are left out: rows on which they are not true may be among them. Raises
    StorageError, and LeftToExecutors, also where a cast fails on a row that is read: whether Spark looks at it at all
    is told by the order of its conditions.
    """
    if bounds.exact and any(map(_may_be_call, predicate_leaves(plan.predicate) if plan.predicate else ())):
        raise LeftToExecutors("a call of a function is Spark's alone")
    started, byte_count, tables = monotonic(), 0, []
    scan = Scan(_without_opaque(plan), tuple(columns), functions, strict=True)
    for rows in _strictly(scan):
        byte_count += rows.nbytes
        if byte_count > bounds.max_bytes:
            raise LeftToExecutors(f"they have more than {bounds.max_bytes:,} bytes")
        if monotonic() - started > bounds.seconds:
            raise LeftToExecutors(LATE_ROWS % round(bounds.seconds * 1000))
        tables.append(rows)
    found = as_spark_has_it(pa.concat_tables([empty_table(scan.schema), *tables]))
    columns_of_batch = [column.combine_chunks() for column in found.columns]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, found.schema) as writer:
        writer.write_batch(pa.record_batch(columns_of_batch, found.schema))  # one, though it be empty
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _strictly(scan: Scan) -> Iterator[pa.Table]:
    try:
        yield from scan.tables()
    except OpaqueError as failure:
        raise LeftToExecutors(str(failure)) from failure


def _without_opaque(plan: ScanPlan[BlockFrame]) -> ScanPlan[BlockFrame]:
    """The plan, with only those terms of its AND that can be evaluated here."""
    terms = conjuncts(plan.predicate)
    known = [term for term in terms if not any(isinstance(leaf, Opaque) for leaf in predicate_leaves(term))]
    if len(known) == len(terms):
        return plan
    certain = plan.always_matching_zones if known else plan.zones
    return replace(plan, predicate=conjoin(known), always_matching_zones=certain)


def _may_be_call(leaf: Leaf) -> bool:
    """Whether a leaf is, or has in it, a call's mark that was not understood."""
    return isinstance(leaf, Opaque) and (leaf.reason is Reason.TOO_MANY_TERMS or CALL_MARK_PREFIX in leaf.sql)
