"""Functions of arrays and maps: elements, sizes, what is in them. Elements of plain types, compared as Spark does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from fuse_index.expressions.coercion import INTEGER_TYPES, coerce_term, common_type
from fuse_index.expressions.errors import SparkWouldRaise, UnsupportedExpression
from fuse_index.expressions.functions.signature import (
    BOOLEAN,
    INT,
    LONG,
    TEXT,
    Evaluation,
    SparkFunction,
    argument,
    check_count,
    constant_of,
)
from fuse_index.expressions.types import is_compound, spark_type_name
from fuse_index.expressions.value_set import sort_key
from fuse_index.predicate import Call, Context, Literal, Term
from fuse_storage import holds_variant, is_variant

_ANSI = frozenset({"ansi"})
_ONE_ELEMENT = ("[]", "get", "element_at", "try_element_at")
"""The functions that give one element."""


def _element_type(name: str, term: Term) -> pa.DataType:
    """The type of an array's elements. Raises UnsupportedExpression, also for what is no array."""
    if not is_.is_list(term.type) or not _may_be_element(name, term.type.value_type):
        what = "an element [ ]" if name == "[]" else f"{name}()"
        if not is_.is_nested(term.type):
            takes = "an array or a map" if name in ("[]", "element_at", "try_element_at") else "an array"
            raise UnsupportedExpression(f"{what} is of {takes}, and this is {spark_type_name(term.type)}")
        raise UnsupportedExpression(f"{what} of {spark_type_name(term.type)}")
    return term.type.value_type


def _may_be_element(name: str, data_type: pa.DataType) -> bool:
    """Whether a function takes arrays of this type: those that compare nothing also such of VARIANT."""
    return not is_compound(data_type) or (is_variant(data_type) and name in _ONE_ELEMENT)


def _beside(name: str, term: Term, data_type: pa.DataType, context: Context) -> Term:
    """A value of the same type as elements or keys; an integer may be narrower than they are."""
    if term.type == data_type or term.type == pa.null():
        return coerce_term(term, data_type, context)
    if term.type in INTEGER_TYPES and data_type in INTEGER_TYPES and term.type.bit_width < data_type.bit_width:
        return coerce_term(term, data_type, context)
    raise UnsupportedExpression(f"{name}() of {spark_type_name(term.type)} among {spark_type_name(data_type)}")


def order(value: Any) -> Any:
    """What Spark orders and compares by: bytes of text, NaN as the largest, one zero."""
    return value.encode() if isinstance(value, str) else sort_key(value)


def _same(value: Any, other: Any) -> bool:
    return bool(order(value) == order(other))


# --- one element ------------------------------------------------------------------------------------------------------


def element_call(name: str, term: Term, key: Term, context: Context) -> Call:
    """An element of an array, or the value of a key in a map: by ``[]``, ``element_at`` and their like.

    Raises UnsupportedExpression.
    """
    if is_.is_map(term.type) and name in ("[]", "element_at", "try_element_at"):
        if is_.is_nested(term.type.key_type) or is_.is_nested(term.type.item_type):
            raise UnsupportedExpression(f"an element of {spark_type_name(term.type)}")
        return Call("map_value", (term, _beside(name, key, term.type.key_type, context)), term.type.item_type)
    element = _element_type(name, term)
    if key.type not in (*INTEGER_TYPES[:3], pa.null()):
        raise UnsupportedExpression(f"an element of an array by {spark_type_name(key.type)}")
    return Call(name, (term, coerce_term(key, INT, context)), element)


