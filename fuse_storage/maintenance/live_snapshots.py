"""Which snapshots must stay: heads, those that were the head not long ago, the newest few of a branch, and tags.

What hot commits left behind is needed for a shorter while: the tail that a snapshot carries along and the chain after
it. In come ages, by the store's own clock. Out come snapshots, and how much of each is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from fuse_storage.metadata.file_ref import FileRef
from fuse_storage.metadata.refs import Branch, RefEntry, list_branch_names
from fuse_storage.metadata.tags import TagFile
from fuse_storage.store.store import Store


@dataclass(frozen=True, slots=True)
class VacuumLimits:
    """What is old. ``cutoff``: snapshots that were replaced before it may go; ``hot_cutoff``: what is hot of them.

    ``now``: the time by the store's clock. ``keep``: so many snapshots of each branch stay however old they are.
    """

    now: datetime
    cutoff: datetime
    hot_cutoff: datetime
    keep: int


@dataclass(frozen=True, slots=True)
class LiveSnapshot:
    """A snapshot that must stay. ``needed``: it is certain to be there, with its tail, if that is to stay.

    An earlier vacuum, told to keep less, may have collected others. ``tail``, ``chain``: whether the tail that it
    carries along, and the chain of hot commits after it, must stay, too.
    """

    reference: FileRef
    needed: bool
    tail: bool
    chain: bool


def live_snapshots(
    store: Store, tag_files: Iterable[TagFile], limits: VacuumLimits, heads: list[tuple[Branch, RefEntry]]
) -> Iterator[LiveSnapshot]:
    """List every snapshot that must stay, some of them more than once. Heads of branches are added to ``heads``."""
    for name in list_branch_names(store):
        branch = Branch(store, name)
        head, times = branch.complete_head(), branch.commit_times(limits.now)
        heads.append((branch, head))
        count, replaced = 0, datetime.max.replace(tzinfo=UTC)
        for entry in branch.walk(head.sequence):
            if count >= limits.keep and replaced < limits.cutoff:
                break
            if entry.reference is not None and (replaced >= limits.cutoff or count < limits.keep):
                is_hot = replaced >= limits.hot_cutoff
                yield LiveSnapshot(entry.reference, count == 0, is_hot, is_hot)
            if entry.kind == "tombstone":
                count = limits.keep  # what was before it stays for the retention alone
            count += entry.reference is not None
            replaced = times.get(entry.sequence, limits.now)
    for found in tag_files:
        if found.newest and not has_expired(found, limits.now):
            yield LiveSnapshot(found.tag.reference, True, True, False)


def has_expired(found: TagFile, now: datetime) -> bool:
    """Whether a tag has expired by this machine's clock, and lived as long as it was to by the store's.

    A writer whose clock is slow tags what it needs for two hours until a time that may be past here.
    """
    tag = found.tag
    return tag.expires is not None and tag.expired() and now - found.file.modified >= tag.expires - tag.timestamp
