"""Derivation from group keys: which terms and conditions can be computed from the keys of stored states alone.

``GROUP BY upper(city)`` is answered by states by city, ``date_trunc('month', at)`` by states by day, and conditions on
those decide whole groups. Pure functions of structure. What states by day can and cannot derive:

>>> from fuse_index.expressions.to_sql import predicate_sql, term_sql
>>> from fuse_index.predicate import Column
>>> from datetime import UTC
>>> at = Column(("at",), _TIMESTAMP)
>>> def by(unit):
...     return Call("date_trunc", (Literal(unit, pa.string()), at))
>>> days = GroupKeys((by("day"),), Context(time_zone="UTC"))
>>> [days.can_derive(by(unit)) for unit in ("year", "week", "day", "hour")]
[True, True, True, False]
>>> term_sql(days.rewrite(by("year")))
"date_trunc('year', date_trunc('day', at))"

A comparison with the first moment of a day is one of days, since no day lies on both sides of it:

>>> may = Compare(">=", at, Literal(datetime(2024, 5, 1, tzinfo=UTC), _TIMESTAMP))
>>> days.can_decide(may), predicate_sql(days.rewrite(may))
(True, "date_trunc('day', at) >= TIMESTAMP'2024-05-01 00:00:00Z'")
>>> days.can_decide(replace(may, right=Literal(datetime(2024, 5, 1, 12, tzinfo=UTC), _TIMESTAMP)))
False
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from fuse_index.expressions import datetimes
from fuse_index.expressions.errors import NotReproducible
from fuse_index.expressions.scalar_functions import DATE_TRUNC, date_trunc
from fuse_index.expressions.traversal import columns_of, leaf_terms, predicate_leaves, references, substitute
from fuse_index.predicate import (
    Call,
    Cast,
    Compare,
    Context,
    In,
    IsNull,
    Literal,
    Not,
    Opaque,
    Operator,
    Predicate,
    StartsWith,
    Term,
)

_TRUNCATION_UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "month", "quarter", "year")
"""Units that are whole ones of those before them; a week is days, but no month is weeks."""
_TIMESTAMP = pa.timestamp("us", "UTC")


def is_implied_by(part: Predicate, known: Sequence[Predicate]) -> bool:
    """Return whether ``part`` is TRUE where all of ``known`` are.

    So it is if it is one of them, or IS NOT NULL of what one of them compares.
    """
    if part in known or not isinstance(part, Not) or not isinstance(part.term, IsNull):
        return part in known
    tested = part.term.term
    never_true_on_null = [
        leaf
        for leaf in known
        if isinstance(leaf, Compare | In | StartsWith) and getattr(leaf, "operator", "=") != "<=>"
    ]
    return any(tested in leaf_terms(leaf) for leaf in never_true_on_null)


@dataclass(frozen=True)
class GroupKeys:
    """The terms that states are grouped by, in a session."""

    terms: tuple[Term, ...]
    context: Context

    def can_decide(self, predicate: Predicate) -> bool:
        """Return whether the keys alone say which rows a condition is true on."""
        leaves = predicate_leaves(self.rewrite(predicate))
        if any(isinstance(leaf, Opaque) or leaf in self.terms for leaf in leaves):
            return False
        return all(self.can_derive(term) for leaf in leaves for term in leaf_terms(leaf))

    def can_derive(self, term: Term) -> bool:
        """Return whether a term can be computed from the keys.

        A group of floats shows one spelling of many (-0.0 for 0.0), so from such a key only itself can be derived.
        """
        rewritten = self.rewrite(term)
        if any(True for _ in columns_of(substitute(rewritten, {key: Literal(None, key.type) for key in self.terms}))):
            return False
        return not any(
            rewritten != key and references(rewritten, key) for key in self.terms if is_.is_floating(key.type)
        )

    def rewrite(self, node: Any) -> Any:
        """Return the same predicate or term, made of keys where they are finer.

        Months are made of days, dates of hours, and comparisons of instants of comparisons of whole days.
        """
        if node in self.terms or isinstance(node, Literal):
            return node
        if isinstance(node, tuple):
            return tuple(map(self.rewrite, node))
        if not is_dataclass(node) or isinstance(node, type):
            return node
        match node:
            case Call(name, (Literal(unit) as unit_literal, instant)) if (
                name == DATE_TRUNC and (finer := self._finer_key(unit, instant)) is not None
            ):
                return replace(node, arguments=(unit_literal, finer))
            case Cast(instant, kind) if kind == pa.date32() and (finer := self._finer_key("day", instant)) is not None:
                return replace(node, term=finer)
            case Compare(">=" | "<" | ">" | "<=", instant, Literal(datetime())) if (
                bound := self._truncated_comparison(node)
            ) is not None:
                return bound
            case IsNull(instant) if truncated_keys := [key for key in self.terms if _truncation_unit(key, instant)]:
                return IsNull(truncated_keys[0])
        return replace(node, **{field.name: self.rewrite(getattr(node, field.name)) for field in fields(node)})

    def _finer_key(self, unit: str, instant: Term) -> Term | None:
        """Find a key that truncates this instant to parts of the unit."""
        finer_units = _TRUNCATION_UNITS[: _TRUNCATION_UNITS.index("day" if unit == "week" else unit) + 1]
        return next(
            (key for key in self.terms if isinstance(key, Call) and _truncation_unit(key, instant) in finer_units), None
        )

    def _truncated_comparison(self, node: Compare) -> Compare | None:
        """Turn a comparison of an instant into one of a key, if it is with the first moment of the key's unit."""
        assert isinstance(node.right, Literal)
        try:
            first = node.right.value + (datetimes.MICROSECOND if node.operator in (">", "<=") else timedelta())
        except OverflowError:
            return None
        operator: Operator = ">=" if node.operator in (">", ">=") else "<"
        for key in self.terms:
            if (unit := _truncation_unit(key, node.left)) is not None and self._is_start_of(unit, first):
                time_zone = datetimes.parse_time_zone(self.context.time_zone)
                return Compare(
                    operator,
                    key,
                    Literal(first.astimezone(time_zone).date() if key.type == pa.date32() else first, key.type),
                )
        return None

    def _is_start_of(self, unit: str, moment: datetime) -> bool:
        moments = pa.array([moment], _TIMESTAMP)
        try:
            return bool(date_trunc(unit, moments, datetimes.parse_time_zone(self.context.time_zone)) == moments)
        except NotReproducible:
            return False


def _truncation_unit(key: Term, instant: Term) -> str | None:
    """Name the unit to which the key truncates this instant; None if it is something else."""
    match key:
        case Call(name, (Literal(unit), of)) if name == DATE_TRUNC and of == instant:
            return str(unit)
        case Cast(of, kind) if kind == pa.date32() and of == instant and of.type == _TIMESTAMP:
            return "day"
    return None
