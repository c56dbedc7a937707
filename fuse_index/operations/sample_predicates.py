"""Predicates to try an index with, drawn from the rows that it is on: on values that are there, and beside them.

Knows no index. What is drawn is as simple as what people ask: leaves, and ranges of several inputs together.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as is_

from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.function import Function
from fuse_index.indexes.interface import Input
from fuse_index.predicate import (
    And,
    Call,
    Compare,
    Contains,
    EndsWith,
    In,
    IsNull,
    JsonPath,
    Leaf,
    Like,
    Literal,
    StartsWith,
    Term,
)

_VALUES_PER_INPUT = 5
"""Values of each input that leaves are made of; as many beside them, and lists of all."""


def generate_predicates(
    inputs: Sequence[Input], values: pa.Table, functions: Mapping[str, Function], rng: random.Random
) -> Iterator[Leaf | Conjunction]:
    """Predicates about these inputs. ``values``: one column of rows for each of them."""
    drawn = [_sample_values(column, rng) for column in values.columns]
    for given, found in zip(inputs, drawn, strict=True):
        yield from _leaves_on_term(given.term, [Literal(value, given.type) for value in found], functions)
    if len(inputs) > 1 and all(drawn):
        yield from _conjunctions_on_inputs(inputs, drawn, values, rng)


def _sample_values(column: pa.ChunkedArray, pick: random.Random) -> list[Any]:
    """A few values, none twice, NULL left out; and a neighbour of each."""
    rows = sorted(pick.sample(range(len(column)), min(_VALUES_PER_INPUT, len(column))))
    held = [value for value in (column[row].as_py() for row in rows) if value is not None]
    near = [other for value in held for other in _adjacent_values(value, column.type)]
    found: list[Any] = []
    for candidate in held + near:
        if not any(_same_value(candidate, other) for other in found):
            found.append(candidate)
    return found


def _same_value(one: Any, other: Any) -> bool:
    return bool(one == other) or (
        isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    )


def _adjacent_values(value: Any, kind: pa.DataType) -> list[Any]:
    """Values just next to this one, of the same type."""
    match value:
        case bool():
            near: list[Any] = [not value]
        case int():
            near = [value - 1, value + 1]
        case float():
            of = np.float32 if is_.is_float32(kind) else np.float64
            near = [float(np.nextafter(of(value), of(end))) for end in (-math.inf, math.inf)]
        case Decimal() if value.is_finite() and kind.precision < 28:
            step = Decimal(1).scaleb(-kind.scale)
            near = [value - step, value + step]
        case str():
            near = [value + "!", value[:-1], value.swapcase()]
        case bytes():
            near = [value + b"\x00", value[:-1]]
        case datetime():
            near = _shifted_dates(value, timedelta(microseconds=1))
        case date():
            near = _shifted_dates(value, timedelta(days=1))
        case _:
            near = []
    return [other for other in near if _is_representable(other, kind)]


def _shifted_dates(value: Any, step: timedelta) -> list[Any]:
    return [value + change for change in (-step, step) if value.year not in (1, 9999)]


def _is_representable(value: Any, kind: pa.DataType) -> bool:
    try:
        pa.scalar(value, kind)
    except (pa.ArrowInvalid, OverflowError):
        return False
    return True


def _leaves_on_term(term: Term, values: Sequence[Literal], functions: Mapping[str, Function]) -> Iterator[Leaf]:
    yield IsNull(term)
    for value in values:
        for operator in ("=", "<>", "<", "<=", ">", ">="):
            yield Compare(operator, term, value)
    if values:
        yield In(term, tuple(values))
        yield In(term, (values[-1], Literal(None, values[-1].type)))
    for value in values[:_VALUES_PER_INPUT]:
        if isinstance(value.value, str):
            yield from _leaves_on_text(term, value.value)
            yield from _function_calls(term, value, functions)


def _leaves_on_text(term: Term, text: str) -> Iterator[Leaf]:
    half = Literal(text[: (len(text) + 1) // 2], pa.string())
    rest = Literal(text[len(text) // 2 :], pa.string())
    yield from (StartsWith(term, half), EndsWith(term, rest), Contains(term, rest))
    if not set(half.value) & {"%", "_", "\\"}:
        yield Like(term, Literal(half.value + "%", pa.string()))
    for path, value in _json_members(text):
        yield Compare("=", JsonPath(term, path), Literal(value, pa.string()))


def _json_members(text: str) -> list[tuple[str, str]]:
    """Paths and values of a JSON object's plain members."""
    try:
        found = json.loads(text)
    except ValueError:
        return []
    members = found.items() if isinstance(found, dict) else ()
    return [
        (f"$.{name}", str(value)) for name, value in members if name.isidentifier() and isinstance(value, int | str)
    ][:_VALUES_PER_INPUT]


def _function_calls(term: Term, value: Literal, functions: Mapping[str, Function]) -> Iterator[Leaf]:
    """Functions of a text and a text, such as searches: with a word of it, and with all of it."""
    words = value.value.split()
    for function in functions.values():
        if function.argument_types == (pa.string(), pa.string()):
            for text in dict.fromkeys([*words[:1], value.value]):
                yield Call(function.name, (term, Literal(text, pa.string())))


def _conjunctions_on_inputs(
    inputs: Sequence[Input], drawn: Sequence[Sequence[Any]], values: pa.Table, pick: random.Random
) -> Iterator[Conjunction]:
    """What AND groups say of all inputs together: rows that are there, and ranges."""
    for row in pick.sample(range(len(values)), min(_VALUES_PER_INPUT, len(values))):
        held = [column[row].as_py() for column in values.columns]
        if all(value is not None for value in held):
            yield from _conjunction(inputs, held, "=")
            yield from _conjunction(inputs, held, ">=")
    yield from _conjunction(inputs, [found[-1] for found in drawn], "<")


def _conjunction(inputs: Sequence[Input], values: Sequence[Any], operator: Any) -> Iterator[Conjunction]:
    literals = [Literal(value, given.type) for given, value in zip(inputs, values, strict=True)]
    box = Conjunction.of(
        And(tuple(Compare(operator, given.term, literal) for given, literal in zip(inputs, literals, strict=True)))
    )
    if box is not None:
        yield box
