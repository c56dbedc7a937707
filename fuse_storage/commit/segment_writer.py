"""Rows into staged segments: blocks are cut, stored and indexed in one pass, and nothing of it is visible yet.

While two blocks are being written and indexed by threads, rows of the next are taken in; so at most three blocks of
rows are in memory, or two and ``sort_bytes`` in a partitioned table, besides what the indexes build. Knows no snapshot:
a transaction commits what is staged here.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from fuse_storage import statistics
from fuse_storage.commit.sidecar_writer import DEFAULT_PACK_BYTES, SidecarBuilder, SidecarWriter
from fuse_storage.errors import InvalidArgument, StorageError
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.encoding import utc_now
from fuse_storage.metadata.file_ref import FileRef, create_file, new_id
from fuse_storage.metadata.pack import Sidecar
from fuse_storage.metadata.segment import (
    BLOCK_SCHEMA,
    MAX_BLOCKS_PER_SEGMENT,
    StagedSegment,
    block_columns,
    block_path,
    segment_path,
    zones_path,
)
from fuse_storage.metadata.segment_list import segment_row, with_columns
from fuse_storage.parquet.column_encoding import COMPRESSIONS, ENCODINGS
from fuse_storage.parquet.writer import BlockLayout, BlockOptions, write_block
from fuse_storage.partitions.block_buffers import MAX_PARTITIONS_PER_WRITE, BlockBuffers
from fuse_storage.partitions.spec import PartitionSpec
from fuse_storage.schema.conform import conform_rows
from fuse_storage.schema.schema import Schema
from fuse_storage.statistics import ColumnStatistics
from fuse_storage.store.store import Store

_CHOICES = {"compression": COMPRESSIONS, "encoding": ENCODINGS}
"""Options that are words, and those that there are."""

_MAX_BLOCKS_UNDER_WAY = 2
"""Blocks that are written and indexed at once, by as many threads."""
_DEFAULT_BLOCK_ROWS = 1_000_000
_DEFAULT_BLOCK_BYTES = 128 << 20
"""Bytes of a block's rows in memory, uncompressed."""
_DEFAULT_SORT_BYTES = 256 << 20
"""Bytes of rows in memory that are sorted by the clustering key at a time, or wait for blocks of their partitions."""


@dataclass(frozen=True, slots=True)
class WriteOptions(BlockOptions):
    """How rows are written: how large things become, and how blocks are; a table's properties of these names set it."""

    block_rows: int = _DEFAULT_BLOCK_ROWS
    block_bytes: int = _DEFAULT_BLOCK_BYTES
    segment_blocks: int = MAX_BLOCKS_PER_SEGMENT
    pack_bytes: int = DEFAULT_PACK_BYTES
    sort_bytes: int = _DEFAULT_SORT_BYTES
    max_partitions: int = MAX_PARTITIONS_PER_WRITE

    @staticmethod
    def from_properties(properties: Mapping[str, Any], **options: Any) -> WriteOptions:
        """A table's options, some of them replaced. Raises InvalidArgument for one that is unknown or cannot be."""
        names = WriteOptions.__dataclass_fields__
        if unknown := sorted(set(options) - set(names)):
            raise InvalidArgument(f"{unknown[0]!r} is no limit of a writer: there are {', '.join(names)}")
        chosen = {name: value for name, value in properties.items() if name in names} | options
        for name, value in chosen.items():
            if name in _CHOICES:
                if value not in _CHOICES[name]:
                    raise InvalidArgument(f"{name} = {value!r}: it must be one of {', '.join(_CHOICES[name])}")
            elif name == "compression_level":
                if not isinstance(value, int) or not 1 <= value <= 22:
                    raise InvalidArgument(f"compression_level = {value!r}: it must be a whole number from 1 to 22")
            elif not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InvalidArgument(f"{name} = {value!r}: it must be a whole number above 0")
        return WriteOptions(**chosen)


@dataclass
class _StoredBlock:
    """A block that is there. ``location``: the key of its file, where that is not the one that its id gives.

    ``partition``: the text of the one that its rows are of.
    """

    id: str
    layout: BlockLayout
    location: str | None = None
    partition: str | None = None


