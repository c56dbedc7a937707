"""Finding a table: which entry of which branch is meant, why there is none, and where a new one may be made."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from fuse_storage.commit.segment_writer import WriteOptions
from fuse_storage.errors import AlreadyExists, InvalidArgument, NotFound, StorageError
from fuse_storage.metadata.encoding import format_timestamp, require_time_zone, utc_now
from fuse_storage.metadata.file_ref import is_snapshot_id
from fuse_storage.metadata.refs import (
    CLOCK_TOLERANCE,
    RECOVER_HINT,
    REF_NAME_PATTERN,
    Branch,
    RefEntry,
    list_branch_names,
)
from fuse_storage.metadata.snapshot import KEY_PROPERTY, SOURCE_PROPERTY, Snapshot, claimed_ref_position, snapshot_path
from fuse_storage.metadata.tags import Tag, did_you_mean, find_tag, list_tags
from fuse_storage.store.abilities import list_strays, read_at_most
from fuse_storage.store.store import Store
from fuse_storage.validation.json_members import MAX_SNAPSHOT_BYTES

TABLE_PREFIXES = ("_refs/", "_ss/", "_sg/", "_x/", "_b/", "_i/")
"""Where the files of a table are; what else is in a folder is not a table's."""

KNOWN_PROPERTIES = (*WriteOptions.__dataclass_fields__, "max_write_seconds", "cluster_method")
"""Properties that mean something here; any other is kept for whoever set it."""


