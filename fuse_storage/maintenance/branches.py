"""Branches beside the main one: begun at any snapshot, ended by a tombstone, brought home by a fast-forward.

A branch begins with a copy of a snapshot: the same list of segments, so nothing of the rows is copied. So does every
fast-forward; each copy says what it is a copy of, and that is how one history is found to hold another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from time import monotonic

from fuse_storage.commit.head import COMMIT_TIMEOUT_SECONDS, create_ref, write_snapshot
from fuse_storage.commit.snapshot_hold import hold_snapshot
from fuse_storage.errors import AlreadyExists, Conflict, InvalidArgument, NotFound, StorageError, TableUrl
from fuse_storage.hot.chain import follow
from fuse_storage.hot_commit.snapshot_of import snapshot_of
from fuse_storage.metadata.file_ref import new_id
from fuse_storage.metadata.refs import (
    MAIN_BRANCH,
    Branch,
    RefEntry,
    check_new_ref_name,
    list_branch_names,
    next_timestamp,
)
from fuse_storage.metadata.snapshot import Snapshot, read_snapshot
from fuse_storage.metadata.tags import did_you_mean, find_tag
from fuse_storage.store.store import Store
from fuse_storage.table import StoredTable

_COPY_OF = "copy_of"
"""What a copy's summary says: the id of the snapshot it is a copy of."""
_FAST_FORWARD_OPERATION = "fast-forward"


def create_branch(table: StoredTable, name: str) -> StoredTable:
    """Begin a branch at the table's snapshot, whichever branch that is on. Raises AlreadyExists, InvalidArgument."""
    table = snapshot_of(table)
    table.snapshot.check_writable()
    check_new_ref_name(name, "branch")
    if (tag := find_tag(table.store, name)) is not None and not tag.expired():
        raise AlreadyExists(
            TableUrl(table.store.url) + f" already has a tag {name!r}, which would hide the branch: choose another name"
        )
    chain = Branch(table.store, name)
    before = chain.newest_entry()
    if before is not None and before.kind != "tombstone":
        raise AlreadyExists(
            TableUrl(table.store.url) + f" already has a branch {name!r}: choose another name, or drop it first"
        )
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
        summary={_COPY_OF: table.snapshot.id, "from": table.branch},
        stated_version=(0 if before is None else before.version) + 1 if table.snapshot.has_chain else 0,
        hot_commits=0,
    )
    with hold_snapshot(table.store, table.branch, table.entry):
        entry = write_snapshot(table.store, snapshot, before)
        if not create_ref(chain, entry, monotonic() + COMMIT_TIMEOUT_SECONDS):
            raise AlreadyExists(
                TableUrl(table.store.url) + f" already has a branch {name!r}: somebody else just made it"
            )
    chain.write_head_hint(entry.sequence)
    return StoredTable(table.store, name, entry, snapshot)


def drop_branch(store: Store, name: str) -> RefEntry:
    """End a branch with a tombstone; what other branches or tags hold of its history stays.

    Raises NotFound, and InvalidArgument for ``main``.
    """
    if name == MAIN_BRANCH:
        raise InvalidArgument(f"{MAIN_BRANCH!r} is the table's own branch and cannot be dropped")
    chain = Branch(store, name)
    while True:
        head = chain.newest_entry()
        if head is None or head.kind == "tombstone":
            raise NotFound(
                TableUrl(store.url) + f" has no branch {name!r}{did_you_mean(name, list(list_branches(store)))}"
            )
        head, state = follow(chain, head, read_snapshot(chain, head))
        state.check_writable()
        time, version = next_timestamp(state.timestamp), state.version + 1 if state.has_chain else 0
        tombstone = RefEntry("tombstone", head.sequence + 1, new_id(), head.commit_id, time, "drop branch")
        tombstone = replace(tombstone, stated_version=version)
        if create_ref(chain, tombstone, monotonic() + COMMIT_TIMEOUT_SECONDS, (head, state)):
            chain.write_head_hint(head.sequence + 1)
            return head


def list_branches(store: Store) -> dict[str, RefEntry]:
    """The heads of all branches that were not dropped, by name. Lists the folder of branches."""
    heads = {name: Branch(store, name).head() for name in list_branch_names(store)}
    return {name: head for name, head in heads.items() if head.kind != "tombstone"}


def fast_forward_branch(table: StoredTable, source: StoredTable) -> StoredTable:
    """Bring the table's branch to the snapshot of another branch that holds all of its history.

    Returns the table as it is then, which is the same table if there was nothing new. Raises Conflict if ``source``
    lacks part of the history: then both have changes that the other lacks.
    """
    if source.store.url != table.store.url:
        raise StorageError(TableUrl(source.store.url) + " is another table than " + TableUrl(table.store.url))
    source = snapshot_of(source)
    newest = source.snapshot
    newest.check_writable()
    own_ids = {table.snapshot.id, table.snapshot.summary.get(_COPY_OF, table.snapshot.id)}
    if newest.id in own_ids or newest.summary.get(_COPY_OF) in own_ids:
        return table
    if any(ancestor.id in own_ids or _holds(ancestor, table.snapshot) for ancestor in _lineage(source)):
        with hold_snapshot(source.store, source.branch, source.entry):
            return (
                table.transaction()
                .restore(newest)
                .commit(_FAST_FORWARD_OPERATION, summary={_COPY_OF: newest.id, "from": source.branch})
            )
    head = f"snapshot {table.snapshot.id} of branch {table.branch!r}"
    raise Conflict(
        f"branch {source.branch!r} does not hold {head}: both went on since they parted; append what is missing instead"
    )


def restore_snapshot(table: StoredTable, old: StoredTable) -> StoredTable:
    """Make the table what it was at ``old``, as its next snapshot. Raises Conflict, NotFound if that was collected."""
    old.snapshot.check_writable()
    with hold_snapshot(old.store, old.branch, old.entry):
        return table.transaction().restore(old.snapshot).commit("restore")


def is_ancestor(old: StoredTable, new: StoredTable) -> bool:
    """Say whether ``new`` came of ``old``: along its branch, or over the branches that it came by."""
    if old.branch == new.branch and old.snapshot.version <= new.snapshot.version:
        kinds = [entry.kind for entry in new.entries(old.entry.sequence + 1)] if new.branch != MAIN_BRANCH else []
        return "tombstone" not in kinds
    return any(_holds(ancestor, old.snapshot) for ancestor in _lineage(new))


def _holds(snapshot: Snapshot, state: Snapshot) -> bool:
    """Say whether a state is this stored snapshot, or one of the hot commits between its parent and it."""
    in_chain = snapshot.parent == state.stored.id and 0 < state.chain_length <= snapshot.hot_commits
    return snapshot.id == state.id or in_chain


def _lineage(table: StoredTable) -> Iterator[Snapshot]:
    """The stored snapshots that led to this state, newest first, over all branches that it came by."""
    snapshot: Snapshot | None = table.snapshot.stored
    while snapshot is not None:
        yield snapshot
        before = snapshot.summary.get(_COPY_OF, snapshot.parent)
        try:
            snapshot = None if before is None else table.at(before).snapshot
        except NotFound:  # collected, with all that it came from
            return
