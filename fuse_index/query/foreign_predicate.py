"""Conditions of other engines as predicates of ours that are true wherever theirs are, so that indexes can be asked.

What is found so is filtered again by whoever asked, with its own meaning; so a part that has no equivalent here, or
might mean something else, is left out of a conjunction. Under a negation nothing can be left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from fuse_index.expressions.types import is_compound
from fuse_index.predicate import And, Column, Compare, In, IsNull, Literal, Not, Operator, Or, Predicate, StartsWith

_FLIPPED: dict[Operator, Operator] = {"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
Translator = Callable[[bool], "Predicate | None"]
"""Makes a predicate of a part: given True, one that means exactly the same; None if there is none."""


@dataclass(frozen=True)
class ForeignPredicates:
    """Makes predicates on columns of ``schema``. Each method gives None for what has no equivalent."""

    schema: pa.Schema

    def column(self, path: Sequence[str]) -> Column | None:
        """The column at a path, into structs."""
        if not path or self.schema.get_field_index(path[0]) < 0:
            return None
        data_type = self.schema.field(path[0]).type
        for name in path[1:]:
            if not is_.is_struct(data_type) or data_type.get_field_index(name) < 0:
                return None
            data_type = data_type.field(data_type.get_field_index(name)).type
        return None if is_compound(data_type) else Column(tuple(path), data_type)

    def compare(self, operator: Operator, left: Any, right: Any, exact: bool) -> Predicate | None:
        """A comparison of a column with a pa.Scalar, in either order."""
        if isinstance(left, pa.Scalar) and isinstance(right, Column):
            return self.compare(_FLIPPED[operator], right, left, exact)
        if not isinstance(left, Column) or not isinstance(right, pa.Scalar) or _may_differ(left, exact):
            return None
        literal = _literal(right, left.type)
        return None if literal is None else Compare(operator, left, literal)

    def is_in(self, column: Any, values: Sequence[pa.Scalar], exact: bool) -> Predicate | None:
        if not isinstance(column, Column) or _may_differ(column, exact):
            return None
        literals = [_literal(value, column.type) for value in values]
        known = tuple(literal for literal in literals if literal is not None)
        return In(column, known) if known and len(known) == len(literals) else None

    def is_null(self, column: Any) -> Predicate | None:
        return IsNull(column) if isinstance(column, Column) else None

    def is_true(self, column: Any) -> Predicate | None:
        """A column of booleans as a condition."""
        if not isinstance(column, Column) or column.type != pa.bool_():
            return None
        return Compare("=", column, Literal(True, column.type))

    def starts_with(self, column: Any, text: Any) -> Predicate | None:
        if not isinstance(column, Column) or column.type != pa.string() or not isinstance(text, str):
            return None
        return StartsWith(column, Literal(text, column.type))

    @staticmethod
    def all_of(parts: Sequence[Translator], exact: bool) -> Predicate | None:
        found = [part(exact) for part in parts]
        known = tuple(each for each in found if each is not None)
        if not known or (exact and len(known) < len(found)):
            return None
        return And(known) if len(known) > 1 else known[0]

    @staticmethod
    def any_of(parts: Sequence[Translator], exact: bool) -> Predicate | None:
        found = [part(exact) for part in parts]
        known = tuple(each for each in found if each is not None)
        return Or(known) if known and len(known) == len(found) else None

    @staticmethod
    def none_of(part: Translator) -> Predicate | None:
        found = part(True)
        return None if found is None else Not(found)


def _may_differ(column: Column, exact: bool) -> bool:
    """Whether NaN may be compared otherwise there than here, where it equals itself and is the greatest."""
    return exact and is_.is_floating(column.type)


def _literal(value: pa.Scalar, data_type: pa.DataType) -> Literal | None:
    """The value in the type of a column, if it is surely the same there; None if not, and for NULL and NaN."""
    if not value.is_valid:
        return None
    if value.type != data_type:
        if not _same_kind(value.type, data_type):
            return None
        try:
            cast = value.cast(data_type)
            if cast.cast(value.type) != value:
                return None
        except (pa.ArrowException, ValueError, OverflowError):
            return None
        value = cast
    plain = value.as_py()
    return None if isinstance(plain, float) and math.isnan(plain) else Literal(plain, data_type)


def _same_kind(given: pa.DataType, wanted: pa.DataType) -> bool:
    if is_.is_timestamp(given) and is_.is_timestamp(wanted):
        return (given.tz is None) == (wanted.tz is None)
    if is_.is_integer(given):
        return bool(is_.is_integer(wanted) or is_.is_float64(wanted))
    texts = (is_.is_string, is_.is_large_string, is_.is_string_view)
    binaries = (is_.is_binary, is_.is_large_binary, is_.is_binary_view)
    kinds = ((is_.is_floating,), (is_.is_decimal,), texts, binaries)
    return any(any(test(given) for test in kind) and any(test(wanted) for test in kind) for kind in kinds)
