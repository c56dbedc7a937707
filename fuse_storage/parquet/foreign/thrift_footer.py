"""The footer of a foreign file, read by us: where its column chunks and pages lie, its columns, and their statistics.

Arrow is not asked: what it says of statistics does not tell which order they are in, and who wrote them. Source of the
structures: Parquet's ``parquet.thrift``. Knows no store and no schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fuse_storage.errors import Unsupported
from fuse_storage.parquet.thrift import (
    BINARY,
    STRUCT,
    Selection,
    ThriftStruct,
    encode_binary,
    read_selected,
    skip_value,
)

MAX_BYTES_AFTER_PAGES = 256 << 20
INT96_TYPE = 3
"""Parquet's number of the physical type INT96."""

_STATISTICS: Selection = dict.fromkeys((3, 5, 6))
_CHUNK_META: Selection = {**dict.fromkeys((1, 3, 4, 5, 7, 9, 11)), 12: _STATISTICS}
_CHUNK: Selection = {1: None, 3: _CHUNK_META, 4: None, 5: None, 8: {}}
_SELECTION: Selection = {
    2: dict.fromkeys((1, 4, 5, 9)),
    4: {1: _CHUNK, 3: None},
    5: {1: None, 2: None},
    7: {1: {}},
    8: {},
}
"""FileMetaData: schema, row groups, key-value metadata, column orders, encryption."""
_LOCATIONS: Selection = {1: dict.fromkeys((1, 2, 3))}
"""OffsetIndex: offset, length and first row of each page."""


@dataclass(frozen=True, slots=True)
class RawStatistics:
    """Statistics of a column chunk as they are stored. None: not said, or not in a known order."""

    min: bytes | None
    max: bytes | None
    null_count: int | None


@dataclass(frozen=True, slots=True)
class ForeignChunk:
    """One column of one row group. ``path``: its names from the top. ``dictionary_length``: 0 if none is told."""

    path: tuple[str, ...]
    physical_type: int
    codec: int
    value_count: int
    start: int
    byte_count: int
    dictionary_length: int
    offset_index: tuple[int, int] | None
    statistics: RawStatistics


@dataclass(frozen=True, slots=True)
class ForeignRowGroup:
    row_count: int
    chunks: tuple[ForeignChunk, ...]


@dataclass(frozen=True, slots=True)
class ForeignFooter:
    """What a Parquet footer says. ``old_dates``, ``old_int96``: Spark wrote them in the calendar that it had before."""

    groups: tuple[ForeignRowGroup, ...]
    old_dates: bool
    old_int96: bool

    @property
    def row_count(self) -> int:
        return sum(group.row_count for group in self.groups)


def parse_footer(data: bytes, where: str) -> ForeignFooter:
    """Read a Parquet footer. ``data`` ends with its length and magic. Raises Unsupported, LookupError, ValueError."""
    members, _ = read_selected(data[:-8], 0, _SELECTION)
    if 8 in members:
        raise Unsupported(f"{where} is encrypted, and no reader here decrypts: attach files that are not")
    orders = [1 in order for order in members.get(7, [])]
    groups = tuple(
        ForeignRowGroup(
            int(group[3]), tuple(_chunk(chunk, number, orders, where) for number, chunk in enumerate(group[1]))
        )
        for group in members.get(4, [])
    )
    if any(not group.row_count for group in groups) and any(group.row_count for group in groups):
        raise Unsupported(f"{where} has a row group without rows: rewrite it")
    if any([chunk.codec for chunk in group.chunks] != [chunk.codec for chunk in groups[0].chunks] for group in groups):
        raise Unsupported(f"{where} has a column that is compressed in more than one way: rewrite it")
    said = {bytes(pair[1]): bytes(pair.get(2, b"")) for pair in members.get(5, [])}
    version = said.get(b"org.apache.spark.version", b"9").decode(errors="replace").split(".")
    return ForeignFooter(
        groups,
        b"org.apache.spark.legacyDateTime" in said or version[0] in ("0", "1", "2"),
        b"org.apache.spark.legacyINT96" in said or version[0] in ("0", "1", "2") or version[:2] == ["3", "0"],
    )


