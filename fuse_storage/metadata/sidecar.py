"""What one index knows of a segment's blocks: an ``_x`` file, its rows aligned with the blocks.

A row says whether the block is indexed, its summary, and where its payload lies. Damage here costs time, never an
answer: a file that is missing or corrupt reads as "not indexed", with the reason. Knows no index.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_storage.errors import StorageError
from fuse_storage.lazy import cached_property
from fuse_storage.metadata.file_ref import FileRef
from fuse_storage.metadata.metadata_table import ColumnGroup, IndexArray, MetadataRows, column_as_array, column_as_int64
from fuse_storage.metadata.pack import PackSlice, UnreadablePack
from fuse_storage.store.shared_files import resolve_store
from fuse_storage.store.store import Store

_SUMMARY_COLUMNS: ColumnGroup = ("indexed", "version", "summary")
_PAYLOAD_COLUMNS: ColumnGroup = ("pack", "offset", "length", "chunk", "pack_length")

SIDECAR_COLUMN_TYPES = {
    "indexed": pa.bool_(),
    "version": pa.int32(),
    "pack": pa.string(),  # null: no payload
    "offset": pa.int64(),
    "length": pa.int64(),
    "chunk": pa.int32(),
    "pack_length": pa.int64(),
}
"""Columns of an ``_x`` file, besides the summary, whose type is the index's."""


def sidecar_path(segment: str, key: str, file_id: str) -> str:
    return f"_x/{segment}/{key}-{file_id}.parquet"


def pack_path(key: str, pack_id: str) -> str:
    return f"_i/{key}/{pack_id}"


def unindexed_rows(rows: int, summary_type: pa.DataType) -> pa.Table:
    """Rows of an ``_x`` file for blocks that are not indexed."""
    columns = {name: pa.nulls(rows, data_type) for name, data_type in SIDECAR_COLUMN_TYPES.items()}
    columns |= {"indexed": pa.array(np.zeros(rows, bool)), "summary": pa.nulls(rows, summary_type)}
    return pa.table(columns)


@dataclass(frozen=True, slots=True)
class StagedSidecars:
    """The ``_x`` file of one segment, written but not committed. Small and picklable.

    ``segment``: the segment's id. ``indexed``: how many of its blocks are. ``row``: what the list is to say of it,
    packed.
    """

    segment: str
    key: str
    reference: FileRef
    indexed: int
    row: bytes


