"""The payload of one column of one block: dictionaries of terms, and after each its postings, all read by range.

Terms are cut into at most ``CHUNKS`` dictionaries, of which the summary has the first terms, so that a term that is not
there costs one short read. A dictionary says of each term in how many rows it is, and where its postings lie: those of
terms that are about as frequent together, in parts of about ``PART`` occurrences: gaps between rows, then counts, then
positions, each compressed on its own. Numbers are split into planes of bytes before zstd sees them: of the gaps of like
terms it makes nearly as few bits as there can be. Knows no queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.plugin import Payload
from fuse_plugins.full_text.analysis import TokenNumbers
from fuse_plugins.full_text.inverted import Hits, InvertedIndex, select_terms

MAX_DICTIONARIES = 24
MIN_DICTIONARY_BYTES = 1 << 16
"""Of terms in one dictionary, unless there would be more than ``CHUNKS``."""
PART_OCCURRENCES = 1 << 16
MIN_ROWS_OF_LONE_TERM = 1 << 12
"""Terms in so many rows lie alone; words of one phrase are often in the same rows, which are then kept once."""
MAX_FIRST_TERM_BYTES = 16
"""Bytes of a dictionary's first term that the summary keeps."""
ZSTD_LEVEL = 3

TEXT_SUMMARY_TYPE = pa.struct(
    [
        ("terms", pa.int64()),
        ("rows", pa.int64()),  # that have any term
        ("tokens", pa.int64()),
        ("positions", pa.bool_()),
        ("firsts", pa.list_(pa.binary())),  # of each dictionary, the first term, cut
        ("last", pa.binary()),  # no term begins after it
        ("begin", pa.int64()),
        ("starts", pa.list_(pa.int64())),  # where each dictionary begins, and where the lengths of texts do
        ("sizes", pa.list_(pa.int32())),  # of each dictionary
        ("end", pa.int64()),
    ]
)


