"""The pages of a block's column chunks: where they lie, which rows they hold, and their checksums.

A **page** is the smallest part of a column that can be decoded, and the smallest that is read: some thousand values
behind a header of their own. Parquet's footer does not tell where pages are; our seal does. It keeps lengths only:
pages of a chunk lie behind each other, and where a chunk begins is in the footer, so offsets follow by adding up.
Knows no store and no schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt
import xxhash

from fuse_storage.parquet import thrift
from fuse_storage.parquet.column_chunks import WrittenChunk
from fuse_storage.store.ranges import ByteRange

_MAX_INDEX_BYTES = 4
"""Bytes that a value's number in a dictionary takes at most."""

Int64Array = npt.NDArray[np.int64]
RowMask = npt.NDArray[np.bool_]
RowRuns = tuple[tuple[int, int], ...]
"""Rows from the first number to before the second, run after run, none next to another."""
_BytesLike = bytes | memoryview

_DATA_PAGE_TYPE, _DICTIONARY_PAGE_TYPE, _DATA_PAGE_V2_TYPE = 0, 2, 3
"""Parquet's PageTypes."""
_PAGE_TYPE_FIELD, _COMPRESSED_SIZE_FIELD, _DATA_HEADER_FIELD, _DATA_HEADER_V2_FIELD = 1, 3, 5, 8
_VALUE_COUNT_FIELD = 1
"""Fields of Parquet's PageHeader: its type, its compressed size, its DataPageHeader; of that, the number of values."""
_HEADER_FIELDS: thrift.Selection = {
    _PAGE_TYPE_FIELD: None,
    _COMPRESSED_SIZE_FIELD: None,
    _DATA_HEADER_FIELD: {_VALUE_COUNT_FIELD: None},
}
_DICTIONARY_ENCODINGS = (2, 8)
"""PLAIN_DICTIONARY and RLE_DICTIONARY."""
_ENCODINGS: thrift.Selection = {_DATA_HEADER_FIELD: {2: None}, _DATA_HEADER_V2_FIELD: {4: None}}
"""The encodings of a DataPageHeader and of a DataPageHeaderV2."""
_ANY_HEADER_FIELDS: thrift.Selection = {**_HEADER_FIELDS, _DATA_HEADER_V2_FIELD: {_VALUE_COUNT_FIELD: None}}


def page_checksum(page: _BytesLike, number: int) -> int:
    """The checksum of page ``number`` of a file, counted through its column chunks."""
    return xxhash.xxh3_64_intdigest(page, number) & 0xFFFFFFFF  # five times as fast as xxh32


def mask_of_runs(covered: Sequence[RowRuns], row_counts: Sequence[int]) -> RowMask:
    """The mask of rows that has these runs, zone after zone: bool, shape (sum of ``row_counts``, those of zones,)."""
    masks = [np.zeros(count, np.bool_) for count in row_counts]
    for mask, runs in zip(masks, covered, strict=True):
        for start, end in runs:
            mask[start:end] = True
    return np.concatenate(masks)


def is_page_of(page: memoryview, row_count: int) -> bool:
    """Whether these bytes are just one page of a flat column with so many rows, or a dictionary if that is 0."""
    try:
        header, start = thrift.read_selected(page, 0, _ANY_HEADER_FIELDS)
        if start + header[_COMPRESSED_SIZE_FIELD] != len(page):
            return False
        kind = header[_PAGE_TYPE_FIELD]
        if kind == _DICTIONARY_PAGE_TYPE or not row_count:
            return bool(kind == _DICTIONARY_PAGE_TYPE and not row_count)
        fields = {_DATA_PAGE_TYPE: _DATA_HEADER_FIELD, _DATA_PAGE_V2_TYPE: _DATA_HEADER_V2_FIELD}
        return bool(header[fields[kind]][_VALUE_COUNT_FIELD] == row_count)
    except (LookupError, ValueError):
        return False


def needs_dictionary(page: memoryview) -> bool:
    """Whether a data page refers to its chunk's dictionary: writers give up theirs where it grows too long."""
    header, _ = thrift.read_selected(page, 0, _ENCODINGS)
    return any(encoding in _DICTIONARY_ENCODINGS for values in header.values() for encoding in values.values())


