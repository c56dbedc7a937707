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

from fuse_storage.errors import RESTORE_HINT, Corrupt
from fuse_storage.parquet import page_subset, projection
from fuse_storage.parquet.page_subset import PageSubset
from fuse_storage.parquet.pages import Int64Array, Pages, RowMask
from fuse_storage.parquet.sparse_file import SparseFile
from fuse_storage.schema.schema import Field, Schema
from fuse_storage.store.cache import Cache, process_cache
from fuse_storage.store.ranges import ByteRange, coalesce_ranges
from fuse_storage.store.store import Store

_FOOTER_CHECKSUM_BYTES = 8

_MIN_VALUES_FOR_THREADS = 2_000_000
"""Values from which on it pays to decode with several threads; below, waking them costs more than it saves."""


def footer_checksum(data: bytes) -> bytes:
    return xxhash.xxh3_64_digest(data)


@dataclass(frozen=True, slots=True)
class BlockFile:
    """Where a block is: its key in the store, and the bytes of its footer there."""

    key: str
    footer_offset: int
    footer_length: int


@dataclass(frozen=True, slots=True)
class Footer:
    """A checked footer: Parquet's metadata, and the place of each column chunk and of its pages, zone by zone."""

    metadata: pq.FileMetaData
    chunks: Sequence[ByteRange]
    pages: Pages
    schema_bytes: bytes
    """As it is written in Parquet's footer."""
    length: int

    @staticmethod
    def chunk_ranges(metadata: pq.FileMetaData) -> list[ByteRange]:
        """(offset, length) of each column chunk, zone by zone."""
        found = []
        for zone in range(metadata.num_row_groups):
            group = metadata.row_group(zone)
            for number in range(group.num_columns):
                column = group.column(number)
                start = column.dictionary_page_offset if column.has_dictionary_page else column.data_page_offset
                found.append((min(start, column.data_page_offset), column.total_compressed_size))
        return found

    @staticmethod
    def parse(data: bytes, where: str) -> Footer:
        """Raises Corrupt if any byte is not as it was written."""
        parquet = int.from_bytes(data[-8:-4], "little") + 8
        start = len(data) - parquet - _FOOTER_CHECKSUM_BYTES
        if start < 0 or data[start : start + _FOOTER_CHECKSUM_BYTES] != footer_checksum(
            data[:start] + data[start + _FOOTER_CHECKSUM_BYTES :]
        ):
            raise Corrupt(f"{where}: its footer fails its checksum; {RESTORE_HINT}")
        metadata = pq.read_metadata(pa.BufferReader(data[start + _FOOTER_CHECKSUM_BYTES :]))
        chunks = Footer.chunk_ranges(metadata)
        schema = page_subset.footer_schema_bytes(memoryview(data)[start + _FOOTER_CHECKSUM_BYTES :])
        return Footer(metadata, chunks, Pages.from_bytes(data[:start], chunks), schema, len(data))

    @property
    def column_count(self) -> int:
        return int(self.metadata.num_columns)

    def zone_row_count(self, zone: int) -> int:
        return int(self.metadata.row_group(zone).num_rows)

    def column_sizes(self, column: int) -> list[int]:
        """Bytes of this column in each zone."""
        return [length for _, length in self.chunks[column :: self.column_count]]


def read_footer(store: Store, block: BlockFile, cache: Cache = process_cache) -> Footer:
    """The block's footer, in one exact read, or none if it was read before. Raises NotFound or Corrupt."""

    def load() -> Footer:
        (data,) = store.read_ranges(block.key, [(block.footer_offset, block.footer_length)])
        return Footer.parse(data, f"{store.url}/{block.key}")

    # parsed, it takes about ten times its bytes
    return cache.get_or_load(
        ("footer", store.url, block.key, block.footer_offset), load, lambda found: 10 * found.length
    )


