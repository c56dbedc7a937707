"""Reading blocks: only the columns and zones that are asked for, every byte of them checked.

Columns are found by their physical names; those that a file lacks hold their defaults, those that it has in a narrower
type are widened. Knows no segments and no tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as is_
import xxhash

from fuse_storage.errors import RESTORE_HINT, Corrupt, NotFound, StorageError
from fuse_storage.parquet import page_subset, projection
from fuse_storage.parquet.page_subset import PageSubset
from fuse_storage.parquet.pages import Int64Array, Pages, RowMask
from fuse_storage.parquet.sparse_file import SparseFile
from fuse_storage.schema.schema import Field, Schema
from fuse_storage.store.cache import Cache, cache_of
from fuse_storage.store.ranges import ByteRange, coalesce_ranges
from fuse_storage.store.store import Store

_FOOTER_CHECKSUM_BYTES = 8
_MAX_FOOTER_BYTES = 256 << 20  # 16 for each page, and some hundred for each column of each zone
_UNREADABLE = (pa.ArrowException, OSError, ValueError, LookupError, TypeError, RecursionError, OverflowError)
"""What is raised of bytes whose checksums are right, and that no writer of ours wrote."""

_MIN_VALUES_FOR_THREADS = 2_000_000
"""Values from which on it pays to decode with several threads; below, waking them costs more than it saves."""


def footer_checksum(data: bytes) -> bytes:
    """Eight bytes, xxh3-64, of the seal's pages and the Parquet footer, which lie on both sides of it."""
    return xxhash.xxh3_64_digest(data)


@dataclass(frozen=True, slots=True)
class BlockFile:
    """The place of a block: its key in the store, and the bytes of its footer there.

    ``zone_rows``: how many rows each zone has; empty where nobody says.
    """

    key: str
    footer_offset: int
    footer_length: int
    zone_rows: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Footer:
    """A checked footer: Parquet's metadata, and the place of each column chunk and of its pages, zone by zone."""

    metadata: pq.FileMetaData
    chunks: Sequence[ByteRange]
    pages: Pages
    schema_bytes: bytes
    """The schema as it is written in Parquet's footer."""
    length: int

    @staticmethod
    def chunk_ranges(metadata: pq.FileMetaData) -> list[ByteRange]:
        """(offset, length) in bytes of each column chunk, zone by zone."""
        ranges = []
        for zone in range(metadata.num_row_groups):
            group = metadata.row_group(zone)
            for number in range(group.num_columns):
                column = group.column(number)
                start = column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset
                ranges.append((min(start, column.data_page_offset), column.total_compressed_size))
        return ranges

    @staticmethod
    def parse(data: bytes, where: str) -> Footer:
        """The footer of a block from the bytes of its seal and its Parquet footer.

        ``where`` names the file in messages. Raises Corrupt if any byte is not as it was written.
        """
        parquet = int.from_bytes(data[-8:-4], "little") + 8
        start = len(data) - parquet - _FOOTER_CHECKSUM_BYTES
        if start < 0 or data[start : start + _FOOTER_CHECKSUM_BYTES] != footer_checksum(
            data[:start] + data[start + _FOOTER_CHECKSUM_BYTES :]
        ):
            raise Corrupt(f"{where}: its footer fails its checksum; {RESTORE_HINT}")
        try:
            limits = {"thrift_string_size_limit": len(data), "thrift_container_size_limit": len(data)}
            metadata = pq.ParquetFile(pa.BufferReader(data[start + _FOOTER_CHECKSUM_BYTES :]), **limits).metadata
            chunks = Footer.chunk_ranges(metadata)
            schema = page_subset.footer_schema_bytes(memoryview(data)[start + _FOOTER_CHECKSUM_BYTES :])
            return Footer(metadata, chunks, Pages.from_bytes(data[:start], chunks), schema, len(data))
        except _UNREADABLE as problem:
            raise Corrupt(f"{where}: its footer is not one that this library writes: {problem!r}") from problem

    @property
    def column_count(self) -> int:
        return int(self.metadata.num_columns)

    def zone_row_count(self, zone: int) -> int:
        return int(self.metadata.row_group(zone).num_rows)

    def column_sizes(self, column: int) -> list[int]:
        """Bytes of this column in each zone."""
        return [length for _, length in self.chunks[column :: self.column_count]]


