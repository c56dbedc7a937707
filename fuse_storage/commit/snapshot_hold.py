"""Old snapshots held while they are made reachable again, and the notice that a vacuum is running.

A vacuum first leaves a notice, then reads what leads to files, then deletes. Whoever holds a snapshot first tags it,
then looks for notices. So one of the two always sees the other, and the one that holds gives way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta

from fuse_storage.errors import Conflict, FormatError, NotFound, StorageError, TableUrl
from fuse_storage.hot.tail import read_tail
from fuse_storage.metadata.encoding import decode_checksummed_json, encode_checksummed_json, format_timestamp, utc_now
from fuse_storage.metadata.file_ref import new_id
from fuse_storage.metadata.refs import Branch, RefEntry
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.metadata.tags import TAG_FOLDER, Tag, create_tag
from fuse_storage.store.abilities import read_at_most
from fuse_storage.store.cache import Cache
from fuse_storage.store.ranges import ObjectMeta
from fuse_storage.store.store import Store
from fuse_storage.validation.json_members import MAX_REF_BYTES, parse_stored_time

VACUUM_NOTICE_FOLDER = "_refs/vacuum"
_NOTICE_KEY = re.compile(rf"{VACUUM_NOTICE_FOLDER}/[0-9a-f]{{32}}\.json")
VACUUM_TIME_LIMIT = timedelta(hours=1)
"""How long a vacuum may go on deleting after its notice. One twice as old is of a vacuum that died."""


def post_vacuum_notice(store: Store, cutoff: datetime) -> ObjectMeta:
    """Leave a notice that snapshots replaced before ``cutoff`` may go; give its file, with the store's own time."""
    key = f"{VACUUM_NOTICE_FOLDER}/{new_id()}.json"
    store.create(key, encode_checksummed_json({"kind": "vacuum", "cutoff": format_timestamp(cutoff)}))
    return next(notice for notice in store.list(VACUUM_NOTICE_FOLDER) if notice.key == key)


def list_vacuum_notices(store: Store) -> list[ObjectMeta]:
    """List the notices of vacuums that run, or that died. Files of other names are passed over."""
    return [file for file in store.list(VACUUM_NOTICE_FOLDER) if _NOTICE_KEY.fullmatch(file.key)]


def _was_head_since(branch: Branch, entry: RefEntry, cutoff: datetime, now: datetime) -> bool:
    """Whether this entry was the head of its branch at that time or later, by the store's clock."""
    if branch.find(entry.sequence + 1) is None:
        return True
    return branch.commit_times(now)[entry.sequence + 1] >= cutoff


def tag_snapshot(store: Store, branch: str, entry: RefEntry, tag: Tag) -> str:
    """Make a tag of the snapshot that this entry made, unless a vacuum may be deleting it; return the tag's key.

    Then raises Conflict, and leaves no tag; NotFound if the snapshot is gone already; and as ``create_tag`` does.
    """
    key = create_tag(store, tag)
    try:
        _check_not_vacuumed(store, Branch(store, branch), entry, key)
    except BaseException:
        store.delete([key])
        raise
    return key


@contextmanager
def hold_snapshot(store: Store, branch: str, entry: RefEntry) -> Iterator[None]:
    """Keep the snapshot that this entry made until the end of the block, by a tag.

    Raises Conflict or NotFound as ``tag_snapshot`` does.
    """
    assert entry.reference is not None
    assert entry.snapshot_id is not None
    now = utc_now()
    tag = Tag(f"held-{new_id()}", now, entry.snapshot_id, entry.reference, now + 2 * VACUUM_TIME_LIMIT)
    key = tag_snapshot(store, branch, entry, tag)
    try:
        yield
    finally:
        with suppress(StorageError):  # what was done stands, and the tag expires
            store.delete([key])


def _check_not_vacuumed(store: Store, branch: Branch, entry: RefEntry, tag_key: str) -> None:
    if notices := list_vacuum_notices(store):
        tagged_at = next(file.modified for file in store.list(TAG_FOLDER) if file.key == tag_key)
        for notice in notices:
            if tagged_at - notice.modified < 2 * VACUUM_TIME_LIMIT and not _was_head_since(
                branch, entry, _read_cutoff(store, notice), notice.modified
            ):
                raise Conflict(
                    "a vacuum of "
                    + TableUrl(store.url)
                    + f" is running, and snapshot {entry.snapshot_id} is older than "
                    f"what it keeps: try later"
                )
    assert entry.reference is not None
    try:
        snapshot = Snapshot.decode(store.read(entry.reference.path), f"{store.url}/{entry.reference.path}")
    except NotFound as missing:
        raise NotFound(TableUrl(store.url) + f": snapshot {entry.snapshot_id} was collected by a vacuum") from missing
    read_tail(store, snapshot, Cache(0))  # which goes before the snapshot does


def _read_cutoff(store: Store, notice: ObjectMeta) -> datetime:
    try:
        members = decode_checksummed_json(read_at_most(store, notice.key, MAX_REF_BYTES), f"{store.url}/{notice.key}")
        return parse_stored_time(members["cutoff"])
    except NotFound:
        return datetime.min.replace(tzinfo=UTC)  # it has just ended
    except (LookupError, TypeError, ValueError) as problem:
        raise FormatError(f"{store.url}/{notice.key} is no notice of a vacuum: {problem!r}") from problem
