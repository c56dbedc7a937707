"""Terms and conditions as JSON, for index definitions: columns by field id, so that a definition survives renames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

import pyarrow as pa

from fuse_index.errors import TermError
from fuse_index.expressions import types
from fuse_index.expressions.arithmetic import ARITHMETIC_OPERATORS, arithmetic_type
from fuse_index.expressions.errors import AnalysisError, NotReproducible, UnsupportedExpression
from fuse_index.expressions.functions.library import LIBRARY
from fuse_index.expressions.traversal import predicate_leaves
from fuse_index.expressions.types import spark_type_name
from fuse_index.predicate import (
    And,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Contains,
    Context,
    EndsWith,
    In,
    IsNull,
    JsonPath,
    Leaf,
    Like,
    Literal,
    Not,
    Or,
    Predicate,
    StartsWith,
    Term,
)
from fuse_storage import Field, Schema

_PREDICATE_NODES: Mapping[str, type[Any]] = {
    node.__name__: node for node in (And, Or, Not, Compare, In, IsNull, StartsWith, EndsWith, Contains, Like)
}
"""Conditions, as they are stored by name; all but calls, which are terms."""


def encode_term(term: Term, schema: Schema) -> dict[str, Any]:
    """The term as values that JSON has. Raises SchemaError for a column that the schema does not have."""
    match term:
        case Column(path, _):
            return {"column": schema.find(path).id}
        case Literal(value, data_type):
            return {"literal": _written(value), "type": spark_type_name(data_type)}
        case Cast(inner, data_type, mode):
            return {"cast": encode_term(inner, schema), "type": spark_type_name(data_type), "mode": mode}
        case JsonPath(inner, path, data_type, function):
            if function != "get_json_object":
                raise TermError(
                    f"values of {function} are no term that is stored: an index of kind json_path is on the column"
                )
            return {"json": encode_term(inner, schema), "path": path, "type": spark_type_name(data_type)}
        case Call(name, arguments, data_type):
            return {
                "call": name,
                "arguments": [encode_term(argument, schema) for argument in arguments],
                "type": spark_type_name(data_type),
            }
        case Case(branches, otherwise):
            return {
                "case": [
                    {"when": encode_predicate(condition, schema), "then": encode_term(value, schema)}
                    for condition, value in branches
                ],
                "else": encode_term(otherwise, schema),
            }


def decode_term(encoded: Mapping[str, Any], schema: Schema) -> Term:
    """The term in the schema's present names and types. Raises TermError."""
    match encoded:
        case {"column": int(id)}:
            return _column(id, schema)
        case {"literal": value, "type": str(name)}:
            return Literal(_read(value, _type(name)), _type(name))
        case {"cast": inner, "type": str(name), "mode": ("legacy" | "ansi" | "try") as mode}:
            return Cast(decode_term(inner, schema), _type(name), mode)
        case {"json": inner, "path": str(path), "type": str(name)}:
            return JsonPath(decode_term(inner, schema), path, _type(name))
        case {"call": str(called), "arguments": list(arguments), "type": str(name)} if called in LIBRARY:
            return _rebuilt(called, tuple(decode_term(each, schema) for each in arguments), name)
        case {"call": str(called), "arguments": list(arguments), "type": str(name)}:
            return _checked(Call(called, tuple(decode_term(each, schema) for each in arguments), _type(name)))
        case {"case": list(branches), "else": otherwise}:
            decoded = Case(
                tuple(
                    (decode_predicate(branch["when"], schema), decode_term(branch["then"], schema))
                    for branch in branches
                ),
                decode_term(otherwise, schema),
            )
            return _checked(decoded)
        case _:
            raise TermError(
                f"a term {dict(encoded)!r} is not known to this version: upgrade fuse-index, or drop "
                f"and create the index again"
            )


