"""Rows that were found in many blocks, read at once: the pages that hold them become one Parquet file in memory.

Opening a file and beginning to decode it costs more than decoding a page. So the pages of a number of blocks are put
behind each other, a row group for each zone, as ``page_subset`` does for one block, with a schema of just the
columns that are asked for. Blocks in which a column is declared differently (REQUIRED or not, another type) make
files of their own. What has no rows of its own in pages (arrays, maps, structs) is left to ``reader``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fuse_storage.errors import Corrupt
from fuse_storage.parquet.footer import UNREADABLE, BlockFile, Footer, read_footer
from fuse_storage.parquet.page_subset import (
    ColumnForm,
    PageSubset,
    encode_flat_schema,
    flat_schema_elements,
    forge_row_groups,
)
from fuse_storage.parquet.pages import Int64Array, RowMask
from fuse_storage.parquet.projection import project_column
from fuse_storage.parquet.reader import fetch_pages, read_block
from fuse_storage.schema.nested_arrays import empty_table
from fuse_storage.schema.schema import Field, Schema
from fuse_storage.store.cache import Cache, cache_of, column_cache
from fuse_storage.store.store import Store


@dataclass(frozen=True, slots=True)
class RowRequest:
    """Some rows of one block. ``row_mask``: bool, shape (rows of these zones,), True where the row is wanted."""

    store: Store
    block: BlockFile
    zones: Sequence[int]
    row_mask: RowMask


def read_found_rows(
    requests: Sequence[RowRequest], schema: Schema, columns: Sequence[str], cache: Cache | None = None
) -> pa.Table:
    """Columns of the wanted rows, request after request, under their logical names, in the order asked for.

    Raises as ``read_block``.
    """
    fields = [schema.find([name]) for name in columns]
    batches: dict[tuple[bytes, ...], _Batch] = {}
    tables: list[pa.Table | _Places] = []
    for request in requests:
        layout = _layout(request, cache)
        if layout is None or layout.are_cached(request, fields) or not all(map(layout.has_rows_in_pages, fields)):
            tables.append(
                read_block(request.store, request.block, schema, columns, request.zones, cache, request.row_mask)
            )
        else:
            tables.append(_plan_request(request, layout, fields, batches))
    decoded = {key: batch.decode() for key, batch in batches.items()}
    arrow_schema = pa.schema([each.arrow for each in fields])
    whole = [
        each if isinstance(each, pa.Table) else _fitted_rows(each, decoded, fields, arrow_schema) for each in tables
    ]
    return pa.concat_tables(whole) if whole else empty_table(arrow_schema)


@dataclass(frozen=True)
class _FlatLayout:
    """The columns at the top of one block, and which rows their pages hold.

    ``numbers``: of columns by physical name. ``elements``: what Parquet's schema says of them, as bytes by number.
    """

    footer: Footer
    numbers: dict[str, int]
    elements: dict[int, bytes]
    _starts: dict[int, list[Int64Array]] = field(default_factory=dict)
    _chunks: dict[int, _ChunkPages] = field(default_factory=dict)

    @classmethod
    def from_footer(cls, footer: Footer) -> _FlatLayout:
        numbers, elements = {}, {}
        for number, name, element in flat_schema_elements(footer.schema_bytes):
            numbers[name], elements[number] = number, element
        return cls(footer, numbers, elements)

    def has_rows_in_pages(self, column: Field) -> bool:
        """Whether each page holds one value a row of this column; one that the block lacks has no pages."""
        if not column.is_leaf:
            return False
        number = self.numbers.get(column.physical_name)
        return number is None or all(
            self.chunk(zone, number).row_count == rows for zone, rows in enumerate(self.footer.zone_rows)
        )

    def are_cached(self, request: RowRequest, columns: Sequence[Field]) -> bool:
        """Whether all of these columns that the block has are in ``column_cache``."""
        numbers = [self.numbers[each.physical_name] for each in columns if each.physical_name in self.numbers]
        return all(column_cache.find(request.block.column_key(request.store, [number])) for number in numbers)

    def chunk(self, zone: int, column: int) -> _ChunkPages:
        number = zone * self.footer.column_count + column
        if number not in self._chunks:
            self._chunks[number] = self._chunk_pages(zone, number)
        return self._chunks[number]

    def _chunk_pages(self, zone: int, number: int) -> _ChunkPages:
        pages = self.footer.pages
        first, end = int(pages.chunk_starts[number]), int(pages.chunk_starts[number + 1])
        has_dictionary = first < end and not pages.row_counts[first]
        starts = np.append(0, np.cumsum(pages.row_counts[first + has_dictionary : end]))
        known = self._starts.setdefault(zone, [])
        for other in known:  # so that columns whose pages hold the same rows have one array
            if np.array_equal(other, starts):
                return _ChunkPages(first, has_dictionary, other)
        known.append(starts)
        return _ChunkPages(first, has_dictionary, starts)


@dataclass(frozen=True, slots=True)
class _ChunkPages:
    """The pages of a column chunk: the number of the first, whether that is a dictionary, and their rows.

    ``starts``: int64, shape (data pages + 1,), the first row of each data page within the zone, and their sum.
    """

    first: int
    has_dictionary: bool
    starts: Int64Array

    @property
    def row_count(self) -> int:
        return int(self.starts[-1])

    def numbers(self, data_pages: Int64Array) -> Int64Array:
        """The numbers of these data pages among all of the file, the dictionary's before them."""
        numbers = self.first + self.has_dictionary + data_pages
        return np.append(self.first, numbers) if self.has_dictionary else numbers


