"""Spark's own filters, as predicates: from the JSON trees of its planner (``spark/java/rpc/ExpressionJson.java``).

A node says its class, its type, and its parameters: ``value`` of a Literal as text (days for a date, microseconds for a
timestamp, ``{"hex": …}`` for bytes, null for NULL), ``name``, ``metadata`` and ``ours`` of a column, ``ordinal`` of a
struct's field, ``evalMode`` and ``zone`` of a cast, ``values`` of an InSet, ``escape`` of a LIKE, ``excess`` of what
stands for a tree that is too large to be sent. A class, a type or a column that is not known here makes the smallest
condition around it Opaque, which is evaluated by nobody; where its functions are known by name, it has a meaning for
index kinds. Knows no Spark, and no SQL.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from fuse_index.aggregates.state import (
    COUNT_STAR_ARGUMENT,
    SKETCH_ARGUMENT_TYPES,
    Aggregate,
    AggregateFunction,
    Aggregation,
)
from fuse_index.expressions import types
from fuse_index.expressions.canonical import canonical_term
from fuse_index.expressions.constant_folding import fold_constants, fold_term
from fuse_index.expressions.errors import UnsupportedAggregate, UnsupportedExpression
from fuse_index.expressions.like import LikePattern
from fuse_index.expressions.normalize import normalize
from fuse_index.expressions.traversal import leaf_terms
from fuse_index.predicate import (
    And,
    Call,
    Compare,
    Contains,
    Context,
    EndsWith,
    In,
    IsNull,
    Leaf,
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
from fuse_index.sql.call_markers import VALUE_MARK_PREFIX, parse_call_mark, parse_condition_mark
from fuse_index.sql.catalyst_calls import CatalystCallReader
from fuse_index.sql.catalyst_terms import CatalystTree, decode_catalyst_value
from fuse_index.sql.catalyst_values import CatalystValueReader
from fuse_storage import Schema

_TRUE = Literal(True, pa.bool_())
_AGGREGATE_CLASSES: tuple[tuple[str, AggregateFunction], ...] = (
    ("Count", "count"),
    ("Sum", "sum"),
    ("Min", "min"),
    ("Max", "max"),
    ("Average", "avg"),
    ("HllSketchAgg", "hll_sketch_agg"),
    ("HllUnionAgg", "hll_union_agg"),
)
_AGGREGATES: Mapping[str, AggregateFunction] = {
    f"org.apache.spark.sql.catalyst.expressions.aggregate.{node}": function for node, function in _AGGREGATE_CLASSES
}
_COMPARISONS: Mapping[str, Operator] = {
    "EqualTo": "=",
    "EqualNullSafe": "<=>",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
}
_TEXT_CONDITIONS: Mapping[str, type[StartsWith] | type[EndsWith] | type[Contains]] = {
    "StartsWith": StartsWith,
    "EndsWith": EndsWith,
    "Contains": Contains,
}


def decode_filter(
    tree: CatalystTree | Sequence[CatalystTree],
    schema: Schema,
    context: Context,
) -> Predicate:
    """The filter, or the conjunction of a list of filters, normalised.

    What is not understood is Opaque; what is malformed raises KeyError.
    """
    reader = _Reader(schema, context)
    trees = [tree] if isinstance(tree, Mapping) else tree
    return (
        normalize(fold_constants(And(tuple(reader.predicate(each) for each in trees)), context), context)
        if trees
        else Compare("=", _TRUE, _TRUE)
    )


def decode_catalyst_term(tree: CatalystTree, schema: Schema, context: Context) -> Term:
    """The value that a tree stands for. Raises UnsupportedExpression for what is not understood."""
    return _Reader(schema, context).term(tree)


def decode_value_mark(tree: CatalystTree, schema: Schema, context: Context) -> Call | None:
    """The call of a plugin's function that a tree is the mark of. Raises UnsupportedExpression for its arguments."""
    return parse_call_mark(tree, _Reader(schema, context).term, VALUE_MARK_PREFIX)


