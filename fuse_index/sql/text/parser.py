"""Texts of Spark SQL that people type, as predicates, terms and aggregates.

What is well-formed but not understood becomes Opaque, which never prunes; a column that does not exist, a literal that
is none, a comparison that Spark refuses, and bad syntax raise WhereError, which shows the place.
"""

from __future__ import annotations

import difflib
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
from fuse_index.expressions import types
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
from fuse_storage import SPARK_TYPES_BY_NAME, Schema

if TYPE_CHECKING:
    from fuse_index.expressions.function import Function

_TRUE = Literal(True, pa.bool_())
_TYPE_WORDS = (*SPARK_TYPES_BY_NAME, "decimal", "struct", "array", "map", "interval")
_SPARK_ONLY_CLAUSES = {"OVER": "windows", "FILTER": "aggregates with a FILTER", "SELECT": "subqueries"}
_SPARK_ONLY_CLAUSE = re.compile(rf"\b({'|'.join(_SPARK_ONLY_CLAUSES)})\b", re.IGNORECASE)


_OTHERS_SIGNS = {"&&": "AND", "~": "RLIKE", " contains ": "contains(column, 'text')", " startswith ": "LIKE 'text%'"}
"""What other languages write, and what stands in its place here."""
_CLAUSE_AFTER = re.compile(r"\b(LIMIT|ORDER|GROUP|HAVING)\s+(?:BY\b|\d)", re.IGNORECASE)
_NESTING = re.compile(r"'[^']*'|`[^`]*`|\bNOT\b|\w+|[!~(\[)\]-]", re.IGNORECASE)
_OPENING = ("(", "[", "CASE")
_OPENING_OF: Mapping[str, Sequence[str]] = {")": ("(", "["), "]": ("(", "["), "END": ("CASE",)}
_SPAN = re.compile(r"([\d.]+|'[^']*')\s+(day|hour|minute|second|week|month|quarter|year)s?\b", re.IGNORECASE)
_HALF_WRITTEN = {
    re.compile(pattern, re.IGNORECASE | re.DOTALL): said
    for pattern, said in {
        r"\bBETWEEN\b(?!.*\bAND\b)": "BETWEEN takes two values, as in n BETWEEN 1 AND 9",
        r"\bCASE\b(?!.*\bEND\b)": "CASE is written CASE WHEN n = 1 THEN 'one' ELSE 'other' END",
        r"\bCAST\s*\((?!.*\bAS\b)": "a cast is written CAST(n AS BIGINT)",
    }.items()
}
_TYPE_WRITTEN = re.compile(r"(?:\bAS|::)\s*(\w+)", re.IGNORECASE)


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


def _unmatched(text: str) -> str:
    """The parenthesis or bracket that has no other half, in a sentence; empty if all have one."""
    opened: list[str] = []
    for match in re.finditer(r"'[^']*'|`[^`]*`|[(\[)\]]", text):
        if match[0] in _OPENING:
            opened.append(match[0])
        elif match[0] in _OPENING_OF:
            if not opened:
                return f"this {match[0]} closes nothing"
            opened.pop()
    return f"a {opened[-1]} is never closed" if opened else ""


def _unknown_type(text: str) -> str:
    """The type that a cast names and Spark lacks, in a sentence that has a near one; empty if there is none."""
    for named in _TYPE_WRITTEN.findall(text):
        if named.lower() not in _TYPE_WORDS and types.type_from_spark_name(named) is None:
            near = difflib.get_close_matches(named.lower(), _TYPE_WORDS, 1)
            return f"there is no type {named.upper()}{f'; did you mean {near[0].upper()}?' if near else ''}"
    return ""


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
        near, hint = self.tokens.original[start:stop], self._beyond()
        if not hint and not self.tokens.original[stop:].strip():
            hint = ": something is missing behind it"
        return self.tokens.error(f"cannot be read near {near!r}{hint}", start, stop)

    def _beyond(self) -> str:
        """What the text may be about that no expression here is."""
        if self.tokens.safe.lstrip()[:6].upper() == "WHERE ":
            return ": leave out the word WHERE"
        if found := _SPARK_ONLY_CLAUSE.search(self.tokens.safe):
            return f": {_SPARK_ONLY_CLAUSES[found[1].upper()]} are known to Spark alone"
        if clause := _CLAUSE_AFTER.search(self.tokens.safe):
            return f": a condition ends before {clause[1].upper()}, which is said beside it"
        if hint := _unmatched(self.tokens.safe):
            return f": {hint}"
        if (unit := _SPAN.search(self.tokens.original)) and "INTERVAL" not in self.tokens.safe.upper():
            return f": a span of time is written INTERVAL {unit[0].upper()}"
        for pattern, said in _HALF_WRITTEN.items():
            if pattern.search(self.tokens.safe):
                return f": {said}"
        if hint := _unknown_type(self.tokens.safe):
            return f": {hint}"
        return next((f": write {ours}" for sign, ours in _OTHERS_SIGNS.items() if sign in self.tokens.safe), "")

    def predicate(self, node: SqlNode) -> Predicate:
        if has_unknown_parts(node):
            bare = isinstance(node, exp.In) and node.args.get("field") is not None
            return self._opaque(node, Reason.LEAF_UNSUPPORTED, "IN takes a list: write IN (1, 2)" if bare else "")
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
