"""Rows of base and tail that later rows of the tail hide, as a deletion vector would, and that nobody writes.

Of each key the last block of the tail that has it counts: earlier ones do not, nor does the base's row. Statistics of
the key's columns rule out blocks; of the others those columns are read. What was found for a state serves the next one:
there just the keys of the hot commits that came are looked up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fuse_storage.deletion_vector import VectorRef, read_vector
from fuse_storage.errors import RESTORE_HINT, Corrupt, TableUrl
from fuse_storage.hot.entry import HotBlock
from fuse_storage.hot.small_blocks import BlockRequest, read_blocks
from fuse_storage.hot.tail import blocks_with_rows, without_tail
from fuse_storage.lazy import cached_property
from fuse_storage.metadata.block_frame import BlockFrame
from fuse_storage.metadata.metadata_table import METADATA_READ_THREADS, IndexArray, counts_to_offsets
from fuse_storage.metadata.segment import LOCATION_COLUMNS, block_file, hot_block_path
from fuse_storage.metadata.segment_frame import SegmentFrame
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.parquet.footer import BlockFile
from fuse_storage.parquet.pages import RowMask
from fuse_storage.primary_key.key_sets import SoughtKeys, key_table, last_of_each, places_of_keys
from fuse_storage.store.cache import cache_of
from fuse_storage.store.shared_files import resolve_store
from fuse_storage.store.store import Store


class TailKeys(NamedTuple):
    """How many keys the hot blocks put or delete, and of how many blocks of the base they hide rows."""

    keys: int
    touched: int


NOT_IN_TAIL, DELETED = -1, -2


class KeyPlaces(NamedTuple):
    """Where a tail has some keys: int64, shape (keys,). ``rows``: the number of a row in its block.

    ``blocks``: the number among all blocks of a state of the block that has the row of a key that counts; NOT_IN_TAIL,
    or DELETED.
    """

    blocks: IndexArray
    rows: IndexArray


def read_keys(store: Store, snapshot: Snapshot, blocks: Sequence[HotBlock]) -> list[pa.Table]:
    """The keys of each of some hot blocks of a table, which need not be committed. Raises StorageError."""
    files = [
        BlockFile(hot_block_path(block.id), block.footer_offset, block.footer_length, block.zone_rows, block.seal)
        for block in blocks
    ]
    return _KeyReader(store, snapshot).read(files)


class KeyedSegmentFrame(SegmentFrame):
    """The segments of a table with a primary key and, as if it were one more, the rows of its tail.

    ``tail``: rows of all hot blocks, those that have keys to be deleted, too.
    """

    def __init__(self, store: Store, snapshot: Snapshot, table: pa.Table, tail: pa.Table) -> None:
        visible = blocks_with_rows(tail)
        super().__init__(store, snapshot, table, visible if len(visible) else None)
        self._base_table, self._hot_blocks = table, tail

    @cached_property
    def hidden_rows(self) -> Mapping[int, RowMask]:
        """Blocks of which later rows of the tail hide some, by number: bool, shape (rows,), True for rows that count.

        Raises StorageError.
        """
        return self._resolved[0]

    @property
    def key_use(self) -> TailKeys:
        """How many keys the tail has, and what they touch. Raises StorageError."""
        return self._resolved[1]

    def find_in_tail(self, keys: pa.Table) -> KeyPlaces:
        """Where the tail has these keys. ``keys``: a table of keys. Raises StorageError."""
        tail, starts, numbers = self._tail_keys
        hits = np.flatnonzero(SoughtKeys(keys).rows_in(tail))
        last = hits[last_of_each(tail.take(pa.array(hits)))]
        place = places_of_keys(keys, tail.take(pa.array(last)))
        found, rows = place >= 0, last[place[place >= 0]]
        blocks, within = np.full(len(keys), NOT_IN_TAIL), np.zeros(len(keys), np.int64)
        owners = np.searchsorted(starts, rows, side="right") - 1
        blocks[found], within[found] = numbers[owners], rows - starts[owners]
        return KeyPlaces(blocks, within)

    @cached_property
    def _tail_keys(self) -> tuple[pa.Table, IndexArray, IndexArray]:
        """The keys of all hot blocks; where each block begins; and its number among all blocks."""
        parts = _KeyReader(self.store, self.snapshot).read_hot(self._hot_blocks)
        visible = blocks_with_rows(self._hot_blocks).column("id").to_pylist()
        place = {block_id: self.base_block_count + number for number, block_id in enumerate(visible)}
        numbers = np.array([place.get(block_id, DELETED) for block_id in self._hot_blocks.column("id").to_pylist()])
        return pa.concat_tables(parts).combine_chunks(), counts_to_offsets(np.array([*map(len, parts)]))[:-1], numbers

    @cached_property
    def _resolved(self) -> tuple[Mapping[int, RowMask], TailKeys]:
        base = BlockFrame.from_segments(SegmentFrame(self.store, without_tail(self.snapshot), self._base_table))
        hits = _find_hits(_KeyReader(self.store, self.snapshot), base, self._hot_blocks)
        numbers = {block_id: number for number, block_id in enumerate(base.ids)}
        live = {numbers[block_id]: ~mask for block_id, mask in hits.in_base.items()}
        for number, mask in live.items():
            _leave_out_vector(self.snapshot, base, number, mask)
        stored = base.live_row_counts
        touched = sum(np.count_nonzero(mask) < stored[number] for number, mask in live.items())
        visible = blocks_with_rows(self._hot_blocks).column("id").to_pylist()
        for place, block_id in enumerate(visible):
            if not hits.last[block_id].all():
                live[len(base) + place] = hits.last[block_id]
        return live, TailKeys(sum(int(np.count_nonzero(mask)) for mask in hits.last.values()), int(touched))


def tail_keys(segments: SegmentFrame) -> TailKeys | None:
    """What the keys of a state's tail are; None for tables without a primary key, and without a tail."""
    return segments.key_use if isinstance(segments, KeyedSegmentFrame) else None


