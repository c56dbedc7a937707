"""From the documents of a zone to the values at each path, each document parsed once.

orjson reads what Jackson reads alike, and fast. It is not asked about documents on which the two differ: those that it
refuses, that say a name twice in one object, or that are near one of Jackson's limits; the engine's own reader is,
which is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from fuse_index.plugin import json_documents, json_paths
from fuse_plugins.json_path.path_statistics import (
    FLOAT_KIND,
    KIND_OF_FIRST_SIGN,
    KIND_OF_PYTHON_TYPE,
    SPELLING_VARIES,
    STRING_KIND,
)
from fuse_plugins.json_path.paths import MISSING_VALUE, PathPattern, parse_document, scalar_text

_Path = tuple[str | int, ...]

DOCUMENTS_PER_CHUNK = 96
"""Documents that are held parsed at once: so few fit in a processor's cache, and are parsed three times as fast as two
thousand.
"""
_MANY_CHARACTERS, _MANY_LEVELS, _MANY_DIGITS = 50_000, 1000, 1000
"""Characters, signs that open a level, digits in a row: documents with as many may be beyond a limit of Jackson's."""
_DIGIT_STRIDE = _MANY_DIGITS // 2
_IS_NUMBER_BYTE = np.isin(np.arange(256), np.frombuffer(b"0123456789.eE+-", np.uint8))
_MIN_INEXACT_FLOAT = float(1 << 63)
"""From here on, orjson's floats may be integers."""


@dataclass
class PathValues:
    """What documents of one zone hold at one path."""

    texts: set[str] = field(default_factory=set)
    """Of scalars, as ``get_json_object`` spells them; some floats have another spelling in older Javas (SPELLING)."""
    kinds: int = 0
    present: int = 0
    """Documents in which ``get_json_object`` finds something."""


@dataclass
class ZoneValues:
    """The values at each of some paths."""

    patterns: Sequence[PathPattern]
    values: list[PathValues] = field(default_factory=list)
    documents: int = 0
    doubtful: int = 0
    """Documents of which nothing is sure."""
    unusual: int = 0
    """Documents that are not read alike by all readers."""

    def __post_init__(self) -> None:
        self.values = [PathValues() for _ in self.patterns]

    def add_documents(self, documents: pa.Array) -> None:
        documents = documents.drop_null()
        self.documents += len(documents)
        limits = np.zeros(len(documents), np.bool_)
        limits[list(documents_near_limits(documents))] = True
        for start in range(0, len(documents), DOCUMENTS_PER_CHUNK):
            self._chunk(
                documents.slice(start, DOCUMENTS_PER_CHUNK),
                set(np.flatnonzero(limits[start : start + DOCUMENTS_PER_CHUNK]).tolist()),
            )

    def _chunk(self, documents: pa.StringArray, exactly: set[int]) -> None:
        texts: list[str] = documents.to_pylist()
        trees, refused = parse_documents(texts)
        exactly |= refused | documents_with_repeated_names(documents, texts, trees, refused)
        nodes = self._values_by_path(trees)
        found = [self._path_values(pattern, trees, nodes, exactly) for pattern in self.patterns]
        for number, pattern in enumerate(self.patterns):
            rows, column = found[number]
            if exactly:
                column = [value for row, value in zip(rows, column, strict=True) if row not in exactly]
            self._add(self.values[number], column, pattern.single_steps)
        self.unusual += len(exactly)
        for row in exactly:
            self._add_exactly(texts[row])

    def _path_values(
        self, pattern: PathPattern, trees: list[Any], nodes: dict[_Path, list[Any]], exactly: set[int]
    ) -> tuple[Sequence[int], list[Any]]:
        """The values at a path, MISSING among them, and of which document each is. Documents with large numbers are to
        be read exactly.
        """
        rows: Sequence[int] = range(len(trees))
        if pattern.single_steps is not None:
            column = nodes[pattern.single_steps]
        else:
            pairs = [(row, value) for row in rows if row not in exactly for value in pattern.matches(trees[row])]
            rows, column = [row for row, _ in pairs], [value for _, value in pairs]
        if float in set(map(type, column)):
            exactly |= {
                row
                for row, value in zip(rows, column, strict=True)
                if type(value) is float and abs(value) >= _MIN_INEXACT_FLOAT
            }
        return rows, column

    def _values_by_path(self, trees: list[Any]) -> dict[_Path, list[Any]]:
        """Of each path and each path above it, the value in every document, or MISSING."""
        nodes: dict[_Path, list[Any]] = {(): trees}
        for pattern in self.patterns:
            for end, step in enumerate(pattern.single_steps or ()):
                above, here = pattern.single_steps[:end], pattern.single_steps[: end + 1]  # type: ignore[index]
                if here in nodes:
                    continue
                if isinstance(step, str):
                    nodes[here] = [
                        node.get(step, MISSING_VALUE) if type(node) is dict else MISSING_VALUE for node in nodes[above]
                    ]
                else:
                    nodes[here] = [
                        node[step] if type(node) is list and step < len(node) else MISSING_VALUE
                        for node in nodes[above]
                    ]
        return nodes

    def _add(self, values: PathValues, column: list[Any], single: _Path | None) -> None:
        """One value of each document, MISSING where there is none; null is no member, but as an element, or alone, it
        is a text.
        """
        if single is not None:
            null_is_text = not single or not isinstance(single[-1], str)
            nulls = column.count(None)
            values.present += len(column) - column.count(MISSING_VALUE) - (0 if null_is_text else nulls)
            if null_is_text and nulls:
                values.texts.add("null")
                values.kinds |= STRING_KIND
        self._take(values, set(map(type, column)), column)

    def _take(self, values: PathValues, kinds: set[type], column: list[Any]) -> None:
        for kind in kinds & KIND_OF_PYTHON_TYPE.keys():
            values.kinds |= KIND_OF_PYTHON_TYPE[kind]
            if kind is str:
                values.texts.update(column if len(kinds) == 1 else (value for value in column if type(value) is str))
            elif kind in (int, bool, float):
                distinct = {value for value in column if type(value) is kind}
                values.texts.update(map(scalar_text, distinct))  # type: ignore[arg-type]
                if kind is float and not all(map(json_documents.is_plain, distinct)):
                    values.kinds |= SPELLING_VARIES

    def _add_exactly(self, text: str) -> None:
        for pattern, values in zip(self.patterns, self.values, strict=True):
            for value in values_at(pattern, text):
                self._take(values, {type(value)}, [value])
            if pattern.single_steps is None:
                continue
            found, doubt = json_paths.find(text, pattern.single_steps)
            if doubt == json_paths.ANYTHING:
                self.doubtful += 1
            elif found is not None:
                values.present += 1
                values.texts.add(found)
                values.kinds |= (
                    STRING_KIND | (SPELLING_VARIES | FLOAT_KIND if doubt else 0) | KIND_OF_FIRST_SIGN.get(found[:1], 0)
                )


