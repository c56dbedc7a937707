"""Options of an index kind: what people type, checked by name and type against the kind's own dataclass.

Every front of the engine (Python, command line, stored definitions) comes through here, so a mistake reads alike.
"""

from __future__ import annotations

import dataclasses
import difflib
import typing
from collections.abc import Mapping
from typing import Any

import msgspec

from fuse_index.errors import DefinitionError
from fuse_index.indexes.interface import IndexKind
from fuse_index.indexes.sandbox import describe_error


def parse_options(kind: IndexKind, values_by_name: Mapping[str, Any]) -> Any:
    """Return an instance of ``kind.Options``; options that are not given keep their defaults.

    Raises DefinitionError naming the option and its value.
    """
    wanted = _option_types(kind)
    values = {}
    for name, value in values_by_name.items():
        if name not in wanted:
            raise DefinitionError(f"index kind {kind.name!r} has no option {name!r}: {_option_hint(name, wanted)}")
        try:
            # JSON has neither tuples nor a difference between 1 and 1.0, so equal options would have unequal keys.
            values[name] = msgspec.convert(value, wanted[name])
        except msgspec.ValidationError as problem:
            raise DefinitionError(
                f"option {name!r} of index kind {kind.name!r} is to be {_type_text(wanted[name])}, and is {value!r}"
            ) from problem
        except TypeError:  # an annotation that no library knows: the kind's own dataclass is the judge
            values[name] = value
    try:
        return kind.Options(**values)
    except (TypeError, ValueError) as problem:
        raise DefinitionError(f"options of index kind {kind.name!r}: {problem}") from problem
    except Exception as problem:  # a plugin's own checks may raise anything
        raise DefinitionError(f"options of index kind {kind.name!r}: {describe_error(problem)}") from problem


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


def _type_text(wanted: Any) -> str:
    if wanted in (tuple[str, ...], list[str]):
        return "a list of texts"
    return str(wanted) if typing.get_origin(wanted) is not None else str(getattr(wanted, "__name__", wanted))