def validate_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Properties as a snapshot can hold them. Raises InvalidArgument for one that cannot be."""
    for name in properties:
        if name not in KNOWN_PROPERTIES and (near := difflib.get_close_matches(name, KNOWN_PROPERTIES, 1, 0.8)):
            raise InvalidArgument(f"no property {name!r} means anything: did you mean {near[0]!r}?")
    if KEY_PROPERTY in properties:
        raise InvalidArgument(
            f"the property {KEY_PROPERTY} holds ids that the table gives: name the columns of "
            f"its key instead, key=[...]"
        )
    if SOURCE_PROPERTY in properties:
        raise InvalidArgument(f"the property {SOURCE_PROPERTY} is that of attached tables: attach one to a source")
    WriteOptions.from_properties(properties)
    limit = properties.get("max_write_seconds", 1)
    if not isinstance(limit, int | float) or not limit > 0:
        raise InvalidArgument(f"max_write_seconds = {limit!r}: it must be a number above 0")
    try:
        return dict(json.loads(json.dumps(dict(properties), allow_nan=False)))
    except (TypeError, ValueError) as problem:
        raise InvalidArgument(f"properties must be what JSON can hold: {problem}") from problem


def update_properties(snapshot: Snapshot, updates: Mapping[str, Any], removals: Sequence[str] = ()) -> Snapshot:
    """Set and remove properties of a table. Raises InvalidArgument for one that cannot be, or not in this way."""
    if "cluster_method" in (*updates, *removals):
        raise InvalidArgument("cluster_method goes with the columns of the key: choose both by cluster_by")
    kept = {name: value for name, value in snapshot.properties.items() if name not in removals}
    if KEY_PROPERTY in removals:
        raise InvalidArgument(f"the property {KEY_PROPERTY} holds the table's key: choose another by key_by")
    if SOURCE_PROPERTY in removals and snapshot.source is not None:
        raise InvalidArgument(f"the property {SOURCE_PROPERTY} says whose files these are: convert the table instead")
    properties = kept | validate_properties(updates)
    return snapshot if properties == dict(snapshot.properties) else replace(snapshot, properties=properties)


def raise_if_occupied(branch: Branch, cloning: bool = False) -> None:
    """Raises AlreadyExists where there is a table, what is left of one, or anything else.

    What a creation, or a clone, left that died before it had written a snapshot is no hindrance, since no row can come
    of it; nor, to another clone (``cloning``), the snapshot of one that died before it could commit it.
    """
    store = branch.store
    if branch.find(1) is not None:
        raise AlreadyExists(f"{store.url} already is a table: open it, or choose another place")
    if list_branch_names(store):
        raise AlreadyExists(f"{store.url} is a table some of whose refs are lost: recover it (fuse-index recover)")
    lost_rows = ["_b/", *(["_sg/"] if _holds_lost_snapshot(store, cloning) else [])]
    for listed in store.list():
        if not listed.key.startswith(TABLE_PREFIXES) and not _is_clutter(listed.key):
            raise AlreadyExists(
                f"{store.url} holds other files, such as {listed.key!r}: choose an empty place for a table"
            )
        if listed.key.startswith(tuple(lost_rows)):
            raise AlreadyExists(
                f"{store.url} holds rows of a table whose refs are lost, such as {listed.key!r}: recover it"
            )
    for key in list_strays(store):
        raise AlreadyExists(f"{store.url} holds a link or a device, {key!r}: choose an empty place for a table")
    _raise_if_file(store)


def _is_clutter(key: str) -> bool:
    """Whether it is a file that desktops and network file systems leave in any folder."""
    name = key.rpartition("/")[2]
    return name.startswith((".DS_Store", "._", ".nfs")) or name in ("Thumbs.db", "desktop.ini")


def _holds_lost_snapshot(store: Store, cloning: bool) -> bool:
    """Whether a recovery would find a snapshot there, of more than a clone where one is ``cloning``."""
    keys = [listed.key for listed in store.list("_ss") if listed.key.endswith(".json")]
    return any(not (cloning and _is_new_clone(read_at_most(store, key, MAX_SNAPSHOT_BYTES))) for key in keys)


def _is_new_clone(data: bytes) -> bool:
    try:
        members = json.loads(data)
        return (members["operation"], members["sequence"]) == ("clone", 1)
    except (LookupError, TypeError, ValueError):
        return False


def _raise_if_file(store: Store) -> None:
    path = store.path("_refs")
    if path is not None and Path(path).parent.is_file():
        raise StorageError(f"{store.url} is a file, and a table is a folder")


def _missing_table_error(chain: Branch, missing: NotFound) -> StorageError:
    """The error that says why no table can be opened there, and what to do."""
    store = chain.store
    _raise_if_file(store)
    branches = [name for name in list_branch_names(store) if name != chain.name]
    if branches:
        return NotFound(f"{store.url} has no branch {chain.name!r}{did_you_mean(chain.name, branches)}")
    strange = (listed.key for listed in store.list() if not listed.key.startswith(TABLE_PREFIXES))
    other = next((key for key in strange if not _is_clutter(key)), None)
    if other is not None:
        return NotFound(f"{store.url} is no table of this kind: it holds other files, such as {other!r}")
    if next(iter(store.list("_ss")), None) is not None:
        return NotFound(
            f"{store.url} is a table whose refs are lost: recover it from its snapshots (fuse-index recover)"
        )
    return NotFound(f"{store.url} is no table: there is nothing; create it first")


def resolve_entry(branch: Branch, at: str | datetime | None) -> tuple[Branch, RefEntry]:
    """Find the head of a branch, or the entry that was it ``at`` a snapshot id, a tag or a time with a zone.

    A snapshot id or a tag may lead to another branch, which is why one is returned. Raises NotFound, saying what there
    is instead; InvalidArgument for a time without a zone.
    """
    store = branch.store
    try:
        head = branch.head()
    except NotFound as missing:
        raise _missing_table_error(branch, missing) from missing
    if at is None:
        return branch, head
    if isinstance(at, datetime):
        return branch, find_entry_at_time(branch, require_time_zone(at, str(at)))
    if is_snapshot_id(at):
        return find_snapshot_entry(store, at)
    if (tag := find_tag(store, at)) is not None:
        return _find_tagged_entry(store, tag)
    try:
        time = datetime.fromisoformat(at)
    except ValueError:
        hint = did_you_mean(at, [tag.name for tag in list_tags(store)])
        raise NotFound(
            f"{store.url} has no tag {at!r}, and it is neither a snapshot id nor a time in ISO form{hint}"
        ) from None
    return branch, find_entry_at_time(branch, require_time_zone(time, at))


def find_entry_at_time(branch: Branch, when: datetime) -> RefEntry:
    """Find the newest entry that is not later than ``when``. Raises NotFound if the branch began after it.

    Where an entry says a time that is yet to come, the store's own times are believed instead.
    """
    low, missing = 0, branch.head().sequence + 1
    newest = following = None
    while missing - low > 1:
        middle = (low + missing) // 2
        entry = branch.entry(middle)
        if entry.timestamp <= when:
            low, newest = middle, entry
        else:
            missing, following = middle, entry
    if following is not None and following.timestamp > utc_now() + CLOCK_TOLERANCE:
        times = branch.commit_times(utc_now())
        low = max((number for number, time in times.items() if time <= when), default=0)
        newest = branch.entry(low) if low else None
    if newest is None:
        first = format_timestamp(branch.entry(1).timestamp)
        raise NotFound(f"{branch.store.url}: branch {branch.name!r} began at {first}, after {format_timestamp(when)}")
    return newest


def _find_tagged_entry(store: Store, tag: Tag) -> tuple[Branch, RefEntry]:
    if tag.expires is not None and tag.expired():
        raise NotFound(
            f"{store.url}: tag {tag.name!r} expired at {format_timestamp(tag.expires)}; it named "
            f"snapshot {tag.snapshot_id}"
        )
    return find_snapshot_entry(store, tag.snapshot_id)


def find_snapshot_entry(store: Store, snapshot_id: str) -> tuple[Branch, RefEntry]:
    """Find the entry that made a snapshot visible, and its branch. Raises NotFound if none did.

    The snapshot's file says which entry that is; only if the entry says the same, it is believed.
    """
    try:
        data = read_at_most(store, snapshot_path(snapshot_id), MAX_SNAPSHOT_BYTES)
    except NotFound as missing:
        raise NotFound(f"{store.url} has no snapshot {snapshot_id}: it never had, or it was collected") from missing
    name, sequence = claimed_ref_position(data, f"{store.url}/{snapshot_path(snapshot_id)}")
    entry = Branch(store, name).find(sequence) if REF_NAME_PATTERN.fullmatch(name) else None
    if entry is None or entry.snapshot_id != snapshot_id:
        raise NotFound(
            f"{store.url}: no commit made snapshot {snapshot_id}: a writer prepared it and gave "
            f"up, or its file is damaged, or its entry is missing: {RECOVER_HINT}"
        )
    return Branch(store, name), entry
