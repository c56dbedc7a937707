"""What is computed of terms in the Spark SQL that people type: operators, CASE, elements, intervals."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pyarrow as pa
from sqlglot import exp

from fuse_index.expressions import coercion
from fuse_index.expressions.arithmetic import arithmetic_call, bit_inversion, negation
from fuse_index.expressions.errors import AnalysisError, UnsupportedExpression
from fuse_index.expressions.functions.arrays import element_call
from fuse_index.expressions.functions.intervals import TimeInterval
from fuse_index.expressions.functions.library import LIBRARY
from fuse_index.predicate import Column, Literal, Term
from fuse_index.sql.text.parser_calls import SqlCallReader
from fuse_index.sql.text.parser_terms import ARITHMETIC_NODES, COMPARISON_OPERATORS, SqlNode, has_unknown_parts

_MAX_LEVELS = 100
"""Operators within each other, chains of them included: each costs some of Python's 1,000 calls."""
_DATE = pa.date32()
_CONDITION_NODES: tuple[type[Any], ...] = (
    exp.And,
    exp.Or,
    exp.Not,
    exp.In,
    exp.Is,
    exp.Between,
    exp.Like,
    exp.ILike,
    exp.Escape,
    exp.RegexpLike,
    exp.NullSafeNEQ,
    *COMPARISON_OPERATORS,
)

_BORDERS = (exp.Paren, exp.Anonymous, exp.If, exp.Case)
"""What a condition within a term must be directly in: beside operators, Spark and the parser group it differently."""
_BIT_NODES = (exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseLeftShift, exp.BitwiseRightShift)
"""Operators that Spark groups by levels, and the parser from left to right."""


