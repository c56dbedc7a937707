"""Branches beside the main one: begun at any snapshot, ended by a tombstone, brought home by a fast-forward.

A branch begins with a copy of a snapshot: the same list of segments, so nothing of the rows is copied. So does every
fast-forward; each copy says what it is a copy of, and that is how one history is found to hold another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from time import monotonic

from fuse_storage.commit.snapshot_hold import held
from fuse_storage.commit.transaction import land, publish
from fuse_storage.errors import AlreadyExists, Conflict, InvalidArgument, NotFound, StorageError
from fuse_storage.metadata.file_ref import new_id
from fuse_storage.metadata.refs import MAIN, Branch, RefEntry, next_timestamp
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.metadata.tags import near
from fuse_storage.store.store import Store
from fuse_storage.table import Table

COPY = "copy_of"
"""What a copy's summary says: the id of the snapshot it is a copy of."""
FAST_FORWARD = "fast-forward"
SECONDS = 60.0
"""How long a store that gives no answer is asked again."""


def create_branch(table: Table, name: str) -> Table:
    """A branch that begins at the table's snapshot, whichever branch that is on. Raises AlreadyExists,
    InvalidArgument.
    """
    chain = Branch(table.store, name)
    before = chain.newest()
    if before is not None and before.kind != "tombstone":
        raise AlreadyExists(f"{table.store.url} already has a branch {name!r}: choose another name, or drop it first")
    latest = table.entry if before is None else max(table.entry, before, key=lambda entry: entry.timestamp)
    snapshot = replace(
        table.snapshot,
        id=new_id(),
        sequence=1 if before is None else before.sequence + 1,
        branch=name,
        commit_id=new_id(),
        parent=table.snapshot.id,
        timestamp=next_timestamp(latest.timestamp),
        operation="branch",
        summary={COPY: table.snapshot.id, "from": table.branch},
    )
    with held(table.store, table.branch, table.entry):
        entry = publish(table.store, snapshot, before)
        if not land(chain, entry, monotonic() + SECONDS):
            raise AlreadyExists(f"{table.store.url} already has a branch {name!r}: somebody else just made it")
    chain.note(entry.sequence)
    return Table(table.store, name, entry, snapshot)


def drop_branch(store: Store, name: str) -> RefEntry:
    """End a branch with a tombstone; what others hold of its history stays. Raises NotFound, InvalidArgument for
    ``main``.
    """
    if name == MAIN:
        raise InvalidArgument(f"{MAIN!r} is the table's own branch and cannot be dropped")
    chain = Branch(store, name)
    while True:
        head = chain.newest()
        if head is None or head.kind == "tombstone":
            raise NotFound(f"{store.url} has no branch {name!r}{near(name, list(branches(store)))}")
        time = next_timestamp(head.timestamp)
        if land(
            chain,
            RefEntry("tombstone", head.sequence + 1, new_id(), head.commit_id, time, "drop branch"),
            monotonic() + SECONDS,
        ):
            chain.note(head.sequence + 1)
            return head


def branches(store: Store) -> dict[str, RefEntry]:
    """The heads of all branches that there are, by name. Lists the folder of branches."""
    names = sorted({found.key.split("/")[2] for found in store.list("_refs/branch")})
    heads = {name: Branch(store, name).head() for name in names}
    return {name: head for name, head in heads.items() if head.kind != "tombstone"}


def fast_forward(table: Table, source: Table) -> Table:
    """Bring the table's branch to the snapshot of another that holds all of its history; the table as it is then.

    Raises Conflict if it does not: then both have changes that the other lacks. Changes nothing if there is nothing
    new.
    """
    if source.store.url != table.store.url:
        raise StorageError(f"{source.store.url} is another table than {table.store.url}")
    newest = source.snapshot
    here = {table.snapshot.id, table.snapshot.summary.get(COPY, table.snapshot.id)}
    if newest.id in here or newest.summary.get(COPY) in here:
        return table
    if any(id in here for id in _lineage(source)):
        with held(source.store, source.branch, source.entry):
            return (
                table.transaction()
                .restore(newest)
                .commit(FAST_FORWARD, summary={COPY: newest.id, "from": source.branch})
            )
    head = f"snapshot {table.snapshot.id} of branch {table.branch!r}"
    raise Conflict(
        f"branch {source.branch!r} does not hold {head}: both went on since they parted; append what is missing instead"
    )


def restore(table: Table, old: Table) -> Table:
    """Make the table what it was at ``old``, as its next snapshot. Raises Conflict, NotFound if that was collected."""
    with held(old.store, old.branch, old.entry):
        return table.transaction().restore(old.snapshot).commit("restore")


def leads_to(old: Table, new: Table) -> bool:
    """Whether ``new`` came of ``old``: along its branch, or over the branches that it came by."""
    if old.branch == new.branch and old.snapshot.sequence <= new.snapshot.sequence:
        begun = (
            [entry.kind for entry in new.history(new.snapshot.sequence - old.snapshot.sequence)]
            if new.branch != MAIN
            else []
        )
        return "tombstone" not in begun
    return old.snapshot.id in _lineage(new)


def _lineage(table: Table) -> Iterator[str]:
    """Ids of the snapshots that led to this one, newest first, over all branches that it came by."""
    snapshot: Snapshot | None = table.snapshot
    while snapshot is not None:
        yield snapshot.id
        before = snapshot.summary.get(COPY, snapshot.parent)
        try:
            snapshot = None if before is None else table.at(before).snapshot
        except NotFound:  # collected, with all that it came from
            return
