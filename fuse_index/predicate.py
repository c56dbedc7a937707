"""Predicates: one closed set of frozen nodes, and the context they mean something in.

A predicate is judged by three people: the oracle (``expressions/evaluate.py``), indexes (one leaf at a time) and Spark.
All three follow Spark's semantics: three-valued logic, NaN the largest value and equal to itself, -0.0 equal to
0.0, text and binary ordered by unsigned bytes. Nothing here knows SQL text, statistics or plugins.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar
from typing import Literal as OneOf

import pyarrow as pa

Operator = OneOf["=", "<=>", "<>", "<", "<=", ">", ">="]
CastMode = OneOf["legacy", "ansi", "try"]
JsonFunction = OneOf["get_json_object", "from_json", "variant_get", "try_variant_get"]


_Part = TypeVar("_Part")
_MAX_HASHED_WHOLE = 16
"""Up to so many parts of a predicate are hashed whenever it is looked for; of more, the ends."""


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


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A constant: ``value`` is what ``pa.scalar(value, type).as_py()`` gives; None is NULL of that type.

    NaN is equal to itself, as it is in conditions: Python 3.13 has no two dataclasses equal that hold one.

    >>> Literal(float("nan"), pa.float64()) == Literal(float("nan"), pa.float64())
    True
    """

    value: Any
    type: pa.DataType

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal):
            return NotImplemented
        is_nan = self.value != self.value and other.value != other.value
        return bool(is_nan or self.value == other.value) and self.type == other.type

    def __hash__(self) -> int:
        return hash((self.value if self.value == self.value else None, self.type))


@dataclass(frozen=True, slots=True)
class Cast:
    term: Term
    type: pa.DataType
    mode: CastMode = "legacy"


@dataclass(frozen=True, slots=True)
class JsonPath:
    """What ``get_json_object(term, path)`` gives: text, or NULL where the path or the document is missing.

    Or what another function of Spark finds at the path, as a value of ``type``: ``from_json(term, schema).a.b``,
    ``variant_get(term, path, type)`` of a VARIANT, or ``variant_get(parse_json(term), path, type)`` of a text. Where
    the term is a text, only Spark knows the value, but an index may know what it cannot be.
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


@dataclass(frozen=True, slots=True)
class Case:
    """``CASE WHEN … THEN … ELSE … END``: the term beside the first condition that is TRUE, else ``otherwise``.

    All terms are of one type. No condition and no term is evaluated on a row that an earlier condition decides.
    """

    branches: tuple[tuple[Predicate, Term], ...]
    otherwise: Term

    @property
    def type(self) -> pa.DataType:
        return self.otherwise.type


Term = Column | Literal | Cast | JsonPath | Call | Case


class LongTuple(tuple[_Part, ...]):
    """A tuple that is hashed by its ends: predicates are keys, and some have a million values."""

    def __hash__(self) -> int:
        return hash((len(self), self[:8], self[-8:]))

    def __reduce__(self) -> tuple[Any, ...]:
        return LongTuple, (tuple(self),)

    @cached_property
    def memo(self) -> dict[Any, Any]:
        """What was computed of all parts, by what it is."""
        return {}


def _hashed_fast(parts: tuple[_Part, ...]) -> tuple[_Part, ...]:
    return LongTuple(parts) if len(parts) > _MAX_HASHED_WHOLE and not isinstance(parts, LongTuple) else parts


@dataclass(frozen=True, slots=True)
class And:
    terms: tuple[Predicate, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", _hashed_fast(self.terms))


@dataclass(frozen=True, slots=True)
class Or:
    terms: tuple[Predicate, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "terms", _hashed_fast(self.terms))


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

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", _hashed_fast(self.values))

    @property
    def has_null(self) -> bool:
        """Whether a NULL is among the values."""
        return None in self.plain_values

    @property
    def plain_values(self) -> list[Any]:
        """The values without their types. Not to be changed."""
        memo = self.values.memo if isinstance(self.values, LongTuple) else {}
        if "plain" not in memo:
            memo["plain"] = [value.value for value in self.values]
        plain: list[Any] = memo["plain"]
        return plain

    @property
    def types(self) -> list[pa.DataType]:
        """The types of the values, each once."""
        return list(dict.fromkeys({id(value.type): value.type for value in self.values}.values()))


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
    """What only Spark can evaluate. ``sql`` is for people, ``reason`` says why, ``hint`` in words.

    ``meaning``: what it is in our words, where we have them, for index kinds alone: nobody else goes by it.
    """

    sql: str
    reason: str = "LEAF_UNSUPPORTED"
    hint: str = field(default="", compare=False)
    meaning: Leaf | None = None

    @property
    def asked(self) -> Leaf:
        """What kinds are asked about."""
        return self if self.meaning is None else self.meaning


Leaf = Compare | In | IsNull | StartsWith | EndsWith | Contains | Like | Call | Opaque
Predicate = And | Or | Not | Leaf