def read_block(
    store: Store,
    block: BlockFile,
    schema: Schema,
    columns: Sequence[str],
    zones: Sequence[int] | None = None,
    cache: Cache = process_cache,
    row_mask: RowMask | None = None,
) -> pa.Table:
    """These columns (logical names, nested ones whole) of these zones (by default all), in the order asked for.

    ``rows``: which rows of these zones are wanted, one element for each; only pages that hold one of them are read.
    Raises SchemaError for an unknown column, NotFound for a missing file, Corrupt for a damaged one.
    """
    fields = [schema.find([name]) for name in columns]
    opened = read_footer(store, block, cache)
    wanted = list(range(opened.metadata.num_row_groups) if zones is None else map(int, zones))
    paths = [opened.metadata.schema.column(number).path for number in range(opened.column_count)]
    needed = [numbers for field in fields if (numbers := _leaf_columns(field, paths))]
    part = _ZoneReader(store, block, opened, wanted)
    count = sum(part.row_counts) if row_mask is None else int(np.count_nonzero(row_mask))
    found: dict[str, pa.ChunkedArray] = {}
    if count and row_mask is not None:
        found = part.read_rows(needed, row_mask)
    elif count:
        found = part.read_all_rows(needed)
    arrays = [projection.project_column(found.get(field.physical_name), field, count) for field in fields]
    result = pa.Table.from_arrays(arrays, schema=pa.schema([field.arrow for field in fields]))
    return result if fields else pa.table({"": pa.nulls(count)}).select([])


def _leaf_columns(field: Field, paths: Sequence[str]) -> list[int]:
    """The Parquet columns of a field; of a struct without any that is left, one, which knows where the struct is
    NULL.
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
    here = above + field.physical_name
    return [number for number in among if paths[number] == here or paths[number].startswith(here + ".")]


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
            found = parquet.read_row_groups(
                self.zones, columns=names, use_threads=sum(self.row_counts) * len(columns) > _MIN_VALUES_FOR_THREADS
            )
        return dict(zip(found.column_names, found.columns, strict=True))

    def read_rows(self, fields: Sequence[Sequence[int]], wanted: RowMask) -> dict[str, pa.ChunkedArray]:
        """The wanted rows of these zones."""
        found: dict[str, pa.ChunkedArray] = {}
        alike: dict[bytes, tuple[RowMask, list[Sequence[int]]]] = {}
        for field in fields:
            covered = self._decoded_rows(field, wanted)
            alike.setdefault(covered.tobytes(), (covered, []))[1].append(field)
        for covered, together in alike.values():
            rows = self.read_all_rows(together) if covered.all() else self._read_pages(together, covered)
            keep = pa.array(wanted[covered])
            found |= {name: column.filter(keep) for name, column in rows.items()}
        return found

    def _decoded_rows(self, field: Sequence[int], wanted: RowMask) -> RowMask:
        """The rows that are decoded for the wanted ones: those of the pages they are in."""
        covers = [
            np.concatenate(
                [
                    self.footer.pages.pages_covering(self._chunk(zone, column), rows)[1]
                    for zone, rows in self._split(wanted)
                ]
            )
            for column in field
        ]
        same = all(np.array_equal(cover, covers[0]) for cover in covers)
        return covers[0] if same else np.ones(len(wanted), np.bool_)

    def _read_pages(self, fields: Sequence[Sequence[int]], covered: RowMask) -> dict[str, pa.ChunkedArray]:
        columns = sorted({number for numbers in fields for number in numbers})
        chosen = [
            {column: self.footer.pages.pages_covering(self._chunk(zone, column), rows)[0] for column in columns}
            for zone, rows in self._split(covered)
            if rows.any()
        ]
        every = np.concatenate([pages for zone in chosen for pages in zone.values()])
        file = self._fetch_pages(self.footer.pages.byte_ranges(every), every)
        zones = [{column: self._page_subset(file, pages) for column, pages in zone.items()} for zone in chosen]
        found = page_subset.decode_pages(self.footer.schema_bytes, self.footer.metadata, zones)
        return dict(zip(found.column_names, found.columns, strict=True))

    def _page_subset(self, file: SparseFile, pages: Int64Array) -> PageSubset:
        rows = self.footer.pages.row_counts[pages]
        ranges = self.footer.pages.byte_ranges(pages)
        return PageSubset([file.view(*where) for where in ranges], int(rows.sum()), 0 if rows[0] else ranges[0][1])

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
        """These bytes of the file, and each page in them checked."""
        spans = coalesce_ranges(ranges, self.store.coalesce_gap)
        file = SparseFile(spans, self.store.read_ranges(self.block.key, spans))
        for page, where in zip(pages.tolist(), self.footer.pages.byte_ranges(pages), strict=True):
            if self.footer.pages.is_damaged(page, file.view(*where)):
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
