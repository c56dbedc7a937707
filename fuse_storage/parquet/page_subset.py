"""A Parquet file made in memory of some pages of another one, so that Parquet's own reader decodes them and nothing
else.

Each excerpt has one row group for each zone, and of each column the pages that were chosen, all for the same rows.
Source of the structures: Parquet's ``parquet.thrift``. Knows no store and no schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from fuse_storage.parquet.thrift import (
    BINARY,
    I32,
    I64,
    LIST,
    STRUCT,
    encode_binary,
    encode_integer,
    encode_list,
    encode_struct,
    read_struct,
)

_PHYSICAL_TYPE_CODES = {
    "BOOLEAN": 0,
    "INT32": 1,
    "INT64": 2,
    "INT96": 3,
    "FLOAT": 4,
    "DOUBLE": 5,
    "BYTE_ARRAY": 6,
    "FIXED_LEN_BYTE_ARRAY": 7,
}
_CODEC_CODES = {"UNCOMPRESSED": 0, "SNAPPY": 1, "GZIP": 2, "BROTLI": 4, "ZSTD": 6, "LZ4": 7}
_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8

_PageData = Sequence[bytes | memoryview]


@dataclass(frozen=True, slots=True)
class PageSubset:
    """The chosen pages of one column chunk, dictionary first if it has one, and their rows."""

    pages: _PageData
    row_count: int
    dictionary_length: int
    """Bytes of the dictionary page; 0 if there is none."""


def footer_schema_bytes(footer: memoryview) -> bytes:
    """The schema in a Parquet footer, as it is written there."""
    _, start = read_struct(footer, 0, until=1)
    _, end = read_struct(footer, 0, until=2)
    return bytes(footer[start : end - 1])  # the field after it has a head of one byte


def decode_pages(schema: bytes, metadata: pq.FileMetaData, zones: Sequence[Mapping[int, PageSubset]]) -> pa.Table:
    """The rows of these pages: for each zone, its columns by number.

    ``schema`` and ``like`` are those of the file that the pages are from.
    """
    head = b"PAR1"
    body: list[bytes | memoryview] = [head]
    at = len(head)
    groups = []
    for excerpts in zones:
        written = []
        for number in range(metadata.num_columns):
            excerpt = excerpts.get(number, _NO_PAGES)
            length = sum(map(len, excerpt.pages))
            written.append(_encode_column_chunk(metadata.row_group(0).column(number), excerpt, at, length))
            body += excerpt.pages
            at += length
        rows = next(iter(excerpts.values())).row_count
        groups.append(
            encode_struct(
                (1, LIST, encode_list(STRUCT, written)), (2, I64, encode_integer(at)), (3, I64, encode_integer(rows))
            )
        )
    total = sum(next(iter(excerpts.values())).row_count for excerpts in zones)
    footer = encode_struct(
        (1, I32, encode_integer(2)),
        (2, LIST, schema),
        (3, I64, encode_integer(total)),
        (4, LIST, encode_list(STRUCT, groups)),
    )
    file = b"".join((*body, footer, len(footer).to_bytes(4, "little"), head))
    with pq.ParquetFile(pa.BufferReader(file), pre_buffer=False) as parquet:
        names = [metadata.schema.column(number).path for number in zones[0]]
        return parquet.read(columns=names, use_threads=False)


_NO_PAGES = PageSubset((), 0, 0)


def _encode_column_chunk(like: pq.ColumnChunkMetaData, excerpt: PageSubset, at: int, length: int) -> bytes:
    """A ColumnChunk."""
    size = encode_integer(length)
    parts = [
        (1, I32, encode_integer(_PHYSICAL_TYPE_CODES[like.physical_type])),
        (2, LIST, encode_list(I32, map(encode_integer, (_PLAIN, _RLE, _RLE_DICTIONARY)))),
        (3, LIST, encode_list(BINARY, [encode_binary(like.path_in_schema.encode())])),
        (4, I32, encode_integer(_CODEC_CODES[like.compression])),
        (5, I64, encode_integer(excerpt.row_count)),
        (6, I64, size),
        (7, I64, size),
        (9, I64, encode_integer(at + excerpt.dictionary_length)),
    ]
    if excerpt.dictionary_length:
        parts.append((11, I64, encode_integer(at)))
    return encode_struct((2, I64, encode_integer(at)), (3, STRUCT, encode_struct(*parts)))
