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
from fuse_plugins.json_path.path_statistics import FLOAT, KINDS, SPELLING, STRING, STRUCTURES
from fuse_plugins.json_path.paths import MISSING, Pattern, parsed, scalar_text

Path = tuple[str | int, ...]

CHUNK = 96
"""Documents that are held parsed at once: so few fit in a processor's cache, and are parsed three times as fast as two
thousand.
"""
LONG, DEEP, DIGITS = 50_000, 1000, 1000
"""Characters, signs that open a level, digits in a row: documents with as many may be beyond a limit of Jackson's."""
STRIDE = DIGITS // 2
IN_NUMBERS = np.isin(np.arange(256), np.frombuffer(b"0123456789.eE+-", np.uint8))
LARGE = float(1 << 63)
"""From here on, orjson's floats may be integers."""


@dataclass
class Values:
    """What documents of one zone hold at one path."""

    texts: set[str] = field(default_factory=set)
    """Of scalars, as ``get_json_object`` spells them; some floats have another spelling in older Javas (SPELLING)."""
    kinds: int = 0
    present: int = 0
    """Documents in which ``get_json_object`` finds something."""


@dataclass
class Zone:
    """The values at each of some paths."""

    patterns: Sequence[Pattern]
    values: list[Values] = field(default_factory=list)
    documents: int = 0
    doubtful: int = 0
    """Documents of which nothing is sure."""
    unusual: int = 0
    """Documents that are not read alike by all readers."""

    def __post_init__(self) -> None:
        self.values = [Values() for _ in self.patterns]

    def read(self, documents: pa.Array) -> None:
        documents = documents.drop_null()
        self.documents += len(documents)
        limits = np.zeros(len(documents), np.bool_)
        limits[list(near_limits(documents))] = True
        for start in range(0, len(documents), CHUNK):
            self._chunk(documents.slice(start, CHUNK), set(np.flatnonzero(limits[start : start + CHUNK]).tolist()))

    def _chunk(self, documents: pa.StringArray, exactly: set[int]) -> None:
        texts: list[str] = documents.to_pylist()
        trees, refused = read_all(texts)
        exactly |= refused | repeating(documents, texts, trees, refused)
        nodes = self._walked(trees)
        found = [self._found(pattern, trees, nodes, exactly) for pattern in self.patterns]
        for number, pattern in enumerate(self.patterns):
            rows, column = found[number]
            if exactly:
                column = [value for row, value in zip(rows, column, strict=True) if row not in exactly]
            self._add(self.values[number], column, pattern.single)
        self.unusual += len(exactly)
        for row in exactly:
            self._exact(texts[row])

    def _found(
        self, pattern: Pattern, trees: list[Any], nodes: dict[Path, list[Any]], exactly: set[int]
    ) -> tuple[Sequence[int], list[Any]]:
        """The values at a path, MISSING among them, and of which document each is. Documents with large numbers are to
        be read exactly.
        """
        rows: Sequence[int] = range(len(trees))
        if pattern.single is not None:
            column = nodes[pattern.single]
        else:
            pairs = [(row, value) for row in rows if row not in exactly for value in pattern.matches(trees[row])]
            rows, column = [row for row, _ in pairs], [value for _, value in pairs]
        if float in set(map(type, column)):
            exactly |= {
                row for row, value in zip(rows, column, strict=True) if type(value) is float and abs(value) >= LARGE
            }
        return rows, column

    def _walked(self, trees: list[Any]) -> dict[Path, list[Any]]:
        """Of each path and each path above it, the value in every document, or MISSING."""
        nodes: dict[Path, list[Any]] = {(): trees}
        for pattern in self.patterns:
            for end, step in enumerate(pattern.single or ()):
                above, here = pattern.single[:end], pattern.single[: end + 1]  # type: ignore[index]
                if here in nodes:
                    continue
                if isinstance(step, str):
                    nodes[here] = [node.get(step, MISSING) if type(node) is dict else MISSING for node in nodes[above]]
                else:
                    nodes[here] = [
                        node[step] if type(node) is list and step < len(node) else MISSING for node in nodes[above]
                    ]
        return nodes

    def _add(self, values: Values, column: list[Any], single: Path | None) -> None:
        """One value of each document, MISSING where there is none; null is no member, but as an element, or alone, it
        is a text.
        """
        if single is not None:
            null_is_text = not single or not isinstance(single[-1], str)
            nulls = column.count(None)
            values.present += len(column) - column.count(MISSING) - (0 if null_is_text else nulls)
            if null_is_text and nulls:
                values.texts.add("null")
                values.kinds |= STRING
        self._take(values, set(map(type, column)), column)

    def _take(self, values: Values, kinds: set[type], column: list[Any]) -> None:
        for kind in kinds & KINDS.keys():
            values.kinds |= KINDS[kind]
            if kind is str:
                values.texts.update(column if len(kinds) == 1 else (value for value in column if type(value) is str))
            elif kind in (int, bool, float):
                distinct = {value for value in column if type(value) is kind}
                values.texts.update(map(scalar_text, distinct))  # type: ignore[arg-type]
                if kind is float and not all(map(json_documents.is_plain, distinct)):
                    values.kinds |= SPELLING

    def _exact(self, text: str) -> None:
        for pattern, values in zip(self.patterns, self.values, strict=True):
            for value in values_at(pattern, text):
                self._take(values, {type(value)}, [value])
            if pattern.single is None:
                continue
            found, doubt = json_paths.find(text, pattern.single)
            if doubt == json_paths.ANYTHING:
                self.doubtful += 1
            elif found is not None:
                values.present += 1
                values.texts.add(found)
                values.kinds |= STRING | (SPELLING | FLOAT if doubt else 0) | STRUCTURES.get(found[:1], 0)