def _layout(request: RowRequest, cache: Cache | None) -> _FlatLayout | None:
    """The block's columns; None of a block whose writer left no seal with the table, and of a foreign file."""
    store, block = request.store, request.block
    if block.seal is None or block.foreign is not None:
        return None
    footer = read_footer(store, block, cache)
    where = f"{store.url}/{block.key}"

    def load() -> _FlatLayout:
        try:
            return _FlatLayout.from_footer(footer)
        except UNREADABLE as problem:
            raise Corrupt(f"{where}: its footer is not one that this library writes: {problem!r}") from problem

    key = ("flat layout", store.url, block.key, block.footer_offset, block.seal)
    return (cache_of(store) if cache is None else cache).get_or_load(key, load, lambda made: 4 * made.footer.length)


@dataclass(frozen=True, slots=True)
class _Places:
    """Where the rows of a request come out: by column number of ``fields``, its batch and the first of its rows there.

    A column that the block lacks has no place.
    """

    row_count: int
    places: dict[int, tuple[tuple[bytes, ...], int]]


@dataclass
class _Batch:
    """Row groups that have the same columns. ``kept``: of each, int64, which of all decoded rows are wanted."""

    elements: tuple[bytes, ...]
    row_groups: list[list[tuple[ColumnForm, PageSubset]]] = field(default_factory=list)
    kept: list[Int64Array] = field(default_factory=list)
    decoded_rows: int = 0
    kept_rows: int = 0

    def add(self, chunks: list[tuple[ColumnForm, PageSubset]], kept: Int64Array) -> None:
        """Another row group, of which these rows are wanted: int64, shape (n,), counted within it."""
        self.row_groups.append(chunks)
        self.kept.append(self.decoded_rows + kept)
        self.decoded_rows += chunks[0][1].row_count
        self.kept_rows += len(kept)

    def decode(self) -> pa.Table:
        """The wanted rows of all row groups, under physical names."""
        try:
            file = pa.BufferReader(forge_row_groups(encode_flat_schema(self.elements), self.row_groups))
            with pq.ParquetFile(file, pre_buffer=False) as parquet:
                return parquet.read(use_threads=False).take(pa.array(np.concatenate(self.kept)))
        except UNREADABLE as problem:
            raise Corrupt(f"pages of {len(self.row_groups)} zones cannot be decoded together: {problem!r}") from problem


