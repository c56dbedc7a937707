"""Old snapshots held while they are made reachable again, and the notice that a vacuum is running.

A vacuum first leaves a notice, then reads what leads to files, then deletes. Whoever holds a snapshot first tags it,
then looks for notices. So one of the two always sees the other, and the one that holds gives way.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from fuse_storage.errors import Conflict, FormatError, NotFound
from fuse_storage.metadata.encoding import decode_checksummed_json, encode_checksummed_json, format_timestamp
from fuse_storage.metadata.file_ref import FileRef, new_id
from fuse_storage.metadata.refs import Branch, RefEntry
from fuse_storage.metadata.tags import TAG_FOLDER, Tag, create_tag, drop_tag
from fuse_storage.store.abilities import read_at_most
from fuse_storage.store.ranges import ObjectMeta
from fuse_storage.store.store import Store
from fuse_storage.validation.json_members import MAX_REF_BYTES, parse_stored_time

VACUUM_NOTICE_FOLDER = "_refs/vacuum"
VACUUM_TIME_LIMIT = timedelta(hours=1)
"""How long a vacuum may go on deleting after its notice. One twice as old is of a vacuum that died."""


def post_vacuum_notice(store: Store, cutoff: datetime) -> ObjectMeta:
    """Leave a notice that snapshots replaced before ``cutoff`` may go; give its file, with the store's own time."""
    key = f"{VACUUM_NOTICE_FOLDER}/{new_id()}.json"
    store.create(key, encode_checksummed_json({"kind": "vacuum", "cutoff": format_timestamp(cutoff)}))
    return next(notice for notice in store.list(VACUUM_NOTICE_FOLDER) if notice.key == key)


def was_head_since(branch: Branch, entry: RefEntry, cutoff: datetime) -> bool:
    """Whether this entry was the head of its branch at that time or later."""
    following = branch.find(entry.sequence + 1)
    return following is None or following.timestamp >= cutoff


def tag_snapshot(store: Store, branch: str, entry: RefEntry, tag: Tag) -> None:
    """Make a tag of the snapshot that this entry made, unless a vacuum may be deleting it.

    Then raises Conflict, and leaves no tag; NotFound if the snapshot is gone already; and as ``create_tag`` does.
    """
    create_tag(store, tag)
    try:
        _check_not_vacuumed(store, Branch(store, branch), entry, tag)
    except BaseException:
        drop_tag(store, tag.name)
        raise


@contextmanager
def hold_snapshot(store: Store, branch: str, entry: RefEntry) -> Iterator[None]:
    """Keep the snapshot that this entry made until the end of the block, by a tag.

    Raises Conflict or NotFound as ``tag_snapshot`` does.
    """
    assert entry.reference is not None
    assert entry.snapshot_id is not None
    now = datetime.now(UTC)
    tag = Tag(f"held-{new_id()}", now, entry.snapshot_id, entry.reference, now + 2 * VACUUM_TIME_LIMIT)
    tag_snapshot(store, branch, entry, tag)
    try:
        yield
    finally:
        drop_tag(store, tag.name)


def _check_not_vacuumed(store: Store, branch: Branch, entry: RefEntry, tag: Tag) -> None:
    if notices := list(store.list(VACUUM_NOTICE_FOLDER)):
        tagged_at = next(
            file.modified for file in store.list(TAG_FOLDER) if file.key == f"{TAG_FOLDER}/{tag.name}.json"
        )
        for notice in notices:
            if tagged_at - notice.modified < 2 * VACUUM_TIME_LIMIT and not was_head_since(
                branch, entry, _read_cutoff(store, notice)
            ):
                raise Conflict(
                    f"a vacuum of {store.url} is running, and snapshot {tag.snapshot_id} is older than "
                    f"what it keeps: try later"
                )
    reference: FileRef = tag.reference
    try:
        store.read(reference.path)
    except NotFound as missing:
        raise NotFound(f"{store.url}: snapshot {tag.snapshot_id} was collected by a vacuum") from missing


def _read_cutoff(store: Store, notice: ObjectMeta) -> datetime:
    try:
        members = decode_checksummed_json(read_at_most(store, notice.key, MAX_REF_BYTES), f"{store.url}/{notice.key}")
        return parse_stored_time(members["cutoff"])
    except NotFound:
        return datetime.min.replace(tzinfo=UTC)  # it has just ended
    except (LookupError, TypeError, ValueError) as problem:
        raise FormatError(f"{store.url}/{notice.key} is no notice of a vacuum: {problem!r}") from problem
