"""Footers of blocks: where their column chunks and pages are, known for the block that was committed, and checked.

Knows no segments and no tables.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import xxhash

from fuse_storage.errors import RESTORE_HINT, SYNC_HINT, Corrupt, NotFound
from fuse_storage.lazy import cached_property
from fuse_storage.parquet import page_subset
from fuse_storage.parquet.column_chunks import ColumnChunk, read_column_chunks, read_row_groups, written_column_chunks
from fuse_storage.parquet.foreign.file import ForeignFile
from fuse_storage.parquet.page_subset import ColumnForm, PageSubset
from fuse_storage.parquet.pages import Int64Array, Pages, page_checksum, sealed_pages
from fuse_storage.store.cache import Cache, cache_of
from fuse_storage.store.ranges import ByteRange
from fuse_storage.store.store import Store

FIRST_ZONE_OFFSET = 4
"""The first zone lies right behind Parquet's magic."""

_FOOTER_CHECKSUM_BYTES = 8
_MAX_FOOTER_BYTES = 256 << 20  # 16 for each page, and some hundred for each column of each zone
UNREADABLE = (pa.ArrowException, OSError, ValueError, LookupError, TypeError, RecursionError, OverflowError)
"""What is raised of bytes whose checksums are right, and that no writer of ours wrote."""


def footer_checksum(data: bytes) -> bytes:
    """Eight bytes, xxh3-64, of the seal's pages and the Parquet footer, which lie on both sides of it."""
    return xxhash.xxh3_64_digest(data)


def seal_number(checksum: bytes) -> int:
    """The checksum of a footer as a table remembers it, to know the block by: an int64."""
    return int.from_bytes(checksum, "big", signed=True)


@dataclass(frozen=True, slots=True)
class BlockFile:
    """The place of a block: its key in the store, and the bytes of its footer there.

    ``zone_rows``: how many rows each zone has; empty where nobody says. ``seal``: what ``seal_number`` gives of the
    block that was committed; None where that is not known. ``foreign``: of a file that somebody else wrote, what is
    known of it besides.
    """

    key: str
    footer_offset: int
    footer_length: int
    zone_rows: tuple[int, ...] = ()
    seal: int | None = None
    foreign: ForeignFile | None = None

    def column_key(self, store: Store, columns: Sequence[int]) -> tuple[Hashable, ...]:
        """Cache key of a field's decoded column; ``columns``: the numbers of its Parquet columns."""
        return (store.url, self.key, self.seal, *columns)


@dataclass(frozen=True, slots=True)
class ForeignLayout:
    """What a foreign file's column chunks are, which for our own follows from the pages.

    ``value_counts`` and ``dictionary_lengths``: of each chunk; the latter in bytes, 0 if there is none. ``old_dates``,
    ``old_int96``: days and times before 1900 are of the calendar that Spark had once.
    """

    value_counts: Sequence[int]
    dictionary_lengths: Sequence[int]
    old_dates: bool
    old_int96: bool


@dataclass(frozen=True)
class Footer:
    """A checked footer: Parquet's metadata, and the place of each column chunk and of its pages, zone by zone."""

    metadata: pq.FileMetaData
    chunks: Sequence[ByteRange]
    pages: Pages
    schema_bytes: bytes
    """The schema as it is written in Parquet's footer."""
    forms: Sequence[ColumnForm]
    """The way in which each column is stored."""
    length: int
    seal: int
    """What ``seal_number`` gives of its checksum."""
    foreign: ForeignLayout | None = None

    @staticmethod
    def parse(data: bytes, where: str) -> Footer:
        """The footer of a block from the bytes of its seal and its Parquet footer.

        ``where`` names the file in messages. Raises Corrupt if any byte is not as it was written.
        """
        parquet = int.from_bytes(data[-8:-4], "little") + 8
        start = len(data) - parquet - _FOOTER_CHECKSUM_BYTES
        checksum = data[start : start + _FOOTER_CHECKSUM_BYTES]
        if start < 0 or checksum != footer_checksum(data[:start] + data[start + _FOOTER_CHECKSUM_BYTES :]):
            raise Corrupt(f"{where}: its footer fails its checksum; {RESTORE_HINT}")
        try:
            limits = {"thrift_string_size_limit": len(data), "thrift_container_size_limit": len(data)}
            tail = data[start + _FOOTER_CHECKSUM_BYTES :]
            metadata = pq.ParquetFile(pa.BufferReader(tail), **limits).metadata
            groups = read_column_chunks(memoryview(tail)[:-8], metadata.num_row_groups, metadata.num_columns)
            chunks, forms = places_and_forms(groups)
            schema = page_subset.footer_schema_bytes(memoryview(tail))
            pages = Pages.from_bytes(data[:start], chunks)
            return Footer(metadata, chunks, pages, schema, forms, len(data), seal_number(checksum))
        except UNREADABLE as problem:
            raise Corrupt(f"{where}: its footer is not one that this library writes: {problem!r}") from problem

    @property
    def column_count(self) -> int:
        return int(self.metadata.num_columns)

    @cached_property
    def paths(self) -> list[str]:
        """The path of each column, its names from the top with dots between them."""
        return [self.metadata.schema.column(number).path for number in range(self.column_count)]

    @cached_property
    def zone_rows(self) -> list[int]:
        """How many rows each zone has."""
        return [self.metadata.row_group(zone).num_rows for zone in range(self.metadata.num_row_groups)]


