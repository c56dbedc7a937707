"""Rows are written as blocks: each one immutable Parquet file. No other module writes rows as Parquet.

A file has one row group for each zone, physical column names, and, between its last page and its Parquet footer, a
**seal**: length, rows and checksum of each page, then a checksum of those and the footer (see the picture in
``fuse_storage.parquet``). Knows no segments and no tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as is_
import xxhash

from fuse_storage import statistics
from fuse_storage.errors import SchemaError
from fuse_storage.parquet.column_encoding import (
    ARROW_CODECS,
    AUTO_COMPRESSION,
    AUTO_ENCODING,
    ZSTD,
    ColumnEncoding,
    choose_encoding,
    suits_dictionary,
    suits_statistics,
)
from fuse_storage.parquet.footer import BlockFile, seal_file
from fuse_storage.parquet.reader import read_block
from fuse_storage.schema import types
from fuse_storage.schema.conform import conform_rows, fill_under_nulls, rename_table_fields
from fuse_storage.schema.nested_arrays import child_arrays
from fuse_storage.schema.schema import Field, Schema
from fuse_storage.statistics import ColumnStatistics, chunked_to_array
from fuse_storage.statistics.wide import compute_each

__all__ = ["DEFAULT_ZONE_ROWS", "BlockFile", "BlockLayout", "read_block", "write_block"]

DEFAULT_ZONE_ROWS = 65_536
"""Rows of a zone: one row of it costs a third of what it costs in a whole block, and smaller zones cost bytes."""

DEFAULT_PAGE_ROWS = 8_192
"""Rows of a page. Against Arrow's 20,000, one row costs less than half, and the file has 1 % more bytes."""

_PAGE_BYTES = 1 << 20
"""Bytes of a page, before it is compressed, at which it ends however few its rows are."""

_ROWS_PER_PAGE_CHECK = 1_024
"""After so many rows the writer looks whether the page is full, by rows or by bytes."""

_SPARK_CALENDAR_METADATA = {"org.apache.spark.version": "4.0.0"}
"""Says that days before 1582 are of the proleptic Gregorian calendar; else Spark's settings might shift them."""


@dataclass(frozen=True, slots=True)
class BlockOptions:
    """Options of how a block's file is written.

    ``compression``: one of ``COMPRESSIONS``; ``compression_level``: of zstd, from 1 to 22; ``encoding``: one of
    ``ENCODINGS``.
    """

    zone_rows: int = DEFAULT_ZONE_ROWS
    page_rows: int = DEFAULT_PAGE_ROWS
    compression: str = AUTO_COMPRESSION
    compression_level: int = 1
    encoding: str = AUTO_ENCODING


DEFAULT_BLOCK_OPTIONS = BlockOptions()


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """All that a table remembers of a block's file.

    ``zone_rows``: how many rows each zone has, ``zone_sizes``: how many bytes; they lie one after the other, from byte
    ``FIRST_ZONE_OFFSET`` on. ``size``: bytes of the file, ``hash``: xxh3-128 of them, in hex. The
    footer (with the seal) goes from ``footer_offset`` to the end of the file; ``seal`` is its checksum.
    ``zone_statistics`` and ``block_statistics``: by column id, one unit for each zone, and one for the whole block.
    """

    zone_rows: tuple[int, ...]
    zone_sizes: tuple[int, ...]
    size: int
    hash: str
    footer_offset: int
    footer_length: int
    seal: int
    zone_statistics: Mapping[int, ColumnStatistics]
    block_statistics: Mapping[int, ColumnStatistics]

    @property
    def row_count(self) -> int:
        return sum(self.zone_rows)


