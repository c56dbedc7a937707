"""What kinds failed at of late: who asks why an index lacks blocks finds the sentence here.

This process knows what failed in it; a table has on record what the last build of an index left out, for all others.
"""

from __future__ import annotations

from fuse_index.errors import BuildError
from fuse_storage import Conflict, StorageError, StoredTable, record_upkeep, upkeep_record

_RECORD = "failed:"
_MEMBER = "failed"


class BuildFailures:
    """What kinds failed at of late in this process, by the keys of definitions: why an index lacks blocks."""

    MAX = 1_000

    def __init__(self) -> None:
        self._said: dict[str, str] = {}

    def note(self, key: str, failure: str) -> None:
        """Remember what an index failed at."""
        if len(self._said) >= self.MAX:
            self._said.clear()
        self._said[key] = failure

    def forget(self, key: str) -> None:
        """Forget it, since blocks are to be indexed once more."""
        self._said.pop(key, None)

    def find(self, key: str) -> str | None:
        """Find what an index failed at; None if it did not."""
        return self._said.get(key)


BUILD_FAILURES = BuildFailures()
"""The failures of this process."""


def failure_of(table: StoredTable, key: str) -> str | None:
    """What an index that lacks blocks failed at, in this process or as the table has it on record; None if not known.

    Costs a read of one older snapshot, where there is a record.
    """
    return BUILD_FAILURES.find(key) or _recorded(table, key)


def describe_failure(failure: str) -> str:
    """What to do about an index whose kind failed."""
    return f"its kind failed in {failure}; repair the kind"


def nothing_built(index: str, kind: str, blocks: int, failed: bool) -> BuildError:
    """The error of a build of all blocks that indexed none: its kind ``failed``, or their files cannot be read."""
    built = f"index {index!r} was built on none of {blocks:,} blocks"
    if not failed:
        return BuildError(
            f"{built}: none can be read, as was warned of; sync the table if their files were deleted or moved at "
            f"their source, or restore them"
        )
    return BuildError(
        f"{built}: its kind {kind!r} failed on each, as was warned of; repair the kind, or drop the index"
    )


def record_failure(table: StoredTable, operation: str, index: str, key: str) -> StoredTable:
    """Leave on record what an index failed at as it was built in this process, or that it no longer does.

    Nothing is committed where the record says so already, nor where somebody else is faster.
    """
    failure = BUILD_FAILURES.find(key)
    if failure == _recorded(table, key):
        return table
    summary = {"index": index, "indexed_blocks": 0, _MEMBER: {} if failure is None else {key: failure}}
    try:
        return record_upkeep(table, operation, _RECORD + key, table.snapshot.version + 1, summary)
    except Conflict:
        return table


def _recorded(table: StoredTable, key: str) -> str | None:
    if (version := upkeep_record(table.snapshot, _RECORD + key)) is None:
        return None
    try:
        said = table.at_version(version).snapshot.summary.get(_MEMBER, {})
    except StorageError:  # it was collected
        return None
    return said.get(key) if isinstance(said, dict) else None
