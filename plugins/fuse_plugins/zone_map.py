"""Zone maps: the least and the greatest value of each zone, taken from the rows themselves.

Columns of a table's own blocks have such bounds without a definition (``min_max``). A zone map is for what lacks them:
terms of columns, such as ``length(body)``, and columns of attached files. Footers of those give bounds of row groups,
which have a million rows; of floats and INT96 they give none that can be believed, nor do all writers of others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.plugin import (
    ALL,
    NONE,
    SOME,
    Ballot,
    BlockBatch,
    Conjunction,
    IndexKind,
    Input,
    Probe,
    Reason,
    Refusal,
    Sidecar,
    extremes,
    hookimpl,
    ranges_to_indices,
    truncate_bounds,
)
from fuse_index.predicate import Context, Leaf
from fuse_plugins.min_max import MinMax, ValueRanges, is_ordered_type

_PARTS = ("least", "greatest", "nulls")


class ZoneBounds(IndexKind):
    """Bounds of each zone of a column or term of an ordered type, and how many NULLs the zone has."""

    name = "zone_map"

    def accepts(self, inputs: Sequence[Input], options: Any) -> Refusal | None:
        if len(inputs) != 1:
            return Refusal(
                Reason.LEAF_UNSUPPORTED, f"zone_map is on one column, not {len(inputs)}: make an index for each"
            )
        if not is_ordered_type(inputs[0].type):
            return Refusal(Reason.TYPE_MISMATCH, f"values of type {inputs[0].type} have no order that bounds follow")
        return None

    def summary_type(self, inputs: Sequence[Input], options: Any) -> pa.DataType:
        bounds = pa.list_(inputs[0].type)
        return pa.struct([("least", bounds), ("greatest", bounds), ("nulls", pa.list_(pa.int64()))])

    def build(self, rows: pa.Table, zones: npt.NDArray[np.int64], options: Any) -> Sidecar:
        """Take the bounds of n zones of the one column; ``zones``: row offsets, int64 of shape (n + 1,)."""
        values = rows.column(0).combine_chunks()
        parts = [values.slice(start, end - start) for start, end in pairwise(zones.tolist())]
        least, greatest = zip(*map(extremes, parts), strict=True)
        return Sidecar(
            {
                "least": truncate_bounds(pa.array(least, values.type), upper=False)[0].to_pylist(),
                "greatest": truncate_bounds(pa.array(greatest, values.type), upper=True)[0].to_pylist(),
                "nulls": [part.null_count for part in parts],
            }
        )

    def roll_up(self, summaries: pa.Array) -> pa.Scalar | None:
        """Bounds of all zones as one, where each zone that has values has both; else none."""
        least, greatest, nulls = (pc.list_flatten(pc.struct_field(summaries, part)) for part in _PARTS)
        bounds = [
            extremes(least)[0] if _say_as_much(least, greatest) else pa.scalar(None, least.type),
            extremes(greatest)[1] if _say_as_much(greatest, least) else pa.scalar(None, greatest.type),
        ]
        whole = {"least": [bounds[0].as_py()], "greatest": [bounds[1].as_py()], "nulls": [pc.sum(nulls).as_py() or 0]}
        return pa.scalar(whole, summaries.type)

    def compile(
        self, what: Leaf | Conjunction, inputs: Sequence[Input], options: Any, context: Context
    ) -> Probe[ValueRanges] | Refusal:
        compiled = MinMax().compile(what, inputs, options, context)
        return compiled if isinstance(compiled, Refusal) else replace(compiled, cost=1.0)  # of votes on zones

    def probe(self, probe: Probe[ValueRanges], batch: BlockBatch) -> Ballot:
        votes = np.full(len(batch.zone_rows), SOME, np.uint8)
        if batch.summaries is None or not len(batch):
            return Ballot(votes)
        lists = [pc.struct_field(batch.summaries, part) for part in _PARTS]
        firsts, ends = batch.zone_offsets[:-1], batch.zone_offsets[1:]
        known = np.logical_and.reduce([_lengths(each) == ends - firsts for each in lists])
        zones = ranges_to_indices(firsts[known], (ends - firsts)[known])
        least, greatest, nulls = (pc.list_flatten(each.filter(pa.array(known))) for each in lists)
        null_counts = nulls.fill_null(-1).to_numpy(zero_copy_only=False)
        meets, within = probe.what.compare(least, greatest)
        meets &= null_counts != batch.zone_rows[zones]
        within &= null_counts == 0
        votes[zones] = np.where(meets, np.where(within, ALL, SOME), NONE)
        return Ballot(votes)

    def inspect(self, sidecars: BlockBatch, options: Any) -> Mapping[str, Any]:
        if sidecars.summaries is None:
            return {}
        least = pc.list_flatten(pc.struct_field(sidecars.summaries, "least"))
        return {"zones": len(least), "zones_with_values": len(least) - least.null_count}


@hookimpl
def fuse_index_kinds() -> list[type[IndexKind]]:
    return [ZoneBounds]


def _say_as_much(bounds: pa.Array, others: pa.Array) -> bool:
    """Whether a bound is there wherever its counterpart is: text above which nothing short is has no greatest one."""
    return bool(pc.all(pc.or_(bounds.is_valid(), others.is_null()), min_count=0).as_py())


def _lengths(lists: pa.Array) -> npt.NDArray[np.int64]:
    return np.asarray(pc.list_value_length(lists).fill_null(-1).to_numpy(zero_copy_only=False), np.int64)
