"""Footers of foreign files, as ``Footer``: verified by the checksum that was kept, their columns under our names.

Arrow is shown a footer that we forge, never the file's own: hints of other engines (a stored Arrow schema) would change
types, and names that differ from ours are put right in it. Knows no segments and no tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fuse_storage.errors import RESTORE_HINT, Corrupt, SchemaError, StorageError, Unsupported
from fuse_storage.parquet import page_subset
from fuse_storage.parquet.column_chunks import PHYSICAL_TYPES
from fuse_storage.parquet.footer import (
    UNREADABLE,
    BlockFile,
    Footer,
    ForeignLayout,
    footer_checksum,
    read_block_ranges,
    seal_number,
)
from fuse_storage.parquet.foreign.row_groups import are_parts
from fuse_storage.parquet.foreign.thrift_footer import (
    DOT,
    INT96_TYPE,
    MAX_BYTES_AFTER_PAGES,
    ForeignChunk,
    ForeignFooter,
    page_locations,
    parse_footer,
    rename_schema_columns,
    schema_names,
    without_dots,
)
from fuse_storage.parquet.page_subset import ColumnForm, PageSubset
from fuse_storage.parquet.pages import Int64Array, Pages
from fuse_storage.schema.schema import Schema
from fuse_storage.store.abilities import object_meta
from fuse_storage.store.cache import Cache, cache_of
from fuse_storage.store.ranges import ObjectMeta
from fuse_storage.store.store import Store

_TAIL_BYTES = 64 << 10
"""What is read at first of a file that is not known yet: the footer of most."""
_TRAILER_BYTES = 8


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A foreign file whose footer was read. ``data``: its bytes from ``offset`` to its end, which are remembered."""

    where: str
    offset: int
    data: bytes
    parsed: ForeignFooter
    meta: ObjectMeta | None = None
    """What its store said of it when it was opened, if it was asked."""

    @property
    def seal(self) -> int:
        return seal_number(footer_checksum(self.data))

    def has_finer_times(self, path: str) -> bool:
        """Whether bounds say of a column of nanoseconds that it has times which microseconds do not hold."""
        numbers = [
            number for number, each in enumerate(self.footer().forms) if each.path.decode() == name_in_footer(path)
        ]
        bounds = [
            bound
            for group in self.parsed.groups
            for number in numbers
            for bound in (group.chunks[number].statistics.min, group.chunks[number].statistics.max)
        ]
        return any(bound is not None and int.from_bytes(bound, "little", signed=True) % 1000 for bound in bounds)

    def footer(self, names: Mapping[int, str] | None = None) -> Footer:
        """The footer, with columns under these names by field id, or their own. Raises Corrupt."""
        try:
            return _assemble(self.data, self.offset, self.parsed, names)
        except Unsupported as refusal:
            raise Unsupported(f"{self.where}: {refusal}") from refusal
        except UNREADABLE as problem:
            raise Corrupt(f"{self.where} is no Parquet file that can be read: {problem!r}") from problem


def open_foreign_file(store: Store, key: str, size: int, ask_meta: bool = False) -> OpenedFile:
    """Read the footer of a file of ``size`` bytes, and its offset indexes if they lie right before it.

    ``ask_meta``: the store is asked when it was written. Raises NotFound; Unsupported or SchemaError, naming the
    file, for one that cannot be read exactly.
    """
    where = f"{store.url}/{key}"
    meta = object_meta(store, key) if ask_meta else None
    if meta is not None and meta.size != size:
        raise Corrupt(f"{where} has {meta.size} bytes, and its table says {size}: it is another file")
    offset = max(size - _TAIL_BYTES, 0)
    (data,) = store.read_ranges(key, [(offset, size - offset)]) if size else (b"",)
    if data[-4:] == b"PARE":
        raise Unsupported(f"{where} is encrypted, and no reader here decrypts: attach files that are not")
    if size < _TRAILER_BYTES + 4 or data[-4:] != b"PAR1":
        raise SchemaError(f"{where} is no Parquet file: take it out of the folder, or attach another one")
    begin = size - int.from_bytes(data[-8:-4], "little") - _TRAILER_BYTES
    if begin < 0 or size - begin > MAX_BYTES_AFTER_PAGES:
        raise SchemaError(f"{where} is no Parquet file: its footer does not fit into it")
    data, offset = _from(store, key, data, offset, begin)
    try:
        parsed = parse_footer(data[begin - offset :], where)
        chunks = [chunk for group in parsed.groups for chunk in group.chunks]
        indexes = [chunk.offset_index[0] for chunk in chunks if chunk.offset_index is not None]
        pages_end = max((chunk.start + chunk.byte_count for chunk in chunks), default=0)
        if pages_end > begin:
            raise ValueError("its pages do not fit into it")
        first = min(indexes, default=begin)
        if not pages_end <= first <= begin or size - first > MAX_BYTES_AFTER_PAGES:
            first = begin  # somewhere else: rows are read without it
        data, offset = _from(store, key, data, offset, first)
    except (StorageError, *UNREADABLE) as problem:
        if isinstance(problem, StorageError):
            raise
        raise SchemaError(f"{where} is no Parquet file that can be read: {problem!r}") from problem
    return OpenedFile(where, first, data[first - offset :], parsed, meta)


