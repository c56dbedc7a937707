"""A Parquet file made in memory of some pages of another one, so that Arrow decodes these pages and nothing else.

Arrow reads whole column chunks only. But a chunk is just pages behind each other, each with a header of its own, and
nothing in a page says which rows it holds or where it lies. So the chosen pages, as they were stored, behind a footer
that describes them as a file with fewer rows, are a valid Parquet file. The footer is forged here: its schema is the
block's own, byte for byte; its row groups are new, one for each zone, with the places and row counts of the chosen
pages. What the footer does not have to say (statistics, encodings of pages, our seal) is left out.

For this to give the right rows, all columns of a zone must have pages for the same rows, and a column with a dictionary
must have its dictionary page first. The picture is in the docstring of ``fuse_storage.parquet``.
Source of the structures: Parquet's ``parquet.thrift``. Knows no store and no schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
import pyarrow.parquet as pq

from fuse_storage.parquet.column_chunks import ColumnChunk
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
    skip_value,
)

_PLAIN, _RLE, _RLE_DICTIONARY = 0, 3, 8
"""Encodings; a reader goes by the pages' own headers, and only wants a list of which there may be."""

_PageData = Sequence[bytes | memoryview]


@dataclass(frozen=True, slots=True)
class PageSubset:
    """The chosen pages of one column chunk, dictionary first if it has one, and their rows."""

    pages: _PageData
    row_count: int
    dictionary_length: int
    """Bytes of the dictionary page; 0 if there is none."""


@dataclass(frozen=True, slots=True)
class ColumnForm:
    """What a footer has to say of a column besides its place: type and codec as ``parquet.thrift`` numbers them."""

    physical_type: int
    path: bytes
    codec: int

    @classmethod
    def of(cls, chunk: ColumnChunk) -> Self:
        return cls(chunk.physical_type, chunk.path, chunk.codec)


def footer_schema_bytes(footer: memoryview) -> bytes:
    """The schema in a Parquet footer, as it is written there: the bytes of field 2 of FileMetaData."""
    _, start = read_struct(footer, 0, until=1)  # where the value of field 2 begins, after its head
    return bytes(footer[start : skip_value(footer, start, LIST)])


def decode_pages(schema: bytes, forms: Sequence[ColumnForm], zones: Sequence[Mapping[int, PageSubset]]) -> pa.Table:
    """The rows of some pages, zone after zone.

    ``schema`` and ``forms`` are those of the file that the pages are from. ``zones``: for each zone, at least one,
    the chosen pages of its columns, by column number; all zones must have the same columns. Returns a table of just
    these columns.

    >>> import io
    >>> from fuse_storage.parquet.column_chunks import read_column_chunks
    >>> file = io.BytesIO()
    >>> rows = pa.table({"n": [1, 2, 3, 4], "other": [5, 6, 7, 8]})
    >>> options = {"max_rows_per_page": 2, "write_batch_size": 1, "data_page_version": "1.0"}
    >>> pq.write_table(rows, file, use_dictionary=False, store_schema=False, **options)
    >>> data = memoryview(file.getvalue())

    Column 0 has two pages of two rows. A page is its header and as many bytes as the header's field 3 says:

    >>> footer = data[-8 - int.from_bytes(data[-8:-4], "little") : -8]
    >>> [chunks] = read_column_chunks(footer, row_group_count=1, column_count=2)
    >>> first = chunks[0].data_offset
    >>> header, start = read_struct(data, first)
    >>> second = start + header[3]
    >>> header, start = read_struct(data, second)
    >>> page = data[second : start + header[3]]

    The second page alone, as a file of two rows; the other column has no pages and is not asked for:

    >>> forms = [ColumnForm.of(chunk) for chunk in chunks]
    >>> schema = footer_schema_bytes(footer)
    >>> decode_pages(schema, forms, [{0: PageSubset([page], row_count=2, dictionary_length=0)}]).to_pydict()
    {'n': [3, 4]}
    """
    file = forge_file(schema, forms, zones)
    with pq.ParquetFile(pa.BufferReader(file), pre_buffer=False) as parquet:
        return parquet.read(columns=[forms[number].path.decode() for number in zones[0]], use_threads=False)


def forge_file(schema: bytes, forms: Sequence[ColumnForm], zones: Sequence[Mapping[int, PageSubset]]) -> bytes:
    """The bytes of a Parquet file of these pages, zone after zone; each column of the schema has a form."""
    magic = b"PAR1"
    body: list[bytes | memoryview] = [magic]
    position = len(magic)
    row_groups = []
    for subsets in zones:
        chunks = []
        for number, form in enumerate(forms):  # the schema is whole, so each column needs a chunk, if an empty one
            subset = subsets.get(number, _NO_PAGES)
            length = sum(map(len, subset.pages))
            chunks.append(_encode_column_chunk(form, subset, position, length))
            body += subset.pages
            position += length
        row_groups.append(_encode_row_group(chunks, position, _row_count(subsets)))
    footer = encode_struct(  # FileMetaData: version, schema, num_rows, row_groups
        (1, I32, encode_integer(2)),
        (2, LIST, schema),
        (3, I64, encode_integer(sum(map(_row_count, zones)))),
        (4, LIST, encode_list(STRUCT, row_groups)),
    )
    return b"".join((*body, footer, len(footer).to_bytes(4, "little"), magic))


_NO_PAGES = PageSubset((), 0, 0)


def _row_count(subsets: Mapping[int, PageSubset]) -> int:
    return next(iter(subsets.values())).row_count


def _encode_row_group(chunks: Sequence[bytes], byte_count: int, row_count: int) -> bytes:
    """A RowGroup: columns, total_byte_size (which nobody needs exactly), num_rows."""
    return encode_struct(
        (1, LIST, encode_list(STRUCT, chunks)),
        (2, I64, encode_integer(byte_count)),
        (3, I64, encode_integer(row_count)),
    )


def _encode_column_chunk(form: ColumnForm, subset: PageSubset, position: int, length: int) -> bytes:
    """A ColumnChunk with its ColumnMetaData: type, path and codec as in the block, places as in the subset.

    Fields of ColumnMetaData: 1 type, 2 encodings, 3 path_in_schema, 4 codec, 5 num_values, 6 and 7 the sizes (both as
    stored: a reader goes by the pages' headers), 9 data_page_offset, 11 dictionary_page_offset.
    """
    size = encode_integer(length)
    fields = [
        (1, I32, encode_integer(form.physical_type)),
        (2, LIST, encode_list(I32, map(encode_integer, (_PLAIN, _RLE, _RLE_DICTIONARY)))),
        (3, LIST, encode_list(BINARY, [encode_binary(form.path)])),
        (4, I32, encode_integer(form.codec)),
        (5, I64, encode_integer(subset.row_count)),
        (6, I64, size),
        (7, I64, size),
        (9, I64, encode_integer(position + subset.dictionary_length)),
    ]
    if subset.dictionary_length:
        fields.append((11, I64, encode_integer(position)))
    return encode_struct((2, I64, encode_integer(position)), (3, STRUCT, encode_struct(*fields)))
