"""Paths as jsonpath-ng reads them, and what they find in documents that were parsed. Knows no Arrow and no index.

jsonpath-ng owns the language. Paths of names, positions and ``[*]`` alone, which are most, are walked here, because
that is a hundred times as fast; everything else is jsonpath-ng's own work. Both find the same, which is tested.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import orjson

from fuse_index.plugin import json_documents

PatternStep = str | int | None
"""A name, a position from 0, or None for every child of an object or array."""

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
MISSING_VALUE = object()
"""What stands where a document has no value; None is JSON's null."""


@dataclass(frozen=True)
class PathPattern:
    """A path in one spelling. ``steps`` is None for a path that only jsonpath-ng can walk."""

    text: str
    steps: tuple[PatternStep, ...] | None

    @property
    def single_steps(self) -> tuple[str | int, ...] | None:
        """The steps of a path that leads to one value at most: such a path means the same to Spark."""
        return None if self.steps is None or None in self.steps else self.steps  # type: ignore[return-value]

    def matches(self, tree: Any) -> Sequence[Any]:
        """List all values that the path finds in a document."""
        if self.steps is None:
            try:
                return [match.value for match in _parse_jsonpath(self.text).find(tree)]
            except Exception:  # a filter that compares a number with a text, for one
                return []
        nodes = [tree]
        for step in self.steps:
            nodes = [child for node in nodes for child in _children(node, step)]
        return nodes


def _children(node: Any, step: PatternStep) -> Iterator[Any]:
    if step is None:
        yield from node.values() if type(node) is dict else node if type(node) is list else ()
    elif type(step) is str:
        if type(node) is dict and step in node:
            yield node[step]
    elif type(node) is list and step < len(node):  # type: ignore[operator]
        yield node[step]  # type: ignore[index]


@lru_cache(maxsize=4096)
def parse_pattern(text: str) -> PathPattern:
    """Parse a path. Raises ValueError, with the place, for what is no path to jsonpath-ng."""
    steps = _steps(_parse_jsonpath(text))
    return PathPattern(text, None) if steps is None else pattern_of_steps(steps)


def pattern_of_steps(steps: Sequence[PatternStep]) -> PathPattern:
    """Make a path of its steps, in the one spelling of summaries."""
    return PathPattern("$" + "".join(map(_step_text, steps)), tuple(steps))


def _step_text(step: PatternStep) -> str:
    if isinstance(step, str):
        return f".{step}" if _PLAIN_NAME.fullmatch(step) else f"['{step}']"
    return "[*]" if step is None else f"[{step}]"


@lru_cache(maxsize=4096)
def _parse_jsonpath(text: str) -> Any:
    from jsonpath_ng.ext.parser import parse  # it takes a while to import

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return parse(text)
        except Exception as refusal:  # its lexer and parser have no common error
            raise ValueError(f"{text!r} is no JSON path: {refusal}") from None


def _steps(node: Any, first: bool = True) -> list[PatternStep] | None:
    """List the steps of a parsed path; None if it has others, or a root that is not ``first``: it leads back up."""
    from jsonpath_ng import jsonpath

    match node:
        case jsonpath.Root() if first:
            return []
        case jsonpath.Child():
            above, last = _steps(node.left, first), _steps(node.right, first=False)
            return None if above is None or last is None else above + last
        case jsonpath.Fields() if len(node.fields) == 1 and "'" not in node.fields[0]:
            return [str(node.fields[0])]
        case jsonpath.Wildcard():
            return [None]
        case jsonpath.Index() if len(node.indices) == 1 and node.indices[0] >= 0:
            return [int(node.indices[0])]
        case _:
            return None


def parse_document(document: str, exact: bool = False) -> Any:
    """Parse a document to plain values, MISSING_VALUE if it is malformed; the last value of a name counts.

    Unless ``exact``, integers beyond 64 bits are floats.
    """
    if not exact:
        with suppress(ValueError):
            return orjson.loads(document)
    try:
        return json_documents.plain(json_documents.read_json(document))
    except (ValueError, RecursionError):
        return MISSING_VALUE


def scalar_text(value: Any) -> str | None:
    """Spell a scalar as ``get_json_object`` does; None for null, objects and arrays."""
    value_type = type(value)
    if value_type is str:
        return str(value)
    if value_type is bool:
        return "true" if value else "false"
    if value_type is int:
        return str(value)
    if value_type is not float:
        return None
    return repr(value) if 1e-3 <= abs(value) < 1e7 else json_documents.double_text(value, sure=False)
