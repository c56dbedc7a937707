"""One of several processes that fill and keep the tables of a warehouse: ``python -m tests.index.upkeep.keepers``.

A writer prints what it committed, as a JSON line each; a maintainer what it did. Both begin with a line that says that
they are there.
"""

from __future__ import annotations

import json
import random
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import fuse_index as fuse
from fuse_index.table.upkeep.account import DoneTask
from fuse_index.table.upkeep.maintainer import Maintainer, RunLimits
from fuse_index.warehouse.upkeep import kept_tables

LEASE = timedelta(seconds=2)
"""Short, so that what a killed maintainer held is soon done by another."""
ROWS = 6
"""Rows of an append."""


def write(place: str, seed: int, commits: int) -> None:
    """Append to tables, some rows hot, and delete some of what was appended."""
    chance, catalog = random.Random(seed), fuse.catalog(place)
    names = [table.name for table in catalog.warehouse.state().tables.values()]
    tables = {name: catalog.load_table(name) for name in sorted(names)}
    for number in range(commits):
        name = chance.choice(sorted(tables))
        table = tables[name].refresh()
        ids = [seed * 1_000_000 + number * ROWS + row for row in range(ROWS)]
        table.append([{"id": each, "grp": chance.randrange(100)} for each in ids], hot=chance.random() < 0.3)
        gone = ids[:1] if number % 8 == 0 else []
        if gone:
            _delete(table, gone[0])
        print(json.dumps({"table": name, "came": ids, "gone": gone}), flush=True)


def _delete(table: fuse.Table, row_id: int) -> None:
    while True:
        try:
            table.refresh().delete(f"id = {row_id}")
        except fuse.Conflict:  # its block was moved just now
            continue
        return


def keep(place: str, stop: Path) -> None:
    """Keep all tables until a file is there."""
    catalog = fuse.catalog(place)
    maintainer = Maintainer(kept_tables(catalog), replace(RunLimits(), lease=LEASE), _print)
    while not stop.exists():
        maintainer.run()
        time.sleep(0.05)


def _print(done: DoneTask) -> None:
    print(json.dumps(done.to_dict()), flush=True)


if __name__ == "__main__":
    role, warehouse, *more = sys.argv[1:]
    print(json.dumps({"role": role}), flush=True)
    if role == "write":
        write(warehouse, int(more[0]), int(more[1]))
    else:
        keep(warehouse, Path(more[0]))
