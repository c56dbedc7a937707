"""One block indexed in memory, for a search that meets a block without an index or with a damaged one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.errors import IndexFault
from fuse_index.indexes.block_batch import Payload, PayloadValue
from fuse_index.indexes.builder import IndexBuilder
from fuse_index.indexes.definition import IndexDefinition
from fuse_index.indexes.registry import Host
from fuse_index.reasons import Reason
from fuse_storage import BlockFrame, ColumnStatistics, StoredTable

_Numbers = npt.NDArray[np.int64]


def index_in_memory(
    table: StoredTable, blocks: BlockFrame, block: int, definition: IndexDefinition, host: Host
) -> MemoryBlock:
    """Read a block and index its rows. Raises IndexFault if its kind cannot, and StorageError."""
    builder = IndexBuilder.for_definition(definition, host, strict=True)
    zone_rows = blocks.zone_rows[blocks.zone_offsets[block] : blocks.zone_offsets[block + 1]]
    row_offsets = np.append(0, np.cumsum(zone_rows)).astype(np.int64)
    sidecar = builder.build(table.read_block(blocks, block, builder.columns), row_offsets)
    pack = None if sidecar is None else builder.pack([sidecar])
    if pack is None:
        raise IndexFault(
            definition.name, definition.kind, Reason.PLUGIN_ERROR, "a block cannot be indexed to be searched"
        )
    start, length = pack.spans[0] or (0, 0)
    summaries = pa.array(pack.summaries, builder.summary_type)
    return MemoryBlock(summaries, pack.data[start : start + length], zone_rows.astype(np.int64))


@dataclass(frozen=True)
class MemoryBlock:
    """A ``BlockBatch`` of one block that was indexed in memory."""

    summaries: pa.Array
    """One value, of the kind's ``summary_type``."""
    data: bytes
    """The payload."""
    zone_rows: _Numbers
    """The rows of each zone: int64, shape (zones,)."""

    def __len__(self) -> int:
        return 1

    @property
    def nbytes(self) -> int:
        """Bytes of memory that it takes, about."""
        return len(self.data) + int(self.summaries.nbytes)

    @property
    def row_counts(self) -> _Numbers:
        """The rows of the block: int64, shape (1,)."""
        return np.array([self.zone_rows.sum()], np.int64)

    @property
    def zone_offsets(self) -> _Numbers:
        """All zones are of the one block: int64, shape (2,)."""
        return np.array([0, len(self.zone_rows)], np.int64)

    def statistics(self, number: int) -> ColumnStatistics | None:
        return None

    def payload(self, unit: int) -> Payload | None:
        return _MemoryPayload(self.data, len(self.data))

    def read_payloads(self) -> list[bytes | None]:
        """Read the one payload."""
        return [self.data]

    def packs(self) -> Sequence[tuple[Payload, _Numbers]]:
        """One payload, and the units in it: int64 indices, shape (1,)."""
        return [(_MemoryPayload(self.data, len(self.data)), np.zeros(1, np.int64))]


@dataclass
class _MemoryPayload:
    """A payload that was never written."""

    data: bytes
    size: int
    decoded_values: dict[Any, Any] = field(default_factory=dict)

    def read(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        return [self.data[start : start + length] for start, length in ranges]

    def decoded(
        self, span: tuple[int, int], decode: Callable[[bytes], PayloadValue], size: Callable[[PayloadValue], int]
    ) -> PayloadValue:
        if (span, decode) not in self.decoded_values:
            self.decoded_values[span, decode] = decode(self.read([span])[0])
        value: PayloadValue = self.decoded_values[span, decode]
        return value
