"""Tables as whoever may write their files could make them: every checksum is right, and what it vouches for is not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from fuse_storage import StoredTable, process_cache
from fuse_storage.metadata.file_ref import FileRef
from fuse_storage.metadata.refs import Branch
from fuse_storage.metadata.snapshot import Snapshot


def rewrite_head(table: StoredTable, change: Callable[[Snapshot], Snapshot]) -> StoredTable:
    """The same table with another snapshot in place of its newest."""
    return replace_snapshot_bytes(table, change(table.snapshot).encode())


def replace_snapshot_bytes(table: StoredTable, data: bytes) -> StoredTable:
    """The same table with these bytes in place of its newest snapshot's file. Raises as opening it does."""
    store, path = table.store, table.snapshot.path
    store.delete([path])
    store.create(path, data)
    branch = Branch(store, table.branch)
    entry = replace(table.entry, reference=FileRef.for_data(path, data))
    store.delete([branch.key(entry.sequence)])
    branch.create(entry)
    process_cache.clear()
    return StoredTable.open(store)