def values_at(pattern: PathPattern, text: str) -> Sequence[Any]:
    """What the path finds in one document; integers in full."""
    tree = parse_document(text)
    found = [] if tree is MISSING_VALUE else pattern.matches(tree)
    if any(type(value) is float and abs(value) >= _MIN_INEXACT_FLOAT for value in found):
        return pattern.matches(parse_document(text, exact=True))
    return found


def parse_documents(texts: list[str]) -> tuple[list[Any], set[int]]:
    """The documents as orjson reads them, and which of them it refuses."""
    try:
        return list(map(orjson.loads, texts)), set()
    except ValueError:
        trees: list[Any] = [None] * len(texts)
        refused = set()
        for row, text in enumerate(texts):
            try:
                trees[row] = orjson.loads(text)
            except ValueError:
                refused.add(row)
        return trees, refused


def documents_with_repeated_names(
    documents: pa.StringArray, texts: list[str], trees: list[Any], unread: set[int]
) -> set[int]:
    """Documents that may say a name twice: written again from their trees, which keep the last of each, they have fewer
    quotes.
    """
    if count_quotes(_text_bytes(documents)) - sum(count_quotes(texts[row].encode()) for row in unread) == orjson.dumps(
        trees
    ).count(b'"'):
        return set()
    pairs = enumerate(zip(texts, trees, strict=True))
    return {
        row
        for row, (text, tree) in pairs
        if row not in unread and count_quotes(text.encode()) != orjson.dumps(tree).count(b'"')
    }


def count_quotes(data: bytes) -> int:
    """Quotes, those too that are written as escapes; maybe too many, never too few."""
    return data.count(b'"') + data.count(b"\\u0022")


def documents_near_limits(documents: pa.StringArray) -> Iterator[int]:
    """Documents that may be beyond one of Jackson's limits."""
    ends = np.frombuffer(documents.buffers()[1], np.int32)[documents.offset : documents.offset + len(documents) + 1]
    lengths = np.diff(ends)
    yield from np.flatnonzero(lengths > _MANY_CHARACTERS).tolist()
    for row in np.flatnonzero(lengths > 2 * _MANY_LEVELS).tolist():
        text = documents[row].as_py()
        if text.count("[") + text.count("{") > _MANY_LEVELS:
            yield row
    data = np.frombuffer(_text_bytes(documents), np.uint8)
    sampled = _IS_NUMBER_BYTE[
        data[::_DIGIT_STRIDE]
    ]  # a thousand digits in a row have two samples in them, one after the other
    for place in np.flatnonzero(sampled[:-1] & sampled[1:]).tolist():
        start = place * _DIGIT_STRIDE
        if _IS_NUMBER_BYTE[data[start : start + _DIGIT_STRIDE]].all():
            yield int(np.searchsorted(ends - ends[0], start, side="right")) - 1


def _text_bytes(documents: pa.StringArray) -> bytes:
    ends = np.frombuffer(documents.buffers()[1], np.int32)[documents.offset : documents.offset + len(documents) + 1]
    data = documents.buffers()[2]
    return b"" if data is None or not len(ends) else bytes(memoryview(data)[int(ends[0]) : int(ends[-1])])
