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
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from fuse_index.expressions import literals, types
from fuse_index.predicate import Call, Literal, Term

CALL_MARK_PREFIX = "fuse_index call "
VALUE_MARK_PREFIX = "fuse_index value "
"""The mark of a function that is no condition: ``if(mark, meaning, NULL)``. It is read where rows are ordered by it.

With a ``condition`` in its text, which ``CallConditions.java`` writes, it stands for that condition on the value.
"""
CALL_CONDITION, CALL_VALUE = "condition", "fuse value"
"""What the text calls it, and the column that is the value in it."""
_MARK_IN_SQL = re.compile(r"'fuse_index (?:call|value) (\{(?:[^'\\]|\\.)*\})'")
"""The text of a mark in what Spark writes of a condition, where quotes and backslashes stand behind one."""
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


def name_marked_calls(sql: str) -> str:
    """What Spark writes of a condition, as people wrote it: where it has marks of calls, it is these calls.

    Their columns are an ellipsis, and constants that are no text, as their encoding is.

    >>> name_marked_calls('''(NOT (b = 'fuse_index call {"call": "match", "arguments": [{"type": "string"}]}'))''')
    'a condition with match(…)'
    >>> name_marked_calls("(n > 3)")
    '(n > 3)'
    """
    calls = [json.loads(re.sub(r"\\(.)", r"\1", found[1])) for found in _MARK_IN_SQL.finditer(sql)]
    texts = [f"{said['call']}({', '.join(map(_shown, said['arguments']))})" for said in calls]
    return "a condition with " + " and ".join(dict.fromkeys(texts)) if texts else sql


def _shown(argument: Mapping[str, Any]) -> str:
    return repr(argument["constant"]) if "constant" in argument else "…"


def parse_call_mark(
    tree: _Tree, term: Callable[[_Tree], Term], prefix: str = CALL_MARK_PREFIX, returns: pa.DataType = _BOOLEAN
) -> Call | None:
    """The call that a tree of Spark's is the mark of, if it is one. Raises what ``term`` raises for its operands."""
    found = _parse_mark(tree, prefix)
    return None if found is None else _call(*found, term, returns)


def parse_condition_mark(tree: _Tree, term: Callable[[_Tree], Term]) -> tuple[Call, _Tree] | None:
    """The call, and the condition on its value, that a tree of Spark's is the mark of, if it is one.

    Raises what ``term`` raises.
    """
    found = _parse_mark(tree, VALUE_MARK_PREFIX)
    if found is None or CALL_CONDITION not in found[0]:
        return None
    condition = found[0][CALL_CONDITION]
    returns = next(
        (types.type_from_spark_json(each["type"]) for each in _nodes(condition) if is_call_value(each)), None
    )
    if returns is None:
        return None
    call = _call(*found, term, returns)
    arguments = tuple(_spelled(each) if isinstance(each, Literal) else each for each in call.arguments)
    return replace(call, arguments=arguments), condition


def is_call_value(tree: _Tree) -> bool:
    """Whether a tree is the value of a call in a condition on it."""
    return tree["node"] == "AttributeReference" and tree["name"] == CALL_VALUE and not tree["ours"]


def _parse_mark(tree: _Tree, prefix: str) -> tuple[Mapping[str, Any], Sequence[_Tree]] | None:
    """What a mark says, and what stands beside its signs, in order."""
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
    signs = [first, *(str(number) for number in range(1, len(operands)))]
    return json.loads(first), [operands[sign] for sign in signs]


def _call(
    said: Mapping[str, Any], operands: Sequence[_Tree], term: Callable[[_Tree], Term], returns: pa.DataType
) -> Call:
    columns = iter(operands)
    return Call(said["call"], tuple(_argument(argument, columns, term) for argument in said["arguments"]), returns)


def _nodes(tree: _Tree) -> Iterator[_Tree]:
    yield tree
    for child in tree.get("children", ()):
        yield from _nodes(child)


def _spelled(constant: Literal) -> Term:
    """A constant as conditions have it: an array is a call of its elements, as it is where nobody has Spark."""
    if not pa.types.is_list(constant.type) or constant.value is None or not constant.value:
        return constant
    element = constant.type.value_type
    return Call("array", tuple(Literal(value, element) for value in constant.value), constant.type)


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
