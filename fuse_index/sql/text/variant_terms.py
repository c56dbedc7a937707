"""Values in a VARIANT, as people write them: ``v:a.b[0]``, ``variant_get(v, '$.a', 'int')``, a cast of either."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
from sqlglot import exp

from fuse_index.expressions import types
from fuse_index.expressions.errors import AnalysisError, NotReproducible, UnsupportedExpression
from fuse_index.expressions.types import spark_type_name
from fuse_index.expressions.variant.get import variant_steps
from fuse_index.predicate import JsonPath, Term
from fuse_index.sql.tokenizer import TokenizedSql
from fuse_storage import VARIANT, is_variant

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def extracted(term: Term, node: exp.JSONExtract, tokens: TokenizedSql) -> JsonPath:
    """What ``term:path`` gives, a VARIANT again. Raises UnsupportedExpression for a path of other than names."""
    steps = [_step(part, tokens) for part in node.expression.expressions[1:]]
    return variant_value(term, "$" + "".join(steps), VARIANT, False)


def _step(part: Any, tokens: TokenizedSql) -> str:
    if isinstance(part, exp.JSONPathKey) and isinstance(part.this, str):
        mark = tokens.find_mark(part.this)  # ``['name']`` is a string of the text
        name = part.this if mark is None else str(mark.literal.value)
        return f".{name}" if _PLAIN_NAME.fullmatch(name) else f"['{name}']"
    if isinstance(part, exp.JSONPathSubscript) and isinstance(part.this, int):
        return f"[{part.this}]"
    raise UnsupportedExpression(f"a path with {part.sql()}: only names and places")


def variant_value(term: Term, path: str, data_type: pa.DataType, tries: bool) -> JsonPath:
    """What lies at a path of a VARIANT, as a type. ``tries``: NULL where a cast fails, where else Spark raises."""
    if not is_variant(term.type):
        raise AnalysisError(f"{spark_type_name(term.type)} is no VARIANT: of JSON text, ask get_json_object")
    try:
        variant_steps(path)
    except NotReproducible as refusal:
        raise UnsupportedExpression(str(refusal)) from None
    inner, above = (term.term, term.path) if isinstance(term, JsonPath) else (term, "$")
    return JsonPath(inner, above + path[1:], data_type, "try_variant_get" if tries else "variant_get")


def type_named(name: str) -> pa.DataType:
    """The type in a call of ``variant_get``. Raises UnsupportedExpression for one that has parts, or is unknown."""
    found = types.type_from_spark_name(name)
    if found is None or found == pa.null():
        raise UnsupportedExpression(f"a value of a VARIANT as {name!r}")
    return found
