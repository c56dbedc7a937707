"""Options of an index kind: what people type, checked by name and type against the kind's own dataclass.

Every front of the engine (Python, command line, stored definitions) comes through here, so a mistake reads alike.
"""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Mapping
from typing import Any

from fuse_index.errors import DefinitionError
from fuse_index.indexes.interface import IndexKind


def parse_options(kind: IndexKind, values_by_name: Mapping[str, Any]) -> Any:
    """An instance of ``kind.Options``; what is not given keeps its default. Raises DefinitionError naming option and
    value.
    """
    wanted = _option_types(kind)
    values = {}
    for name, value in values_by_name.items():
        if name not in wanted:
            raise DefinitionError(f"index kind {kind.name!r} has no option {name!r}: {_option_hint(name, wanted)}")
        if not _matches_type(value, wanted[name]):
            raise DefinitionError(
                f"option {name!r} of index kind {kind.name!r} is to be {_type_text(wanted[name])}, and is {value!r}"
            )
        values[name] = _convert(value, wanted[name])
    try:
        return kind.Options(**values)
    except (TypeError, ValueError) as problem:
        raise DefinitionError(f"options of index kind {kind.name!r}: {problem}") from problem


def _option_types(kind: IndexKind) -> dict[str, Any]:
    """The options by name, with their types; Any where a plugin's annotation cannot be resolved."""
    names = [option.name for option in dataclasses.fields(kind.Options) if option.init]
    try:
        hints = typing.get_type_hints(kind.Options)
    except (NameError, TypeError):
        hints = {}
    return {name: hints.get(name, Any) for name in names}


def _option_hint(name: str, wanted: Mapping[str, Any]) -> str:
    near = difflib.get_close_matches(name, wanted, 1)
    if near:
        return f"did you mean {near[0]!r}?"
    return f"it has {', '.join(wanted)}" if wanted else "it has none"


def _matches_type(value: Any, wanted: Any) -> bool:
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if wanted is Any:
        return True
    if origin is typing.Literal:
        return value in arguments
    if origin in (typing.Union, types.UnionType):
        return any(_matches_type(value, argument) for argument in arguments)
    if origin in (tuple, list, set, frozenset):
        items = [argument for argument in arguments if argument is not Ellipsis]
        return isinstance(value, list | tuple) and all(
            not items or any(_matches_type(one, item) for item in items) for one in value
        )
    if origin is not None:
        return isinstance(value, origin)
    if wanted is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if wanted is None or wanted is type(None):
        return value is None
    if wanted in (tuple, list):
        return isinstance(value, list | tuple)
    return not isinstance(wanted, type) or isinstance(value, wanted)


def _convert(value: Any, wanted: Any) -> Any:
    """JSON has neither tuples nor a difference between 1 and 1.0, so equal options would have unequal keys."""
    origin, arguments = typing.get_origin(wanted), typing.get_args(wanted)
    if origin in (typing.Union, types.UnionType):
        return _convert(value, next(argument for argument in arguments if _matches_type(value, argument)))
    if isinstance(value, list | tuple):
        return list(value) if list in (wanted, origin) else tuple(value)
    return float(value) if wanted is float else value


def _type_text(wanted: Any) -> str:
    if wanted in (tuple[str, ...], list[str]):
        return "a list of texts"
    return str(wanted) if typing.get_origin(wanted) is not None else str(getattr(wanted, "__name__", wanted))
