"""Terms of the Spark SQL that people type: columns, literals, casts, calls; and the places of mistakes in them.

``parser.py`` reads the conditions around them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from sqlglot import exp

from fuse_index.aggregates.sketches import DEFAULT_LG_K
from fuse_index.aggregates.state import AGGREGATE_FUNCTIONS, COUNT_STAR, Aggregate
from fuse_index.errors import WhereError
from fuse_index.expressions import coercion, types
from fuse_index.expressions.canonical import canonical_term
from fuse_index.expressions.constant_folding import fold_term
from fuse_index.expressions.errors import AnalysisError, UnsupportedExpression
from fuse_index.expressions.types import is_compound, spark_type_name
from fuse_index.predicate import CastMode, Column, Context, Literal, Operator, Term
from fuse_index.sql.text.dialect import SPARK_CONDITIONS
from fuse_index.sql.text.variant_terms import extracted
from fuse_index.sql.tokenizer import TokenizedSql, number_literal
from fuse_storage import Schema, SchemaError

if TYPE_CHECKING:
    from fuse_index.expressions.function import Function

SqlNode = Any
"""A node of the parser's tree; its versions differ in what they call the class."""

_KNOWN_AGGREGATES = (
    "known are count(*), and count, sum, min, max, avg, hll_sketch_agg and hll_union_agg of a term, without "
    "DISTINCT, FILTER or OVER"
)

