"""Committing: staged changes become one snapshot, visible at once or not at all.

The files come first, then the list, then the snapshot, and last one entry in the chain of the branch: only its creation
commits. Whoever loses that race reloads, applies the changes anew and tries the next number. Once the creation of an
entry was tried, nothing that was staged is deleted here: an answer that never came may still have been a yes.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from fuse_storage.commit import schema_evolution
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
from fuse_storage.commit.replace_blocks import BlockReplacement, ReplaceBlocks, UnseenBlockFinder
from fuse_storage.commit.schema_evolution import SchemaChange
from fuse_storage.errors import AlreadyExists, CommitUnknown, Conflict, Expired, NotFound, ReadOnly, StorageError
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.file_ref import FileRef, create_file, new_id
from fuse_storage.metadata.refs import Branch, RefEntry, next_timestamp
from fuse_storage.metadata.segment import StagedSegment, segment_list_path
from fuse_storage.metadata.sidecar import StagedSidecars
from fuse_storage.metadata.sidecar_writer import SidecarBuilder
from fuse_storage.metadata.snapshot import Snapshot

if TYPE_CHECKING:
    from fuse_storage.table import StoredTable

MAX_WRITE_SECONDS = 24 * 3600
"""How long a writer may take, unless the table's property ``max_write_seconds`` says otherwise: what is staged and
older than that may be collected.
"""
_INDEX_KEY_PATTERN = re.compile(r"[0-9A-Za-z_]{1,64}")
_MIN_RETRY_SECONDS, _MAX_RETRY_SECONDS = 0.005, 1.0
"""Seconds between attempts: doubled each time, and drawn at random below that, so that writers do not march in step."""


@dataclass
class Transaction:
    """Changes to one table, to be committed together. ``table`` is what they were decided on. Used by one thread.

    ``again``: the commit of this id may have been made already, by a task that died before it could tell; then it stays
    one.
    """

    table: StoredTable
    builders: Mapping[str, SidecarBuilder] = field(default_factory=dict)
    commit_id: str = field(default_factory=new_id)
    may_be_committed: bool = False
    _actions: list[Action] = field(default_factory=list)
    _started: list[datetime] = field(default_factory=list)
    _merge_cache: dict[tuple[Any, ...], pa.Table | None] = field(default_factory=dict)
    _ended: bool = False

    def append(self, staged: Sequence[StagedSegment]) -> Transaction:
        """Add what a writer staged."""
        if staged:
            self._stage(AppendSegments(tuple(staged)), staged)
        return self

    def overwrite(self, staged: Sequence[StagedSegment], force: bool = False) -> Transaction:
        """Replace all rows. Conflict if rows were added since the table was read, unless ``force``."""
        return self._stage(OverwriteSegments(tuple(staged), force), staged)

    def replace_blocks(
        self,
        replacements: Sequence[BlockReplacement],
        staged: Sequence[StagedSegment],
        source_segment_ids: Iterable[str],
        find_unseen_blocks: UnseenBlockFinder | None = None,
        name: str = "rewrite",
        same_rows: bool = False,
    ) -> Transaction:
        """Replace blocks by what a writer staged for them; see ``rewriting.Rewrite``."""
        return self._stage(
            ReplaceBlocks(
                tuple(replacements), tuple(staged), frozenset(source_segment_ids), find_unseen_blocks, name, same_rows
            ),
            staged,
        )

    def attach_sidecars(self, key: str, staged: Mapping[str, StagedSidecars]) -> Transaction:
        """Add what an index, by its key, knows of segments, by their ids."""
        return self._stage(AttachSidecars(key, dict(staged))) if staged else self

    def add_index(self, name: str, definition: Mapping[str, Any]) -> Transaction:
        """Add a definition: JSON-able, with a "key". Conflict if somebody else just made one of this name."""
        if not _INDEX_KEY_PATTERN.fullmatch(str(definition.get("key", ""))):
            raise ValueError(
                f"the definition of {name!r} needs a 'key' of letters and digits, under which its sidecars are kept"
            )
        return self._stage(AddIndex(name, json.loads(json.dumps(dict(definition)))))

    def drop_index(self, name: str) -> Transaction:
        """Drop a definition, and with it all its sidecars."""
        return self._stage(DropIndex(name))

    def compact_segments(self) -> Transaction:
        """Join segments that fit into one; nothing is committed if there are none."""
        return self._stage(CompactSegments())

    def evolve_schema(self, schema_change: SchemaChange, depends_on_indexes: bool = False) -> Transaction:
        """Change columns by a step of ``evolution``. ``indexed``: it also matters which indexes there are."""
        return self._stage(EvolveSchema(schema_change, depends_on_indexes))

    def cluster_by(self, columns: Sequence[str], method: str) -> Transaction:
        """Choose by what rows are to be kept together from now on; by nothing, without columns."""
        step = partial(schema_evolution.cluster_by, names=tuple(columns), method=method)
        return self._stage(SetTableKey(step, "clustering key", ("cluster_ids", "cluster_method"), "cluster by"))

    def key_by(self, columns: Sequence[str]) -> Transaction:
        """Say which columns identify a row; none do, without columns."""
        return self._stage(
            SetTableKey(partial(schema_evolution.key_by, names=tuple(columns)), "key", ("key_ids",), "key by")
        )

    def restore(self, old: Snapshot) -> Transaction:
        """Make the table what it was at ``old``: rows, columns, indexes. Conflict if somebody changed it since it was
        read.
        """
        return self._stage(RestoreSnapshot(old))

    def commit(
        self,
        operation: str | None = None,
        application: tuple[str, int] | None = None,
        timeout: float = 60.0,
        summary: Mapping[str, Any] | None = None,
    ) -> StoredTable:
        """Make the changes visible; the table as they left it. If they change nothing, nothing is committed.

        ``application`` (id, version): commits only if this application has not committed this version or a later one.
        Raises Conflict, naming the commit that does not go together with this one, or the last of those that won the
        race until ``timeout`` seconds were over; CommitUnknown if the store gives no answer at all to the write that
        commits; Expired if writing took too long; other StorageErrors if nothing was committed.
        """
        if self._ended:
            raise StorageError(f"commit {self.commit_id} was tried before: begin another transaction")
        if not self._actions:
            return self.table
        json.dumps(dict(summary or {}))  # before anything is written
        operation = operation or " and ".join(dict.fromkeys(change.name for change in self._actions))
        attempt = _CommitAttempt(self, operation, application, summary or {})
        deadline = time.monotonic() + timeout
        head, wait = self.table.refresh(), _MIN_RETRY_SECONDS
        if self.may_be_committed and any(
            entry.commit_id == self.commit_id for entry, _ in head.commits_since(self.table.snapshot)()
        ):
            return head
        while True:
            self._check_write_time(head.snapshot)
            made = attempt.prepare(head)
            if made is None:
                return head
            entry, snapshot = made
            won = self._create_ref(Branch(head.store, head.branch), entry, deadline)
            if won:
                self._ended = True
                Branch(head.store, head.branch).write_head_hint(entry.sequence)
                return head.at_entry(entry, snapshot)
            head = head.refresh()
            if time.monotonic() > deadline:
                raise Conflict(
                    f"others were faster for {timeout:g} s, the last of them {head.entry}: try again", str(head.entry)
                )
            time.sleep(random.uniform(0, wait))
            wait = min(wait * 2, _MAX_RETRY_SECONDS)

    def _stage(self, change: Action, staged: Sequence[StagedSegment] = ()) -> Transaction:
        self._actions.append(change)
        self._started += [segment.started for segment in staged]
        return self

    def _check_write_time(self, head: Snapshot) -> None:
        limit = timedelta(seconds=float(head.properties.get("max_write_seconds", MAX_WRITE_SECONDS)))
        if self._started and (took := datetime.now(UTC) - min(self._started)) > limit:
            raise Expired(
                f"writing took {took}, and the property max_write_seconds allows {limit}: write the rows again"
            )

    def _create_ref(self, branch: Branch, entry: RefEntry, deadline: float) -> bool:
        """Whether the entry is the branch's now. Raises CommitUnknown if the store cannot tell."""
        try:
            return create_ref(branch, entry, deadline)
        except CommitUnknown:
            self._ended = True
            raise


