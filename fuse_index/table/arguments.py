"""What people hand over: checked where it comes in, so that what is refused is named as they know it.

A function's own annotations say what it takes; what they cannot say is checked by whoever knows it. An annotation that
is neither known here nor left unchecked on purpose is an error when the module with the function is imported.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import wraps
from numbers import Integral, Real
from os import PathLike
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from fuse_index.errors import InputError
from fuse_index.indexes.registry import Host
from fuse_index.operations.merge_match import KeyValues, MergeSpec
from fuse_index.predicate import Context, Predicate
from fuse_storage import PrimaryKey, check_duration, is_duration, parse_duration_text

_F = TypeVar("_F", bound=Callable[..., Any])
_C = TypeVar("_C", bound=type)
_ALL = 1 << 62
"""More than there are rows or commits in any table, and still a number to Arrow."""


def check_arguments(function: _F) -> _F:
    """Make a function raise InputError for an argument of a type that it does not take.

    Raises TypeError for a parameter whose annotation this module does not know.
    """
    signature = inspect.signature(function)
    types_by_name = checked_parameters(function)

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        try:
            bound = signature.bind(*arguments, **named)
        except TypeError as misfit:
            raise TypeError(f"{function.__name__}(): {misfit}; it takes {_call(signature)}") from None
        for name, value in bound.arguments.items():
            types = types_by_name.get(name, ())
            if types and not any(argument_type.accepts(value) for argument_type in types):
                raise InputError(f"{name}={value!r}: give {' or '.join(each.description for each in types)}")
        return function(*arguments, **named)

    return call  # type: ignore[return-value]


def _call(signature: inspect.Signature) -> str:
    """The parameters as they are named in a call."""
    names = (
        f"{parameter.name}={parameter.default!r}" if parameter.default is not parameter.empty else parameter.name
        for parameter in signature.parameters.values()
        if parameter.name != "self"
    )
    return f"({', '.join(names)})"


def checked_parameters(function: Callable[..., Any]) -> dict[str, tuple[ArgumentType, ...]]:
    """By parameter, the types that it takes, one for each alternative of its annotation; unchecked ones are left out.

    Unchecked are ``self``, keyword arguments by any name (such as options of a kind), and what is so on purpose.
    Raises TypeError for an annotation that is unknown.
    """
    types_by_name = {}
    for name, parameter in inspect.signature(function).parameters.items():
        unchecked = parameter.kind is parameter.VAR_KEYWORD or parameter.annotation in _UNCHECKED_ANNOTATIONS
        if unchecked or name == "self":
            continue
        types_by_name[name] = _argument_types(parameter.annotation)
        if not types_by_name[name]:
            raise TypeError(
                f"{function.__qualname__} takes {name}: {parameter.annotation}, which cannot be checked: "
                f"say how in {__name__}, or that it is not to be"
            )
    return types_by_name


def check_public_methods(cls: _C) -> _C:
    """Make each public method of a class, inherited ones too, check its arguments; returns the class."""
    for name, method in inspect.getmembers(cls, inspect.isfunction):
        if not name.startswith("_"):
            setattr(cls, name, check_arguments(method))
    return cls


@dataclass(frozen=True, slots=True)
class ArgumentType:
    """What may be given for a parameter. ``description``: what a refusal says to give."""

    accepts: Callable[[Any], bool]
    description: str


_ARGUMENT_TYPES: Mapping[str, ArgumentType] = {
    "None": ArgumentType(lambda value: value is None, "None"),
    "str": ArgumentType(lambda value: isinstance(value, str), "a text"),
    "int": ArgumentType(lambda value: isinstance(value, Integral) and not isinstance(value, bool), "a whole number"),
    "float": ArgumentType(lambda value: isinstance(value, Real) and not isinstance(value, bool), "a number"),
    "bool": ArgumentType(lambda value: isinstance(value, bool | np.bool_), "True or False"),
    "Sequence[str]": ArgumentType(lambda value: _is_list_of(value, str), "a list of texts such as ['id']"),
    "Mapping[str, Any]": ArgumentType(
        lambda value: isinstance(value, Mapping) and _is_list_of(list(value), str), "a dict by name"
    ),
    "Mapping[str, str]": ArgumentType(
        lambda value: isinstance(value, Mapping) and _is_list_of([*value, *value.values()], str), "a dict of texts"
    ),
    "datetime": ArgumentType(lambda value: isinstance(value, datetime), "a datetime"),
    "timedelta": ArgumentType(lambda value: isinstance(value, timedelta), "a timedelta"),
    "Host": ArgumentType(lambda value: isinstance(value, Host), "a Host such as Host.discover()"),
    "Context": ArgumentType(lambda value: isinstance(value, Context), "a Context"),
    "Predicate": ArgumentType(lambda value: isinstance(value, Predicate), "a predicate"),
    "pa.Schema": ArgumentType(lambda value: isinstance(value, pa.Schema), "a pa.Schema"),
    "MergeSpec": ArgumentType(lambda value: isinstance(value, MergeSpec), "what merge_spec gives"),
    "Mapping[str, KeyValues]": ArgumentType(
        lambda value: isinstance(value, Mapping) and all(isinstance(each, KeyValues) for each in value.values()),
        "the values of each column of the key",
    ),
    "tuple[MergeClauseSpec, MergeClauseSpec, MergeClauseSpec]": ArgumentType(
        lambda value: isinstance(value, tuple) and len(value) == 3, "the three clauses"
    ),
    "Path": ArgumentType(lambda value: isinstance(value, PathLike), "a path"),
    "PathLike[str]": ArgumentType(lambda value: isinstance(value, PathLike), "a path"),
    "ProgressCallback": ArgumentType(callable, "a function"),
    "MaintenanceCallback": ArgumentType(callable, "a function"),
    "ReclusterCallback": ArgumentType(callable, "a function"),
    "SparkSession": ArgumentType(lambda value: hasattr(value, "createDataFrame"), "a SparkSession"),
    "Endpoints": ArgumentType(lambda value: hasattr(value, "check_reach"), "Endpoints such as Endpoints(jdbc=10000)"),
    "DataFrame": ArgumentType(lambda value: hasattr(value, "mapInArrow"), "a DataFrame"),
    "tuple[str, int]": ArgumentType(
        lambda value: isinstance(value, tuple) and list(map(type, value)) == [str, int], "a text and a whole number"
    ),
    "tuple[str, str]": ArgumentType(
        lambda value: isinstance(value, tuple) and list(map(type, value)) == [str, str], "two texts"
    ),
}
"""By the text of an annotation, or of one of its alternatives."""

_UNCHECKED_ANNOTATIONS = {
    "Any": "checked by what it is for: rows by arrow_input, a URL by the store, a type or a schema by the DDL, "
    "a scan by who reads it",
    "MergeClauseSpec": "checked by merge_clauses, which says what each clause may do",
    "TableHandle": "checked by prune_files, which says how a table is opened",
}
"""Annotations that are unchecked on purpose, and why."""


def _is_list_of(value: Any, item_type: type) -> bool:
    """A text is no list of texts, though Python would take it for one of letters."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False
    return all(isinstance(item, item_type) for item in value)