def encode_predicate(predicate: Predicate, schema: Schema) -> dict[str, Any]:
    """The predicate as values that JSON has.

    Raises SchemaError for a column that the schema does not have, TermError for what is not understood.
    """
    if isinstance(predicate, Call):
        return {"term": encode_term(predicate, schema)}
    if type(predicate).__name__ not in _PREDICATE_NODES:
        raise TermError(f"only Spark understands {predicate}")

    def encoded(value: Any) -> Any:
        if isinstance(value, tuple):
            return [encoded(one) for one in value]
        if isinstance(value, str):
            return value
        return {"term": encode_term(value, schema)} if isinstance(value, Term) else encode_predicate(value, schema)

    return {
        "node": type(predicate).__name__,
        **{field.name: encoded(getattr(predicate, field.name)) for field in fields(predicate)},
    }


def decode_predicate(encoded: Any, schema: Schema) -> Any:
    """The predicate in the schema's present names and types. Raises TermError."""
    match encoded:
        case list():
            return tuple(decode_predicate(one, schema) for one in encoded)
        case str():
            return encoded
        case {"node": str(node), **parts} if node in _PREDICATE_NODES:
            return _PREDICATE_NODES[node](**{str(name): decode_predicate(part, schema) for name, part in parts.items()})
        case {"term": term}:
            return decode_term(term, schema)
        case _:
            raise TermError(
                f"a condition {encoded!r} is not known to this version: upgrade fuse-index, or drop "
                f"and create the index again"
            )


def _checked(term: Call | Case) -> Call | Case:
    """The term, if its parts are still of the types that it was made for. Raises TermError: a column may be wider."""
    match term:
        case Call(name, (left, right), data_type) if name in ARITHMETIC_OPERATORS:
            is_sound = arithmetic_type(name, left.type, right.type) == data_type
        case Call("-" | "~", (operand,), data_type):
            is_sound = operand.type == data_type
        case Case(branches, otherwise):
            leaves = [leaf for condition, _ in branches for leaf in predicate_leaves(condition)]
            is_sound = all(value.type == otherwise.type for _, value in branches) and all(map(_compares_alike, leaves))
        case _:
            is_sound = True
    if not is_sound:
        raise TermError("its columns have other types by now: drop the index, and create it again")
    return term


def _rebuilt(called: str, arguments: Sequence[Term], type_name: str) -> Term:
    """The call of a function of the library, if it is still of that type. Raises TermError."""
    try:
        made = LIBRARY[called].build(arguments, Context())
    except (AnalysisError, NotReproducible, UnsupportedExpression) as refusal:
        raise TermError(f"{refusal}: drop the index, and create it again") from refusal
    if not isinstance(made, Call) or made.arguments != arguments or spark_type_name(made.type) != type_name:
        raise TermError("its columns have other types by now: drop the index, and create it again")
    return made


def _compares_alike(leaf: Leaf) -> bool:
    match leaf:
        case Compare(_, left, right):
            return bool(left.type == right.type)
        case In(term):
            return leaf.types == [term.type]
        case _:
            return True


def _column(column_id: int, schema: Schema) -> Column:
    for top in schema.fields:
        if (found := _within(top, column_id)) is not None:
            return Column(tuple(field.name for field in found), found[-1].type)
    raise TermError(f"the column with id {column_id} is no longer in the table: drop the index")


def _within(field: Field, column_id: int) -> list[Field] | None:
    if field.id == column_id:
        return [field]
    for child in field.children if pa.types.is_struct(field.type) else ():
        if (found := _within(child, column_id)) is not None:
            return [field, *found]
    return None


def _type(name: str) -> pa.DataType:
    data_type = types.type_from_spark_name(name)
    if data_type is None:
        raise TermError(f"type {name!r} is not known to this version: upgrade fuse-index")
    return data_type


def _written(value: Any) -> Any:
    """What JSON has a word for stays; all else as the text that a cast reads back."""
    match value:
        case None | bool() | int() | str():
            return value
        case bytes():
            return value.hex()
        case _:
            return str(value)


def _read(value: Any, data_type: pa.DataType) -> Any:
    if value is None or isinstance(value, bool | int) or pa.types.is_string(data_type):
        return value
    if pa.types.is_binary(data_type):
        return bytes.fromhex(value)
    if pa.types.is_floating(data_type):
        return float(value)
    return pa.scalar(value).cast(data_type).as_py()
