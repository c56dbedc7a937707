"""Extraction of values from the documents of a zone: those at each path, each document parsed once.

orjson reads what Jackson reads alike, and fast. It is not asked about documents on which the two differ: those that it
refuses, that say a name twice in one object, or that are near one of Jackson's limits; the engine's own reader is,
which is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from fuse_index.plugin import json_documents, json_paths
from fuse_plugins.json_path.known_names import KnownNames
from fuse_plugins.json_path.path_statistics import (
    FLOAT_KIND,
    KIND_OF_FIRST_SIGN,
    KIND_OF_PYTHON_TYPE,
    SPELLING_VARIES,
    STRING_KIND,
)
from fuse_plugins.json_path.paths import MISSING_VALUE, PathPattern, parse_document, scalar_text

_Path = tuple[str | int, ...]

_DOCUMENTS_PER_CHUNK = 96
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
    """The values that documents of one zone hold at one path."""

    texts: set[str] = field(default_factory=set)
    """Scalars as ``get_json_object`` spells them; older Javas spell some floats otherwise (SPELLING_VARIES)."""
    kinds: int = 0
    present: int = 0
    """Documents in which ``get_json_object`` finds something."""


@dataclass
class ZoneValues:
    """The values that the documents of one zone hold at each of some paths."""

    patterns: Sequence[PathPattern]
    values: list[PathValues] = field(default_factory=list)
    names: KnownNames | None = None
    """All names in the documents, if they are asked for."""
    documents: int = 0
    doubtful: int = 0
    """The number of documents of which nothing is sure."""
    unusual: int = 0
    """The number of documents that are not read alike by all readers."""

    def __post_init__(self) -> None:
        self.values = [PathValues() for _ in self.patterns]

    def add_documents(self, documents: pa.Array) -> None:
        """Add an array of strings; nulls are no documents."""
        documents = documents.drop_null()
        self.documents += len(documents)
        near_limits = np.zeros(len(documents), np.bool_)
        near_limits[list(documents_near_limits(documents))] = True
        for start in range(0, len(documents), _DOCUMENTS_PER_CHUNK):
            self._add_chunk(
                documents.slice(start, _DOCUMENTS_PER_CHUNK),
                set(np.flatnonzero(near_limits[start : start + _DOCUMENTS_PER_CHUNK]).tolist()),
            )

    def _add_chunk(self, documents: pa.StringArray, exact_rows: set[int]) -> None:
        texts: list[str] = documents.to_pylist()
        trees, refused_rows = parse_documents(texts)
        exact_rows |= refused_rows | documents_with_repeated_names(documents, texts, trees, refused_rows)
        values_by_path = self._values_by_path(trees)
        values_by_pattern = [self._path_values(pattern, trees, values_by_path, exact_rows) for pattern in self.patterns]
        for number, pattern in enumerate(self.patterns):
            rows, values = values_by_pattern[number]
            if exact_rows:
                values = [value for row, value in zip(rows, values, strict=True) if row not in exact_rows]
            self._add_values(self.values[number], values, pattern.single_steps)
        self.unusual += len(exact_rows)
        if self.names is not None:
            for tree in trees:
                self.names.add_tree(tree)
            for row in exact_rows:
                self.names.add_text(texts[row])
        for row in exact_rows:
            self._add_exactly(texts[row])

    def _path_values(
        self, pattern: PathPattern, trees: list[Any], values_by_path: dict[_Path, list[Any]], exact_rows: set[int]
    ) -> tuple[Sequence[int], list[Any]]:
        """Return the values at a path, MISSING_VALUE among them, and before them the row of each.

        Rows of documents with large numbers are added to ``exact_rows``, which are to be read exactly.
        """
        rows: Sequence[int] = range(len(trees))
        if pattern.single_steps is not None:
            values = values_by_path[pattern.single_steps]
        else:
            pairs = [(row, value) for row in rows if row not in exact_rows for value in pattern.matches(trees[row])]
            rows, values = [row for row, _ in pairs], [value for _, value in pairs]
        if float in set(map(type, values)):
            exact_rows |= {
                row
                for row, value in zip(rows, values, strict=True)
                if type(value) is float and abs(value) >= _MIN_INEXACT_FLOAT
            }
        return rows, values

    def _values_by_path(self, trees: list[Any]) -> dict[_Path, list[Any]]:
        """Find, at each path and each path above it, the value in every document, or MISSING_VALUE."""
        values_by_path: dict[_Path, list[Any]] = {(): trees}
        for pattern in self.patterns:
            for end, step in enumerate(pattern.single_steps or ()):
                prefix, path = pattern.single_steps[:end], pattern.single_steps[: end + 1]  # type: ignore[index]
                if path in values_by_path:
                    continue
                if isinstance(step, str):
                    values_by_path[path] = [
                        node.get(step, MISSING_VALUE) if type(node) is dict else MISSING_VALUE
                        for node in values_by_path[prefix]
                    ]
                else:
                    values_by_path[path] = [
                        node[step] if type(node) is list and step < len(node) else MISSING_VALUE
                        for node in values_by_path[prefix]
                    ]
        return values_by_path

    def _add_values(self, values: PathValues, column: list[Any], steps: _Path | None) -> None:
        """Add one value of each document, MISSING_VALUE where there is none.

        A null is no member; as an element, or alone, it is a text. ``steps``: of a path to one value at most.
        """
        if steps is not None:
            null_is_text = not steps or not isinstance(steps[-1], str)
            nulls = column.count(None)
            values.present += len(column) - column.count(MISSING_VALUE) - (0 if null_is_text else nulls)
            if null_is_text and nulls:
                values.texts.add("null")
                values.kinds |= STRING_KIND
        self._add_scalars(values, set(map(type, column)), column)

    def _add_scalars(self, values: PathValues, types: set[type], column: list[Any]) -> None:
        """Add the texts and kinds of the values in a column, which are of these types."""
        for value_type in types & KIND_OF_PYTHON_TYPE.keys():
            values.kinds |= KIND_OF_PYTHON_TYPE[value_type]
            if value_type is str:
                values.texts.update(column if len(types) == 1 else (value for value in column if type(value) is str))
            elif value_type in (int, bool, float):
                distinct = {value for value in column if type(value) is value_type}
                values.texts.update(map(scalar_text, distinct))  # type: ignore[arg-type]
                if value_type is float and not all(map(json_documents.is_plain, distinct)):
                    values.kinds |= SPELLING_VARIES

    def _add_exactly(self, text: str) -> None:
        """Add one document as the engine's own reader has it."""
        for pattern, values in zip(self.patterns, self.values, strict=True):
            for value in values_at(pattern, text):
                self._add_scalars(values, {type(value)}, [value])
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
    """List what the path finds in one document; integers in full."""
    tree = parse_document(text)
    values = [] if tree is MISSING_VALUE else pattern.matches(tree)
    if any(type(value) is float and abs(value) >= _MIN_INEXACT_FLOAT for value in values):
        return pattern.matches(parse_document(text, exact=True))
    return values


