"""Which values a term may have, as sets that can be joined.

A value set speaks of values that are not NULL, in Spark's order: NaN is the largest value
and equal to itself, -0.0 equals 0.0, text and binary go by unsigned bytes (which is Python's own order of ``str``:
UTF-8 keeps the order of code points). Knows no statistics and no index.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from fuse_index.expressions.like import LikePattern
from fuse_index.predicate import Compare, In, Like, Literal, Predicate, StartsWith, Term
from fuse_storage import prefix_end

Endpoint = tuple[Any, ...]
"""A place between values: below all, (0,); just below or above a value, (1, key, 0 or 1); above all, (2,)."""

_BOTTOM, _TOP = (0,), (2,)
_AT_NAN: Endpoint = (1, (1, 0.0), 0)


@dataclass(frozen=True, slots=True)
class Interval:
    """Values between two bounds; None is unbounded (a float interval unbounded above holds NaN)."""

    low: Any = None
    high: Any = None
    low_closed: bool = False
    high_closed: bool = False

    @classmethod
    def point(cls, value: Any) -> Interval:
        return cls(value, value, True, True)

    @property
    def is_point(self) -> bool:
        return (
            self.low_closed and self.high_closed and self.low is not None and sort_key(self.low) == sort_key(self.high)
        )


@dataclass(frozen=True, slots=True)
class ValueSet:
    """A set of values: intervals in Spark's order, disjoint and not adjacent. None at all: no value is possible.

    ``a > 10 AND a < 50`` cannot be TRUE of a block whose values are 1 and 100, though each half alone can be:

    >>> above, below = ValueSet.between(low=10.0), ValueSet.between(high=50.0)
    >>> both = above.intersect(below)
    >>> above.contains(100.0), below.contains(1.0), both.contains(1.0) or both.contains(100.0)
    (True, True, False)

    A range of [40, 60] may hold such a value and need not; one of [11, 49] holds nothing else:

    >>> both.overlaps(40.0, 60.0), both.covers(40.0, 60.0), both.covers(11.0, 49.0)
    (True, False, True)

    NaN is the largest value, so what is not below 50 holds NaN; and -0.0 is 0.0:

    >>> below.complement().contains(float("nan"))
    True
    >>> ValueSet.points_at([-0.0, 0.0]).points()
    (0.0,)
    """

    intervals: tuple[Interval, ...]

    @classmethod
    def everything(cls) -> ValueSet:
        return cls((Interval(),))

    @classmethod
    def nothing(cls) -> ValueSet:
        return cls(())

    @classmethod
    def points_at(cls, values: Iterable[Any]) -> ValueSet:
        """Make the set of these values and no others; -0.0 and 0.0 are one, and so are all NaNs."""
        distinct = {sort_key(value): _canonical_float(value) for value in values}
        return cls(tuple(Interval.point(distinct[key]) for key in sorted(distinct)))

    @classmethod
    def between(
        cls, low: Any = None, high: Any = None, low_closed: bool = False, high_closed: bool = False
    ) -> ValueSet:
        return cls(_intervals([_low_endpoint(low, low_closed), _high_endpoint(high, high_closed)], [low, high]))

    @classmethod
    def of(cls, leaf: Predicate) -> ValueSet | None:
        """The non-NULL values on which the leaf is TRUE, it being FALSE on all others; None where that cannot be said.

        For comparisons, IN without NULL, STARTS WITH, and LIKE with a plain prefix, of a term with non-NULL literals of
        its own type.
        """
        match leaf:
            case Compare(operator, term, Literal(value, data_type)) if _comparable(term, value, data_type):
                return _compared(operator, value)
            case In(term, values) if values and not leaf.has_null and _comparable(term, values[0].value, leaf.types[0]):
                return cls.points_at(leaf.plain_values) if len(leaf.types) == 1 else None
            case StartsWith(term, Literal(prefix, data_type)) if _comparable(term, prefix, data_type):
                return _starting_with(prefix)
            case Like(term, Literal(pattern, data_type), escape) if _comparable(term, pattern, data_type):
                return _like(pattern, escape)
            case _:
                return None

    @classmethod
    def union_of(cls, sets: Sequence[ValueSet]) -> ValueSet:
        """The values that are in one of these sets at least."""
        return _merge(sets, needed=1)

    @classmethod
    def intersection_of(cls, sets: Sequence[ValueSet]) -> ValueSet:
        """The values that are in each of these sets; every value, of no sets."""
        return _merge(sets, needed=len(sets)) if sets else cls.everything()

    def intersect(self, other: ValueSet) -> ValueSet:
        return _merge((self, other), needed=2)

    def union(self, other: ValueSet) -> ValueSet:
        return _merge((self, other), needed=1)

    def complement(self) -> ValueSet:
        cuts = list(_endpoints(self))
        flipped = cuts[1:] if cuts and cuts[0] == _BOTTOM else [_BOTTOM, *cuts]
        flipped = flipped[:-1] if flipped and flipped[-1] == _TOP else [*flipped, _TOP]
        return ValueSet(_intervals(flipped, _bounds(self)))

    def points(self) -> tuple[Any, ...] | None:
        """The values, in order, if there are only single ones; None if there is a range."""
        return tuple(interval.low for interval in self.intervals) if all(i.is_point for i in self.intervals) else None

    def contains(self, value: Any) -> bool:
        return self.overlaps(value, value)

    def overlaps(self, low: Any, high: Any) -> bool:
        """Some value of [low, high] is in the set; None is unbounded. A False rules such a range of values out."""
        start, end = _low_endpoint(low, True), _high_endpoint(high, True)
        cuts = _endpoints(self)
        return any(max(start, first) < min(end, last) for first, last in zip(cuts, cuts, strict=True))

    def covers(self, low: Any, high: Any) -> bool:
        """Every value of [low, high] is in the set; None is unbounded."""
        asked = ValueSet.between(low, high, True, True)
        return self.intersect(asked) == asked


def sort_key(value: Any) -> Any:
    """A key that orders and equates values of one type as Spark does."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)  # -0.0 == 0.0 in Python too, and hashes alike
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(
            UTC
        )  # two datetimes of one zone compare by the clock on the wall: wrong when it is put back
    return value


