"""The layout of a full-text payload, and its writing: per column dictionaries of terms, and the postings of each.

A block's payload has the columns of the index one after the other. The sections of a column, in the order of their
bytes; each blob is compressed on its own (see ``compression``) and read by range on its own:

======================= ===================================== ========================================================
section                 where it lies                         what it holds
======================= ===================================== ========================================================
parts of dictionary 0   ``places``, ``lengths`` in the        for each part three blobs: **gaps** between the rows of
                        dictionary, three for each part,      a term, the first from 0; **counts** of the term in each
                        from the column's ``begin``           row, less 1; **positions** of the term in each row, row
                                                              after row (empty where positions are not kept)
dictionary 0            ``starts[0]``, ``sizes[0]`` in the    one blob of five arrays: bytes of each term, rows of each
                        summary, from 0                       term, ``places``, ``lengths``, and all terms, sorted
parts of dictionary 1…  likewise                              likewise, up to 24 dictionaries
dictionary 1…
lengths of texts        ``starts[-1]`` up to ``end``          one blob of one array: tokens of each row
======================= ===================================== ========================================================

- A **dictionary** has about 64 KiB of terms or more. The summary keeps the beginning of each dictionary's first term,
  so a term that is not there costs one short read.
- A **part** has the postings of about 65,536 occurrences (term in a row), of terms that are about as frequent, in the
  order of ``group_by_frequency``. Which terms are in which part is not written down: it follows from the rows of each.
- Equal blobs are written once: words of one phrase are often in the same rows.

The module knows no queries.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from fuse_index.plugin import ranges_to_indices
from fuse_plugins.full_text.analysis import TokenNumbers
from fuse_plugins.full_text.compression import compress_arrays
from fuse_plugins.full_text.inverted import InvertedIndex, count_numbers

_MAX_DICTIONARIES = 24
_MIN_DICTIONARY_BYTES = 1 << 16
"""Bytes of the terms in one dictionary, unless there would be more than ``_MAX_DICTIONARIES``."""
_MAX_PART_OCCURRENCES = 1 << 16
_MIN_ROWS_OF_LONE_TERM = 1 << 12
"""Rows from which on a term has a part of its own; words of one phrase are often in the same rows, then kept once."""
_MAX_FIRST_TERM_BYTES = 16
"""Bytes of a dictionary's first term that the summary keeps."""

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
    """Write one column: its summary, of ``TEXT_SUMMARY_TYPE``, and its bytes, which will lie at ``begin``."""
    raw_terms = inverted.terms.cast(pa.binary())
    term_offsets = (
        np.frombuffer(raw_terms.buffers()[1], np.int32)[: len(raw_terms) + 1].astype(np.int64)
        if len(raw_terms)
        else np.zeros(1, np.int64)
    )
    term_bytes = int(term_offsets[-1] - term_offsets[0])
    dictionary_bytes = max(_MIN_DICTIONARY_BYTES, -(-term_bytes // _MAX_DICTIONARIES))
    cuts = _dictionary_starts(term_offsets - term_offsets[0], dictionary_bytes)
    _, _, first_postings = inverted.postings
    column = _BlobWriter()
    starts, sizes = [], []
    for low, high in pairwise(cuts):
        rows_of_terms = np.diff(first_postings[low : high + 1])
        order, part_ends = group_by_frequency(rows_of_terms)
        parts = [
            _encode_part(inverted, low + order[first:last], positions)
            for first, last in pairwise([0, *part_ends.tolist()])
        ]
        places = np.array([column.add(blob) for part in parts for blob in part], np.int64).reshape(-1, 2)
        text = b"".join(raw_terms.slice(low, high - low).to_pylist())
        dictionary = compress_arrays(np.diff(term_offsets[low : high + 1]), rows_of_terms, *places.T, text)
        starts.append(begin + column.size)
        sizes.append(len(dictionary))
        column.append(dictionary)
    row_lengths = count_numbers(inverted.row, inverted.rows)
    row_lengths_blob = compress_arrays(row_lengths)
    summary = {
        "terms": len(raw_terms),
        "rows": int(np.count_nonzero(row_lengths)),
        "tokens": len(inverted.row),
        "positions": positions,
        "firsts": [raw_terms[low].as_py()[:_MAX_FIRST_TERM_BYTES] for low in cuts[:-1]],
        "last": _upper_bound(raw_terms[-1].as_py()) if len(raw_terms) else b"",
        "begin": begin,
        "starts": [*starts, begin + column.size],
        "sizes": sizes,
        "end": begin + column.size + len(row_lengths_blob),
    }
    return summary, b"".join([*column.blobs, row_lengths_blob])


@dataclass
class _BlobWriter:
    """Bytes one after the other, those that were added before only once."""

    blobs: list[bytes] = field(default_factory=list)
    size: int = 0
    starts: dict[bytes, int] = field(default_factory=dict)

    def add(self, blob: bytes) -> tuple[int, int]:
        """Return where the blob lies, and how long it is."""
        if blob not in self.starts:
            self.starts[blob] = self.append(blob)
        return self.starts[blob], len(blob)

    def append(self, blob: bytes) -> int:
        self.blobs.append(blob)
        self.size += len(blob)
        return self.size - len(blob)


def _dictionary_starts(offsets: TokenNumbers, size: int) -> list[int]:
    """Number the term that each dictionary of about ``size`` bytes begins with, and after the last how many there are.

    ``offsets``: where each of n sorted terms begins in bytes, and where the last ends, int64 of shape (n + 1,).
    """
    count = len(offsets) - 1
    marks = np.searchsorted(offsets, np.arange(0, max(int(offsets[-1]), 1), size))
    return [*np.unique(np.minimum(marks, max(count - 1, 0))).tolist(), count] if count else [0]


def group_by_frequency(rows: TokenNumbers) -> tuple[TokenNumbers, TokenNumbers]:
    """Order the terms of a dictionary so that those about as frequent stand together, and cut the order into parts.

    ``rows``: in how many rows each term is, int64 of shape (n,). Returns the term at each rank, int64 indices of shape
    (n,), and the rank at which each part ends, int64 of shape (parts,). Writer and reader compute the same from a
    dictionary's rows, so neither is stored.
    """
    # Of one byte, which numpy sorts by radix: 1 to 7 rows are class 0, 8 to 63 class 1, 64 to 511 class 2, and so on.
    classes = (np.log2(np.maximum(rows, 1)).astype(np.int8) // 3).astype(np.int8)
    order = np.argsort(classes, kind="stable")
    # A part ends where another class begins, and where it would grow beyond its size.
    rows_before = np.cumsum(rows[order]) - rows[order]
    begins_class = np.diff(classes[order], prepend=np.int8(-1)) != 0
    class_start = np.maximum.accumulate(np.where(begins_class, rows_before, 0))
    shared_part = (rows_before - class_start) // _MAX_PART_OCCURRENCES
    part_in_class = np.where(rows[order] < _MIN_ROWS_OF_LONE_TERM, shared_part, np.arange(len(order)))
    part = classes[order].astype(np.int64) << 32 | part_in_class
    return order, np.append(np.flatnonzero(np.diff(part)) + 1, len(order))


def _encode_part(inverted: InvertedIndex, terms: TokenNumbers, positions: bool) -> tuple[bytes, bytes, bytes]:
    """Encode the postings of some terms as three blobs: gaps, counts and positions. ``terms``: int64 indices, 1-D."""
    first_occurrences, counts, first_postings = inverted.postings
    sizes = first_postings[terms + 1] - first_postings[terms]
    postings = ranges_to_indices(first_postings[terms], sizes)
    rows = inverted.row[first_occurrences[postings]]
    gaps = np.diff(rows, prepend=0)
    term_heads = np.cumsum(sizes) - sizes
    gaps[term_heads] = rows[term_heads]  # the rows of each term begin anew
    position_blob = b""
    if positions:
        starts = inverted.starts[terms]
        occurrences = ranges_to_indices(starts, inverted.starts[terms + 1] - starts)
        position_blob = compress_arrays(inverted.position[occurrences])
    return compress_arrays(gaps), compress_arrays(counts[postings] - 1), position_blob


def _upper_bound(term: bytes) -> bytes:
    """A short bound that no smaller term is above."""
    return term if len(term) <= _MAX_FIRST_TERM_BYTES else term[:_MAX_FIRST_TERM_BYTES] + b"\xff"
