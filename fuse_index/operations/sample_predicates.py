"""Predicates to try an index with, drawn from the rows that it is on: on values that are there, and beside them.

Knows no index. What is drawn is as simple as what people ask: leaves, and ranges of several inputs together.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as is_

from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.errors import NotReproducible
from fuse_index.expressions.function import Function
from fuse_index.expressions.variant.decode import decode
from fuse_index.expressions.variant.get import cast_scalar
from fuse_index.indexes.interface import Input
from fuse_index.predicate import (
    And,
    Call,
    Compare,
    Contains,
    Context,
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
from fuse_storage import MalformedVariant, is_variant

_VALUES_PER_INPUT = 5
"""Values of each input that leaves are made of; as many beside them, and lists of all."""


def generate_predicates(
    inputs: Sequence[Input], values: pa.Table, functions: Mapping[str, Function], rng: random.Random
) -> Iterator[Leaf | Conjunction]:
    """Yield predicates about these inputs. ``values``: one column of rows for each of them."""
    samples = [_sample_values(column, rng) for column in values.columns]
    for term_input, sample in zip(inputs, samples, strict=True):
        literals = [Literal(value, term_input.type) for value in sample]
        yield from _leaves_on_term(term_input.term, literals, functions)
    if len(inputs) > 1 and all(samples):
        yield from _conjunctions_on_inputs(inputs, samples, values, rng)


def _sample_values(column: pa.ChunkedArray, rng: random.Random) -> list[Any]:
    """Draw a few values, none twice, NULL left out; and a neighbour of each."""
    rows = sorted(rng.sample(range(len(column)), min(_VALUES_PER_INPUT, len(column))))
    values = [value for value in (column[row].as_py() for row in rows) if value is not None]
    neighbours = [neighbour for value in values for neighbour in _adjacent_values(value, column.type)]
    distinct: list[Any] = []
    for candidate in values + neighbours:
        if not any(_same_value(candidate, other) for other in distinct):
            distinct.append(candidate)
    return distinct


def _same_value(left: Any, right: Any) -> bool:
    return bool(left == right) or (
        isinstance(left, float) and isinstance(right, float) and math.isnan(left) and math.isnan(right)
    )


def _adjacent_values(value: Any, data_type: pa.DataType) -> list[Any]:
    """List values just next to this one, of the same type."""
    match value:
        case bool():
            neighbours: list[Any] = [not value]
        case int():
            neighbours = [value - 1, value + 1]
        case float():
            scalar = np.float32 if is_.is_float32(data_type) else np.float64
            neighbours = [float(np.nextafter(scalar(value), scalar(end))) for end in (-math.inf, math.inf)]
        case Decimal() if value.is_finite() and data_type.precision < 28:
            step = Decimal(1).scaleb(-data_type.scale)
            neighbours = [value - step, value + step]
        case str():
            neighbours = [value + "!", value[:-1], value.swapcase()]
        case bytes():
            neighbours = [value + b"\x00", value[:-1]]
        case datetime():
            neighbours = _shifted_dates(value, timedelta(microseconds=1))
        case date():
            neighbours = _shifted_dates(value, timedelta(days=1))
        case _:
            neighbours = []
    return [neighbour for neighbour in neighbours if _is_representable(neighbour, data_type)]


def _shifted_dates(value: Any, step: timedelta) -> list[Any]:
    return [value + change for change in (-step, step) if value.year not in (1, 9999)]


def _is_representable(value: Any, data_type: pa.DataType) -> bool:
    try:
        pa.scalar(value, data_type)
    except (pa.ArrowInvalid, OverflowError):
        return False
    return True


def _leaves_on_term(term: Term, values: Sequence[Literal], functions: Mapping[str, Function]) -> Iterator[Leaf]:
    yield IsNull(term)
    if is_variant(term.type):
        for value in values[:_VALUES_PER_INPUT]:
            yield from _leaves_on_variant(term, value.value)
        return
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
    first_half = Literal(text[: (len(text) + 1) // 2], pa.string())
    second_half = Literal(text[len(text) // 2 :], pa.string())
    yield from (StartsWith(term, first_half), EndsWith(term, second_half), Contains(term, second_half))
    if not set(first_half.value) & {"%", "_", "\\"}:
        yield Like(term, Literal(first_half.value + "%", pa.string()))
    for path, value in _json_members(text):
        yield Compare("=", JsonPath(term, path), Literal(value, pa.string()))


def _leaves_on_variant(term: Term, binaries: Mapping[str, bytes]) -> Iterator[Leaf]:
    """Compare members of an object with what they are, cast to types that they have and have not."""
    try:
        tree = decode(binaries["value"], binaries["metadata"])
    except (MalformedVariant, NotReproducible):
        return
    members = tree.items() if isinstance(tree, dict) else ()
    for name, value in [each for each in members if each[0].isidentifier()][:_VALUES_PER_INPUT]:
        for data_type in (pa.int64(), pa.float64(), pa.string()):
            with suppress(NotReproducible):
                cast = cast_scalar(value, data_type, Context("UTC"))
                if cast is not None:
                    found = JsonPath(term, f"$.{name}", data_type, "try_variant_get")
                    yield Compare("=", found, Literal(cast, data_type))
                    yield Compare(">", found, Literal(cast, data_type))


def _json_members(text: str) -> list[tuple[str, str]]:
    """List paths and values of a JSON object's plain members."""
    try:
        document = json.loads(text)
    except ValueError:
        return []
    members = document.items() if isinstance(document, dict) else ()
    return [
        (f"$.{name}", str(value)) for name, value in members if name.isidentifier() and isinstance(value, int | str)
    ][:_VALUES_PER_INPUT]


def _function_calls(term: Term, value: Literal, functions: Mapping[str, Function]) -> Iterator[Leaf]:
    """Call functions of two texts, such as searches, with the first word of the value and with all of it."""
    words = value.value.split()
    for function in functions.values():
        if function.argument_types == (pa.string(), pa.string()):
            for text in dict.fromkeys([*words[:1], value.value]):
                yield Call(function.name, (term, Literal(text, pa.string())))


def _conjunctions_on_inputs(
    inputs: Sequence[Input], samples: Sequence[Sequence[Any]], values: pa.Table, rng: random.Random
) -> Iterator[Conjunction]:
    """Yield conditions on all inputs together: on rows that are there, and on ranges."""
    for row in rng.sample(range(len(values)), min(_VALUES_PER_INPUT, len(values))):
        row_values = [column[row].as_py() for column in values.columns]
        if all(value is not None for value in row_values):
            yield from _conjunction(inputs, row_values, "=")
            yield from _conjunction(inputs, row_values, ">=")
    yield from _conjunction(inputs, [sample[-1] for sample in samples], "<")


def _conjunction(inputs: Sequence[Input], values: Sequence[Any], operator: Any) -> Iterator[Conjunction]:
    leaves = [
        Compare(operator, term_input.term, Literal(value, term_input.type))
        for term_input, value in zip(inputs, values, strict=True)
    ]
    conjunction = Conjunction.of(And(tuple(leaves)))
    if conjunction is not None:
        yield conjunction
