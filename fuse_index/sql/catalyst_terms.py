"""Terms in the typed trees that Spark's planner sends: columns, literals, casts, JSON paths and the functions known
here.

``catalyst.py`` says what a tree is, and reads the conditions around them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import InvalidOperation
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from fuse_index.expressions import datetimes, literals, types
from fuse_index.expressions.casts import cast_value
from fuse_index.expressions.json import path as json_paths
from fuse_index.expressions.scalar_functions import BY_NODE, DATE_TRUNC, SCALARS, UNITS
from fuse_index.predicate import Call, Cast, CastMode, Column, Context, JsonFunction, JsonPath, Literal, Term
from fuse_index.reasons import Reason
from fuse_storage import Field, Schema

Tree = Mapping[str, Any]

VARIANT_PATH = re.compile(r"\$(?:\.[A-Za-z_][A-Za-z0-9_]*|\['[^'\"\[\]?*\s][^'\"\[\]?]*'\]|\[[0-9]{1,9}\])*")
"""Paths that ``variant_get`` and ``get_json_object`` read alike."""
TIMESTAMP = pa.timestamp("us", "UTC")
MODES: Mapping[str, CastMode] = {"LEGACY": "legacy", "ANSI": "ansi", "TRY": "try"}


class Unknown(Exception):
    """Only Spark knows what this means."""

    def __init__(self, reason: Reason = Reason.LEAF_UNSUPPORTED) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class TermReader:
    schema: Schema
    context: Context
    names: Mapping[str, str] | None

    def term(self, tree: Tree) -> Term:
        if tree["node"] not in TERMS:
            raise Unknown
        return TERMS[tree["node"]](self, tree)

    def _attribute(self, tree: Tree) -> Column:
        field = self._field(tree)
        if not is_.is_struct(field.type) and types.from_json(tree["type"]) != field.type:
            raise Unknown(Reason.TYPE_MISMATCH if isinstance(tree["type"], str) else Reason.LEAF_UNSUPPORTED)
        return Column((field.name,), field.type)

    def _field(self, tree: Tree) -> Field:
        if not tree["ours"]:
            raise Unknown
        if types.compares_specially(tree["metadata"]) or " collate " in str(tree["type"]):
            raise Unknown(Reason.COLLATION)
        name = tree["name"] if self.names is None else self.names.get(tree["name"])
        for field in self.schema.fields:
            if name == (field.physical if self.names is None else field.name):
                return field
        raise Unknown

    def _struct_field(self, tree: Tree) -> Term:
        names, root = self._member(tree)
        if root["node"] == "JsonToStructs":
            return self._from_json(tree, names, root)
        path, field = self._path(tree)
        if not is_.is_struct(field.type) and types.from_json(tree["type"]) != field.type:
            raise Unknown(Reason.TYPE_MISMATCH)
        return Column(path, field.type)

    def _path(self, tree: Tree) -> tuple[tuple[str, ...], Field]:
        """Fields by name, since Spark leaves out those that a query does not need."""
        if tree["node"] == "AttributeReference":
            field = self._field(tree)
            return (field.name,), field
        if tree["node"] != "GetStructField":
            raise Unknown
        inner = tree["children"][0]
        above, parent = self._path(inner)
        described = inner["type"]["fields"][tree["ordinal"]]
        if types.compares_specially(described["metadata"]) or " collate " in str(tree["type"]):
            raise Unknown(Reason.COLLATION)
        for field in parent.children:
            if is_.is_struct(parent.type) and field.physical == described["name"]:
                return (*above, field.name), field
        raise Unknown

    def _member(self, tree: Tree) -> tuple[list[str], Tree]:
        """The names of the fields that lead to a value, and what they begin at."""
        if tree["node"] != "GetStructField":
            return [], tree
        above, root = self._member(tree["children"][0])
        return [*above, tree["children"][0]["type"]["fields"][tree["ordinal"]]["name"]], root

    def _from_json(self, tree: Tree, names: Sequence[str], parsed: Tree) -> JsonPath:
        kind = types.from_json(tree["type"])
        path = json_paths.text_of(names)
        if parsed["options"] or kind is None or is_.is_nested(kind) or json_paths.parse(path) != tuple(names):
            raise Unknown  # names with quotes, blanks in front, or a star are no names in a path
        return self._json_value(parsed["children"][0], path, kind, "from_json")

    def _variant_get(self, tree: Tree) -> JsonPath:
        return self._of_variant(tree, types.from_json(tree["type"]))

    def _of_variant(self, tree: Tree, kind: pa.DataType | None) -> JsonPath:
        """A value of a VARIANT that is made of text on the spot."""
        parsed, path = tree["children"]
        made = (
            parsed["node"] == "StaticInvoke"
            and str(parsed["object"]).endswith(".VariantExpressionEvalUtils$")
            and parsed["function"]
        )
        if (
            made != "parseJson"
            or kind is None
            or is_.is_nested(kind)
            or path["node"] != "Literal"
            or not isinstance(path["value"], str)
        ):
            raise Unknown
        if not VARIANT_PATH.fullmatch(path["value"]) or tree["zone"] != self.context.time_zone:
            raise Unknown
        return self._json_value(parsed["children"][0], path["value"], kind, "variant_get")

    def _json_value(self, document: Tree, path: str, kind: pa.DataType, function: JsonFunction) -> JsonPath:
        found = self.term(document)
        if found.type != pa.string():
            raise Unknown
        return JsonPath(found, path, kind, function)

    def _literal(self, tree: Tree) -> Literal:
        kind = types.from_json(tree["type"])
        if kind is None or is_.is_nested(kind):
            raise Unknown(Reason.COLLATION if " collate " in str(tree["type"]) else Reason.LEAF_UNSUPPORTED)
        return Literal(value_of(tree["value"], kind), kind)

    def _cast(self, tree: Tree) -> Term:
        kind = types.from_json(tree["type"])
        if tree["children"][0]["node"] == "VariantGet" and tree["children"][0]["type"] == "variant":
            return self._of_variant(tree["children"][0], kind)
        inner = self.term(tree["children"][0])
        if kind is None or is_.is_nested(kind) or is_.is_nested(inner.type):
            raise Unknown
        if TIMESTAMP in (inner.type, kind) and tree["zone"] != self.context.time_zone:
            raise Unknown(Reason.SESSION_SEMANTICS)
        cast = Cast(inner, kind, MODES[tree["evalMode"]])
        return self._folded(cast, inner) if isinstance(inner, Literal) else cast

    def _folded(self, cast: Cast, inner: Literal) -> Term:
        try:
            value = cast_value(inner.value, inner.type, cast.type, cast.mode, self.context)
        except datetimes.Unsure:
            return cast
        fails = value is None and inner.value is not None and cast.mode == "ansi"
        return cast if fails else Literal(value, cast.type)

    def _scalar(self, tree: Tree) -> Term:
        (argument,), name = (self.term(child) for child in tree["children"]), BY_NODE[tree["node"]]
        if argument.type != SCALARS[name].argument:
            raise Unknown(Reason.TYPE_MISMATCH)
        return Call(name, (argument,), SCALARS[name].result)

    def _date_trunc(self, tree: Tree) -> Term:
        unit, argument = (self.term(child) for child in tree["children"])
        if not isinstance(unit, Literal) or str(unit.value).upper() not in UNITS or argument.type != TIMESTAMP:
            raise Unknown
        if tree["zone"] != self.context.time_zone:
            raise Unknown(Reason.SESSION_SEMANTICS)
        return Call(DATE_TRUNC, (Literal(UNITS[unit.value.upper()], pa.string()), argument), TIMESTAMP)

    def _json(self, tree: Tree) -> Term:
        document, path = (self.term(child) for child in tree["children"])
        if document.type != pa.string() or not isinstance(path, Literal) or not isinstance(path.value, str):
            raise Unknown
        return JsonPath(document, path.value)


TERMS: dict[str, Callable[[TermReader, Tree], Term]] = {
    "AttributeReference": TermReader._attribute,
    "GetStructField": TermReader._struct_field,
    "Literal": TermReader._literal,
    "Cast": TermReader._cast,
    "GetJsonObject": TermReader._json,
    "VariantGet": TermReader._variant_get,
    "TruncTimestamp": TermReader._date_trunc,
    **dict.fromkeys(BY_NODE, TermReader._scalar),
}
"""By class: another class that is understood is another line here."""


def value_of(value: Any, kind: pa.DataType) -> Any:
    """A literal's internal value, as Python has it."""
    try:
        return literals.read(value, kind)
    except (ValueError, OverflowError, InvalidOperation):
        raise Unknown(Reason.TYPE_MISMATCH) from None  # a day or an instant that Python has no value for