def find_in_tail(segments: SegmentFrame, keys: pa.Table) -> KeyPlaces:
    """Where the tail of a state has these keys. ``keys``: rows of the key's columns. Raises StorageError."""
    if isinstance(segments, KeyedSegmentFrame):
        return segments.find_in_tail(key_table(keys, segments.snapshot.key))
    return KeyPlaces(np.full(len(keys), NOT_IN_TAIL), np.zeros(len(keys), np.int64))


class HotKeys(NamedTuple):
    """What some hot commits put and deleted.

    ``keys``: a table of keys, which may have one several times. ``blocks``: ids of the blocks that put rows.
    """

    keys: pa.Table
    blocks: list[str]


def hot_keys_since(segments: SegmentFrame, before: Snapshot) -> HotKeys | None:
    """The keys that hot commits put and deleted between an earlier state and that of the segments.

    None where any other commit came between the two, which may have moved the rows. Raises StorageError.
    """
    state = segments.snapshot
    if state.stored.id != before.stored.id or state.hot_rows is None:
        return None
    came = state.hot_rows.slice(0 if before.hot_rows is None else len(before.hot_rows))
    parts = _KeyReader(segments.store, state).read_hot(came)
    keys = pa.concat_tables(parts) if parts else key_table(state.schema.empty_table(), state.key)
    return HotKeys(keys, blocks_with_rows(came).column("id").to_pylist())


@dataclass(frozen=True, slots=True)
class _Hits:
    """What the keys of a tail meet. ``hot``, ``base``: ids of the blocks that were compared.

    ``in_base``: by id of a block, which of its rows have a key of the tail; of no other block has any.
    ``last``: by id of a hot block, which of its rows are the last of their keys.
    """

    hot: frozenset[str]
    base: frozenset[str]
    in_base: Mapping[str, RowMask]
    last: Mapping[str, RowMask]

    @property
    def nbytes(self) -> int:
        masks = [*self.in_base.values(), *self.last.values()]
        return sum(mask.nbytes for mask in masks) + 200 * (len(self.hot) + len(self.base))


def _find_hits(reader: _KeyReader, base: BlockFrame, hot_blocks: pa.Table) -> _Hits:
    """Compare the keys of a tail with the base, or take what is known of them."""
    cache, url, snapshot = cache_of(reader.store), reader.store.url, reader.snapshot
    state_key, latest_key = ("keys of tail", url, snapshot.id), ("latest keys of tail", url, snapshot.branch)
    found: _Hits | None = cache.find(state_key)
    if found is None:
        found = _compare(reader, base, hot_blocks, cache.find(latest_key))
        for key in (state_key, latest_key):
            cache.put(key, found, found.nbytes)
    return found