def places_and_forms(groups: Sequence[Sequence[ColumnChunk]]) -> tuple[list[ByteRange], list[ColumnForm]]:
    """(offset, length) in bytes of each column chunk, zone by zone; and of each column, how it is stored."""
    ranges = [(chunk.start, chunk.byte_count) for group in groups for chunk in group]
    return ranges, [ColumnForm.of(chunk) for chunk in (groups[0] if groups else ())]


def read_footer(store: Store, block: BlockFile, cache: Cache | None = None) -> Footer:
    """The block's footer, in one exact read, or none if it was read before. Raises NotFound or Corrupt."""

    def load() -> Footer:
        where = f"{store.url}/{block.key}"
        if block.footer_length > _MAX_FOOTER_BYTES:
            raise Corrupt(f"{where}: no footer has {block.footer_length} bytes; {RESTORE_HINT}")
        (data,) = read_block_ranges(store, block, [(block.footer_offset, block.footer_length)])
        footer = Footer.parse(data, where)
        if block.seal not in (None, footer.seal):
            raise Corrupt(f"{where}: this is another block than the one of that name; {RESTORE_HINT}")
        if block.zone_rows not in ((), tuple(footer.zone_rows)) or not footer.pages.fill_chunks(
            footer.chunks, block.footer_offset
        ):
            raise Corrupt(f"{where}: its footer does not fit the table, or the file; {RESTORE_HINT}")
        return footer

    # parsed, it takes about ten times its bytes
    return (cache_of(store) if cache is None else cache).get_or_load(
        ("footer", store.url, block.key, block.footer_offset, block.seal), load, lambda footer: 10 * footer.length
    )


@dataclass(frozen=True, slots=True)
class SealedFile:
    """What is to be remembered of a file that was sealed: where its footer is, and the bytes of its columns.

    ``footer_length``: of the seal and of Parquet's footer, in bytes. ``seal``: see ``seal_number``. ``sizes``: bytes
    of each column in each zone, int64, shape (zones, columns).
    """

    footer_length: int
    seal: int
    sizes: Int64Array


def seal_file(
    stored: pa.Buffer, metadata: pq.FileMetaData, page_rows: int, page_bytes: int
) -> tuple[bytes, SealedFile]:
    """A block's file with its seal.

    ``stored``, ``metadata``: the file as Arrow wrote it, and what it says of it, which is not read again.
    ``page_rows``, ``page_bytes``: at which it ended a page.
    """
    view = memoryview(stored).cast("B")
    parquet_footer = int.from_bytes(view[-8:-4], "little") + 8
    body, tail = view[:-parquet_footer], bytes(view[-parquet_footer:])
    chunks = written_column_chunks(metadata)
    packed = Pages.from_body(body, chunks, page_rows, page_bytes).to_bytes()
    checksum = footer_checksum(packed + tail)
    sizes = np.array([chunk.length for chunk in chunks], np.int64).reshape(metadata.num_row_groups, -1)
    sealed = SealedFile(len(packed) + len(checksum) + len(tail), seal_number(checksum), sizes)
    return b"".join((body, packed, checksum, tail)), sealed


