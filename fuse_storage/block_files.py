"""Reading blocks: only the columns and zones that are asked for, every byte of them checked.

Columns are found by their physical names; those that a file lacks hold their defaults, those that it has in a narrower
type are widened. Knows no segments and no tables.
"""

from __future__ import annotations

import io
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as is_
import xxhash

from fuse_storage.cache import Cache, shared
from fuse_storage.conform import renamed_array
from fuse_storage.errors import Corrupt
from fuse_storage.objects import Range, coalesced
from fuse_storage.schema import Field, Schema
from fuse_storage.store import Store

FOOTER_SUM = 8

MANY = 2_000_000
"""Values from which on it pays to decode with several threads; below, waking them costs more than it saves."""


def chunk_sum(chunk: bytes | memoryview, number: int) -> int:
    """The checksum of column chunk ``number`` of a file, counted through its zones."""
    return xxhash.xxh3_64_intdigest(chunk, number) & 0xFFFFFFFF  # five times as fast as xxh32


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
    """A checked footer: Parquet's metadata, and place and checksum of each column chunk, zone by zone."""

    metadata: pq.FileMetaData
    chunks: Sequence[Range]
    sums: Sequence[int]
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
            raise Corrupt(f"{where}: its footer fails its checksum; restore the file from a copy")
        metadata = pq.read_metadata(pa.BufferReader(data[start + FOOTER_SUM :]))
        return Footer(metadata, Footer.places(metadata), np.frombuffer(data[:start], "<u4").tolist(), len(data))

    @property
    def columns(self) -> int:
        return int(self.metadata.num_columns)

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
    store: Store, block: BlockFile, schema: Schema, columns: Sequence[str], zones: Sequence[int] | None = None, cache: Cache = shared
) -> pa.Table:
    """These columns (logical names, nested ones whole) of these zones (by default all), in the order asked for.

    Raises SchemaError for an unknown column, NotFound for a missing file, Corrupt for a damaged one.
    """
    fields = [schema.find([name]) for name in columns]
    opened = footer(store, block, cache)
    wanted = range(opened.metadata.num_row_groups) if zones is None else [int(zone) for zone in zones]
    paths = [opened.metadata.schema.column(number).path for number in range(opened.columns)]
    needed = sorted({number for field in fields for number in _chosen(field, paths)})
    rows = sum(opened.metadata.row_group(zone).num_rows for zone in wanted)
    if not needed or not len(wanted):
        found = pa.table({})
    else:
        file = _fetched(store, block, opened, wanted, needed)
        with pq.ParquetFile(pa.PythonFile(file, "r"), metadata=opened.metadata, pre_buffer=False) as parquet:
            found = parquet.read_row_groups(wanted, columns=[paths[number] for number in needed], use_threads=rows * len(needed) > MANY)
    arrays = [_column(found, field, rows) for field in fields]
    result = pa.Table.from_arrays(arrays, schema=pa.schema([field.arrow for field in fields]))
    return result if fields else pa.table({"": pa.nulls(rows)}).select([])


def _chosen(field: Field, paths: Sequence[str]) -> list[int]:
    """The Parquet columns of a field; of a struct without any that is left, one, which knows where the struct is NULL."""
    below = [number for number, path in enumerate(paths) if path == field.physical or path.startswith(field.physical + ".")]
    if field.is_leaf or not is_.is_struct(field.type):
        return below
    chosen = [number for child in field.children for number in _below(child, f"{field.physical}.", below, paths)]
    return chosen or below[:1]


def _below(field: Field, above: str, among: Sequence[int], paths: Sequence[str]) -> list[int]:
    here = above + field.physical
    return [number for number in among if paths[number] == here or paths[number].startswith(here + ".")]


def _fetched(store: Store, block: BlockFile, opened: Footer, zones: Iterable[int], columns: Sequence[int]) -> _Sparse:
    numbers = [zone * opened.columns + column for zone in zones for column in columns]
    spans = coalesced([opened.chunks[number] for number in numbers], store.gap)
    sparse = _Sparse(spans, store.read_ranges(block.key, spans))
    for number in numbers:
        if chunk_sum(sparse.view(*opened.chunks[number]), number) != opened.sums[number]:
            zone, column = divmod(number, opened.columns)
            name = opened.metadata.schema.column(column).path
            raise Corrupt(f"{store.url}/{block.key}: column {name!r} of zone {zone} fails its checksum; restore the file from a copy")
    return sparse


class _Sparse(io.RawIOBase):
    """A file of which only some bytes are here: those that were fetched and checked."""

    def __init__(self, spans: Sequence[Range], fetched: Sequence[bytes]) -> None:
        self.starts = [offset for offset, _ in spans]
        self.fetched = fetched
        self.position = 0

    def view(self, offset: int, length: int) -> memoryview:
        """These bytes, or as many of them as are here."""
        place = max(bisect_right(self.starts, offset) - 1, 0)
        start = offset - self.starts[place]
        return memoryview(self.fetched[place])[start : start + length]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self.position = offset if whence == io.SEEK_SET else self.position + offset if whence == io.SEEK_CUR else self.size() + offset
        return self.position

    def size(self) -> int:
        return self.starts[-1] + len(self.fetched[-1])

    def read_buffer(self, size: int) -> pa.Buffer:
        """Arrow asks for this in place of ``read``, and copies nothing then."""
        found = self.view(self.position, size)
        self.position += len(found)
        return pa.py_buffer(found)

    def read(self, size: int = -1) -> bytes:
        return bytes(self.read_buffer(size))


def _column(found: pa.Table, field: Field, rows: int) -> pa.ChunkedArray:
    """The field's values, fitted to its present name and type; the default where the file has none."""
    place = found.schema.get_field_index(field.physical)
    if place < 0:
        return pa.chunked_array([pa.repeat(field.default_scalar, rows)], field.type)
    return pa.chunked_array([_fitted(chunk, field) for chunk in found.column(place).chunks], field.type)


def _fitted(values: pa.Array, field: Field) -> pa.Array:
    """Values of a file's type as values of the field's: parts by physical name, those it lacks NULL, narrower ones widened."""
    if field.is_leaf:
        return values if values.type == field.type else pc.cast(values, field.type)
    if values.type == field.stored.type:
        return renamed_array(values, field.type)
    if not is_.is_struct(field.type):
        return _refitted(values, field)
    parts = [_part(values, child) for child in field.children]
    fields = [child.arrow.with_nullable(True) for child in field.children]
    mask = pc.is_null(values) if values.null_count else None
    return renamed_array(pa.StructArray.from_arrays(parts, fields=fields, mask=mask), field.type)


def _part(values: pa.StructArray, child: Field) -> pa.Array:
    place = values.type.get_field_index(child.physical)
    return pa.nulls(len(values), child.type) if place < 0 else _fitted(values.field(place), child)


def _refitted(values: Any, field: Field) -> pa.Array:
    """A list or map whose parts are to be fitted."""
    mask = pc.is_null(values) if values.null_count else None
    if is_.is_map(field.type):
        key, item = field.children
        parts = _fitted(values.keys, key), _fitted(values.items, item)
        return pa.MapArray.from_arrays(values.offsets, *parts, type=field.type, mask=mask)
    element = _fitted(values.values, field.children[0])
    return pa.ListArray.from_arrays(values.offsets, element, type=field.type, mask=mask)