COMPARISON_OPERATORS: Mapping[type[Any], Operator] = {
    exp.EQ: "=",
    exp.NullSafeEQ: "<=>",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
ARITHMETIC_NODES: Mapping[type[Any], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.DPipe: "||",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
}
_BINARY_NODES = (exp.And, exp.Or, exp.Is, exp.Escape, exp.Dot, exp.NullSafeNEQ, exp.RegexpLike, exp.Extract)
_UNARY_NODES = (exp.Not, exp.Paren, exp.Neg, exp.Boolean, exp.DataTypeParam, exp.BitwiseNot, exp.Any, exp.All)
_UNDERSTOOD_PARTS: Mapping[type[Any], frozenset[str]] = {
    **dict.fromkeys((*_BINARY_NODES, *COMPARISON_OPERATORS), frozenset(["this", "expression"])),
    **dict.fromkeys(_UNARY_NODES, frozenset(["this"])),
    **dict.fromkeys((exp.In, exp.Anonymous, exp.Bracket), frozenset(["this", "expressions"])),
    **dict.fromkeys((exp.Cast, exp.TryCast), frozenset(["this", "to", "safe"])),
    **dict.fromkeys(
        ARITHMETIC_NODES, frozenset(["this", "expression", "typed", "safe"])
    ),  # the latter say how Spark divides and joins
    **dict.fromkeys((exp.Like, exp.ILike), frozenset(["this", "expression", "negate"])),
    exp.Between: frozenset(["this", "low", "high"]),
    exp.Column: frozenset(["this", "table", "db", "catalog"]),
    exp.JSONExtract: frozenset(["this", "expression", "variant_extract", "requires_json"]),
    exp.JSONPath: frozenset(["expressions"]),
    exp.JSONPathRoot: frozenset(),
    **dict.fromkeys((exp.JSONPathKey, exp.JSONPathSubscript), frozenset(["this", "quoted"])),
    exp.DataType: frozenset(["this", "expressions", "nested"]),
    exp.Literal: frozenset(["this", "is_string"]),
    exp.Null: frozenset(),
    exp.Case: frozenset(["this", "ifs", "default"]),
    exp.If: frozenset(["this", "true"]),
    exp.Interval: frozenset(["this", "unit"]),
    exp.Tuple: frozenset(["expressions"]),
    exp.CurrentDate: frozenset(),
    exp.CurrentTimestamp: frozenset(),
}
"""The nodes that are understood, with all that is understood of them: a node that says more is not."""
_TYPED_LITERALS = {
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ltz": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_EMPTY_SIZE = re.compile(r"(?:\bAS|::)\s*\w+\s*\(\s*\)", re.IGNORECASE)
"""A parser passes over the parentheses of ``CAST(c AS INT())``, which Spark refuses."""


@dataclass(frozen=True)
class SqlTermReader:
    """Reads the terms of one text."""

    tokens: TokenizedSql
    schema: Schema
    context: Context
    functions: Mapping[str, Function]
    moment: datetime | None = None
    """What ``now()`` is, in UTC; None where a text must not depend on when it is read."""

    def term(self, node: SqlNode) -> Term:
        if has_unknown_parts(node):
            raise UnsupportedExpression(self.original_text(node))
        match node:
            case exp.Paren():
                return self.term(node.this)
            case exp.Column() | exp.Dot():
                return self.column(node)
            case exp.Literal():
                return self._written(node, "")
            case exp.Neg() if isinstance(node.this, exp.Literal):
                return self._written(node.this, "-")
            case exp.Boolean():
                return Literal(bool(node.this), pa.bool_())
            case exp.Null():
                return Literal(None, pa.null())
            case exp.Placeholder() | exp.Parameter():
                raise AnalysisError("parameters are not supported: write the value")
            case exp.Cast():
                return self._cast(node)
            case exp.JSONExtract() if node.args.get("variant_extract"):
                return extracted(self.term(node.this), node, self.tokens)
            case _:
                raise UnsupportedExpression(self.original_text(node))

    def aggregate(self, node: SqlNode) -> Aggregate:
        if not isinstance(node, exp.Anonymous):
            raise UnsupportedExpression(f"{self.original_text(node)}; {_KNOWN_AGGREGATES}")
        name, arguments = self.call(node)
        lg_k = 0
        if name == "hll_sketch_agg" and arguments:
            lg_k, arguments = self._lg_k(arguments[1:]), arguments[:1]
        if name == "hll_union_agg" and len(arguments) == 2 and self.term(arguments[1]) == Literal(False, pa.bool_()):
            arguments = arguments[:1]  # sketches of one size, as without it
        if name not in AGGREGATE_FUNCTIONS or len(arguments) != 1 or isinstance(arguments[0], exp.Distinct):
            raise UnsupportedExpression(f"{self.original_text(node)}; {_KNOWN_AGGREGATES}")
        if name == "count" and isinstance(arguments[0], exp.Star):
            return COUNT_STAR
        term = canonical_term(self.term(arguments[0]), self.context)
        if name == "count" and isinstance(term, Literal) and term.value is not None:
            return COUNT_STAR
        return Aggregate(name, term, lg_k)

    def folded(self, node: SqlNode) -> Term:
        """The term, a literal where it is a constant: for places at which Spark asks no more than that."""
        return fold_term(self.term(node), self.context, self.functions)

    def _lg_k(self, given: list[SqlNode]) -> int:
        """The size of a sketch."""
        if not given:
            return DEFAULT_LG_K
        size = self.term(given[0])
        if len(given) > 1 or not isinstance(size, Literal) or size.type != pa.int32() or size.value is None:
            raise UnsupportedExpression("lgConfigK of hll_sketch_agg is a number from 4 to 21, or left out")
        return int(size.value)

    def text(self, node: SqlNode) -> Term:
        term = self.term(node)
        if is_compound(term.type):
            raise AnalysisError(f"{spark_type_name(term.type)} is no text")
        return coercion.coerce_term(term, pa.string(), self.context)

    def texts(self, value: SqlNode, part: SqlNode) -> tuple[Term, Term]:
        terms = self.term(value), self.term(part)
        return terms if all(term.type == pa.binary() for term in terms) else (self.text(value), self.text(part))

    def constant(self, node: SqlNode, what: str) -> str:
        term = self.folded(node)
        if isinstance(term, Literal) and isinstance(term.value, str):
            return term.value
        raise UnsupportedExpression(f"{what} is a string, not {self.original_text(node)}")

    def column(self, node: SqlNode) -> Column:
        whole = node
        while isinstance(whole, exp.Dot):
            whole = whole.this
        parts = node.parts if isinstance(whole, exp.Column) else []  # or a field of what is computed
        names = [part.name for part in parts]
        if not names or not all(isinstance(part, exp.Identifier) for part in parts):
            raise UnsupportedExpression(self.original_text(node))
        found: list[str] = []
        try:
            for length in range(1, len(names) + 1):
                field = self.schema.find(names[:length], self.context.case_sensitive)
                found.append(field.name)
        except SchemaError as refusal:
            raise self._at(f"{refusal}{self._quote_hint(node)}", parts[len(found)]) from None
        return Column(tuple(found), field.type)

    def _quote_hint(self, node: SqlNode) -> str:
        """What to say of an unknown name that stands where a value would: on the right, or in a list."""
        name, parent = node, node.parent
        while isinstance(parent, exp.Paren):
            node, parent = parent, parent.parent
        in_call = isinstance(parent, exp.Anonymous) and node is not parent.expressions[0]
        is_value = in_call or (isinstance(parent, exp.Predicate) and node is not parent.this)
        return f" Is there a quote missing: '{self.original_text(name)}'?" if is_value else ""

    def _written(self, node: exp.Literal, sign: str) -> Literal:
        if node.is_string:
            mark = self.tokens.find_mark(node.this)
            if mark is None or mark.listed:
                raise UnsupportedExpression(self.original_text(node))
            if mark.typed_by:
                value = coercion.coerce_term(mark.literal, _TYPED_LITERALS[mark.typed_by], self.context, "ansi")
                assert isinstance(value, Literal)  # of a literal, a literal is made
                return value
            if (
                not sign
                and mark.literal.type in coercion.INTEGER_TYPES
                and mark.literal.value == 1 << mark.literal.type.bit_width - 1
            ):
                raise AnalysisError(f"{mark.literal.value} is too large for its suffix")
            if not sign:
                return mark.literal
            if not coercion.is_number(mark.literal.type):
                raise AnalysisError(f"there is no negative of {mark.literal.value!r}")
            return Literal(_negative(mark.literal.value), mark.literal.type)
        try:
            return number_literal(sign + node.this)
        except ValueError as refusal:
            raise AnalysisError(str(refusal)) from None

    def _cast(self, node: exp.Cast) -> Term:
        name = node.to.sql(dialect=SPARK_CONDITIONS)
        data_type = None if has_unknown_parts(node.to) else types.type_from_spark_name(name)
        if data_type is None:
            raise UnsupportedExpression(f"a cast to {name}")
        if _EMPTY_SIZE.search(self.tokens.safe):
            raise AnalysisError("the parentheses after a type are empty")
        mode: CastMode | None = "try" if node.args.get("safe") else None
        return coercion.coerce_term(self.term(node.this), data_type, self.context, mode)

    def call(self, node: exp.Anonymous) -> tuple[str, list[SqlNode]]:
        return str(node.this).lower(), node.expressions

    # --- places -----------------------------------------------------------------------------------------------

    def original_text(self, node: SqlNode) -> str:
        return self.tokens.restore(node.sql(dialect=SPARK_CONDITIONS, normalize_functions=False))

    def _at(self, message: str, identifier: SqlNode) -> WhereError:
        start = identifier.meta.get("start")
        return self.tokens.error(
            message, *(self.tokens.full_span if start is None else self.tokens.original_span(start))
        )

    def error_at(self, message: str, node: SqlNode) -> WhereError:
        """At the leaf: from its first to its last column or literal, as far as they know their places."""
        spans = [
            self.tokens.original_span(part.meta["start"])
            for part in node.find_all(exp.Identifier)
            if "start" in part.meta
        ]
        marks = [self.tokens.find_mark(part.name) for part in node.find_all(exp.Literal)]
        spans += [(mark.start, mark.end) for mark in marks if mark]
        if not spans:
            return self.tokens.error(message, *self.tokens.full_span)
        return self.tokens.error(message, min(start for start, _ in spans), max(end for _, end in spans))


def has_unknown_parts(node: SqlNode) -> bool:
    """The node is of a class that is understood, but has a part that is not."""
    known = _UNDERSTOOD_PARTS.get(type(node))
    return known is not None and any(part for name, part in node.args.items() if name not in known)


def _negative(value: Any) -> Any:
    """Also of decimals, whose unary minus would make 0 of -0 and round to the context's digits."""
    return value.copy_negate() if hasattr(value, "copy_negate") else -value
