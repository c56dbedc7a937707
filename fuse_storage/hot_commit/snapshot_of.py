"""States after hot commits become snapshots, for whoever has to name one: a commit that changes no row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from fuse_storage.commit.draft import Draft
from fuse_storage.commit.head import Head
from fuse_storage.commit.transaction import Transaction
from fuse_storage.errors import Conflict, InvalidArgument

_HeadT = TypeVar("_HeadT", bound=Head)


@dataclass(frozen=True, slots=True)
class KeepState:
    """Commit the state as it is, its tail carried along."""

    name: str = "snapshot"

    def apply(self, draft: Draft) -> None:
        draft.changed = True


def snapshot_of(table: _HeadT) -> _HeadT:
    """The same rows as a snapshot: the table itself, or what is committed for it if it is the head after hot commits.

    Raises InvalidArgument for an older state.
    """
    if table.snapshot.base is None:
        return table
    try:
        if table.refresh() is table:
            return Transaction(table).stage(KeepState()).commit("snapshot", once=True)
    except Conflict:
        pass  # somebody committed in between
    raise InvalidArgument(
        f"{table.snapshot.id} is what a hot commit made, and others came since: only heads and snapshots can be "
        f"named; refresh, or choose a snapshot (see snapshots)"
    )