def _compare(reader: _KeyReader, base: BlockFrame, hot_blocks: pa.Table, known: _Hits | None) -> _Hits:
    ids = hot_blocks.column("id").to_pylist()
    with ThreadPoolExecutor(METADATA_READ_THREADS, "fuse-keys") as pool:
        parts = reader.read_hot(hot_blocks)
        keys = pa.concat_tables(parts).combine_chunks()
        is_last = np.zeros(len(keys), np.bool_)
        is_last[last_of_each(keys)] = True
        last = dict(zip(ids, np.split(is_last, np.cumsum([len(part) for part in parts])[:-1]), strict=True))
        if known is None or not known.hot.issubset(ids):
            known = _Hits(frozenset(), frozenset(), {}, {})
        new = [part for block_id, part in zip(ids, parts, strict=True) if block_id not in known.hot]
        old_blocks = np.array([block_id in known.base for block_id in base.ids], np.bool_)
        present = frozenset(base.ids)
        in_base = {block_id: mask for block_id, mask in known.in_base.items() if block_id in present}
        for chosen, wanted in ((old_blocks, new), (~old_blocks, parts)):
            if not wanted or not chosen.any():
                continue
            sought = SoughtKeys(keys.filter(pa.array(is_last)) if wanted is parts else _distinct(wanted))
            bounds = [base.statistics(column_id) for column_id in reader.snapshot.key_ids]
            numbers = np.flatnonzero(chosen & sought.may_be_in(bounds, len(base))).tolist()
            masks = pool.map(lambda number, sought=sought: reader.find(base.file(number), sought), numbers)
            for number, mask in zip(numbers, masks, strict=True):
                if mask.any():
                    before = in_base.get(base.ids[number])
                    in_base[base.ids[number]] = mask if before is None else mask | before
    return _Hits(frozenset(ids), present, in_base, last)


def _distinct(parts: Sequence[pa.Table]) -> pa.Table:
    """The keys of several tables, each once."""
    keys = pa.concat_tables(parts).combine_chunks()
    return keys.take(pa.array(last_of_each(keys)))


@dataclass(frozen=True, slots=True)
class _KeyReader:
    """Reads the keys of blocks of a state."""

    store: Store
    snapshot: Snapshot

    def read(self, files: Sequence[BlockFile]) -> list[pa.Table]:
        """The keys of all rows of each of these blocks. Raises StorageError."""
        places = [resolve_store(self.store, file.key, self.snapshot.shares_files) for file in files]
        requests = [
            BlockRequest(store, replace(file, key=key)) for (store, key), file in zip(places, files, strict=True)
        ]
        names = self.snapshot.key
        return [key_table(rows, names) for rows in read_blocks(requests, self.snapshot.schema, names)]

    def find(self, file: BlockFile, keys: SoughtKeys) -> RowMask:
        """Which rows of a block have one of some keys: bool, shape (rows of the block,)."""
        return keys.rows_in(self.read([file])[0])

    def read_hot(self, hot_blocks: pa.Table) -> list[pa.Table]:
        """The keys of each hot block; they are kept in memory."""
        cache, columns = cache_of(self.store), hot_blocks.select(LOCATION_COLUMNS)
        files = [block_file(columns, place) for place in range(len(columns))]
        found = {file.key: cache.find(("hot keys", self.store.url, file.key)) for file in files}
        missing = [file for file in files if found[file.key] is None]
        for file, keys in zip(missing, self.read(missing), strict=True):
            found[file.key] = keys
            cache.put(("hot keys", self.store.url, file.key), keys, keys.nbytes)
        return [found[file.key] for file in files]


def _leave_out_vector(snapshot: Snapshot, base: BlockFrame, number: int, live: RowMask) -> None:
    """Take the rows that the block's own vector marks out of a mask of live rows."""
    if base.has_all_rows[number]:
        return
    if (reference := base.deletion_vectors[number]) is None:
        raise Corrupt(
            TableUrl(base.segments.store.url) + f": block {base.ids[number]} lacks its deletion vector: {RESTORE_HINT}"
        )
    counts = int(base.row_counts[number]), int(base.live_row_counts[number])
    deleted = read_vector(base.segments.store, VectorRef.parse(reference), *counts, snapshot.shares_files)
    live &= ~deleted
