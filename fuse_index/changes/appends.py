"""Commits between two snapshots that all but a few only appended: then no row has to be compared."""

from __future__ import annotations

import fuse_storage as storage
from fuse_storage import BlockFrame


def appended_blocks(
    before: storage.StoredTable, after: storage.StoredTable, max_commits: int
) -> list[BlockFrame] | None:
    """List the blocks that appends added, commit by commit, if all other commits in between left rows as they were.

    Returns None if they did not, and if it takes more than ``max_commits`` commits to know. Where it is known, copied
    rows need not be compared with those that they are copies of.
    """
    appended: list[BlockFrame] = []
    current = after
    for _ in range(max_commits):
        if current.snapshot.id == before.snapshot.id:
            return appended[::-1]
        if current.snapshot.parent is None:
            return None
        try:
            parent = storage.state_before(current)
        except storage.NotFound:
            return None
        if not current.snapshot.same_rows:
            removed, added = storage.changed_blocks(parent, current)
            if len(removed):
                return None
            appended.append(added)
        current = parent
    return None
