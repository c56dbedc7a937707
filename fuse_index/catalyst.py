"""Spark's own filters, as predicates: from the typed JSON trees that its planner sends (``spark/java/Trees.java``).

A node says its class, its type, and its parameters: ``value`` of a Literal as text (days for a date, microseconds for a
timestamp, ``{"hex": …}`` for bytes, null for NULL), ``name``, ``metadata`` and ``ours`` of a column, ``ordinal`` of a struct's
field, ``evalMode`` and ``zone`` of a cast, ``values`` of an InSet, ``escape`` of a LIKE. A class, a type or a column that is not known
here makes the smallest condition around it Opaque, which never prunes. Knows no Spark, and no SQL.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from fuse_index import json_paths, spark_types, spark_values, times
from fuse_index.aggregates import ROW, Aggregate, Aggregation, Unaggregatable
from fuse_index.aggregates import Function as AggregateFunction
from fuse_index.casts import cast_value
from fuse_index.like import Pattern
from fuse_index.markers import marked
from fuse_index.normalize import normalize
from fuse_index.predicate import (
    And,
    Call,
    Cast,
    CastMode,
    Column,
    Compare,
    Contains,
    Context,
    EndsWith,
    In,
    IsNull,
    JsonFunction,
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
)
from fuse_index.reasons import Reason
from fuse_index.scalars import BY_NODE, DATE_TRUNC, SCALARS, UNITS
from fuse_storage import Field, Schema

Tree = Mapping[str, Any]

VARIANT_PATH = re.compile(r"\$(?:\.[A-Za-z_][A-Za-z0-9_]*|\['[^'\"\[\]?*\s][^'\"\[\]?]*'\]|\[[0-9]{1,9}\])*")
"""Paths that ``variant_get`` and ``get_json_object`` read alike."""
TRUE = Literal(True, pa.bool_())
TIMESTAMP = pa.timestamp("us", "UTC")
MODES: Mapping[str, CastMode] = {"LEGACY": "legacy", "ANSI": "ansi", "TRY": "try"}
FUNCTIONS: tuple[tuple[str, AggregateFunction], ...] = (
    ("Count", "count"), ("Sum", "sum"), ("Min", "min"), ("Max", "max"), ("Average", "avg"),
)  # fmt: skip
AGGREGATES: Mapping[str, AggregateFunction] = {
    f"org.apache.spark.sql.catalyst.expressions.aggregate.{node}": function
    for node, function in FUNCTIONS
}
COMPARISONS: Mapping[str, Operator] = {
    "EqualTo": "=", "EqualNullSafe": "<=>", "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">", "GreaterThanOrEqual": ">=",
}  # fmt: skip
TEXTS: Mapping[str, type[StartsWith] | type[EndsWith] | type[Contains]] = {
    "StartsWith": StartsWith, "EndsWith": EndsWith, "Contains": Contains,
}  # fmt: skip


def decode(tree: Tree | Sequence[Tree], schema: Schema, context: Context, names: Mapping[str, str] | None = None) -> Predicate:
    """The filter, or the conjunction of a list of filters, normalised. Not understood is Opaque; malformed is a KeyError.

    Columns are found by their physical names, or by ``names``, from what Spark calls a top-level column to its logical name.
    """
    reader = _Reader(schema, context, names)
    trees = [tree] if isinstance(tree, Mapping) else tree
    return normalize(And(tuple(reader.predicate(each) for each in trees)), context) if trees else Compare("=", TRUE, TRUE)


def decode_aggregation(question: Mapping[str, Any], schema: Schema, context: Context) -> tuple[Aggregation, tuple[bool, ...]]:
    """The ``groups`` and ``aggregates`` of a question, columns by their physical names; and which aggregates are *unscaled*.

    Those Spark computes of decimals' digits, as integers. Raises Unaggregatable, which says why.
    """
    reader = _Reader(schema, context, None)

    def term(tree: Tree) -> Term:
        try:
            return reader.term(tree)
        except _Unknown:
            raise Unaggregatable(f"only Spark understands {shown(tree)}") from None

    read = [_aggregate(found, term) for found in question["aggregates"]]
    asked = Aggregation(tuple(term(tree) for tree in question["groups"]), tuple(aggregate for aggregate, _ in read))
    asked.check()
    return asked, tuple(unscaled for _, unscaled in read)


def _aggregate(found: Mapping[str, Any], term: Callable[[Tree], Term]) -> tuple[Aggregate, bool]:
    function = AGGREGATES.get(found["function"])
    if function is None or len(found["arguments"]) != 1:
        raise Unaggregatable(f"no index keeps {found['function'].rpartition('.')[2]} of {len(found['arguments'])} arguments")
    [tree] = found["arguments"]
    if tree["node"] == "UnscaledValue" and function in ("sum", "avg"):
        return Aggregate(function, term(tree["children"][0])), True
    argument = term(tree)
    if isinstance(argument, Literal):
        if function != "count" or argument.value is None:
            raise Unaggregatable(f"{function} of a constant")
        argument = ROW
    made = Aggregate(function, argument)
    if made.type != spark_types.from_json(found["type"]):
        raise Unaggregatable(f"{function} is {found['type']} to Spark, and {made.type} here")
    return made, False


class _Unknown(Exception):
    """Only Spark knows what this means."""

    def __init__(self, reason: Reason = Reason.LEAF_UNSUPPORTED) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class _Reader:
    schema: Schema
    context: Context
    names: Mapping[str, str] | None

    def predicate(self, tree: Tree) -> Predicate:
        match tree["node"]:
            case "And":
                return And(tuple(self.predicate(part) for part in _chain(tree)))
            case "Or":
                return Or(tuple(self.predicate(part) for part in _chain(tree)))
            case "Not":
                return Not(self.predicate(tree["children"][0]))
            case "IsNotNull":
                return Not(self.predicate({**tree, "node": "IsNull"}))
        try:
            return CONDITIONS.get(tree["node"], _Reader._truth)(self, tree)
        except _Unknown as unknown:
            return Opaque(shown(tree), unknown.reason)

    def term(self, tree: Tree) -> Term:
        if tree["node"] not in TERMS:
            raise _Unknown
        return TERMS[tree["node"]](self, tree)

    # --- conditions -------------------------------------------------------------------------------------------

    def _truth(self, tree: Tree) -> Predicate:
        term = self.term(tree)
        if term.type != pa.bool_():
            raise _Unknown(Reason.TYPE_MISMATCH)
        return Compare("=", term, TRUE)

    def _compare(self, tree: Tree) -> Predicate:
        left, right = (self.term(child) for child in tree["children"])
        if left.type != right.type or is_.is_nested(left.type):
            raise _Unknown(Reason.TYPE_MISMATCH)
        return Compare(COMPARISONS[tree["node"]], left, right)

    def _in(self, tree: Tree) -> Predicate:
        if (call := marked(tree, self.term)) is not None:
            return call
        term, *listed = (self.term(child) for child in tree["children"])
        values = [value for value in listed if isinstance(value, Literal) and value.type == term.type]
        if tree["node"] == "InSet":
            values = [Literal(_value(value, term.type), term.type) for value in tree["values"]]
        elif len(values) < len(listed):
            raise _Unknown
        if not values or is_.is_nested(term.type):
            raise _Unknown  # what an empty list means on NULL depends on the session
        return In(term, tuple(values))

    def _is_null(self, tree: Tree) -> Predicate:
        return IsNull(self.term(tree["children"][0]))

    def _is_nan(self, tree: Tree) -> Predicate:
        term = self.term(tree["children"][0])
        return Compare("<=>", term, Literal(math.nan, term.type))

    def _text(self, tree: Tree) -> Predicate:
        value, part = (self.term(child) for child in tree["children"])
        if {value.type, part.type} not in ({pa.string()}, {pa.binary()}):
            raise _Unknown(Reason.TYPE_MISMATCH)
        return TEXTS[tree["node"]](value, part)

    def _like(self, tree: Tree) -> Predicate:
        value, pattern = (self.term(child) for child in tree["children"])
        if {value.type, pattern.type} != {pa.string()} or not isinstance(pattern, Literal):
            raise _Unknown
        try:
            Pattern.parse(pattern.value or "", tree["escape"])
        except ValueError:
            raise _Unknown from None  # Spark raises too, but only when it comes to a row
        return Like(value, pattern, tree["escape"])

    # --- terms ------------------------------------------------------------------------------------------------

    def _attribute(self, tree: Tree) -> Column:
        field = self._field(tree)
        if not is_.is_struct(field.type) and spark_types.from_json(tree["type"]) != field.type:
            raise _Unknown(Reason.TYPE_MISMATCH if isinstance(tree["type"], str) else Reason.LEAF_UNSUPPORTED)
        return Column((field.name,), field.type)

    def _field(self, tree: Tree) -> Field:
        if not tree["ours"]:
            raise _Unknown
        if spark_types.compares_specially(tree["metadata"]) or " collate " in str(tree["type"]):
            raise _Unknown(Reason.COLLATION)
        name = tree["name"] if self.names is None else self.names.get(tree["name"])
        for field in self.schema.fields:
            if name == (field.physical if self.names is None else field.name):
                return field
        raise _Unknown

    def _struct_field(self, tree: Tree) -> Term:
        names, root = self._member(tree)
        if root["node"] == "JsonToStructs":
            return self._from_json(tree, names, root)
        path, field = self._path(tree)
        if not is_.is_struct(field.type) and spark_types.from_json(tree["type"]) != field.type:
            raise _Unknown(Reason.TYPE_MISMATCH)
        return Column(path, field.type)

    def _path(self, tree: Tree) -> tuple[tuple[str, ...], Field]:
        """Fields by name, since Spark leaves out those that a query does not need."""
        if tree["node"] == "AttributeReference":
            field = self._field(tree)
            return (field.name,), field
        if tree["node"] != "GetStructField":
            raise _Unknown
        inner = tree["children"][0]
        above, parent = self._path(inner)
        described = inner["type"]["fields"][tree["ordinal"]]
        if spark_types.compares_specially(described["metadata"]) or " collate " in str(tree["type"]):
            raise _Unknown(Reason.COLLATION)
        for field in parent.children:
            if is_.is_struct(parent.type) and field.physical == described["name"]:
                return (*above, field.name), field
        raise _Unknown

    def _member(self, tree: Tree) -> tuple[list[str], Tree]:
        """The names of the fields that lead to a value, and what they begin at."""
        if tree["node"] != "GetStructField":
            return [], tree
        above, root = self._member(tree["children"][0])
        return [*above, tree["children"][0]["type"]["fields"][tree["ordinal"]]["name"]], root

    def _from_json(self, tree: Tree, names: Sequence[str], parsed: Tree) -> JsonPath:
        kind = spark_types.from_json(tree["type"])
        path = json_paths.text_of(names)
        if parsed["options"] or kind is None or is_.is_nested(kind) or json_paths.parse(path) != tuple(names):
            raise _Unknown  # names with quotes, blanks in front, or a star are no names in a path
        return self._json_value(parsed["children"][0], path, kind, "from_json")

    def _variant_get(self, tree: Tree) -> JsonPath:
        return self._of_variant(tree, spark_types.from_json(tree["type"]))

    def _of_variant(self, tree: Tree, kind: pa.DataType | None) -> JsonPath:
        """A value of a VARIANT that is made of text on the spot."""
        parsed, path = tree["children"]
        made = parsed["node"] == "StaticInvoke" and str(parsed["object"]).endswith(".VariantExpressionEvalUtils$") and parsed["function"]
        if made != "parseJson" or kind is None or is_.is_nested(kind) or path["node"] != "Literal" or not isinstance(path["value"], str):
            raise _Unknown
        if not VARIANT_PATH.fullmatch(path["value"]) or tree["zone"] != self.context.time_zone:
            raise _Unknown
        return self._json_value(parsed["children"][0], path["value"], kind, "variant_get")

    def _json_value(self, document: Tree, path: str, kind: pa.DataType, function: JsonFunction) -> JsonPath:
        found = self.term(document)
        if found.type != pa.string():
            raise _Unknown
        return JsonPath(found, path, kind, function)

    def _literal(self, tree: Tree) -> Literal:
        kind = spark_types.from_json(tree["type"])
        if kind is None or is_.is_nested(kind):
            raise _Unknown(Reason.COLLATION if " collate " in str(tree["type"]) else Reason.LEAF_UNSUPPORTED)
        return Literal(_value(tree["value"], kind), kind)

    def _cast(self, tree: Tree) -> Term:
        kind = spark_types.from_json(tree["type"])
        if tree["children"][0]["node"] == "VariantGet" and tree["children"][0]["type"] == "variant":
            return self._of_variant(tree["children"][0], kind)
        inner = self.term(tree["children"][0])
        if kind is None or is_.is_nested(kind) or is_.is_nested(inner.type):
            raise _Unknown
        if TIMESTAMP in (inner.type, kind) and tree["zone"] != self.context.time_zone:
            raise _Unknown(Reason.SESSION_SEMANTICS)
        cast = Cast(inner, kind, MODES[tree["evalMode"]])
        return self._folded(cast, inner) if isinstance(inner, Literal) else cast

    def _folded(self, cast: Cast, inner: Literal) -> Term:
        try:
            value = cast_value(inner.value, inner.type, cast.type, cast.mode, self.context)
        except times.Unsure:
            return cast
        fails = value is None and inner.value is not None and cast.mode == "ansi"
        return cast if fails else Literal(value, cast.type)

    def _scalar(self, tree: Tree) -> Term:
        (argument,), name = (self.term(child) for child in tree["children"]), BY_NODE[tree["node"]]
        if argument.type != SCALARS[name].argument:
            raise _Unknown(Reason.TYPE_MISMATCH)
        return Call(name, (argument,), SCALARS[name].result)

    def _date_trunc(self, tree: Tree) -> Term:
        unit, argument = (self.term(child) for child in tree["children"])
        if not isinstance(unit, Literal) or str(unit.value).upper() not in UNITS or argument.type != TIMESTAMP:
            raise _Unknown
        if tree["zone"] != self.context.time_zone:
            raise _Unknown(Reason.SESSION_SEMANTICS)
        return Call(DATE_TRUNC, (Literal(UNITS[unit.value.upper()], pa.string()), argument), TIMESTAMP)

    def _json(self, tree: Tree) -> Term:
        document, path = (self.term(child) for child in tree["children"])
        if document.type != pa.string() or not isinstance(path, Literal) or not isinstance(path.value, str):
            raise _Unknown
        return JsonPath(document, path.value)


CONDITIONS: dict[str, Callable[[_Reader, Tree], Predicate]] = {
    **dict.fromkeys(COMPARISONS, _Reader._compare),
    **dict.fromkeys(("In", "InSet"), _Reader._in),
    **dict.fromkeys(TEXTS, _Reader._text),
    "IsNull": _Reader._is_null,
    "IsNaN": _Reader._is_nan,
    "Like": _Reader._like,
}
TERMS: dict[str, Callable[[_Reader, Tree], Term]] = {
    "AttributeReference": _Reader._attribute,
    "GetStructField": _Reader._struct_field,
    "Literal": _Reader._literal,
    "Cast": _Reader._cast,
    "GetJsonObject": _Reader._json,
    "VariantGet": _Reader._variant_get,
    "TruncTimestamp": _Reader._date_trunc,
    **dict.fromkeys(BY_NODE, _Reader._scalar),
}
"""By class: another class that is understood is another line here."""


def shown(tree: Tree) -> str:
    """The tree for people, in the manner of Spark's plans."""
    match tree:
        case {"node": "Literal", "value": value}:
            return str(value)
        case {"node": "AttributeReference", "name": name}:
            return str(name)
        case {"node": node, "children": children}:
            return f"{str(node).rpartition('.')[2]}({', '.join(shown(child) for child in children)})"
        case _:
            return "…"


def _chain(tree: Tree) -> list[Tree]:
    """The parts of a chain of ANDs or ORs, however deep Spark nests them."""
    parts, waiting = [], [tree]
    while waiting:
        each = waiting.pop()
        if each["node"] == tree["node"]:
            waiting.extend(reversed(each["children"]))
        else:
            parts.append(each)
    return parts


def _value(value: Any, kind: pa.DataType) -> Any:
    """A literal's internal value, as Python has it."""
    try:
        return spark_values.read(value, kind)
    except (ValueError, OverflowError, InvalidOperation):
        raise _Unknown(Reason.TYPE_MISMATCH) from None  # a day or an instant that Python has no value for
