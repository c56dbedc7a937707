"""Aggregates as Spark has them: from rows to states, from states to larger states, and from those to an answer.

A **state** is a table with one row a group: the group's values, and the **parts** of its aggregates that can be added
up (an average is a sum and a count). States of any parts of a table, merged in any order, give the answer of the whole.
Values go by Spark: NULL is a group, NaN is one value and the largest, -0.0 and 0.0 are one group. Knows no table and no
index.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, get_args
from typing import Literal as OneOf

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_index.aggregates import sketches
from fuse_index.expressions.coercion import INTEGER_TYPES
from fuse_index.expressions.errors import UnsupportedAggregate
from fuse_index.expressions.traversal import columns_of
from fuse_index.expressions.types import is_compound, spark_type_name
from fuse_index.predicate import Literal, Term

AggregateFunction = OneOf["count", "sum", "min", "max", "avg", "hll_sketch_agg", "hll_union_agg"]
AGGREGATE_FUNCTIONS: tuple[AggregateFunction, ...] = get_args(AggregateFunction)
SKETCH_ARGUMENT_TYPES = {"hll_sketch_agg": (pa.int32(), pa.int64(), pa.string()), "hll_union_agg": (pa.binary(),)}
"""The types of columns that sketches are of."""
COUNT_STAR_ARGUMENT = Literal(1, pa.int32())
"""What ``count(*)`` counts."""

MAX_DECIMAL_PRECISION = 38


@dataclass(frozen=True, slots=True)
class Part:
    """A column of a state. ``total`` is a sum of integers as doubles, which is how Spark averages them."""

    function: OneOf["count", "sum", "total", "min", "max", "sketch", "union"]
    argument: Term
    lg_k: int = 0
    """The size of a sketch: it has 2^lg_k registers."""

    @property
    def type(self) -> pa.DataType:
        match self.function:
            case "count":
                return pa.int64()
            case "total":
                return pa.float64()
            case "sum":
                return sum_type(self.argument.type)
            case "sketch" | "union":
                return pa.binary()
            case _:
                return self.argument.type


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate function of a term; ``count(*)`` is the count of ``ROW``. ``lg_k``: of ``hll_sketch_agg``."""

    function: AggregateFunction
    argument: Term
    lg_k: int = 0

    @property
    def parts(self) -> tuple[Part, ...]:
        if self.function == "hll_sketch_agg":
            return (Part("sketch", self.argument, self.lg_k),)
        if self.function == "hll_union_agg":
            return (Part("union", self.argument),)
        if self.function != "avg":
            return (Part(self.function, self.argument),)
        return (
            Part("total" if self.argument.type in INTEGER_TYPES else "sum", self.argument),
            Part("count", self.argument),
        )

    @property
    def type(self) -> pa.DataType:
        """Spark's type of the answer. Raises UnsupportedAggregate."""
        if self.function != "avg":
            return self.parts[0].type
        data_type = sum_type(self.argument.type) and self.argument.type
        return _bounded(data_type.precision + 4, data_type.scale + 4) if is_.is_decimal(data_type) else pa.float64()


COUNT_STAR = Aggregate("count", COUNT_STAR_ARGUMENT)
"""The only aggregate without a column."""