def _from(store: Store, key: str, data: bytes, offset: int, begin: int) -> tuple[bytes, int]:
    """The bytes from ``begin``, or from before it, on; ``data`` are those from ``offset`` on."""
    if begin >= offset:
        return data, offset
    (more,) = store.read_ranges(key, [(begin, offset - begin)])
    return more + data, begin


def read_foreign_footer(store: Store, block: BlockFile, schema: Schema, cache: Cache | None = None) -> Footer:
    """The footer of an attached file, in one exact read, or none if it was read before. Raises NotFound or Corrupt."""
    assert block.foreign is not None
    names = physical_names(schema) if block.foreign.by_id else None

    def load() -> Footer:
        where = f"{store.url}/{block.key}"
        (data,) = read_block_ranges(store, block, [(block.footer_offset, block.footer_length)])
        if block.footer_length > MAX_BYTES_AFTER_PAGES or seal_number(footer_checksum(data)) != block.seal:
            raise Corrupt(f"{where} is another file than the one that was attached: sync the table with its source")
        length = int.from_bytes(data[-8:-4], "little") + _TRAILER_BYTES
        try:
            footer = OpenedFile(where, block.footer_offset, data, parse_footer(data[-length:], where)).footer(names)
        except UNREADABLE as problem:
            raise Corrupt(f"{where} is no Parquet file that can be read: {problem!r}") from problem
        if block.zone_rows and not are_parts(block.zone_rows, footer.zone_rows):
            raise Corrupt(f"{where}: its footer does not fit the table; {RESTORE_HINT}")
        return footer

    key = (
        "foreign footer",
        store.url,
        block.key,
        block.footer_offset,
        block.seal,
        tuple(sorted((names or {}).items())),
    )
    return (cache_of(store) if cache is None else cache).get_or_load(key, load, lambda footer: 10 * footer.length)


def physical_names(schema: Schema) -> dict[int, str]:
    """The physical name of each column and part, by id."""
    return {part.id: part.physical_name for top in schema.fields for part in top.walk()}


def name_in_footer(name: str) -> str:
    """The name of a column in the footer of a foreign file, where dots stand between names alone."""
    return name.replace(".", DOT)


def name_in_file(name: str) -> str:
    """What the file itself calls a column of its footer."""
    return name.replace(DOT, ".")


