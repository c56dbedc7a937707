"""Files that nothing leads to any more are deleted, beside running writers and readers; reachable files never are.

What leads to files: snapshots that were the head of a branch not longer ago than the retention, the newest few of each
branch, and tags. A file younger than the longest allowed write is left alone: its writer may be about to commit it.
Ages are by the store's own clock, whatever those of the writers say. Entries of branches are never deleted; of a
snapshot that is gone they still say when it was and who made it.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from fuse_storage.card import Shown
from fuse_storage.commit.snapshot_hold import VACUUM_TIME_LIMIT, list_vacuum_notices, post_vacuum_notice
from fuse_storage.deletion_vector import VECTOR_FOLDER
from fuse_storage.errors import Advice, Expired, InvalidArgument, NotFound, StorageError
from fuse_storage.hot.chain import follow
from fuse_storage.maintenance.live_snapshots import LiveSnapshot, VacuumLimits, has_expired, live_snapshots
from fuse_storage.maintenance.reachable_files import ReachableFiles
from fuse_storage.metadata.encoding import utc_now
from fuse_storage.metadata.refs import Branch, RefEntry
from fuse_storage.metadata.segment import HOT_BLOCK_FOLDER
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.metadata.tags import list_tag_files, may_hold_ref
from fuse_storage.store.abilities import list_strays, read_at_most
from fuse_storage.store.ranges import ObjectMeta
from fuse_storage.store.store import Store
from fuse_storage.validation.json_members import MAX_SNAPSHOT_BYTES

_FOLDER_KINDS = {
    "_ss": "snapshots",
    "_sg": "segments",
    "_x": "sidecars",
    "_b": "blocks",
    HOT_BLOCK_FOLDER: "hot blocks",
    "_i": "packs",
    VECTOR_FOLDER: "deletion vectors",
}
"""Folders in the order in which they are emptied: what leads to others goes first."""
_COMMIT_ALLOWANCE = timedelta(hours=1)
"""On top of the longest allowed write: a commit takes a while too."""
_MIN_RETENTION = timedelta(hours=1)
"""Retention below which readers of what was the head a moment ago would lose their files."""
_DELETE_BATCH_KEYS = 500
_TIME_LIMIT_SECONDS = VACUUM_TIME_LIMIT.total_seconds()


@dataclass(frozen=True, slots=True, repr=False)
class VacuumResult(Shown):
    """The files that a vacuum deleted, or would delete, and their bytes, by kind.

    ``kept``: the number of files that stay, because they are reachable or too young. ``passed_over``: the keys of
    links, pipes and devices, which are left as they are, as is whatever they lead to, and of files in the table's
    folders whose names are none that a table gives. ``refs``: the keys of hot commits, of tags that have expired or
    were dropped, and of notices of vacuums that died. ``disk_full``: nobody could be warned, since nothing could be
    written.
    """

    _shown = "deleted files bytes kept passed_over disk_full"
    _offered = "refs to_dict"

    files: dict[str, int]
    bytes: dict[str, int]
    kept: int
    deleted: bool
    passed_over: tuple[str, ...] = ()
    refs: tuple[str, ...] = ()
    disk_full: bool = False

    def to_dict(self) -> dict[str, Any]:
        """JSON-able."""
        return asdict(self)


def vacuum_table(
    store: Store,
    retention: timedelta,
    keep: int = 1,
    dry_run: bool = False,
    force: bool = False,
    hot_retention: timedelta | None = None,
) -> VacuumResult:
    """Delete the files that nothing leads to.

    ``keep``: so many snapshots of each branch stay however old they are, at least one. ``hot_retention``: how long hot
    commits and tails are needed after they were replaced, at most the retention. Raises InvalidArgument for a
    retention below an hour, unless ``force``; Expired if deleting takes longer than it may, and what is left is for the
    next; StorageError, before anything is deleted, if anything that leads to files cannot be read.
    """
    hot_retention = retention if hot_retention is None else hot_retention
    for name, duration in (("retention", retention), ("hot_retention", hot_retention)):
        if duration < _MIN_RETENTION and not force:
            raise InvalidArgument(
                f"{name}={duration}: readers may still need what was replaced in the last hour; "
                + Advice.say("vacuum", force=True)
                + " to risk it"
            )
    if not timedelta(0) <= hot_retention <= retention:
        raise InvalidArgument(f"hot_retention={hot_retention}: give at most the retention, which is {retention}")
    if keep < 1 or retention < timedelta(0):
        raise InvalidArgument(f"keep={keep}, retention={retention}: the newest snapshot of each branch always stays")
    elapsed = _Stopwatch()
    notice = None if dry_run else _sweep_and_warn(store, utc_now() - hot_retention)
    try:
        now = utc_now() if notice is None else notice.modified
        latest = min(utc_now(), now)  # never later than what the notice says, by which others go
        unwarned = notice is None and not dry_run
        limits = VacuumLimits(now, latest - retention, latest - (retention if unwarned else hot_retention), keep)
        plan = _make_plan(store, limits)
        if unwarned:
            plan = _delete_snapshots_unwarned(store, plan, elapsed, limits)
        for keys in () if dry_run else plan.stages():
            elapsed.delete(store, keys)
    finally:
        if notice is not None:
            store.delete([notice.key])
    files = {_FOLDER_KINDS[folder]: len(objects) for folder, objects in plan.litter.items()}
    sizes = {_FOLDER_KINDS[folder]: sum(file.size for file in objects) for folder, objects in plan.litter.items()}
    kept = plan.file_count - sum(files.values())
    return VacuumResult(files, sizes, kept, not dry_run, plan.passed_over, plan.refs, unwarned)


def _find_strays(store: Store) -> tuple[str, ...]:
    """What is no file in the folders of a table. Raises StorageError if it stands where a ref should: it may be lost.

    A folder that is a link itself is refused when it is listed.
    """
    strays = tuple(key for folder in ("_refs", *_FOLDER_KINDS) for key in list_strays(store, folder))
    for key in filter(may_hold_ref, strays):
        raise StorageError(
            f"{store.url}/{key} is no file, and what it should be might lead to others: nothing is deleted before it "
            f"is removed, or replaced by the file itself"
        )
    return strays


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a vacuum is to delete. ``litter``: files by folder. ``chains``: keys of hot commits.

    ``old_refs``: keys of notices, and of tags of whose name there is a newer one; ``ended_refs``: of these newer ones.
    """

    litter: Mapping[str, Sequence[ObjectMeta]]
    chains: Sequence[str]
    old_refs: Sequence[str]
    ended_refs: Sequence[str]
    passed_over: tuple[str, ...]
    file_count: int

    @property
    def snapshots(self) -> list[str]:
        return [file.key for file in self.litter["_ss"] if file.key.endswith(".json")]

    @property
    def refs(self) -> tuple[str, ...]:
        return (*self.chains, *self.old_refs, *self.ended_refs)

    def stages(self) -> Iterator[Sequence[str]]:
        """Keys to delete, stage after stage. Snapshots go first: where one is, all that it leads to still is."""
        yield self.snapshots
        yield self.chains
        for folder, objects in self.litter.items():
            yield [file.key for file in objects if folder != "_ss" or file.key.endswith(".parquet")]
        yield self.old_refs
        yield self.ended_refs