def decode_aggregation(
    groups: Sequence[CatalystTree], aggregates: Sequence[Mapping[str, Any]], schema: Schema, context: Context
) -> tuple[Aggregation, tuple[bool, ...]]:
    """The aggregation of these groups, as ``AggregateQuery.java`` writes both; and which aggregates are *unscaled*.

    Those Spark computes of decimals' digits, as integers. Raises UnsupportedAggregate, which says why.
    """
    group_reader, reader = _Reader(schema, context), _Reader(schema, context, arithmetic=True)

    def read_term(reader: _Reader, tree: CatalystTree) -> Term:
        try:
            return reader.term(tree)
        except UnsupportedExpression:
            raise UnsupportedAggregate(f"only Spark understands {_plan_text(tree)}") from None

    def argument(tree: CatalystTree) -> Term:
        return canonical_term(read_term(reader, tree), context)

    terms = tuple(fold_term(read_term(group_reader, tree), context) for tree in groups)
    read = [_aggregate(found, argument) for found in aggregates]
    asked = Aggregation(terms, tuple(aggregate for aggregate, _ in read))
    asked.check()
    return asked, tuple(unscaled for _, unscaled in read)


def _aggregate(found: Mapping[str, Any], term: Callable[[CatalystTree], Term]) -> tuple[Aggregate, bool]:
    function = _AGGREGATES.get(found["function"])
    tree, *further = found["arguments"] or [None]
    if function is None or tree is None or len(further) != (function in SKETCH_ARGUMENT_TYPES):
        of = f" of {len(found['arguments'])} arguments" if function else ""
        raise UnsupportedAggregate(f"no index keeps {found['function'].rpartition('.')[2]}{of}")
    if tree["node"] == "UnscaledValue" and function in ("sum", "avg"):
        return Aggregate(function, term(tree["children"][0])), True
    argument = term(tree)
    if isinstance(argument, Literal):
        if function != "count" or argument.value is None:
            raise UnsupportedAggregate(f"{function} of a constant")
        argument = COUNT_STAR_ARGUMENT
    made = Aggregate(function, argument, *(_lg_k(function, term(size)) for size in further))
    if made.type != types.type_from_spark_json(found["type"]):
        raise UnsupportedAggregate(f"{function} is {found['type']} to Spark, and {made.type} here")
    return made, False


def _lg_k(function: AggregateFunction, given: Term) -> int:
    """The size of a sketch; of a union none, for sketches of several sizes make none that is merged further."""
    if function == "hll_union_agg" and given == Literal(False, pa.bool_()):
        return 0
    if function == "hll_union_agg" or not isinstance(given, Literal) or not isinstance(given.value, int):
        raise UnsupportedAggregate(f"the last argument of {function} is not known here")
    return given.value


