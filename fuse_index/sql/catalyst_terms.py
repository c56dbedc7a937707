"""Terms in the trees of Spark's planner: columns, literals, casts, JSON paths and the functions known here.

``catalyst.py`` says what a tree is, and reads the conditions around them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from fuse_index.expressions import literals, types
from fuse_index.expressions.coercion import cast_literal
from fuse_index.expressions.errors import NotReproducible, UnsupportedExpression
from fuse_index.expressions.json import path as json_paths
from fuse_index.expressions.scalar_functions import (
    DATE_TRUNC,
    DATE_TRUNC_UNITS,
    FUNCTION_BY_CATALYST_CLASS,
    SCALAR_FUNCTIONS,
)
from fuse_index.expressions.variant.get import VARIANT_PATH
from fuse_index.predicate import Call, Cast, CastMode, Column, Context, JsonFunction, JsonPath, Literal, Term
from fuse_index.reasons import Reason
from fuse_index.sql.call_markers import is_call_value
from fuse_storage import Field, Schema, is_variant

CatalystTree = Mapping[str, Any]

_TIMESTAMP = pa.timestamp("us", "UTC")
_CAST_MODES: Mapping[str, CastMode] = {"LEGACY": "legacy", "ANSI": "ansi", "TRY": "try"}


@dataclass(frozen=True)
class CatalystTermReader:
    """``call``: the call of a plugin's function whose value conditions are on, where they are in the text of a mark."""

    schema: Schema
    context: Context
    arithmetic: bool = False
    call: Call | None = None

    def term(self, tree: CatalystTree) -> Term:
        if tree["node"] not in _TERMS:
            raise UnsupportedExpression
        if self.call is not None and is_call_value(tree):
            return self.call
        return _TERMS[tree["node"]](self, tree)

    def attribute(self, tree: CatalystTree) -> Column:
        field = self._field(tree)
        if not is_.is_struct(field.type) and types.type_from_spark_json(tree["type"]) != field.type:
            raise UnsupportedExpression(
                reason=Reason.TYPE_MISMATCH if isinstance(tree["type"], str) else Reason.LEAF_UNSUPPORTED
            )
        return Column((field.name,), field.type)

    def _field(self, tree: CatalystTree) -> Field:
        if not tree["ours"]:
            raise UnsupportedExpression
        if types.is_char_or_collated(tree["metadata"]) or " collate " in str(tree["type"]):
            raise UnsupportedExpression(reason=Reason.COLLATION)
        for field in self.schema.fields:
            if field.name == tree["name"]:
                return field
        raise UnsupportedExpression

    def struct_field(self, tree: CatalystTree) -> Term:
        names, root = self._member(tree)
        if root["node"] == "JsonToStructs":
            return self._from_json(tree, names, root)
        path, field = self._path(tree)
        if not is_.is_struct(field.type) and types.type_from_spark_json(tree["type"]) != field.type:
            raise UnsupportedExpression(reason=Reason.TYPE_MISMATCH)
        return Column(path, field.type)

    def _path(self, tree: CatalystTree) -> tuple[tuple[str, ...], Field]:
        """Fields by name, since Spark leaves out those that a query does not need."""
        if tree["node"] == "AttributeReference":
            field = self._field(tree)
            return (field.name,), field
        if tree["node"] != "GetStructField":
            raise UnsupportedExpression
        inner = tree["children"][0]
        above, parent = self._path(inner)
        described = inner["type"]["fields"][tree["ordinal"]]
        if types.is_char_or_collated(described["metadata"]) or " collate " in str(tree["type"]):
            raise UnsupportedExpression(reason=Reason.COLLATION)
        for field in parent.children:
            if is_.is_struct(parent.type) and field.name == described["name"]:
                return (*above, field.name), field
        raise UnsupportedExpression

    def _member(self, tree: CatalystTree) -> tuple[list[str], CatalystTree]:
        """The names of the fields that lead to a value, and what they begin at."""
        if tree["node"] != "GetStructField":
            return [], tree
        above, root = self._member(tree["children"][0])
        return [*above, tree["children"][0]["type"]["fields"][tree["ordinal"]]["name"]], root

    def _from_json(self, tree: CatalystTree, names: Sequence[str], parsed: CatalystTree) -> JsonPath:
        data_type = types.type_from_spark_json(tree["type"])
        path = json_paths.path_from_names(names)
        if (
            parsed["options"]
            or data_type is None
            or types.is_compound(data_type)
            or json_paths.parse(path) != tuple(names)
        ):
            raise UnsupportedExpression  # names with quotes, blanks in front, or a star are no names in a path
        return self._json_value(parsed["children"][0], path, data_type, "from_json")

    def variant_get(self, tree: CatalystTree) -> JsonPath:
        return self._of_variant(tree, types.type_from_spark_json(tree["type"]), not tree["failOnError"])

    def _of_variant(self, tree: CatalystTree, data_type: pa.DataType | None, tries: bool) -> JsonPath:
        """A value in a VARIANT. ``tries``: NULL where a cast fails, where else Spark raises."""
        source, path = tree["children"]
        if path["node"] != "Literal" or not isinstance(path["value"], str):
            raise UnsupportedExpression
        return self._variant_value(source, path["value"], data_type, tree["zone"], tries)

    def _variant_value(
        self, source: CatalystTree, path: str, data_type: pa.DataType | None, zone: str, tries: bool
    ) -> JsonPath:
        """A value in a column of VARIANT, or in one that is made of text on the spot."""
        if data_type is None or types.is_compound(data_type):
            raise UnsupportedExpression
        if not VARIANT_PATH.fullmatch(path) or zone != self.context.time_zone:
            raise UnsupportedExpression
        function: JsonFunction = "try_variant_get" if tries else "variant_get"
        if source["node"] in ("AttributeReference", "GetStructField") and source["type"] == "variant":
            column = self.term(source)
            if not is_variant(column.type):
                raise UnsupportedExpression
            return JsonPath(column, path, data_type, function)
        made = (
            source["node"] == "StaticInvoke"
            and str(source["object"]).endswith(".VariantExpressionEvalUtils$")
            and source["function"]
        )
        if made != "parseJson":
            raise UnsupportedExpression
        return self._json_value(source["children"][0], path, data_type, function)

    def _json_value(
        self, document: CatalystTree, path: str, data_type: pa.DataType, function: JsonFunction
    ) -> JsonPath:
        found = self.term(document)
        if found.type != pa.string():
            raise UnsupportedExpression
        return JsonPath(found, path, data_type, function)

    def literal(self, tree: CatalystTree) -> Literal:
        data_type = types.type_from_spark_json(tree["type"])
        if data_type is None or types.is_compound(data_type):
            raise UnsupportedExpression(
                reason=Reason.COLLATION if " collate " in str(tree["type"]) else Reason.LEAF_UNSUPPORTED
            )
        return Literal(decode_catalyst_value(tree["value"], data_type), data_type)

    def cast(self, tree: CatalystTree) -> Term:
        data_type = types.type_from_spark_json(tree["type"])
        if tree["children"][0]["node"] == "VariantGet" and tree["children"][0]["type"] == "variant":
            return self._of_variant(tree["children"][0], data_type, tree["evalMode"] == "TRY")
        if tree["children"][0]["type"] == "variant":
            return self._variant_value(tree["children"][0], "$", data_type, tree["zone"], tree["evalMode"] == "TRY")
        inner = self.term(tree["children"][0])
        if data_type is None or types.is_compound(data_type) or types.is_compound(inner.type):
            raise UnsupportedExpression
        if _TIMESTAMP in (inner.type, data_type) and tree["zone"] != self.context.time_zone:
            raise UnsupportedExpression(reason=Reason.SESSION_SEMANTICS)
        cast = Cast(inner, data_type, _CAST_MODES[tree["evalMode"]])
        return self._folded(cast, inner) if isinstance(inner, Literal) else cast

    def _folded(self, cast: Cast, inner: Literal) -> Term:
        try:
            value = cast_literal(inner, cast.type, cast.mode, self.context)
        except NotReproducible:
            return cast
        fails = value is None and inner.value is not None and cast.mode == "ansi"
        return cast if fails else Literal(value, cast.type)

    def scalar_function(self, tree: CatalystTree) -> Term:
        (argument,), name = (self.term(child) for child in tree["children"]), FUNCTION_BY_CATALYST_CLASS[tree["node"]]
        if argument.type != SCALAR_FUNCTIONS[name].argument_type:
            raise UnsupportedExpression(reason=Reason.TYPE_MISMATCH)
        return Call(name, (argument,), SCALAR_FUNCTIONS[name].result_type)

    def date_trunc(self, tree: CatalystTree) -> Term:
        unit, argument = (self.term(child) for child in tree["children"])
        if (
            not isinstance(unit, Literal)
            or str(unit.value).upper() not in DATE_TRUNC_UNITS
            or argument.type != _TIMESTAMP
        ):
            raise UnsupportedExpression
        if tree["zone"] != self.context.time_zone:
            raise UnsupportedExpression(reason=Reason.SESSION_SEMANTICS)
        return Call(DATE_TRUNC, (Literal(DATE_TRUNC_UNITS[unit.value.upper()], pa.string()), argument), _TIMESTAMP)

    def get_json_object(self, tree: CatalystTree) -> Term:
        document, path = (self.term(child) for child in tree["children"])
        if document.type != pa.string() or not isinstance(path, Literal) or not isinstance(path.value, str):
            raise UnsupportedExpression
        return JsonPath(document, path.value)


_TERMS: dict[str, Callable[[CatalystTermReader, CatalystTree], Term]] = {
    "AttributeReference": CatalystTermReader.attribute,
    "GetStructField": CatalystTermReader.struct_field,
    "Literal": CatalystTermReader.literal,
    "Cast": CatalystTermReader.cast,
    "GetJsonObject": CatalystTermReader.get_json_object,
    "VariantGet": CatalystTermReader.variant_get,
    "TruncTimestamp": CatalystTermReader.date_trunc,
    **dict.fromkeys(FUNCTION_BY_CATALYST_CLASS, CatalystTermReader.scalar_function),
}
"""By class: another class that is understood is another line here."""


def decode_catalyst_value(value: Any, data_type: pa.DataType) -> Any:
    """A literal's internal value, as Python has it."""
    try:
        return literals.decode_literal(value, data_type)
    except (ValueError, OverflowError, InvalidOperation):
        raise UnsupportedExpression(
            reason=Reason.TYPE_MISMATCH
        ) from None  # a day or an instant that Python has no value for