def parse_documents(texts: list[str]) -> tuple[list[Any], set[int]]:
    """Parse documents by orjson: their trees, and the rows of those that it refuses."""
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
    documents: pa.StringArray, texts: list[str], trees: list[Any], refused: set[int]
) -> set[int]:
    """Find the rows of documents that may say a name twice.

    Written again from their trees, which keep the last value of each name, those have fewer quotes.
    """
    count = count_quotes(_text_bytes(documents)) - sum(count_quotes(texts[row].encode()) for row in refused)
    if count == _written_quotes(trees):
        return set()
    pairs = enumerate(zip(texts, trees, strict=True))
    return {
        row
        for row, (text, tree) in pairs
        if row not in refused and count_quotes(text.encode()) != _written_quotes(tree)
    }


def _written_quotes(tree: Any) -> int | None:
    """Count the quotes in a tree that is written; None if it is too deep for orjson to write what it has read."""
    try:
        return orjson.dumps(tree).count(b'"')
    except TypeError:
        return None


def count_quotes(data: bytes) -> int:
    """Count quotes, those too that are written as escapes; maybe too many, never too few."""
    return data.count(b'"') + data.count(b"\\u0022")


def documents_near_limits(documents: pa.StringArray) -> Iterator[int]:
    """Yield the rows of documents that may be beyond one of Jackson's limits."""
    ends = _text_offsets(documents)
    lengths = np.diff(ends)
    yield from np.flatnonzero(lengths > _MANY_CHARACTERS).tolist()
    for row in np.flatnonzero(lengths > 2 * _MANY_LEVELS).tolist():
        text = documents[row].as_py()
        if text.count("[") + text.count("{") > _MANY_LEVELS:
            yield row
    data = np.frombuffer(_text_bytes(documents), np.uint8)
    # A thousand digits in a row have two samples in them, one after the other.
    is_number_byte = _IS_NUMBER_BYTE[data[::_DIGIT_STRIDE]]
    for sample in np.flatnonzero(is_number_byte[:-1] & is_number_byte[1:]).tolist():
        start = sample * _DIGIT_STRIDE
        if _IS_NUMBER_BYTE[data[start : start + _DIGIT_STRIDE]].all():
            yield int(np.searchsorted(ends - ends[0], start, side="right")) - 1


def _text_bytes(documents: pa.StringArray) -> bytes:
    """The texts, one after the other."""
    ends = _text_offsets(documents)
    data = documents.buffers()[2]
    return b"" if data is None or not len(ends) else bytes(memoryview(data)[int(ends[0]) : int(ends[-1])])


def _text_offsets(documents: pa.StringArray) -> npt.NDArray[np.int32]:
    """Return the offsets of n texts in their buffer, and the end of the last: int32, shape (n + 1,)."""
    return np.frombuffer(documents.buffers()[1], np.int32)[documents.offset : documents.offset + len(documents) + 1]
