"""Column chunks as a Parquet footer describes them, read by us: where they lie, and how they are stored.

Arrow raises when it reads rows behind a footer that contradicts itself; but asked for the description of a chunk, of
which an encryption is told, or a histogram of another length than the schema's, it ends the process. So it is
asked of files alone that it has just written. What is not needed of a description is passed over without being
understood. Knows no block and no seal.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow.parquet as pq

from fuse_storage.parquet.thrift import Selection, StructMembers, ThriftStruct, read_selected

PHYSICAL_TYPES = ("BOOLEAN", "INT32", "INT64", "INT96", "FLOAT", "DOUBLE", "BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY")
"""Parquet's names of the physical types, by their numbers."""

_TYPE_FIELD, _PATH_FIELD, _CODEC_FIELD, _VALUES_FIELD, _SIZE_FIELD, _DATA_FIELD, _DICTIONARY_FIELD = (
    1,
    3,
    4,
    5,
    7,
    9,
    11,
)
"""Fields of Parquet's ColumnMetaData."""
_GROUPS_FIELD, _COLUMNS_FIELD, _ROWS_FIELD, _META_FIELD = 4, 1, 3, 3
"""Fields in which it lies: of FileMetaData; of a RowGroup, and there how many rows it has; of a ColumnChunk."""
_META_FIELDS: Selection = dict.fromkeys(
    (_TYPE_FIELD, _PATH_FIELD, _CODEC_FIELD, _VALUES_FIELD, _SIZE_FIELD, _DATA_FIELD, _DICTIONARY_FIELD)
)
_CHUNK_FIELDS: Selection = {_META_FIELD: _META_FIELDS}
_SELECTION: Selection = {_GROUPS_FIELD: {_COLUMNS_FIELD: _CHUNK_FIELDS, _ROWS_FIELD: None}}


@dataclass(frozen=True, slots=True)
class ColumnChunk:
    """One column of one row group. ``physical_type`` and ``codec`` are numbered as in ``parquet.thrift``.

    ``path``: its names from the top, with dots between them. ``dictionary_offset``: None if it has no dictionary.
    """

    physical_type: int
    path: bytes
    codec: int
    value_count: int
    byte_count: int
    data_offset: int
    dictionary_offset: int | None

    @property
    def start(self) -> int:
        """Where its first page is, which is the dictionary if it has one."""
        return self.data_offset if self.dictionary_offset is None else min(self.dictionary_offset, self.data_offset)


def read_column_chunks(
    footer: memoryview, row_group_count: int, column_count: int, columns: Collection[int] | None = None
) -> list[list[ColumnChunk]]:
    """The chunks of each row group, in the order of the columns; with ``columns`` only of these, by number.

    The counts are those that the rest of the footer gives. Raises LookupError, TypeError or ValueError for bytes that
    are no such footer.
    """
    chosen = range(column_count) if columns is None else sorted(set(columns))
    selection = {_GROUPS_FIELD: {_COLUMNS_FIELD: StructMembers(chosen, _CHUNK_FIELDS)}}
    groups = read_selected(bytes(footer), 0, selection)[0].get(_GROUPS_FIELD, [])
    if [len(group[_COLUMNS_FIELD]) for group in groups] != [column_count] * row_group_count:
        raise ValueError(f"not each of {row_group_count} row groups has {column_count} columns")
    return [[_column_chunk(group[_COLUMNS_FIELD][place][_META_FIELD]) for place in chosen] for group in groups]


class WrittenChunk(NamedTuple):
    """A column chunk of a block that was just written here. ``dictionary``: bytes of its dictionary page, 0 without.

    ``plain_bytes``: of all its pages before they were compressed.
    """

    start: int
    length: int
    dictionary: int
    value_count: int
    plain_bytes: int
    is_flat: bool


def written_column_chunks(metadata: pq.FileMetaData) -> list[WrittenChunk]:
    """The chunks of a block, row group after row group, as Arrow says that has just written it.

    To read the footer as a stranger's takes ten times as long.
    """
    schema, numbers = metadata.schema, range(metadata.num_columns)
    flat = [schema.column(number).max_repetition_level == 0 for number in numbers]
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return [_written_chunk(group.column(number), flat[number]) for group in groups for number in numbers]


def _written_chunk(chunk: pq.ColumnChunkMetaData, is_flat: bool) -> WrittenChunk:
    data, first = chunk.data_page_offset, chunk.dictionary_page_offset
    start = data if first is None else first
    sizes = chunk.total_compressed_size, data - start, chunk.num_values, chunk.total_uncompressed_size
    return WrittenChunk(start, *sizes, is_flat)


def read_row_groups(footer: memoryview) -> list[tuple[int, list[ColumnChunk]]]:
    """How many rows each row group has, and its chunks in the order of the columns. Raises as above."""
    groups = read_selected(bytes(footer), 0, _SELECTION)[0].get(_GROUPS_FIELD, [])
    return [
        (group[_ROWS_FIELD], [_column_chunk(chunk[_META_FIELD]) for chunk in group[_COLUMNS_FIELD]]) for group in groups
    ]


def _column_chunk(meta: ThriftStruct) -> ColumnChunk:
    chunk = ColumnChunk(
        meta[_TYPE_FIELD],
        b".".join(meta[_PATH_FIELD]),
        meta[_CODEC_FIELD],
        meta[_VALUES_FIELD],
        meta[_SIZE_FIELD],
        meta[_DATA_FIELD],
        meta.get(_DICTIONARY_FIELD),
    )
    if min(chunk.start, chunk.byte_count, chunk.value_count) < 0:
        raise ValueError("a column lies before the beginning of the file, or has less than nothing")
    return chunk