def _make_plan(store: Store, limits: VacuumLimits) -> _Plan:
    now = limits.now
    passed_over = _find_strays(store)
    reachable = ReachableFiles(store)
    tag_files = list_tag_files(store)
    heads: list[tuple[Branch, RefEntry]] = []
    for live in live_snapshots(store, tag_files, limits, heads):
        reachable.add(live)
    for branch, head in heads:
        if (snapshot_of_head := reachable.chains.get(str(head.snapshot_id))) is not None:
            newest = _follow_head(branch, head, snapshot_of_head)
            if newest.reference is not None:
                reachable.add(LiveSnapshot(newest.reference, True, True, True))
    young_since = now - reachable.longest_write - _COMMIT_ALLOWANCE
    reachable.add_young(young_since)
    young_hot_since = now - reachable.longest_hot_write - _COMMIT_ALLOWANCE
    chains = [
        file.key
        for files in reachable.add_chains().values()
        if all(file.modified < young_hot_since for file in files)
        for file in files
    ]
    without = {HOT_BLOCK_FOLDER: not reachable.chains, VECTOR_FOLDER: not reachable.has_vectors}
    folders = [folder for folder in _FOLDER_KINDS if not without.get(folder)]
    litter = {
        folder: list(reachable.unreachable(folder, young_hot_since if folder == HOT_BLOCK_FOLDER else young_since))
        for folder in folders
    }
    notices = [notice.key for notice in list_vacuum_notices(store) if notice.modified < young_since]
    names_in_use = {found.tag.name for found in tag_files if found.file.modified >= young_since}
    old = [found.file.key for found in tag_files if not found.newest and found.tag.name not in names_in_use]
    ended = [
        found.file.key
        for found in tag_files
        if found.newest and found.tag.name not in names_in_use and has_expired(found, now)
    ]
    passed_over = (*passed_over, *reachable.strays)
    return _Plan(litter, chains, [*notices, *old], ended, passed_over, reachable.file_count)


