"""Which conditions a kind judges: found by asking it, as the planner would."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any, get_args

import pyarrow as pa

from fuse_index.indexes.interface import IndexKind, Input, Probe, Votes
from fuse_index.indexes.sandbox import sandboxed_call
from fuse_index.predicate import (
    Call,
    Column,
    Compare,
    Contains,
    Context,
    EndsWith,
    In,
    Leaf,
    Like,
    Literal,
    Operator,
    StartsWith,
)

_SECONDS = 5.0
_VALUES: dict[pa.DataType, Any] = {
    pa.bool_(): True,
    pa.int32(): 1,
    pa.int64(): 1,
    pa.float64(): 1.0,
    pa.decimal128(9, 2): Decimal("1.00"),
    pa.string(): "some text",
    pa.binary(): b"some bytes",
    pa.date32(): date(2026, 1, 1),
    pa.timestamp("us", "UTC"): datetime(2026, 1, 1, tzinfo=UTC),
}
"""A value of each type that is tried."""


def conditions_by_type(kind: IndexKind) -> dict[str, str]:
    """The types of columns on which a kind judges the same conditions; both as text, by conditions.

    Empty for a kind that judges none, or only terms of its own, such as JSON paths, or several columns together.
    """
    found: dict[str, list[str]] = {}
    if isinstance(kind, Votes):
        for data_type in _VALUES:
            judged = [name for name, leaf in _conditions(data_type) if _is_understood(kind, leaf, data_type)]
            if judged:
                found.setdefault(", ".join(judged), []).append(str(data_type))
    return {conditions: ", ".join(types) for conditions, types in found.items()}


def _conditions(data_type: pa.DataType) -> Iterator[tuple[str, Leaf]]:
    column, value = _column(data_type), Literal(_VALUES[data_type], data_type)
    for operator in get_args(Operator):
        if operator != "<=>":  # kinds are asked = in its place
            yield operator, Compare(operator, column, value)
    yield "IN", In(column, (value,))
    if data_type == pa.string():
        yield "LIKE 'a%'", Like(column, Literal("some%", data_type))
        yield "LIKE '%a%'", Like(column, Literal("%some%", data_type))
        yield from (("startswith", StartsWith(column, value)), ("endswith", EndsWith(column, value)))
        yield "contains", Contains(column, value)
        lower = Call("lower", (column,), data_type)
        yield "ILIKE '%a%'", Like(lower, Literal("%some%", data_type))
        yield "RLIKE", Call("rlike", (column, Literal("some.*text", data_type)))


def _is_understood(kind: Votes, leaf: Leaf, data_type: pa.DataType) -> bool:
    def ask() -> bool:
        assert isinstance(kind, IndexKind)
        options: Any = kind.Options()
        inputs = (Input(_column(data_type), data_type),)
        if not kind.implicit and kind.accepts(inputs, options) is not None:
            return False
        return isinstance(kind.compile(leaf, inputs, options, Context()), Probe)

    return sandboxed_call(ask, _SECONDS) is True


def _column(data_type: pa.DataType) -> Column:
    return Column(("c",), data_type)
