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

EXACT_DECIMALS = Precision(prec=60)
"""Python rounds decimals to 28 digits, unless told."""

_OPERATORS: tuple[Operator, ...] = get_args(Operator)
_RANGE_OPERATORS: tuple[tuple[Operator, Operator], ...] = (
    (">", "<"),
    (">=", "<="),
    ("<>", "<>"),
    ("=", "<>"),
    ("=", "="),
)
_VALUES_PER_CONJUNCTION = 5
"""Values of each leaf of a conjunction, of which each pair makes boxes."""
_PAIR_OPERATORS: tuple[Operator, ...] = ("=", "<", "<>")


@dataclass(frozen=True)
class Samples:
    """``data``: what rows hold, besides NULL; ``literals``: what they are compared with."""

    data: tuple[Any, ...]
    literals: tuple[Any, ...]


def _ints(data_type: pa.DataType) -> Samples:
    end = 1 << data_type.bit_width - 1
    return Samples((-1, 0, 1, end - 1), (-end, -2, -1, 0, 1, 2, end - 1))


def _floats() -> Samples:
    nan, inf = float("nan"), float("inf")
    return Samples((-1.0, -0.0, 0.0, 1.5, nan), (-inf, -1.0, -0.5, -0.0, 0.0, 1.5, 2.0, inf, nan))


def _decimals(data_type: pa.DataType) -> Samples:
    step, zero = Decimal(1).scaleb(-data_type.scale), Decimal(0)
    most = Decimal(10**data_type.precision - 1).scaleb(-data_type.scale, EXACT_DECIMALS)
    return Samples((-step, zero, step, most), (most.copy_negate(), -step - step, -step, zero, step, step + step, most))


def _times(zone: Any) -> Samples:
    start = datetime(1970, 1, 1, tzinfo=zone)
    old, tick = datetime(1582, 10, 4, 23, 59, 59, 999999, tzinfo=zone), timedelta(microseconds=1)
    data = (old, start, start + tick, datetime(9999, 12, 31, tzinfo=zone))
    return Samples(data, (old - tick, old, old + tick, start - tick, start, start + tick))


_LONG_TEXT = "x" * 32
"""Text as long as a bound that is kept whole; one letter more, and it is cut."""

