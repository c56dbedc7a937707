"""Rows on their way into blocks: cut where a block is full, and, in a partitioned table, never mixed.

Of a partitioned table a buffer for each partition waits for a block's worth of rows. Together they hold at most
``sort_bytes``: beyond, the largest become blocks as they are. So rows may come in any order, in bounded memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import pyarrow as pa

from fuse_storage.errors import InvalidArgument
from fuse_storage.partitions.spec import PartitionSpec

MAX_PARTITIONS_PER_WRITE = 1000
"""Partitions that one write may bring rows of: each is a file at least."""

BlockRows = tuple[pa.Table, str | None]
"""The rows of a block, and the text of their partition; None in a table without."""


class BlockLimits(Protocol):
    """How large blocks become, how much waits, and how many partitions one write may have."""

    @property
    def block_rows(self) -> int: ...
    @property
    def block_bytes(self) -> int: ...
    @property
    def zone_rows(self) -> int: ...
    @property
    def sort_bytes(self) -> int: ...
    @property
    def max_partitions(self) -> int: ...


@dataclass
class _RowBuffer:
    """The rows of one partition that wait for their block to be full."""

    tables: list[pa.Table] = field(default_factory=list)
    rows: int = 0
    bytes: int = 0

    def add(self, table: pa.Table) -> None:
        self.tables.append(table)
        self.rows += table.num_rows
        self.bytes += table.nbytes

    def take(self, size: int) -> pa.Table:
        """Take out the first rows, so many."""
        table = pa.concat_tables(self.tables)
        if size >= table.num_rows:
            self.tables, self.rows, self.bytes = [], 0, 0
            return table
        rest = table.slice(size)
        self.tables, self.rows, self.bytes = [rest], rest.num_rows, rest.nbytes
        return table.slice(0, size)

    def next_block_row_count(self, limits: BlockLimits) -> int:
        """Tell how many rows make the next block: fewer than the limit if they are wide."""
        if self.bytes <= limits.block_bytes:
            return limits.block_rows
        fitting = max(int(self.rows * (limits.block_bytes / self.bytes)), 1)
        zones = fitting // limits.zone_rows
        return min(limits.block_rows, zones * limits.zone_rows or fitting)  # no short zone at the end


@dataclass
class BlockBuffers:
    """Takes rows, gives those of blocks. ``spec``: None for a table that is not partitioned."""

    spec: PartitionSpec | None
    limits: BlockLimits
    _buffers: dict[str | None, _RowBuffer] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    def add(self, table: pa.Table) -> Iterator[BlockRows]:
        """Take these rows, and give those of each block that is full.

        Raises InvalidArgument for more partitions than one write may have, SchemaError for a value that is none.
        """
        if self.spec is None:
            yield from self._add(table, None)
            return
        for partition, rows in self.spec.split(table):
            self._seen.add(partition)
            check_partition_count(len(self._seen), self.limits.max_partitions, self.spec)
            yield from self._add(rows, partition)
        while sum(buffer.bytes for buffer in self._buffers.values()) > self.limits.sort_bytes:
            largest = max(self._buffers, key=lambda partition: self._buffers[partition].bytes)
            yield from self._end(largest)

    def _add(self, rows: pa.Table, partition: str | None) -> Iterator[BlockRows]:
        buffer = self._buffers.setdefault(partition, _RowBuffer())
        if rows.num_rows:
            buffer.add(rows)
        while (size := buffer.next_block_row_count(self.limits)) <= buffer.rows:
            yield buffer.take(size), partition

    def drain(self) -> Iterator[BlockRows]:
        """What waits, as blocks that are not full, in the order in which partitions came."""
        for partition in list(self._buffers):
            yield from self._end(partition)

    def _end(self, partition: str | None) -> Iterator[BlockRows]:
        buffer = self._buffers.pop(partition)
        if buffer.rows:
            yield buffer.take(buffer.rows), partition


def check_partition_count(count: int, limit: int, spec: PartitionSpec) -> None:
    """Raise InvalidArgument for a write to more partitions than it may have."""
    if count > limit:
        raise InvalidArgument(
            f"this write has rows of more than {limit:,} partitions by {', '.join(spec.names)}, each of which is a "
            f"file: partition by what has fewer values, and keep rows together by cluster_by; or write fewer at a time"
        )
