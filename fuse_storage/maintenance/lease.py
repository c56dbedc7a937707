"""A lease on the upkeep of a table: of several who would do the same work, one does.

It saves work, and nothing depends on it: commits alone decide who wins. A lease is a file that only one can create;
who dies leaves it behind, and it counts for nothing once it is older than leases last, by the store's own clock.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from fuse_storage.errors import AlreadyExists
from fuse_storage.metadata.encoding import utc_now
from fuse_storage.metadata.file_ref import new_id
from fuse_storage.store.store import Store

_FOLDER = "_m"
_LEASE = re.compile(rf"{_FOLDER}/[0-9]{{20}}\.lease")


@contextmanager
def upkeep_lease(store: Store, duration: timedelta) -> Iterator[bool]:
    """Hold the lease of a table, and say whether it could be had; it ends with the context, or after ``duration``.

    Raises StorageError.
    """
    now = utc_now()
    found = {file.key: file.modified for file in store.list(_FOLDER) if _LEASE.fullmatch(file.key)}
    newest = max(found, default=f"{_FOLDER}/{0:020d}.lease")
    key = f"{_FOLDER}/{int(newest[len(_FOLDER) + 1 :].partition('.')[0]) + 1:020d}.lease"
    if any(abs(now - modified) < duration for modified in found.values()) or not _create(store, key):
        yield False
        return
    try:
        store.delete(found)
        yield True
    finally:
        store.delete([key])


def _create(store: Store, key: str) -> bool:
    try:
        store.create(key, new_id().encode())
    except AlreadyExists:
        return False
    return True