@dataclass(frozen=True, slots=True)
class _CommitAttempt:
    """What is the same each time a transaction tries."""

    transaction: Transaction
    operation: str
    application: tuple[str, int] | None
    summary: Mapping[str, Any]

    def prepare(self, head: StoredTable) -> tuple[RefEntry, Snapshot] | None:
        """Write list and snapshot for the next entry after this head; None if there is nothing to change."""
        now, base = head.snapshot, self.transaction.table.snapshot
        now.check_writable()
        if (
            self.application is not None
            and now.applications.get(self.application[0], self.application[1] - 1) >= self.application[1]
        ):
            return None
        draft = Draft(
            head.store, base, now, head.commits_since(base), self.transaction.builders, self.transaction._merge_cache
        )
        for change in self.transaction._actions:
            change.apply(draft)
        if not draft.changed:
            return None
        draft.finalize()
        return self._write(head, draft)

    def _write(self, head: StoredTable, draft: Draft) -> tuple[RefEntry, Snapshot]:
        store, now, made, id = head.store, draft.head, draft.schema_state, new_id()
        rows, path = draft.segment_rows, segment_list_path(id)
        rolled_up = any(name.endswith(".roll_up") for name in rows.column_names)
        data = metadata_table.encode_metadata(rows, keep_arrow_types=rolled_up) if len(rows) else b""
        applications = dict(now.applications) | (dict([self.application]) if self.application else {})
        timestamp = next_timestamp(head.entry.timestamp)
        snapshot = Snapshot(
            id=id,
            sequence=now.sequence + 1,
            branch=head.branch,
            commit_id=self.transaction.commit_id,
            parent=now.id,
            timestamp=timestamp,
            operation=self.operation,
            schema_id=made.schema_id,
            schemas=made.schemas,
            last_column_id=made.last_column_id,
            names=made.names,
            cluster_ids=made.cluster_ids,
            properties=made.properties,
            definitions=draft.definitions,
            applications=applications,
            summary={**draft.summary, **self.summary},
            row_count=_total(rows, "row_count"),
            block_count=_total(rows, "block_count"),
            segment_count=len(rows),
            bytes=_total(rows, "size"),
            next_row_id=draft.next_row_id,
            same_rows=draft.same_rows,
            segments=FileRef.for_data(path, data) if data else None,
            reader_features=now.reader_features,
            writer_features=now.writer_features,
        )
        with ThreadPoolExecutor(1, "fuse-commit") as thread:  # neither waits for the other: nobody sees them yet
            listed = thread.submit(store.create, path, data) if data else None
            entry = write_snapshot(store, snapshot, head.entry)
            if listed is not None:
                listed.result()
        return entry, snapshot


