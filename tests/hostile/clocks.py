"""Machines whose clocks are seconds, hours or years off, one after the other at a table in a store with a right one."""

from __future__ import annotations

import uuid
from collections.abc import Generator
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from itertools import count, pairwise
from random import Random
from unittest import mock

from fuse_storage import NotFound, StorageError, open_store
from fuse_storage.metadata import encoding
from tests.hostile.trial import Lost, Trial, Wrong
from tests.hostile.world import OPERATIONS, Rows, attempt, check_state, create, erase, open_table, read_rows, row
from tests.storage.clocks import Clocks

SKEWS = tuple(
    sign * skew
    for skew in (
        timedelta(seconds=5),
        timedelta(minutes=40),
        timedelta(hours=7),
        timedelta(days=40),
        timedelta(days=4000),
    )
    for sign in (1, -1)
)
CHANGES = [operation for operation in OPERATIONS[:9] if operation.name != "recluster"]
RETENTION = timedelta(days=7)
SLACK = timedelta(hours=3)
"""A clock that is less than an hour off is right enough, and so is one that a writer compared within the last day."""
STEPS = 25


def clocks(seed: int) -> Generator[Trial, None, None]:
    """Weeks in the life of a table, of which each step is done by a machine with another clock."""
    for number in count(seed):
        yield Trial(f"weeks {number}", partial(live, number))


def live(number: int) -> None:
    """Change and vacuum a table by wrong clocks. Raises Lost or Wrong if rows or what was the head lately are gone."""
    draw, store = Random(number), Clocks(open_store(f"memory://{uuid.uuid4().hex}"))
    with mock.patch.object(encoding, "_clock", store.machine):
        table, rows = create(store)
        heads: list[tuple[datetime, str, Rows]] = [(store.now, table.snapshot.id, rows)]
        for step in range(STEPS):
            store.now += timedelta(days=3 * draw.random())
            store.skew = draw.choice(SKEWS) if draw.random() < 0.5 else timedelta(0)
            table = open_table(store)
            check_state(read_rows(table), rows)
            if draw.random() < 0.3:
                with suppress(StorageError):  # a clock that is too far off is told so
                    table.maintenance.vacuum(RETENTION, dry_run=False)
                _check_retained(store, heads)
                continue
            operation = draw.choice(CHANGES)
            refusal = attempt(operation, table, step)
            if refusal and abs(store.skew) < timedelta(hours=1):
                raise Wrong(f"{operation.name} by a clock that is {store.skew} off: {refusal}")
            if not refusal:
                rows = operation.after(rows, step)
                heads.append((store.now, open_table(store).snapshot.id, rows))
        store.skew = timedelta(0)
        _check_forgotten(store)
        erase(store)


def _check_retained(store: Clocks, heads: list[tuple[datetime, str, Rows]]) -> None:
    """What was the head within the retention is there."""
    for (_, snapshot, rows), (replaced, *_) in pairwise(heads):
        if replaced > store.now - RETENTION + SLACK:
            try:
                check_state(read_rows(open_table(store, at=snapshot)), rows)
            except NotFound as gone:
                raise Lost(f"replaced at {replaced}, gone at {store.now}: {gone}") from gone


def _check_forgotten(store: Clocks) -> None:
    """Weeks later, when all clocks are right again, a vacuum forgets what was replaced before the retention."""
    for step in range(15):
        store.now += timedelta(days=1)
        open_table(store).append([row(100_000 + step)])
    open_table(store).maintenance.vacuum(RETENTION, dry_run=False)
    readable = 0
    for entry in open_table(store).stored.history():
        with suppress(NotFound):
            readable += bool(open_table(store, at=entry.snapshot_id).snapshot)
    if readable > 10:
        raise Wrong(f"{readable} snapshots are there after a vacuum, and nine were the head within its retention")