def _element(name: str) -> SparkFunction:
    def build(terms: Sequence[Term], context: Context) -> Term:
        check_count(name, terms, 2, 2)
        return element_call(name, terms[0], terms[1], context)

    def evaluate(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
        def value(elements: list[Any], number: int) -> Any:
            if name in ("element_at", "try_element_at"):
                if number == 0:
                    raise SparkWouldRaise("there is no element 0: they are counted from 1")
                place = number - 1 if number > 0 else len(elements) + number
            else:
                place = number
            if 0 <= place < len(elements):
                return elements[place]
            if evaluation.context.ansi and name in ("[]", "element_at"):
                raise SparkWouldRaise(f"an array of {len(elements)} has no element {number}")
            return None

        return evaluation.by_row(value, columns, call.type)

    return SparkFunction(name, build, evaluate, _ANSI if name in ("[]", "element_at") else frozenset())


def _build_map_value(terms: Sequence[Term], context: Context) -> Term:
    return element_call("[]", terms[0], terms[1], context)


def _map_value(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    def value(entries: list[tuple[Any, Any]], key: Any) -> Any:
        return next((found for name, found in entries if _same(name, key)), None)

    return evaluation.by_row(value, columns, call.type)


# --- of all elements --------------------------------------------------------------------------------------------------


def _of_array(name: str, result: pa.DataType | None, function: Callable[[list[Any]], Any]) -> SparkFunction:
    """A function of one array; ``result`` None stands for the type of its elements."""

    def build(terms: Sequence[Term], context: Context) -> Term:
        check_count(name, terms, 1, 1)
        return Call(name, (terms[0],), _element_type(name, terms[0]) if result is None else result)

    return SparkFunction(name, build, lambda call, columns, evaluation: evaluation.by_row(function, columns, call.type))


def _of_array_and_element(name: str, result: pa.DataType, function: Callable[[list[Any], Any], Any]) -> SparkFunction:
    def build(terms: Sequence[Term], context: Context) -> Term:
        check_count(name, terms, 2, 2)
        element = _element_type(name, terms[0])
        return Call(name, (terms[0], _beside(name, terms[1], element, context)), result)

    return SparkFunction(name, build, lambda call, columns, evaluation: evaluation.by_row(function, columns, result))


def _contains(elements: list[Any], value: Any) -> bool | None:
    if any(element is not None and _same(element, value) for element in elements):
        return True
    return None if None in elements else False


def _position(elements: list[Any], value: Any) -> int:
    places = (place for place, element in enumerate(elements, 1) if element is not None and _same(element, value))
    return next(places, 0)


def _largest(elements: list[Any]) -> Any:
    return max((element for element in elements if element is not None), key=order, default=None)


def _least(elements: list[Any]) -> Any:
    return min((element for element in elements if element is not None), key=order, default=None)


def _sized(name: str) -> SparkFunction:
    """``size`` and ``cardinality``: -1 for NULL in a session that is not ANSI."""

    def build(terms: Sequence[Term], context: Context) -> Term:
        check_count(name, terms, 1, 1)
        if not is_.is_list(terms[0].type) and not is_.is_map(terms[0].type):
            raise UnsupportedExpression(f"{name}() of {spark_type_name(terms[0].type)}")
        return Call(name, (terms[0],), INT)

    def evaluate(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
        missing = None if evaluation.context.ansi else -1
        return evaluation.by_row_with_nulls(lambda found: missing if found is None else len(found), columns, INT)

    return SparkFunction(name, build, evaluate, _ANSI)


def _build_join(terms: Sequence[Term], context: Context) -> Term:
    check_count("array_join", terms, 2, 3)
    if _element_type("array_join", terms[0]) != TEXT:
        raise UnsupportedExpression(f"array_join() of {spark_type_name(terms[0].type)}")
    return Call("array_join", (terms[0], *(argument("array_join", 1, t, TEXT, context) for t in terms[1:])), TEXT)


def _join(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    def value(elements: list[str | None], separator: str, missing: str | None = None) -> str:
        texts = (missing if element is None else element for element in elements)
        return separator.join(text for text in texts if text is not None)

    return evaluation.by_row(value, columns, TEXT)


def _build_sort(terms: Sequence[Term], context: Context) -> Term:
    check_count("sort_array", terms, 1, 2)
    _element_type("sort_array", terms[0])
    ascending = constant_of("sort_array", "order", terms[1]) if len(terms) == 2 else True
    if not isinstance(ascending, bool):
        raise UnsupportedExpression(f"sort_array() in the order {ascending!r}")
    return Call("sort_array", (terms[0], Literal(ascending, BOOLEAN)), terms[0].type)


def _sort(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    def value(elements: list[Any], ascending: bool) -> list[Any]:
        known = sorted((e for e in elements if e is not None), key=order, reverse=not ascending)
        nulls = [None] * (len(elements) - len(known))
        return [*nulls, *known] if ascending else [*known, *nulls]

    return evaluation.by_row(value, columns, call.type)


def _build_array(terms: Sequence[Term], context: Context) -> Term:
    check_count("array", terms, 1, None)
    data_type = reduce(lambda a, b: common_type(a, b, context), (term.type for term in terms))
    types = {term.type for term in terms} - {pa.null()}
    if not types or (TEXT in types and len(types) > 1) or is_compound(data_type):
        raise UnsupportedExpression(f"array() of {', '.join(spark_type_name(term.type) for term in terms)}")
    return Call("array", tuple(coerce_term(term, data_type, context) for term in terms), pa.list_(data_type))


def _array(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    return evaluation.by_row_with_nulls(lambda *elements: list(elements), columns, call.type)


def _build_overlap(terms: Sequence[Term], context: Context) -> Term:
    check_count("arrays_overlap", terms, 2, 2)
    if _element_type("arrays_overlap", terms[0]) != _element_type("arrays_overlap", terms[1]):
        raise UnsupportedExpression("arrays_overlap() of arrays of two types")
    return Call("arrays_overlap", tuple(terms), BOOLEAN)


def _overlap(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    def value(elements: list[Any], others: list[Any]) -> bool | None:
        known = {order(element) for element in elements if element is not None}
        if any(other is not None and order(other) in known for other in others):
            return True
        return None if elements and others and (None in elements or None in others) else False

    return evaluation.by_row(value, columns, BOOLEAN)


# --- maps -------------------------------------------------------------------------------------------------------------


def _map_type(name: str, term: Term) -> pa.DataType:
    if not is_.is_map(term.type) or is_.is_nested(term.type.key_type):
        raise UnsupportedExpression(f"{name}() of {spark_type_name(term.type)}")
    return term.type


def _build_contains_key(terms: Sequence[Term], context: Context) -> Term:
    check_count("map_contains_key", terms, 2, 2)
    key_type = _map_type("map_contains_key", terms[0]).key_type
    return Call("map_contains_key", (terms[0], _beside("map_contains_key", terms[1], key_type, context)), BOOLEAN)


def _contains_key(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
    return evaluation.by_row(lambda entries, key: any(_same(name, key) for name, _ in entries), columns, BOOLEAN)


def _of_entries(name: str, part: int) -> SparkFunction:
    """``map_keys`` and ``map_values``."""

    def build(terms: Sequence[Term], context: Context) -> Term:
        check_count(name, terms, 1, 1)
        found = _map_type(name, terms[0])
        if part and holds_variant(found.item_type):
            raise UnsupportedExpression(f"{name}() of {spark_type_name(terms[0].type)}")
        return Call(name, (terms[0],), pa.list_(found.item_type if part else found.key_type))

    def evaluate(call: Call, columns: Sequence[pa.Array], evaluation: Evaluation) -> pa.Array:
        return evaluation.by_row(lambda entries: [entry[part] for entry in entries], columns, call.type)

    return SparkFunction(name, build, evaluate)


COLLECTION_FUNCTIONS: Sequence[SparkFunction] = (
    *map(_element, _ONE_ELEMENT),
    SparkFunction("map_value", _build_map_value, _map_value),
    _of_array("array_size", INT, len),
    _of_array("array_max", None, _largest),
    _of_array("array_min", None, _least),
    _of_array_and_element("array_contains", BOOLEAN, _contains),
    _of_array_and_element("array_position", LONG, _position),
    _sized("size"),
    _sized("cardinality"),
    SparkFunction("array_join", _build_join, _join),
    SparkFunction("sort_array", _build_sort, _sort),
    SparkFunction("array", _build_array, _array),
    SparkFunction("arrays_overlap", _build_overlap, _overlap),
    SparkFunction("map_contains_key", _build_contains_key, _contains_key),
    _of_entries("map_keys", 0),
    _of_entries("map_values", 1),
)
