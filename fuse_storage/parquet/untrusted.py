"""A small Parquet file whose writer is not trusted, read within bounds: of its rows, and of the memory that they take.

A file of a kilobyte can describe a gigabyte: a page says how large it is once it is expanded, a dictionary's entry may
stand in every row, and an entry may be as long as a page. So the headers of all pages are read first, encodings that
repeat more than a dictionary does are refused, and texts stay in their dictionary until their sum is known. Footers
that contradict themselves end the process within Arrow, so it is shown one of our own. Knows no table and no seal:
blocks are read by ``reader``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as is_

from fuse_storage.errors import Corrupt
from fuse_storage.parquet import thrift
from fuse_storage.parquet.page_subset import ColumnForm, PageSubset, footer_schema_bytes, forge_file

_SCHEMA_FIELD, _ROWS_FIELD, _GROUPS_FIELD = 2, 3, 4
"""Fields of Parquet's FileMetaData."""
_TYPE_FIELD, _LENGTH_FIELD, _REPETITION_FIELD, _NAME_FIELD, _CHILDREN_FIELD = 1, 2, 3, 4, 5
"""Fields of a SchemaElement: its physical type, the bytes of a value of fixed length, its name, its parts."""
_REPEATED, _BYTE_ARRAY = 2, 6
_COLUMNS_FIELD, _META_FIELD = 1, 3
"""Fields of a RowGroup, which has the number of its rows in the third, too, and of a ColumnChunk."""
_CODEC_FIELD, _CHUNK_SIZE_FIELD, _DATA_OFFSET_FIELD, _DICTIONARY_OFFSET_FIELD = 4, 7, 9, 11
"""Fields of ColumnMetaData."""
_EXPANDED_SIZE_FIELD, _COMPRESSED_SIZE_FIELD = 2, 3
_DATA_HEADER_FIELD, _DICTIONARY_HEADER_FIELD, _DATA_HEADER_V2_FIELD = 5, 7, 8
"""Fields of a PageHeader."""
_VALUE_COUNT_FIELD = 1
_ENCODING_FIELDS = {_DATA_HEADER_FIELD: 2, _DICTIONARY_HEADER_FIELD: 2, _DATA_HEADER_V2_FIELD: 4}
"""Fields of the header of each type of page: how many values it has, and how they are encoded."""
_PLAIN, _PLAIN_DICTIONARY, _RLE, _BIT_PACKED, _RLE_DICTIONARY = 0, 2, 3, 4, 8
_ENCODINGS = frozenset({_PLAIN, _PLAIN_DICTIONARY, _RLE, _BIT_PACKED, _RLE_DICTIONARY})
"""Encodings of Parquet that make no more bytes than a page has, or one entry of a dictionary for each value."""
_REFUSALS = (OSError, LookupError, ArithmeticError, ValueError, TypeError, NotImplementedError, RecursionError)
"""What damage makes Arrow, and the reader of headers, raise."""


def read_untrusted_parquet(data: bytes, columns: Sequence[str], max_rows: int, max_bytes: int) -> pa.Table:
    """Read flat columns of a Parquet file, each once, of at most so many rows and so many bytes.

    Raises Corrupt for a file that is damaged, that lacks a column, or that has more rows, or makes more bytes.
    """
    names = list(dict.fromkeys(columns))
    try:
        view = memoryview(data)
        footer = view[-8 - int.from_bytes(data[-8:-4], "little") : -8]
        metadata, _ = thrift.read_struct(footer, 0)
        if not 0 <= metadata[_ROWS_FIELD] <= max_rows:
            raise Corrupt(f"it has {metadata[_ROWS_FIELD]} rows, and at most {max_rows} are possible")
        numbers = [_column_number(metadata[_SCHEMA_FIELD], name) for name in names]
        filled = [group for group in metadata[_GROUPS_FIELD] if group[_ROWS_FIELD]]
        groups = [_column_pages(view, group, numbers, max_rows) for group in filled]
        _check_sizes(metadata, numbers, groups, max_bytes)
        return _decode(footer, metadata, names, [group for group, _ in groups], max_bytes)
    except _REFUSALS as problem:
        raise Corrupt(f"{len(data)} bytes are no Parquet file that can be read: {problem}") from problem


def _column_number(schema: Sequence[thrift.ThriftStruct], name: str) -> int:
    """The number of a flat column among all, in a schema that has no others."""
    leaves = [element.get(_NAME_FIELD) for element in schema[1:]]
    if any(element.get(_CHILDREN_FIELD) or element[_REPETITION_FIELD] == _REPEATED for element in schema[1:]):
        raise Corrupt("it has lists or structs")
    if leaves.count(name.encode()) != 1:
        raise Corrupt(f"it has {leaves.count(name.encode())} columns {name!r}")
    return leaves.index(name.encode())


_Zone = dict[int, PageSubset]


