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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
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
    read_list_size,
    read_struct,
    skip_value,
)

_PLAIN, _RLE, _DELTA_BINARY_PACKED, _RLE_DICTIONARY = 0, 3, 5, 8
"""Encodings; a reader goes by the pages' own headers, and only wants a list of which there may be."""

_REPETITION_FIELD, _NAME_FIELD, _CHILDREN_FIELD = 3, 4, 5
"""Fields of Parquet's SchemaElement."""
_REPEATED = 2

_PageData = Sequence[bytes | memoryview]


@dataclass(frozen=True, slots=True)
class PageSubset:
    """The chosen pages of one column chunk, dictionary first if it has one, and their rows."""

    pages: _PageData
    row_count: int
    dictionary_length: int
    """Bytes of the dictionary page; 0 if there is none."""
    value_count: int | None = None
    """Values, those of lists and NULLs among them; None: as many as rows."""
    codec: int | None = None
    """How the pages are compressed, where that is in another way than the column's."""


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


def flat_schema_elements(schema: bytes) -> Iterator[tuple[int, str, bytes]]:
    """Number, name and bytes of each plain column at the top of a Parquet schema, as it is in a footer."""
    data = memoryview(schema)
    count, at = read_list_size(data, 0)
    _, at = read_struct(data, at)
    number, inner = 0, 0  # of leaves so far; elements that are still to come of the column at the top
    for _ in range(count - 1):
        start, is_top = at, inner == 0
        element, at = read_struct(data, at)
        children = element.get(_CHILDREN_FIELD) or 0
        inner += children - (not is_top)
        if children:
            continue
        if is_top and element.get(_REPETITION_FIELD) != _REPEATED:
            yield number, element[_NAME_FIELD].decode(), bytes(data[start:at])
        number += 1


def encode_flat_schema(elements: Sequence[bytes]) -> bytes:
    """A Parquet schema of these plain columns, each as ``flat_schema_elements`` gives it."""
    root = encode_struct(
        (_NAME_FIELD, BINARY, encode_binary(b"schema")), (_CHILDREN_FIELD, I32, encode_integer(len(elements)))
    )
    return encode_list(STRUCT, (root, *elements))


def decode_pages(
    schema: bytes, forms: Sequence[ColumnForm], zones: Sequence[Mapping[int, PageSubset]], use_threads: bool = False
) -> pa.Table:
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
    options = {"pre_buffer": False, "coerce_int96_timestamp_unit": "us"}
    # Pages of ours have other checksums; those of other writers may have Parquet's.
    with pq.ParquetFile(pa.BufferReader(file), page_checksum_verification=True, **options) as parquet:
        return parquet.read(columns=[forms[number].path.decode() for number in zones[0]], use_threads=use_threads)


def forge_file(schema: bytes, forms: Sequence[ColumnForm], zones: Sequence[Mapping[int, PageSubset]]) -> bytes:
    """The bytes of a Parquet file of these pages, zone after zone; each column of the schema has a form."""
    row_groups = []
    for subsets in zones:  # the schema is whole, so each column needs a chunk, if an empty one
        row_count = next(iter(subsets.values())).row_count
        empty = PageSubset((), row_count, 0)
        row_groups.append([(form, subsets.get(number, empty)) for number, form in enumerate(forms)])
    return forge_row_groups(schema, row_groups)


def forge_row_groups(schema: bytes, row_groups: Sequence[Sequence[tuple[ColumnForm, PageSubset]]]) -> bytes:
    """The bytes of a Parquet file of these row groups: for each column of the schema, its form there, and its pages.

    Pages of all columns in a row group hold the same number of rows, which a column without pages only repeats.
    """
    magic = b"PAR1"
    body: list[bytes | memoryview] = [magic]
    position = len(magic)
    encoded_groups = []
    for chunks in row_groups:
        encoded = []
        for form, subset in chunks:
            length = sum(map(len, subset.pages))
            used = form if subset.codec is None else replace(form, codec=subset.codec)
            encoded.append(_encode_column_chunk(used, subset, position, length))
            body += subset.pages
            position += length
        encoded_groups.append(_encode_row_group(encoded, position, chunks[0][1].row_count))
    footer = encode_struct(  # FileMetaData: version, schema, num_rows, row_groups
        (1, I32, encode_integer(2)),
        (2, LIST, schema),
        (3, I64, encode_integer(sum(chunks[0][1].row_count for chunks in row_groups))),
        (4, LIST, encode_list(STRUCT, encoded_groups)),
    )
    return b"".join((*body, footer, len(footer).to_bytes(4, "little"), magic))


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
    stored: a reader goes by the pages' headers), 9 data_page_offset, 11 dictionary_page_offset. Only the numbers
    from 5 on differ between chunks of a column; a head is how far the id is above the last one, and the type.
    """
    size, start = encode_integer(length), encode_integer(position)
    parts = [
        b"\x26",  # 2 of ColumnChunk, file_offset
        start,
        b"\x1c",  # 3 of ColumnChunk, meta_data
        _encode_form(form),
        b"\x16",
        encode_integer(_value_count(subset)),
        b"\x16",
        size,
        b"\x16",
        size,
        b"\x26",
        encode_integer(position + subset.dictionary_length),
    ]
    if subset.dictionary_length:
        parts += [b"\x26", start]
    return b"".join((*parts, b"\0\0"))


def _value_count(subset: PageSubset) -> int:
    if subset.value_count is not None:
        return subset.value_count
    return subset.row_count if subset.pages else 0


@lru_cache(maxsize=4096)
def _encode_form(form: ColumnForm) -> bytes:
    """The first four fields of a ColumnMetaData, without the byte that ends it."""
    return encode_struct(
        (1, I32, encode_integer(form.physical_type)),
        (2, LIST, encode_list(I32, map(encode_integer, (_PLAIN, _RLE, _DELTA_BINARY_PACKED, _RLE_DICTIONARY)))),
        (3, LIST, encode_list(BINARY, [encode_binary(form.path)])),
        (4, I32, encode_integer(form.codec)),
    )[:-1]
