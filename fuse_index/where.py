"""The Spark SQL that people type, as predicates. The only module that imports a SQL parser.

What is well-formed but not understood becomes Opaque, which never prunes; a column that does not exist, a literal that is
none, a comparison that Spark refuses, and bad syntax raise WhereError, which shows the place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import sqlglot
from sqlglot import exp

from fuse_index import coercion, spark_types
from fuse_index.aggregates import FUNCTIONS, ROW, Aggregate, Aggregation, Unaggregatable
from fuse_index.calls import call
from fuse_index.ddl import parse_schema
from fuse_index.errors import WhereError
from fuse_index.like import Pattern
from fuse_index.normalize import normalize
from fuse_index.predicate import (
    And,
    Call,
    CastMode,
    Column,
    Compare,
    Contains,
    Context,
    EndsWith,
    In,
    IsNull,
    JsonPath,
    Like,
    Literal,
    Not,
    Opaque,
    Operator,
    Or,
    Predicate,
    StartsWith,
    Term,
)  # fmt: skip
from fuse_index.reasons import Reason
from fuse_index.scalars import DATE_TRUNC, SCALARS, SYNONYMS, UNITS
from fuse_index.spark_types import name_of
from fuse_index.times import Unsure
from fuse_index.tokens import FUNCTION, Tokens, number_literal
from fuse_storage import Schema, SchemaError

if TYPE_CHECKING:
    from fuse_index.plugin import Function

__all__ = ["WhereError", "parse", "parse_aggregate", "parse_schema", "parse_term", "read"]

Node = Any
"""A node of the parser's tree; its versions differ in what they call the class."""

DEFAULT = Context()
TRUE = Literal(True, pa.bool_())
TIMESTAMP = pa.timestamp("us", "UTC")
KEPT = "known are count(*), and count, sum, min, max and avg of a term, without DISTINCT, FILTER or OVER"

OPERATORS: Mapping[type[Any], Operator] = {
    exp.EQ: "=", exp.NullSafeEQ: "<=>", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">=",
}  # fmt: skip
KNOWN: Mapping[type[Any], frozenset[str]] = {
    **dict.fromkeys((exp.And, exp.Or, exp.Is, exp.Escape, exp.Dot, exp.NullSafeNEQ, *OPERATORS), frozenset(["this", "expression"])),
    **dict.fromkeys((exp.Not, exp.Paren, exp.Neg, exp.Boolean, exp.DataTypeParam), frozenset(["this"])),
    **dict.fromkeys((exp.In, exp.Anonymous), frozenset(["this", "expressions"])),
    **dict.fromkeys((exp.Cast, exp.TryCast), frozenset(["this", "to", "safe"])),
    exp.Like: frozenset(["this", "expression", "negate"]),
    exp.Between: frozenset(["this", "low", "high"]),
    exp.Column: frozenset(["this", "table", "db", "catalog"]),
    exp.DataType: frozenset(["this", "expressions", "nested"]),
    exp.Literal: frozenset(["this", "is_string"]),
    exp.Null: frozenset(),
}
"""The nodes that are understood, with all that is understood of them: a node that says more is not."""
TYPED = {"date": pa.date32(), "timestamp": pa.timestamp("us", "UTC"), "timestamp_ltz": pa.timestamp("us", "UTC"),
         "timestamp_ntz": pa.timestamp("us")}  # fmt: skip
SPECIAL = frozenset(["epoch", "now", "today", "tomorrow", "yesterday"])
"""Words that Spark takes for a date."""
CASTING = frozenset(spark_types.NAMES.keys() | {"decimal"}) - {"void"}
"""Functions that are casts, named after their type."""


def parse(
    text: str, schema: Schema, context: Context = DEFAULT, functions: Mapping[str, Function] | Iterable[Function] = ()
) -> Predicate:
    """The predicate of a WHERE clause (without the word), normalised. Raises WhereError."""
    return normalize(read(text, schema, context, functions), context)


def read(
    text: str, schema: Schema, context: Context = DEFAULT, functions: Mapping[str, Function] | Iterable[Function] = ()
) -> Predicate:
    """The predicate as it is written, with the casts that Spark adds. Raises WhereError."""
    reader = _Reader(Tokens.read(text), schema, context, _by_name(functions))
    return reader.predicate(reader.tree())


def parse_term(
    text: str, schema: Schema, context: Context = DEFAULT, functions: Mapping[str, Function] | Iterable[Function] = ()
) -> Term:
    """A column, a field of one, a cast, a JSON path or a call of a registered function. Raises WhereError."""
    reader = _Reader(Tokens.read(text), schema, context, _by_name(functions))
    try:
        return reader.term(reader.tree())
    except (_Unknown, Unsure, coercion.Refused) as unknown:
        raise reader.tokens.error(f"not understood: {unknown}", 0, len(text)) from None


