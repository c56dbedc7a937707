"""Predicates: one closed set of frozen nodes, and the context they mean something in.

A predicate is judged by three people: the oracle (``expressions/evaluate.py``), indexes (one leaf at a time) and Spark.
All three follow Spark's semantics: three-valued logic, NaN the largest value and equal to itself, -0.0 equal to
0.0, text and binary ordered by unsigned bytes. Nothing here knows SQL text, statistics or plugins.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from typing import Literal as OneOf

import pyarrow as pa

Operator = OneOf["=", "<=>", "<>", "<", "<=", ">", ">="]
CastMode = OneOf["legacy", "ansi", "try"]
JsonFunction = OneOf["get_json_object", "from_json", "variant_get"]


@dataclass(frozen=True, slots=True)
class Context:
    """What depends on the session: two sessions with equal contexts read every predicate alike."""

    time_zone: str = "UTC"
    ansi: bool = True
    case_sensitive: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column, or a field of a struct column: ``path`` is ``("address", "city")``, in the schema's own spelling."""

    path: tuple[str, ...]
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: ``value`` is what ``pa.scalar(value, type).as_py()`` gives; None is NULL of that type."""

    value: Any
    type: pa.DataType


@dataclass(frozen=True, slots=True)
class Cast:
    term: Term
    type: pa.DataType
    mode: CastMode = "legacy"


@dataclass(frozen=True, slots=True)
class JsonPath:
    """What ``get_json_object(term, path)`` gives: text, or NULL where the path or the document is missing.

    Or what another function of Spark finds at the path, as a value of ``type``: ``from_json(term, schema).a.b``, or
    ``variant_get(parse_json(term), path, type)``. Of those only Spark knows the value, but an index may know what it
    cannot be.
    """

    term: Term
    path: str
    type: pa.DataType = pa.string()
    function: JsonFunction = "get_json_object"


@dataclass(frozen=True, slots=True)
class Call:
    """A registered function of terms; a predicate where its type is bool."""

    name: str
    arguments: tuple[Term, ...]
    type: pa.DataType = pa.bool_()


Term = Column | Literal | Cast | JsonPath | Call


@dataclass(frozen=True, slots=True)
class And:
    terms: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Or:
    terms: tuple[Predicate, ...]


@dataclass(frozen=True, slots=True)
class Not:
    term: Predicate


@dataclass(frozen=True, slots=True)
class Compare:
    operator: Operator
    left: Term
    right: Term


@dataclass(frozen=True, slots=True)
class In:
    """``term IN (values)``; a NULL among the values turns FALSE into NULL."""

    term: Term
    values: tuple[Literal, ...]


@dataclass(frozen=True, slots=True)
class IsNull:
    term: Term


@dataclass(frozen=True, slots=True)
class StartsWith:
    term: Term
    text: Term


@dataclass(frozen=True, slots=True)
class EndsWith:
    term: Term
    text: Term


@dataclass(frozen=True, slots=True)
class Contains:
    term: Term
    text: Term


@dataclass(frozen=True, slots=True)
class Like:
    term: Term
    pattern: Term
    escape: str = "\\"


@dataclass(frozen=True, slots=True)
class Opaque:
    """What we do not understand: it never prunes. ``sql`` is for people, ``reason`` says why."""

    sql: str
    reason: str = "LEAF_UNSUPPORTED"


Leaf = Compare | In | IsNull | StartsWith | EndsWith | Contains | Like | Call | Opaque
Predicate = And | Or | Not | Leaf
