"""Much of everything: snapshots, columns, indexes, values in a list, terms in a condition."""

from __future__ import annotations

import resource
import uuid
from collections.abc import Callable, Generator
from functools import partial
from itertools import count

import pyarrow as pa

import fuse_index as fuse
from fuse_storage import open_store
from tests.hostile.trial import Trial, Wrong
from tests.hostile.world import COLUMNS, erase, host, open_table, row

MEMORY = 4 << 30
"""Bytes that this process may ever take: what grows without a bound is noticed."""


def load(seed: int) -> Generator[Trial, None, None]:
    """Each load a little, then ten times that, and so on to the full one; then the full ones again."""
    for step in count():
        share = 0.001 * 10 ** min(step, 3)
        for size, what in LOADS.items():
            amount = max(3, int(FULL[size] * share))
            yield Trial(f"{amount:,} {size}", partial(_bounded, what, amount))


def _bounded(what: Callable[[int], None], amount: int) -> None:
    what(amount)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    if peak > MEMORY:
        raise Wrong(f"took {peak >> 20} MiB")


def _table(schema: pa.Schema = COLUMNS) -> fuse.Table:
    return fuse.create_table(f"memory://load-{uuid.uuid4().hex}", schema, properties={"block_rows": 1000}, host=host())


def _expect(answer: object, truth: object) -> None:
    if answer != truth:
        raise Wrong(f"{str(answer)[:200]} instead of {str(truth)[:200]}")


def snapshots(amount: int) -> None:
    table = _table()
    table.create_index("by_id", "bloom", ["id"])
    for number in range(amount):
        table.append([row(number)])
    again = open_table(table.stored.store)
    _expect(again.scan().count(), amount)
    _expect(again.scan(f"id = {amount - 1}", ["id"]).to_arrow().column("id").to_pylist(), [amount - 1])
    _expect(len(again.history()), amount + 2)
    again.maintenance.vacuum(dry_run=True)
    erase(again.stored.store)


def columns(amount: int) -> None:
    names = [f"c{number}" for number in range(amount)]
    table = _table(pa.schema([(name, pa.int64()) for name in names]))
    table.append(pa.table({name: pa.array(range(index, 3000 + index)) for index, name in enumerate(names)}))
    where = " AND ".join(f"{name} >= {index + 2990}" for index, name in enumerate(names))
    _expect(open_table(table.stored.store).scan(where).count(), 10)
    erase(table.stored.store)


def indexes(amount: int) -> None:
    names = [f"c{number}" for number in range(amount)]
    table = _table(pa.schema([(name, pa.int64()) for name in names]))
    for name in names:
        table.create_index(f"by_{name}", "bloom", [name])
    table.append(pa.table({name: pa.array(range(3000)) for name in names}))
    where = " AND ".join(f"{name} = 7" for name in names)
    _expect(open_table(table.stored.store).scan(where).count(), 1)
    erase(table.stored.store)


def values(amount: int) -> None:
    table = _table()
    table.create_index("by_id", "bloom", ["id"])
    table.append([row(number) for number in range(2000)])
    _expect(table.scan(f"id IN ({', '.join(map(str, range(1000, 1000 + amount)))})").count(), min(1000, amount))
    erase(table.stored.store)


def terms(amount: int) -> None:
    table = _table()
    table.create_index("by_id", "bloom", ["id"])
    table.append([row(number) for number in range(2000)])
    where = " OR ".join(f"id = {number} AND grp = {number % 5}" for number in range(1000, 1000 + amount))
    _expect(table.scan(where).count(), min(1000, amount))
    erase(table.stored.store)


def branches(amount: int) -> None:
    table = _table()
    table.append([row(0)])
    for number in range(amount):
        table.branch(f"b{number}")
        table.tag(f"t{number}")
    _expect(table.inspect.refs().num_rows, 2 * amount + 1)
    table.maintenance.vacuum(dry_run=True)
    erase(open_store(table.stored.store.url))


LOADS: dict[str, Callable[[int], None]] = {
    "snapshots": snapshots,
    "columns": columns,
    "indexes": indexes,
    "values in a list": values,
    "terms in a condition": terms,
    "branches and tags": branches,
}
FULL = {
    "snapshots": 10_000,
    "columns": 200,
    "indexes": 100,
    "values in a list": 1_000_000,
    "terms in a condition": 10_000,
    "branches and tags": 1_000,
}
