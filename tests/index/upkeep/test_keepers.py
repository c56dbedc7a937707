"""Several write to the tables of a warehouse, several keep them, and some of these are killed while they are at it.

Nothing is lost, all tables are within their policies at the end, and hardly anything was done twice. With arguments it
is tried on more tables: ``python -m tests.index.upkeep.test_keepers --tables 200 --writers 6 --commits 100 --kills 8``.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest

import fuse_index as fuse
from fuse_index.table.upkeep.maintainer import Maintainer, RunLimits
from fuse_index.warehouse.upkeep import kept_tables
from fuse_storage import process_cache
from fuse_storage.testing import check_invariants
from tests.effort import effort
from tests.index.upkeep.keepers import LEASE

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Size:
    """How many tables there are, who writes to them and keeps them, and how many of the latter are killed."""

    tables: int = 3
    writers: int = 2
    commits: int = effort(36)
    keepers: int = 2
    kills: int = effort(2)


POLICY = {
    "block_rows": 200,
    "maintain": "on",
    "maintain_tail_age": "0.2s",
    "maintain_target_depth": 4,
}


class Started:
    """A process that says what it does in a file."""

    def __init__(self, log: Path, *arguments: object) -> None:
        command = [sys.executable, "-m", "tests.index.upkeep.keepers", *map(str, arguments)]
        self.log = log
        with log.open("w") as out, log.with_suffix(".err").open("w") as err:
            self.process = subprocess.Popen(command, stdout=out, stderr=err, cwd=ROOT)

    def lines(self) -> list[Any]:
        """What it has said so far, in whole lines, but for the first one, which says that it is there."""
        return [json.loads(line) for line in self.log.read_text().splitlines(keepends=True)[1:] if line.endswith("\n")]

    def wait_for(self, count: int) -> None:
        """Wait until it has said so many lines, or ended."""
        while self.process.poll() is None and len(self.lines()) < count:
            time.sleep(0.02)

    def ended(self) -> list[Any]:
        """Wait for its end, and give what it said."""
        assert self.process.wait() == 0, self.log.with_suffix(".err").read_text()[-3000:]
        return self.lines()


@pytest.mark.timeout(300 * max(1, effort(1)))
def test_tables_are_kept_by_several_who_are_killed_at_random(tmp_path: Path) -> None:
    live(tmp_path, Size())


def live(folder: Path, size: Size) -> None:
    """Fill and keep a warehouse, and check what became of it."""
    place, stop, chance = str(folder / "warehouse"), folder / "stop", random.Random(7)
    catalog = fuse.catalog(place, create=True)
    for number in range(size.tables):
        table = catalog.create_table(f"t{number}", "id BIGINT, grp BIGINT", cluster_by=["grp"], properties=POLICY)
        table.create_index("by_id", "bloom", ["id"])
    alive = [Started(folder / f"keeper{number}", "keep", place, stop) for number in range(size.keepers)]
    killed = list[Started]()
    writers = [
        Started(folder / f"writer{seed}", "write", place, seed, size.commits) for seed in range(1, size.writers + 1)
    ]
    for kill in range(size.kills):
        writers[0].wait_for((kill + 1) * size.commits // (size.kills + 1) + chance.randrange(3))
        victim = alive.pop(chance.randrange(len(alive)))
        victim.process.kill()
        victim.process.wait()
        killed.append(victim)
        alive.append(Started(folder / f"keeper{size.keepers + kill}", "keep", place, stop))
    written = [line for writer in writers for line in writer.ended()]
    stop.touch()
    done = [line for keeper in killed for line in keeper.lines()]
    done += [line for keeper in alive for line in keeper.ended()]

    process_cache.clear()
    done += finish(fuse.catalog(place))
    ids = defaultdict[str, set[int]](set)
    for line in written:
        ids[line["table"]] |= set(line["came"]) - set(line["gone"])
    assert sum(map(len, ids.values())) == size.writers * size.commits * 6 - sum(len(line["gone"]) for line in written)
    account = [check(fuse.catalog(place).load_table(name), expected) for name, expected in ids.items()]

    outcomes = Counter(line["outcome"] for line in done)
    assert set(outcomes) <= {"done", "no gain", "lost"}, [line for line in done if line["outcome"] == "failed"][:3]
    lost = [line["problem"] for line in done if line["outcome"] == "lost"]
    # Each delete may win over one step, as often as the machine lets them meet.
    deletes = {problem.partition("replaced by delete (commit ")[2][:32] for problem in lost} - {""}
    assert len(lost) - len(deletes) <= 0.05 * outcomes["done"] + size.kills, lost
    rewritten, ingested = (sum(column) for column in zip(*account, strict=True))
    print(f"{len(written)} commits, {dict(outcomes)}, {rewritten / ingested:.2f} bytes rewritten for each that came")
    assert rewritten <= 3 * ingested, (rewritten, ingested)
    assert outcomes["done"] >= min(len(ids), len(written) // 8)
    assert fuse.catalog(place).due().num_rows == 0


def finish(catalog: fuse.Catalog) -> list[Any]:
    """Do what is left, waiting for the leases of the killed, until nothing is due."""
    limits, done = replace(RunLimits(), lease=LEASE), list[Any]()
    while catalog.due().num_rows:
        time.sleep(0.2)
        done += [each.to_dict() for each in Maintainer(kept_tables(catalog), limits).run()]
    return done


def check(table: fuse.Table, expected: set[int]) -> tuple[int, int]:
    """Compare the rows, and what indexes say, with what was committed; give bytes that were rewritten and ingested."""
    found = table.to_arrow().column("id").to_pylist()
    assert (len(found), set(found)) == (len(expected), expected)
    check_invariants(table.stored)
    assert table.maintenance.verify_index("by_id").sound
    assert table.inspect.due().num_rows == 0
    rows = table.inspect.maintenance().to_pylist()
    return sum(row["bytes_written"] or 0 for row in rows), sum(row["bytes_ingested"] or 0 for row in rows)


if __name__ == "__main__":  # python -m tests.index.upkeep.test_keepers --tables 200 --writers 6
    parser = argparse.ArgumentParser()
    for each in fields(Size):
        parser.add_argument(f"--{each.name}", type=int, default=each.default)
    with tempfile.TemporaryDirectory() as temporary:
        live(Path(temporary), Size(**vars(parser.parse_args())))
