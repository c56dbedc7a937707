"""A crash before or after each write of each operation, or an answer that never came."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from itertools import count
from random import Random
from typing import get_args

from fuse_storage import Store, open_store
from fuse_storage.testing import Crash, FaultMode, FaultyStore, check_invariants
from tests.hostile.trial import Trial, Verdict, Wrong
from tests.hostile.world import (
    OPERATIONS,
    AgedStore,
    Operation,
    Rows,
    attempt,
    check,
    check_state,
    copy_store,
    create,
    erase,
    open_table,
    read_rows,
)


def crashes(seed: int) -> Generator[Trial, None, None]:
    """Every operation, broken at every write in every way, in an order that is drawn; then after other histories."""
    for number in count(seed):
        base = open_store(f"memory://base-{number}")
        table, rows = create(base)
        for step in Random(number).sample(OPERATIONS[:9], number % 5):  # of the first run: none
            attempt(step, table, number + 100)
            rows = step.after(rows, number + 100)
        trials = [
            Trial(
                f"{operation.name} at write {write}, {mode}", partial(crash, base, rows, operation, number, write, mode)
            )
            for operation in OPERATIONS
            for write in range(1, _count_writes(base, operation, number) + 1)
            for mode in get_args(FaultMode)
        ]
        yield from Random(number).sample(trials, len(trials))
        erase(base)


def _prepared(base: Store, operation: Operation, number: int) -> AgedStore:
    store = copy_store(base)
    operation.prepare(open_table(store), number)
    return AgedStore(store)


def _count_writes(base: Store, operation: Operation, number: int) -> int:
    store = _prepared(base, operation, number)
    faulty = FaultyStore(store, 0, "before")
    operation.run(open_table(faulty), number)
    erase(store)
    return faulty.write_count


def crash(base: Store, rows: Rows, operation: Operation, number: int, write: int, mode: FaultMode) -> Verdict:
    """Break one write of one operation; what was acknowledged is there, and the table goes on."""
    store = _prepared(base, operation, number)
    try:
        done = not attempt(operation, open_table(FaultyStore(store, write, mode)), number)
    except Crash:
        done = False
    after = operation.after(rows, number)
    broken = open_table(store)
    now = read_rows(broken)
    check_state(now, *([after] if done else [rows, after]))
    check_invariants(broken.stored)
    for following in (OPERATIONS[0], OPERATIONS[-1]):  # an append, and a vacuum of what was left behind
        if refusal := attempt(following, open_table(store), number + 1):
            raise Wrong(f"{following.name} is refused after it: {refusal}")
        now = following.after(now, number + 1)
    check(store, now)
    erase(store)
    return Verdict.HELD if done else Verdict.REFUSED