class _Reader(CatalystValueReader):
    def predicate(self, tree: CatalystTree) -> Predicate:
        match tree["node"]:
            case "And":
                return And(tuple(self.predicate(part) for part in _chain(tree)))
            case "Or":
                return Or(tuple(self.predicate(part) for part in _chain(tree)))
            case "Not":
                return Not(self.predicate(tree["children"][0]))
            case "IsNotNull":
                return Not(self.predicate({**tree, "node": "IsNull"}))
            case "Excess":
                return Opaque(tree["excess"], Reason.TOO_MANY_TERMS)
        try:
            return _CONDITIONS.get(tree["node"], _Reader.truth)(self, tree)
        except UnsupportedExpression as unknown:
            return Opaque(_plan_text(tree), unknown.reason, meaning=self.meaning(tree))

    def meaning(self, tree: CatalystTree) -> Leaf | None:
        """What index kinds are asked about in the place of a condition that is not understood; None if nothing."""
        return _MeaningReader(self.schema, self.context, arithmetic=True, call=self.call).leaf(tree)

    # --- conditions -------------------------------------------------------------------------------------------

    def truth(self, tree: CatalystTree) -> Predicate:
        term = self.term(tree)
        if term.type != pa.bool_():
            raise UnsupportedExpression(reason=Reason.TYPE_MISMATCH)
        return Compare("=", term, _TRUE)

    def comparison(self, tree: CatalystTree) -> Predicate:
        left, right = (self.term(child) for child in tree["children"])
        if left.type != right.type or types.is_compound(left.type):
            raise UnsupportedExpression(reason=Reason.TYPE_MISMATCH)
        return Compare(_COMPARISONS[tree["node"]], left, right)

    def in_list(self, tree: CatalystTree) -> Predicate:
        if (call := parse_call_mark(tree, self.term)) is not None:
            return call
        if (marked := parse_condition_mark(tree, self.term)) is not None:
            call, condition = marked
            return replace(self, call=call).predicate(condition)
        term, *listed = (self.term(child) for child in tree["children"])
        values = [value for value in listed if isinstance(value, Literal) and value.type == term.type]
        if tree["node"] == "InSet":
            values = [Literal(decode_catalyst_value(value, term.type), term.type) for value in tree["values"]]
        elif len(values) < len(listed):
            raise UnsupportedExpression
        if not values or types.is_compound(term.type):
            raise UnsupportedExpression  # what an empty list means on NULL depends on the session
        return In(term, tuple(values))

    def is_null(self, tree: CatalystTree) -> Predicate:
        return IsNull(self.term(tree["children"][0]))

    def is_nan(self, tree: CatalystTree) -> Predicate:
        term = self.term(tree["children"][0])
        return Compare("<=>", term, Literal(math.nan, term.type))

    def text_condition(self, tree: CatalystTree) -> Predicate:
        value, part = (self.term(child) for child in tree["children"])
        if {value.type, part.type} not in ({pa.string()}, {pa.binary()}):
            raise UnsupportedExpression(reason=Reason.TYPE_MISMATCH)
        return _TEXT_CONDITIONS[tree["node"]](value, part)

    def like(self, tree: CatalystTree) -> Predicate:
        value, pattern = (self.term(child) for child in tree["children"])
        if {value.type, pattern.type} != {pa.string()} or not isinstance(pattern, Literal):
            raise UnsupportedExpression
        try:
            LikePattern.parse(pattern.value or "", tree["escape"])
        except ValueError:
            raise UnsupportedExpression from None  # Spark raises too, but only when it comes to a row
        return Like(value, pattern, tree["escape"])


_CONDITIONS: dict[str, Callable[[_Reader, CatalystTree], Predicate]] = {
    **dict.fromkeys(_COMPARISONS, _Reader.comparison),
    **dict.fromkeys(("In", "InSet"), _Reader.in_list),
    **dict.fromkeys(_TEXT_CONDITIONS, _Reader.text_condition),
    "IsNull": _Reader.is_null,
    "IsNaN": _Reader.is_nan,
    "Like": _Reader.like,
}


class _MeaningReader(CatalystCallReader, _Reader):
    """Reads conditions with functions that are known by name alone."""

    def leaf(self, tree: CatalystTree) -> Leaf | None:
        try:
            read = _CONDITIONS.get(tree["node"], _Reader.truth)(self, tree)
        except UnsupportedExpression:
            return None
        match read:
            case Compare("=", Call() as call, Literal(True)) if call.type == pa.bool_():
                read = call
        leaf = normalize(fold_constants(read, self.context), self.context)
        return leaf if isinstance(leaf, Leaf) and not isinstance(leaf, Opaque) and leaf_terms(leaf) else None


def _plan_text(tree: CatalystTree) -> str:
    """The tree for people, in the manner of Spark's plans."""
    match tree:
        case {"node": "Literal", "value": value}:
            return str(value)
        case {"node": "AttributeReference", "name": name}:
            return str(name)
        case {"node": node, "children": children}:
            return f"{str(node).rpartition('.')[2]}({', '.join(_plan_text(child) for child in children)})"
        case _:
            return "…"


def _chain(tree: CatalystTree) -> list[CatalystTree]:
    """The parts of a chain of ANDs or ORs, however deep Spark nests them."""
    parts, waiting = [], [tree]
    while waiting:
        each = waiting.pop()
        if each["node"] == tree["node"]:
            waiting.extend(reversed(each["children"]))
        else:
            parts.append(each)
    return parts
