"""States after hot commits become snapshots, for whoever has to name one: a commit that changes no row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from fuse_storage.commit.draft import Draft
from fuse_storage.commit.head import Head
from fuse_storage.commit.transaction import Transaction
from fuse_storage.errors import Conflict, InvalidArgument
from fuse_storage.metadata.refs import Branch
from fuse_storage.metadata.snapshot import read_snapshot

_HeadT = TypeVar("_HeadT", bound=Head)


_OPERATION = "snapshot"


@dataclass(frozen=True, slots=True)
class KeepState:
    """Commit the state as it is, its tail carried along."""

    name: str = _OPERATION

    def apply(self, draft: Draft) -> None:
        draft.changed = True


def snapshot_of(table: _HeadT) -> _HeadT:
    """Make a snapshot of the table's rows: the table itself, or what is or was committed for it after hot commits.

    Raises InvalidArgument for an older state that nobody made a snapshot of.
    """
    if table.snapshot.base is None:
        return table
    try:
        if table.refresh() is table:
            return Transaction(table).stage(KeepState()).commit(_OPERATION, once=True)
    except Conflict:
        pass  # somebody committed in between
    if (made := _made_before(table)) is not None:
        return made
    raise InvalidArgument(
        f"{table.snapshot.id} is what a hot commit made, and others came since: only heads and snapshots can be "
        f"named; refresh, or choose a snapshot (see snapshots)"
    )


def _made_before(table: _HeadT) -> _HeadT | None:
    """The snapshot that was committed for this very state, if one was."""
    branch = Branch(table.store, table.branch)
    entry = branch.find(table.entry.sequence + 1)
    if entry is None or (entry.operation, entry.version) != (_OPERATION, table.snapshot.version + 1):
        return None
    return table.at_entry(entry, read_snapshot(branch, entry))
