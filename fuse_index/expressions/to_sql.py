"""Predicates as Spark SQL text, for people to read: explanations, logs, error messages. Never a transport."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.types import spark_type_name
from fuse_index.predicate import (
    And,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Contains,
    EndsWith,
    In,
    IsNull,
    JsonPath,
    Like,
    Literal,
    Not,
    Opaque,
    Or,
    Predicate,
    StartsWith,
    Term,
)
from fuse_storage import is_variant

_MAX_SHOWN_VALUES = 8
"""Values of a long IN list that a person wants to see."""

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def predicate_sql(predicate: Predicate | Conjunction, whole: bool = False) -> str:
    """Spark SQL; long IN lists are cut for the eye unless ``whole``."""
    match predicate:
        case Conjunction(_, leaves):
            return " AND ".join(_within(leaf, whole, (Or,)) for leaf in leaves)
        case And(terms):
            return " AND ".join(_within(term, whole, (And, Or)) for term in terms)
        case Or(terms):
            return " OR ".join(_within(term, whole, (Or,)) for term in terms)
        case Not(IsNull(inner)):
            return f"{term_sql(inner)} IS NOT NULL"
        case Not(In() as inner):
            return _in(inner, "NOT IN", whole)
        case Not(inner_predicate):
            return f"NOT {_within(inner_predicate, whole, (And, Or, Not), always=True)}"
        case Compare(operator, left, right):
            return f"{term_sql(left)} {operator} {term_sql(right)}"
        case In():
            return _in(predicate, "IN", whole)
        case IsNull(inner):
            return f"{term_sql(inner)} IS NULL"
        case StartsWith(inner, text):
            return f"startswith({term_sql(inner)}, {term_sql(text)})"
        case EndsWith(inner, text):
            return f"endswith({term_sql(inner)}, {term_sql(text)})"
        case Contains(inner, text):
            return f"contains({term_sql(inner)}, {term_sql(text)})"
        case Like(inner, pattern, escape):
            suffix = "" if escape == "\\" else f" ESCAPE {_text(escape)}"
            return f"{term_sql(inner)} LIKE {term_sql(pattern)}{suffix}"
        case Call():
            return term_sql(predicate)
        case Opaque(text, _):
            return text


def term_sql(shown: Term) -> str:
    match shown:
        case Column(path, _):
            return ".".join(
                name if _PLAIN_NAME.fullmatch(name) else "`" + name.replace("`", "``") + "`" for name in path
            )
        case Literal(value, data_type):
            return literal_sql(value, data_type)
        case Cast(inner, data_type, mode):
            return (
                f"{'TRY_CAST' if mode == 'try' else 'CAST'}({term_sql(inner)} AS {spark_type_name(data_type).upper()})"
            )
        case JsonPath(inner, path, data_type, "from_json"):
            return f"from_json({term_sql(inner)}).{path.removeprefix('$.')}"
        case JsonPath(inner, path, data_type, ("variant_get" | "try_variant_get") as function):
            variant = term_sql(inner) if is_variant(inner.type) else f"parse_json({term_sql(inner)})"
            return f"{function}({variant}, {_text(path)}, {_text(spark_type_name(data_type))})"
        case JsonPath(inner, path):
            return f"get_json_object({term_sql(inner)}, {_text(path)})"
        case Call("-" | "~" as sign, (operand,), _):
            return f"({sign} {term_sql(operand)})"
        case Call("[]" | "map_value", (whole, key), _):
            return f"{term_sql(whole)}[{term_sql(key)}]"
        case Call("plus_interval", (moment, Literal(months), Literal(microseconds)), _):
            interval = f"{months} MONTH" if months else f"'{Decimal(microseconds).scaleb(-6):f}' SECOND"
            return f"({term_sql(moment)} + INTERVAL {interval})"
        case Call("seconds_with_fraction", (moment,), _):
            return f"extract(SECOND FROM {term_sql(moment)})"
        case Call("timestampdiff", (Literal(unit), start, end), _):
            return f"timestampdiff({unit}, {term_sql(start)}, {term_sql(end)})"
        case Call(name, (left, right), _) if not name.isidentifier():
            return f"({term_sql(left)} {name} {term_sql(right)})"
        case Case(branches, otherwise):
            whens = (f"WHEN {predicate_sql(condition)} THEN {term_sql(value)}" for condition, value in branches)
            return f"CASE {' '.join(whens)} ELSE {term_sql(otherwise)} END"
        case Call(name, arguments, _):
            return f"{name}({', '.join(term_sql(argument) for argument in arguments)})"


def literal_sql(value: Any, data_type: pa.DataType) -> str:
    """A constant such that Spark reads the same value; the type is told where the eye would miss it."""
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case float() if not math.isfinite(value):
            word = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
            return f"{spark_type_name(data_type)}('{word}')"
        case float():
            return f"{np.float32(value)!s}F" if pa.types.is_float32(data_type) else f"{value!r}D"
        case Decimal():
            return f"{value:f}" if "." in f"{value:f}" else f"{value:f}BD"
        case str():
            return _text(value)
        case bytes():
            return f"X'{value.hex().upper()}'"
        case datetime():
            if value.tzinfo is None:
                return f"TIMESTAMP_NTZ'{value.isoformat(' ')}'"
            return f"TIMESTAMP'{value.astimezone(UTC).replace(tzinfo=None).isoformat(' ')}Z'"
        case int():
            return str(value)
        case _:
            return f"DATE'{value}'" if pa.types.is_date(data_type) else repr(value)


def _in(shown: In, word: str, whole: bool) -> str:
    count = len(shown.values)
    values = [term_sql(value) for value in shown.values[: count if whole else _MAX_SHOWN_VALUES]]
    more = [f"… {count:,} values"] if len(values) < count else []
    return f"{term_sql(shown.term)} {word} ({', '.join([*values, *more])})"


def _within(shown: Predicate, whole: bool, looser: tuple[type, ...], always: bool = False) -> str:
    """In parentheses where the text around it would bind tighter."""
    text = predicate_sql(shown, whole)
    return f"({text})" if always or isinstance(shown, (*looser, Opaque)) else text


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\0", "\\0")
    return f"'{escaped}'"
