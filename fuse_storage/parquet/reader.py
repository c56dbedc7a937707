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

from fuse_storage.errors import RESTORE, Corrupt
from fuse_storage.parquet import page_subset, projection
from fuse_storage.parquet.page_subset import Excerpt
from fuse_storage.parquet.pages import Mask, Numbers, Pages
from fuse_storage.parquet.sparse_file import Sparse
from fuse_storage.schema.schema import Field, Schema
from fuse_storage.store.cache import Cache, shared
from fuse_storage.store.ranges import Range, coalesced
from fuse_storage.store.store import Store

FOOTER_SUM = 8

MANY = 2_000_000
"""Values from which on it pays to decode with several threads; below, waking them costs more than it saves."""


def footer_sum(data: bytes) -> bytes:
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
    chunks: Sequence[Range]
    pages: Pages
    schema: bytes
    """As it is written in Parquet's footer."""
    length: int

    @staticmethod
    def places(metadata: pq.FileMetaData) -> list[Range]:
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
        start = len(data) - parquet - FOOTER_SUM
        if start < 0 or data[start : start + FOOTER_SUM] != footer_sum(data[:start] + data[start + FOOTER_SUM :]):
            raise Corrupt(f"{where}: its footer fails its checksum; {RESTORE}")
        metadata = pq.read_metadata(pa.BufferReader(data[start + FOOTER_SUM :]))
        chunks = Footer.places(metadata)
        schema = page_subset.schema_of(memoryview(data)[start + FOOTER_SUM :])
        return Footer(metadata, chunks, Pages.unpacked(data[:start], chunks), schema, len(data))

    @property
    def columns(self) -> int:
        return int(self.metadata.num_columns)

    def rows(self, zone: int) -> int:
        return int(self.metadata.row_group(zone).num_rows)

    def sizes(self, column: int) -> list[int]:
        """Bytes of this column in each zone."""
        return [length for _, length in self.chunks[column :: self.columns]]


def footer(store: Store, block: BlockFile, cache: Cache = shared) -> Footer:
    """The block's footer, in one exact read, or none if it was read before. Raises NotFound or Corrupt."""

    def load() -> Footer:
        (data,) = store.read_ranges(block.key, [(block.footer_offset, block.footer_length)])
        return Footer.parse(data, f"{store.url}/{block.key}")

    # parsed, it takes about ten times its bytes
    return cache.get(("footer", store.url, block.key, block.footer_offset), load, lambda found: 10 * found.length)


def read(
    store: Store,
    block: BlockFile,
    schema: Schema,
    columns: Sequence[str],
    zones: Sequence[int] | None = None,
    cache: Cache = shared,
    rows: Mask | None = None,
) -> pa.Table:
    """These columns (logical names, nested ones whole) of these zones (by default all), in the order asked for.

    ``rows``: which rows of these zones are wanted, one element for each; only pages that hold one of them are read.
    Raises SchemaError for an unknown column, NotFound for a missing file, Corrupt for a damaged one.
    """
    fields = [schema.find([name]) for name in columns]
    opened = footer(store, block, cache)
    wanted = list(range(opened.metadata.num_row_groups) if zones is None else map(int, zones))
    paths = [opened.metadata.schema.column(number).path for number in range(opened.columns)]
    needed = [numbers for field in fields if (numbers := _chosen(field, paths))]
    part = _Part(store, block, opened, wanted)
    count = sum(part.sizes) if rows is None else int(np.count_nonzero(rows))
    found: dict[str, pa.ChunkedArray] = {}
    if count and rows is not None:
        found = part.rows(needed, rows)
    elif count:
        found = part.whole(needed)
    arrays = [projection.column(found.get(field.physical), field, count) for field in fields]
    result = pa.Table.from_arrays(arrays, schema=pa.schema([field.arrow for field in fields]))
    return result if fields else pa.table({"": pa.nulls(count)}).select([])


def _chosen(field: Field, paths: Sequence[str]) -> list[int]:
    """The Parquet columns of a field; of a struct without any that is left, one, which knows where the struct is
    NULL.
    """
    below = [
        number for number, path in enumerate(paths) if path == field.physical or path.startswith(field.physical + ".")
    ]
    if field.is_leaf or not is_.is_struct(field.type):
        return below
    chosen = [number for child in field.children for number in _below(child, f"{field.physical}.", below, paths)]
    return chosen or below[:1]


def _below(field: Field, above: str, among: Sequence[int], paths: Sequence[str]) -> list[int]:
    here = above + field.physical
    return [number for number in among if paths[number] == here or paths[number].startswith(here + ".")]


