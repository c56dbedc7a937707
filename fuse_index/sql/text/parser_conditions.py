"""Conditions of the Spark SQL that people type, leaf by leaf: comparisons, lists, patterns, tests of NULL.

``parser.py`` reads the AND, OR and NOT around them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa
from sqlglot import exp

from fuse_index.expressions import coercion
from fuse_index.expressions.constant_folding import fold_term
from fuse_index.expressions.errors import AnalysisError, UnsupportedExpression
from fuse_index.expressions.functions.library import LIBRARY
from fuse_index.expressions.like import LikePattern
from fuse_index.expressions.types import is_compound, spark_type_name
from fuse_index.predicate import (
    And,
    Call,
    Compare,
    Contains,
    EndsWith,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Operator,
    Or,
    Predicate,
    StartsWith,
    Term,
)
from fuse_index.sql.text.parser_terms import COMPARISON_OPERATORS, SqlNode, has_unknown_parts
from fuse_index.sql.text.parser_values import SqlValueReader
from fuse_storage import is_variant

_TRUE = Literal(True, pa.bool_())


class SqlConditionReader(SqlValueReader):
    """Reads leaves of conditions."""

    def leaf(self, node: SqlNode) -> Predicate:
        match node:
            case exp.Between():
                low = self._compare(">=", node.this, node.args["low"])
                high = self._compare("<=", node.this, node.args["high"])
                return And((low, high))
            case exp.NullSafeNEQ():
                return Not(self._compare("<=>", node.this, node.expression))
            case exp.Is():
                return self._is(node)
            case exp.In(this=exp.Tuple()):
                return self._rows_in(node)
            case exp.In():
                return self._in(node)
            case exp.Escape() if isinstance(node.this, exp.Like | exp.ILike) and not has_unknown_parts(node.this):
                return self._like(node.this, self.constant(node.expression, "ESCAPE"))
            case exp.Like() | exp.ILike():
                return self._like(node, "\\")
            case exp.RegexpLike():
                terms = [self.term(node.this), self.folded(node.expression)]
                return self._called(LIBRARY["rlike"].build(terms, self.context))
            case exp.Anonymous() if (found := self._boolean_function(node)) is not None:
                return found
            case exp.Null():
                return Compare("=", Literal(None, pa.bool_()), _TRUE)
            case _ if type(node) in COMPARISON_OPERATORS:
                return self._compare(COMPARISON_OPERATORS[type(node)], node.this, node.expression)
            case _:
                return self._called(self.term(node))

    def _called(self, term: Term) -> Predicate:
        """A term that is itself a condition: a boolean column, a literal, a call."""
        if isinstance(term, Call) and term.type == pa.bool_():
            return term
        if term.type != pa.bool_():
            raise AnalysisError(f"a predicate is boolean, and this is {spark_type_name(term.type)}")
        return Compare("=", term, _TRUE)

    def _compare(self, operator: Operator, left: SqlNode, right: SqlNode) -> Compare:
        return self._compared(operator, self.term(left), self.term(right))

    def _compared(self, operator: Operator, left: Term, right: Term) -> Compare:
        sides = coercion.coerce_comparison(operator, left, right, self.context)
        if is_compound(sides[0].type):
            raise UnsupportedExpression(f"comparing values of type {spark_type_name(sides[0].type)}")
        return Compare(operator, *sides)

    def _is(self, node: exp.Is) -> Predicate:
        if isinstance(node.expression, exp.Null):
            return IsNull(self.term(node.this))
        if isinstance(node.expression, exp.Boolean):
            term = self.term(node.this)
            if term.type == pa.bool_():
                return Compare("<=>", term, Literal(bool(node.expression.this), pa.bool_()))
        raise UnsupportedExpression("IS takes NULL, TRUE or FALSE: compare other values by =")

    # --- lists ----------------------------------------------------------------------------------------------------

    def _in(self, node: exp.In) -> Predicate:
        values = self._listed(node.expressions) or [self.folded(value) for value in node.expressions]
        if not values:
            raise UnsupportedExpression("IN takes a list: write IN (1, 2)")
        term = self.term(node.this)
        if is_compound(term.type) and not is_variant(term.type):
            raise UnsupportedExpression(f"comparing values of type {spark_type_name(term.type)}")
        literals = [value for value in values if isinstance(value, Literal)]
        if len(literals) == len(values):
            return In(*coercion.coerce_in_list(term, literals, self.context))
        term, listed = coercion.coerce_listed(term, values, self.context)
        return Or(tuple(Compare("=", term, value) for value in listed))

    def _listed(self, nodes: list[SqlNode]) -> Sequence[Term]:
        """The literals of a long list, for which there is one mark."""
        is_mark = len(nodes) == 1 and isinstance(nodes[0], exp.Literal) and nodes[0].is_string
        mark = self.tokens.find_mark(nodes[0].this) if is_mark else None
        return mark.listed if mark else ()

    def _rows_in(self, node: exp.In) -> Predicate:
        """``(a, b) IN ((1, 2), …)``: rows are compared field by field, and NULL equals NULL."""
        terms, rows = [self.term(part) for part in node.this.expressions], node.expressions
        if not all(isinstance(row, exp.Tuple) and len(row.expressions) == len(terms) for row in rows):
            raise UnsupportedExpression(f"rows of {len(terms)} in a list of anything but such rows")
        found = [
            And(
                tuple(
                    self._compared("<=>", term, self.folded(value))
                    for term, value in zip(terms, row.expressions, strict=True)
                )
            )
            for row in rows
        ]
        return found[0] if len(found) == 1 else Or(tuple(found))

    # --- patterns -------------------------------------------------------------------------------------------------

    def _like(self, node: SqlNode, escape: str) -> Predicate:
        """LIKE and ILIKE, also of ANY and ALL of some patterns."""
        quantifier = node.expression
        if not isinstance(quantifier, exp.Any | exp.All):
            return self._one_like(node, quantifier, escape)
        listed = quantifier.this
        patterns = listed.expressions if isinstance(listed, exp.Tuple) else [listed]
        found = tuple(self._one_like(node, pattern, escape) for pattern in patterns)
        if len(found) == 1:
            return found[0]
        return Or(found) if isinstance(quantifier, exp.Any) else And(found)

    def _one_like(self, node: SqlNode, pattern_node: SqlNode, escape: str) -> Predicate:
        text, pattern_text = self.text(node.this), self.text(pattern_node)
        if isinstance(node, exp.ILike):
            text, pattern_text = (Call("lower", (each,), pa.string()) for each in (text, pattern_text))
        pattern = fold_term(pattern_text, self.context, self.functions)
        if len(escape) != 1:
            raise AnalysisError(f"ESCAPE takes one character, not {escape!r}")
        if isinstance(pattern, Literal) and pattern.value is not None:
            try:
                LikePattern.parse(pattern.value, escape)
            except ValueError as refusal:
                raise AnalysisError(str(refusal)) from None
        found = Like(text, pattern, escape)
        return Not(found) if node.args.get("negate") else found

    def _boolean_function(self, node: exp.Anonymous) -> Predicate | None:
        name, arguments = self.call(node)
        match name, arguments:
            case ("startswith", [a, b]):
                return StartsWith(*self.texts(a, b))
            case ("endswith", [a, b]):
                return EndsWith(*self.texts(a, b))
            case ("contains", [a, b]):
                return Contains(*self.texts(a, b))
            case ("like", [a, b]):
                return self._like(exp.Like(this=a, expression=b), "\\")
            case ("ilike", [a, b]):
                return self._like(exp.ILike(this=a, expression=b), "\\")
            case ("isnull", [a]):
                return IsNull(self.term(a))
            case ("isnotnull", [a]):
                return Not(IsNull(self.term(a)))
            case ("equal_null", [a, b]):
                return self._compare("<=>", a, b)
            case ("isnan", [a]) if pa.types.is_floating((term := self.term(a)).type):
                return Compare("<=>", term, Literal(math.nan, term.type))
            case (("isnan" | "startswith" | "endswith" | "contains" | "isnull" | "isnotnull" | "equal_null"), _):
                raise UnsupportedExpression(f"{name}() of {len(arguments)} arguments of these types")
            case _:
                return None
