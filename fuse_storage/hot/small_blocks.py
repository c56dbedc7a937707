"""Small blocks of hot commits: each file is read whole, in one request, checked to its last byte, and kept decoded.

A block of a thousand rows takes two requests if its footer is read first, and finding its pages takes longer than
decoding them. Larger blocks, and those of segments, are read as ``fuse_storage.parquet`` reads any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import accumulate, groupby, islice, pairwise

import pyarrow as pa
import pyarrow.parquet as pq

from fuse_storage.bitmaps import pack_mask
from fuse_storage.errors import Corrupt
from fuse_storage.parquet.footer import (
    UNREADABLE,
    BlockFile,
    WholeFile,
    check_whole_file,
    is_hot_key,
    read_block_ranges,
)
from fuse_storage.parquet.page_subset import forge_row_groups
from fuse_storage.parquet.pages import RowMask
from fuse_storage.parquet.projection import project_column
from fuse_storage.parquet.reader import read_block
from fuse_storage.schema.schema import Field, Schema
from fuse_storage.store.cache import cache_of
from fuse_storage.store.store import Store

_MAX_FILE_BYTES = 256 << 10
"""Bytes that object stores send sooner than they answer another request."""
_MAX_FILE_ROWS = 1 << 16
"""Rows whose columns are decoded together, whichever zones and rows are asked for."""
_READ_THREADS = 16
"""Files that are read at once."""
_MIN_FILES_FOR_THREADS = 2
_MAX_FILES_AT_ONCE = 64
"""Files that are decoded as one: opening so many costs little more than one, and what is kept of them is one buffer."""
_KEPT_BYTES = 1 << 10
"""Bytes that the rows of a block take in memory besides their values."""

ChosenRows = tuple[int, Sequence[int] | None, RowMask | None]
"""A block of a frame, and of it zones and rows as in a ``BlockRequest``."""


@dataclass(frozen=True, slots=True)
class BlockRequest:
    """Rows of a block. ``zones``: by number, by default all; ``row_mask``: bool, shape (rows of these zones,)."""

    store: Store
    block: BlockFile
    zones: Sequence[int] | None = None
    row_mask: RowMask | None = None

    @property
    def is_small(self) -> bool:
        """Whether the file is read whole."""
        file = self.block
        return (
            file.seal is not None
            and file.foreign is None
            and file.footer_offset + file.footer_length <= _MAX_FILE_BYTES
            and 0 < sum(file.zone_rows) <= _MAX_FILE_ROWS
            and is_hot_key(file.key)
        )

    @property
    def where(self) -> str:
        return f"{self.store.url}/{self.block.key}"

    def choose_rows(self, rows: pa.Table) -> pa.Table:
        """Keep only the requested zones and rows of a whole block."""
        sizes = self.block.zone_rows
        if self.zones is not None and list(self.zones) != list(range(len(sizes))):
            starts = list(accumulate(sizes, initial=0))
            rows = pa.concat_tables([rows.slice(0, 0), *(rows.slice(starts[zone], sizes[zone]) for zone in self.zones)])
        return rows if self.row_mask is None or self.row_mask.all() else rows.filter(pack_mask(self.row_mask))


def read_blocks(requests: Sequence[BlockRequest], schema: Schema, columns: Sequence[str]) -> list[pa.Table]:
    """Columns of these rows, a table for each request, under their logical names; small files all at once.

    Raises as ``read_block``.
    """
    fields = [schema.find([name]) for name in columns]
    names = tuple(field.physical_name for field in fields)
    stored = _read_small([request for request in requests if request.is_small], names)
    return [
        _fitted_rows(request, next(stored), fields)
        if request.is_small
        else read_block(request.store, request.block, schema, columns, request.zones, row_mask=request.row_mask)
        for request in requests
    ]


def _fitted_rows(request: BlockRequest, stored: pa.Table, fields: Sequence[Field]) -> pa.Table:
    """The rows of a request as the present schema has them."""
    row_count, known = sum(request.block.zone_rows), set(stored.column_names)
    if not fields:
        return request.choose_rows(pa.table({"": pa.nulls(row_count)})).select([])
    try:
        arrays = [
            project_column(stored.column(name) if (name := field.physical_name) in known else None, field, row_count)
            for field in fields
        ]
        return request.choose_rows(pa.Table.from_arrays(arrays, schema=pa.schema([field.arrow for field in fields])))
    except UNREADABLE as problem:
        raise Corrupt(f"{request.where} does not hold the columns of its table: {problem!r}") from problem


def _read_small(requests: Sequence[BlockRequest], names: tuple[str, ...]) -> Iterator[pa.Table]:
    """All rows of each file, of those of these columns that it has, from memory where they were read before."""
    keys = [("hot rows", each.store.url, each.block.key, each.block.seal, names) for each in requests]
    kept = [cache_of(each.store).find(key) for each, key in zip(requests, keys, strict=True)]
    missing = [each for each, rows in zip(requests, kept, strict=True) if rows is None]
    decoded = _decode_files(missing, _fetch_files(missing), names)
    for request, key, rows in zip(requests, keys, kept, strict=True):
        if rows is None:
            rows = next(decoded)
            cache_of(request.store).put(key, rows, rows.nbytes + _KEPT_BYTES)
        yield rows


def _fetch_files(requests: Sequence[BlockRequest]) -> list[bytes]:
    if len(requests) < _MIN_FILES_FOR_THREADS:
        return list(map(_fetch_file, requests))
    threads, files = min(_READ_THREADS, len(requests)), [b""] * len(requests)

    def fetch_share(first: int) -> None:  # handing over each file by itself takes as long as reading it from a disk
        for number in range(first, len(requests), threads):
            files[number] = _fetch_file(requests[number])

    with ThreadPoolExecutor(threads, "fuse-hot") as pool:
        list(pool.map(fetch_share, range(threads)))
    return files


def _fetch_file(request: BlockRequest) -> bytes:
    file = request.block
    return read_block_ranges(request.store, file, [(0, file.footer_offset + file.footer_length)])[0]


def _decode_files(
    requests: Sequence[BlockRequest], files: Sequence[bytes], names: tuple[str, ...]
) -> Iterator[pa.Table]:
    """All rows of each file, of those of these columns that it has; files alike are decoded at once. Raises Corrupt."""
    checked = (check_whole_file(data, each.block, each.where) for each, data in zip(requests, files, strict=True))
    for _, group in groupby(zip(requests, checked, strict=True), key=lambda pair: pair[1].schema_bytes):
        while alike := list(islice(group, _MAX_FILES_AT_ONCE)):
            yield from _decode_alike(alike, names)


def _decode_alike(found: Sequence[tuple[BlockRequest, WholeFile]], names: tuple[str, ...]) -> list[pa.Table]:
    """All rows of each of some files of one schema, put behind each other as one file. Raises Corrupt."""
    row_groups = [group for _, file in found for group in file.row_groups]
    starts = list(accumulate((sum(request.block.zone_rows) for request, _ in found), initial=0))
    try:
        forged = pa.BufferReader(forge_row_groups(found[0][1].schema_bytes, row_groups))
        with pq.ParquetFile(forged, pre_buffer=False) as parquet:
            rows = parquet.read(columns=list(names), use_threads=False)
        if rows.num_columns and len(rows) != starts[-1]:  # or rows of one file would be taken for another's
            raise ValueError(f"its pages hold other rows than its footer says: {len(rows)} instead of {starts[-1]}")
    except UNREADABLE as problem:
        if len(found) > 1:  # the one that cannot be read is named
            return [rows for each in found for rows in _decode_alike([each], names)]
        raise Corrupt(f"{found[0][0].where} does not hold the columns of its table: {problem!r}") from problem
    return [rows.slice(start, end - start) for start, end in pairwise(starts)]
