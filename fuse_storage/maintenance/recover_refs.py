"""Refs of a table are made anew from its snapshots, for whoever has lost ``_refs/`` and nothing else.

Every snapshot says which entry of which branch made it visible, so that entry can be written again. What no file tells
stays lost: tags, and that a branch was dropped. A writer that lost a race leaves a snapshot that was never committed;
it is told apart, because what came after it names another parent, and because a chain of hot commits ends with the
entry that won. A snapshot whose chain has not ended is the head. Else the hint tells at the end of a branch that an
entry was there, or only who asks can say which is right.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from fuse_storage.card import Shown
from fuse_storage.errors import FormatError, InvalidArgument, NotFound, StorageError, TableUrl
from fuse_storage.hot.chain import list_chain_files
from fuse_storage.hot.entry import HotEntry, decode_chain_file
from fuse_storage.hot.tail import read_tail
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.encoding import TIMESTAMP_RESOLUTION, format_timestamp
from fuse_storage.metadata.file_ref import FileRef, new_id
from fuse_storage.metadata.refs import Branch, RefEntry, list_branch_names
from fuse_storage.metadata.segment import HOT_BLOCK_FOLDER, hot_block_path
from fuse_storage.metadata.segment_list import read_segment_list, segment_files
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.store.abilities import read_at_most
from fuse_storage.store.chain import MAX_PARALLEL_REF_READS
from fuse_storage.store.store import Store
from fuse_storage.validation.json_members import MAX_REF_BYTES, MAX_SNAPSHOT_BYTES

_MAX_SEQUENCE = 10_000_000
"""Commits of a branch that can be recovered: each up to the newest gets its entry."""
_LOST_OPERATION = "lost"
"""The operation of an entry whose snapshot is gone: collected by a vacuum, or there was none."""


@dataclass(frozen=True, slots=True, repr=False)
class Recovery(Shown):
    """Entries that a recovery wrote, or would write, and what it could not decide or read.

    ``entries``: by branch, newest first. ``unreadable``: why a snapshot cannot be read, by its key. ``later``: by
    branch, ids of snapshots that came after the newest entry that is left, the oldest first. They are not committed
    unless ``heads`` says so: no file tells whether their entries were lost too, or their writers gave up.
    ``stray_hot_blocks``: the number of blocks of hot commits that no entry and no tail leads to: their entries were
    lost, or never made.
    """

    entries: Mapping[str, Sequence[RefEntry]]
    later: Mapping[str, Sequence[str]]
    unreadable: Mapping[str, str]
    done: bool
    stray_hot_blocks: int = 0

    def _facts(self) -> Mapping[str, Any]:
        entries = {name: f"{len(entries)} entries" for name, entries in self.entries.items()}
        later = {name: f"{len(ids)} later snapshots" for name, ids in self.later.items()}
        counts = {"unreadable": len(self.unreadable), "stray_hot_blocks": self.stray_hot_blocks}
        return {"done": self.done, "branches": entries, "later": later, **counts}

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        branches = [
            {
                "branch": name,
                "entries": len(entries),
                "lost": sum(entry.operation == _LOST_OPERATION for entry in entries),
                "newest": entries[0].snapshot_id,
                "timestamp": format_timestamp(entries[0].timestamp),
                "operation": entries[0].operation,
            }
            for name, entries in self.entries.items()
        ]
        later = {name: list(ids) for name, ids in self.later.items()}
        found = {"branches": branches, "later": later, "unreadable": dict(self.unreadable), "done": self.done}
        return found | {"stray_hot_blocks": self.stray_hot_blocks}


@dataclass(frozen=True, slots=True)
class _FoundSnapshot:
    snapshot: Snapshot
    reference: FileRef

    @property
    def entry(self) -> RefEntry:
        """The entry that made the snapshot visible, without its parent, which only the entry before tells."""
        snapshot = self.snapshot
        return RefEntry(
            "snapshot",
            snapshot.sequence,
            snapshot.commit_id,
            None,
            snapshot.timestamp,
            snapshot.operation,
            snapshot.id,
            self.reference,
            snapshot.stated_version,
        )


def recover_branches(store: Store, heads: Mapping[str, str] | None = None, dry_run: bool = False) -> Recovery:
    """Write the entries that are missing: of branches without any, and in the midst of others.

    No entry that is there changes. ``heads``: for a branch, the id of the snapshot that is its newest. Raises
    InvalidArgument where that is needed or wrong, NotFound where there are no snapshots, and StorageError. A recovery
    that dies is done by the next one.
    """
    candidates, unreadable = _read_snapshots(store)
    if not candidates:
        reason = next(iter(unreadable.values()), "there is nothing to recover a table from")
        raise NotFound(TableUrl(store.url) + f" holds no snapshot that can be read: {reason}")
    branches = sorted({candidate.snapshot.branch for candidate in candidates} | set(list_branch_names(store)))
    heads = dict(heads or {})
    if unknown := sorted(heads.keys() - set(branches)):
        raise InvalidArgument(
            TableUrl(store.url) + f" has no snapshot of a branch {unknown[0]!r}: it has them of {branches}"
        )
    chains, damaged = _read_chain_ends(store, candidates)
    missing, later, newest = {}, {}, {}
    for name in branches:
        branch_candidates = [candidate for candidate in candidates if candidate.snapshot.branch == name]
        existing = {number: Branch(store, name).entry(number) for number in Branch(store, name).sequences()}
        possible, open_id = _committed_by_chains(branch_candidates, chains, max(existing, default=0))
        entries = _missing_entries(Branch(store, name), existing, possible, heads.get(name, open_id))
        if entries:
            missing[name] = entries
        newest[name] = max([*existing, *(entry.sequence for entry in entries)], default=0)
        is_guess = name not in heads and (existing or open_id is not None)
        if is_guess and (ids := _snapshot_ids_after(newest[name], branch_candidates)):
            later[name] = ids
    for candidate in candidates if not dry_run else ():
        candidate.snapshot.check_writable()
    for name, sequence in newest.items() if not dry_run else ():
        for entry in missing.get(name, ()):  # the first one last: until then, whoever reads the branch finds a hole
            Branch(store, name).create(entry)
        if Branch(store, name).read_hint() != sequence:
            Branch(store, name).write_head_hint(sequence)
    return Recovery(missing, later, unreadable | damaged, not dry_run, _count_stray_blocks(store, candidates))


def _read_snapshots(store: Store) -> tuple[list[_FoundSnapshot], dict[str, str]]:
    """Read all snapshots: those that can be read, and by key why others cannot."""

    def read(key: str) -> _FoundSnapshot | StorageError:
        try:
            data = read_at_most(store, key, MAX_SNAPSHOT_BYTES)
            snapshot = Snapshot.decode(data, f"{store.url}/{key}")
            if not 0 < snapshot.sequence <= _MAX_SEQUENCE:
                raise FormatError(f"{store.url}/{key} says that it is of commit number {snapshot.sequence}")
            return _FoundSnapshot(snapshot, FileRef.for_data(key, data))
        except StorageError as problem:
            return problem

    keys = sorted(listed.key for listed in store.list("_ss") if listed.key.endswith(".json"))
    with ThreadPoolExecutor(MAX_PARALLEL_REF_READS, "fuse-recovery") as pool:
        results = dict(zip(keys, pool.map(read, keys), strict=True))
    candidates = [result for result in results.values() if isinstance(result, _FoundSnapshot)]
    return candidates, {key: str(result) for key, result in results.items() if isinstance(result, StorageError)}


def _read_chain_ends(
    store: Store, candidates: Sequence[_FoundSnapshot]
) -> tuple[dict[str, HotEntry | RefEntry], dict[str, str]]:
    """Read the last file of each chain, by the id of its snapshot; and why others cannot be read, by key."""
    if not any(candidate.snapshot.has_chain for candidate in candidates):
        return {}, {}
    ends, damaged = dict[str, HotEntry | RefEntry](), dict[str, str]()
    for snapshot_id, files in list_chain_files(store).items():
        key = max(file.key for file in files)
        try:
            ends[snapshot_id] = decode_chain_file(read_at_most(store, key, MAX_REF_BYTES), f"{store.url}/{key}")
        except StorageError as problem:
            damaged[key] = str(problem)
    return ends, damaged


def _count_stray_blocks(store: Store, candidates: Sequence[_FoundSnapshot]) -> int:
    """Count the blocks of hot commits that no entry, and no snapshot, leads to."""
    known = set[str]()
    for candidate in candidates:
        with suppress(StorageError):
            if (tail := read_tail(store, candidate.snapshot)) is not None:
                known |= set(tail.column("location").to_pylist())
    for file in (file for files in list_chain_files(store).values() for file in files):
        with suppress(StorageError):
            entry = decode_chain_file(read_at_most(store, file.key, MAX_REF_BYTES), file.key)
            known |= {hot_block_path(block.id) for block in entry.blocks} if isinstance(entry, HotEntry) else set()
    strays = {file.key for file in store.list(HOT_BLOCK_FOLDER)} - known
    for candidate in candidates if strays else ():  # tiering may have put them into segments where they lie
        with suppress(StorageError):
            for segment in segment_files(read_segment_list(store, candidate.snapshot)):
                (blocks,) = metadata_table.read_column_groups(store, segment, [("location",)])
                strays -= set(blocks.column("location").to_pylist())
    return len(strays)


def _committed_by_chains(
    candidates: Sequence[_FoundSnapshot], ends: Mapping[str, HotEntry | RefEntry], newest: int
) -> tuple[list[_FoundSnapshot], str | None]:
    """The candidates that no chain denies, and the id of the one whose chain has not ended, which is the head.

    ``newest``: the number of the newest entry that the branch has; an older snapshot is no head.
    """
    own_ends = [ends[candidate.snapshot.id] for candidate in candidates if candidate.snapshot.id in ends]
    winners = {end.sequence: end.snapshot_id for end in own_ends if isinstance(end, RefEntry)}
    possible = [
        candidate
        for candidate in candidates
        if winners.get(candidate.snapshot.sequence, candidate.snapshot.id) == candidate.snapshot.id
    ]
    heads = [
        candidate.snapshot
        for candidate in possible
        if isinstance(ends.get(candidate.snapshot.id), HotEntry) and candidate.snapshot.sequence >= newest
    ]
    return possible, max(heads, key=lambda head: head.sequence).id if heads else None


def _snapshot_ids_after(newest: int, candidates: Sequence[_FoundSnapshot]) -> list[str]:
    """The ids of the snapshots with greater numbers than ``newest``, in order."""
    return [
        candidate.snapshot.id
        for candidate in sorted(candidates, key=lambda candidate: candidate.snapshot.sequence)
        if candidate.snapshot.sequence > newest
    ]


def _missing_entries(
    branch: Branch, existing: Mapping[int, RefEntry], candidates: Sequence[_FoundSnapshot], head: str | None
) -> list[RefEntry]:
    """The entries that a branch lacks, newest first. ``existing``: entries that it has, by their numbers."""
    by_sequence = defaultdict(list)
    for candidate in candidates:
        by_sequence[candidate.snapshot.sequence].append(candidate)
    all_entries = list[RefEntry]()
    following: RefEntry | _FoundSnapshot | None = None
    for sequence in range(_newest_sequence(branch, existing, candidates, head), 0, -1):
        following = existing.get(sequence) or _choose_snapshot(by_sequence[sequence], following, head)
        if following is None and not all_entries:
            ids = ", ".join(candidate.snapshot.id for candidate in by_sequence[sequence])
            raise InvalidArgument(
                TableUrl(branch.store.url)
                + f": one of {ids} is the newest snapshot of branch {branch.name!r}: say which"
            )
        all_entries.append(_recovered_entry(following, sequence, all_entries[-1] if all_entries else None))
    linked = [
        replace(entry, parent=before.commit_id) if entry.sequence not in existing else entry
        for entry, before in pairwise(all_entries)
    ]
    return [entry for entry in [*linked, *all_entries[-1:]] if entry.sequence not in existing]


def _newest_sequence(
    branch: Branch, existing: Mapping[int, RefEntry], candidates: Sequence[_FoundSnapshot], head: str | None
) -> int:
    """The number of the newest entry. What comes after it, and after the hint, may never have been committed."""
    prepared = {candidate.snapshot.sequence for candidate in candidates}
    if head is None:
        newest, hinted = max(existing or prepared, default=0), branch.read_hint()
        return hinted if hinted in prepared and hinted > newest else newest
    sequence = next((candidate.snapshot.sequence for candidate in candidates if candidate.snapshot.id == head), 0)
    if (
        sequence == 0
        or (existing and sequence < max(existing))
        or (sequence in existing and existing[sequence].snapshot_id != head)
    ):
        raise InvalidArgument(
            TableUrl(branch.store.url) + f": snapshot {head!r} is not the newest of branch {branch.name!r}"
        )
    return sequence


def _choose_snapshot(
    candidates: Sequence[_FoundSnapshot], following: RefEntry | _FoundSnapshot | None, head: str | None
) -> _FoundSnapshot | None:
    """Choose the snapshot that ``following`` names as its parent, else ``head``, else the only candidate, or None."""
    if isinstance(following, _FoundSnapshot):
        candidates = [candidate for candidate in candidates if candidate.snapshot.id == following.snapshot.parent]
    elif following is not None:
        candidates = [candidate for candidate in candidates if candidate.snapshot.commit_id == following.parent]
    elif any(candidate.snapshot.id == head for candidate in candidates):
        candidates = [candidate for candidate in candidates if candidate.snapshot.id == head]
    return candidates[0] if len(candidates) == 1 else None


def _recovered_entry(candidate: RefEntry | _FoundSnapshot | None, sequence: int, later: RefEntry | None) -> RefEntry:
    if isinstance(candidate, RefEntry):
        return candidate
    if candidate is not None:
        return candidate.entry
    assert later is not None
    time = later.timestamp - TIMESTAMP_RESOLUTION
    lost = RefEntry("tombstone", sequence, later.parent or new_id(), None, time, _LOST_OPERATION)
    return replace(lost, stated_version=max(later.stated_version - 1, 0))
