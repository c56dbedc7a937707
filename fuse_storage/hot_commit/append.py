"""Hot appends: one block and one entry, created in the chain of the head's snapshot, if nobody else's is there.

Whoever loses that race looks for the head again and creates another entry; the block stays what it is. A snapshot
without a chain, or with a full one, is followed by a snapshot that carries the tail along, these rows included.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Generic, TypeVar

import pyarrow as pa

from fuse_storage.commit.actions import changed_column_names
from fuse_storage.commit.draft import Draft
from fuse_storage.commit.head import COMMIT_TIMEOUT_SECONDS, Backoff, Head, check_commit, create_once
from fuse_storage.commit.segment_writer import WriteOptions
from fuse_storage.commit.transaction import Transaction
from fuse_storage.errors import Conflict, Expired, InvalidArgument
from fuse_storage.hot.chain import MAX_CHAIN_ENTRIES, HotChain, remember_state
from fuse_storage.hot.entry import APPEND_CHANGE, DELETE_CHANGE, PUT_CHANGE, HotBlock, HotEntry
from fuse_storage.hot.tail import align_tail, hot_block_rows, state_after
from fuse_storage.metadata.encoding import utc_now
from fuse_storage.metadata.file_ref import new_id
from fuse_storage.metadata.refs import Branch, next_timestamp
from fuse_storage.metadata.segment import hot_block_path
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.parquet.writer import write_block
from fuse_storage.partitions.spec import check_partition_values
from fuse_storage.schema.conform import conform_rows
from fuse_storage.schema.schema import Schema

MAX_HOT_SECONDS = 600
"""How long a hot writer may take, unless the property ``max_hot_seconds`` says otherwise."""
_MAX_UNSEEN_SECONDS = 60
"""A head that was seen longer ago, or than ``max_hot_seconds``, is looked for again: its chain may be collected."""
_MAX_PAUSE_SECONDS = 0.02
"""A longer pause than a write takes would leave the race to those who have just won it."""
_MAX_FILES_AHEAD = 8
_HeadT = TypeVar("_HeadT", bound=Head)


@dataclass(frozen=True, slots=True)
class AppendHot:
    """Put hot blocks at the end of the tail that a snapshot carries along. ``base``: what they were decided on."""

    blocks: tuple[HotBlock, ...]
    base: Snapshot
    name: str = "append"

    def apply(self, draft: Draft) -> None:
        draft.head.check_own_rows()
        check_hot_columns(self.blocks, self.base, draft.schema_state)
        blocks = number_rows(self.blocks, draft.next_row_id)
        next_row_id = draft.next_row_id + sum(block.row_count for block in blocks)
        time, version = next_timestamp(draft.head.timestamp), draft.head.version + 1
        entry = HotEntry(0, version, "", "", time, self.name, None, next_row_id, blocks)
        rows = hot_block_rows(entry, draft.schema_state)
        carried = [] if draft.tail_rows is None else [align_tail(draft.tail_rows, draft.schema)]
        draft.tail_rows = pa.concat_tables([*carried, rows], promote_options="default").combine_chunks()
        draft.keeps_key = draft.same_rows or draft.keeps_key
        draft.next_row_id, draft.has_chain, draft.changed, draft.same_rows = entry.next_row_id, True, True, False
        for name, count in (("added_rows", entry.row_count), ("added_blocks", len(blocks))):
            draft.summary[name] = draft.summary.get(name, 0) + count


def append_hot(
    table: _HeadT,
    rows: pa.Table,
    application: tuple[str, int] | None = None,
    timeout: float = COMMIT_TIMEOUT_SECONDS,
    operation: str = "append",
) -> _HeadT:
    """Add rows, at least one, by a hot commit: two creates, where nobody else commits. Gives the table after it.

    ``application`` (id, version): commits only if this application has not committed this version or a later one.
    Raises SchemaError for rows that do not fit, Conflict if a column that they hold was changed, or if others won the
    race until ``timeout`` seconds were over, Expired if it took longer than ``max_hot_seconds``, CommitUnknown if the
    store gives no answer to the write that commits, and other StorageErrors if nothing was committed.
    """
    if not len(rows):
        raise InvalidArgument("a hot commit has at least one row")
    started, clock = utc_now(), time.monotonic()
    block = write_hot_block(table, rows, table.snapshot.schema, APPEND_CHANGE)
    attempt: HotAttempt[_HeadT] = HotAttempt(table.snapshot, (block,), application, operation, started, clock)
    return commit_hot_blocks(table, attempt, timeout)


def write_hot_block(table: Head, rows: pa.Table, schema: Schema, change: str) -> HotBlock:
    """Write a hot block, before it is committed. ``schema``: all columns, or those of keys. Raises SchemaError."""
    base = table.snapshot
    base.check_writable()
    base.check_own_rows()
    block_id, options = new_id(), WriteOptions.from_properties(base.properties)
    conformed = conform_rows(rows, schema)
    if change != DELETE_CHANGE:
        check_partition_values(base, conformed)
    data, layout = write_block(conformed, schema, options)
    table.store.create(hot_block_path(block_id), data)
    return HotBlock.from_layout(block_id, layout, base.schema_id, change)


def commit_hot_blocks(table: _HeadT, attempt: HotAttempt[_HeadT], timeout: float = COMMIT_TIMEOUT_SECONDS) -> _HeadT:
    """Commit blocks that were written, at the head that there is by then. Raises as ``append_hot``."""
    head, backoff, deadline, losses = table, Backoff(_MAX_PAUSE_SECONDS), attempt.clock + timeout, 0
    if table.seen.age > _max_unseen_seconds(table.snapshot):
        head = head.refresh()
    while True:
        if is_applied(head.snapshot, attempt.application):
            return head
        if (committed := attempt.commit(head, deadline)) is not None:
            return committed
        losses += 1
        head = _winner(head, losses)
        if time.monotonic() > deadline:
            raise Conflict(
                f"others were faster for {timeout:g} s, the last of them commit {head.snapshot.commit_id}: try again"
            )
        backoff.pause()


def _winner(head: _HeadT, losses: int) -> _HeadT:
    """The head after so many lost races in a row: what won is the next file of the chain, and more may follow it.

    Who won goes on without a read, so whoever lost has to find out by one: of as many files at once as were lost.
    """
    state = head.snapshot
    if not state.has_chain or state.chain_length >= MAX_CHAIN_ENTRIES:
        return head.refresh()
    chain = HotChain(Branch(head.store, head.branch), head.entry, state.stored)
    newest, end = chain.advance_by(state, min(losses, _MAX_FILES_AHEAD))
    return head.refresh() if end is not None or newest is state else head.at_entry(head.entry, newest)


@dataclass(frozen=True, slots=True)
class HotAttempt(Generic[_HeadT]):
    """What is the same each time that a hot commit is tried. ``base``: the state that its blocks were made for.

    ``started``, ``clock``: when its writing began. ``still_holds``: asked, before each attempt after commits of others,
    whether the rows still follow from the table's state by then; if not, that is a Conflict. None: they always do.
    ``begin``: what else the same commit does, as a transaction on a head; then it is a snapshot, and there may be no
    block. ``summary``: what a snapshot says of it besides.
    """

    base: Snapshot
    blocks: tuple[HotBlock, ...]
    application: tuple[str, int] | None
    operation: str
    started: datetime
    clock: float
    still_holds: Callable[[_HeadT], bool] | None = None
    begin: Callable[[_HeadT], Transaction[_HeadT]] | None = None
    summary: Mapping[str, Any] = field(default_factory=dict)

    def commit(self, head: _HeadT, deadline: float) -> _HeadT | None:
        """Commit after this head; None if somebody else did."""
        state = head.snapshot
        state.check_writable()
        if self.still_holds is not None and state.commit_id != self.base.commit_id and not self.still_holds(head):
            raise Conflict(f"the table was changed by commit {state.commit_id}: read again, and decide", state.id)
        self._check_age(state)
        if self.begin is not None:
            return self._commit_snapshot(head)
        check_hot_columns(self.blocks, self.base, state)
        if not state.has_chain or state.chain_length >= MAX_CHAIN_ENTRIES:
            return self._commit_snapshot(head)
        blocks = number_rows(self.blocks, state.next_row_id)
        entry = HotEntry(
            state.chain_length + 1,
            state.version + 1,
            new_id(),
            state.commit_id,
            next_timestamp(state.timestamp),
            self.operation,
            self.application,
            state.next_row_id + sum(block.row_count for block in blocks),
            blocks,
        )
        chain, data = HotChain(Branch(head.store, head.branch), head.entry, state.stored), entry.encode()
        create = partial(chain.create, entry.number, data)
        check_commit()
        if not create_once(create, partial(_is_there, chain, entry.number, data), entry.commit_id, deadline, "table"):
            return None
        self._check_in_time(head, chain, entry)
        chain.write_hint(entry.number)
        after = state_after(state, entry)
        remember_state(chain.branch, head.entry, after)
        return head.at_entry(head.entry, after)

    def _commit_snapshot(self, head: _HeadT) -> _HeadT | None:
        transaction = Transaction(head) if self.begin is None else self.begin(head)
        if self.blocks:
            transaction.stage(AppendHot(self.blocks, self.base, self.operation))
        try:
            return transaction.commit(self.operation, self.application, summary=self.summary, once=True)
        except Conflict as lost:
            if lost.winner is None or head.refresh() is head:
                raise
            return None  # a lost race, or what the next attempt finds out anew

    def _check_age(self, state: Snapshot) -> None:
        """Raise Expired for a block that a vacuum may take already."""
        limit = _max_seconds(state)
        took = max((utc_now() - self.started).total_seconds(), time.monotonic() - self.clock)
        if took > limit:
            raise Expired(
                f"a hot commit took {timedelta(seconds=took)}, and the property max_hot_seconds allows "
                f"{timedelta(seconds=limit)}: write the rows again"
            )

    def _check_in_time(self, head: Head, chain: HotChain, entry: HotEntry) -> None:
        """Raise Expired for an entry that was created so late that its chain had been collected."""
        if head.seen.age <= _max_seconds(head.snapshot) + _max_unseen_seconds(head.snapshot) and (
            utc_now() - self.started
        ).total_seconds() <= _max_seconds(head.snapshot):
            return
        is_open = chain.branch.find(chain.entry.sequence + 1) is None
        if not is_open and (entry.number == 1 or chain.find(entry.number - 1) is None):
            chain.store.delete([chain.key(entry.number)])
            raise Expired(f"{entry} came after its chain had been collected: write the rows again")


def _max_seconds(state: Snapshot) -> float:
    return float(state.properties.get("max_hot_seconds", MAX_HOT_SECONDS))


def _max_unseen_seconds(state: Snapshot) -> float:
    return min(_MAX_UNSEEN_SECONDS, _max_seconds(state))


def _is_there(chain: HotChain, number: int, data: bytes) -> bool | None:
    existing = chain.find(number)
    return None if existing is None else existing == data


def is_applied(state: Snapshot, application: tuple[str, int] | None) -> bool:
    """Tell whether the application has committed this version, or a later one, already."""
    if application is None:
        return False
    return state.applications.get(application[0], application[1] - 1) >= application[1]


def number_rows(blocks: tuple[HotBlock, ...], row_id: int) -> tuple[HotBlock, ...]:
    """Number the rows of blocks, from this id on."""
    numbered = []
    for block in blocks:
        numbered.append(replace(block, first_row_id=row_id))
        row_id += block.row_count
    return tuple(numbered)


def check_hot_columns(blocks: tuple[HotBlock, ...], base: Snapshot, state: Snapshot) -> None:
    """Raise Conflict where columns that these blocks hold were changed since they were written.

    And InvalidArgument for rows that are to be added to a table with a primary key.
    """
    if not all(block.is_for(state) for block in blocks):
        raise InvalidArgument(
            "rows of a table with a primary key are put and deleted by their keys, by upsert and delete_keys, and "
            "those of any other table are appended"
        )
    for change, schema_id in {(block.change, block.schema_id) for block in blocks}:
        known = state.schemas.get(schema_id)
        if known is None or known != base.schemas[schema_id]:
            raise Conflict("the columns were replaced since these rows were made: write them again", state.commit_id)
        held, wanted = known, state.schema
        if change == DELETE_CHANGE:  # the key's columns alone
            held, wanted = (_columns_of(schema, base.key_ids) for schema in (held, wanted))
        if changed := changed_column_names(held, wanted):
            raise Conflict(f"column {changed[0]!r} was changed since these rows were made: write them again", state.id)
        known_ids = {part.id for top in held.fields for part in top.walk()}
        parts = (part for top in wanted.fields for part in top.walk())
        if change == PUT_CHANGE and (added := [part.name for part in parts if part.id not in known_ids]):
            raise Conflict(
                f"column {added[0]!r} was added since these rows were made, and a put of whole rows without it would "
                f"empty it: write them again",
                state.id,
            )


def _columns_of(schema: Schema, column_ids: Sequence[int]) -> Schema:
    return replace(schema, fields=tuple(field for field in schema.fields if field.id in column_ids))
