"""Whatever is done to a table, in whatever order, from whatever old handle, and wherever it breaks: it holds the right
rows.

The model is a list of rows. Every commit may break at any write: crash before it, crash after it, or lose its answer.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from fuse_storage import (
    AlreadyExists,
    BlockReplacement,
    Conflict,
    NotFound,
    StorageError,
    StoredTable,
    Transaction,
    append_hot,
    clone_table,
    open_store,
    recover_branches,
    stage_deletions,
)
from fuse_storage.commit.actions import _only_sidecars_changed
from fuse_storage.commit.draft import keeps_rows
from fuse_storage.hot_commit.snapshot_of import KeepState
from fuse_storage.testing import Crash, FaultyStore, check_invariants
from tests.effort import effort
from tests.storage.small import COLUMNS, Totals, blocks_of, build_missing, ids_of, known_by, rows, staged, truth

NAMES = st.sampled_from(["one", "other"])
KEYS = {"one": "70a1", "other": "70a2"}
FAULTS = st.one_of(st.none(), st.tuples(st.integers(1, 9), st.sampled_from(["before", "after", "lost"])))
"""None, or at which write what happens; a commit makes between 4 and 9."""


@dataclass
class HotAppend:
    """A hot commit as ``commit`` makes them."""

    table: StoredTable
    made: list[int]

    def commit(self) -> StoredTable:
        return append_hot(self.table, rows(self.made))


class Tables(RuleBasedStateMachine):
    """One table, changed through handles of any age."""

    handles: Bundle[StoredTable] = Bundle("handles")

    @initialize(target=handles, rows=st.integers(1, 3))
    def create(self, rows: int) -> StoredTable:
        self.url = f"memory://{uuid.uuid4().hex}"
        table = StoredTable.create(self.url, COLUMNS, properties={"block_rows": rows})
        self.head = table
        self.model: dict[str, list[int]] = {table.snapshot.id: []}
        self.definitions: dict[str, str] = {}
        self.next = 0
        self.hot = False
        return table

    @rule(target=handles, base=handles, count=st.integers(0, 7), indexes=st.booleans(), fault=FAULTS)
    def append(self, base: StoredTable, count: int, indexes: bool, fault: tuple[int, Any] | None) -> StoredTable:
        builders = [Totals(key) for key in KEYS.values()] if indexes else []
        made = list(range(self.next, self.next + count))
        self.next += count

        def change(table: StoredTable) -> Transaction[StoredTable]:
            return table.transaction(builders).append(staged(table, made, builders))

        return self.commit(base, change, self.rows + made, fault)

    @rule(target=handles, base=handles, count=st.integers(1, 3), fault=FAULTS)
    def append_hot(self, base: StoredTable, count: int, fault: tuple[int, Any] | None) -> StoredTable:
        made = list(range(self.next, self.next + count))
        self.next += count
        self.hot = True
        return self.commit(base, lambda table: HotAppend(table, made), self.rows + made, fault)

    @rule(target=handles, base=handles, fault=FAULTS)
    def tier(self, base: StoredTable, fault: tuple[int, Any] | None) -> StoredTable:
        """Whatever the tail of an old handle had comes into segments, if it still is in the tail."""
        now = {block for block, _ in blocks_of(self.head)}
        start = base.segments().base_block_count
        gone = any(block not in now for block, _ in blocks_of(base)[start:])

        def change(table: StoredTable) -> Transaction[StoredTable]:
            in_tail = blocks_of(table)[start:]
            if not in_tail:
                return table.transaction()
            new = staged(table, [row_id for _, ids in in_tail for row_id in ids])
            swap = BlockReplacement(tuple(block for block, _ in in_tail), sum(segment.block_count for segment in new))
            return table.transaction().replace_blocks([swap], new, (), None, "tier", True)

        return self.commit(base, change, self.rows, fault, refused=Conflict if gone else None)

    @rule(target=handles, base=handles, fault=FAULTS)
    def keep(self, base: StoredTable, fault: tuple[int, Any] | None) -> StoredTable:
        return self.commit(base, lambda table: table.transaction().stage(KeepState()), self.rows, fault)

    @rule(target=handles, base=handles, count=st.integers(0, 4), force=st.booleans(), fault=FAULTS)
    def overwrite(self, base: StoredTable, count: int, force: bool, fault: tuple[int, Any] | None) -> StoredTable:
        made = list(range(self.next, self.next + count))
        self.next += count
        later = [state for _, state in self.head.commits_since(base.snapshot)()]
        steps = zip([base.snapshot, *later], later, strict=False)
        unseen = any(old.next_row_id < new.next_row_id and not keeps_rows(old, new) for old, new in steps)

        def change(table: StoredTable) -> Transaction[StoredTable]:
            return table.transaction().overwrite(staged(table, made), force=force)

        return self.commit(base, change, made, fault, refused=Conflict if unseen and not force else None)

    @rule(
        target=handles,
        base=handles,
        remainder=st.integers(0, 2),
        keep=st.booleans(),
        indexes=st.booleans(),
        fault=FAULTS,
    )
    def rewrite(
        self, base: StoredTable, remainder: int, keep: bool, indexes: bool, fault: tuple[int, Any] | None
    ) -> StoredTable:
        """Every block with an id of this remainder goes, and of its rows all others, or all, come again."""
        builders = [Totals(key) for key in KEYS.values()] if indexes else []

        def chosen(row_id: int) -> bool:
            return row_id % 3 == remainder

        def unseen(row_id: str) -> list[str]:
            return [block for block, ids in blocks_of(StoredTable.open(self.url, at=row_id)) if any(map(chosen, ids))]

        def change(table: StoredTable) -> Transaction[StoredTable]:
            swaps = []
            with table.writer(builders) as writer:
                for block, ids in blocks_of(table):
                    if any(map(chosen, ids)):
                        before = writer.block_count
                        writer.write(rows([row_id for row_id in ids if keep or not chosen(row_id)]))
                        writer.end_block()
                        swaps.append(BlockReplacement((block,), writer.block_count - before))
                new = writer.finish()
            return table.transaction(builders).replace_blocks(swaps, new, table.segments().ids, unseen)

        now, then = blocks_of(self.head), blocks_of(base)
        lost = any(map(chosen, (row_id for block in then if block not in now for row_id in block[1])))
        new = any(map(chosen, (row_id for block in now if block not in then for row_id in block[1])))
        after = self.rows if keep else [row_id for row_id in self.rows if not chosen(row_id)]
        return self.commit(base, change, after, fault, refused=Conflict if lost or new else None)

    @rule(target=handles, base=handles, remainder=st.integers(0, 2), comes=st.booleans(), fault=FAULTS)
    def delete(self, base: StoredTable, remainder: int, comes: bool, fault: tuple[int, Any] | None) -> StoredTable:
        """Rows with an id of this remainder go by vectors, and blocks of which none would be left, or of the tail.

        ``comes``: they come again, in blocks of their own, as updated rows do.
        """
        builders = [Totals(key) for key in KEYS.values()]

        def chosen(row_id: int) -> bool:
            return row_id % 3 == remainder

        def change(table: StoredTable) -> Transaction[StoredTable]:
            frame, swaps, marked = table.blocks(), [], {}
            with table.writer(builders) as writer:
                for number, (block, ids) in enumerate(blocks_of(table)):
                    left = [row_id for row_id in ids if not chosen(row_id)]
                    if len(left) == len(ids):
                        continue
                    if left and number < table.segments().base_block_count:
                        stored = table.read_block(frame, number, ["id"]).column("id").to_pylist()
                        marked[number] = ~np.isin(stored, left)
                        continue
                    before = writer.block_count
                    if left:
                        writer.write(rows(left))
                        writer.end_block()
                    swaps.append(BlockReplacement((block,), writer.block_count - before))
                new = writer.finish()
            swaps += [BlockReplacement((frame.ids[number],), 1) for number in marked]
            new += stage_deletions(table, builders, marked)
            changes = table.transaction(builders).replace_blocks(swaps, new, table.segments().ids)
            coming = [row_id for _, ids in blocks_of(table) for row_id in ids if chosen(row_id)] if comes else []
            with table.writer(builders) as writer:
                if coming:
                    writer.write(rows(coming))
                return changes.append(writer.finish())

        now = {block for block, _ in blocks_of(self.head)}
        lost = [row_id for block, ids in blocks_of(base) if block not in now for row_id in ids]
        gone = [row_id for _, ids in blocks_of(base) for row_id in ids if chosen(row_id)]
        after = [row_id for row_id in self.rows if row_id not in set(gone)] + (gone if comes else [])
        refused = Conflict if any(map(chosen, lost)) else None
        return self.commit(base, change, after, fault, refused=refused)

    @rule(target=handles, base=handles, old=handles, fault=FAULTS)
    def restore(self, base: StoredTable, old: StoredTable, fault: tuple[int, Any] | None) -> StoredTable:
        definitions = {name: found["by"] for name, found in old.snapshot.definitions.items()}
        later = [state for _, state in self.head.commits_since(base.snapshot)()]
        quiet = all(map(_only_sidecars_changed, [base.snapshot, *later], later))
        matters = old.snapshot.id != self.head.snapshot.id and not quiet
        return self.commit(
            base,
            lambda table: table.transaction().restore(old.snapshot),
            self.model[old.snapshot.id],
            fault,
            definitions,
            refused=Conflict if matters else None,
        )

    @rule(target=handles, base=handles, name=NAMES, fault=FAULTS)
    def define(self, base: StoredTable, name: str, fault: tuple[int, Any] | None) -> StoredTable:
        definition = {"key": KEYS[name], "by": self.next}
        self.next += 1
        taken = AlreadyExists if name in base.snapshot.definitions else Conflict
        after = {**self.definitions, name: definition["by"]}
        return self.commit(
            base,
            lambda table: table.transaction().add_index(name, definition),
            self.rows,
            fault,
            after,
            refused=taken if name in self.definitions else None,
        )

    @rule(target=handles, base=handles, name=NAMES, fault=FAULTS)
    def undefine(self, base: StoredTable, name: str, fault: tuple[int, Any] | None) -> StoredTable:
        was = base.snapshot.definitions.get(name, {}).get("by")
        refused = NotFound if was is None else Conflict if self.definitions.get(name, was) != was else None
        after = {kept: by for kept, by in self.definitions.items() if kept != name}
        return self.commit(
            base, lambda table: table.transaction().drop_index(name), self.rows, fault, after, refused=refused
        )

    @rule(target=handles, base=handles, name=NAMES, unable=st.frozensets(st.integers(0, 40), max_size=5), fault=FAULTS)
    def index(self, base: StoredTable, name: str, unable: frozenset[int], fault: tuple[int, Any] | None) -> StoredTable:
        builder = Totals(KEYS[name], unable=unable)

        def change(table: StoredTable) -> Transaction[StoredTable]:
            return table.transaction([builder]).attach_sidecars(builder.key, build_missing(table, builder))

        return self.commit(base, change, self.rows, fault)

    @rule(target=handles, base=handles, fault=FAULTS)
    def gather(self, base: StoredTable, fault: tuple[int, Any] | None) -> StoredTable:
        builders = [Totals(key) for key in KEYS.values()]
        return self.commit(base, lambda table: table.transaction(builders).compact_segments(), self.rows, fault)

    @rule()
    def lose_all_refs_and_recover_them(self) -> None:
        """What crashed writers left behind is not taken for a commit."""
        before = self.head.history()
        self.head.store.delete([one.key for one in self.head.store.list("_refs/branch")])
        recover_branches(self.head.store, {"main": self.head.snapshot.stored.id})
        assert StoredTable.open(self.url).history() == before

    @rule(old=handles)
    def clone(self, old: StoredTable) -> None:
        if old.snapshot.base is not None:
            return  # only heads become snapshots, and a clone needs one
        copy = clone_table(StoredTable.open(self.url, at=old.snapshot.id), open_store(f"{self.url}-{uuid.uuid4().hex}"))
        assert self.sorted(ids_of(copy)) == self.sorted(self.model[old.snapshot.id])
        for key in copy.snapshot.keys:
            for found, true in zip(known_by(copy, key), truth(copy), strict=True):
                assert found in (true, (None, None))

    def sorted(self, ids: list[int]) -> list[int]:
        """Rows in their order; in any, once there was a tail: what others append meanwhile comes before it."""
        return sorted(ids) if self.hot else ids

    @property
    def rows(self) -> list[int]:
        return self.model[self.head.snapshot.id]

    def commit(
        self,
        base: StoredTable,
        change: Callable[[StoredTable], Transaction[StoredTable] | HotAppend],
        after: list[int],
        fault: tuple[int, Any] | None,
        definitions: dict[str, Any] | None = None,
        refused: type[StorageError] | None = None,
    ) -> StoredTable:
        """Commit, break, and see that the table is as it was or as it should be, and which of both if anybody was
        told.
        """
        store = open_store(self.url) if fault is None else FaultyStore(open_store(self.url), *fault)
        table = StoredTable(store, base.branch, base.entry, base.snapshot)
        told: bool | None = None
        raised: StorageError | None = None
        try:
            change(table).commit()
            told = True
            assert refused is None, f"{refused} was expected"
        except Crash:
            pass
        except StorageError as problem:
            told, raised = False, problem
        if told is False and fault is None:
            assert type(raised) is refused
        now = StoredTable.open(self.url)
        happened = now.snapshot.id != self.head.snapshot.id
        if told is False:
            assert not happened
        if told is True:
            assert self.sorted(ids_of(now)) == self.sorted(after)
        if happened:
            self.model[now.snapshot.id] = after
            self.definitions = self.definitions if definitions is None else definitions
        self.head = now
        return now

    @invariant()
    def the_rows_are_those_of_the_model(self) -> None:
        assert self.sorted(ids_of(self.head)) == self.sorted(self.rows)
        assert self.head.snapshot.row_count == len(self.rows)
        assert {name: found["by"] for name, found in self.head.snapshot.definitions.items()} == self.definitions

    @invariant()
    def what_indexes_know_is_true(self) -> None:
        for key in self.head.snapshot.keys:
            for found, true in zip(known_by(self.head, key), truth(self.head), strict=True):
                assert found in (true, (None, None))

    @rule(old=handles)
    def an_old_handle_reads_what_it_always_read(self, old: StoredTable) -> None:
        expected = self.sorted(self.model[old.snapshot.id])
        assert self.sorted(ids_of(StoredTable.open(self.url, at=old.snapshot.id))) == expected
        assert self.sorted(ids_of(StoredTable.open(self.url, version=old.snapshot.version))) == expected
        assert old.snapshot.row_count == len(expected)

    def teardown(self) -> None:
        if hasattr(self, "head"):
            check_invariants(self.head)


TestTables = Tables.TestCase
TestTables.settings = settings(
    max_examples=effort(10), stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
)