def _total(rows: pa.Table, name: str) -> int:
    return int(pc.sum(rows.column(name)).as_py() or 0)


def write_snapshot(store: Any, snapshot: Snapshot, parent: RefEntry | None) -> RefEntry:
    """Write the snapshot; the entry that would make it visible."""
    reference: FileRef = create_file(store, snapshot.path, snapshot.encode())
    before, made = None if parent is None else parent.commit_id, snapshot
    return RefEntry(
        "snapshot", made.sequence, made.commit_id, before, made.timestamp, made.operation, made.id, reference
    )


def create_ref(branch: Branch, entry: RefEntry, deadline: float) -> bool:
    """Create the entry: whether it is the branch's now, or somebody else's is there.

    Creating equal bytes again is safe, so without an answer it is asked again until the deadline (of
    ``time.monotonic``). Raises CommitUnknown then, and ReadOnly at once.
    """
    wait = _MIN_RETRY_SECONDS
    while True:
        try:
            branch.create(entry)
            return True
        except AlreadyExists:
            return False
        except ReadOnly:
            raise  # an answer, which waiting does not change
        except StorageError as silence:
            found = _read_existing_ref(branch, entry.sequence)
            if found is not None:
                return found == entry
            if time.monotonic() > deadline:
                text = (
                    f"no answer came to commit {entry.commit_id}: ask "
                    f"table.was_committed({entry.commit_id!r}) before trying again"
                )
                raise CommitUnknown(text, entry.commit_id) from silence
        time.sleep(random.uniform(0, wait))
        wait = min(wait * 2, _MAX_RETRY_SECONDS)


def _read_existing_ref(branch: Branch, sequence: int) -> RefEntry | None:
    try:
        return branch.find(sequence)
    except (StorageError, NotFound):
        return None