def _plan_request(
    request: RowRequest, layout: _FlatLayout, fields: Sequence[Field], batches: dict[tuple[bytes, ...], _Batch]
) -> _Places:
    """Fetch the pages of a request's rows, and put them into the batches of their columns."""
    wanted = np.flatnonzero(request.row_mask)
    present = {
        layout.numbers[each.physical_name]: position
        for position, each in enumerate(fields)
        if each.physical_name in layout.numbers
    }
    zone_rows = list(_rows_by_zone(wanted, request.zones, layout.footer.zone_rows))
    places: dict[int, tuple[tuple[bytes, ...], int]] = {}
    if not zone_rows or not present:
        return _Places(len(wanted), places)
    groups = list(_columns_by_pages(layout, [zone for zone, _ in zone_rows], sorted(present)))
    parts = [_ZoneRows.of(layout, zone, columns, rows) for columns in groups for zone, rows in zone_rows]
    pages = np.concatenate([numbers for part in parts for numbers in part.pages])
    file = fetch_pages(request.store, request.block, layout.footer, layout.footer.pages.byte_ranges(pages), pages)
    forms, all_pages = layout.footer.forms, layout.footer.pages
    for part in parts:
        key = tuple(layout.elements[column] for column in part.columns)
        batch = batches.setdefault(key, _Batch(key))
        for column in part.columns:
            places.setdefault(present[column], (key, batch.kept_rows))
        chunks = []
        for column, numbers in zip(part.columns, part.pages, strict=True):
            ranges = all_pages.byte_ranges(numbers)
            dictionary_length = 0 if all_pages.row_counts[numbers[0]] else ranges[0][1]
            subset = PageSubset([file.view(*each) for each in ranges], part.decoded_rows, dictionary_length)
            chunks.append((forms[column], subset))
        batch.add(chunks, part.kept)
    return _Places(len(wanted), places)


def _rows_by_zone(
    wanted: Int64Array, zones: Sequence[int], zone_rows: Sequence[int]
) -> Iterator[tuple[int, Int64Array]]:
    """Each zone that has a wanted row, and the numbers of these within it."""
    starts = list(accumulate((zone_rows[zone] for zone in zones), initial=0))
    cuts = np.searchsorted(wanted, starts).tolist()
    for zone, start, first, end in zip(zones, starts, cuts, cuts[1:], strict=False):
        if first < end:
            yield int(zone), wanted[first:end] - start


def _columns_by_pages(layout: _FlatLayout, zones: Iterable[int], columns: Sequence[int]) -> Iterable[list[int]]:
    """The columns, those together whose pages hold the same rows in each of these zones."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for column in columns:
        signature = tuple(id(layout.chunk(zone, column).starts) for zone in zones)
        groups.setdefault(signature, []).append(column)
    return groups.values()


@dataclass(frozen=True, slots=True)
class _ZoneRows:
    """Pages of some columns of a zone that hold the wanted rows.

    ``pages``: of each column, int64 numbers of pages. ``kept``: int64, which of the ``decoded_rows`` are wanted.
    """

    columns: list[int]
    pages: list[Int64Array]
    decoded_rows: int
    kept: Int64Array

    @classmethod
    def of(cls, layout: _FlatLayout, zone: int, columns: list[int], rows: Int64Array) -> _ZoneRows:
        starts = layout.chunk(zone, columns[0]).starts
        page_of_row = np.searchsorted(starts, rows, side="right") - 1
        pages = np.unique(page_of_row)
        page_ends = np.cumsum(starts[pages + 1] - starts[pages])  # within what is decoded
        shifts = page_ends - starts[pages + 1]
        kept = rows + shifts[np.searchsorted(pages, page_of_row)]
        chosen = [layout.chunk(zone, column).numbers(pages) for column in columns]
        return cls(columns, chosen, int(page_ends[-1]), kept)


def _fitted_rows(
    places: _Places,
    decoded: dict[tuple[bytes, ...], pa.Table],
    fields: Sequence[Field],
    arrow_schema: pa.Schema,
) -> pa.Table:
    """The rows of one request as the present schema has them."""
    arrays = []
    for position, each in enumerate(fields):
        stored = None
        if position in places.places:
            key, first = places.places[position]
            stored = decoded[key].column(each.physical_name).slice(first, places.row_count)
        arrays.append(project_column(stored, each, places.row_count))
    return pa.Table.from_arrays(arrays, schema=arrow_schema)
