"""Paths of JSONPath's standard, and what they find in documents that were parsed. Knows no Arrow and no index.

``standard`` says what is a path. Those of names, positions and ``[*]`` alone, which are most, are walked here, because
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
from fuse_plugins.json_path.standard import StandardStep, read_standard_path

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
MISSING_VALUE = object()
"""What stands where a document has no value; None is JSON's null."""


@dataclass(frozen=True)
class PathPattern:
    """A path in one spelling. ``steps`` is None for a path that only jsonpath-ng can walk."""

    text: str
    steps: tuple[StandardStep, ...] | None
    spelling: str = ""
    """What jsonpath-ng is asked, where ``steps`` is None."""

    @property
    def single_steps(self) -> tuple[str | int, ...] | None:
        """The steps of a path that leads to one value at most: such a path means the same to Spark."""
        return None if self.steps is None or None in self.steps else self.steps  # type: ignore[return-value]

    def matches(self, tree: Any) -> Sequence[Any]:
        """List all values that the path finds in a document."""
        if self.steps is None:
            try:
                return [match.value for match in _parse_jsonpath(self.spelling).find(tree)]
            except Exception:  # what it cannot do with some value, it does not find
                return []
        nodes = [tree]
        for step in self.steps:
            nodes = [child for node in nodes for child in _children(node, step)]
        return nodes


def _children(node: Any, step: StandardStep) -> Iterator[Any]:
    if step is None:
        yield from node.values() if type(node) is dict else node if type(node) is list else ()
    elif type(step) is str:
        if type(node) is dict and step in node:
            yield node[step]
    elif type(node) is list and step < len(node):  # type: ignore[operator]
        yield node[step]  # type: ignore[index]


@lru_cache(maxsize=4096)
def parse_pattern(text: str) -> PathPattern:
    """Parse a path. Raises ValueError, with the place, for what is no path, or none that is read here."""
    path = read_standard_path(text)
    if path.steps is not None and not any("'" in step for step in path.steps if isinstance(step, str)):
        return pattern_of_steps(path.steps)
    _parse_jsonpath(path.spelling)
    # Indexes that were built when escapes were not understood have other values under the path as it is written.
    return PathPattern(path.spelling if "\\" in text else text, None, path.spelling)


def pattern_of_steps(steps: Sequence[StandardStep]) -> PathPattern:
    """Make a path of its steps, in the one spelling of summaries."""
    return PathPattern("$" + "".join(map(_step_text, steps)), tuple(steps))


def _step_text(step: StandardStep) -> str:
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
