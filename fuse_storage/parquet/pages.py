"""The pages of a block's column chunks: where they lie, which rows they hold, and their checksums.

A **page** is the smallest part of a column that can be decoded, and the smallest that is read: some thousand values
behind a header of their own. Parquet's footer does not tell where pages are; our seal does. Knows no store and no
schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import xxhash

from fuse_storage.parquet import thrift
from fuse_storage.store.ranges import ByteRange

Int64Array = npt.NDArray[np.int64]
RowMask = npt.NDArray[np.bool_]
_BytesLike = bytes | memoryview

_DATA_PAGE_TYPE = 0
_PAGE_TYPE_FIELD, _COMPRESSED_SIZE_FIELD, _DATA_HEADER_FIELD = 1, 3, 5
_VALUE_COUNT_FIELD = 1
"""Fields of Parquet's PageHeader: its type, its compressed size, its DataPageHeader; and of that, the number of
values.
"""


def page_checksum(page: _BytesLike, number: int) -> int:
    """The checksum of page ``number`` of a file, counted through its column chunks."""
    return xxhash.xxh3_64_intdigest(page, number) & 0xFFFFFFFF  # five times as fast as xxh32


@dataclass(frozen=True, eq=False)
class Pages:
    """All pages of one file, chunk after chunk: chunk i has the pages ``first[i]:first[i + 1]``.

    ``rows`` of a page are 0 where it is a dictionary, or where its values are not one a row (within arrays and maps).
    """

    chunk_starts: Int64Array
    offsets: Int64Array
    lengths: Int64Array
    row_counts: Int64Array
    checksums: Int64Array

    @classmethod
    def from_body(cls, body: memoryview, chunks: Sequence[ByteRange], one_value_per_row: Sequence[bool]) -> Self:
        """Found by walking the headers of a file. ``flat``: of each chunk, whether it has one value a row."""
        walked = [
            list(_walk_pages(body, chunk, one_a_row))
            for chunk, one_a_row in zip(chunks, one_value_per_row, strict=True)
        ]
        lengths = np.array([length for pages in walked for length, _ in pages], np.int64)
        rows = np.array([rows for pages in walked for _, rows in pages], np.int64)
        counts = np.array([len(pages) for pages in walked], np.int64)
        first, offsets = _locate_pages(counts, lengths, chunks)
        starts = enumerate(zip(offsets.tolist(), lengths.tolist(), strict=True))
        sums = [page_checksum(body[start : start + size], number) for number, (start, size) in starts]
        return cls(first, offsets, lengths, rows, np.array(sums, np.int64))

    def to_bytes(self) -> bytes:
        """As in the seal: pages of each chunk, then lengths, rows and checksums of all pages, little-endian, 4 bytes
        each.
        """
        return b"".join(
            part.astype("<u4").tobytes()
            for part in (np.diff(self.chunk_starts), self.lengths, self.row_counts, self.checksums)
        )

    @classmethod
    def from_bytes(cls, packed: _BytesLike, chunks: Sequence[ByteRange]) -> Self:
        """Raises ValueError if there are not as many bytes as the chunks' pages take."""
        numbers = np.frombuffer(packed, "<u4").astype(np.int64)
        counts, parts = numbers[: len(chunks)], numbers[len(chunks) :]
        lengths, rows, sums = parts.reshape(3, int(counts.sum()))
        first, offsets = _locate_pages(counts, lengths, chunks)
        return cls(first, offsets, lengths, rows, sums)

    def chunk_pages(self, chunk: int) -> Int64Array:
        return np.arange(self.chunk_starts[chunk], self.chunk_starts[chunk + 1])

    def pages_covering(self, chunk: int, row_mask: RowMask) -> tuple[Int64Array, RowMask]:
        """The pages of a chunk that are needed for some of its rows, and which rows these pages hold.

        ``rows`` has one element for each row of the zone; a chunk whose pages cannot be told apart is needed whole.
        """
        pages = self.chunk_pages(chunk)
        sizes = self.row_counts[pages]
        if sizes.sum() != len(row_mask):
            return pages, np.ones(len(row_mask), np.bool_)
        data = sizes > 0
        needed = np.logical_or.reduceat(row_mask, (np.cumsum(sizes) - sizes)[data])
        chosen = ~data
        chosen[data] = needed
        return pages[chosen], np.repeat(needed, sizes[data])

    def byte_ranges(self, pages: Int64Array) -> list[ByteRange]:
        return list(zip(self.offsets[pages].tolist(), self.lengths[pages].tolist(), strict=True))

    def is_damaged(self, page: int, data: _BytesLike) -> bool:
        return bool(page_checksum(data, page) != self.checksums[page])


def _walk_pages(body: memoryview, chunk: ByteRange, one_a_row: bool) -> Iterator[tuple[int, int]]:
    """Length, header included, and rows of each page of a chunk."""
    at, end = chunk[0], sum(chunk)
    while at < end:
        header, start = thrift.read_struct(body, at)
        rows = (
            header[_DATA_HEADER_FIELD][_VALUE_COUNT_FIELD]
            if one_a_row and header[_PAGE_TYPE_FIELD] == _DATA_PAGE_TYPE
            else 0
        )
        yield start + header[_COMPRESSED_SIZE_FIELD] - at, rows
        at = start + header[_COMPRESSED_SIZE_FIELD]


def _locate_pages(
    counts: Int64Array, lengths: Int64Array, chunks: Sequence[ByteRange]
) -> tuple[Int64Array, Int64Array]:
    """Of each chunk the number of its first page, of each page its offset."""
    first = np.append(0, np.cumsum(counts))
    ends = np.append(0, np.cumsum(lengths))
    starts = np.array([offset for offset, _ in chunks], np.int64) - ends[first[:-1]]
    return first, ends[:-1] + np.repeat(starts, counts)
