"""Reading blocks: only the columns and zones that are asked for, every byte of them checked.

Columns are found by their physical names; those that a file lacks hold their defaults, those that it has in a narrower
type are widened. Knows no segments and no tables.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from fuse_storage.bitmaps import pack_mask
from fuse_storage.errors import RESTORE_HINT, Corrupt, InvalidArgument, StorageError
from fuse_storage.parquet import page_subset, projection
from fuse_storage.parquet.footer import UNREADABLE, BlockFile, Footer, ForeignLayout, read_block_ranges, read_footer
from fuse_storage.parquet.foreign.footer import name_in_file, name_in_footer, read_foreign_footer
from fuse_storage.parquet.foreign.row_groups import rows_in_groups
from fuse_storage.parquet.foreign.values import convert_values, raise_if_old_calendar
from fuse_storage.parquet.page_subset import PageSubset
from fuse_storage.parquet.pages import RowMask, RowRuns, WantedRows, is_page_of, mask_of_runs, needs_dictionary
from fuse_storage.parquet.sparse_file import SparseFile
from fuse_storage.schema.nested_arrays import file_type
from fuse_storage.schema.schema import Schema
from fuse_storage.store.cache import Cache, cache_of, column_cache
from fuse_storage.store.ranges import ByteRange, coalesce_ranges
from fuse_storage.store.store import Store

if TYPE_CHECKING:
    from fuse_storage.parquet.foreign.dictionaries import KeptDictionaries

_MIN_VALUES_FOR_THREADS = 2_000_000
"""Values from which on it pays to decode with several threads; below, waking them costs more than it saves."""


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
    constants = {} if block.foreign is None else block.foreign.constants
    footer = (
        read_footer(store, block, cache) if block.foreign is None else read_foreign_footer(store, block, schema, cache)
    )
    zone_numbers = list(range(len(footer.zone_rows)) if zones is None else map(int, zones))
    if zones is not None and len(block.zone_rows) > len(footer.zone_rows):  # zones are parts of row groups
        if zone_numbers != sorted(set(zone_numbers)):
            raise InvalidArgument(f"zones {zone_numbers} of {block.key} do not ascend")
        zone_numbers, row_mask = rows_in_groups(block.zone_rows, footer.zone_rows, zone_numbers, row_mask)
        row_mask = None if row_mask.all() else row_mask
    in_footer = name_in_footer if footer.foreign is not None else str
    leaf_columns = [
        numbers
        for field in fields
        if field.id not in constants
        and (numbers := projection.leaf_columns(field, in_footer(field.physical_name), footer.paths))
    ]
    reader = _ZoneReader(store, block, footer, zone_numbers, cache_of(store) if cache is None else cache)
    row_count = sum(reader.row_counts) if row_mask is None else int(np.count_nonzero(row_mask))
    stored: dict[str, pa.ChunkedArray] = {}
    try:
        if row_count and cache is None and column_cache.max_bytes and footer.foreign is None and block.seal is not None:
            stored = _read_cached(reader, leaf_columns, row_mask)
        elif row_count:
            stored = reader.read(leaf_columns, row_mask)
        if footer.foreign is not None:
            stored = {name_in_file(name): column for name, column in stored.items()}
            raise_if_old_calendar(stored, footer.foreign, f"{store.url}/{block.key}")
            types = {field.physical_name: file_type(field) for field in fields}
            stored = convert_values(stored, types, f"{store.url}/{block.key}")
        arrays = [
            projection.repeat_constant(constants[field.id], field, row_count)
            if field.id in constants
            else projection.project_column(stored.get(field.physical_name), field, row_count)
            for field in fields
        ]
        result = pa.Table.from_arrays(arrays, schema=pa.schema([field.arrow for field in fields]))
    except (StorageError, *UNREADABLE) as problem:
        if block.foreign is not None:
            block.foreign.raise_if_changed(store, block.key)
        if isinstance(problem, StorageError):
            raise
        raise Corrupt(f"{store.url}/{block.key} does not hold the columns of its table: {problem!r}") from problem
    if block.foreign is not None:
        block.foreign.raise_if_changed(store, block.key)  # after it was read: so what was read is what was attached
    return result if fields else pa.table({"": pa.nulls(row_count)}).select([])


def _read_cached(
    reader: _ZoneReader, fields: Sequence[Sequence[int]], row_mask: RowMask | None
) -> dict[str, pa.ChunkedArray]:
    """What ``reader.read`` gives, from memory where a scan read the whole column of the block before."""
    columns: dict[str, pa.ChunkedArray] = {}
    missing: list[Sequence[int]] = []
    for numbers in fields:
        if (found := column_cache.find(reader.block.column_key(reader.store, numbers))) is None:
            missing.append(numbers)
        else:
            name, column = found
            columns[name] = reader.choose_zones(column)
    if row_mask is not None:
        columns = projection.keep_rows(columns, row_mask)
    decoded = reader.read(missing, row_mask) if missing else {}
    if row_mask is None and reader.is_of_all_zones:
        for numbers in missing:
            name = reader.footer.paths[numbers[0]].split(".")[0]
            column_cache.put(
                reader.block.column_key(reader.store, numbers), (name, decoded[name]), decoded[name].nbytes
            )
    return columns | decoded


@dataclass(frozen=True, slots=True)
class _ZoneReader:
    """Some zones of a block. Columns go by their numbers in the file, those of one field together."""

    store: Store
    block: BlockFile
    footer: Footer
    zones: Sequence[int]
    cache: Cache

    @property
    def row_counts(self) -> list[int]:
        return [self.footer.zone_rows[zone] for zone in self.zones]

    @property
    def is_of_all_zones(self) -> bool:
        return list(self.zones) == list(range(len(self.footer.zone_rows)))

    def choose_zones(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """The rows of these zones, of a column of all rows of the block."""
        if self.is_of_all_zones:
            return column
        starts = list(accumulate(self.footer.zone_rows, initial=0))
        slices = [column.slice(starts[zone], self.footer.zone_rows[zone]) for zone in self.zones]
        return pa.chunked_array([chunk for rows in slices for chunk in rows.chunks], column.type)

    def read(self, fields: Sequence[Sequence[int]], row_mask: RowMask | None) -> dict[str, pa.ChunkedArray]:
        """The rows of these zones, or those of the mask, by the physical names of the fields."""
        return self.read_all_rows(fields) if row_mask is None else self.read_rows(fields, row_mask)

    def read_all_rows(self, fields: Sequence[Sequence[int]]) -> dict[str, pa.ChunkedArray]:
        """All rows of these zones."""
        columns = sorted({number for numbers in fields for number in numbers})
        if not columns:
            return {}
        if self.footer.foreign is not None:
            return self._read_whole_chunks(columns, self.footer.foreign)
        chunks = [self._chunk(zone, column) for zone in self.zones for column in columns]
        pages = np.concatenate([self.footer.pages.chunk_pages(chunk) for chunk in chunks])
        file = self._fetch_pages([self.footer.chunks[chunk] for chunk in chunks], pages)
        names = [self.footer.paths[number] for number in columns]
        with pq.ParquetFile(pa.PythonFile(file, "r"), metadata=self.footer.metadata, pre_buffer=False) as parquet:
            decoded = parquet.read_row_groups(
                self.zones, columns=names, use_threads=sum(self.row_counts) * len(columns) > _MIN_VALUES_FOR_THREADS
            )
        return dict(zip(decoded.schema.names, decoded.columns, strict=True))

    def _read_whole_chunks(self, columns: Sequence[int], layout: ForeignLayout) -> dict[str, pa.ChunkedArray]:
        """All rows of these zones of a foreign file, whose own footer Arrow is not shown: other engines leave hints."""
        ranges = [self.footer.chunks[self._chunk(zone, column)] for zone in self.zones for column in columns]
        file = self._fetch_pages(ranges, np.zeros(0, np.int64))
        zones = [{column: self._whole_chunk(file, zone, column, layout) for column in columns} for zone in self.zones]
        use_threads = sum(self.row_counts) * len(columns) > _MIN_VALUES_FOR_THREADS
        decoded = page_subset.decode_pages(self.footer.schema_bytes, self.footer.forms, zones, use_threads)
        return dict(zip(decoded.schema.names, decoded.columns, strict=True))

    def _whole_chunk(self, file: SparseFile, zone: int, column: int, layout: ForeignLayout) -> PageSubset:
        chunk = self._chunk(zone, column)
        return PageSubset(
            [file.view(*self.footer.chunks[chunk])],
            self.footer.zone_rows[zone],
            layout.dictionary_lengths[chunk],
            layout.value_counts[chunk],
        )

    def read_rows(self, fields: Sequence[Sequence[int]], row_mask: RowMask) -> dict[str, pa.ChunkedArray]:
        """The rows of these zones that the mask has; fields whose pages hold the same rows are decoded together."""
        wanted = [WantedRows(rows) for rows in np.split(row_mask, np.cumsum(self.row_counts)[:-1])]
        columns: dict[str, pa.ChunkedArray] = {}
        groups: dict[tuple[RowRuns, ...] | None, list[Sequence[int]]] = {}
        for field in fields:
            groups.setdefault(self._decoded_rows(field, wanted), []).append(field)
        for covered, members in groups.items():
            if covered is None:
                columns |= projection.keep_rows(self.read_all_rows(members), row_mask)
                continue
            kept = [rows.mask[start:end] for rows, runs in zip(wanted, covered, strict=True) for start, end in runs]
            columns |= projection.keep_rows(self._read_pages(members, wanted, covered), np.concatenate(kept))
        return columns

    def _decoded_rows(self, field: Sequence[int], wanted: Sequence[WantedRows]) -> tuple[RowRuns, ...] | None:
        """The rows of each zone that are decoded: all of the pages that wanted ones are in; None: all there are."""
        covers = {tuple(self._pages_of(zone, column, wanted)[1] for zone in range(len(wanted))) for column in field}
        if len(covers) > 1 or covers == {tuple(rows.whole for rows in wanted)}:
            return None  # columns of a field must have the same rows
        return covers.pop()

    def _pages_of(self, zone: int, column: int, wanted: Sequence[WantedRows]) -> tuple[npt.NDArray[np.int64], RowRuns]:
        return self.footer.pages.pages_covering(self._chunk(self.zones[zone], column), wanted[zone])

    def _read_pages(
        self, fields: Sequence[Sequence[int]], wanted: Sequence[WantedRows], covered: Sequence[RowRuns]
    ) -> dict[str, pa.ChunkedArray]:
        columns = sorted({number for numbers in fields for number in numbers})
        chosen = [
            {column: self._pages_of(zone, column, wanted)[0] for column in columns}
            for zone, runs in enumerate(covered)
            if runs
        ]
        all_pages = np.concatenate([pages for zone in chosen for pages in zone.values()])
        dictionaries = all_pages[self.footer.pages.row_counts[all_pages] == 0].tolist()
        kept = [] if self.footer.foreign is None else self._dictionaries.among(dictionaries)
        fetched = np.array([page for page in all_pages.tolist() if page not in kept], np.int64) if kept else all_pages
        file = self._fetch_pages(self.footer.pages.byte_ranges(fetched), fetched)
        if self.footer.foreign is not None and not self._are_as_told(file, fetched):
            keep = pack_mask(mask_of_runs(covered, self.row_counts))
            return {name: rows.filter(keep) for name, rows in self.read_all_rows(fields).items()}
        zones = [
            {column: self._page_subset(file, column, pages, kept) for column, pages in zone.items()} for zone in chosen
        ]
        decoded = page_subset.decode_pages(self.footer.schema_bytes, self.footer.forms, zones)
        return dict(zip(decoded.schema.names, decoded.columns, strict=True))

    def _are_as_told(self, file: SparseFile, pages: npt.NDArray[np.int64]) -> bool:
        """Whether the headers of a foreign file's pages say what its offset index says of them, which may lie."""
        places = zip(self.footer.pages.byte_ranges(pages), self.footer.pages.row_counts[pages].tolist(), strict=True)
        return all(is_page_of(file.view(*page_range), row_count) for page_range, row_count in places)

    @property
    def _dictionaries(self) -> KeptDictionaries:
        from fuse_storage.parquet.foreign.dictionaries import KeptDictionaries  # that no file of ours needs

        return KeptDictionaries(self.cache, (self.store.url, self.block.key, self.block.seal))

    def _page_subset(
        self, file: SparseFile, column: int, pages: npt.NDArray[np.int64], kept: Collection[int]
    ) -> PageSubset:
        rows, ranges, first = self.footer.pages.row_counts[pages], self.footer.pages.byte_ranges(pages), int(pages[0])
        row_count = int(rows.sum())
        if rows[0]:  # a first page without rows is the dictionary
            return PageSubset([file.view(*page_range) for page_range in ranges], row_count, 0)
        if self.footer.foreign is not None:
            data = [file.view(*page_range) for page_range in ranges[1:]]
            if not any(map(needs_dictionary, data)):
                return PageSubset(data, row_count, 0)  # the dictionary may be as long as fifty pages
            dictionary, codec = None if first in kept else file.view(*ranges[0]), self.footer.forms[column].codec
            if plain := self._dictionaries.plain_subset(first, dictionary, data, codec, row_count):
                return plain
            if first in kept:
                file = self._fetch_pages(ranges, pages)
        return PageSubset([file.view(*page_range) for page_range in ranges], row_count, ranges[0][1])

    def _chunk(self, zone: int, column: int) -> int:
        return zone * self.footer.column_count + column

    def _fetch_pages(self, ranges: Sequence[ByteRange], pages: npt.NDArray[np.int64]) -> SparseFile:
        return fetch_pages(self.store, self.block, self.footer, ranges, pages)


def fetch_pages(
    store: Store, block: BlockFile, footer: Footer, ranges: Sequence[ByteRange], pages: npt.NDArray[np.int64]
) -> SparseFile:
    """The bytes of a block in these ranges, near ones read together, each of the pages in them checked.

    ``pages``: int64 numbers of pages, shape (n,). Raises NotFound or Corrupt.
    """
    spans = coalesce_ranges(ranges, store.coalesce_gap)
    file = SparseFile(spans, read_block_ranges(store, block, spans))
    for page, page_range in zip(pages.tolist(), footer.pages.byte_ranges(pages), strict=True):
        if footer.pages.is_damaged(page, file.view(*page_range)):
            chunk = int(np.searchsorted(footer.pages.chunk_starts, page, side="right")) - 1
            zone, column = divmod(chunk, footer.column_count)
            name = footer.paths[column]
            raise Corrupt(f"{store.url}/{block.key}: column {name!r} of zone {zone} fails its checksum; {RESTORE_HINT}")
    return file
