"""One of many processes that change a table at the same time, and say what they committed: ``python -m
tests.index.crowd``.

Prints a JSON line for each commit, with its number on the branch. Replayed in the order of these numbers, the commits
give the table's rows, or something was lost, doubled, or decided on rows that were not there.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa

import fuse_index as fuse
import fuse_storage.maintenance.vacuum

COLUMNS = pa.schema([("id", pa.int64()), ("grp", pa.int64()), ("value", pa.int64())])
GROUPS = 8
PATIENCE = 6.0
"""Seconds that a write may take, and that a snapshot stays after it was replaced: short, so that a vacuum finds
work.
"""
SLACK = 20.0
"""Seconds that a commit may take on top, on a busy machine."""
Rows = dict[int, tuple[int, int]]


def created(url: str) -> fuse.Table:
    table = fuse.create_table(
        url, COLUMNS, cluster_by=["grp"], properties={"block_rows": 40, "max_write_seconds": PATIENCE}
    )
    table.create_index("by_id", "bloom", ["id"])
    table.create_index("by_grp", "aggregate", ["grp"], aggregates=["count(*)", "sum(value)"])
    return table


def append(table: fuse.Table, chance: random.Random, number: int) -> dict[str, Any]:
    rows = [{"id": number * 100 + i, "grp": chance.randrange(GROUPS), "value": 0} for i in range(chance.randint(1, 60))]
    table.append([row | dict.fromkeys(table.schema.names[3:], "y") for row in rows])
    return {"put": [list(row.values()) for row in rows]}


def hot(table: fuse.Table, chance: random.Random, number: int) -> dict[str, Any]:
    rows = [{"id": number * 100 + i, "grp": chance.randrange(GROUPS), "value": 0} for i in range(chance.randint(1, 5))]
    snapshot = table.append([row | dict.fromkeys(table.schema.names[3:], "y") for row in rows], hot=True)
    return {"version": snapshot.version, "put": [list(row.values()) for row in rows]}


def tier(table: fuse.Table, chance: random.Random, number: int) -> dict[str, Any]:
    table.maintenance.tier()
    return {}


def merge(table: fuse.Table, chance: random.Random, number: int) -> dict[str, Any]:
    known = table.scan(f"grp = {chance.randrange(GROUPS)}", ["id"], limit=5).to_arrow().column("id").to_pylist()
    rows = [{"id": row_id, "grp": chance.randrange(GROUPS), "value": number} for row_id in {*known, number * 100}]
    table.merge(rows, on=["id"])
    return {"put": [list(row.values()) for row in rows]}


def delete(table: fuse.Table, chance: random.Random, number: int) -> dict[str, Any]:
    grp, below = chance.randrange(GROUPS), chance.randrange(4)
    table.delete(f"grp = {grp} AND value < {below}")
    return {"delete": [grp, below]}


def update(table: fuse.Table, chance: random.Random, number: int) -> dict[str, Any]:
    grp = chance.randrange(GROUPS)
    table.update(f"grp = {grp}", {"value": lambda found: pa.compute.add(found.column("value"), 1)})
    return {"add": grp}


def compact(table: fuse.Table, chance: random.Random, number: int) -> dict[str, Any]:
    table.maintenance.compact()
    return {}


def recluster(table: fuse.Table, chance: random.Random, number: int) -> dict[str, Any]:
    table.maintenance.recluster()
    return {}


def index(table: fuse.Table, chance: random.Random, number: int) -> dict[str, Any]:
    (table.maintenance.rebuild_index if number % 3 == 0 else table.maintenance.refresh_index)(
        chance.choice(["by_id", "by_grp"])
    )
    return {}


def evolve(table: fuse.Table, chance: random.Random, number: int) -> dict[str, Any]:
    if "extra" in table.schema.names:
        table.drop_column("extra")
    else:
        table.add_column("extra", "string", default="x", nullable=False)
    time.sleep(3)  # whoever chose rows by a condition must choose again
    return {}


def vacuum(table: fuse.Table, chance: random.Random, number: int) -> dict[str, Any]:
    fuse_storage.maintenance.vacuum._COMMIT_ALLOWANCE = timedelta(seconds=SLACK)
    table.maintenance.vacuum(timedelta(seconds=PATIENCE), force=True, dry_run=False)
    time.sleep(1)
    return {}


def read(table: fuse.Table, chance: random.Random, number: int) -> dict[str, Any]:
    """Whatever else happens, an id is there once, and indexes agree with the rows."""
    rows = table.scan().to_arrow()
    assert len(set(rows.column("id").to_pylist())) == len(rows), "an id is there twice"
    where, groups = f"grp < {chance.randrange(GROUPS)}", (["grp"], ["count(*)", "sum(value)"])
    answers = [table.aggregate(*groups, where, indexes=used).sort_by("grp") for used in (True, False)]
    assert answers[0].equals(answers[1]), answers
    return {}


ROLES: dict[str, Callable[[fuse.Table, random.Random, int], dict[str, Any]]] = {
    "append": append,
    "hot": hot,
    "tier": tier,
    "merge": merge,
    "delete": delete,
    "update": update,
    "compact": compact,
    "recluster": recluster,
    "index": index,
    "evolve": evolve,
    "vacuum": vacuum,
    "read": read,
}


def work(role: str, url: str, seconds: float, seed: int) -> Counter[str]:
    """Do one thing again and again, for so many seconds and until it was done once; what came of it, counted.

    On a busy machine the first may come late: whoever is done leaves, until there is room for the last.
    """
    chance, counts = random.Random(seed), Counter[str]()
    table, number, ends = fuse.open_table(url), seed * 1_000_000, time.monotonic() + seconds
    while time.monotonic() < ends or not counts["done"]:
        number += 1
        began = time.monotonic()
        before = table.refresh().snapshot.id
        try:
            did = ROLES[role](table, chance, number)
        except (fuse.Conflict, fuse.Expired):
            counts["gave way"] += 1
            continue
        except fuse.NotFound:
            if time.monotonic() - began < PATIENCE - 1:
                raise
            counts["too late"] += 1
            continue
        counts["done"] += 1
        if table.snapshot.id == before:
            time.sleep(0.3)  # there was nothing to do
        elif did:
            print(json.dumps({"version": table.snapshot.version, **did}), flush=True)
    return counts


def replayed(commits: Iterable[Mapping[str, Any]]) -> Rows:
    """What the rows must be: values by id."""
    rows: Rows = {}
    for commit in sorted(commits, key=lambda one: one["version"]):
        for row_id, grp, value in commit.get("put", ()):
            rows[row_id] = (grp, value)
        if "delete" in commit:
            grp, below = commit["delete"]
            rows = {row_id: row for row_id, row in rows.items() if not (row[0] == grp and row[1] < below)}
        if "add" in commit:
            rows = {row_id: (grp, value + (grp == commit["add"])) for row_id, (grp, value) in rows.items()}
    return rows


if __name__ == "__main__":
    name, place, length, start = sys.argv[1:]
    print(json.dumps({"role": name, "counts": work(name, place, float(length), int(start))}))