def _chunk(chunk: ThriftStruct, number: int, orders: Sequence[bool], where: str) -> ForeignChunk:
    if 8 in chunk or 3 not in chunk:
        raise Unsupported(f"{where} has an encrypted column, and no reader here decrypts: attach files that have none")
    if 1 in chunk:
        raise Unsupported(f"{where} has columns in other files, which no writer of today makes: rewrite it")
    meta = chunk[3]
    data_offset, dictionary = int(meta[9]), int(meta.get(11) or 0)
    start = dictionary if 0 < dictionary < data_offset else data_offset
    if min(start, meta[7], meta[5]) < 0:
        raise ValueError("a column lies before the beginning of the file, or has less than nothing")
    found = meta.get(12, {})
    ordered = number < len(orders) and orders[number]
    statistics = RawStatistics(found.get(6) if ordered else None, found.get(5) if ordered else None, found.get(3))
    index = (int(chunk[4]), int(chunk[5])) if chunk.get(4) and chunk.get(5) else None
    path = tuple(part.decode() for part in meta[3])
    return ForeignChunk(path, meta[1], meta[4], meta[5], start, int(meta[7]), data_offset - start, index, statistics)


def page_locations(data: bytes) -> list[tuple[int, int, int]]:
    """(offset, length, first row) of each page, from an offset index. Raises LookupError or ValueError."""
    return [(place[1], place[2], place[3]) for place in read_selected(data, 0, _LOCATIONS)[0].get(1, [])]


def rename_schema_columns(schema: bytes, names: Mapping[int, str]) -> bytes:
    """The schema of a footer, each column under the name that ``names`` has for its field id.

    A column of another id gets a name that nobody asks for; one without an id keeps its own, as the levels within
    lists and maps do. ``schema``: the bytes of a list of SchemaElement.
    """
    renamed, position = bytearray(), _list_start(schema)
    renamed += schema[:position]
    while position < len(schema):
        end = skip_value(schema, position, STRUCT)
        element, _ = read_selected(schema, position, dict.fromkeys((4, 9)))
        encoded = schema[position:end]
        if 9 in element:
            name = names.get(element[9], f"#{element[9]}").encode()
            encoded = _with_name(encoded, bytes(element[4]), name)
        renamed += encoded
        position = end
    return bytes(renamed)


def _list_start(encoded: bytes) -> int:
    """Where the first element of a list begins."""
    if encoded[0] >> 4 != 15:
        return 1
    position = 1
    while encoded[position] > 0x7F:
        position += 1
    return position + 1


def _with_name(element: bytes, old: bytes, new: bytes) -> bytes:
    """A SchemaElement with another name: its field 4, whose place follows from the fields before it."""
    position, field_id = 0, 0
    while head := element[position]:
        field_id, kind = field_id + (head >> 4), head & 0x0F
        if not head >> 4:
            raise ValueError("a column's description is written in an unusual way")
        position += 1
        if field_id == 4 and kind == BINARY:
            end = skip_value(element, position, BINARY)
            assert element[end - len(old) : end] == old
            return element[:position] + encode_binary(new) + element[end:]
        position = position if kind <= 2 else skip_value(element, position, kind)
    raise ValueError("a column has no name")


def schema_names(schema: bytes) -> list[tuple[str, int | None, int]]:
    """Name, field id and number of children of each element of a footer's schema, the root first."""
    position, found = _list_start(schema), []
    while position < len(schema):
        element, position = read_selected(schema, position, dict.fromkeys((4, 5, 9)))
        found.append((bytes(element[4]).decode(), element.get(9), int(element.get(5, 0))))
    return found