@dataclass(frozen=True, slots=True)
class _Part:
    """Some zones of a block. Columns go by their numbers in the file, those of one field together."""

    store: Store
    block: BlockFile
    opened: Footer
    zones: Sequence[int]

    @property
    def sizes(self) -> list[int]:
        return [self.opened.rows(zone) for zone in self.zones]

    def whole(self, fields: Sequence[Sequence[int]]) -> dict[str, pa.ChunkedArray]:
        """All rows of these zones."""
        columns = sorted({number for numbers in fields for number in numbers})
        if not columns:
            return {}
        chunks = [self._chunk(zone, column) for zone in self.zones for column in columns]
        pages = np.concatenate([self.opened.pages.of_chunk(chunk) for chunk in chunks])
        file = self._fetched([self.opened.chunks[chunk] for chunk in chunks], pages)
        names = [self.opened.metadata.schema.column(number).path for number in columns]
        with pq.ParquetFile(pa.PythonFile(file, "r"), metadata=self.opened.metadata, pre_buffer=False) as parquet:
            found = parquet.read_row_groups(
                self.zones, columns=names, use_threads=sum(self.sizes) * len(columns) > MANY
            )
        return dict(zip(found.column_names, found.columns, strict=True))

    def rows(self, fields: Sequence[Sequence[int]], wanted: Mask) -> dict[str, pa.ChunkedArray]:
        """The wanted rows of these zones."""
        found: dict[str, pa.ChunkedArray] = {}
        alike: dict[bytes, tuple[Mask, list[Sequence[int]]]] = {}
        for field in fields:
            covered = self._covered(field, wanted)
            alike.setdefault(covered.tobytes(), (covered, []))[1].append(field)
        for covered, together in alike.values():
            rows = self.whole(together) if covered.all() else self._excerpt(together, covered)
            keep = pa.array(wanted[covered])
            found |= {name: column.filter(keep) for name, column in rows.items()}
        return found

    def _covered(self, field: Sequence[int], wanted: Mask) -> Mask:
        """The rows that are decoded for the wanted ones: those of the pages they are in."""
        covers = [
            np.concatenate(
                [self.opened.pages.holding(self._chunk(zone, column), rows)[1] for zone, rows in self._split(wanted)]
            )
            for column in field
        ]
        same = all(np.array_equal(cover, covers[0]) for cover in covers)
        return covers[0] if same else np.ones(len(wanted), np.bool_)

    def _excerpt(self, fields: Sequence[Sequence[int]], covered: Mask) -> dict[str, pa.ChunkedArray]:
        columns = sorted({number for numbers in fields for number in numbers})
        chosen = [
            {column: self.opened.pages.holding(self._chunk(zone, column), rows)[0] for column in columns}
            for zone, rows in self._split(covered)
            if rows.any()
        ]
        every = np.concatenate([pages for zone in chosen for pages in zone.values()])
        file = self._fetched(self.opened.pages.ranges(every), every)
        zones = [{column: self._of(file, pages) for column, pages in zone.items()} for zone in chosen]
        found = page_subset.table(self.opened.schema, self.opened.metadata, zones)
        return dict(zip(found.column_names, found.columns, strict=True))

    def _of(self, file: Sparse, pages: Numbers) -> Excerpt:
        rows = self.opened.pages.rows[pages]
        ranges = self.opened.pages.ranges(pages)
        return Excerpt([file.view(*where) for where in ranges], int(rows.sum()), 0 if rows[0] else ranges[0][1])

    def _split(self, rows: Mask) -> Iterator[tuple[int, Mask]]:
        """Each zone, and what the mask says of its rows."""
        starts = accumulate(self.sizes, initial=0)
        return (
            (zone, rows[start : start + size])
            for zone, start, size in zip(self.zones, starts, self.sizes, strict=False)
        )

    def _chunk(self, zone: int, column: int) -> int:
        return zone * self.opened.columns + column

    def _fetched(self, ranges: Sequence[Range], pages: Numbers) -> Sparse:
        """These bytes of the file, and each page in them checked."""
        spans = coalesced(ranges, self.store.gap)
        file = Sparse(spans, self.store.read_ranges(self.block.key, spans))
        for page, where in zip(pages.tolist(), self.opened.pages.ranges(pages), strict=True):
            if self.opened.pages.damaged(page, file.view(*where)):
                zone, column = divmod(
                    int(np.searchsorted(self.opened.pages.first, page, side="right")) - 1, self.opened.columns
                )
                name = self.opened.metadata.schema.column(column).path
                raise Corrupt(
                    f"{self.store.url}/{self.block.key}: column {name!r} of zone {zone} fails its checksum; {RESTORE}"
                )
        return file
