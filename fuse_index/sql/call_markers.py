"""Calls of plugins' functions, as marks that Spark carries into the filters of a scan.

What a function means, Spark evaluates its own way, often in Python, where no scan can see it. So a call is written as
``meaning AND mark``. The mark is TRUE on every row (NULL where the call is), cheap, opaque to Spark's optimizer, has
the call's columns as its operands, and its name and constants as a text: ``(body = 'fuse_index call {…}') IN (true,
false)``.

It may be read as the call itself, anywhere in a tree of AND, OR and NOT, because ``call AND call`` is the call: no such
tree becomes TRUE on other rows by it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from fuse_index.expressions import literals, types
from fuse_index.predicate import Call, Literal, Term

CALL_MARK_PREFIX = "fuse_index call "
VALUE_MARK_PREFIX = "fuse_index value "
"""The mark of a function that is no condition: ``if(mark, meaning, NULL)``. It is read where rows are ordered by it."""
_Tree = Mapping[str, Any]
_BOOLEAN = pa.bool_()


def render_call_mark(call: Call, operands: Sequence[str], null_on_null: bool, prefix: str = CALL_MARK_PREFIX) -> str:
    """The mark as Spark SQL text.

    ``operands``: for each argument that is no constant, the SQL text that stands for it; at least one.
    """
    columns = [argument for argument in call.arguments if not isinstance(argument, Literal)]
    texts = [_as_text(sql, column) for sql, column in zip(operands, columns, strict=True)]
    signs = [
        prefix + json.dumps({"call": call.name, "arguments": list(_written(call))}),
        *(f"{prefix}{n}" for n in range(1, len(texts))),
    ]
    compared = " OR ".join(f"{text} = {_text_literal(sign)}" for text, sign in zip(texts, signs, strict=True))
    return f"({compared}) IN (true, false)" if null_on_null else f"coalesce({compared}, false) IN (true, false)"


def parse_call_mark(
    tree: _Tree, term: Callable[[_Tree], Term], prefix: str = CALL_MARK_PREFIX, returns: pa.DataType = _BOOLEAN
) -> Call | None:
    """The call that a tree of Spark's is the mark of, if it is one. Raises what ``term`` raises for its operands."""
    match tree:
        case {"node": "In", "children": [inner, *_]} | {"node": "InSet", "children": [inner]}:
            pass
        case _:
            return None
    if inner["node"] == "Coalesce":
        inner = inner["children"][0]
    operands = dict(_operands(inner, prefix))
    first = next((sign for sign in operands if sign.startswith("{")), None)
    if first is None:
        return None
    said = json.loads(first)
    signs = [first, *(str(number) for number in range(1, len(operands)))]
    columns = iter([operands[sign] for sign in signs])
    return Call(said["call"], tuple(_argument(argument, columns, term) for argument in said["arguments"]), returns)


def _as_text(sql: str, column: Term) -> str:
    """What is compared with a sign: of an array a hash, which takes less time to make than its text."""
    if column.type == pa.string():
        return sql
    return f"CAST({f'hash({sql})' if pa.types.is_nested(column.type) else sql} AS STRING)"


def _text_literal(text: str) -> str:
    """A text in SQL, whatever the session makes of quotes and backslashes."""
    return f"CAST(X'{text.encode().hex()}' AS STRING)"


def _written(call: Call) -> Iterator[dict[str, Any]]:
    for argument in call.arguments:
        constant = (
            {"constant": literals.encode_literal(argument.value, argument.type)}
            if isinstance(argument, Literal)
            else {}
        )
        yield {"type": types.spark_type_name(argument.type), **constant}


def _operands(tree: _Tree, prefix: str) -> Iterator[tuple[str, _Tree]]:
    """What stands beside each sign."""
    match tree:
        case {"node": "Or", "children": children}:
            for child in children:
                yield from _operands(child, prefix)
        case {"node": "EqualTo", "children": [operand, {"node": "Literal", "value": str(text)}]} if text.startswith(
            prefix
        ):
            yield text.removeprefix(prefix), operand


def _argument(said: Mapping[str, Any], columns: Iterator[_Tree], term: Callable[[_Tree], Term]) -> Term:
    data_type = _type_named(said["type"])
    if "constant" in said:
        return Literal(literals.decode_literal(said["constant"], data_type), data_type)
    column = next(columns)
    if data_type == pa.string():
        return term(column)
    inner = column["children"][0]
    return term(inner["children"][0] if pa.types.is_nested(data_type) else inner)


def _type_named(name: str) -> pa.DataType:
    if name.startswith("array<"):
        return pa.list_(_type_named(name[len("array<") : -1]))
    data_type = types.type_from_spark_name(name)
    assert data_type is not None, f"no type {name}"
    return data_type