@dataclass(frozen=True)
class Aggregation:
    """A request: these aggregates for each combination of values of these terms, or for all rows if there are none."""

    groups: tuple[Term, ...]
    aggregates: tuple[Aggregate, ...] = ()

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """What a state of it has to hold, each part once."""
        return tuple(dict.fromkeys(part for aggregate in self.aggregates for part in aggregate.parts))

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of states: groups first, then parts, both in their order."""
        groups = [pa.field(f"group{number}", term.type) for number, term in enumerate(self.groups)]
        return pa.schema(
            [*groups, *(pa.field(f"{part.function}{number}", part.type) for number, part in enumerate(self.parts))]
        )

    def check(self) -> None:
        """Raises UnsupportedAggregate if Spark, or this module, has no such aggregates."""
        for term in self.groups:
            if not any(columns_of(term)):
                raise UnsupportedAggregate("a constant is no group: leave it out")
            if is_compound(term.type) or term.type == pa.null():
                raise UnsupportedAggregate(
                    f"rows cannot be grouped here by values of type {spark_type_name(term.type)}"
                )
        for aggregate in self.aggregates:
            data_type = aggregate.argument.type
            if not any(columns_of(aggregate.argument)) and aggregate != COUNT_STAR:
                raise UnsupportedAggregate(f"{aggregate.function} of a constant: leave it out")
            if aggregate.function in ("min", "max") and (is_compound(data_type) or data_type == pa.null()):
                raise UnsupportedAggregate(f"{aggregate.function} of {spark_type_name(data_type)} is not known here")
            if aggregate.function in SKETCH_ARGUMENT_TYPES:
                _check_sketch(aggregate)
            _ = aggregate.type


def _check_sketch(aggregate: Aggregate) -> None:
    known = SKETCH_ARGUMENT_TYPES[aggregate.function]
    if aggregate.argument.type not in known:
        of = (
            f"{spark_type_name(aggregate.argument.type)} is not known here, only of "
            f"{', '.join(map(spark_type_name, known))}"
        )
        raise UnsupportedAggregate(f"{aggregate.function} of {of}")
    if aggregate.function == "hll_sketch_agg" and aggregate.lg_k not in sketches.LG_K_RANGE:
        raise UnsupportedAggregate(f"lgConfigK of hll_sketch_agg is from 4 to 21, not {aggregate.lg_k}")
    if sketches.datasketches_module() is None:
        raise UnsupportedAggregate(f"{aggregate.function} needs datasketches: pip install datasketches")


def sum_type(data_type: pa.DataType) -> pa.DataType:
    """Spark's type of a sum. Raises UnsupportedAggregate."""
    if data_type in INTEGER_TYPES:
        return pa.int64()
    if is_.is_floating(data_type):
        return pa.float64()
    if is_.is_decimal(data_type):
        return _bounded(data_type.precision + 10, data_type.scale)
    raise UnsupportedAggregate(f"there is no sum of {spark_type_name(data_type)}: cast it to a number first")


def _bounded(precision: int, scale: int) -> pa.DataType:
    return pa.decimal128(min(precision, MAX_DECIMAL_PRECISION), min(scale, MAX_DECIMAL_PRECISION))


def largest_sum(part: Part) -> int | None:
    """The largest absolute value that this part holds exactly, in units of its last digit; None: it never overflows."""
    if part.function != "sum" or is_.is_floating(part.type):
        return None
    return (1 << 63) - 1 if part.type == pa.int64() else int(10**part.type.precision - 1)


# --- states -----------------------------------------------------------------------------------------------------


def state_of(aggregation: Aggregation, values: Callable[[Term], pa.ChunkedArray], rows: int) -> pa.Table:
    """The state of so many rows; ``values`` gives what a term is on each of them, ``rows`` long and of the term's type.

    An average is kept as a sum and a count, so that two states can be added up to that of all rows:

    >>> from fuse_index.predicate import Column
    >>> price = Column(("price",), pa.float64())
    >>> average = Aggregation((), (Aggregate("avg", price),))
    >>> blocks = [pa.chunked_array([[1.0, 2.0]]), pa.chunked_array([[6.0, None]])]
    >>> states = [state_of(average, lambda term: prices, len(prices)) for prices in blocks]
    >>> [state.to_pylist() for state in states]
    [[{'sum0': 3.0, 'count1': 2}], [{'sum0': 6.0, 'count1': 1}]]
    >>> merge_states(average, states).to_pylist()
    [{'sum0': 9.0, 'count1': 3}]
    """

    def input_of(part: Part) -> pa.ChunkedArray:
        if isinstance(part.argument, Literal) and part.argument.value is not None:
            return pa.chunked_array([pa.repeat(part.argument.value, rows).cast(part.argument.type)])
        return values(part.argument)

    groups = [canonical_floats(values(term)) for term in aggregation.groups]
    return _reduced(aggregation, groups, [input_of(part) for part in aggregation.parts], "count")


def merge_states(aggregation: Aggregation, states: Sequence[pa.Table]) -> pa.Table:
    """One state of all, a group in one row; without groups it has exactly one row."""
    whole = pa.concat_tables([aggregation.schema.empty_table(), *(one.cast(aggregation.schema) for one in states)])
    places = len(aggregation.groups)
    return _reduced(aggregation, whole.columns[:places], whole.columns[places:], "sum")


