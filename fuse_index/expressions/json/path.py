"""``get_json_object``: paths in Spark's own small language, and what they find in a document.

``$``, then any of ``.name``, ``['name']``, ``[3]``, ``[*]``, ``.*`` and ``['*']``; any other text is no path, and finds
NULL everywhere, as the last two do. A member that is null is passed over, one name twice is looked at twice, and
several matches are written as an array, flattened here and there as Hive did.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.expressions.errors import MalformedJson, NotReproducible
from fuse_index.expressions.json.reader import Float, Members, read_json
from fuse_index.expressions.json.writer import write_json


class Every(Enum):
    """``[*]``, and what only looks like it: ``.*`` finds nothing in Spark."""

    ELEMENT = "[*]"
    MEMBER = ".*"


JsonPathStep = str | int | Every
JsonPathSteps = tuple[JsonPathStep, ...]

_BLANK = r"[ \t\n\x0b\f\r]*+"
"""Spark's parser skips blanks before names and numbers, not before signs."""
_STEP = re.compile(
    rf"(?P<member>{_BLANK}\.\*|{_BLANK}\['\*'\])"
    rf"|\.{_BLANK}(?P<dotted>[^.\[]+)"
    rf"|{_BLANK}\['{_BLANK}(?P<quoted>[^']+)'\]"
    rf"|\[(?:(?P<element>\*)|{_BLANK}(?P<index>[0-9]+))\]"
)
_MAX_ARRAY_INDEX = (1 << 63) - 1

_RAW, _QUOTED, _FLAT = "raw", "quoted", "flat"


@lru_cache(maxsize=4096)
def parse(text: str) -> JsonPathSteps | None:
    """The steps of a path; None for what is no path to Spark. Raises NotReproducible for one on which Spark fails."""
    if not text.startswith("$"):
        return None
    steps: list[JsonPathStep] = []
    place, end = 1, len(text.rstrip("\t\n\x0b\x0c\r "))
    while place < end:
        found = _STEP.match(text, place)
        if found is None:
            return None
        place = found.end()
        steps.append(_step(found))
    return tuple(steps)


def path_from_names(names: Sequence[str]) -> str:
    """The path that leads along these names."""
    return "$" + "".join(f"['{name}']" for name in names)


def _step(found: re.Match[str]) -> JsonPathStep:
    if found["member"]:
        return Every.MEMBER
    if found["element"]:
        return Every.ELEMENT
    if found["index"]:
        if int(found["index"]) > _MAX_ARRAY_INDEX:
            raise NotReproducible(f"{found['index']} as a place in an array")
        return int(found["index"])
    return found["dotted"] or found["quoted"]


SURE, SPELLING, ANYTHING = 0, 1, 2
"""What may be wrong with a text that was found: nothing; its spelling, in digits or escapes; everything, its being NULL
too.
"""


@dataclass(frozen=True)
class JsonPathMatches:
    """What a path finds in documents, and how sure each text is."""

    texts: pa.StringArray
    doubts: npt.NDArray[np.uint8]


def get_json_objects(documents: pa.Array, path: str) -> JsonPathMatches:
    """What ``get_json_object`` gives for each document."""
    steps = parse(path)
    if steps is None or Every.MEMBER in steps:
        return JsonPathMatches(pa.nulls(len(documents), pa.string()), np.zeros(len(documents), np.uint8))
    found = [(None, SURE) if document is None else find(document, steps) for document in documents.to_pylist()]
    return JsonPathMatches(
        pa.array([text for text, _ in found], pa.string()), np.array([doubt for _, doubt in found], np.uint8)
    )


def find(document: str, steps: JsonPathSteps) -> tuple[str | None, int]:
    """What ``get_json_object`` gives for a document, and how sure that is."""
    try:
        return find_in(read_json(document), steps)
    except MalformedJson:
        return None, SURE
    except NotReproducible:
        return None, ANYTHING


def find_in(tree: Any, steps: JsonPathSteps) -> tuple[str | None, int]:
    """Evaluate the path on a document that was read already."""
    doubt = SURE
    out: list[str] = []
    try:
        matched = _walk(tree, steps, _RAW, out, True)
    except NotReproducible:
        doubt, out = SPELLING, []
        matched = _walk(tree, steps, _RAW, out, False)
    except RecursionError:
        return None, ANYTHING
    if not matched:
        return None, SURE
    return (out[0], doubt) if len(out) == 1 and _is_utf8(out[0]) else (None, ANYTHING)


def _walk(node: Any, steps: Sequence[JsonPathStep], style: str, out: list[str], sure: bool) -> bool:
    """Write what the steps find below ``node`` to ``out``; whether that is anything."""
    if not steps:
        return _leaf(node, style, out, sure)
    first, rest = steps[0], steps[1:]
    if isinstance(node, Members) and isinstance(first, str):
        return any(_walk(value, rest, style, out, sure) for name, value in node if name == first and value is not None)
    if not isinstance(node, list) or isinstance(node, Members) or isinstance(first, str):
        return False
    if isinstance(first, int):
        inner = _QUOTED if rest and rest[0] is Every.ELEMENT else style
        return first < len(node) and _walk(node[first], rest, inner, out, sure)
    if rest and rest[0] is Every.ELEMENT:
        return _array(node, rest[1:], _FLAT, out, sure)
    if style == _QUOTED:
        return _array(node, rest, _QUOTED, out, sure)
    found: list[str] = []
    count = sum(_walk(element, rest, _FLAT if style == _FLAT else _QUOTED, found, sure) for element in node)
    if count:
        joined = ",".join(found)
        out.append(f"[{joined}]" if count > 1 else joined)
    return count > 0


def _leaf(node: Any, style: str, out: list[str], sure: bool) -> bool:
    if style == _FLAT and isinstance(node, list) and not isinstance(node, Members):
        return (
            sum(_walk(element, (), _FLAT, out, sure) for element in node) > 0
        )  # all are written, whatever the first one gave
    out.append(
        node if style == _RAW and isinstance(node, str) and not isinstance(node, Float) else write_json(node, sure)
    )
    return True


def _array(node: list[Any], rest: Sequence[JsonPathStep], style: str, out: list[str], sure: bool) -> bool:
    found: list[str] = []
    count = sum(_walk(element, rest, style, found, sure) for element in node)
    out.append(f"[{','.join(found)}]")
    return count > 0


def _is_utf8(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)
