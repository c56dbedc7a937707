"""Minimum and maximum: votes on statistics that every unit has anyway, so there is nothing to build or to read.

A predicate becomes a set of ranges in Spark's order (``ValueSet``), a unit the range of its values. NONE: they do not
meet. ALL: one range holds the whole unit. Bounds that were cut bound all the same, so both hold for them too. One code
serves tables, segments, blocks and zones. Knows nothing of where statistics come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeGuard

import numpy as np
import pyarrow as pa
import pyarrow.types as is_

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
    ValueSet,
    hookimpl,
)
from fuse_index.predicate import Compare, Context, In, Leaf, Like, Literal, StartsWith, Term
from fuse_plugins.min_max.integer_keys import has_integer_keys
from fuse_plugins.min_max.value_ranges import ValueRanges

__all__ = ["MinMax", "ValueRanges", "fuse_index_kinds", "is_ordered_type", "matching_value_set"]


MIN_VALUES_SORTED_BY_ARROW = 1000
"""From so many values of a list on, an interval for each costs more than an array of them."""


class MinMax(IndexKind):
    """Votes on comparisons, IN, STARTS WITH and LIKE with a prefix, for every ordered type."""

    name = "min_max"
    implicit = True

    def accepts(self, inputs: Sequence[Input], options: Any) -> Refusal | None:
        return Refusal(Reason.NOT_NEEDED, "every column has min_max without a definition")

    def compile(
        self, what: Leaf | Conjunction, inputs: Sequence[Input], options: Any, context: Context
    ) -> Probe[ValueRanges] | Refusal:
        if len(inputs) != 1 or not is_ordered_type(inputs[0].type):
            types = [str(index_input.type) for index_input in inputs]
            return Refusal(Reason.LEAF_UNSUPPORTED, f"{types} is not one column of an ordered type")
        if _is_long_list(what, inputs[0]):
            return Probe(ValueRanges.from_points(what.plain_values, inputs[0].type))
        matching = matching_value_set(what, inputs[0].term)
        if matching is None:
            return Refusal(Reason.LEAF_UNSUPPORTED, "no range of values says the same")
        value_set, exact = matching
        return Probe(ValueRanges.from_value_set(value_set, inputs[0].type, exact))

    def probe(self, probe: Probe[ValueRanges], batch: BlockBatch) -> Ballot:
        statistics = batch.statistics(0)
        if statistics is None:
            return Ballot.constant(len(batch), SOME)
        meets, within = probe.what.compare(statistics.min, statistics.max)
        return Ballot(np.where(within, np.uint8(ALL), np.where(meets, np.uint8(SOME), np.uint8(NONE))))


@hookimpl
def fuse_index_kinds() -> list[type[IndexKind]]:
    return [MinMax]


def _is_long_list(what: Leaf | Conjunction, index_input: Input) -> TypeGuard[In]:
    """Return whether it is a list so long, of a type so plain, that its values are better sorted by Arrow."""
    data_type = index_input.type
    return (
        isinstance(what, In)
        and what.term == index_input.term
        and len(what.values) >= MIN_VALUES_SORTED_BY_ARROW
        and bool(is_.is_signed_integer(data_type) or is_.is_string(data_type))
        and what.types == [data_type]
        and not what.has_null
    )


def is_ordered_type(data_type: pa.DataType) -> bool:
    """Return whether values of this type have an order that is Spark's and that statistics follow."""
    return has_integer_keys(data_type) or bool(
        is_.is_decimal(data_type) or is_.is_string(data_type) or is_.is_binary(data_type)
    )


def matching_value_set(what: Leaf | Conjunction, term: Term) -> tuple[ValueSet, bool] | None:
    """Return the values of the term on which the leaf may be TRUE, and whether it is TRUE on all of them.

    None if no set of ranges says that.
    """
    match what:
        case Conjunction():
            return (what.domain(term), True) if any(named == term for named, _ in what.domains) else None
        case Compare(_, left, _) | In(left, _) | StartsWith(left, _) | Like(left, _, _) if left == term:
            value_set = ValueSet.of(what)
            return _prefix_value_set(what) if value_set is None else (value_set, True)
        case _:
            return None


def _prefix_value_set(leaf: Leaf) -> tuple[ValueSet, bool] | None:
    """Widen LIKE to its prefix: ``LIKE 'ab%c'`` is TRUE only on what starts with ``ab``, though not on all of that."""
    match leaf:
        case Like(term, Literal(str() as pattern, data_type), escape):
            prefix_length = min(
                (pattern.index(letter) for letter in ("%", "_", escape) if letter in pattern), default=0
            )
            prefix = pattern[:prefix_length]
            value_set = ValueSet.of(StartsWith(term, Literal(prefix, data_type))) if prefix else None
            return None if value_set is None else (value_set, False)
        case _:
            return None