def _argument_types(annotation: Any) -> tuple[ArgumentType, ...]:
    """One type for each alternative of an annotation; none at all if one of them is unknown."""
    parts = re.split(r" \| (?![^\[]*\])", annotation) if isinstance(annotation, str) else [""]
    types = [_literal_type(part) if part.startswith("Literal[") else _ARGUMENT_TYPES.get(part) for part in parts]
    return tuple(each for each in types if each is not None) if all(types) else ()


def _literal_type(annotation: str) -> ArgumentType:
    values = ast.literal_eval(annotation.removeprefix("Literal")[:-1] + ",]")
    return ArgumentType(lambda value: isinstance(value, str) and value in values, " or ".join(map(repr, values)))


def check_limit(limit: int | None, of: str) -> int | None:
    """How many there may be, None for all; what is more than any table has is all. Raises InputError for less than 0.

    ``of``: what is counted, in words.
    """
    if limit is not None and limit < 0:
        raise InputError(f"limit={limit!r}: give a number of {of}")
    return None if limit is None else min(int(limit), _ALL)


def parse_duration(duration: str | timedelta, argument: str) -> timedelta:
    """Read a duration such as ``12h``, ``7d`` or ``0.5s``, or check that one is not too long. Raises InputError."""
    try:
        return check_duration(duration) if isinstance(duration, timedelta) else parse_duration_text(duration)
    except ValueError as problem:
        raise InputError(f"{argument}={str(duration)!r} {problem}") from problem


def parse_time_or_duration(text: str | timedelta, argument: str) -> datetime | timedelta:
    """Read a time in ISO form, or a duration. Raises InputError."""
    if isinstance(text, timedelta) or is_duration(text):
        return parse_duration(text, argument)
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise InputError(f"{argument}={text!r} is neither a duration such as 30d nor a time in ISO form") from None


def table_key(key: Sequence[str], primary_key: Sequence[str]) -> Sequence[str]:
    """The columns that identify a row of a new table. Raises InputError where both are given."""
    if key and primary_key:
        raise InputError(f"key={list(key)!r} and primary_key={list(primary_key)!r}: a table has one of them")
    return PrimaryKey(primary_key) if primary_key else tuple(key)
