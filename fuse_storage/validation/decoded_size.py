"""How large columns of a Parquet file become, told from the heads of their pages before anything is decoded.

A file of some kilobytes can expand to gigabytes: by compression, by runs, by a dictionary that is referred to again and
again. Metadata is written plainly: without dictionaries, and with no other encoding than Arrow's plain one. Then a page
becomes what its head says, and a head that lies is noticed when its page is decompressed. Knows no column's meaning.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pyarrow.parquet as pq

from fuse_storage.parquet.column_chunks import ColumnChunk, read_column_chunks
from fuse_storage.parquet.thrift import ThriftStruct, read_struct

_MIN_LIMIT, _MAX_LIMIT = 128 << 20, 1 << 30
_MAX_EXPANSION = 100
"""A small file may become 128 MiB, a larger one a hundred times its own size, and none more than a gigabyte."""
_BYTES_PER_VALUE = 16
"""What a value takes besides its bytes in the page: offsets, levels, validity, or a place that is null."""

_TYPE, _UNCOMPRESSED, _COMPRESSED, _DATA_HEADER, _DATA_HEADER_V2 = 1, 2, 3, 5, 8
_DATA_PAGE_TYPES = {0: _DATA_HEADER, 3: _DATA_HEADER_V2}
"""Fields of Parquet's PageHeader, and by the types of data pages the field of what is told of its values."""
_VALUE_COUNT = 1
_ENCODING = {_DATA_HEADER: 2, _DATA_HEADER_V2: 4}
_PLAIN_ENCODINGS = (0, 3)
"""PLAIN, and RLE, in which booleans may be."""


def check_decoded_size(data: memoryview, file: pq.ParquetFile, names: Collection[str] | None) -> None:
    """Raise ValueError if these columns (by default all) become larger than they may, or cannot be told.

    ``data`` is the whole file that ``file`` reads.
    """
    limit = max(_MIN_LIMIT, min(_MAX_LIMIT, _MAX_EXPANSION * len(data)))
    metadata, schema = file.metadata, file.metadata.schema
    footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    chosen: Sequence[int] = range(metadata.num_columns)
    if names is not None and len(columns := file.schema_arrow) == metadata.num_columns:  # none is nested: in order
        chosen = sorted({place for name in names for place in columns.get_all_field_indices(name)})
    total = 0
    for group in read_column_chunks(footer, metadata.num_row_groups, metadata.num_columns, chosen):
        for number, chunk in zip(chosen, group, strict=True):
            width = max(schema.column(number).length or 0, 0) + _BYTES_PER_VALUE
            total += _chunk_size(data, chunk, width)
            if total > limit:
                raise ValueError(f"{len(data)} bytes become more than {limit} when they are decoded")


def _chunk_size(data: memoryview, chunk: ColumnChunk, width: int) -> int:
    start, end = chunk.data_offset, chunk.data_offset + chunk.byte_count
    if chunk.dictionary_offset is not None or not 0 <= start <= end <= len(data):
        raise ValueError(
            f"column {chunk.path.decode(errors='replace')!r} has a dictionary, or lies outside of the file"
        )
    size = values = 0
    while start < end:
        header, body = read_struct(data, start)
        field = _DATA_PAGE_TYPES.get(header[_TYPE], 0)
        described: ThriftStruct = header[field]
        start = body + header[_COMPRESSED]
        if (
            min(header[_COMPRESSED], header[_UNCOMPRESSED], described[_VALUE_COUNT]) < 0
            or start > end
            or described[_ENCODING[field]] not in _PLAIN_ENCODINGS
        ):
            raise ValueError(
                f"column {chunk.path.decode(errors='replace')!r} has a page that no writer of metadata makes"
            )
        size += header[_UNCOMPRESSED]
        values += described[_VALUE_COUNT]
    if values < chunk.value_count:
        raise ValueError(f"column {chunk.path.decode(errors='replace')!r} has fewer values than it says")
    return size + values * width
