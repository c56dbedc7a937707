"""What commits between two states of a table with a primary key did by key: rows that they put, and keys that went.

They are told by the hot blocks of these commits alone, whatever became of them since. Nothing is compared, and no other
block is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fuse_storage.errors import NotFound
from fuse_storage.hot.entry import DELETE_CHANGE
from fuse_storage.hot.small_blocks import BlockRequest, read_blocks
from fuse_storage.hot.tail import align_tail, read_tail
from fuse_storage.metadata.segment import LOCATION_COLUMNS, block_file
from fuse_storage.primary_key.key_sets import key_table, last_of_each
from fuse_storage.primary_key.row_rules import is_keyed
from fuse_storage.store.shared_files import resolve_store
from fuse_storage.table import StoredTable

_BLOCKS_AT_ONCE = 64
"""Blocks whose rows are read together: small ones cost a request each, and are read in parallel."""


@dataclass(frozen=True)
class KeyOperations:
    """Hot blocks that put rows and delete keys, in the order of their commits.

    ``table``: the later state, in whose columns rows come. ``hot_blocks``: rows of metadata, as of a tail.
    """

    table: StoredTable
    hot_blocks: pa.Table

    @property
    def row_count(self) -> int:
        """Rows and keys in these blocks, those of keys that come again later, too."""
        return int(pc.sum(self.hot_blocks.column("row_count")).as_py() or 0)

    def last_of_each_key(self, table: StoredTable, columns: Sequence[str]) -> Iterator[tuple[bool, pa.Table]]:
        """Yield of each block the rows that none after it has the key of, if any, and whether they were deleted.

        ``table``: a state whose columns rows have, ``columns`` of them; keys that were deleted have those of the key.
        Raises StorageError.
        """
        key = table.snapshot.key
        deleted = pc.equal(self.hot_blocks.column("change"), DELETE_CHANGE).to_pylist()
        keys = [key_table(rows, key) for rows in self._read(table, [(n, None) for n in range(len(deleted))], key)]
        is_last = np.zeros(sum(map(len, keys)), np.bool_)
        is_last[last_of_each(pa.concat_tables(keys).combine_chunks())] = True
        masks = np.split(is_last, np.cumsum([len(part) for part in keys])[:-1])
        for is_delete, group in _runs(deleted, masks):
            names = key if is_delete else tuple(columns)
            for rows in self._read(table, [(number, masks[number]) for number in group], names):
                yield is_delete, rows

    def _read(
        self, table: StoredTable, chosen: Sequence[tuple[int, np.ndarray | None]], columns: Sequence[str]
    ) -> list[pa.Table]:
        places, shares = self.hot_blocks.select(LOCATION_COLUMNS), table.snapshot.shares_files
        requests = []
        for number, mask in chosen:
            file = block_file(places, number)
            store, path = resolve_store(table.store, file.key, shares)
            requests.append(BlockRequest(store, replace(file, key=path), None, mask))
        return read_blocks(requests, table.snapshot.schema, columns)


def _runs(deleted: Sequence[bool], masks: Sequence[np.ndarray]) -> Iterator[tuple[bool, list[int]]]:
    """Blocks of which rows are wanted, by number, as neighbours that do the same, not too many at once."""
    run: list[int] = []
    for number in (number for number, mask in enumerate(masks) if mask.any()):
        if run and (deleted[run[0]] != deleted[number] or len(run) == _BLOCKS_AT_ONCE):
            yield deleted[run[0]], run
            run = []
        run.append(number)
    if run:
        yield deleted[run[0]], run


def key_operations(before: StoredTable, after: StoredTable) -> KeyOperations | None:
    """What was put and deleted from one state of a table to a later one; None where the hot blocks do not tell.

    They do not where a commit brought or took rows otherwise (a restore, an overwrite), or was collected, or where the
    table has no primary key. Raises StorageError.
    """
    if not is_keyed(after.snapshot) or before.snapshot.is_cut or after.snapshot.is_cut:
        return None
    try:
        parts = _hot_blocks_between(before, after)
    except NotFound:
        return None
    if parts is None:
        return None
    tail = [align_tail(part, after.snapshot.schema) for part in parts if len(part)]
    rows = pa.concat_tables(tail).combine_chunks() if tail else pa.table({"row_count": pa.nulls(0, pa.int64())})
    return KeyOperations(after, rows)


def _hot_blocks_between(before: StoredTable, after: StoredTable) -> list[pa.Table] | None:
    """Rows of metadata of the hot blocks that commits between two states added, oldest first. Raises NotFound."""
    parts, current = list[pa.Table](), after
    while current.snapshot.id != before.snapshot.id:
        snapshot = current.snapshot
        if snapshot.hot_rows is not None:
            is_in_chain = before.snapshot.stored.id == snapshot.stored.id
            start = before.snapshot if is_in_chain else snapshot.stored
            parts.append(snapshot.hot_rows.slice(0 if start.hot_rows is None else len(start.hot_rows)))
            if is_in_chain:
                break
            current = current.at_entry(current.entry, start)
            continue
        if snapshot.parent is None:
            return None
        later, current = current, state_before(current)
        if not snapshot.same_rows:
            own = _own_hot_blocks(current, later)
            if own is None:
                return None
            parts.append(own)
    return parts[::-1]


def _own_hot_blocks(before: StoredTable, after: StoredTable) -> pa.Table | None:
    """Rows of metadata of the hot blocks that a snapshot adds to its tail; None if it did anything else to rows."""
    if before.without_tail().segments().ids != after.without_tail().segments().ids:
        return None
    old, new = read_tail(before.store, before.snapshot), read_tail(after.store, after.snapshot)
    known = [] if old is None else old.column("id").to_pylist()
    found = [] if new is None else new.column("id").to_pylist()
    return new.slice(len(known)) if new is not None and found[: len(known)] == known else None


def state_before(table: StoredTable) -> StoredTable:
    """The state before this one, which for the first of a branch is another branch's. Raises NotFound."""
    snapshot = table.snapshot
    if snapshot.version > 1 and snapshot.has_chain:
        return table.at_version(snapshot.version - 1)
    return table.at(str(snapshot.parent))