def write_block(
    rows: pa.Table, schema: Schema, options: BlockOptions = DEFAULT_BLOCK_OPTIONS
) -> tuple[bytes, BlockLayout]:
    """The file that holds these rows, at least one, and what is to be remembered of it.

    Raises SchemaError if the rows do not fit the schema.
    """
    if not rows.num_rows:
        raise SchemaError("a block holds at least one row")
    table = conform_rows(rows, schema).combine_chunks()
    zones = np.append(np.arange(0, table.num_rows, options.zone_rows), table.num_rows)
    values = _column_arrays(table)
    known = _leaf_statistics(table, values, schema, zones)
    columns = list(_parquet_columns(values, schema, options, known))
    data, sealed = seal_file(*_encode_parquet(table, schema, zones, columns, options), options.page_rows, _PAGE_BYTES)
    statistics_by_id = _zone_and_block_statistics(known, zones, columns, sealed.sizes)
    layout = BlockLayout(
        tuple(np.diff(zones).tolist()),
        tuple(sealed.sizes.sum(axis=1).tolist()),
        len(data),
        xxhash.xxh3_128_hexdigest(data),
        len(data) - sealed.footer_length,
        sealed.footer_length,
        sealed.seal,
        {column_id: per_zone for column_id, (per_zone, _) in statistics_by_id.items()},
        {column_id: whole for column_id, (_, whole) in statistics_by_id.items()},
    )
    return data, layout


@dataclass(frozen=True, slots=True)
class _ParquetColumn:
    """One Parquet column: how it is called there, and how it is best written."""

    id: int
    path: str
    uses_dictionary: bool
    writes_statistics: bool
    encoding: ColumnEncoding


_LeafStatistics = Mapping[int, tuple[pa.Array, ColumnStatistics]]
"""By column id, the values and what is known of each zone of them."""


def _column_arrays(table: pa.Table) -> list[pa.Array]:
    """The values of each column: of a batch, as a column by itself takes twice as long."""
    batches = table.to_batches()
    return list(batches[0].columns) if len(batches) == 1 else [chunked_to_array(column) for column in table.columns]


def _leaf_statistics(
    table: pa.Table, arrays: Sequence[pa.Array], schema: Schema, zones: npt.NDArray[np.int64]
) -> _LeafStatistics:
    tops = dict(zip(schema.names, arrays, strict=True))
    leaves = list(schema.leaves())
    values = [tops[path[0]] if len(path) == 1 else statistics.column_values(table, path) for path, _ in leaves]
    found = zip(leaves, values, compute_each(values, zones), strict=True)
    return {field.id: (each, known) for (_, field), each, known in found}


def _parquet_columns(
    arrays: Sequence[pa.Array], schema: Schema, options: BlockOptions, known: _LeafStatistics
) -> Iterator[_ParquetColumn]:
    for field, values in zip(schema.fields, arrays, strict=True):
        plain = ((field.physical_name, field, values),)
        for path, leaf, leaf_values in plain if field.is_leaf else _leaf_values(field, values, ""):
            whole = known.get(leaf.id) if field.is_leaf else None
            uses_dictionary = suits_dictionary(leaf_values, None if whole is None else whole[1])
            encoding = choose_encoding(
                leaf_values, uses_dictionary, options.compression, options.compression_level, options.encoding
            )
            yield _ParquetColumn(leaf.id, path, uses_dictionary, suits_statistics(leaf_values), encoding)


def _leaf_values(field: Field, values: pa.Array, above: str) -> Iterator[tuple[str, Field, pa.Array]]:
    """Each plain part of a field, with its path in Parquet and its values."""
    path = above + field.physical_name
    if field.is_leaf:
        yield path, field, values
        return
    inner = {"array": ".list.", "map": ".key_value."}.get(types.storage_type_name(field.type), ".")
    for child, part in zip(field.children, child_arrays(values), strict=True):
        yield from _leaf_values(child, part, path + inner)


def _encode_parquet(
    table: pa.Table,
    schema: Schema,
    zones: npt.NDArray[np.int64],
    columns: list[_ParquetColumn],
    options: BlockOptions,
) -> tuple[pa.Buffer, pq.FileMetaData]:
    """The file without a seal, and what Arrow says of it."""
    sink = pa.BufferOutputStream()
    file_schema = _file_schema(table, schema)
    stored = _fill_required_fields(rename_table_fields(table, file_schema), schema)
    encodings = {column.path: column.encoding for column in columns}
    writer = pq.ParquetWriter(
        sink,
        file_schema,
        version="2.6",
        data_page_version="1.0",  # what every reader of Spark 4 reads fastest
        max_rows_per_page=options.page_rows,
        data_page_size=_PAGE_BYTES,
        write_batch_size=min(options.page_rows, _ROWS_PER_PAGE_CHECK),
        compression=_arrow_codecs(encodings),
        compression_level={
            path: options.compression_level for path, chosen in encodings.items() if chosen.codec == ZSTD
        },
        use_dictionary=[column.path for column in columns if column.uses_dictionary] or False,
        column_encoding={path: chosen.encoding for path, chosen in encodings.items() if chosen.encoding} or None,
        write_statistics=_all_or_some(columns, [column.path for column in columns if column.writes_statistics]),
        write_page_checksum=True,
        store_schema=False,  # our own schema is in the snapshot
        store_decimal_as_integer=True,  # as Spark does
    )
    with writer:
        writer.add_key_value_metadata(_SPARK_CALENDAR_METADATA)
        for start, end in pairwise(zones.tolist()):
            writer.write_table(stored.slice(start, end - start), row_group_size=end - start)
    return sink.getvalue(), writer.writer.metadata