def _assemble(data: bytes, offset: int, parsed: ForeignFooter, names: Mapping[int, str] | None) -> Footer:
    length = int.from_bytes(data[-8:-4], "little") + _TRAILER_BYTES
    schema = page_subset.footer_schema_bytes(memoryview(data)[-length:])
    if names is not None:
        if any(field_id is None for field_id in _top_level_ids(schema)):
            raise Unsupported("its columns have no field ids, by which they would be found: rewrite it at the source")
        schema = rename_schema_columns(schema, names)
    if b"." in schema or DOT.encode() in schema:  # in a name, or a number by chance
        schema = without_dots(schema)
    chunks = [chunk for group in parsed.groups for chunk in group.chunks]
    first = parsed.groups[0].chunks if parsed.groups else ()
    paths = leaf_paths(schema)
    if any(len(group.chunks) != len(paths) for group in parsed.groups):
        raise ValueError("a row group has other columns than the file")
    forms = [
        ColumnForm(chunk.physical_type, ".".join(path).encode(), chunk.codec)
        for chunk, path in zip(first, paths, strict=False)
    ]
    empty = [{0: PageSubset((), group.row_count, 0)} for group in parsed.groups]
    with pq.ParquetFile(pa.BufferReader(page_subset.forge_file(schema, forms, empty))) as parquet:
        metadata = parquet.metadata
    kinds = [PHYSICAL_TYPES.index(metadata.schema.column(number).physical_type) for number in range(len(paths))]
    if any([chunk.physical_type for chunk in group.chunks] != kinds for group in parsed.groups):
        raise ValueError("a column of a row group is of another type than the file says")
    if not forms:
        forms = [ColumnForm(kind, ".".join(path).encode(), 0) for kind, path in zip(kinds, paths, strict=True)]
    flat = [metadata.schema.column(number).max_repetition_level == 0 for number in range(len(paths))]
    located = [
        _pages(chunk, group.row_count, data, offset) if one_a_row else [(chunk.start, chunk.byte_count, 0)]
        for group in parsed.groups
        for chunk, one_a_row in zip(group.chunks, flat, strict=True)
    ]
    return Footer(
        metadata,
        [(chunk.start, chunk.byte_count) for chunk in chunks],
        _all_pages(located),
        schema,
        forms,
        len(data),
        seal_number(footer_checksum(data)),
        ForeignLayout(
            [chunk.value_count for chunk in chunks],
            [
                pages[0][1] if len(pages) > 1 and not pages[0][2] else chunk.dictionary_length
                for chunk, pages in zip(chunks, located, strict=True)
            ],
            parsed.old_dates,
            parsed.old_int96 and any(chunk.physical_type == INT96_TYPE for chunk in first),
        ),
    )


def leaf_paths(schema: bytes) -> list[tuple[str, ...]]:
    """The path of each leaf in a footer's schema, in order, without the root."""
    (_, _, top_count), *below = schema_names(schema)
    elements = iter(below)

    def walk(above: tuple[str, ...], count: int) -> Iterator[tuple[str, ...]]:
        for _ in range(count):
            name, _, child_count = next(elements, ("", None, -1))
            if child_count < 0:
                raise ValueError("its schema ends before its last column")
            path = (*above, name)
            if child_count:
                yield from walk(path, child_count)
            else:
                yield path

    return list(walk((), top_count))


def _top_level_ids(schema: bytes) -> list[int | None]:
    """The field ids of the columns at the top of a footer's schema."""
    (_, _, top_count), *elements = schema_names(schema)
    found: list[int | None] = []
    inner = 0  # elements that are still to come of the column at the top
    for _, field_id, child_count in elements:
        if not inner:
            found.append(field_id)
        inner += child_count - (inner > 0)
    if len(found) != top_count:
        raise ValueError("its schema has other columns than it says")
    return found


def _pages(chunk: ForeignChunk, row_count: int, data: bytes, offset: int) -> list[tuple[int, int, int]]:
    """(offset, length, rows) of each page of a chunk, the dictionary of 0 rows first; the whole chunk if unknown."""
    whole = [(chunk.start, chunk.byte_count, 0)]
    if chunk.offset_index is None or chunk.offset_index[0] < offset:
        return whole
    start = chunk.offset_index[0] - offset
    try:
        places = page_locations(data[start : start + chunk.offset_index[1]])
    except (LookupError, ValueError):  # damaged: no row needs it
        return whole
    if not places:
        return whole
    ends = [place[2] for place in places[1:]] + [row_count]
    pages = [(place[0], place[1], end - place[2]) for place, end in zip(places, ends, strict=True)]
    if pages[0][0] > chunk.start:
        pages.insert(0, (chunk.start, pages[0][0] - chunk.start, 0))
    follows = all(one[0] + one[1] == other[0] for one, other in pairwise(pages))
    complete = sum(page[1] for page in pages) == chunk.byte_count and places[0][2] == 0
    with_rows = all(page[2] > 0 for page in pages[-len(places) :])
    return pages if follows and complete and with_rows else whole


def _all_pages(located: Sequence[Sequence[tuple[int, int, int]]]) -> Pages:
    numbers: Int64Array = np.array([page for pages in located for page in pages], np.int64).reshape(-1, 3)
    starts = np.append(0, np.cumsum([len(pages) for pages in located])).astype(np.int64)
    return Pages(starts, numbers[:, 0], numbers[:, 1], numbers[:, 2], np.zeros(0, np.int64))
