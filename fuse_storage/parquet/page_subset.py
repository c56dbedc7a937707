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

from fuse_storage.parquet.thrift import BINARY, I32, I64, LIST, STRUCT, binary, fields, integer, items, struct

PHYSICAL = {
    "BOOLEAN": 0,
    "INT32": 1,
    "INT64": 2,
    "INT96": 3,
    "FLOAT": 4,
    "DOUBLE": 5,
    "BYTE_ARRAY": 6,
    "FIXED_LEN_BYTE_ARRAY": 7,
}
CODEC = {"UNCOMPRESSED": 0, "SNAPPY": 1, "GZIP": 2, "BROTLI": 4, "ZSTD": 6, "LZ4": 7}
PLAIN, RLE, RLE_DICTIONARY = 0, 3, 8

Pages = Sequence[bytes | memoryview]


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The chosen pages of one column chunk, dictionary first if it has one, and their rows."""

    pages: Pages
    rows: int
    dictionary: int
    """Bytes of the dictionary page; 0 if there is none."""


def schema_of(footer: memoryview) -> bytes:
    """The schema in a Parquet footer, as it is written there."""
    _, start = struct(footer, 0, until=1)
    _, end = struct(footer, 0, until=2)
    return bytes(footer[start : end - 1])  # the field after it has a head of one byte


def table(schema: bytes, like: pq.FileMetaData, zones: Sequence[Mapping[int, Excerpt]]) -> pa.Table:
    """The rows of these pages: for each zone, its columns by number.

    ``schema`` and ``like`` are those of the file that the pages are from.
    """
    head = b"PAR1"
    body: list[bytes | memoryview] = [head]
    at = len(head)
    groups = []
    for excerpts in zones:
        written = []
        for number in range(like.num_columns):
            excerpt = excerpts.get(number, NOTHING)
            length = sum(map(len, excerpt.pages))
            written.append(_chunk(like.row_group(0).column(number), excerpt, at, length))
            body += excerpt.pages
            at += length
        rows = next(iter(excerpts.values())).rows
        groups.append(fields((1, LIST, items(STRUCT, written)), (2, I64, integer(at)), (3, I64, integer(rows))))
    total = sum(next(iter(excerpts.values())).rows for excerpts in zones)
    footer = fields((1, I32, integer(2)), (2, LIST, schema), (3, I64, integer(total)), (4, LIST, items(STRUCT, groups)))
    file = b"".join((*body, footer, len(footer).to_bytes(4, "little"), head))
    with pq.ParquetFile(pa.BufferReader(file), pre_buffer=False) as parquet:
        names = [like.schema.column(number).path for number in zones[0]]
        return parquet.read(columns=names, use_threads=False)


NOTHING = Excerpt((), 0, 0)


def _chunk(like: pq.ColumnChunkMetaData, excerpt: Excerpt, at: int, length: int) -> bytes:
    """A ColumnChunk."""
    size = integer(length)
    parts = [
        (1, I32, integer(PHYSICAL[like.physical_type])),
        (2, LIST, items(I32, map(integer, (PLAIN, RLE, RLE_DICTIONARY)))),
        (3, LIST, items(BINARY, [binary(like.path_in_schema.encode())])),
        (4, I32, integer(CODEC[like.compression])),
        (5, I64, integer(excerpt.rows)),
        (6, I64, size),
        (7, I64, size),
        (9, I64, integer(at + excerpt.dictionary)),
    ]
    if excerpt.dictionary:
        parts.append((11, I64, integer(at)))
    return fields((2, I64, integer(at)), (3, STRUCT, fields(*parts)))
