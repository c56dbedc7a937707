"""Postings of one column of one block, read from its payload by range: dictionaries first, then parts, as asked for.

The reading side of ``layout``, which says where everything lies. No number is believed before it was compared with the
rows of the block and with the bytes that it lies in, so that a wrong one costs a ``Corrupt``. Knows no queries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from fuse_index.plugin import Corrupt, Payload, expanded_limit, texts_from_lengths
from fuse_plugins.full_text.analysis import TokenNumbers
from fuse_plugins.full_text.compression import decompress_arrays
from fuse_plugins.full_text.inverted import Hits, select_terms
from fuse_plugins.full_text.layout import group_by_frequency

_Part = tuple[TokenNumbers, TokenNumbers | None, TokenNumbers | None]
"""Gaps, counts and positions; None of what was not asked for."""

_MAX_POSITION_BYTES = 32 << 20
"""Bytes of the positions in one part before compression, however short they are after it: eight million of them."""
_MAX_EXPANDED_POSTINGS = 1 << 29
"""Postings of all terms that a prefix, a range or a fuzzy word stands for: some seconds of work."""
_MAX_HELD_BYTES = 32 << 20
"""Bytes of dictionaries and parts that are kept between two looks at the same block."""


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

    @cached_property
    def most_rows(self) -> int:
        """The most rows that any of the terms is in."""
        return int(self.rows.max(initial=0))

    @property
    def nbytes(self) -> int:
        arrays = (self.rows, self.rank, self.rows_before, self.part_ends, self.places, self.lengths)
        return int(self.terms.nbytes) + sum(array.nbytes for array in arrays)

    @classmethod
    def decode(cls, data: bytes) -> _Dictionary:
        """Decode the bytes of a dictionary. Raises Corrupt."""
        sizes, rows, places, lengths, text = decompress_arrays(data, expanded_limit(len(data)), numbers=4, texts=1)
        terms = texts_from_lengths(sizes, text)
        if len(rows) != len(sizes) or rows.min(initial=1) < 1:
            raise Corrupt(f"a dictionary of {len(sizes)} terms says of {len(rows)} in how many rows they are")
        order, part_ends = group_by_frequency(rows)
        if not len(places) == len(lengths) == 3 * len(part_ends):
            raise Corrupt(f"a dictionary has {len(places)} places and {len(lengths)} lengths of {len(part_ends)} parts")
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
    _held_bytes: int = 0

    def __post_init__(self) -> None:
        """Raise Corrupt unless the sections of the column lie one after the other in the payload."""
        starts, sizes, end = self.summary["starts"], self.summary["sizes"], self.summary["end"]
        if len(starts) != len(sizes) + 1 or len(starts) != len(self.summary["firsts"]) + 1:
            raise Corrupt(
                f"{len(starts)} starts and {len(self.summary['firsts'])} first terms of {len(sizes)} sections"
            )
        ends = (self.summary["begin"], *(start + size for start, size in zip(starts[:-1], sizes, strict=True)))
        if min(sizes, default=0) < 0 or any(start < last for last, start in zip(ends, starts, strict=True)):
            raise Corrupt(f"sections begin at {starts}, and are of {sizes} bytes")
        if not self.summary["begin"] >= 0 or not starts[-1] <= end <= self.payload.size:
            raise Corrupt(f"sections end at {end} of {self.payload.size} bytes")

    def hits(self, term: str) -> Hits | None:
        raw_term = term.encode()
        for number in self._dictionaries_between(raw_term, raw_term + b"\0"):
            dictionary = self._dictionary(number)
            if (term_number := dictionary.find(raw_term)) >= 0:
                return self._hits(number, dictionary, term_number)
        return None

    def hits_between(
        self, low: bytes, high: bytes | None, accept: Callable[[pa.Array], pa.Array] | None
    ) -> Iterator[Hits]:
        postings = 0
        for number in self._dictionaries_between(low, high):
            dictionary = self._dictionary(number)
            term_numbers = np.array(select_terms(dictionary.terms, low, high, accept), np.int64)
            postings += int(dictionary.rows[term_numbers].sum())
            if postings > _MAX_EXPANDED_POSTINGS:
                raise Corrupt(f"terms of a prefix or range are said to be in {postings} rows, with repetitions")
            by_rank = term_numbers[np.argsort(dictionary.rank[term_numbers])]  # so that each part is read once
            yield from (self._hits(number, dictionary, term_number) for term_number in by_rank.tolist())

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
        return _decompress_numbers(data, self.rows)

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
            dictionary = self.payload.decoded(span, _Dictionary.decode, lambda read: read.nbytes)
            if dictionary.most_rows > self.rows:
                raise Corrupt(f"a term is said to be in {dictionary.most_rows} of {self.rows} rows")
            self._make_room(dictionary.nbytes)
            self._dictionaries[number] = dictionary
        return self._dictionaries[number]

    def _hits(self, number: int, dictionary: _Dictionary, term_number: int) -> Hits:
        """Cut one term's rows, counts and positions out of its part."""
        rank = int(dictionary.rank[term_number])
        part = int(np.searchsorted(dictionary.part_ends, rank, side="right"))
        part_start = dictionary.rows_before[dictionary.part_ends[part - 1]] if part else 0
        gaps, counts, positions = self._part(number, dictionary, part)
        low, high = int(dictionary.rows_before[rank] - part_start), int(dictionary.rows_before[rank + 1] - part_start)
        rows = np.cumsum(gaps[low:high])
        if rows[-1:] >= self.rows:
            raise Corrupt(f"a term is said to be in row {rows[-1]} of {self.rows}")
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
            first_rank = dictionary.part_ends[part - 1] if part else 0
            postings = int(dictionary.rows_before[dictionary.part_ends[part]] - dictionary.rows_before[first_rank])
            data = self.payload.read(ranges)
            gaps = _decompress_numbers(data[0], postings)
            counts = _decompress_numbers(data[1], postings) + 1 if blobs > 1 else None
            positions = None if counts is None or blobs < 3 else _decompress_positions(data[2], int(counts.sum()))
            self._make_room(sum(array.nbytes for array in (gaps, counts, positions) if array is not None))
            self._parts[number, part] = gaps, counts, positions
        return self._parts[number, part]

    def _make_room(self, nbytes: int) -> None:
        """Let go of what is kept if so many bytes more would be too many."""
        self._held_bytes += nbytes
        if self._held_bytes > _MAX_HELD_BYTES:
            self._dictionaries.clear()
            self._parts.clear()
            self._held_bytes = nbytes


def _decompress_numbers(data: bytes, count: int) -> TokenNumbers:
    """Decompress an array of so many numbers: int64 of shape (count,)."""
    numbers: TokenNumbers = decompress_arrays(data, limit=4 * count)[0]
    if len(numbers) != count:
        raise Corrupt(f"{len(numbers)} numbers stand where {count} should")
    return numbers


def _decompress_positions(data: bytes, count: int) -> TokenNumbers:
    """Decompress the positions of so many occurrences: int64 of shape (count,)."""
    if 4 * count > max(_MAX_POSITION_BYTES, expanded_limit(len(data))):
        raise Corrupt(f"{len(data)} bytes are said to hold {count} positions")
    return _decompress_numbers(data, count)