def parse_aggregate(
    text: str, schema: Schema, context: Context = DEFAULT, functions: Mapping[str, Function] | Iterable[Function] = ()
) -> Aggregate:
    """``count(*)``, or the count, sum, min, max or avg of a term. Raises WhereError."""
    reader = _Reader(Tokens.read(text), schema, context, _by_name(functions))
    try:
        found = reader.aggregate(reader.tree())
        Aggregation((), (found,)).check()
        return found
    except (_Unknown, Unsure, Unaggregatable, coercion.Refused) as unknown:
        raise reader.tokens.error(f"no aggregate that is known here: {unknown}", 0, len(text)) from None


def _by_name(functions: Mapping[str, Function] | Iterable[Function]) -> dict[str, Function]:
    given = functions.values() if isinstance(functions, Mapping) else functions
    return {function.name.lower(): function for function in given}


class _Unknown(Exception):
    """Well-formed, as far as we can tell, but only Spark knows what it means."""

    def __init__(self, what: str, reason: Reason = Reason.LEAF_UNSUPPORTED) -> None:
        super().__init__(what)
        self.reason = reason


@dataclass(frozen=True)
class _Reader:
    tokens: Tokens
    schema: Schema
    context: Context
    functions: Mapping[str, Function]

    # --- the tree ---------------------------------------------------------------------------------------------

    def tree(self) -> Node:
        if not self.tokens.safe.strip():
            raise self.tokens.error("an empty predicate: leave it out to have every row", 0, 1)
        try:
            trees = sqlglot.parse(self.tokens.safe, dialect="spark")
        except sqlglot.errors.ParseError as refusal:
            raise self._syntax(refusal) from None
        except sqlglot.errors.SqlglotError as refusal:
            raise self.tokens.error(f"not understood: {refusal}", *self.tokens.whole) from None
        tree = trees[0] if len(trees) == 1 else None
        if not isinstance(tree, exp.Condition) or isinstance(tree, exp.Query):
            raise self.tokens.error("a predicate is one expression, as it stands after WHERE", *self.tokens.whole)
        return tree

    def _syntax(self, refusal: sqlglot.errors.ParseError) -> WhereError:
        place = refusal.errors[0] if refusal.errors else {}
        lines = self.tokens.safe.split("\n")
        above = sum(len(line) + 1 for line in lines[: (place.get("line") or 1) - 1])
        end = above + (place.get("col") or len(lines[0]))
        start, stop = self.tokens.span(end - len(place.get("highlight") or " "))
        return self.tokens.error(f"cannot be read near {self.tokens.original[start:stop]!r}", start, stop)

    def predicate(self, node: Node) -> Predicate:
        if _says_more(node):
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
        except _Unknown as unknown:
            return self._opaque(node, unknown.reason)
        except Unsure:
            return self._opaque(node, Reason.LEAF_UNSUPPORTED)
        except coercion.Refused as refusal:
            raise self._refused(str(refusal), node) from None

    def _leaf(self, node: Node) -> Predicate:
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
            case exp.Escape() if isinstance(node.this, exp.Like) and not _says_more(node.this):
                return self._like(node.this, self._constant(node.expression))
            case exp.Like():
                return self._like(node, "\\")
            case exp.Anonymous() if (found := self._boolean_function(node)) is not None:
                return found
            case exp.Null():
                return Compare("=", Literal(None, pa.bool_()), TRUE)
            case _ if type(node) in OPERATORS:
                return self._compare(OPERATORS[type(node)], node.this, node.expression)
            case _:
                return self._truth(node)

    def _truth(self, node: Node) -> Predicate:
        """A term that is itself a condition: a boolean column, a literal, a call."""
        term = self.term(node)
        if isinstance(term, Call) and term.type == pa.bool_():
            return term
        if term.type != pa.bool_():
            raise coercion.Refused(f"a predicate is boolean, and this is {name_of(term.type)}")
        return Compare("=", term, TRUE)

    def _compare(self, operator: Operator, left: Node, right: Node) -> Compare:
        sides = coercion.compared(operator, self.term(left), self.term(right), self.context)
        if pa.types.is_nested(sides[0].type):
            raise _Unknown(f"comparing values of type {name_of(sides[0].type)}")
        return Compare(operator, *sides)

    def _is(self, node: exp.Is) -> Predicate:
        if isinstance(node.expression, exp.Null):
            return IsNull(self.term(node.this))
        if isinstance(node.expression, exp.Boolean):
            term = self.term(node.this)
            if term.type == pa.bool_():
                return Compare("<=>", term, Literal(bool(node.expression.this), pa.bool_()))
        raise _Unknown("IS with anything but NULL, TRUE or FALSE")

    def _in(self, node: exp.In) -> Predicate:
        values = [self.term(value) for value in node.expressions]
        if not values or not all(isinstance(value, Literal) for value in values):
            raise _Unknown("IN with anything but literals")
        return In(*coercion.listed(self.term(node.this), [value for value in values if isinstance(value, Literal)], self.context))

    def _like(self, node: Node, escape: str) -> Predicate:
        text, pattern = self._text(node.this), self._text(node.expression)
        if len(escape) != 1:
            raise coercion.Refused(f"ESCAPE takes one character, not {escape!r}")
        if isinstance(pattern, Literal) and pattern.value is not None:
            try:
                Pattern.parse(pattern.value, escape)
            except ValueError as refusal:
                raise coercion.Refused(str(refusal)) from None
        found = Like(text, pattern, escape)
        return Not(found) if node.args.get("negate") else found

    def _boolean_function(self, node: exp.Anonymous) -> Predicate | None:
        name, arguments = self._call(node)
        match name, arguments:
            case ("startswith", [a, b]):
                return StartsWith(*self._texts(a, b))
            case ("endswith", [a, b]):
                return EndsWith(*self._texts(a, b))
            case ("contains", [a, b]):
                return Contains(*self._texts(a, b))
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

    def _opaque(self, node: Node, reason: Reason) -> Opaque:
        if not node.find(exp.Lambda, exp.Query):
            for column in node.find_all(exp.Column):
                with suppress(_Unknown):
                    self._column(column)
        return Opaque(self._original(node), reason)

    # --- terms ------------------------------------------------------------------------------------------------

    def term(self, node: Node) -> Term:
        if _says_more(node):
            raise _Unknown(self._original(node))
        match node:
            case exp.Paren():
                return self.term(node.this)
            case exp.Column() | exp.Dot():
                return self._column(node)
            case exp.Literal():
                return self._written(node, "")
            case exp.Neg() if isinstance(node.this, exp.Literal):
                return self._written(node.this, "-")
            case exp.Boolean():
                return Literal(bool(node.this), pa.bool_())
            case exp.Null():
                return Literal(None, pa.null())
            case exp.Placeholder() | exp.Parameter():
                raise coercion.Refused("parameters are not supported: write the value")
            case exp.Cast():
                return self._cast(node)
            case exp.Anonymous():
                return self._function(node)
            case _:
                raise _Unknown(self._original(node))

    def aggregate(self, node: Node) -> Aggregate:
        if not isinstance(node, exp.Anonymous):
            raise _Unknown(f"{self._original(node)}; {KEPT}")
        name, arguments = self._call(node)
        if name not in FUNCTIONS or len(arguments) != 1 or isinstance(arguments[0], exp.Distinct):
            raise _Unknown(f"{self._original(node)}; {KEPT}")
        if name == "count" and isinstance(arguments[0], exp.Star):
            return Aggregate("count", ROW)
        term = self.term(arguments[0])
        if isinstance(term, Literal):
            if name == "count" and term.value is not None:
                return Aggregate("count", ROW)
            raise _Unknown(f"{name} of a constant")
        return Aggregate(name, term)

    def _text(self, node: Node) -> Term:
        term = self.term(node)
        if pa.types.is_nested(term.type):
            raise coercion.Refused(f"{name_of(term.type)} is no text")
        return coercion.converted(term, pa.string(), self.context)

    def _texts(self, value: Node, part: Node) -> tuple[Term, Term]:
        terms = self.term(value), self.term(part)
        return terms if all(term.type == pa.binary() for term in terms) else (self._text(value), self._text(part))

    def _constant(self, node: Node) -> str:
        term = self.term(node)
        if isinstance(term, Literal) and isinstance(term.value, str):
            return term.value
        raise _Unknown("an ESCAPE that is no string")

    def _column(self, node: Node) -> Column:
        parts = node.parts if isinstance(node, exp.Column | exp.Dot) else []
        names = [part.name for part in parts]
        if not names or not all(isinstance(part, exp.Identifier) for part in parts):
            raise _Unknown(self._original(node))
        found: list[str] = []
        try:
            for length in range(1, len(names) + 1):
                field = self.schema.find(names[:length], self.context.case_sensitive)
                found.append(field.name)
        except SchemaError as refusal:
            raise self._at(str(refusal), parts[len(found)]) from None
        return Column(tuple(found), field.type)

    def _written(self, node: exp.Literal, sign: str) -> Literal:
        if node.is_string:
            mark = self.tokens.marked(node.this)
            if mark is None:
                raise _Unknown(self._original(node))
            if mark.kind:
                return self._typed(mark.literal, TYPED[mark.kind], mark.kind.upper())
            if not sign and mark.literal.type in coercion.INTEGERS and mark.literal.value == 1 << mark.literal.type.bit_width - 1:
                raise coercion.Refused(f"{mark.literal.value} is too large for its suffix")
            if not sign:
                return mark.literal
            if not coercion.is_number(mark.literal.type):
                raise coercion.Refused(f"there is no negative of {mark.literal.value!r}")
            return Literal(_negative(mark.literal.value), mark.literal.type)
        try:
            return number_literal(sign + node.this)
        except ValueError as refusal:
            raise coercion.Refused(str(refusal)) from None

    def _typed(self, literal: Literal, kind: pa.DataType, word: str) -> Literal:
        if literal.value.strip().lower() in SPECIAL:
            raise _Unknown(f"{word} {literal.value!r}")
        value = coercion.converted(literal, kind, self.context, "ansi")
        assert isinstance(value, Literal)  # of a literal, a literal is made
        return value

    def _cast(self, node: exp.Cast) -> Term:
        kind = None if _says_more(node.to) else spark_types.from_name(node.to.sql(dialect="spark"))
        if kind is None:
            raise _Unknown(f"a cast to {node.to.sql(dialect='spark')}")
        mode: CastMode | None = "try" if node.args.get("safe") else None
        return coercion.converted(self.term(node.this), kind, self.context, mode)

    def _call(self, node: exp.Anonymous) -> tuple[str, list[Node]]:
        return str(node.this).lower().removeprefix(FUNCTION), node.expressions

    def _function(self, node: exp.Anonymous) -> Term:
        name, arguments = self._call(node)
        if (function := self.functions.get(name)) is not None:
            return call(function, [self.term(argument) for argument in arguments], self.context)
        if name in CASTING and len(arguments) == 1:
            kind = spark_types.from_name(name)
            return coercion.converted(self.term(arguments[0]), kind, self.context)
        if (found := SYNONYMS.get(name, name)) in SCALARS and len(arguments) == 1:
            return self._scalar(found, self.term(arguments[0]))
        if name == DATE_TRUNC and len(arguments) == 2:
            return self._date_trunc(self._constant(arguments[0]), self.term(arguments[1]))
        if name == "get_json_object" and len(arguments) == 2:
            return JsonPath(self._text(arguments[0]), self._constant(arguments[1]))
        raise _Unknown(f"function {name!r}")

    def _scalar(self, name: str, argument: Term) -> Call:
        if pa.types.is_nested(argument.type) or argument.type == pa.binary():
            raise _Unknown(f"{name} of {name_of(argument.type)}")
        return Call(name, (coercion.converted(argument, SCALARS[name].argument, self.context),), SCALARS[name].result)

    def _date_trunc(self, unit: str, argument: Term) -> Call:
        found = UNITS.get(unit.upper())
        if found is None:
            raise _Unknown(f"date_trunc knows no unit {unit!r}: use one of {', '.join(sorted(set(UNITS.values())))}")
        return Call(DATE_TRUNC, (Literal(found, pa.string()), coercion.converted(argument, TIMESTAMP, self.context)), TIMESTAMP)

    # --- places -----------------------------------------------------------------------------------------------

    def _original(self, node: Node) -> str:
        return self.tokens.restore(node.sql(dialect="spark", normalize_functions=False))

    def _at(self, message: str, identifier: Node) -> WhereError:
        start = identifier.meta.get("start")
        return self.tokens.error(message, *(self.tokens.whole if start is None else self.tokens.span(start)))

    def _refused(self, message: str, node: Node) -> WhereError:
        """At the leaf: from its first to its last column or literal, as far as they know their places."""
        spans = [self.tokens.span(part.meta["start"]) for part in node.find_all(exp.Identifier) if "start" in part.meta]
        marks = [self.tokens.marked(part.name) for part in node.find_all(exp.Literal)]
        spans += [(mark.start, mark.end) for mark in marks if mark]
        if not spans:
            return self.tokens.error(message, *self.tokens.whole)
        return self.tokens.error(message, min(start for start, _ in spans), max(end for _, end in spans))


def _says_more(node: Node) -> bool:
    """The node is of a kind that is understood, but has a part that is not."""
    known = KNOWN.get(type(node))
    return known is not None and any(part for name, part in node.args.items() if name not in known)


def _negative(value: Any) -> Any:
    """Also of decimals, whose unary minus would make 0 of -0 and round to the context's digits."""
    return value.copy_negate() if hasattr(value, "copy_negate") else -value