class SidecarRows:
    """What one index knows of some blocks. ``error``: why some of it cannot be read, None if all can.

    ``shares_files``: packs may lie in other tables.
    """

    def __init__(
        self, rows: MetadataRows, shares_files: bool, found: pa.Table | None = None, error: str | None = None
    ) -> None:
        self._rows, self._shares_files = rows, shares_files
        self.error = error
        if found is None:
            found, self.error = _read_or_null(rows, _SUMMARY_COLUMNS)
        self._columns = found
        self._files: dict[str, tuple[Store, str]] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, indices: IndexArray) -> SidecarRows:
        """Choose those of the blocks at these positions, in this order. ``indices``: int64, shape (k,)."""
        indices = np.asarray(indices, np.int64)
        found = self._columns.take(pa.array(indices))
        return SidecarRows(self._rows.take(indices), self._shares_files, found, self.error)

    @cached_property
    def summaries(self) -> pa.Array:
        """One value per block, null where it is not indexed."""
        return column_as_array(self._columns, "summary")

    @cached_property
    def indexed(self) -> npt.NDArray[np.bool_]:
        """Whether each block is indexed: bool, shape (n,)."""
        return np.asarray(pc.fill_null(self._columns.column("indexed"), False).to_numpy(), bool)

    @cached_property
    def versions(self) -> IndexArray:
        """By which version of its kind each was built, -1 where it is not indexed: int64, shape (n,)."""
        return column_as_int64(self._columns, "version", -1)

    @property
    def sizes(self) -> IndexArray:
        """Bytes of each payload, 0 without one: int64, shape (n,)."""
        return column_as_int64(self._spans, "length")

    def payload(self, block: int) -> PackSlice | None:
        """The payload of block number ``block``; None if it has none.

        Does not read, and raises StorageError for one that cannot be where it is said to be.
        """
        pack, offset, length, chunk, pack_length = self._places[block]
        if pack is None:
            return None
        store, key = self._file_of(pack)
        return PackSlice(store, key, chunk, pack_length, (offset, length))

    def read_payloads(self) -> list[bytes | None]:
        """Read all payloads, those of a pack together; None where there is none. Raises as ``PackSlice.read``."""
        found: list[bytes | None] = [None] * len(self)
        offsets, lengths = self.spans
        for pack, members in self._packs:
            payloads = pack.read_spans(offsets[members], lengths[members])
            for block, payload in zip(members.tolist(), payloads, strict=True):
                found[block] = payload
        return found

    @cached_property
    def _places(self) -> list[tuple[Any, ...]]:
        """Pack, offset, length, chunk and length of the pack, of each block."""
        return list(zip(*(self._spans.column(name).to_pylist() for name in _PAYLOAD_COLUMNS), strict=True))

    def _file_of(self, pack: str) -> tuple[Store, str]:
        """The store and key of a pack. Raises StorageError for one that cannot be where it is said to be."""
        if pack not in self._files:
            self._files[pack] = resolve_store(self._rows.store, pack, self._shares_files)
        return self._files[pack]

    def packs(self) -> list[tuple[PackSlice, IndexArray]]:
        """Group payloads by pack: each pack, as a slice that is all of it, and the blocks whose payloads lie in it.

        The blocks are int64, shape (k,), positions in this frame; ``spans`` says where in the pack each payload lies.
        A pack that cannot be located is one that raises when it is read.
        """
        return self._packs

    @cached_property
    def _packs(self) -> list[tuple[PackSlice, IndexArray]]:
        codes = column_as_array(self._spans, "pack").dictionary_encode()
        numbers = pc.fill_null(codes.indices, -1).to_numpy()
        chunks, lengths = (self._spans.column(name) for name in ("chunk", "pack_length"))
        found = []
        for number, key in enumerate(codes.dictionary.to_pylist()):
            members = np.flatnonzero(numbers == number)
            first = int(members[0])
            found.append((self._whole_pack(key, chunks[first].as_py(), lengths[first].as_py()), members))
        return found

    def _whole_pack(self, pack: str, chunk: int, length: int) -> PackSlice:
        try:
            store, key = self._file_of(pack)
            return PackSlice(store, key, chunk, length)
        except StorageError as problem:
            return UnreadablePack(self._rows.store, problem)

    @property
    def spans(self) -> tuple[IndexArray, IndexArray]:
        """Offset and length of each payload in its pack, 0 where there is none: two of int64, shape (n,)."""
        return column_as_int64(self._spans, "offset"), column_as_int64(self._spans, "length")

    @cached_property
    def _spans(self) -> pa.Table:
        found, error = _read_or_null(self._rows, _PAYLOAD_COLUMNS)
        self.error = self.error or error
        return found


def _read_or_null(rows: MetadataRows, group: ColumnGroup) -> tuple[pa.Table, str | None]:
    """Read columns, one row for each block, null where there is nothing; and the first problem, if there was any."""
    found = rows.read([group])
    problems = [str(problem) for problem in found if isinstance(problem, StorageError)]
    tables = [tables[0] if isinstance(tables, list) else None for tables in found]
    kinds = {name: data_type for name, data_type in SIDECAR_COLUMN_TYPES.items() if name in group}
    if "summary" in group:
        kinds["summary"] = next(
            (table.schema.field("summary").type for table in tables if table is not None), pa.null()
        )
    whole = []
    for number, (table, count) in enumerate(zip(tables, rows.file_row_counts.tolist(), strict=True)):
        if table is not None and {field.name: field.type for field in table.schema} == kinds:
            whole.append(table.select(list(kinds)))
            continue
        if table is not None:
            part = rows.metadata_files[number]
            problems.append(f"{rows.store.url}/{part.reference.path if part else ''} has other columns than its like")
        whole.append(pa.table({name: pa.nulls(count, data_type) for name, data_type in kinds.items()}))
    merged = (
        pa.concat_tables(whole)
        if whole
        else pa.table({name: pa.nulls(0, data_type) for name, data_type in kinds.items()})
    )
    places = rows.stacked_indices
    return merged.combine_chunks() if places is None else merged.take(pa.array(places)), _summarize_problems(problems)


def _summarize_problems(problems: Sequence[str]) -> str | None:
    if len(problems) < 2:
        return problems[0] if problems else None
    return f"{problems[0]}; and {len(problems) - 1} more such files"
