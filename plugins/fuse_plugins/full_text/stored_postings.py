"""Postings of one column of one block, read from its payload by range: dictionaries first, then parts, as asked for.

The reading side of ``layout``, which says where everything lies. Knows no queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from fuse_index.plugin import Payload
from fuse_plugins.full_text.analysis import TokenNumbers
from fuse_plugins.full_text.compression import decompress_arrays
from fuse_plugins.full_text.inverted import Hits, select_terms
from fuse_plugins.full_text.layout import group_by_frequency

_Part = tuple[TokenNumbers, TokenNumbers | None, TokenNumbers | None]
"""Gaps, counts and positions; None of what was not asked for."""


@dataclass(frozen=True, eq=False)
class _Dictionary:
    """The n terms of one dictionary, and where the bytes of their postings lie. All arrays are int64."""

    terms: pa.Array
    """Strings, sorted by their bytes."""
    rows: TokenNumbers
    """The number of rows with each term; shape (n,)."""
    rank: TokenNumbers
    """Each term's number in the order of ``group_by_frequency``; shape (n,)."""
    rows_before: TokenNumbers
    """For each rank, the rows of all terms before it; shape (n + 1,)."""
    part_ends: TokenNumbers
    """The rank at which each part ends; shape (parts,)."""
    places: TokenNumbers
    """Offsets of the blobs of each part, from the column's begin; in ``lengths`` their bytes; shape (3 × parts,)."""
    lengths: TokenNumbers

    @property
    def nbytes(self) -> int:
        arrays = (self.rows, self.rank, self.rows_before, self.part_ends, self.places, self.lengths)
        return int(self.terms.nbytes) + sum(array.nbytes for array in arrays)

    @classmethod
    def decode(cls, data: bytes) -> _Dictionary:
        sizes, rows, places, lengths, text = decompress_arrays(data, texts=1)
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(text)]
        terms = pa.Array.from_buffers(pa.string(), len(sizes), buffers)
        order, part_ends = group_by_frequency(rows)
        rank = np.empty_like(order)
        rank[order] = np.arange(len(order))
        rows_before = np.concatenate([[0], np.cumsum(rows[order])])
        return cls(terms, rows, rank, rows_before, part_ends, places, lengths)

    def find(self, term: bytes) -> int:
        """Find the term's number, by halves; -1 if it is not there."""
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
    """A value of ``layout.TEXT_SUMMARY_TYPE``."""
    rows: int
    """The rows of the block."""
    wants_counts: bool = False
    wants_positions: bool = False
    _dictionaries: dict[int, _Dictionary] = field(default_factory=dict)
    _parts: dict[tuple[int, int], _Part] = field(default_factory=dict)

    def hits(self, term: str) -> Hits | None:
        raw_term = term.encode()
        for number in self._dictionaries_between(raw_term, raw_term + b"\0"):
            dictionary = self._dictionary(number)
            if (term_number := dictionary.find(raw_term)) >= 0:
                return self._hits(number, dictionary, term_number)
        return None

    def hits_between(self, low: bytes, high: bytes | None, accept: Callable[[pa.Array], pa.Array] | None) -> list[Hits]:
        hits = []
        for number in self._dictionaries_between(low, high):
            dictionary = self._dictionary(number)
            term_numbers = select_terms(dictionary.terms, low, high, accept)
            hits += [self._hits(number, dictionary, term_number) for term_number in term_numbers]
        return hits

    def document_frequency(self, term: str) -> int:
        """Count the rows that have a term; reads no postings."""
        raw_term = term.encode()
        for number in self._dictionaries_between(raw_term, raw_term + b"\0"):
            dictionary = self._dictionary(number)
            if (term_number := dictionary.find(raw_term)) >= 0:
                return int(dictionary.rows[term_number])
        return 0

    def top_terms(self, limit: int) -> list[tuple[str, int]]:
        """List the terms that are in most rows, with how many rows that is."""
        candidates: list[tuple[str, int]] = []
        for number in range(len(self.summary["sizes"])):
            dictionary = self._dictionary(number)
            top_numbers = np.argsort(-dictionary.rows, kind="stable")[:limit].tolist()
            candidates += [(dictionary.terms[term].as_py(), int(dictionary.rows[term])) for term in top_numbers]
        return sorted(candidates, key=lambda pair: (-pair[1], pair[0]))[:limit]

    def row_lengths(self) -> TokenNumbers:
        """Read how many tokens each row of the block has: int64 of shape (rows,)."""
        start = self.summary["starts"][-1]
        [data] = self.payload.read([(start, self.summary["end"] - start)])
        return np.asarray(decompress_arrays(data)[0])

    def _dictionaries_between(self, low: bytes, high: bytes | None) -> list[int]:
        """Number the dictionaries that may hold a term from ``low`` to before ``high``."""
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

    def _dictionary(self, number: int) -> _Dictionary:
        if number not in self._dictionaries:
            span = self.summary["starts"][number], self.summary["sizes"][number]
            self._dictionaries[number] = self.payload.decoded(span, _Dictionary.decode, lambda read: read.nbytes)
        return self._dictionaries[number]

    def _hits(self, number: int, dictionary: _Dictionary, term_number: int) -> Hits:
        """Cut one term's rows, counts and positions out of its part."""
        rank = int(dictionary.rank[term_number])
        part = int(np.searchsorted(dictionary.part_ends, rank, side="right"))
        part_start = dictionary.rows_before[dictionary.part_ends[part - 1]] if part else 0
        gaps, counts, positions = self._part(number, dictionary, part)
        low, high = int(dictionary.rows_before[rank] - part_start), int(dictionary.rows_before[rank + 1] - part_start)
        rows = np.cumsum(gaps[low:high])
        if counts is None:
            return Hits(rows, np.ones(len(rows), np.int64), None)
        if positions is not None:
            occurrences_before = int(counts[:low].sum())
            positions = positions[occurrences_before : occurrences_before + int(counts[low:high].sum())]
        return Hits(rows, counts[low:high], positions)

    def _part(self, number: int, dictionary: _Dictionary, part: int) -> _Part:
        if (number, part) not in self._parts:
            blobs = 3 if self.wants_positions else 2 if self.wants_counts else 1  # gaps, counts, positions
            begin = self.summary["begin"]
            ranges = [
                (begin + int(dictionary.places[blob]), int(dictionary.lengths[blob]))
                for blob in range(3 * part, 3 * part + blobs)
            ]
            arrays = [decompress_arrays(data)[0] for data in self.payload.read(ranges)]
            counts = arrays[1] + 1 if blobs > 1 else None
            self._parts[number, part] = arrays[0], counts, arrays[2] if blobs > 2 else None
        return self._parts[number, part]
