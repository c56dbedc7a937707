"""Small worlds: a few values of each type, chosen for trouble, and every leaf about them.

Enumerating a small world finds what random draws miss; each value here is one on which some engine went wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context as Precision
from decimal import Decimal
from itertools import combinations, product
from typing import Any, get_args

import pyarrow as pa
import pyarrow.types as is_

from fuse_index.expressions.conjunction import Conjunction
from fuse_index.predicate import (
    And,
    Compare,
    Contains,
    EndsWith,
    In,
    IsNull,
    Leaf,
    Like,
    Literal,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
    Term,
)

EXACT = Precision(prec=60)
"""Python rounds decimals to 28 digits, unless told."""

OPERATORS: tuple[Operator, ...] = get_args(Operator)
RANGES: tuple[tuple[Operator, Operator], ...] = ((">", "<"), (">=", "<="), ("<>", "<>"), ("=", "<>"), ("=", "="))
BOXED = 5
"""Of how many values each pair makes boxes."""
PAIRED: tuple[Operator, ...] = ("=", "<", "<>")


@dataclass(frozen=True)
class Samples:
    """``data``: what rows hold, besides NULL; ``literals``: what they are compared with."""

    data: tuple[Any, ...]
    literals: tuple[Any, ...]


def _ints(type: pa.DataType) -> Samples:
    end = 1 << type.bit_width - 1
    return Samples((-1, 0, 1, end - 1), (-end, -2, -1, 0, 1, 2, end - 1))


def _floats() -> Samples:
    nan, inf = float("nan"), float("inf")
    return Samples((-1.0, -0.0, 0.0, 1.5, nan), (-inf, -1.0, -0.5, -0.0, 0.0, 1.5, 2.0, inf, nan))


def _decimals(type: pa.DataType) -> Samples:
    step, zero = Decimal(1).scaleb(-type.scale), Decimal(0)
    most = Decimal(10**type.precision - 1).scaleb(-type.scale, EXACT)
    return Samples((-step, zero, step, most), (most.copy_negate(), -step - step, -step, zero, step, step + step, most))


def _times(zone: Any) -> Samples:
    start = datetime(1970, 1, 1, tzinfo=zone)
    old, tick = datetime(1582, 10, 4, 23, 59, 59, 999999, tzinfo=zone), timedelta(microseconds=1)
    data = (old, start, start + tick, datetime(9999, 12, 31, tzinfo=zone))
    return Samples(data, (old - tick, old, old + tick, start - tick, start, start + tick))


LONG = "x" * 32
"""As long as a bound that is kept whole; one letter more, and it is cut."""

TEXTS = Samples(
    ("", "a", "a\x00", "b", "～", "😀", LONG, LONG + "x"),
    ("", "a", "a\x00", "aa", "b", "～", "😀", LONG[:-1] + "y", LONG, LONG + "x", LONG + "y"),
)
BYTES = Samples(
    (b"", b"a", b"a\x00", b"\x7f", b"\x80", b"\xff" * 33),
    (b"", b"a", b"a\x00", b"\x7f", b"\x80", b"\xff" * 32, b"\xff" * 33, b"\xff" * 34),
)
DATES = Samples(
    (date(1582, 10, 4), date(1970, 1, 1), date(1970, 1, 2), date(9999, 12, 31)),
    (
        date(1, 1, 1),
        date(1582, 10, 4),
        date(1582, 10, 15),
        date(1969, 12, 31),
        date(1970, 1, 1),
        date(1970, 1, 2),
        date(9999, 12, 31),
    ),
)

TYPES: tuple[pa.DataType, ...] = (
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(9, 2),
    pa.decimal128(38, 10),
    pa.string(),
    pa.binary(),
    pa.date32(),
    pa.timestamp("us", "UTC"),
    pa.timestamp("us"),
)
"""Every type that a column of a table may have, nested ones apart."""


def samples(type: pa.DataType) -> Samples:
    """Values of this type. Raises LookupError for types that columns do not have."""
    if is_.is_boolean(type):
        return Samples((False, True), (False, True))
    if is_.is_signed_integer(type):
        return _ints(type)
    if is_.is_floating(type):
        return _floats()
    if is_.is_decimal(type):
        return _decimals(type)
    if is_.is_timestamp(type):
        return _times(UTC if type.tz else None)
    plain = {pa.string(): TEXTS, pa.binary(): BYTES, pa.date32(): DATES}
    if type not in plain:
        raise LookupError(f"no samples of type {type}: give rows and literals of your own")
    return plain[type]


def blocks(rows: Sequence[tuple[Any, ...]]) -> list[list[list[tuple[Any, ...]]]]:
    """Every block of one row, of two rows in one zone, and of two zones of a row each."""
    pairs = list(product(rows, repeat=2))
    return (
        [[[row]] for row in rows]
        + [[[one, other]] for one, other in pairs]
        + [[[one], [other]] for one, other in pairs]
    )


def leaves(term: Term, literals: Sequence[Any]) -> Iterator[Leaf]:
    """Every leaf about a term and these values: comparisons, lists, text tests, null tests."""
    values = [Literal(value, term.type) for value in literals]
    for operator, value in product(OPERATORS, values):
        yield Compare(operator, term, value)
    null = Literal(None, term.type)
    yield from (In(term, tuple(some)) for size in (1, 2) for some in combinations(values, size))
    yield from (In(term, tuple(values)), In(term, (*values[:1], null)), Compare("<=>", term, null), IsNull(term))
    if is_.is_string(term.type):
        for text in literals:
            yield from _text_tests(term, text)


def _text_tests(term: Term, text: str) -> Iterator[Leaf]:
    value = Literal(text, term.type)
    yield from (StartsWith(term, value), EndsWith(term, value), Contains(term, value))
    plain = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    for pattern in (plain, f"{plain}%", f"%{plain}", f"{plain}_", f"{plain}%{plain}", f"_{plain}"):
        yield Like(term, Literal(pattern, term.type))


def boxes(terms: Sequence[Term], literals: Sequence[Sequence[Any]]) -> Iterator[Conjunction]:
    """What AND groups say of one term, and of two together. ``literals[i]`` are values for ``terms[i]``; the middle
    ones are used.
    """
    literals = [_middle(values) for values in literals]
    for term, values in zip(terms, literals, strict=True):
        for one, other in combinations([Literal(value, term.type) for value in values], 2):
            for group in _groups(term, one, other):
                yield from _boxed(group)
    for (first, ones), (second, others) in combinations(list(zip(terms, literals, strict=True)), 2):
        for left, right, operator in product(ones, others, PAIRED):
            both = (
                Compare("=", first, Literal(left, first.type)),
                Compare(operator, second, Literal(right, second.type)),
            )
            yield from _boxed(And(both))


def _middle(values: Sequence[Any]) -> Sequence[Any]:
    start = max(0, (len(values) - BOXED) // 2)
    return values[start : start + BOXED]


def _groups(term: Term, one: Literal, other: Literal) -> Iterator[And]:
    for low, high in RANGES:
        yield And((Compare(low, term, one), Compare(high, term, other)))
        yield And((Compare(high, term, one), Compare(low, term, other)))
    equal: list[Predicate] = [Compare("=", term, one), Compare("=", term, other)]
    yield And((Or(tuple(equal)), Not(equal[0])))
    yield And((Not(In(term, (one, other))), Compare(">=", term, one)))


def _boxed(group: And) -> Iterator[Conjunction]:
    box = Conjunction.of(group)
    if box is not None:
        yield box