def write_postings(inverted: InvertedIndex, positions: bool, begin: int) -> tuple[dict[str, Any], bytes]:
    """The summary of a column, and its bytes, which will lie at ``begin`` of the payload."""
    at, counts, firsts = inverted.postings
    raw = inverted.terms.cast(pa.binary())
    offsets = (
        np.frombuffer(raw.buffers()[1], np.int32)[: len(raw) + 1].astype(np.int64)
        if len(raw)
        else np.zeros(1, np.int64)
    )
    cuts = _dictionary_starts(
        offsets - offsets[0], max(MIN_DICTIONARY_BYTES, -(-int(offsets[-1] - offsets[0]) // MAX_DICTIONARIES))
    )
    kept = _BlobWriter()
    starts, sizes = [], []
    for low, high in pairwise(cuts):
        rows = np.diff(firsts[low : high + 1])
        order, ends = _group_by_frequency(rows)
        blobs = [
            _encode_part(inverted, counts, at, firsts, low + order[first:last], positions)
            for first, last in pairwise([0, *ends.tolist()])
        ]
        places = np.array([kept.add(blob) for part in blobs for blob in part], np.int64).reshape(-1, 2)
        head = compress_arrays(
            np.diff(offsets[low : high + 1]), rows, *places.T, b"".join(raw.slice(low, high - low).to_pylist())
        )
        starts.append(begin + kept.size)
        sizes.append(len(head))
        kept.append(head)
    lengths_of_texts = np.bincount(inverted.row, minlength=inverted.rows)
    norms = compress_arrays(lengths_of_texts)
    summary = {
        "terms": len(raw),
        "rows": int(np.count_nonzero(lengths_of_texts)),
        "tokens": len(inverted.row),
        "positions": positions,
        "firsts": [raw[low].as_py()[:MAX_FIRST_TERM_BYTES] for low in cuts[:-1]],
        "last": _upper_bound(raw[-1].as_py()) if len(raw) else b"",
        "begin": begin,
        "starts": [*starts, begin + kept.size],
        "sizes": sizes,
        "end": begin + kept.size + len(norms),
    }
    return summary, b"".join([*kept.blobs, norms])


@dataclass
class _BlobWriter:
    """Bytes one after the other, equal ones once."""

    blobs: list[bytes] = field(default_factory=list)
    size: int = 0
    places: dict[bytes, int] = field(default_factory=dict)

    def add(self, blob: bytes) -> tuple[int, int]:
        """Where it lies, and how long it is."""
        if blob not in self.places:
            self.places[blob] = self.append(blob)
        return self.places[blob], len(blob)

    def append(self, blob: bytes) -> int:
        self.blobs.append(blob)
        self.size += len(blob)
        return self.size - len(blob)


def _dictionary_starts(offsets: TokenNumbers, size: int) -> list[int]:
    """Where dictionaries begin, by terms, and the end."""
    count = len(offsets) - 1
    marks = np.searchsorted(offsets, np.arange(0, max(int(offsets[-1]), 1), size))
    return [*np.unique(np.minimum(marks, max(count - 1, 0))).tolist(), count] if count else [0]


def _group_by_frequency(rows: TokenNumbers) -> tuple[TokenNumbers, TokenNumbers]:
    """An order of terms in which those that are about as frequent stand together, and where parts of it end.

    ``rows``: in how many rows each term is. Whoever reads a dictionary finds the same.
    """
    kinds = (np.log2(np.maximum(rows, 1)).astype(np.int8) // 3).astype(
        np.int8
    )  # of one byte, which numpy sorts by radix
    order = np.argsort(kinds, kind="stable")
    # A part ends where another kind begins, and where it would grow beyond its size.
    before = np.cumsum(rows[order]) - rows[order]
    base = np.maximum.accumulate(np.where(np.diff(kinds[order], prepend=np.int8(-1)) != 0, before, 0))
    number = kinds[order].astype(np.int64) << 32 | np.where(
        rows[order] < MIN_ROWS_OF_LONE_TERM, (before - base) // PART_OCCURRENCES, np.arange(len(order))
    )
    return order, np.append(np.flatnonzero(np.diff(number)) + 1, len(order))


def _encode_part(
    made: InvertedIndex,
    counts: TokenNumbers,
    at: TokenNumbers,
    firsts: TokenNumbers,
    terms: TokenNumbers,
    positions: bool,
) -> tuple[bytes, ...]:
    here = _ranges_to_indices(firsts[terms], firsts[terms + 1] - firsts[terms])
    sizes = firsts[terms + 1] - firsts[terms]
    rows = made.row[at[here]]
    gaps = np.diff(rows, prepend=0)
    heads = np.cumsum(sizes) - sizes
    gaps[heads] = rows[heads]
    starts = made.starts[terms]
    places = (
        compress_arrays(made.position[_ranges_to_indices(starts, made.starts[terms + 1] - starts)])
        if positions
        else b""
    )
    return compress_arrays(gaps), compress_arrays(counts[here] - 1), places


def _ranges_to_indices(starts: TokenNumbers, sizes: TokenNumbers) -> TokenNumbers:
    """``sizes[i]`` numbers that begin with ``starts[i]``, for each i."""
    ends = np.cumsum(sizes)
    return np.asarray(
        np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(starts - (ends - sizes), sizes), np.int64
    )


def _upper_bound(term: bytes) -> bytes:
    """A short bound that no smaller term is above."""
    return term if len(term) <= MAX_FIRST_TERM_BYTES else term[:MAX_FIRST_TERM_BYTES] + b"\xff"


# --- bytes --------------------------------------------------------------------------------------------------------


def compress_arrays(*values: npt.NDArray[Any] | bytes) -> bytes:
    """Numbers below 2³² and bytes, compressed together; the lengths stand before them."""
    parts = [value if isinstance(value, bytes) else _byte_planes(value) for value in values]
    heads = np.array([len(parts), *(len(value) for value in values), sum(map(len, parts))], np.uint32)
    packed = pa.Codec("zstd", ZSTD_LEVEL).compress(b"".join(parts), asbytes=True)
    return heads.tobytes() + bytes(packed)


def decompress_arrays(data: bytes, texts: int = 0) -> list[Any]:
    """What ``squeeze`` was given; the last ``texts`` parts as bytes."""
    count = int(np.frombuffer(data, np.uint32, 1)[0])
    heads = np.frombuffer(data, np.uint32, count + 1, 4)
    body = pa.Codec("zstd").decompress(memoryview(data)[4 * count + 8 :], int(heads[-1]), asbytes=True)
    found: list[Any] = []
    place = 0
    for number, length in enumerate(heads[:-1].tolist()):
        if number >= count - texts:
            found.append(body[place : place + length])
            place += length
        else:
            planes = np.frombuffer(body, np.uint8, 4 * length, place).reshape(4, length)
            found.append(np.ascontiguousarray(planes.T).view("<u4").ravel().astype(np.int64))
            place += 4 * length
    return found


def _byte_planes(values: npt.NDArray[Any]) -> bytes:
    return np.ascontiguousarray(values.astype("<u4").view(np.uint8).reshape(-1, 4).T).tobytes()


# --- reading ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Dictionary:
    """``rank``: of each term its place in the order of parts; ``before``: of each place, the rows of all terms before
    it.

    ``places`` and ``lengths`` of the bytes of each part, from where the column begins in the payload.
    """

    terms: pa.Array
    rows: TokenNumbers
    part_rank: TokenNumbers
    rows_before: TokenNumbers
    ends: TokenNumbers
    places: TokenNumbers
    lengths: TokenNumbers

    @property
    def nbytes(self) -> int:
        numbers = (self.rows, self.part_rank, self.rows_before, self.ends, self.places, self.lengths)
        return int(self.terms.nbytes) + sum(part.nbytes for part in numbers)

    @classmethod
    def read(cls, data: bytes) -> _Dictionary:
        sizes, rows, places, lengths, text = decompress_arrays(data, texts=1)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        terms = pa.Array.from_buffers(
            pa.string(), len(sizes), [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(text)]
        )
        order, ends = _group_by_frequency(rows)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        return cls(terms, rows, rank, np.concatenate([[0], np.cumsum(rows[order])]), ends, places, lengths)

    def find(self, term: bytes) -> int:
        """The term's number, or -1."""
        low, high = 0, len(self.terms)
        while low < high:
            middle = (low + high) // 2
            if self.terms[middle].as_buffer().to_pybytes() < term:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self.terms) and self.terms[low].as_buffer().to_pybytes() == term else -1


@dataclass(eq=False)
class StoredPostings:
    """The postings of one column of one block, read as they are asked for. Raises StorageError for damage."""

    payload: Payload
    summary: Mapping[str, Any]
    rows: int
    wants_counts: bool = False
    wants_positions: bool = False
    _dictionaries: dict[int, _Dictionary] = field(default_factory=dict)
    _parts: dict[tuple[int, int], tuple[TokenNumbers, TokenNumbers | None, TokenNumbers | None]] = field(
        default_factory=dict
    )

    def hits(self, term: str) -> Hits | None:
        wanted = term.encode()
        for chunk in self._chunks(wanted, wanted + b"\0"):
            dictionary = self._dictionary(chunk)
            if (number := dictionary.find(wanted)) >= 0:
                return self._hits(chunk, dictionary, number)
        return None

    def hits_between(self, low: bytes, high: bytes | None, accept: Callable[[pa.Array], pa.Array] | None) -> list[Hits]:
        found = []
        for chunk in self._chunks(low, high):
            dictionary = self._dictionary(chunk)
            found += [
                self._hits(chunk, dictionary, number) for number in select_terms(dictionary.terms, low, high, accept)
            ]
        return found

    def document_frequency(self, term: str) -> int:
        """In how many rows a term is; reads no postings."""
        wanted = term.encode()
        for chunk in self._chunks(wanted, wanted + b"\0"):
            dictionary = self._dictionary(chunk)
            if (number := dictionary.find(wanted)) >= 0:
                return int(dictionary.rows[number])
        return 0

    def top_terms(self, limit: int) -> list[tuple[str, int]]:
        """The terms in most rows, with their rows."""
        found: list[tuple[str, int]] = []
        for chunk in range(len(self.summary["sizes"])):
            dictionary = self._dictionary(chunk)
            counts = dictionary.rows
            best = np.argsort(-counts, kind="stable")[:limit]
            found += [(dictionary.terms[int(number)].as_py(), int(counts[number])) for number in best]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))[:limit]

    def row_lengths(self) -> TokenNumbers:
        """How many tokens each row has."""
        start = self.summary["starts"][-1]
        [data] = self.payload.read([(start, self.summary["end"] - start)])
        return np.asarray(decompress_arrays(data)[0])

    def _chunks(self, low: bytes, high: bytes | None) -> list[int]:
        """Dictionaries that may hold a term from ``low`` to before ``high``."""
        firsts: Sequence[bytes] = self.summary["firsts"]
        if low > self.summary["last"]:
            return []
        return [
            number
            for number, first in enumerate(firsts)
            # The first terms are cut, so a dictionary may begin after what stands here.
            if (high is None or first < high)
            and (number + 1 == len(firsts) or not firsts[number + 1] + b"\xff" * 8 < low)
        ]

    def _dictionary(self, chunk: int) -> _Dictionary:
        if chunk not in self._dictionaries:
            span = self.summary["starts"][chunk], self.summary["sizes"][chunk]
            self._dictionaries[chunk] = self.payload.decoded(span, _Dictionary.read, lambda read: read.nbytes)
        return self._dictionaries[chunk]

    def _hits(self, chunk: int, dictionary: _Dictionary, number: int) -> Hits:
        rank = int(dictionary.part_rank[number])
        part = int(np.searchsorted(dictionary.ends, rank, side="right"))
        begin = dictionary.rows_before[dictionary.ends[part - 1]] if part else 0
        gaps, counts, positions = self._part(chunk, dictionary, part)
        low, high = int(dictionary.rows_before[rank] - begin), int(dictionary.rows_before[rank + 1] - begin)
        rows = np.cumsum(gaps[low:high])
        if counts is None:
            return Hits(rows, np.ones(len(rows), np.int64), None)
        if positions is not None:
            before = int(counts[:low].sum())
            positions = positions[before : before + int(counts[low:high].sum())]
        return Hits(rows, counts[low:high], positions)

    def _part(
        self, chunk: int, dictionary: _Dictionary, part: int
    ) -> tuple[TokenNumbers, TokenNumbers | None, TokenNumbers | None]:
        if (chunk, part) not in self._parts:
            wanted = [
                0,
                *([1] if self.wants_counts or self.wants_positions else []),
                *([2] if self.wants_positions else []),
            ]
            begin = self.summary["begin"]
            ranges = [
                (begin + int(dictionary.places[3 * part + i]), int(dictionary.lengths[3 * part + i])) for i in wanted
            ]
            read = [decompress_arrays(data)[0] for data in self.payload.read(ranges)]
            counts = read[1] + 1 if len(read) > 1 else None
            self._parts[chunk, part] = read[0], counts, read[2] if len(read) > 2 else None
        return self._parts[chunk, part]