@dataclass(frozen=True, slots=True, eq=False)
class WantedRows:
    """Rows that are wanted of one zone, ``mask``: bool, shape (rows of the zone,).

    Most columns have pages of the same rows: which of them are needed is found once for all of these.
    """

    mask: RowMask
    _known: dict[bytes, tuple[Int64Array, RowRuns]] = field(default_factory=dict)

    @property
    def whole(self) -> RowRuns:
        """All rows of the zone."""
        return ((0, len(self.mask)),)

    def covering(self, row_counts: Int64Array) -> tuple[Int64Array, RowRuns]:
        """Find the pages of a chunk that are needed, int64, shape (k,), and the rows that they hold.

        ``row_counts``: of each page, int64, shape (pages,); 0 of a dictionary, which is needed for any.
        """
        key = row_counts.tobytes()
        if key not in self._known:
            self._known[key] = self._find_covering(row_counts)
        return self._known[key]

    def _find_covering(self, row_counts: Int64Array) -> tuple[Int64Array, RowRuns]:
        ends, has_rows, chosen = np.cumsum(row_counts), row_counts > 0, np.ones(len(row_counts), np.bool_)
        if len(ends) and ends[-1] == len(self.mask):
            starts, ends = (ends - row_counts)[has_rows], ends[has_rows]
            chosen[has_rows] = needed = np.logical_or.reduceat(self.mask, starts)
            if not needed.all():
                starts, ends = starts[needed], ends[needed]
                begins, stops = np.append(True, starts[1:] != ends[:-1]), np.append(ends[:-1] != starts[1:], True)
                runs = zip(starts[begins[: len(starts)]].tolist(), ends[stops[: len(ends)]].tolist(), strict=True)
                return np.flatnonzero(chosen), tuple(runs)
        return np.arange(len(row_counts)), self.whole


@dataclass(frozen=True, eq=False)
class Pages:
    """All pages of one file, chunk after chunk: chunk i has the pages ``chunk_starts[i]:chunk_starts[i + 1]``.

    ``chunk_starts``: int64, one more than there are chunks. All others: int64, one element a page. ``offsets`` in the
    file and ``lengths`` are in bytes, header included. ``row_counts`` are 0 for a dictionary, and where the values of
    a page are not one a row (within arrays and maps). ``checksums``: see ``page_checksum``; foreign files
    have none.
    """

    chunk_starts: Int64Array
    offsets: Int64Array
    lengths: Int64Array
    row_counts: Int64Array
    checksums: Int64Array

    @classmethod
    def from_body(cls, body: memoryview, chunks: Sequence[WrittenChunk], page_rows: int, page_bytes: int) -> Self:
        """The pages of a file that was just written.

        Arrow ends a page at so many rows, or at so many bytes as its encoder may take, which is up to 4 a value where a
        chunk has a dictionary. So it is known of chunks of few values that there is one page; others are found by
        walking over their headers.
        """
        walked = [
            _one_page(chunk)
            if chunk.value_count <= page_rows and chunk.plain_bytes + _MAX_INDEX_BYTES * chunk.value_count < page_bytes
            else list(_walk_pages(body, chunk))
            for chunk in chunks
        ]
        lengths = np.array([length for pages in walked for length, _ in pages], np.int64)
        rows = np.array([rows for pages in walked for _, rows in pages], np.int64)
        counts = np.array([len(pages) for pages in walked], np.int64)
        first, offsets = _locate_pages(counts, lengths, [chunk.start for chunk in chunks])
        starts = enumerate(zip(offsets.tolist(), lengths.tolist(), strict=True))
        sums = [page_checksum(body[start : start + size], number) for number, (start, size) in starts]
        return cls(first, offsets, lengths, rows, np.array(sums, np.int64))

    def to_bytes(self) -> bytes:
        """Encode the pages as the seal has them, 4 bytes a number, little-endian.

        First how many pages each chunk has, then the lengths of all pages, their row counts, and their checksums.
        """
        return b"".join(
            part.astype("<u4").tobytes()
            for part in (np.diff(self.chunk_starts), self.lengths, self.row_counts, self.checksums)
        )

    @classmethod
    def from_bytes(cls, packed: _BytesLike, chunks: Sequence[ByteRange]) -> Self:
        """Decode what ``to_bytes`` made, of a file with these chunks. Raises ValueError for another number of bytes."""
        numbers = np.frombuffer(packed, "<u4").astype(np.int64)
        counts, parts = numbers[: len(chunks)], numbers[len(chunks) :]
        if len(numbers) != len(chunks) + 3 * int(counts.sum()):
            raise ValueError("the seal has other pages than it says")
        lengths, rows, sums = parts.reshape(3, int(counts.sum()))
        first, offsets = _locate_pages(counts, lengths, [offset for offset, _ in chunks])
        return cls(first, offsets, lengths, rows, sums)

    def fill_chunks(self, chunks: Sequence[ByteRange], end: int) -> bool:
        """Whether the pages of each chunk are as long as it is, and none lies outside of the bytes up to ``end``."""
        sizes = np.diff(np.append(0, np.cumsum(self.lengths))[self.chunk_starts])
        inside = all(offset >= 0 and offset + length <= end for offset, length in chunks)
        return inside and sizes.tolist() == [length for _, length in chunks]

    def chunk_pages(self, chunk: int) -> Int64Array:
        """The numbers of a chunk's pages among all pages of the file: int64, shape (n,), ascending."""
        return np.arange(self.chunk_starts[chunk], self.chunk_starts[chunk + 1])

    def pages_covering(self, chunk: int, wanted: WantedRows) -> tuple[Int64Array, RowRuns]:
        """The pages of a chunk that are needed for some rows of its zone, and which rows these pages hold.

        Returns numbers of pages, int64, shape (k,), the dictionary's among them. A chunk whose pages cannot be told
        apart, because their rows are not known, is needed whole.
        """
        first = int(self.chunk_starts[chunk])
        chosen, covered = wanted.covering(self.row_counts[first : int(self.chunk_starts[chunk + 1])])
        return first + chosen, covered

    def byte_ranges(self, pages: Int64Array) -> list[ByteRange]:
        """(offset, length) in the file of each of these pages. ``pages``: int64 numbers of pages, shape (n,)."""
        return list(zip(self.offsets[pages].tolist(), self.lengths[pages].tolist(), strict=True))

    def is_damaged(self, page: int, data: _BytesLike) -> bool:
        """Tell whether ``data`` is not what was written as this page, as far as there are checksums."""
        return len(self.checksums) > 0 and bool(page_checksum(data, page) != self.checksums[page])