def sketch_damage(aggregation: Aggregation, state: pa.Table) -> str | None:
    """Why its sketches, whose bytes Arrow knows nothing of, cannot be merged; None if they can."""
    for part, column in zip(aggregation.parts, state.columns[len(aggregation.groups) :], strict=True):
        if part.function in ("sketch", "union"):
            try:
                for sketch in column.to_pylist():
                    sketches.union_sketches([sketch], part.lg_k)
            except ValueError as refusal:
                return str(refusal)
    return None


def _reduced(
    aggregation: Aggregation, groups: Sequence[pa.ChunkedArray], inputs: Sequence[pa.ChunkedArray], counting: str
) -> pa.Table:
    """One row a group. ``counting`` is what makes counts: "count" of rows, "sum" of states."""
    steps = [_steps(part, values, counting) for part, values in zip(aggregation.parts, inputs, strict=True)]
    columns = {f"group{number}": values for number, values in enumerate(groups)}
    wanted: list[tuple[str, str]] = []
    for number, part_steps in enumerate(steps):
        for place, (values, function) in enumerate(part_steps):
            columns[f"{number}.{place}"] = values
            wanted.append((f"{number}.{place}", function))
    if not wanted and not groups:
        return aggregation.schema.empty_table()
    # on one thread, or sums of doubles would differ from run to run
    known = [(name, function) for name, function in wanted if groups or function != "list"]
    made = pa.table(columns).group_by(list(columns)[: len(groups)], use_threads=False).aggregate(known)

    def outcome(name: str, function: str) -> pa.ChunkedArray:
        return made.column(f"{name}_{function}") if groups or function != "list" else _one_list(columns[name])

    parts = [
        _read(
            part, [outcome(f"{number}.{place}", function) for place, (_, function) in enumerate(part_steps)], counting
        )
        for number, (part, part_steps) in enumerate(zip(aggregation.parts, steps, strict=True))
    ]
    arrays = [*(made.column(f"group{number}") for number in range(len(groups))), *parts]
    return pa.table(
        [array.cast(field.type) for array, field in zip(arrays, aggregation.schema, strict=True)],
        schema=aggregation.schema,
    )


def _steps(part: Part, values: pa.ChunkedArray, counting: str) -> list[tuple[pa.ChunkedArray, str]]:
    """What Arrow is asked for, of which values."""
    match part.function:
        case "count":
            return [(values, counting)]
        case "sum" | "total":
            return [(values.cast(part.type, safe=False), "sum")]
        case "sketch" | "union":
            return [(values, "list")]
        case bound if not is_.is_floating(part.type):
            return [(values, bound)]
        case bound:  # Arrow passes over NaN, so that is asked beside it
            nan = pc.is_nan(values)
            return [(pc.if_else(nan, pa.scalar(None, part.type), values), bound), (nan, "any")]


def _one_list(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """All of them, where there are no groups: Arrow has lists of groups only."""
    return pa.chunked_array([pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values.combine_chunks())])


def _read(part: Part, found: Sequence[pa.ChunkedArray], counting: str) -> pa.ChunkedArray:
    if part.function == "count":
        return pc.fill_null(found[0], 0)
    if part.function in ("sketch", "union"):
        made = sketches.build_sketch if (part.function, counting) == ("sketch", "count") else sketches.union_sketches
        try:
            return pa.chunked_array([pa.array([made(one.as_py(), part.lg_k) for one in found[0]], pa.binary())])
        except ValueError as refusal:
            raise UnsupportedAggregate(str(refusal)) from refusal
    if len(found) == 1:
        return found[0]
    bound, nan = found[0], pc.fill_null(found[1], False)
    decided = nan if part.function == "max" else pc.and_(nan, pc.is_null(bound))
    return pc.if_else(decided, pa.scalar(float("nan"), part.type), bound)


def canonical_floats(values: Any) -> Any:
    """Equal floats as one value: one NaN, and 0.0 for -0.0; of other types the values as they are."""
    if not is_.is_floating(values.type):
        return values
    unsigned = pc.add(values, pa.scalar(0.0, values.type))
    return pc.if_else(pc.is_nan(unsigned), pa.scalar(float("nan"), values.type), unsigned)