def read_footer(store: Store, block: BlockFile, cache: Cache | None = None) -> Footer:
    """The block's footer, in one exact read, or none if it was read before. Raises NotFound or Corrupt."""

    def load() -> Footer:
        where = f"{store.url}/{block.key}"
        if block.footer_length > _MAX_FOOTER_BYTES:
            raise Corrupt(f"{where}: no footer has {block.footer_length} bytes; {RESTORE_HINT}")
        (data,) = _read_ranges(store, block, [(block.footer_offset, block.footer_length)])
        footer = Footer.parse(data, where)
        zones = tuple(footer.zone_row_count(zone) for zone in range(footer.metadata.num_row_groups))
        if block.zone_rows not in ((), zones) or not footer.pages.fill_chunks(footer.chunks, block.footer_offset):
            raise Corrupt(f"{where}: its footer does not fit the table, or the file; {RESTORE_HINT}")
        return footer

    # parsed, it takes about ten times its bytes
    return (cache_of(store) if cache is None else cache).get_or_load(
        ("footer", store.url, block.key, block.footer_offset), load, lambda footer: 10 * footer.length
    )


def _read_ranges(store: Store, block: BlockFile, ranges: Sequence[ByteRange]) -> list[bytes]:
    try:
        return store.read_ranges(block.key, ranges)
    except NotFound as missing:
        raise NotFound(f"{missing}, although the table refers to it; {RESTORE_HINT}") from missing


def read_block(
    store: Store,
    block: BlockFile,
    schema: Schema,
    columns: Sequence[str],
    zones: Sequence[int] | None = None,
    cache: Cache | None = None,
    row_mask: RowMask | None = None,
) -> pa.Table:
    """Columns of a block under their logical names, nested ones whole, in the order asked for.

    ``zones``: numbers of the zones to read, in this order; by default all. ``row_mask``: bool, shape (rows of
    these zones,), zone after zone, True where the row is wanted; only pages that hold a wanted row are read. Returns
    the wanted rows in their order, by default all. Raises SchemaError for an unknown column, NotFound for a missing
    file, Corrupt for a damaged one.
    """
    fields = [schema.find([name]) for name in columns]
    footer = read_footer(store, block, cache)
    zone_numbers = list(range(footer.metadata.num_row_groups) if zones is None else map(int, zones))
    paths = [footer.metadata.schema.column(number).path for number in range(footer.column_count)]
    leaf_columns = [numbers for field in fields if (numbers := _leaf_columns(field, paths))]
    reader = _ZoneReader(store, block, footer, zone_numbers)
    row_count = sum(reader.row_counts) if row_mask is None else int(np.count_nonzero(row_mask))
    stored: dict[str, pa.ChunkedArray] = {}
    try:
        if row_count and row_mask is not None:
            stored = reader.read_rows(leaf_columns, row_mask)
        elif row_count:
            stored = reader.read_all_rows(leaf_columns)
        arrays = [projection.project_column(stored.get(field.physical_name), field, row_count) for field in fields]
        result = pa.Table.from_arrays(arrays, schema=pa.schema([field.arrow for field in fields]))
    except StorageError:
        raise
    except _UNREADABLE as problem:
        raise Corrupt(f"{store.url}/{block.key} does not hold the columns of its table: {problem!r}") from problem
    return result if fields else pa.table({"": pa.nulls(row_count)}).select([])


def _leaf_columns(field: Field, paths: Sequence[str]) -> list[int]:
    """The numbers of the Parquet columns of a field.

    Of a struct none of whose fields the file has, one column of it, which knows where the struct is NULL.
    """
    below = [
        number
        for number, path in enumerate(paths)
        if path == field.physical_name or path.startswith(field.physical_name + ".")
    ]
    if field.is_leaf or not is_.is_struct(field.type):
        return below
    chosen = [
        number for child in field.children for number in _columns_below(child, f"{field.physical_name}.", below, paths)
    ]
    return chosen or below[:1]


def _columns_below(field: Field, above: str, among: Sequence[int], paths: Sequence[str]) -> list[int]:
    path = above + field.physical_name
    return [number for number in among if paths[number] == path or paths[number].startswith(path + ".")]