class SqlValueReader(SqlCallReader):
    """Reads terms, and what is computed of them."""

    def term(self, node: SqlNode) -> Term:
        if has_unknown_parts(node):
            return super().term(node)
        match node:
            case exp.Add() | exp.Sub() if (moved := self._moved(node)) is not None:
                return moved
            case _ if type(node) in ARITHMETIC_NODES:
                return self._arithmetic(node)
            case exp.Neg() if not isinstance(node.this, exp.Literal):
                return negation(self.term(node.this))
            case exp.BitwiseNot():
                return bit_inversion(self.term(node.this))
            case exp.Case():
                return self._case(node)
            case exp.Bracket():
                return self._element(node)
            case exp.Interval():
                raise UnsupportedExpression("an interval that is not added to a day or an instant")
            case _ if isinstance(node, _CONDITION_NODES):
                above = (
                    node.parent.parent
                    if isinstance(node, exp.Is) and isinstance(node.parent, exp.Paren)
                    else node.parent
                )
                if not isinstance(above, _BORDERS):  # the parser puts IS in parentheses that nobody wrote
                    raise UnsupportedExpression(f"{self.original_text(node)} within more: put parentheses around it")
                return self.truth_of(node)
            case _:
                return super().term(node)

    def check_levels(self, node: SqlNode) -> None:
        """Raise AnalysisError for operators that are nested too deep."""
        deepest, waiting = 0, [(node, 1)]
        while waiting:
            each, level = waiting.pop()
            deepest = max(deepest, level)
            waiting += [(part, level + 1) for part in each.iter_expressions()]
        if deepest > _MAX_LEVELS:
            raise AnalysisError(
                f"it is nested {deepest:,} levels deep, and {_MAX_LEVELS} are the bound: write it flatter"
            )

    def _arithmetic(self, node: SqlNode) -> Term:
        for part in (node.this, node.expression):
            if isinstance(part, _BIT_NODES) and isinstance(node, _BIT_NODES) and type(part) is not type(node):
                raise UnsupportedExpression(f"{self.original_text(node)}: put parentheses around its parts")
        left, right = self.term(node.this), self.term(node.expression)
        operator = ARITHMETIC_NODES[type(node)]
        if operator in ("+", "-") and _DATE in (left.type, right.type):
            return self._days(operator, left, right)
        if operator != "||" and (pa.types.is_decimal(left.type) or pa.types.is_decimal(right.type)):
            left, right = self._as_declared(left, node.this), self._as_declared(right, node.expression)
        return arithmetic_call(operator, left, right, self.context)

    def _as_declared(self, term: Term, node: SqlNode) -> Term:
        """Beside a decimal, an integer constant as wide as its type, unless it is written as a number."""
        while isinstance(node, exp.Paren | exp.Neg):
            node = node.this
        if isinstance(node, exp.Literal) or not isinstance(term, Literal) or term.type not in coercion.INTEGER_TYPES:
            return term
        return coercion.coerce_term(term, coercion.as_decimal(term.type), self.context)

    def _days(self, operator: str, left: Term, right: Term) -> Term:
        """A day and so many days."""
        if left.type == _DATE and right.type in coercion.INTEGER_TYPES[:3]:
            return LIBRARY["date_add" if operator == "+" else "date_sub"].build([left, right], self.context)
        if operator == "+" and right.type == _DATE and left.type in coercion.INTEGER_TYPES[:3]:
            return LIBRARY["date_add"].build([right, left], self.context)
        raise UnsupportedExpression("the distance of two days as an interval: use datediff()")

    # --- intervals ------------------------------------------------------------------------------------------------

    def _moved(self, node: SqlNode) -> Term | None:
        """A day or an instant and an interval; None where the node has no interval on either side."""
        interval = self._interval(node.expression)
        if interval is not None:
            start = self.term(node.this)
            return (-interval if isinstance(node, exp.Sub) else interval).after(start, self.context)
        if isinstance(node, exp.Add) and (interval := self._interval(node.this)) is not None:
            return interval.after(self.term(node.expression), self.context)
        return None

    def _interval(self, node: SqlNode) -> TimeInterval | None:
        """The interval that a node is; None for any other node."""
        match node:
            case exp.Paren():
                return self._interval(node.this)
            case exp.Neg() if (inner := self._interval(node.this)) is not None:
                return -inner
            case exp.Interval(args={"unit": exp.Var() as unit}):
                return self._counted_interval(node.this, unit.name)
            case exp.Add():  # INTERVAL 1 DAY 2 HOURS
                left, right = self._interval(node.this), self._interval(node.expression)
                return left + right if left is not None and right is not None else None
            case exp.Interval():
                raise UnsupportedExpression(f"{self.original_text(node)}: say INTERVAL, a number and one unit")
        return None

    def _counted_interval(self, node: SqlNode, unit: str) -> TimeInterval:
        text = node.name if isinstance(node, exp.Literal) else ""
        mark = self.tokens.find_mark(text)
        try:
            count = Fraction(str(mark.literal.value) if mark else text)
        except (ValueError, ZeroDivisionError):
            raise UnsupportedExpression(f"an interval of {self.original_text(node)}: say a number") from None
        whole = TimeInterval.of(1, unit)
        months, microseconds = count * whole.months, count * whole.microseconds
        if count.denominator != 1 and (whole.months or unit.upper().removesuffix("S") != "SECOND"):
            raise UnsupportedExpression(f"an interval of {text} {unit}: only seconds have a fraction")
        if months.denominator != 1 or microseconds.denominator != 1:
            raise UnsupportedExpression(f"an interval of {text} {unit}: a microsecond is the least")
        return TimeInterval(int(months), int(microseconds))

    # --- CASE and elements ----------------------------------------------------------------------------------------

    def _case(self, node: exp.Case) -> Term:
        """Also ``CASE value WHEN other``, which compares."""
        conditions = [
            exp.EQ(this=node.this, expression=when.this) if node.this else when.this for when in node.args["ifs"]
        ]
        values = [self.term(when.args["true"]) for when in node.args["ifs"]]
        default = node.args.get("default")
        otherwise = Literal(None, pa.null()) if default is None else self.term(default)
        return self.of_one_type([self.condition(condition) for condition in conditions], [*values, otherwise])

    def _element(self, node: exp.Bracket) -> Term:
        """``tags[0]``, ``props['key']``, and a field of a struct by its name."""
        if len(node.expressions) != 1:
            raise UnsupportedExpression(self.original_text(node))
        whole, key = self.term(node.this), self.folded(node.expressions[0])
        if not pa.types.is_struct(whole.type):
            return element_call("[]", whole, key, self.context)
        if not isinstance(whole, Column) or not isinstance(key, Literal) or not isinstance(key.value, str):
            raise UnsupportedExpression(self.original_text(node))
        field = self.schema.find([*whole.path, key.value], self.context.case_sensitive)
        return Column((*whole.path, field.name), field.type)