def values_at(pattern: Pattern, text: str) -> Sequence[Any]:
    """What the path finds in one document; integers in full."""
    tree = parsed(text)
    found = [] if tree is MISSING else pattern.matches(tree)
    if any(type(value) is float and abs(value) >= LARGE for value in found):
        return pattern.matches(parsed(text, exact=True))
    return found


def read_all(texts: list[str]) -> tuple[list[Any], set[int]]:
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


def repeating(documents: pa.StringArray, texts: list[str], trees: list[Any], unread: set[int]) -> set[int]:
    """Documents that may say a name twice: written again from their trees, which keep the last of each, they have fewer
    quotes.
    """
    if quotes(_bytes(documents)) - sum(quotes(texts[row].encode()) for row in unread) == orjson.dumps(trees).count(
        b'"'
    ):
        return set()
    pairs = enumerate(zip(texts, trees, strict=True))
    return {
        row
        for row, (text, tree) in pairs
        if row not in unread and quotes(text.encode()) != orjson.dumps(tree).count(b'"')
    }


def quotes(data: bytes) -> int:
    """Quotes, those too that are written as escapes; maybe too many, never too few."""
    return data.count(b'"') + data.count(b"\\u0022")


def near_limits(documents: pa.StringArray) -> Iterator[int]:
    """Documents that may be beyond one of Jackson's limits."""
    ends = np.frombuffer(documents.buffers()[1], np.int32)[documents.offset : documents.offset + len(documents) + 1]
    lengths = np.diff(ends)
    yield from np.flatnonzero(lengths > LONG).tolist()
    for row in np.flatnonzero(lengths > 2 * DEEP).tolist():
        text = documents[row].as_py()
        if text.count("[") + text.count("{") > DEEP:
            yield row
    data = np.frombuffer(_bytes(documents), np.uint8)
    sampled = IN_NUMBERS[data[::STRIDE]]  # a thousand digits in a row have two samples in them, one after the other
    for place in np.flatnonzero(sampled[:-1] & sampled[1:]).tolist():
        start = place * STRIDE
        if IN_NUMBERS[data[start : start + STRIDE]].all():
            yield int(np.searchsorted(ends - ends[0], start, side="right")) - 1


def _bytes(documents: pa.StringArray) -> bytes:
    ends = np.frombuffer(documents.buffers()[1], np.int32)[documents.offset : documents.offset + len(documents) + 1]
    data = documents.buffers()[2]
    return b"" if data is None or not len(ends) else bytes(memoryview(data)[int(ends[0]) : int(ends[-1])])