def _column_pages(
    data: memoryview, group: thrift.ThriftStruct, numbers: Sequence[int], max_rows: int
) -> tuple[_Zone, int]:
    """The pages of these columns in one row group, and how many bytes they have once they are expanded."""
    rows, zone, expanded = group[_ROWS_FIELD], _Zone(), 0
    for number in numbers:
        chunk = group[_COLUMNS_FIELD][number][_META_FIELD]
        data_start = chunk[_DATA_OFFSET_FIELD]
        start = min(chunk.get(_DICTIONARY_OFFSET_FIELD, 0) or data_start, data_start)
        end = start + chunk[_CHUNK_SIZE_FIELD]
        if not 0 <= start <= end <= len(data) or not 0 <= rows <= max_rows:
            raise Corrupt(f"{rows} rows of a column lie at bytes {start} to {end} of {len(data)}")
        zone[number] = PageSubset([data[start:end]], rows, data_start - start)
        expanded += sum(_expanded_sizes(data, start, end, max_rows))
    return zone, expanded


def _expanded_sizes(data: memoryview, start: int, end: int, max_rows: int) -> Iterator[int]:
    """Yield how many bytes each page between two places says that it has once it is expanded."""
    while start < end:
        header, start = thrift.read_struct(data, start)
        count, encoding = _page_contents(header)
        if not 0 <= count <= max_rows or encoding not in _ENCODINGS:
            raise Corrupt(f"a page has {count} values of encoding {encoding}")
        if header[_COMPRESSED_SIZE_FIELD] < 0 or header[_EXPANDED_SIZE_FIELD] < 0:
            raise Corrupt("a page has less than no bytes")
        start += header[_COMPRESSED_SIZE_FIELD]
        yield header[_EXPANDED_SIZE_FIELD]


def _page_contents(header: thrift.ThriftStruct) -> tuple[Any, Any]:
    """How many values a page has, and how they are encoded."""
    [(values, encoding_field)] = [
        (header[field], encoding) for field, encoding in _ENCODING_FIELDS.items() if field in header
    ]
    return values[_VALUE_COUNT_FIELD], values[encoding_field]


def _check_sizes(
    metadata: thrift.ThriftStruct, numbers: Sequence[int], groups: Sequence[tuple[_Zone, int]], max_bytes: int
) -> None:
    """Refuse a file of which the row groups, the pages or the values of fixed length are too many or too large."""
    rows = sum(group[_ROWS_FIELD] for group in metadata[_GROUPS_FIELD])
    if rows != metadata[_ROWS_FIELD]:
        raise Corrupt(f"it has {metadata[_ROWS_FIELD]} rows, and {rows} in its row groups")
    widths = [max(metadata[_SCHEMA_FIELD][1 + number].get(_LENGTH_FIELD, 0), 8) for number in numbers]
    if sum(widths) * rows + sum(expanded for _, expanded in groups) > max_bytes:
        raise Corrupt(f"its columns take more than {max_bytes} bytes")


def _decode(
    footer: memoryview, metadata: thrift.ThriftStruct, names: Sequence[str], zones: Sequence[_Zone], max_bytes: int
) -> pa.Table:
    """Let Arrow decode the pages behind a footer of our own: it stops the process over some that others write."""
    schema = metadata[_SCHEMA_FIELD][1:]
    codecs = {
        number: column[_META_FIELD][_CODEC_FIELD]
        for group in metadata[_GROUPS_FIELD]
        for number, column in enumerate(group[_COLUMNS_FIELD])
    }
    forms = [
        ColumnForm(element[_TYPE_FIELD], element[_NAME_FIELD], codecs.get(number, 0))
        for number, element in enumerate(schema)
    ]
    texts = [
        element[_NAME_FIELD].decode()
        for element in schema
        if element[_TYPE_FIELD] == _BYTE_ARRAY and element[_NAME_FIELD].decode() in names
    ]
    file = forge_file(footer_schema_bytes(footer), forms, zones)
    with pq.ParquetFile(pa.BufferReader(file), pre_buffer=False, read_dictionary=texts) as parquet:
        return _without_dictionaries(parquet.read(columns=list(names), use_threads=False).select(names), max_bytes)


def _without_dictionaries(rows: pa.Table, max_bytes: int) -> pa.Table:
    """Write each text out, once it is known how many bytes all of them take."""
    total = 0
    columns = []
    for column in rows.columns:
        for part in column.chunks:
            part.validate(full=True)
            if is_.is_dictionary(part.type):
                total += pc.sum(pc.binary_length(part.dictionary).take(part.indices)).as_py() or 0
        if total > max_bytes:
            raise Corrupt(f"its texts take more than {max_bytes} bytes")
        is_encoded = is_.is_dictionary(column.type)
        columns.append(column.cast(column.type.value_type) if is_encoded else column)
    return pa.table(columns, rows.column_names)
