"""Committing: staged changes become one snapshot, visible at once or not at all.

The files come first, then the list, then the snapshot, and last one entry in the chain of the branch: only its creation
commits. Whoever loses that race reloads, applies the changes anew and tries the next number. Once the creation of an
entry was tried, nothing that was staged is deleted here: an answer that never came may still have been a yes.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Generic, TypeVar

import pyarrow as pa

from fuse_storage.commit import table_keys
from fuse_storage.commit.actions import (
    Action,
    AddIndex,
    AppendSegments,
    CompactSegments,
    DropIndex,
    EvolveSchema,
    OverwriteSegments,
    RestoreSnapshot,
    SetTableKey,
)
from fuse_storage.commit.attach_sidecars import AttachSidecars
from fuse_storage.commit.draft import Draft
from fuse_storage.commit.head import COMMIT_TIMEOUT_SECONDS, Backoff, Head, create_ref, write_snapshot
from fuse_storage.commit.replace_blocks import BlockReplacement, ReplaceBlocks, UnseenBlockFinder
from fuse_storage.commit.schema_evolution import SchemaChange
from fuse_storage.commit.sidecar_writer import SidecarBuilder
from fuse_storage.errors import CommitUnknown, Conflict, Expired, StorageError
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.encoding import utc_now
from fuse_storage.metadata.file_ref import new_id
from fuse_storage.metadata.refs import Branch, RefEntry
from fuse_storage.metadata.segment import StagedSegment
from fuse_storage.metadata.sidecar import StagedSidecars
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.primary_key.row_rules import row_rules

MAX_WRITE_SECONDS = 24 * 3600
"""How long a writer may take, unless the table's property ``max_write_seconds`` says otherwise: what is staged and
older than that may be collected.
"""
_INDEX_KEY_PATTERN = re.compile(r"[0-9A-Za-z_]{1,64}")

_said_of_commits: ContextVar[Callable[[], Mapping[str, Any]]] = ContextVar("said_of_commits", default=dict)

HeadT = TypeVar("HeadT", bound=Head)


@contextmanager
def said_of_commits(members: Callable[[], Mapping[str, Any]]) -> Iterator[None]:
    """Add members to the summaries of all commits that this thread makes within; they are asked for at each commit."""
    token = _said_of_commits.set(members)
    try:
        yield
    finally:
        _said_of_commits.reset(token)


@dataclass
class Transaction(Generic[HeadT]):
    """Changes to one table, to be committed together. Used by one thread.

    ``table``: the snapshot that they were decided on. ``builders``: by index key, to roll up what is known of segments
    that merge on the way. ``may_be_committed``: the commit of this id may have been made already, by a task that died
    before it could tell; then it is not made again.
    """

    table: HeadT
    builders: Mapping[str, SidecarBuilder] = field(default_factory=dict)
    commit_id: str = field(default_factory=new_id)
    may_be_committed: bool = False
    _actions: list[Action] = field(default_factory=list)
    _started: list[datetime] = field(default_factory=list)
    _merge_cache: dict[tuple[Any, ...], pa.Table | None] = field(default_factory=dict)
    _ended: bool = False

    def append(self, staged: Sequence[StagedSegment]) -> Transaction[HeadT]:
        """Add what a writer staged."""
        if staged:
            self.stage(AppendSegments(tuple(staged)), staged)
        return self

    def overwrite(self, staged: Sequence[StagedSegment], force: bool = False) -> Transaction[HeadT]:
        """Replace all rows. Conflict if rows were added since the table was read, unless ``force``."""
        return self.stage(OverwriteSegments(tuple(staged), force), staged)

    def replace_blocks(
        self,
        replacements: Sequence[BlockReplacement],
        staged: Sequence[StagedSegment],
        source_segment_ids: Iterable[str],
        find_unseen_blocks: UnseenBlockFinder | None = None,
        name: str = "rewrite",
        same_rows: bool = False,
    ) -> Transaction[HeadT]:
        """Replace blocks by what a writer staged for them; see ``ReplaceBlocks``."""
        return self.stage(
            ReplaceBlocks(
                tuple(replacements), tuple(staged), frozenset(source_segment_ids), find_unseen_blocks, name, same_rows
            ),
            staged,
        )

    def attach_sidecars(self, key: str, staged: Mapping[str, StagedSidecars]) -> Transaction[HeadT]:
        """Add what an index, by its key, knows of segments, by their ids."""
        return self.stage(AttachSidecars(key, dict(staged))) if staged else self

    def add_index(self, name: str, definition: Mapping[str, Any]) -> Transaction[HeadT]:
        """Add a definition: JSON-able, with a "key". Conflict if somebody else just made one of this name."""
        if not _INDEX_KEY_PATTERN.fullmatch(str(definition.get("key", ""))):
            raise ValueError(
                f"the definition of {name!r} needs a 'key' of letters and digits, under which its sidecars are kept"
            )
        return self.stage(AddIndex(name, json.loads(json.dumps(dict(definition)))))

    def drop_index(self, name: str) -> Transaction[HeadT]:
        """Drop a definition, and with it all its sidecars."""
        return self.stage(DropIndex(name))

    def compact_segments(self) -> Transaction[HeadT]:
        """Join segments that fit into one; nothing is committed if there are none."""
        return self.stage(CompactSegments())

    def evolve_schema(
        self, schema_change: SchemaChange, depends_on_indexes: bool = False, depends_on_rows: bool = False
    ) -> Transaction[HeadT]:
        """Change columns by a step of ``schema_evolution``.

        ``depends_on_indexes``, ``depends_on_rows``: it also matters which indexes, which rows there are, so that a
        change of those, and rows that come, are a Conflict.
        """
        return self.stage(EvolveSchema(schema_change, depends_on_indexes, depends_on_rows))

    def cluster_by(self, columns: Sequence[str], method: str) -> Transaction[HeadT]:
        """Choose by what rows are to be kept together from now on; by nothing, without columns."""
        step = partial(table_keys.cluster_by, names=tuple(columns), method=method)
        return self.stage(SetTableKey(step, "clustering key", ("cluster_ids", "cluster_method"), "cluster by"))

    def key_by(self, columns: Sequence[str]) -> Transaction[HeadT]:
        """Say which columns identify a row; none do, without columns."""
        return self.stage(SetTableKey(partial(table_keys.key_by, names=tuple(columns)), "key", ("key_ids",), "key by"))

    def restore(self, old: Snapshot) -> Transaction[HeadT]:
        """Make the table what it was at ``old``: rows, columns, indexes.

        Conflict if somebody changed it since it was read.
        """
        return self.stage(RestoreSnapshot(old))

    def commit(
        self,
        operation: str | None = None,
        application: tuple[str, int] | None = None,
        timeout: float = COMMIT_TIMEOUT_SECONDS,
        summary: Mapping[str, Any] | None = None,
        enter: bool = False,
        *,
        once: bool = False,
    ) -> HeadT:
        """Make the changes visible, and give the table as they left it. If they change nothing, nothing is committed.

        ``application`` (id, version): commits only if this application has not committed this version or a later one.
        ``enter``: its first version is committed even if it changes nothing, so that the table knows the application.
        ``once``: the first race that is lost is a Conflict.
        Raises Conflict, naming the commit that does not go together with this one, or the last of those that won the
        race until ``timeout`` seconds were over; CommitUnknown if the store gives no answer at all to the write that
        commits; Expired if writing took too long; other StorageErrors if nothing was committed.
        """
        if self._ended:
            raise StorageError(f"commit {self.commit_id} was tried before: begin another transaction")
        if not self._actions and not enter:
            return self.table
        json.dumps(dict(summary or {}))  # before anything is written
        attempt = _CommitAttempt(
            self.table.snapshot,
            self._actions,
            self.builders,
            self.commit_id,
            operation or " and ".join(dict.fromkeys(action.name for action in self._actions)),
            application,
            summary or {},
            self._merge_cache,
            enter,
        )
        deadline = time.monotonic() + timeout
        head, backoff = self.table if once else self.table.refresh(), Backoff()
        commits_since = head.commits_since(self.table.snapshot)
        if self.may_be_committed and self.commit_id in (entry.commit_id for entry, _ in commits_since()):
            return head
        while True:
            self._check_write_time(head.snapshot)
            if (prepared := attempt.prepare(head)) is None:
                return head
            entry, snapshot = prepared
            if self._create_ref(head, entry, deadline):
                self._ended = True
                Branch(head.store, head.branch).write_head_hint(entry.sequence)
                return head.at_entry(entry, snapshot)
            head = head.refresh()
            if once or time.monotonic() > deadline:
                raise Conflict(
                    f"others were faster for {timeout:g} s, the last of them {head.entry}: try again", str(head.entry)
                )
            backoff.pause()

    def stage(self, action: Action, staged: Sequence[StagedSegment] = ()) -> Transaction[HeadT]:
        """Add an action, and what a writer staged for it."""
        self._actions, self._started = [*self._actions, action], self._started + [each.started for each in staged]
        return self

    def _check_write_time(self, head: Snapshot) -> None:
        limit = timedelta(seconds=float(head.properties.get("max_write_seconds", MAX_WRITE_SECONDS)))
        if self._started and (took := utc_now() - min(self._started)) > limit:
            raise Expired(
                f"writing took {took}, and the property max_write_seconds allows {limit}: write the rows again"
            )

    def _create_ref(self, head: HeadT, entry: RefEntry, deadline: float) -> bool:
        """Create the entry, as ``create_ref`` does. Once nobody can tell whether it was, this transaction is over."""
        try:
            return create_ref(Branch(head.store, head.branch), entry, deadline, (head.entry, head.snapshot))
        except CommitUnknown:
            self._ended = True
            raise


@dataclass(frozen=True, slots=True)
class _CommitAttempt:
    """What is the same each time that a transaction tries. ``base``: the snapshot that its actions were decided on."""

    base: Snapshot
    actions: Sequence[Action]
    builders: Mapping[str, SidecarBuilder]
    commit_id: str
    operation: str
    application: tuple[str, int] | None
    summary: Mapping[str, Any]
    merge_cache: dict[tuple[Any, ...], pa.Table | None]
    enter: bool = False

    def prepare(self, head: Head) -> tuple[RefEntry, Snapshot] | None:
        """Write list and snapshot for the next entry after this head; None if there is nothing to change."""
        head.snapshot.check_writable()
        if self._is_applied(head.snapshot):
            return None
        draft = Draft(
            head.store, self.base, head.snapshot, head.commits_since(self.base), self.builders, self.merge_cache
        )
        for action in self.actions:
            action.apply(draft)
        entering = self.enter and self.application and self.application[0] not in head.snapshot.applications
        if not (draft.changed or entering):
            return None
        keeps_key = draft.same_rows or draft.keeps_key
        row_rules(head.snapshot).check_commit(draft.schema_state, keeps_key, self.operation)
        draft.finalize()
        return self._write(head, draft)

    def _is_applied(self, head: Snapshot) -> bool:
        """Tell whether the application has committed this version, or a later one, already."""
        if self.application is None:
            return False
        application_id, version = self.application
        return head.applications.get(application_id, version - 1) >= version

    def _write(self, head: Head, draft: Draft) -> tuple[RefEntry, Snapshot]:
        store = head.store
        snapshot, files = draft.next_snapshot(
            head.branch,
            self.commit_id,
            self.operation,
            self.application,
            {**draft.summary, **self.summary, **_said_of_commits.get()()},
        )
        with ThreadPoolExecutor(2, "fuse-commit") as threads:  # none waits for another: nobody sees them yet
            writes = [threads.submit(store.create, path, data) for path, data in files.items()]
            entry = write_snapshot(store, snapshot, head.entry)
            for write in writes:
                write.result()
        if snapshot.segments is not None:  # whoever appends next, or reads here, need not read it
            metadata_table.keep_all_columns(store, snapshot.segments, draft.segment_rows)
        return entry, snapshot