def _all_or_some(columns: Sequence[_ParquetColumn], paths: list[str]) -> bool | list[str]:
    """The paths of some columns as Arrow takes them: where they are all, in less time."""
    return len(paths) == len(columns) or paths or False


def _arrow_codecs(encodings: Mapping[str, ColumnEncoding]) -> str | dict[str, str]:
    """The codec of each column by its path: one for all where that is so, which Arrow takes in a tenth of the time."""
    codecs = {chosen.codec for chosen in encodings.values()}
    if len(codecs) == 1:
        return ARROW_CODECS[codecs.pop()]
    return {path: ARROW_CODECS[chosen.codec] for path, chosen in encodings.items()}


def _fill_required_fields(table: pa.Table, schema: Schema) -> pa.Table:
    """The rows as Arrow's writer takes them: with no NULL in a field that is NOT NULL, whatever is around it."""
    for number, field in enumerate(schema.fields):
        if field.children and any(not part.nullable for child in field.children for part in child.walk()):
            column = table.column(number)
            chunks = [fill_under_nulls(chunk, field.nullable) for chunk in column.chunks]
            table = table.set_column(number, table.field(number), pa.chunked_array(chunks, column.type))
    return table


def _file_schema(table: pa.Table, schema: Schema) -> pa.Schema:
    """The schema of this file: a plain column without a NULL is required, as it then needs no definition levels.

    So it is decoded in half the time, and Spark passes over such a block where it looks for NULLs.
    """
    columns = zip(schema.fields, table.itercolumns(), strict=True)
    if not any(column.null_count for field, column in columns if field.is_leaf):
        return schema.required_parquet_schema
    fields = [
        field.with_nullable(False) if not is_.is_nested(field.type) and not column.null_count else field
        for field, column in zip(schema.parquet_schema, table.columns, strict=True)
    ]
    return pa.schema(fields)


def _zone_and_block_statistics(
    leaves: _LeafStatistics,
    zones: npt.NDArray[np.int64],
    columns: Sequence[_ParquetColumn],
    sizes_by_zone: npt.NDArray[np.int64],
) -> dict[int, tuple[ColumnStatistics, ColumnStatistics]]:
    """Statistics by column id: of the zones, and of the block as a whole.

    ``sizes_by_zone``: int64, shape (zones, columns).
    """
    numbers = {column.id: number for number, column in enumerate(columns)}
    sizes = pa.array(sizes_by_zone.ravel(order="F"), pa.int64())
    statistics_by_id, whole_block, zone_rows = {}, np.array([0, len(zones) - 1]), np.diff(zones)
    for column_id, (values, found) in leaves.items():
        number = numbers[column_id]
        size = sizes.slice(number * len(zone_rows), len(zone_rows))
        bounds, counts = (found.min, found.max, found.min_cut, found.max_cut), (found.null_count, found.nan_count)
        per_zone = ColumnStatistics(
            *bounds, *counts, found.distinct_count, size
        )  # ``replace`` takes four times as long
        whole = per_zone if len(zone_rows) == 1 else statistics.roll_up_statistics(per_zone, whole_block, zone_rows)
        if columns[number].uses_dictionary:  # few values: then an exact count is cheap
            whole = replace(
                whole, distinct_count=pa.array([pc.count_distinct(values, mode="only_valid").as_py()], pa.int64())
            )
        statistics_by_id[column_id] = (per_zone, whole)
    return statistics_by_id