def sealed_pages(packed: _BytesLike, chunk_count: int) -> tuple[list[int], list[int]]:
    """Length and checksum of each page, of what ``Pages.to_bytes`` made. Raises as ``Pages.from_bytes``."""
    numbers = np.frombuffer(packed, "<u4")
    count = int(numbers[:chunk_count].sum())
    if len(numbers) != chunk_count + 3 * count:
        raise ValueError("the seal has other pages than it says")
    lengths, _, checksums = numbers[chunk_count:].reshape(3, count)
    return lengths.tolist(), checksums.tolist()


def _one_page(chunk: WrittenChunk) -> list[tuple[int, int]]:
    """What ``_walk_pages`` gives of a chunk with one page of data."""
    data = (chunk.length - chunk.dictionary, chunk.value_count if chunk.is_flat else 0)
    return [(chunk.dictionary, 0), data] if chunk.dictionary else [data]


def _walk_pages(body: memoryview, chunk: WrittenChunk) -> Iterator[tuple[int, int]]:
    """Length, header included, and row count of each page of a chunk; 0 rows where they cannot be told."""
    position, end = chunk.start, chunk.start + chunk.length
    while position < end:
        header, start = thrift.read_selected(body, position, _HEADER_FIELDS)
        row_count = (
            header[_DATA_HEADER_FIELD][_VALUE_COUNT_FIELD]
            if chunk.is_flat and header[_PAGE_TYPE_FIELD] == _DATA_PAGE_TYPE
            else 0
        )
        yield start + header[_COMPRESSED_SIZE_FIELD] - position, row_count
        position = start + header[_COMPRESSED_SIZE_FIELD]


def _locate_pages(counts: Int64Array, lengths: Int64Array, starts: Sequence[int]) -> tuple[Int64Array, Int64Array]:
    """The number of each chunk's first page (and at last of all pages), and the offset of each page in the file.

    ``starts``: where each chunk begins.
    """
    chunk_starts = np.append(0, np.cumsum(counts))
    ends = np.append(0, np.cumsum(lengths))  # offsets, if all chunks lay behind each other from 0
    shifts = np.array(starts, np.int64) - ends[chunk_starts[:-1]]
    return chunk_starts, ends[:-1] + np.repeat(shifts, counts)
