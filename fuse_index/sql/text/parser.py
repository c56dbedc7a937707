"""Texts of Spark SQL that people type, as predicates, terms and aggregates.

What is well-formed but not understood becomes Opaque, which never prunes; a column that does not exist, a literal that
is none, a comparison that Spark refuses, and bad syntax raise WhereError, which shows the place.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import sqlglot
from sqlglot import exp

from fuse_index.aggregates.state import Aggregate, Aggregation
from fuse_index.errors import WhereError
from fuse_index.expressions.depth import check_condition_depth
from fuse_index.expressions.errors import AnalysisError, NotReproducible, UnsupportedAggregate, UnsupportedExpression
from fuse_index.predicate import (
    And,
    Context,
    Literal,
    Not,
    Opaque,
    Or,
    Predicate,
    Term,
)
from fuse_index.reasons import Reason
from fuse_index.sql.text.dialect import SPARK_CONDITIONS
from fuse_index.sql.text.parser_conditions import SqlConditionReader
from fuse_index.sql.text.parser_terms import SqlNode, has_unknown_parts
from fuse_index.sql.tokenizer import TokenizedSql
from fuse_storage import Schema

if TYPE_CHECKING:
    from fuse_index.expressions.function import Function

_TRUE = Literal(True, pa.bool_())
_SPARK_ONLY_CLAUSES = {"OVER": "windows", "FILTER": "aggregates with a FILTER", "SELECT": "subqueries"}
_SPARK_ONLY_CLAUSE = re.compile(rf"\b({'|'.join(_SPARK_ONLY_CLAUSES)})\b", re.IGNORECASE)


_OTHERS_SIGNS = {"&&": "AND", "~": "RLIKE", " contains ": "contains(column, 'text')", " startswith ": "LIKE 'text%'"}
"""What other languages write, and what stands in its place here."""
_CLAUSE_AFTER = re.compile(r"\b(LIMIT|ORDER|GROUP|HAVING)\s+(?:BY\b|\d)", re.IGNORECASE)
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


class SqlReader(SqlConditionReader):
    """Reads one text: a predicate, a term or an aggregate."""

    @classmethod
    def of(
        cls,
        text: str,
        schema: Schema,
        context: Context,
        functions: Mapping[str, Function],
        moment: datetime | None = None,
    ) -> SqlReader:
        """A reader of this text; ``functions`` by their names, as they are and in lower case. Raises WhereError."""
        return cls(TokenizedSql.tokenize(text), schema, context, functions, moment)

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
        if self.tokens.safe.lstrip()[:6].upper() == "WHERE ":
            return ": leave out the word WHERE"
        if found := _SPARK_ONLY_CLAUSE.search(self.tokens.safe):
            return f": {_SPARK_ONLY_CLAUSES[found[1].upper()]} are known to Spark alone"
        if clause := _CLAUSE_AFTER.search(self.tokens.safe):
            return f": a condition ends before {clause[1].upper()}, which is said beside it"
        return next((f": write {ours}" for sign, ours in _OTHERS_SIGNS.items() if sign in self.tokens.safe), "")

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
            self.check_levels(node)
            return self.leaf(node)
        except UnsupportedExpression as unknown:
            return self._opaque(node, unknown.reason, str(unknown))
        except NotReproducible as unsure:
            return self._opaque(node, Reason.LEAF_UNSUPPORTED, str(unsure))
        except AnalysisError as refusal:
            raise self.error_at(str(refusal), node) from None

    def _opaque(self, node: SqlNode, reason: Reason, why: str = "") -> Opaque:
        if not node.find(exp.Lambda, exp.Query):
            columns = (column for column in node.find_all(exp.Column) if not column.find_ancestor(exp.DataType))
            for column in columns:
                with suppress(UnsupportedExpression):
                    self.column(column)
        text = self.original_text(node)
        return Opaque(text, reason, "" if why == text else why)
