"""From a merged state to the answer, as Spark finishes its aggregates.

Averages are made of sums and counts, and sketches are as Spark writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Context, Decimal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_index.aggregates import sketches
from fuse_index.aggregates.state import (
    MAX_DECIMAL_PRECISION,
    SKETCH_ARGUMENT_TYPES,
    Aggregate,
    Aggregation,
    Part,
    merge_states,
)


def finalize_state(aggregation: Aggregation, merged: pa.Table) -> list[pa.ChunkedArray]:
    """The values of the groups and of the aggregates, of a state that has each group once."""
    parts = dict(zip(aggregation.parts, merged.columns[len(aggregation.groups) :], strict=True))
    return [
        *merged.columns[: len(aggregation.groups)],
        *(_finalize_aggregate(aggregate, parts) for aggregate in aggregation.aggregates),
    ]


def comparable_answer(aggregation: Aggregation, state: pa.Table) -> list[str]:
    """The answer as text, which is equal for equal answers.

    Rows are in an order of their own, floats have nine digits, and sketches are shown by what is in their registers:
    sums and estimates depend on the order of rows.
    """
    columns = [column.to_pylist() for column in finalize_state(aggregation, merge_states(aggregation, [state]))]
    for number, aggregate in enumerate(aggregation.aggregates, len(aggregation.groups)):
        if aggregate.function in SKETCH_ARGUMENT_TYPES:
            columns[number] = [sketches.sketch_registers(sketch) for sketch in columns[number]]
    rows = zip(*columns, strict=True)
    return sorted(repr([float(f"{one:.9g}") + 0.0 if isinstance(one, float) else one for one in row]) for row in rows)


def _finalize_aggregate(aggregate: Aggregate, parts: Mapping[Part, pa.ChunkedArray]) -> pa.ChunkedArray:
    if aggregate.function in SKETCH_ARGUMENT_TYPES:
        return sketches.to_spark_sketches(parts[aggregate.parts[0]])
    if aggregate.function != "avg":
        return parts[aggregate.parts[0]]
    sums, counts = (parts[part] for part in aggregate.parts)
    if is_.is_decimal(aggregate.type):
        pairs = zip(sums.to_pylist(), counts.to_pylist(), strict=True)
        return pa.chunked_array(
            [pa.array([_quotient(total, count, aggregate.type.scale) for total, count in pairs], aggregate.type)]
        )
    some = pc.if_else(pc.equal(counts, 0), pa.scalar(None, pa.int64()), counts)
    return pc.divide(sums, some.cast(pa.float64(), safe=False))


_WIDE_DECIMALS = Context(prec=120, rounding=ROUND_HALF_UP)


def _quotient(total: Decimal | None, count: int, scale: int) -> Decimal | None:
    """Divide as Spark does: to 39 places first, then to those of the type, both times rounded half up."""
    if total is None or not count:
        return None
    fine = _WIDE_DECIMALS.divide(total, Decimal(count)).quantize(
        Decimal(1).scaleb(-(MAX_DECIMAL_PRECISION + 1)), ROUND_HALF_UP, _WIDE_DECIMALS
    )
    return fine.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, _WIDE_DECIMALS)