def _follow_head(branch: Branch, head: RefEntry, snapshot: Snapshot) -> RefEntry:
    """The newest entry of a branch, with a dead writer's commit, which nobody has met yet. Raises as ``follow``."""
    try:
        return follow(branch, head, snapshot)[0]
    except NotFound:
        newest = branch.complete_head()
        if newest.kind != "tombstone":  # by which that writer dropped the branch
            raise
        return newest


def _delete_snapshots_unwarned(store: Store, plan: _Plan, elapsed: _Stopwatch, limits: VacuumLimits) -> _Plan:
    """Delete the snapshots of a plan where no notice could be left; give the plan of what is left to delete.

    Whoever makes one of them reachable first tags it and then looks whether it is there. So one that is gone by then is
    refused, and the tag of one that was still there is seen here, once it is deleted: that snapshot is written back.
    """
    deleted = [file for file in plan.litter["_ss"] if file.key.endswith(".json")]
    data = {file.key: read_at_most(store, file.key, MAX_SNAPSHOT_BYTES) for file in deleted}
    elapsed.delete(store, list(data))
    named = {
        found.tag.reference.path for found in list_tag_files(store) if not has_expired(found, limits.now)
    } & data.keys()
    for key in named:
        store.create(key, data[key])
    again = _make_plan(store, limits)
    gone = [file for file in deleted if file.key not in named]
    litter = {**again.litter, "_ss": [*gone, *again.litter["_ss"]]}
    return replace(again, litter=litter, file_count=again.file_count + len(gone))


def _sweep_and_warn(store: Store, cutoff: datetime) -> ObjectMeta | None:
    """Leave the notice of this vacuum; None if the disk is too full for it, even without what dead writers left."""
    sweep: Callable[[], None] | None = getattr(store, "sweep_drafts", None)
    if sweep is not None:
        sweep()
    try:
        return post_vacuum_notice(store, cutoff)
    except StorageError as refusal:
        if getattr(refusal.__cause__, "errno", None) in (errno.ENOSPC, errno.EDQUOT):
            return None
        raise


class _Stopwatch:
    """Deletes as long as a vacuum may, by the clock that is fastest: some stand still while a machine sleeps."""

    def __init__(self) -> None:
        self._began = self._clocks()

    def delete(self, store: Store, keys: Sequence[str]) -> None:
        """Delete these, some at a time. Raises Expired when time is up."""
        for start in range(0, len(keys), _DELETE_BATCH_KEYS):
            if max(now - began for now, began in zip(self._clocks(), self._began, strict=True)) > _TIME_LIMIT_SECONDS:
                raise Expired(f"a vacuum may delete for {VACUUM_TIME_LIMIT}, and there is more: run it again")
            store.delete(keys[start : start + _DELETE_BATCH_KEYS])

    def _clocks(self) -> list[float]:
        """Seconds by each clock there is: awake, by the wall, and, where the system counts it, asleep too."""
        asleep = [time.clock_gettime(time.CLOCK_BOOTTIME)] if hasattr(time, "CLOCK_BOOTTIME") else []
        return [time.monotonic(), utc_now().timestamp(), *asleep]
