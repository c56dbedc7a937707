"""Metadata in columns: Parquet files of one row group, of which usually one or two columns are asked for.

A file is read whole, because only then its checksum can be verified; what is kept of it in memory are the columns that
were asked for. Knows nothing of what the columns mean.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from threading import BoundedSemaphore
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fuse_storage.errors import Corrupt, FormatError, StorageError
from fuse_storage.lazy import cached_property
from fuse_storage.metadata.file_ref import FileRef, read_verified
from fuse_storage.statistics import chunked_to_array
from fuse_storage.store.cache import Cache, cache_of
from fuse_storage.store.store import Store
from fuse_storage.validation.decoded_size import check_decoded_size

METADATA_READ_THREADS = 8
"""Files that are read at once: stores far away answer late. No more are decoded at once than there are processors:
threads that take turns take a third longer.
"""

_MAX_PLAIN_BYTES = 128
"""Up to so many bytes a column, as sixteen numbers have, files are not compressed: each column would pay for a codec.

Of 3,600 columns of one row, writing takes 48 ms rather than 70, and 0.93 of the bytes; of sixteen rows 54 ms rather
than 86, and 1.3 times the bytes.
"""

STATISTICS_PREFIX = "c."
"""What names of columns of statistics begin with."""

_TABLE_BYTES = 20_000
"""What a table takes in memory besides its values."""

IndexArray = npt.NDArray[np.int64]
ColumnGroup = tuple[str, ...]
"""Names of columns that are asked for together, and kept together."""


@dataclass(frozen=True, slots=True)
class MetadataFile:
    """A metadata file, and how many rows it must have. ``check``: raises ValueError for rows that cannot be.

    ``rows``: where they are known already, and no file is read; the path is then a name that no other rows have.
    ``beside``: a table and the number of its row that has the columns of statistics which the file lacks.
    """

    reference: FileRef
    row_count: int
    check: Callable[[pa.Table], None] = lambda rows: None
    rows: pa.Table | None = None
    beside: tuple[pa.Table, int] | None = field(default=None, compare=False)

    def completed(self, rows: pa.Table, names: Sequence[str] | None) -> pa.Table:
        """Rows of the file with the statistics, of these names, that another table has in its place."""
        if self.beside is None or any(name.startswith(STATISTICS_PREFIX) for name in rows.schema.names):
            return rows
        table, row = self.beside
        if names is None:
            found = [at for at, name in enumerate(table.schema.names) if name.startswith(STATISTICS_PREFIX)]
        else:
            places = (table.schema.get_field_index(name) for name in names if name.startswith(STATISTICS_PREFIX))
            found = [at for at in places if at >= 0]
        if not found:
            return rows
        more = table.select(found).slice(row, 1)  # by number: by name it takes three times as long
        return pa.Table.from_arrays([*rows.columns, *more.columns], names=[*rows.schema.names, *more.schema.names])


def encode_metadata(table: pa.Table, keep_arrow_types: bool = False) -> bytes:
    """Write the file that holds these rows.

    ``keep_arrow_types``: keep also types that Parquet itself does not tell apart.
    """
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        row_group_size=max(table.num_rows, 1),
        compression="zstd" if table.get_total_buffer_size() > _MAX_PLAIN_BYTES * table.num_columns else "none",
        use_dictionary=False,
        write_statistics=False,
        write_page_checksum=True,
        store_schema=keep_arrow_types,
    )
    return bytes(sink.getvalue())


def has_column(rows: pa.Table, name: str) -> bool:
    """Whether there is such a column: its ``column_names`` are made anew each time they are asked for, 1 µs each."""
    return bool(rows.schema.get_field_index(name) >= 0)


def read_column_groups(
    store: Store,
    part: MetadataFile,
    groups: Sequence[ColumnGroup],
    cache: Cache | None = None,
    decoding: AbstractContextManager[Any] | None = None,
) -> list[pa.Table]:
    """Read the columns that the file has of each group, decoded within ``decoding``.

    Raises NotFound, Corrupt, FormatError or StorageError.
    """
    cache = cache_of(store) if cache is None else cache
    found = _cached_column_groups(store, part, groups, cache)
    missing = [group for group, kept in zip(groups, found, strict=True) if kept is None]
    loaded = {}
    if missing:
        rows = _load_columns(store, part, [name for group in missing for name in group], decoding)
        held = rows.schema.names
        for group in missing:
            loaded[group] = own = rows.select([name for name in held if name in group])
            cache.put(_cache_key(store, part, group), own, own.get_total_buffer_size() + 2000)
    return [
        part.completed(loaded[group] if kept is None else kept, group)
        for group, kept in zip(groups, found, strict=True)
    ]


def _cached_column_groups(
    store: Store, part: MetadataFile, groups: Sequence[ColumnGroup], cache: Cache
) -> list[pa.Table | None]:
    """Cached tables per column group, as they are in the file; None where a group is not cached."""
    return [cache.find(_cache_key(store, part, group)) for group in groups]


def _cache_key(store: Store, part: MetadataFile, group: ColumnGroup | None) -> tuple[Any, ...]:
    return ("columns", store.url, part.reference.path, group)


def read_all_columns(store: Store, part: MetadataFile, cache: Cache | None = None) -> pa.Table:
    """Read all columns. Raises as ``read_column_groups`` does."""
    rows = (cache_of(store) if cache is None else cache).get_or_load(
        _cache_key(store, part, None),
        lambda: _load_columns(store, part, None).combine_chunks(),
        lambda rows: rows.get_total_buffer_size() + _TABLE_BYTES,
    )
    return part.completed(rows, None)


def keep_all_columns(store: Store, reference: FileRef, rows: pa.Table) -> None:
    """Keep the rows of a file that was just written, each column in one piece, as if it had been read whole."""
    key = _cache_key(store, MetadataFile(reference, len(rows)), None)
    cache_of(store).put(key, rows, rows.get_total_buffer_size() + _TABLE_BYTES)


def _load_columns(
    store: Store, part: MetadataFile, names: list[str] | None, decoding: AbstractContextManager[Any] | None = None
) -> pa.Table:
    if part.rows is not None:
        return part.rows.select([name for name in part.rows.schema.names if names is None or name in names])
    data = read_verified(store, part.reference)
    with decoding or nullcontext():
        return _decode_columns(data, f"{store.url}/{part.reference.path}", part, names)


def _decode_columns(data: bytes, where: str, part: MetadataFile, names: list[str] | None) -> pa.Table:
    limits = {"thrift_string_size_limit": len(data) + 1, "thrift_container_size_limit": len(data) + 1}
    try:
        with pq.ParquetFile(pa.BufferReader(data), pre_buffer=False, **limits) as file:
            if (count := file.metadata.num_rows) != part.row_count:
                raise Corrupt(f"{where} has {count} rows, and should have {part.row_count}")
            check_decoded_size(memoryview(data), file, names)
            rows = file.read(columns=names, use_threads=False)  # passes over names that the file lacks
        if len(rows) != count:
            raise ValueError(f"{len(rows)} rows are in it, and it says {count}")
        rows.validate(full=True)
        part.check(rows)
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError, RecursionError, OverflowError) as problem:
        raise FormatError(f"{where} is not a table of metadata: {problem!r}") from problem
    return rows


@dataclass(frozen=True)
class MetadataRows:
    """Some rows of several files, as if they stood in one table.

    Row i is row ``positions[i]`` of ``metadata_files[file_indices[i]]``: both int64, shape (n,). ``file_row_counts``:
    int64, shape (files,), the rows of each. A file that is None does not exist.
    """

    store: Store
    metadata_files: tuple[MetadataFile | None, ...]
    file_row_counts: IndexArray
    file_indices: IndexArray
    positions: IndexArray

    @staticmethod
    def all_rows(store: Store, parts: Sequence[MetadataFile | None], counts: IndexArray) -> MetadataRows:
        """Choose all rows of all parts, in order. ``counts``: int64, shape (parts,), the rows of each."""
        starts = counts_to_offsets(counts)
        positions = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
        return MetadataRows(store, tuple(parts), counts, np.repeat(np.arange(len(parts)), counts), positions)

    def __len__(self) -> int:
        return len(self.file_indices)

    def take(self, indices: IndexArray) -> MetadataRows:
        """Choose the rows at these positions, in this order; parts that have none of them are dropped.

        ``indices``: int64, shape (k,).
        """
        used, files = np.unique(self.file_indices[indices], return_inverse=True)
        parts = tuple(self.metadata_files[part] for part in used)
        return MetadataRows(
            self.store, parts, self.file_row_counts[used], files.astype(np.int64), self.positions[indices]
        )

    def read(
        self, groups: Sequence[ColumnGroup], cache: Cache | None = None
    ) -> list[list[pa.Table] | StorageError | None]:
        """For each part, the tables of these groups, or why they cannot be read, or None if it has no file."""
        used_cache = cache_of(self.store) if cache is None else cache
        decoding = BoundedSemaphore(os.cpu_count() or 1)

        def attempt(part: MetadataFile) -> list[pa.Table] | StorageError:
            try:
                return read_column_groups(self.store, part, groups, used_cache, decoding)
            except StorageError as problem:
                return problem

        parts = {number: part for number, part in enumerate(self.metadata_files) if part is not None}
        found: dict[int, list[pa.Table] | StorageError] = {}
        for number, part in parts.items():
            known = _cached_column_groups(self.store, part, groups, used_cache)
            if not any(one is None for one in known):
                found[number] = [part.completed(one, group) for one, group in zip(known, groups, strict=True)]
        missing = [number for number in parts if number not in found]
        if len(missing) == 1:  # to start a thread takes longer than to find all of a small plan in memory
            found[missing[0]] = attempt(parts[missing[0]])
        elif missing:
            with ThreadPoolExecutor(min(METADATA_READ_THREADS, len(missing)), "fuse-columns") as pool:
                found |= zip(missing, pool.map(attempt, (parts[number] for number in missing)), strict=True)
        return [found.get(number) for number in range(len(self.metadata_files))]

    @cached_property
    def stacked_indices(self) -> IndexArray | None:
        """Where these rows are among all rows of the parts: int64, shape (n,); None if they are just those."""
        starts = np.cumsum(self.file_row_counts) - self.file_row_counts
        places: IndexArray = starts[self.file_indices] + self.positions
        return None if np.array_equal(places, np.arange(int(self.file_row_counts.sum()))) else places


def column_as_array(table: pa.Table, name: str) -> pa.Array:
    """A column as one array."""
    return chunked_to_array(table.column(name))


def column_as_int64(table: pa.Table, name: str, null: int = 0) -> IndexArray:
    """Read a column of numbers as int64, shape (rows,), with ``null`` for NULL."""
    return np.asarray(pc.fill_null(table.column(name), null).to_numpy(), np.int64)


def list_lengths(table: pa.Table, name: str) -> IndexArray:
    """The length of each list in a column: int64, shape (rows,); -1 of those that are null."""
    return np.asarray(pc.fill_null(pc.list_value_length(column_as_array(table, name)), -1).to_numpy(), np.int64)


def counts_to_offsets(counts: IndexArray) -> IndexArray:
    """Add counts, int64, shape (n,), up to offsets, int64, shape (n + 1,): where each begins, and where all end.

    >>> counts_to_offsets(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int64)


def ranges_to_indices(starts: IndexArray, counts: IndexArray) -> IndexArray:
    """The members of several ranges, one range after the other.

    ``starts`` and ``counts``: int64, one element a range. Returns int64, shape (sum of ``counts``,).

    >>> ranges_to_indices(np.array([10, 7, 3]), np.array([2, 0, 3])).tolist()
    [10, 11, 3, 4, 5]
    """
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    indices: IndexArray = np.arange(total, dtype=np.int64) + np.repeat(starts - (ends - counts), counts)
    return indices