@dataclass(frozen=True, slots=True)
class WholeFile:
    """A block all of whose bytes are here, each as it was written: what ``forge_row_groups`` makes a file of.

    ``row_groups``: of each zone, for each column how it is stored, and its pages.
    """

    schema_bytes: bytes
    row_groups: list[list[tuple[ColumnForm, PageSubset]]]


def check_whole_file(data: bytes, block: BlockFile, where: str) -> WholeFile:
    """A block from all of its bytes. Raises Corrupt unless each is as it was written. Arrow is not asked."""
    view = memoryview(data)
    sealed = view[block.footer_offset :]
    start = len(sealed) - int.from_bytes(sealed[-8:-4], "little") - 8 - _FOOTER_CHECKSUM_BYTES
    checksum = bytes(sealed[start : start + _FOOTER_CHECKSUM_BYTES]) if start >= 0 else b""
    packed, tail = sealed[: max(start, 0)], sealed[start + _FOOTER_CHECKSUM_BYTES :]
    if checksum != footer_checksum(bytes(packed) + bytes(tail)):
        raise Corrupt(f"{where}: its footer fails its checksum; {RESTORE_HINT}")
    if block.seal != seal_number(checksum):
        raise Corrupt(f"{where}: this is another block than the one of that name; {RESTORE_HINT}")
    try:
        groups = read_row_groups(tail[:-8])
        lengths, checksums = sealed_pages(packed, sum(len(chunks) for _, chunks in groups))
        schema = page_subset.footer_schema_bytes(tail)
    except UNREADABLE as problem:
        raise Corrupt(f"{where}: its footer is not one that this library writes: {problem!r}") from problem
    ends = list(accumulate(lengths, initial=FIRST_ZONE_OFFSET))
    chunks = [chunk for _, chunks in groups for chunk in chunks]
    chunk_ends = list(accumulate((chunk.byte_count for chunk in chunks), initial=FIRST_ZONE_OFFSET))
    zones = tuple(rows for rows, _ in groups)
    if (
        block.zone_rows not in ((), zones)
        or not ends[-1] == chunk_ends[-1] == block.footer_offset
        or [chunk.start for chunk in chunks] != chunk_ends[:-1]
    ):
        raise Corrupt(f"{where}: its footer does not fit the table, or the file; {RESTORE_HINT}")
    for number, (page, end) in enumerate(pairwise(ends)):
        if page_checksum(view[page:end], number) != checksums[number]:
            raise Corrupt(f"{where}: page {number} fails its checksum; {RESTORE_HINT}")
    return WholeFile(
        schema, [[(ColumnForm.of(chunk), _all_pages(view, chunk, rows)) for chunk in chunks] for rows, chunks in groups]
    )


def _all_pages(data: memoryview, chunk: ColumnChunk, row_count: int) -> PageSubset:
    pages = data[chunk.start : chunk.start + chunk.byte_count]
    return PageSubset([pages], row_count, chunk.data_offset - chunk.start, chunk.value_count)


_HOT_BLOCK = re.compile(r"(?:^|/)_h/[0-9a-f]{32}\.parquet$")
"""The keys of such blocks, also where a clone names them by where they are."""


def is_hot_key(key: str) -> bool:
    """Whether this is the key of a block that was written by a hot commit."""
    return _HOT_BLOCK.search(key) is not None


def read_block_ranges(store: Store, block: BlockFile, ranges: Sequence[ByteRange]) -> list[bytes]:
    """Read bytes of a block. Raises NotFound, saying that the table refers to it; Corrupt if it is of a hot commit."""
    try:
        return store.read_ranges(block.key, ranges)
    except NotFound as missing:
        if is_hot_key(block.key):
            raise Corrupt(
                f"{store.url}/{block.key}, a block of a hot commit, is missing, and its rows may be in no other "
                f"file: {RESTORE_HINT}, or refresh where a vacuum took an old state"
            ) from missing
        advice = RESTORE_HINT if block.foreign is None else SYNC_HINT
        raise NotFound(f"{missing}, although the table refers to it; {advice}") from missing
