"""Old snapshots held while they are made reachable again, and the notice that a vacuum is running.

A vacuum first leaves a notice, then reads what leads to files, then deletes. Whoever holds a snapshot first tags it,
then looks for notices. So one of the two always sees the other, and the one that holds gives way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from fuse_storage.errors import Conflict, FormatError, NotFound
from fuse_storage.metadata.file_ref import Reference, new_id
from fuse_storage.metadata.refs import Branch, RefEntry, opened, sealed, written
from fuse_storage.metadata.tags import FOLDER, Tag, create_tag, drop_tag
from fuse_storage.store.ranges import Object
from fuse_storage.store.store import Store

NOTICES = "_refs/vacuum"
LASTING = timedelta(hours=1)
"""How long a vacuum may go on deleting after its notice. One twice as old is of a vacuum that died."""


def give_notice(store: Store, cutoff: datetime) -> Object:
    """Say that snapshots which were replaced before ``cutoff`` may go; the notice, with the store's own time."""
    key = f"{NOTICES}/{new_id()}.json"
    store.create(key, sealed({"kind": "vacuum", "cutoff": written(cutoff)}))
    return next(found for found in store.list(NOTICES) if found.key == key)


def was_head(branch: Branch, entry: RefEntry, cutoff: datetime) -> bool:
    """Whether this entry was the head of its branch at that time or later."""
    following = branch.find(entry.sequence + 1)
    return following is None or following.timestamp >= cutoff


def hold(store: Store, branch: str, entry: RefEntry, tag: Tag) -> None:
    """Make a tag of the snapshot that this entry made. Raises Conflict, without the tag, if a vacuum may be deleting
    it.

    Raises NotFound if one has, and as ``create_tag`` does.
    """
    create_tag(store, tag)
    try:
        _refuse_vacuumed(store, Branch(store, branch), entry, tag)
    except BaseException:
        drop_tag(store, tag.name)
        raise


@contextmanager
def held(store: Store, branch: str, entry: RefEntry) -> Iterator[None]:
    """The snapshot that this entry made stays until the end of the block. Raises Conflict or NotFound as ``hold``
    does.
    """
    assert entry.reference is not None
    assert entry.snapshot_id is not None
    now = datetime.now(UTC)
    tag = Tag(f"held-{new_id()}", now, entry.snapshot_id, entry.reference, now + 2 * LASTING)
    hold(store, branch, entry, tag)
    try:
        yield
    finally:
        drop_tag(store, tag.name)


def _refuse_vacuumed(store: Store, branch: Branch, entry: RefEntry, tag: Tag) -> None:
    if notices := list(store.list(NOTICES)):
        made = next(found.modified for found in store.list(FOLDER) if found.key == f"{FOLDER}/{tag.name}.json")
        for notice in notices:
            if made - notice.modified < 2 * LASTING and not was_head(branch, entry, _cutoff(store, notice)):
                raise Conflict(
                    f"a vacuum of {store.url} is running, and snapshot {tag.snapshot_id} is older than "
                    f"what it keeps: try later"
                )
    reference: Reference = tag.reference
    try:
        store.read(reference.path)
    except NotFound as missing:
        raise NotFound(f"{store.url}: snapshot {tag.snapshot_id} was collected by a vacuum") from missing


def _cutoff(store: Store, notice: Object) -> datetime:
    try:
        found = opened(store.read(notice.key), f"{store.url}/{notice.key}")
        return datetime.fromisoformat(found["cutoff"])
    except NotFound:
        return datetime.min.replace(tzinfo=UTC)  # it has just ended
    except (LookupError, TypeError, ValueError) as problem:
        raise FormatError(f"{store.url}/{notice.key} is no notice of a vacuum: {problem!r}") from problem
