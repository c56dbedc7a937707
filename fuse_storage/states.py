"""Finding a state of a table: a snapshot, or what a hot commit made, by its id, version, tag or time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial

from fuse_storage.errors import FormatError, InvalidArgument, NotFound, TableUrl
from fuse_storage.hot.chain import follow, list_chain_files, recall_state, states_between
from fuse_storage.location import missing_table_error
from fuse_storage.metadata.encoding import format_timestamp, require_time_zone, utc_now
from fuse_storage.metadata.file_ref import is_snapshot_id
from fuse_storage.metadata.refs import CLOCK_TOLERANCE, RECOVER_HINT, REF_NAME_PATTERN, Branch, RefEntry
from fuse_storage.metadata.snapshot import Snapshot, read_snapshot, snapshot_path
from fuse_storage.metadata.tags import Tag, did_you_mean, find_tag, list_tags
from fuse_storage.store.abilities import read_at_most
from fuse_storage.store.store import Store
from fuse_storage.validation.json_members import MAX_SNAPSHOT_BYTES, load_json

_MAX_DIGITS = 100
"""Digits of a version that are looked at; Python itself reads no number of some thousand."""


def resolve_state(
    branch: Branch, at: str | int | datetime | None, version: int | None = None
) -> tuple[Branch, RefEntry, Snapshot]:
    """Find the head of a branch, or what it was ``at`` a snapshot id, a tag, a version or a time with a zone.

    A snapshot id or a tag may lead to another branch, which is why one is returned. A tag whose name is a number,
    which older versions made, goes before the version. Raises NotFound, saying what there is instead; InvalidArgument
    for a time without a zone.
    """
    store = branch.store
    try:
        head = branch.head()
    except NotFound as missing:
        raise missing_table_error(branch, missing) from missing
    if version is not None:
        if at is not None:
            raise InvalidArgument(f"version={version} and at={at!r} are two states: say one")
        return find_version(branch, version)
    if at is None:
        return branch, *follow(branch, head, read_snapshot(branch, head))
    if isinstance(at, datetime):
        return _find_state_at_time(branch, require_time_zone(at, str(at)))
    if isinstance(at, int) and not isinstance(at, bool):
        return find_version(branch, at)
    if not isinstance(at, str):
        raise InvalidArgument(f"at={at!r}: give a snapshot id, a tag, a version such as 3, or a time with a zone")
    if is_snapshot_id(at):
        return find_state(store, at)
    if (tag := find_tag(store, at)) is not None:
        return _stored(*_find_tagged_entry(store, tag))
    if at.isdecimal():
        return find_version(branch, int(at[:_MAX_DIGITS]))  # of which more is none either
    try:
        time = datetime.fromisoformat(at)
    except ValueError:
        hint = did_you_mean(at, [tag.name for tag in list_tags(store)])
        raise NotFound(
            TableUrl(store.url)
            + f" has no tag {at!r}, and it is neither a version, a snapshot id nor a time in ISO form{hint}"
        ) from None
    return _find_state_at_time(branch, require_time_zone(time, at))


def _stored(branch: Branch, entry: RefEntry) -> tuple[Branch, RefEntry, Snapshot]:
    return branch, entry, read_snapshot(branch, entry)


def _find_state_at_time(branch: Branch, when: datetime) -> tuple[Branch, RefEntry, Snapshot]:
    """Find the newest state that is not later than ``when``. Raises as ``find_entry_at_time``."""
    entry = find_entry_at_time(branch, when)
    following = branch.find(entry.sequence + 1)
    state = read_snapshot(branch, entry)
    if state.has_chain and (following is None or following.version > entry.version + 1):
        state = max(
            (each for each in (state, *states_between(branch, entry, following)) if each.timestamp <= when),
            key=lambda each: each.version,
            default=state,
        )
    return branch, entry, state


def find_version(branch: Branch, version: int) -> tuple[Branch, RefEntry, Snapshot]:
    """Find the state of a branch by its version. Raises NotFound if there is none, or if it was collected."""
    low, missing = 0, branch.head().sequence + 1
    while missing - low > 1:
        middle = (low + missing) // 2
        low, missing = (middle, missing) if branch.entry(middle).version <= version else (low, middle)
    entry = branch.entry(low) if low else None
    if entry is not None and entry.version == version:
        return _stored(branch, entry)
    if entry is not None and entry.kind == "snapshot":
        states = states_between(branch, entry, branch.find(low + 1))
        if (state := next((each for each in states if each.version == version), None)) is not None:
            return branch, entry, state
    head = branch.head()
    _, newest = follow(branch, head, read_snapshot(branch, head))
    raise NotFound(
        TableUrl(branch.store.url)
        + f": branch {branch.name!r} has no version {version}: its newest is {newest.version}, and older ones may have "
        f"been vacuumed"
    )


def find_state(store: Store, state_id: str) -> tuple[Branch, RefEntry, Snapshot]:
    """Find the state that has this id: a snapshot, or what a hot commit made. Raises NotFound."""
    try:
        return _stored(*find_snapshot_entry(store, state_id))
    except NotFound as missing:
        for branch, entry in _entries_that_may_precede(store, state_id):
            following = branch.find(entry.sequence + 1)
            for state in states_between(branch, entry, following):
                if state.id == state_id:
                    return branch, entry, state
        raise missing


def _entries_that_may_precede(store: Store, state_id: str) -> Iterator[tuple[Branch, RefEntry]]:
    """Entries whose snapshots hot commits follow: that which this process knows to be right, or all, near ones first.

    Ids that were made at about one time begin alike; that says where to look first, and nothing more.
    """
    if (place := recall_state(store, state_id)) is not None:
        yield Branch(store, place[0]), Branch(store, place[0]).entry(place[1])
        return
    nearest = sorted(list_chain_files(store), key=lambda each: abs(int(each[:12], 16) - int(state_id[:12], 16)))
    for snapshot_id in nearest:
        try:
            yield find_snapshot_entry(store, snapshot_id)
        except NotFound:
            continue


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
        raise NotFound(
            TableUrl(branch.store.url) + f": branch {branch.name!r} began at {first}, after {format_timestamp(when)}"
        )
    return newest


def _find_tagged_entry(store: Store, tag: Tag) -> tuple[Branch, RefEntry]:
    if tag.expires is not None and tag.expired():
        raise NotFound(
            TableUrl(store.url) + f": tag {tag.name!r} expired at {format_timestamp(tag.expires)}; it named "
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
        raise NotFound(
            TableUrl(store.url) + f" has no snapshot {snapshot_id}: it never had, or it was collected"
        ) from missing
    name, sequence = _claimed_ref_position(data, f"{store.url}/{snapshot_path(snapshot_id)}")
    entry = Branch(store, name).find(sequence) if REF_NAME_PATTERN.fullmatch(name) else None
    if entry is None or entry.snapshot_id != snapshot_id:
        raise NotFound(
            TableUrl(store.url) + f": no commit made snapshot {snapshot_id}: a writer prepared it and gave "
            f"up, or its file is damaged, or its entry is missing: {RECOVER_HINT}"
        )
    return Branch(store, name), entry


def _claimed_ref_position(data: bytes, where: str) -> tuple[str, int]:
    """Read which branch, and which entry of it, a snapshot says it belongs to; nothing else of it is believed yet."""
    try:
        members = load_json(data, MAX_SNAPSHOT_BYTES)
        return str(members["branch"]), int(members["sequence"])
    except (LookupError, TypeError, ValueError) as problem:
        raise FormatError(f"{where} is no snapshot: {problem!r}") from problem


CommitReader = tuple[RefEntry, Callable[[], Snapshot | None]]
"""A commit, and what reads the state that it made; None where that was collected, and where the branch was dropped."""


def iterate_commits(branch: Branch, entry: RefEntry, state: Snapshot, limit: int | None) -> Iterator[CommitReader]:
    """Yield the commits of a branch up to a state, newest first; of hot ones those that were not collected.

    ``entry``: that of the state's snapshot. ``limit``: how many are wanted; more may come.
    """
    following: RefEntry | None = None
    oldest = 1 if limit is None else max(entry.sequence - limit + 1, 1)
    for current in branch.walk(entry.sequence, oldest):
        newest = state.version if following is None else following.version - 1
        if newest > current.version and current.kind == "snapshot":
            yield from _hot_commits(branch, current, following, newest)
        yield current, partial(_read_if_kept, branch, current)
        following = current


def _read_if_kept(branch: Branch, entry: RefEntry) -> Snapshot | None:
    try:
        return read_snapshot(branch, entry)
    except NotFound:
        return None


def _hot_commits(branch: Branch, entry: RefEntry, following: RefEntry | None, newest: int) -> list[CommitReader]:
    """The hot commits after an entry up to version ``newest``, newest first; none where they were collected."""
    try:
        states = states_between(branch, entry, following)
    except NotFound:
        return []
    commits: list[CommitReader] = []
    parent = entry.commit_id
    for state in states:
        if state.version <= newest:
            hot = RefEntry("hot", state.sequence, state.id, parent, state.timestamp, state.operation, state.id)
            commits.append((replace(hot, stated_version=state.version), partial(_itself, state)))
        parent = state.id
    return commits[::-1]


def _itself(state: Snapshot) -> Snapshot:
    return state
