"""What can be told from the keys of stored states alone: conditions that decide a whole group, and terms made of keys.

``GROUP BY upper(city)`` is answered by states by city, ``date_trunc('month', at)`` by states by day. Pure functions of
structure.
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

TRUNCATION_UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day", "month", "quarter", "year")
"""Each is whole ones of those before it; a week is days, but no month is weeks."""
_TIMESTAMP = pa.timestamp("us", "UTC")


def is_implied_by(part: Predicate, known: Sequence[Predicate]) -> bool:
    """Whether it is TRUE where all these are: one of them, or IS NOT NULL of what one of them compares."""
    if part in known or not isinstance(part, Not) or not isinstance(part.term, IsNull):
        return part in known
    tested = part.term.term
    strict = [
        leaf
        for leaf in known
        if isinstance(leaf, Compare | In | StartsWith) and getattr(leaf, "operator", "=") != "<=>"
    ]
    return any(tested in leaf_terms(leaf) for leaf in strict)


@dataclass(frozen=True)
class GroupKeys:
    """What states are grouped by, in a session."""

    terms: tuple[Term, ...]
    context: Context

    def can_decide(self, predicate: Predicate) -> bool:
        """Whether they alone say which rows a condition is true on."""
        found = predicate_leaves(self.rewrite(predicate))
        if any(isinstance(leaf, Opaque) or leaf in self.terms for leaf in found):
            return False
        return all(self.can_derive(term) for leaf in found for term in leaf_terms(leaf))

    def can_derive(self, term: Term) -> bool:
        """Whether it can be made of them. Of floats, a key shows one spelling of many: only itself can be told."""
        made = self.rewrite(term)
        if any(True for _ in columns_of(substitute(made, {key: Literal(None, key.type) for key in self.terms}))):
            return False
        return not any(made != key and references(made, key) for key in self.terms if is_.is_floating(key.type))

    def rewrite(self, node: Any) -> Any:
        """The same predicate or term, made of keys where they are finer: months of days, dates of hours, and times by
        whole days.
        """
        if node in self.terms or isinstance(node, Literal):
            return node
        if isinstance(node, tuple):
            return tuple(map(self.rewrite, node))
        if not is_dataclass(node) or isinstance(node, type):
            return node
        match node:
            case Call(name, (Literal(unit) as cut, instant)) if (
                name == DATE_TRUNC and (finer := self._finer(unit, instant)) is not None
            ):
                return replace(node, arguments=(cut, finer))
            case Cast(instant, kind) if kind == pa.date32() and (finer := self._finer("day", instant)) is not None:
                return replace(node, term=finer)
            case Compare(">=" | "<" | ">" | "<=", instant, Literal(datetime())) if (
                bound := self._truncated_comparison(node)
            ) is not None:
                return bound
            case IsNull(instant) if cuts := [key for key in self.terms if _truncation_unit(key, instant)]:
                return IsNull(cuts[0])
        return replace(node, **{field.name: self.rewrite(getattr(node, field.name)) for field in fields(node)})

    def _finer(self, unit: str, instant: Term) -> Term | None:
        """The key that cuts this instant to parts of the unit."""
        parts = TRUNCATION_UNITS[: TRUNCATION_UNITS.index("day" if unit == "week" else unit) + 1]
        return next(
            (key for key in self.terms if isinstance(key, Call) and _truncation_unit(key, instant) in parts), None
        )

    def _truncated_comparison(self, node: Compare) -> Compare | None:
        """The comparison of an instant as one of a key, if it is with the first moment of what that is cut to."""
        assert isinstance(node.right, Literal)
        try:
            first = node.right.value + (datetimes.MICROSECOND if node.operator in (">", "<=") else timedelta())
        except OverflowError:
            return None
        operator: Operator = ">=" if node.operator in (">", ">=") else "<"
        for key in self.terms:
            if (unit := _truncation_unit(key, node.left)) is not None and self._is_start_of(unit, first):
                place = datetimes.parse_time_zone(self.context.time_zone)
                return Compare(
                    operator,
                    key,
                    Literal(first.astimezone(place).date() if key.type == pa.date32() else first, key.type),
                )
        return None

    def _is_start_of(self, unit: str, moment: datetime) -> bool:
        found = pa.array([moment], _TIMESTAMP)
        try:
            return bool(date_trunc(unit, found, datetimes.parse_time_zone(self.context.time_zone)) == found)
        except NotReproducible:
            return False


def _truncation_unit(key: Term, instant: Term) -> str | None:
    """To what unit the key cuts this instant; None if it is something else."""
    match key:
        case Call(name, (Literal(unit), of)) if name == DATE_TRUNC and of == instant:
            return str(unit)
        case Cast(of, kind) if kind == pa.date32() and of == instant and of.type == _TIMESTAMP:
            return "day"
    return None
