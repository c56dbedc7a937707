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

_F = TypeVar("_F", bound=Callable[..., Any])
_C = TypeVar("_C", bound=type)

_SECONDS_PER_UNIT = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_MAX_DURATION_SECONDS = 1000 * 365 * _SECONDS_PER_UNIT["d"]
"""So that no end of a duration leaves the calendar."""


def check_arguments(function: _F) -> _F:
    """The same function, which raises InputError for an argument of a type that it does not take."""
    signature = inspect.signature(function)
    single = {name: one.annotation for name, one in signature.parameters.items() if one.kind is not one.VAR_KEYWORD}
    known = {name: kinds for name, annotation in single.items() if (kinds := _argument_types(annotation))}

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        for name, value in signature.bind(*arguments, **named).arguments.items():
            kinds = known.get(name, ())
            if kinds and not any(kind.accepts(value) for kind in kinds):
                raise InputError(f"{name}={value!r}: give {' or '.join(kind.description for kind in kinds)}")
        return function(*arguments, **named)

    return call  # type: ignore[return-value]


def check_public_methods(cls: _C) -> _C:
    """The same class, of which each public method, inherited ones too, is ``checked``."""
    for name, method in inspect.getmembers(cls, inspect.isfunction):
        if not name.startswith("_"):
            setattr(cls, name, check_arguments(method))
    return cls


@dataclass(frozen=True, slots=True)
class _ArgumentType:
    """What may be given, and how that is called."""

    accepts: Callable[[Any], bool]
    description: str


_ARGUMENT_TYPES: Mapping[str, _ArgumentType] = {
    "None": _ArgumentType(lambda given: given is None, "None"),
    "str": _ArgumentType(lambda given: isinstance(given, str), "a text"),
    "int": _ArgumentType(lambda given: isinstance(given, Integral) and not isinstance(given, bool), "a whole number"),
    "bool": _ArgumentType(lambda given: isinstance(given, bool | np.bool_), "True or False"),
    "Sequence[str]": _ArgumentType(lambda given: _is_list_of(given, str), "a list of texts such as ['id']"),
    "Mapping[str, Any]": _ArgumentType(
        lambda given: isinstance(given, Mapping) and _is_list_of(list(given), str), "a dict by name"
    ),
    "Mapping[str, str]": _ArgumentType(
        lambda given: isinstance(given, Mapping) and _is_list_of([*given, *given.values()], str), "a dict of texts"
    ),
    "datetime": _ArgumentType(lambda given: isinstance(given, datetime), "a datetime"),
    "timedelta": _ArgumentType(lambda given: isinstance(given, timedelta), "a timedelta"),
    "Predicate": _ArgumentType(lambda given: isinstance(given, Predicate), "a predicate"),
    "Path": _ArgumentType(lambda given: isinstance(given, PathLike), "a path"),
    "ProgressCallback": _ArgumentType(callable, "a function"),
    "ReclusterCallback": _ArgumentType(callable, "a function"),
    "SparkSession": _ArgumentType(lambda given: hasattr(given, "createDataFrame"), "a SparkSession"),
    "DataFrame": _ArgumentType(lambda given: hasattr(given, "mapInArrow"), "a DataFrame"),
    "tuple[str, int]": _ArgumentType(
        lambda given: isinstance(given, tuple) and list(map(type, given)) == [str, int], "a text and a whole number"
    ),
    "tuple[str, str]": _ArgumentType(
        lambda given: isinstance(given, tuple) and list(map(type, given)) == [str, str], "two texts"
    ),
}
"""By annotation; what has another one is not checked."""


def _is_list_of(given: Any, kind: type) -> bool:
    """A text is no list of texts, though Python would take it for one of letters."""
    return isinstance(given, Sequence) and not isinstance(given, str) and all(isinstance(one, kind) for one in given)


def _argument_types(annotation: Any) -> tuple[_ArgumentType, ...]:
    """One for each alternative; none if one of them is unknown."""
    parts = re.split(r" \| (?![^\[]*\])", annotation) if isinstance(annotation, str) else [""]
    found = [_literal_type(part) if part.startswith("Literal[") else _ARGUMENT_TYPES.get(part) for part in parts]
    return tuple(kind for kind in found if kind is not None) if all(found) else ()


def _literal_type(annotation: str) -> _ArgumentType:
    values = ast.literal_eval(annotation.removeprefix("Literal")[:-1] + ",]")
    return _ArgumentType(lambda given: isinstance(given, str) and given in values, " or ".join(map(repr, values)))


def parse_duration(text: str, argument: str) -> timedelta:
    """``12h``, ``7d`` as a time span. Raises InputError."""
    if (found := re.fullmatch(r"(\d+)([smhdw])", text)) is None:
        raise InputError(f"{argument}={text!r} is no duration: say 12h, 7d")
    if (seconds := int(found[1]) * _SECONDS_PER_UNIT[found[2]]) > _MAX_DURATION_SECONDS:
        raise InputError(f"{argument}={text!r} is longer than a thousand years")
    return timedelta(seconds=seconds)


def parse_time_or_duration(text: str, argument: str) -> datetime | timedelta:
    """A time in ISO form, or a duration. Raises InputError."""
    if re.fullmatch(r"\d+[smhdw]", text):
        return parse_duration(text, argument)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{argument}={text!r} is neither a duration such as 30d nor a time in ISO form") from None
