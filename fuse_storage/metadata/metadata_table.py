"""Metadata in columns: Parquet files of one row group, of which usually one or two columns are asked for.

A file is read whole, because only then its checksum can be verified; what is kept of it in memory are the columns that
were asked for. Knows nothing of what the columns mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from fuse_storage.errors import Corrupt, FormatError, StorageError
from fuse_storage.metadata.file_ref import Reference, read_verified
from fuse_storage.store.cache import Cache, shared
from fuse_storage.store.store import Store

THREADS = 8
"""Files that are read at once: half of the time is decompression, which the cores share, the other half is waiting."""

Indices = npt.NDArray[np.int64]
Group = tuple[str, ...]
"""Names of columns that are asked for together, and kept together."""


@dataclass(frozen=True, slots=True)
class Part:
    """A metadata file, and how many rows it must have."""

    reference: Reference
    rows: int


def encode(table: pa.Table, any_types: bool = False) -> bytes:
    """The file that holds these rows. ``any_types``: also types that Parquet itself does not tell apart."""
    sink = pa.BufferOutputStream()
    pq.write_table(
        table,
        sink,
        row_group_size=max(table.num_rows, 1),
        compression="zstd",
        use_dictionary=False,
        write_statistics=False,
        write_page_checksum=True,
        store_schema=any_types,
    )
    return bytes(sink.getvalue())


def has(rows: pa.Table, name: str) -> bool:
    """Whether there is such a column: its ``column_names`` are made anew each time they are asked for, 1 µs each."""
    return bool(rows.schema.get_field_index(name) >= 0)


def read(store: Store, part: Part, groups: Sequence[Group], cache: Cache = shared) -> list[pa.Table]:
    """Of each group, the columns that the file has. Raises NotFound, Corrupt, FormatError or StorageError."""
    found = recalled(store, part, groups, cache)
    missing = [group for group, kept in zip(groups, found, strict=True) if kept is None]
    if not missing:
        return found
    rows = _columns(store, part, [name for group in missing for name in group])
    held = rows.column_names
    loaded = {}
    for group in missing:
        loaded[group] = own = rows.select([name for name in held if name in group])
        cache.put(_name(store, part, group), own, own.get_total_buffer_size() + 2000)
    return [loaded[group] if kept is None else kept for group, kept in zip(groups, found, strict=True)]


def recalled(store: Store, part: Part, groups: Sequence[Group], cache: Cache) -> list[pa.Table | None]:
    """Of each group what is in memory, None where nothing is."""
    return [cache.find(_name(store, part, group)) for group in groups]


def _name(store: Store, part: Part, group: Group | None) -> tuple[Any, ...]:
    return ("columns", store.url, part.reference.path, group)


def read_whole(store: Store, part: Part, cache: Cache = shared) -> pa.Table:
    """All columns. Raises as ``read`` does."""
    return cache.get(
        _name(store, part, None),
        lambda: _columns(store, part, None).combine_chunks(),
        lambda rows: rows.nbytes + 20_000,
    )


def _columns(store: Store, part: Part, names: list[str] | None) -> pa.Table:
    data = read_verified(store, part.reference)
    where = f"{store.url}/{part.reference.path}"
    try:
        with pq.ParquetFile(pa.BufferReader(data), pre_buffer=False) as file:
            count = file.metadata.num_rows
            rows = file.read(columns=names, use_threads=False)  # passes over names that the file lacks
    except (pa.ArrowException, OSError) as problem:
        raise FormatError(f"{where} is not a table of metadata: {problem}") from problem
    if count != part.rows:
        raise Corrupt(f"{where} has {count} rows, and should have {part.rows}")
    return rows


@dataclass(frozen=True)
class Rows:
    """Some rows of several files, as if they stood in one table.

    Row i is row ``positions[i]`` of ``parts[files[i]]``; ``counts[k]`` is the number of rows of part k. A part that is
    None has no file.
    """

    store: Store
    parts: tuple[Part | None, ...]
    counts: Indices
    files: Indices
    positions: Indices

    @staticmethod
    def whole(store: Store, parts: Sequence[Part | None], counts: Indices) -> Rows:
        """All rows of all parts, in order."""
        starts = offsets(counts)
        positions = np.arange(starts[-1]) - np.repeat(starts[:-1], counts)
        return Rows(store, tuple(parts), counts, np.repeat(np.arange(len(parts)), counts), positions)

    def __len__(self) -> int:
        return len(self.files)

    def take(self, indices: Indices) -> Rows:
        """The rows at these positions, in this order; parts that have none of them are dropped."""
        used, files = np.unique(self.files[indices], return_inverse=True)
        parts = tuple(self.parts[part] for part in used)
        return Rows(self.store, parts, self.counts[used], files.astype(np.int64), self.positions[indices])

    def read(self, groups: Sequence[Group], cache: Cache = shared) -> list[list[pa.Table] | StorageError | None]:
        """For each part, the tables of these groups, or why they cannot be read, or None if it has no file."""

        def attempt(part: Part) -> list[pa.Table] | StorageError:
            try:
                return read(self.store, part, groups, cache)
            except StorageError as problem:
                return problem

        parts = {number: part for number, part in enumerate(self.parts) if part is not None}
        found: dict[int, list[pa.Table] | StorageError] = {}
        for number, part in parts.items():
            known = recalled(self.store, part, groups, cache)
            if not any(one is None for one in known):
                found[number] = known
        missing = [number for number in parts if number not in found]
        if len(missing) == 1:  # to start a thread takes longer than to find all of a small plan in memory
            found[missing[0]] = attempt(parts[missing[0]])
        elif missing:
            with ThreadPoolExecutor(min(THREADS, len(missing)), "fuse-columns") as pool:
                found |= zip(missing, pool.map(attempt, (parts[number] for number in missing)), strict=True)
        return [found.get(number) for number in range(len(self.parts))]

    @cached_property
    def indices(self) -> Indices | None:
        """Where these rows are among all rows of the parts, in order; None if they are just those."""
        starts = np.cumsum(self.counts) - self.counts
        places: Indices = starts[self.files] + self.positions
        return None if np.array_equal(places, np.arange(int(self.counts.sum()))) else places


def flat(table: pa.Table, name: str) -> pa.Array:
    """A column as one array."""
    found = table.column(name).combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


def numbers(table: pa.Table, name: str, null: int = 0) -> Indices:
    """A column of numbers, with ``null`` for NULL."""
    return np.asarray(pc.fill_null(table.column(name), null).to_numpy(), np.int64)


def offsets(counts: Indices) -> Indices:
    """Where each of so many begins, and at last where all end."""
    return np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