@dataclass
class _BlockJob:
    """One block on its way."""

    stored: Future[_StoredBlock]
    sidecars: list[Future[Sidecar | None]]


@dataclass
class SegmentWriter:
    """Takes rows, gives staged segments. Used by one thread; ``with`` it, or ``abort`` it, if it may fail.

    ``level``: how often these rows have been rewritten to be clustered. ``partitions``: what no block mixes values of.
    """

    store: Store
    schema: Schema
    builders: Sequence[SidecarBuilder] = ()
    options: WriteOptions = field(default_factory=WriteOptions)
    level: int = 0
    partitions: PartitionSpec | None = None

    def __post_init__(self) -> None:
        self._started = utc_now()
        self._threads: ThreadPoolExecutor | None = None
        self._jobs: deque[_BlockJob] = deque()
        self._buffers = BlockBuffers(self.partitions, self.options)
        self._block_count = 0
        self._blocks: list[_StoredBlock] = []
        self._reusable: dict[tuple[str, int], list[str]] = {}
        self._writers = [SidecarWriter(self.store, builder, self.options.pack_bytes) for builder in self.builders]
        self._written: list[str] = []
        self._staged: list[tuple[str, pa.Table, int, int]] = []
        self._finished = False

    def write(self, rows: pa.Table | pa.RecordBatch) -> None:
        """Take these rows, matched to columns by name. Raises SchemaError, StorageError or whatever an index raises."""
        if self._finished:
            raise StorageError("this writer has finished: take another for more rows")
        for block_rows, partition in self._buffers.add(conform_rows(rows, self.schema)):
            self._start_block(block_rows, partition)

    def reuse_files(self, files: Iterable[FileRef]) -> None:
        """Name these files of the table, each at most once, where a block of the very same bytes would be written.

        Whoever says so sees to it that the rows in them are no other block's by the time these are committed.
        """
        for file in files:
            self._reusable.setdefault((file.hash, file.length), []).append(file.path)

    @property
    def block_count(self) -> int:
        """The number of blocks that were begun."""
        return self._block_count

    def end_block(self) -> None:
        """End the block here: rows that follow are in another."""
        for block_rows, partition in self._buffers.drain():
            self._start_block(block_rows, partition)

    def finish(self) -> list[StagedSegment]:
        """Write what is left; everything staged is then the transaction's to commit."""
        self.end_block()
        while self._jobs:
            self._collect_block()
        self._end_segment()
        self._finished = True
        staged_sidecars = {
            (sidecars.segment, sidecars.key): sidecars for writer in self._writers for sidecars in writer.finish()
        }
        self._close()
        segments = []
        for segment_id, row, row_count, block_count in self._staged:
            for builder in self.builders:
                if (sidecars := staged_sidecars.get((segment_id, builder.key))) is not None:
                    row = with_columns(row, sidecars.row)
            segments.append(StagedSegment(segment_id, self.schema.id, row_count, block_count, self._started, row))
        return segments

    def abort(self) -> None:
        """Delete what was written, as far as that is safe: after ``finish`` it may be committed, and nothing is."""
        if not self._finished:
            self._finished = True
            self._close()
            self.store.delete(self._written)
            for writer in self._writers:
                writer.abort()

    def _start_block(self, rows: pa.Table, partition: str | None) -> None:
        if len(self._jobs) == _MAX_BLOCKS_UNDER_WAY:
            self._collect_block()
        self._block_count += 1
        self._jobs.append(self._submit_block(rows, partition))

    def _submit_block(self, rows: pa.Table, partition: str | None) -> _BlockJob:
        rows = rows.combine_chunks()
        zones = np.append(np.arange(0, len(rows), self.options.zone_rows), len(rows))
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_MAX_BLOCKS_UNDER_WAY, "fuse-write")
        sidecars = [
            self._threads.submit(builder.build, rows.select(list(builder.columns)), zones) for builder in self.builders
        ]
        return _BlockJob(self._threads.submit(self._store_block, new_id(), rows, partition), sidecars)

    def _store_block(self, block_id: str, rows: pa.Table, partition: str | None) -> _StoredBlock:
        data, layout = write_block(rows, self.schema, self.options)
        if self.partitions is not None:
            layout = self.partitions.with_whole_bounds(layout, rows)
        with suppress(LookupError):  # one thread takes a file, and no other
            return _StoredBlock(block_id, layout, self._reusable[layout.hash, layout.size].pop(), partition)
        self._written.append(block_path(block_id))
        self.store.create(block_path(block_id), data)
        return _StoredBlock(block_id, layout, partition=partition)

    def _collect_block(self) -> None:
        """Wait for the oldest block on its way, and take its sidecars."""
        job = self._jobs.popleft()
        self._blocks.append(job.stored.result())
        for writer, sidecar in zip(self._writers, job.sidecars, strict=True):
            writer.add(sidecar.result())
        if len(self._blocks) >= self.options.segment_blocks:
            self._end_segment()

    def _end_segment(self) -> None:
        if not self._blocks:
            return
        segment_id, layouts = new_id(), [block.layout for block in self._blocks]
        table = _block_table(self._blocks, self.schema, self.level)
        # of one block, the list's row says as much as its own
        segment = self._create(segment_path(segment_id), table if len(table) > 1 else block_columns(table))
        is_zoned = any(len(layout.zone_rows) > 1 for layout in layouts)  # else the rows of the blocks tell as much
        zones = self._create(zones_path(segment_id), _zone_table(layouts, self.schema)) if is_zoned else None
        for writer in self._writers:
            writer.end_segment(segment_id)
        rows_staged = sum(layout.row_count for layout in layouts)
        row = segment_row(segment_id, segment, zones, table, self.schema)
        self._staged.append((segment_id, row, rows_staged, len(layouts)))
        self._blocks = []

    def _create(self, path: str, rows: pa.Table) -> FileRef:
        self._written.append(path)
        return create_file(self.store, path, metadata_table.encode_metadata(rows))

    def _close(self) -> None:
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(self, *raised: object) -> None:
        if raised[0] is not None:
            self.abort()
        self._close()


