"""Which blocks an index lacks, as a refresh finds them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fuse_index.errors import IndexFault
from fuse_index.indexes.builder import IndexBuilder
from fuse_index.indexes.definition import IndexDefinition
from fuse_index.indexes.registry import Host
from fuse_index.pruning.readable import blocks_to_roll_up, readable_blocks
from fuse_storage import SidecarRows, StorageError, StoredTable

_BlockNumbers = npt.NDArray[np.int64]


def unindexed_blocks(table: StoredTable, builder: IndexBuilder) -> _BlockNumbers:
    """Find blocks, not of the tail, that are unindexed, in a version that cannot be read, or whose pack is gone or cut.

    And one of each segment whose roll-up may not be used as it is, though all its blocks could be rolled up.

    Returns their numbers in the snapshot, int64, shape (n,), ascending.
    """
    unindexed = blocks_to_index(table, builder)
    if (sidecars := table.blocks().sidecars(builder.key)) is None:
        return unindexed
    damaged = _blocks_without_pack(sidecars)
    return np.union1d(unindexed, damaged[damaged < table.segments().base_block_count])


def blocks_to_index(table: StoredTable, builder: IndexBuilder) -> _BlockNumbers:
    """Find what ``unindexed_blocks`` does as far as metadata tell, which do not say whether a pack is there.

    Returns their numbers in the snapshot, int64, shape (n,), ascending.
    """
    sidecars, base_blocks = table.blocks().sidecars(builder.key), table.segments().base_block_count
    if sidecars is None:
        return np.arange(base_blocks)
    indexed = readable_blocks(sidecars, builder.kind)
    indexed[blocks_to_roll_up(table.segments(), sidecars, builder.key, builder.kind)] = False
    return np.flatnonzero(~indexed[:base_blocks])


def _blocks_without_pack(sidecars: SidecarRows) -> _BlockNumbers:
    """Blocks whose packs are gone, or of another size: looked for where they are, which for a clone is its source."""
    packs = sidecars.packs()
    folders = {(pack.store.url, pack.key.rpartition("/")[0]): pack.store for pack, _ in packs}
    sizes = {(url, file.key): file.size for (url, folder), store in folders.items() for file in store.list(folder)}
    damaged = [numbers for pack, numbers in packs if sizes.get((pack.store.url, pack.key)) != pack.length]
    return np.concatenate([np.zeros(0, np.int64), *damaged])


def build_problems(table: StoredTable, definition: IndexDefinition, host: Host, prefix: str) -> tuple[str, ...]:
    """Say, after a prefix, at what a kind fails on the first block that its index lacks, if it does. Reads it."""
    blocks, builder = table.blocks(), IndexBuilder.for_definition(definition, host, strict=True)
    lacking = blocks_to_index(table, IndexBuilder.for_definition(definition, host))
    sidecars = blocks.sidecars(definition.key)
    lacking = lacking if sidecars is None else lacking[~readable_blocks(sidecars, builder.kind)[lacking]]
    if not len(lacking):
        return ()
    number = int(lacking[0])
    start, end = blocks.zone_offsets[number], blocks.zone_offsets[number + 1]
    zones = np.append(0, np.cumsum(blocks.zone_rows[start:end])).astype(np.int64)
    try:
        sidecar = builder.build(table.read_block(blocks, number, builder.columns), zones, f"block {blocks.ids[number]}")
        builder.pack([sidecar] if sidecar is not None else [])
    except IndexFault as fault:
        return (f"{prefix}{fault.detail}",)
    except StorageError:  # a block that cannot be read is no fault of the kind
        pass
    return ()