_TEXT_SAMPLES = Samples(
    ("", "a", "a\x00", "b", "～", "😀", _LONG_TEXT, _LONG_TEXT + "xz"),
    (
        "",
        "a",
        "a\x00",
        "aa",
        "Z",
        "b",
        "～",
        "😀",
        _LONG_TEXT[:-1] + "y",
        _LONG_TEXT,
        _LONG_TEXT + "xz",
        _LONG_TEXT + "y",
        "xz",
    ),
)
_BYTES_SAMPLES = Samples(
    (b"", b"a", b"a\x00", b"\x7f", b"\x80", b"\xff" * 33),
    (b"", b"a", b"a\x00", b"\x7f", b"\x80", b"\xff" * 32, b"\xff" * 33, b"\xff" * 34),
)
_DATE_SAMPLES = Samples(
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

SAMPLE_TYPES: tuple[pa.DataType, ...] = (
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


def samples_of_type(data_type: pa.DataType) -> Samples:
    """Values of this type. Raises LookupError for types that columns do not have."""
    if is_.is_boolean(data_type):
        return Samples((False, True), (False, True))
    if is_.is_signed_integer(data_type):
        return _ints(data_type)
    if is_.is_floating(data_type):
        return _floats()
    if is_.is_decimal(data_type):
        return _decimals(data_type)
    if is_.is_timestamp(data_type):
        return _times(UTC if data_type.tz else None)
    plain = {pa.string(): _TEXT_SAMPLES, pa.binary(): _BYTES_SAMPLES, pa.date32(): _DATE_SAMPLES}
    if data_type not in plain:
        raise LookupError(f"no samples of type {data_type}: give rows and literals of your own")
    return plain[data_type]


def enumerate_blocks(rows: Sequence[tuple[Any, ...]]) -> list[list[list[tuple[Any, ...]]]]:
    """Every block of one row, of two rows in one zone, and of two zones of a row each; some of unequal zones."""
    pairs = list(product(rows, repeat=2))
    more = [*rows, *rows[:4]]
    return (
        [[more[start : start + 2], more[start + 2 : start + 3]] for start in range(len(rows))]
        + [[more[start : start + 1], more[start + 1 : start + 4]] for start in range(len(rows))]
        + [[[row]] for row in rows]
        + [[[one, other]] for one, other in pairs]
        + [[[one], [other]] for one, other in pairs]
    )


def enumerate_leaves(term: Term, literals: Sequence[Any]) -> Iterator[Leaf]:
    """Every leaf about a term and these values: comparisons, lists, text tests, null tests."""
    values = [Literal(value, term.type) for value in literals]
    for operator, value in product(_OPERATORS, values):
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
    escaped = text.replace("!", "!!").replace("%", "!%").replace("_", "!_")
    yield Like(term, Literal(f"{escaped}%", term.type), "!")
    yield Like(term, Literal(f"!%{escaped}", term.type), "!")
    if len(text) > 1:
        yield Like(term, Literal(f"{text[:1]}%{text[-1:]}", term.type))
        yield Like(term, Literal(f"{text[:1]}_{text[1:]}", term.type))


def enumerate_conjunctions(terms: Sequence[Term], literals: Sequence[Sequence[Any]]) -> Iterator[Conjunction]:
    """What ``enumerate_groups`` say of their terms."""
    for group in enumerate_groups(terms, literals):
        if (box := Conjunction.of(group)) is not None:
            yield box


def enumerate_groups(terms: Sequence[Term], literals: Sequence[Sequence[Any]]) -> Iterator[And]:
    """AND groups on one term, and on two together.

    ``literals[i]`` are values for ``terms[i]``; the middle ones are used.
    """
    literals = [_middle(values) for values in literals]
    for term, values in zip(terms, literals, strict=True):
        known = [Literal(value, term.type) for value in values]
        for one, other in combinations(known, 2):
            yield from _and_groups(term, one, other)
        yield from _groups_of_many(term, known)
    for (first, ones), (second, others) in combinations(list(zip(terms, literals, strict=True)), 2):
        for left, right, operator in product(ones, others, _PAIR_OPERATORS):
            yield And(
                (
                    Compare("=", first, Literal(left, first.type)),
                    Compare(operator, second, Literal(right, second.type)),
                )
            )


def _middle(values: Sequence[Any]) -> Sequence[Any]:
    start = max(0, (len(values) - _VALUES_PER_CONJUNCTION) // 2)
    return values[start : start + _VALUES_PER_CONJUNCTION]


def _and_groups(term: Term, one: Literal, other: Literal) -> Iterator[And]:
    for low, high in _RANGE_OPERATORS:
        yield And((Compare(low, term, one), Compare(high, term, other)))
        yield And((Compare(high, term, one), Compare(low, term, other)))
    equal: list[Predicate] = [Compare("=", term, one), Compare("=", term, other)]
    yield And((Or(tuple(equal)), Not(equal[0])))
    yield And((Not(In(term, (one, other))), Compare(">=", term, one)))


def _groups_of_many(term: Term, values: Sequence[Literal]) -> Iterator[And]:
    """Lists of points beside a bound, and as many intervals as lie between points."""
    if len(values) < 3:  # of fewer, pairs say all
        return
    for left_out in values:
        listed = In(term, tuple(value for value in values if value is not left_out))
        yield And((listed, Compare(">=", term, values[0])))
        yield And((listed, Compare("<", term, left_out)))
        yield And((Not(listed), Compare("<>", term, left_out)))
        yield And((Not(listed), Compare("<=", term, left_out)))