def _block_table(blocks: Sequence[_StoredBlock], schema: Schema, level: int = 0) -> pa.Table:
    """Make the rows of a segment with these new blocks."""
    layouts = [block.layout for block in blocks]
    known: dict[str, list[Any]] = {
        "id": [block.id for block in blocks],
        "location": [block.location for block in blocks],
        "format": ["parquet"] * len(layouts),
        "row_count": [layout.row_count for layout in layouts],
        "live_rows": [layout.row_count for layout in layouts],
        "stats_exact": [True] * len(layouts),
        "size": [layout.size for layout in layouts],
        "hash": [layout.hash for layout in layouts],
        "footer_offset": [layout.footer_offset for layout in layouts],
        "footer_length": [layout.footer_length for layout in layouts],
        "seal": [layout.seal for layout in layouts],
        "zone_rows": [list(layout.zone_rows) for layout in layouts],
        "zone_sizes": [list(layout.zone_sizes) for layout in layouts],
        "schema_id": [schema.id] * len(layouts),
        "level": [level] * len(layouts),
        "partition": [block.partition for block in blocks],
    }
    columns = {field.name: pa.array(known.get(field.name, [None] * len(layouts)), field.type) for field in BLOCK_SCHEMA}
    return pa.table(columns | _statistics_arrays([layout.block_statistics for layout in layouts], schema))


def _zone_table(layouts: Sequence[BlockLayout], schema: Schema) -> pa.Table:
    """Make the rows of a zones file: statistics of each zone, block after block."""
    rows = pa.array([rows for layout in layouts for rows in layout.zone_rows], pa.int64())
    return pa.table({"row_count": rows} | _statistics_arrays([layout.zone_statistics for layout in layouts], schema))


def _statistics_arrays(units: Sequence[Mapping[int, ColumnStatistics]], schema: Schema) -> dict[str, pa.Array]:
    """Put statistics by column id, one mapping for each unit, under the names of their columns in metadata."""
    columns: dict[str, pa.Array] = {}
    for _, leaf in schema.leaves():
        found = ColumnStatistics.concat([unit[leaf.id] for unit in units])
        columns |= statistics.encode_statistics(leaf.id, found, sparse=True)
    return columns
