"""What people hand over: checked where it comes in, so that what is refused is named as they know it.

A function's own annotations say what it takes; what they cannot say is checked by whoever knows it.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import wraps
from numbers import Integral
from os import PathLike
from typing import Any, TypeVar

import numpy as np

from fuse_index.errors import InputError
from fuse_index.predicate import Predicate

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
MOST_SECONDS = 1000 * 365 * SECONDS["d"]
"""So that no end of a duration leaves the calendar."""


def checked(function: F) -> F:
    """The same function, which raises InputError for an argument of a type that it does not take."""
    signature = inspect.signature(function)
    single = {name: one.annotation for name, one in signature.parameters.items() if one.kind is not one.VAR_KEYWORD}
    known = {name: kinds for name, annotation in single.items() if (kinds := _kinds(annotation))}

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        for name, value in signature.bind(*arguments, **named).arguments.items():
            kinds = known.get(name, ())
            if kinds and not any(kind.holds(value) for kind in kinds):
                raise InputError(f"{name}={value!r}: give {' or '.join(kind.words for kind in kinds)}")
        return function(*arguments, **named)

    return call  # type: ignore[return-value]


def checking(made: C) -> C:
    """The same class, of which each public method, inherited ones too, is ``checked``."""
    for name, method in inspect.getmembers(made, inspect.isfunction):
        if not name.startswith("_"):
            setattr(made, name, checked(method))
    return made


@dataclass(frozen=True, slots=True)
class _Kind:
    """What may be given, and how that is called."""

    holds: Callable[[Any], bool]
    words: str


KINDS: Mapping[str, _Kind] = {
    "None": _Kind(lambda given: given is None, "None"),
    "str": _Kind(lambda given: isinstance(given, str), "a text"),
    "int": _Kind(lambda given: isinstance(given, Integral) and not isinstance(given, bool), "a whole number"),
    "bool": _Kind(lambda given: isinstance(given, bool | np.bool_), "True or False"),
    "Sequence[str]": _Kind(lambda given: _listed(given, str), "a list of texts such as ['id']"),
    "Mapping[str, Any]": _Kind(
        lambda given: isinstance(given, Mapping) and _listed(list(given), str), "a dict by name"
    ),
    "Mapping[str, str]": _Kind(
        lambda given: isinstance(given, Mapping) and _listed([*given, *given.values()], str), "a dict of texts"
    ),
    "datetime": _Kind(lambda given: isinstance(given, datetime), "a datetime"),
    "timedelta": _Kind(lambda given: isinstance(given, timedelta), "a timedelta"),
    "Predicate": _Kind(lambda given: isinstance(given, Predicate), "a predicate"),
    "Path": _Kind(lambda given: isinstance(given, PathLike), "a path"),
    "Progress": _Kind(callable, "a function"),
    "SparkSession": _Kind(lambda given: hasattr(given, "createDataFrame"), "a SparkSession"),
    "DataFrame": _Kind(lambda given: hasattr(given, "mapInArrow"), "a DataFrame"),
    "tuple[str, int]": _Kind(
        lambda given: isinstance(given, tuple) and list(map(type, given)) == [str, int], "a text and a whole number"
    ),
    "tuple[str, str]": _Kind(
        lambda given: isinstance(given, tuple) and list(map(type, given)) == [str, str], "two texts"
    ),
}
"""By annotation; what has another one is not checked."""


def _listed(given: Any, kind: type) -> bool:
    """A text is no list of texts, though Python would take it for one of letters."""
    return isinstance(given, Sequence) and not isinstance(given, str) and all(isinstance(one, kind) for one in given)


def _kinds(annotation: Any) -> tuple[_Kind, ...]:
    """One for each alternative; none if one of them is unknown."""
    parts = re.split(r" \| (?![^\[]*\])", annotation) if isinstance(annotation, str) else [""]
    found = [_literal(part) if part.startswith("Literal[") else KINDS.get(part) for part in parts]
    return tuple(kind for kind in found if kind is not None) if all(found) else ()


def _literal(annotation: str) -> _Kind:
    values = ast.literal_eval(annotation.removeprefix("Literal")[:-1] + ",]")
    return _Kind(lambda given: isinstance(given, str) and given in values, " or ".join(map(repr, values)))


def duration(given: str, argument: str) -> timedelta:
    """``12h``, ``7d`` as a time span. Raises InputError."""
    if (found := re.fullmatch(r"(\d+)([smhdw])", given)) is None:
        raise InputError(f"{argument}={given!r} is no duration: say 12h, 7d")
    if (seconds := int(found[1]) * SECONDS[found[2]]) > MOST_SECONDS:
        raise InputError(f"{argument}={given!r} is longer than a thousand years")
    return timedelta(seconds=seconds)


def moment(given: str, argument: str) -> datetime | timedelta:
    """A time in ISO form, or a duration. Raises InputError."""
    if re.fullmatch(r"\d+[smhdw]", given):
        return duration(given, argument)
    try:
        return datetime.fromisoformat(given)
    except ValueError:
        raise InputError(f"{argument}={given!r} is neither a duration such as 30d nor a time in ISO form") from None