@dataclass(frozen=True, slots=True)
class _ZoneReader:
    """Some zones of a block. Columns go by their numbers in the file, those of one field together."""

    store: Store
    block: BlockFile
    footer: Footer
    zones: Sequence[int]

    @property
    def row_counts(self) -> list[int]:
        return [self.footer.zone_row_count(zone) for zone in self.zones]

    def read_all_rows(self, fields: Sequence[Sequence[int]]) -> dict[str, pa.ChunkedArray]:
        """All rows of these zones."""
        columns = sorted({number for numbers in fields for number in numbers})
        if not columns:
            return {}
        chunks = [self._chunk(zone, column) for zone in self.zones for column in columns]
        pages = np.concatenate([self.footer.pages.chunk_pages(chunk) for chunk in chunks])
        file = self._fetch_pages([self.footer.chunks[chunk] for chunk in chunks], pages)
        names = [self.footer.metadata.schema.column(number).path for number in columns]
        with pq.ParquetFile(pa.PythonFile(file, "r"), metadata=self.footer.metadata, pre_buffer=False) as parquet:
            decoded = parquet.read_row_groups(
                self.zones, columns=names, use_threads=sum(self.row_counts) * len(columns) > _MIN_VALUES_FOR_THREADS
            )
        return dict(zip(decoded.column_names, decoded.columns, strict=True))

    def read_rows(self, fields: Sequence[Sequence[int]], row_mask: RowMask) -> dict[str, pa.ChunkedArray]:
        """The rows of these zones that the mask has; fields whose pages hold the same rows are decoded together."""
        columns: dict[str, pa.ChunkedArray] = {}
        groups: dict[bytes, tuple[RowMask, list[Sequence[int]]]] = {}
        for field in fields:
            covered = self._decoded_rows(field, row_mask)
            groups.setdefault(covered.tobytes(), (covered, []))[1].append(field)
        for covered, members in groups.values():
            rows = self.read_all_rows(members) if covered.all() else self._read_pages(members, covered)
            keep = pa.array(row_mask[covered])
            columns |= {name: column.filter(keep) for name, column in rows.items()}
        return columns

    def _decoded_rows(self, field: Sequence[int], row_mask: RowMask) -> RowMask:
        """The rows that are decoded for those of the mask: all of the pages that these are in."""
        covers = [
            np.concatenate(
                [
                    self.footer.pages.pages_covering(self._chunk(zone, column), zone_mask)[1]
                    for zone, zone_mask in self._split(row_mask)
                ]
            )
            for column in field
        ]
        same = all(np.array_equal(cover, covers[0]) for cover in covers)
        return covers[0] if same else np.ones(len(row_mask), np.bool_)  # columns of a field must have the same rows

    def _read_pages(self, fields: Sequence[Sequence[int]], covered: RowMask) -> dict[str, pa.ChunkedArray]:
        columns = sorted({number for numbers in fields for number in numbers})
        chosen = [
            {column: self.footer.pages.pages_covering(self._chunk(zone, column), rows)[0] for column in columns}
            for zone, rows in self._split(covered)
            if rows.any()
        ]
        all_pages = np.concatenate([pages for zone in chosen for pages in zone.values()])
        file = self._fetch_pages(self.footer.pages.byte_ranges(all_pages), all_pages)
        zones = [{column: self._page_subset(file, pages) for column, pages in zone.items()} for zone in chosen]
        decoded = page_subset.decode_pages(self.footer.schema_bytes, self.footer.metadata, zones)
        return dict(zip(decoded.column_names, decoded.columns, strict=True))

    def _page_subset(self, file: SparseFile, pages: Int64Array) -> PageSubset:
        rows = self.footer.pages.row_counts[pages]
        ranges = self.footer.pages.byte_ranges(pages)
        dictionary_length = 0 if rows[0] else ranges[0][1]  # a first page without rows is the dictionary
        return PageSubset([file.view(*page_range) for page_range in ranges], int(rows.sum()), dictionary_length)

    def _split(self, rows: RowMask) -> Iterator[tuple[int, RowMask]]:
        """Each zone, and what the mask says of its rows."""
        starts = accumulate(self.row_counts, initial=0)
        return (
            (zone, rows[start : start + size])
            for zone, start, size in zip(self.zones, starts, self.row_counts, strict=False)
        )

    def _chunk(self, zone: int, column: int) -> int:
        return zone * self.footer.column_count + column

    def _fetch_pages(self, ranges: Sequence[ByteRange], pages: Int64Array) -> SparseFile:
        """The bytes of the file in these ranges, near ones read together, each of the pages in them checked."""
        spans = coalesce_ranges(ranges, self.store.coalesce_gap)
        file = SparseFile(spans, _read_ranges(self.store, self.block, spans))
        for page, page_range in zip(pages.tolist(), self.footer.pages.byte_ranges(pages), strict=True):
            if self.footer.pages.is_damaged(page, file.view(*page_range)):
                zone, column = divmod(
                    int(np.searchsorted(self.footer.pages.chunk_starts, page, side="right")) - 1,
                    self.footer.column_count,
                )
                name = self.footer.metadata.schema.column(column).path
                raise Corrupt(
                    f"{self.store.url}/{self.block.key}: column {name!r} of zone {zone} fails its "
                    f"checksum; {RESTORE_HINT}"
                )
        return file
