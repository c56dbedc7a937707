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
from fuse_storage.store.ranges import Range

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Bytes = bytes | memoryview

DATA_PAGE = 0
KIND, SIZE, DATA_HEADER = 1, 3, 5
VALUES = 1
"""Fields of Parquet's PageHeader: its type, its compressed size, its DataPageHeader; and of that, the number of
values.
"""


def page_sum(page: Bytes, number: int) -> int:
    """The checksum of page ``number`` of a file, counted through its column chunks."""
    return xxhash.xxh3_64_intdigest(page, number) & 0xFFFFFFFF  # five times as fast as xxh32


@dataclass(frozen=True, eq=False)
class Pages:
    """All pages of one file, chunk after chunk: chunk i has the pages ``first[i]:first[i + 1]``.

    ``rows`` of a page are 0 where it is a dictionary, or where its values are not one a row (within arrays and maps).
    """

    first: Numbers
    offsets: Numbers
    lengths: Numbers
    rows: Numbers
    sums: Numbers

    @classmethod
    def of(cls, body: memoryview, chunks: Sequence[Range], flat: Sequence[bool]) -> Self:
        """Found by walking the headers of a file. ``flat``: of each chunk, whether it has one value a row."""
        walked = [list(_walk(body, chunk, one_a_row)) for chunk, one_a_row in zip(chunks, flat, strict=True)]
        lengths = np.array([length for pages in walked for length, _ in pages], np.int64)
        rows = np.array([rows for pages in walked for _, rows in pages], np.int64)
        counts = np.array([len(pages) for pages in walked], np.int64)
        first, offsets = _places(counts, lengths, chunks)
        starts = enumerate(zip(offsets.tolist(), lengths.tolist(), strict=True))
        sums = [page_sum(body[start : start + size], number) for number, (start, size) in starts]
        return cls(first, offsets, lengths, rows, np.array(sums, np.int64))

    def packed(self) -> bytes:
        """As in the seal: pages of each chunk, then lengths, rows and checksums of all pages, little-endian, 4 bytes
        each.
        """
        return b"".join(
            part.astype("<u4").tobytes() for part in (np.diff(self.first), self.lengths, self.rows, self.sums)
        )

    @classmethod
    def unpacked(cls, packed: Bytes, chunks: Sequence[Range]) -> Self:
        """Raises ValueError if there are not as many bytes as the chunks' pages take."""
        numbers = np.frombuffer(packed, "<u4").astype(np.int64)
        counts, parts = numbers[: len(chunks)], numbers[len(chunks) :]
        lengths, rows, sums = parts.reshape(3, int(counts.sum()))
        first, offsets = _places(counts, lengths, chunks)
        return cls(first, offsets, lengths, rows, sums)

    def of_chunk(self, chunk: int) -> Numbers:
        return np.arange(self.first[chunk], self.first[chunk + 1])

    def holding(self, chunk: int, rows: Mask) -> tuple[Numbers, Mask]:
        """The pages of a chunk that are needed for some of its rows, and which rows these pages hold.

        ``rows`` has one element for each row of the zone; a chunk whose pages cannot be told apart is needed whole.
        """
        pages = self.of_chunk(chunk)
        sizes = self.rows[pages]
        if sizes.sum() != len(rows):
            return pages, np.ones(len(rows), np.bool_)
        data = sizes > 0
        needed = np.logical_or.reduceat(rows, (np.cumsum(sizes) - sizes)[data])
        chosen = ~data
        chosen[data] = needed
        return pages[chosen], np.repeat(needed, sizes[data])

    def ranges(self, pages: Numbers) -> list[Range]:
        return list(zip(self.offsets[pages].tolist(), self.lengths[pages].tolist(), strict=True))

    def damaged(self, page: int, data: Bytes) -> bool:
        return bool(page_sum(data, page) != self.sums[page])


def _walk(body: memoryview, chunk: Range, one_a_row: bool) -> Iterator[tuple[int, int]]:
    """Length, header included, and rows of each page of a chunk."""
    at, end = chunk[0], sum(chunk)
    while at < end:
        header, start = thrift.struct(body, at)
        rows = header[DATA_HEADER][VALUES] if one_a_row and header[KIND] == DATA_PAGE else 0
        yield start + header[SIZE] - at, rows
        at = start + header[SIZE]


def _places(counts: Numbers, lengths: Numbers, chunks: Sequence[Range]) -> tuple[Numbers, Numbers]:
    """Of each chunk the number of its first page, of each page its offset."""
    first = np.append(0, np.cumsum(counts))
    ends = np.append(0, np.cumsum(lengths))
    starts = np.array([offset for offset, _ in chunks], np.int64) - ends[first[:-1]]
    return first, ends[:-1] + np.repeat(starts, counts)
