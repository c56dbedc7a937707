"""The footer of a foreign file, read by us: where its column chunks and pages lie, its columns, and their statistics.

Arrow is not asked: what it says of statistics does not tell which order they are in, and who wrote them. Source of the
structures: Parquet's ``parquet.thrift``. Knows no store and no schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fuse_storage.errors import Unsupported
from fuse_storage.parquet.column_chunks import PHYSICAL_TYPES
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
DOT = "\x1f"
"""What stands for a dot within a name, where footers of foreign files are shown: theirs are in no name's place."""
INT96_TYPE = PHYSICAL_TYPES.index("INT96")
_MAX_CODEC = 7
_DICTIONARY_ENCODINGS = (2, 8)
"""PLAIN_DICTIONARY and RLE_DICTIONARY."""
_MAX_NUMBER = 1 << 48
"""No file of anybody has so many bytes, rows or values."""

_STATISTICS: Selection = dict.fromkeys((3, 5, 6))
_CHUNK_META: Selection = {**dict.fromkeys((1, 2, 3, 4, 5, 7, 9, 11)), 12: _STATISTICS}
_CHUNK: Selection = {1: None, 3: _CHUNK_META, 4: None, 5: None, 8: {}}
_SELECTION: Selection = {
    2: dict.fromkeys((1, 4, 5, 9)),
    4: {1: _CHUNK, 3: None, 6: None},
    5: {1: None, 2: None},
    6: None,
    7: {1: {}},
    8: {},
}
"""FileMetaData: schema, row groups, key-value metadata, writer, column orders, encryption."""
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
    """One column of one row group. ``path``: its names from the top. ``dictionary_length``: 0 if none is told.

    ``has_dictionary``: pages are encoded with one, whether or not its place is told.
    """

    path: tuple[str, ...]
    physical_type: int
    codec: int
    value_count: int
    start: int
    byte_count: int
    dictionary_length: int
    has_dictionary: bool
    offset_index: tuple[int, int] | None
    statistics: RawStatistics


@dataclass(frozen=True, slots=True)
class ForeignRowGroup:
    """A row group. ``middle``: the byte by which readers of parts of a file choose it, as parquet-java reckons that."""

    row_count: int
    chunks: tuple[ForeignChunk, ...]
    middle: int


@dataclass(frozen=True, slots=True)
class ForeignFooter:
    """What a Parquet footer says. ``old_dates``, ``old_int96``: Spark wrote them in the calendar that it had before.

    ``created_by``: who wrote the file, in his words. ``arrow_schema``: the schema that Arrow kept, in base 64;
    ``spark_schema``: the one that Spark did, in JSON. All are empty if unknown.
    """

    groups: tuple[ForeignRowGroup, ...]
    old_dates: bool
    old_int96: bool
    created_by: str = ""
    arrow_schema: bytes = b""
    spark_schema: bytes = b""

    @property
    def row_count(self) -> int:
        return sum(group.row_count for group in self.groups)


def parse_footer(data: bytes, where: str) -> ForeignFooter:
    """Read a Parquet footer, each number of which is in bounds. ``data`` ends with its length and magic.

    Raises Unsupported, LookupError, ValueError.
    """
    members, _ = read_selected(data[:-8], 0, _SELECTION)
    if 8 in members:
        raise Unsupported(f"{where} is encrypted, and no reader here decrypts: attach files that are not")
    orders = [1 in order for order in members.get(7, [])]
    groups = tuple(
        _row_group(group, orders, where)
        for group in members.get(4, [])
        if _number(group[3])  # some writers make groups without rows, whose chunks may say anything
    )
    if any([chunk.codec for chunk in group.chunks] != [chunk.codec for chunk in groups[0].chunks] for group in groups):
        raise Unsupported(f"{where} has a column that is compressed in more than one way: rewrite it")
    said = {_bytes(pair[1]): _bytes(pair.get(2, b"")) for pair in members.get(5, [])}
    version = said.get(b"org.apache.spark.version", b"9").decode(errors="replace").split(".")
    return ForeignFooter(
        groups,
        b"org.apache.spark.legacyDateTime" in said or version[0] in ("0", "1", "2"),
        b"org.apache.spark.legacyINT96" in said or version[0] in ("0", "1", "2") or version[:2] == ["3", "0"],
        _bytes(members.get(6, b"")).decode(errors="replace"),
        said.get(b"ARROW:schema", b""),
        said.get(b"org.apache.spark.sql.parquet.row.metadata", b""),
    )


