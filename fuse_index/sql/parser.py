"""The Spark SQL that people type, as predicates.

What is well-formed but not understood becomes Opaque, which never prunes; a column that does not exist, a literal that
is none, a comparison that Spark refuses, and bad syntax raise WhereError, which shows the place.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import pyarrow as pa
import sqlglot
from sqlglot import exp

from fuse_index.aggregates.state import Aggregate, Aggregation
from fuse_index.errors import WhereError
from fuse_index.expressions import coercion
from fuse_index.expressions.constant_folding import fold_term
from fuse_index.expressions.depth import check_condition_depth
from fuse_index.expressions.errors import AnalysisError, NotReproducible, UnsupportedAggregate, UnsupportedExpression
from fuse_index.expressions.like import LikePattern
from fuse_index.expressions.types import spark_type_name
from fuse_index.predicate import (
    And,
    Call,
    Compare,
    Contains,
    Context,
    EndsWith,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    Opaque,
    Operator,
    Or,
    Predicate,
    StartsWith,
    Term,
)
from fuse_index.reasons import Reason
from fuse_index.sql.dialect import SPARK_CONDITIONS
from fuse_index.sql.parser_terms import COMPARISON_OPERATORS, SqlNode, has_unknown_parts
from fuse_index.sql.parser_values import SqlValueReader
from fuse_index.sql.tokenizer import TokenizedSql
from fuse_storage import Schema

if TYPE_CHECKING:
    from fuse_index.expressions.function import Function

_TRUE = Literal(True, pa.bool_())
_SPARK_ONLY_CLAUSES = {"OVER": "windows", "FILTER": "aggregates with a FILTER", "SELECT": "subqueries"}
_SPARK_ONLY_CLAUSE = re.compile(rf"\b({'|'.join(_SPARK_ONLY_CLAUSES)})\b", re.IGNORECASE)


_NESTING = re.compile(r"'[^']*'|`[^`]*`|\bNOT\b|\w+|[!~(\[)\]-]", re.IGNORECASE)
_OPENING = ("(", "[", "CASE")
_OPENING_OF: Mapping[str, Sequence[str]] = {")": "([", "]": "([", "END": ("CASE",)}


def _text_depth(text: str) -> int:
    """How deep a text is nested, counted without going down: parentheses, CASE, and NOT and signs after each other."""
    levels, opened, run, deepest = [0], [""], 0, 0
    for match in _NESTING.finditer(text):
        token = match[0].upper()
        run = run + 1 if token in ("NOT", "!", "~", "-") else run if token in _OPENING else 0
        if token in _OPENING:
            levels.append(levels[-1] + run + 1)
            opened.append(token)
            run = 0
        elif opened[-1] in _OPENING_OF.get(token, ()):
            levels.pop()
            opened.pop()
        deepest = max(deepest, levels[-1] + run)
    return deepest


class SqlReader(SqlValueReader):
    """Reads one text: a predicate, a term or an aggregate."""

    @classmethod
    def of(
        cls, text: str, schema: Schema, context: Context, functions: Mapping[str, Function], arithmetic: bool
    ) -> SqlReader:
        """A reader of this text; ``functions`` by their names, as they are and in lower case. Raises WhereError."""
        return cls(TokenizedSql.tokenize(text), schema, context, functions, arithmetic)

    def read_predicate(self) -> Predicate:
        """The predicate that the text is, with the casts that Spark adds. Raises WhereError."""
        return self.predicate(self.tree("a predicate"))

    def read_term(self) -> Term:
        """The term that the text is. Raises WhereError."""
        try:
            tree = self.tree("a term")
            self.check_levels(tree)
            return self.term(tree)
        except (UnsupportedExpression, NotReproducible, AnalysisError) as refusal:
            raise self.tokens.error(f"not understood: {refusal}", *self.tokens.full_span) from None

    def read_aggregate(self) -> Aggregate:
        """The aggregate that the text is. Raises WhereError."""
        try:
            tree = self.tree("an aggregate")
            self.check_levels(tree)
            aggregate = self.aggregate(tree)
            Aggregation((), (aggregate,)).check()
            return aggregate
        except (UnsupportedExpression, NotReproducible, UnsupportedAggregate, AnalysisError) as refusal:
            raise self.tokens.error(f"no aggregate that is known here: {refusal}", *self.tokens.full_span) from None

    # --- the tree ---------------------------------------------------------------------------------------------

    def tree(self, what: str) -> SqlNode:
        if not self.tokens.safe.strip():
            empty = (
                "an empty predicate: write a condition, such as id = 1, or TRUE for every row"
                if what == "a predicate"
                else f"an empty text is not {what}"
            )
            raise self.tokens.error(empty, 0, 1)
        check_condition_depth(_text_depth(self.tokens.safe))
        try:
            trees = SPARK_CONDITIONS.parse(self.tokens.safe)
        except sqlglot.errors.ParseError as refusal:
            raise self._syntax(refusal) from None
        except sqlglot.errors.SqlglotError as refusal:
            raise self.tokens.error(f"not understood: {refusal}", *self.tokens.full_span) from None
        tree = trees[0] if len(trees) == 1 else None
        if not isinstance(tree, exp.Condition) or isinstance(tree, exp.Query):
            where = "WHERE" if what == "a predicate" else "SELECT, without a name"
            raise self.tokens.error(
                f"{what} is one expression, as it stands after {where}{self._beyond()}", *self.tokens.full_span
            )
        return tree

    def _syntax(self, refusal: sqlglot.errors.ParseError) -> WhereError:
        place = refusal.errors[0] if refusal.errors else {}
        lines = self.tokens.safe.split("\n")
        above = sum(len(line) + 1 for line in lines[: (place.get("line") or 1) - 1])
        end = above + (place.get("col") or len(lines[0]))
        start, stop = self.tokens.original_span(end - len(place.get("highlight") or " "))
        return self.tokens.error(
            f"cannot be read near {self.tokens.original[start:stop]!r}{self._beyond()}", start, stop
        )

    def _beyond(self) -> str:
        """What the text may be about that no expression here is."""
        found = _SPARK_ONLY_CLAUSE.search(self.tokens.safe)
        return f": {_SPARK_ONLY_CLAUSES[found[1].upper()]} are known to Spark alone" if found else ""

    def predicate(self, node: SqlNode) -> Predicate:
        if has_unknown_parts(node):
            return self._opaque(node, Reason.LEAF_UNSUPPORTED)
        match node:
            case exp.Paren():
                return self.predicate(node.this)
            case exp.And():
                return And(tuple(self.predicate(part) for part in node.flatten()))
            case exp.Or():
                return Or(tuple(self.predicate(part) for part in node.flatten()))
            case exp.Not():
                return Not(self.predicate(node.this))
        try:
            return self._leaf(node)
        except UnsupportedExpression as unknown:
            return self._opaque(node, unknown.reason)
        except NotReproducible:
            return self._opaque(node, Reason.LEAF_UNSUPPORTED)
        except AnalysisError as refusal:
            raise self.error_at(str(refusal), node) from None

    def _leaf(self, node: SqlNode) -> Predicate:
        match node:
            case exp.Between():
                low = self._compare(">=", node.this, node.args["low"])
                high = self._compare("<=", node.this, node.args["high"])
                return And((low, high))
            case exp.NullSafeNEQ():
                return Not(self._compare("<=>", node.this, node.expression))
            case exp.Is():
                return self._is(node)
            case exp.In():
                return self._in(node)
            case exp.Escape() if isinstance(node.this, exp.Like) and not has_unknown_parts(node.this):
                return self._like(node.this, self.constant(node.expression, "ESCAPE"))
            case exp.Like():
                return self._like(node, "\\")
            case exp.Anonymous() if (found := self._boolean_function(node)) is not None:
                return found
            case exp.Null():
                return Compare("=", Literal(None, pa.bool_()), _TRUE)
            case _ if type(node) in COMPARISON_OPERATORS:
                return self._compare(COMPARISON_OPERATORS[type(node)], node.this, node.expression)
            case _:
                return self._truth(node)

    def _truth(self, node: SqlNode) -> Predicate:
        """A term that is itself a condition: a boolean column, a literal, a call."""
        term = self.term(node)
        if isinstance(term, Call) and term.type == pa.bool_():
            return term
        if term.type != pa.bool_():
            raise AnalysisError(f"a predicate is boolean, and this is {spark_type_name(term.type)}")
        return Compare("=", term, _TRUE)

    def _compare(self, operator: Operator, left: SqlNode, right: SqlNode) -> Compare:
        sides = coercion.coerce_comparison(operator, self.term(left), self.term(right), self.context)
        if pa.types.is_nested(sides[0].type):
            raise UnsupportedExpression(f"comparing values of type {spark_type_name(sides[0].type)}")
        return Compare(operator, *sides)

    def _is(self, node: exp.Is) -> Predicate:
        if isinstance(node.expression, exp.Null):
            return IsNull(self.term(node.this))
        if isinstance(node.expression, exp.Boolean):
            term = self.term(node.this)
            if term.type == pa.bool_():
                return Compare("<=>", term, Literal(bool(node.expression.this), pa.bool_()))
        raise UnsupportedExpression("IS with anything but NULL, TRUE or FALSE")

    def _in(self, node: exp.In) -> Predicate:
        values = self._listed(node.expressions) or [self.folded(value) for value in node.expressions]
        if not values or not all(isinstance(value, Literal) for value in values):
            raise UnsupportedExpression("IN with anything but literals")
        return In(
            *coercion.coerce_in_list(
                self.term(node.this), [value for value in values if isinstance(value, Literal)], self.context
            )
        )

    def _listed(self, nodes: list[SqlNode]) -> Sequence[Term]:
        """The literals of a long list, for which there is one mark."""
        is_mark = len(nodes) == 1 and isinstance(nodes[0], exp.Literal) and nodes[0].is_string
        mark = self.tokens.find_mark(nodes[0].this) if is_mark else None
        return mark.listed if mark else ()

    def _like(self, node: SqlNode, escape: str) -> Predicate:
        text = self.text(node.this)
        pattern = fold_term(self.text(node.expression), self.context, self.functions)
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
            case ("isnull", [a]):
                return IsNull(self.term(a))
            case ("isnotnull", [a]):
                return Not(IsNull(self.term(a)))
            case ("isnan", [a]) if pa.types.is_floating((term := self.term(a)).type):
                return Compare("<=>", term, Literal(math.nan, term.type))
            case _:
                return None

    def _opaque(self, node: SqlNode, reason: Reason) -> Opaque:
        if not node.find(exp.Lambda, exp.Query):
            columns = (column for column in node.find_all(exp.Column) if not column.find_ancestor(exp.DataType))
            for column in columns:
                with suppress(UnsupportedExpression):
                    self.column(column)
        return Opaque(self.original_text(node), reason)