def _compared(operator: str, value: Any) -> ValueSet:
    match operator:
        case "=" | "<=>":
            return ValueSet.points_at([value])
        case "<>":
            return ValueSet.points_at([value]).complement()
        case "<" | "<=":
            return ValueSet.between(high=value, high_closed=operator == "<=")
        case _:
            return ValueSet.between(low=value, low_closed=operator == ">=")


def _starting_with(prefix: str | bytes) -> ValueSet:
    return ValueSet.between(prefix or None, prefix_end(prefix), low_closed=True)


def _like(text: str, escape: str) -> ValueSet | None:
    try:
        pattern = LikePattern.parse(text, escape)
    except ValueError:
        return None
    match pattern.shape:
        case (_,):
            return ValueSet.points_at(pattern.texts)
        case (_, False):
            return _starting_with(pattern.texts[0])
        case _:
            return None


def _comparable(term: Term, value: Any, data_type: pa.DataType) -> bool:
    return (
        value is not None
        and not isinstance(term, Literal)
        and term.type == data_type
        and not pa.types.is_nested(data_type)
    )


def _low_endpoint(value: Any, closed: bool) -> Endpoint:
    return _BOTTOM if value is None else (1, sort_key(value), 0 if closed else 1)


def _high_endpoint(value: Any, closed: bool) -> Endpoint:
    if value is None or (closed and sort_key(value) == _AT_NAN[1]):
        return _TOP  # up to NaN is up to the end
    return (1, sort_key(value), 1 if closed else 0)


def _endpoints(domain: ValueSet) -> Iterator[Endpoint]:
    for interval in domain.intervals:
        yield _low_endpoint(interval.low, interval.low_closed)
        yield _high_endpoint(interval.high, interval.high_closed)


def _bounds(*domains: ValueSet) -> list[Any]:
    return [value for domain in domains for interval in domain.intervals for value in (interval.low, interval.high)]


def _merge(sets: Sequence[ValueSet], needed: int) -> ValueSet:
    """Where at least ``needed`` of the sets hold: a sweep over the cuts of all, those of each sorted already."""
    if len(sets) == needed == 1:
        return sets[0]
    steps = [(cut, 1 if i % 2 == 0 else -1) for domain in sets for i, cut in enumerate(_endpoints(domain))]
    steps.sort()  # merges two sorted runs in linear time; at one cut, what ends comes before what begins
    cuts: list[Endpoint] = []
    depth = 0
    for cut, step in steps:
        before, depth = depth >= needed, depth + step
        if before != (depth >= needed):
            if cuts and cuts[-1] == cut:
                cuts.pop()  # ended and begun again at the same place, or empty
            else:
                cuts.append(cut)
    return ValueSet(_intervals(cuts, _bounds(*sets)))


def _intervals(cuts: Sequence[Endpoint], bounds: Iterable[Any]) -> tuple[Interval, ...]:
    """Cuts, taken in pairs, as intervals; ``bounds`` holds the values that the cuts were made from."""
    values = {sort_key(value): _canonical_float(value) for value in bounds if value is not None}
    return tuple(
        Interval(
            None if low == _BOTTOM else values[low[1]],
            None if high == _TOP else values[high[1]],
            low != _BOTTOM and low[2] == 0,
            high != _TOP and high[2] == 1,
        )
        if low != _AT_NAN
        else Interval.point(math.nan)
        for low, high in zip(cuts[::2], cuts[1::2], strict=True)
        if low < high and low != (*_AT_NAN[:2], 1)  # nothing is above NaN
    )


def _canonical_float(value: Any) -> Any:
    """One object for all NaNs, so that equal sets compare equal; 0.0 for -0.0."""
    if isinstance(value, float):
        return math.nan if math.isnan(value) else value + 0.0
    return value