def _row_group(group: ThriftStruct, orders: Sequence[bool], where: str) -> ForeignRowGroup:
    chunks = tuple(_chunk(chunk, number, orders, where) for number, chunk in enumerate(group[1]))
    size = group[6] if isinstance(group.get(6), int) else sum(chunk.byte_count for chunk in chunks)
    first = _struct(group[1][0][3]) if chunks else {9: 0}
    dictionary = first.get(11)  # a 0 counts, too, where there is none
    start = min(first[9], dictionary) if isinstance(dictionary, int) else first[9]
    return ForeignRowGroup(_number(group[3]), chunks, start + size // 2)


def _chunk(chunk: ThriftStruct, number: int, orders: Sequence[bool], where: str) -> ForeignChunk:
    if 8 in chunk or 3 not in chunk:
        raise Unsupported(f"{where} has an encrypted column, and no reader here decrypts: attach files that have none")
    if 1 in chunk:
        raise Unsupported(f"{where} has columns in other files, which no writer of today makes: rewrite it")
    meta = _struct(chunk[3])
    data_offset, dictionary = _number(meta[9]), meta.get(11)
    if not isinstance(dictionary, int) or not 0 < dictionary < data_offset:
        dictionary = data_offset  # some writers put a 0 or the offset of the data where there is none
    ordered = number < len(orders) and orders[number]
    index = (_number(chunk[4]), _number(chunk[5])) if chunk.get(4) and chunk.get(5) else None
    return ForeignChunk(
        tuple(_bytes(part).decode() for part in _list(meta[3])),
        _number(meta[1], len(PHYSICAL_TYPES) - 1),
        _number(meta[4], _MAX_CODEC),
        _number(meta[5]),
        dictionary,
        _number(meta[7]),
        data_offset - dictionary,
        dictionary < data_offset or any(each in _DICTIONARY_ENCODINGS for each in _list(meta.get(2, []))),
        index,
        _statistics(_struct(meta.get(12, {})), ordered),
    )


def _statistics(found: ThriftStruct, ordered: bool) -> RawStatistics:
    """Chunk statistics; a member that is absent or of the wrong type becomes None."""
    low, high = (found.get(number) if ordered else None for number in (6, 5))
    null_count = found.get(3)
    return RawStatistics(
        bytes(low) if isinstance(low, bytes | memoryview) else None,
        bytes(high) if isinstance(high, bytes | memoryview) else None,
        null_count if isinstance(null_count, int) and not isinstance(null_count, bool) else None,
    )


def _number(value: Any, most: int = _MAX_NUMBER) -> int:
    """A number of a footer. Raises ValueError for another value, or one out of bounds."""
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{value!r} stands where a number from 0 to {most} does")
    return value


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes | memoryview):
        raise ValueError(f"{value!r} stands where text does")
    return bytes(value)


def _struct(value: Any) -> ThriftStruct:
    if not isinstance(value, dict):
        raise ValueError(f"{value!r} stands where a struct does")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise ValueError(f"{value!r} stands where a list does")
    return value


def page_locations(data: bytes) -> list[tuple[int, int, int]]:
    """(offset, length, first row) of each page, from an offset index. Raises LookupError or ValueError."""
    places = _list(read_selected(data, 0, _LOCATIONS)[0].get(1, []))
    return [(_number(place[1]), _number(place[2]), _number(place[3])) for place in places]


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
            encoded = _with_name(encoded, _bytes(element[4]), name)
        renamed += encoded
        position = end
    return bytes(renamed)


def without_dots(schema: bytes) -> bytes:
    """The schema of a footer, with another mark in the place of dots in names: paths of names are joined by dots.

    Raises ValueError for a schema that has the mark.
    """
    changed, position = bytearray(), _list_start(schema)
    changed += schema[:position]
    while position < len(schema):
        end = skip_value(schema, position, STRUCT)
        element, _ = read_selected(schema, position, dict.fromkeys((4,)))
        name, encoded = _bytes(element[4]), schema[position:end]
        if DOT.encode() in name:
            raise ValueError(f"the name {name!r} of a column has a mark in it that is used for dots here")
        changed += _with_name(encoded, name, name.replace(b".", DOT.encode())) if b"." in name else encoded
        position = end
    return bytes(changed)


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
            if element[end - len(old) : end] != old:
                raise ValueError("a column has two names")
            return element[:position] + encode_binary(new) + element[end:]
        position = position if kind <= 2 else skip_value(element, position, kind)
    raise ValueError("a column has no name")


def schema_names(schema: bytes) -> list[tuple[str, int | None, int]]:
    """Name, field id and number of children of each element of a footer's schema, the root first."""
    position, found = _list_start(schema), []
    while position < len(schema):
        element, position = read_selected(schema, position, dict.fromkeys((4, 5, 9)))
        field_id = element.get(9)
        if field_id is not None and type(field_id) is not int:
            raise ValueError(f"{field_id!r} stands where the id of a column does")
        found.append((_bytes(element[4]).decode(), field_id, _number(element.get(5, 0), len(schema))))
    return found


def variant_paths(schema: bytes) -> list[tuple[str, ...]]:
    """The paths of what Parquet's logical type says is VARIANT, of a footer's schema."""
    found, around = list[tuple[str, ...]](), list[tuple[str, int]]()
    position = _list_start(schema) if b"metadata" in schema else len(schema)  # a part of each; 100 columns take 0.2 ms
    while position < len(schema):
        element, position = read_selected(schema, position, {4: None, 5: None, 10: {16: {}}})
        around.append((_bytes(element[4]).decode(), _number(element.get(5, 0), len(schema))))
        found += [tuple(name for name, _ in around[1:])] if 16 in element.get(10, {}) else []
        while around and not around[-1][1]:  # nothing in it is to come, and one less of what is around it
            around = [*around[:-2], *((name, count - 1) for name, count in around[-2:-1])]
    return found
