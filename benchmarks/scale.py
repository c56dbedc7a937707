"""What ten times the blocks cost a lookup: ``python -m benchmarks.scale``. Prints Markdown.

The tables of 50, 500 and 1,000 blocks have four zones a block, and two bloom indexes, as 10,000,000, 100,000,000 and
200,000,000 rows have in blocks of 200,000; but zones have 1,000 rows, so that what is planned is as large, and what is
read of a zone is smaller. One zone of a thousand is read in vain, as filters are made by default. The table of a
terabyte is synthetic: segments as a writer makes them, over 16,384 blocks of 64 MiB that nobody opens.

Seconds are of CPU, the least of several runs, needles varied, tables in turn in one process; "first plan" is that of a
new process that opens the table, when all that it imports is there.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import fuse_index
from benchmarks import datasets, planning, report
from benchmarks.worker import peak_memory

HERE = Path(__file__).parent
ZONE_ROWS, BLOCK_ROWS = 1_000, 4_000
TERABYTE_BLOCKS = (1 << 40) // (64 << 20)


def build(url: str, blocks: int) -> None:
    properties = {"block_rows": BLOCK_ROWS, "zone_rows": ZONE_ROWS}
    table = fuse_index.create_table(url, datasets.SCHEMA, properties=properties)
    for column in ("code", "name"):
        table.create_index(column, "bloom", [column])
    table.append(datasets.batch(0, blocks * BLOCK_ROWS))


def code(number: int) -> int:
    """The code of the row with this id, be it in a table or not."""
    return int(datasets.codes(np.array([number]))[0])


def least_cpu(works: list[Callable[[int], Any]], runs: int) -> list[float]:
    """The least CPU seconds of each, done in turn; each is told the number of its run."""
    least = [float("inf")] * len(works)
    for run in range(runs + 1):
        for place, work in enumerate(works):
            started = time.process_time()
            work(run)
            seconds = time.process_time() - started
            least[place] = min(least[place], seconds) if run else least[place]
    return least


def first_plan(url: str, where: str) -> dict[str, float]:
    """The CPU seconds of a new process to open a table and plan, imports left out, and its peak memory in bytes."""
    command = [sys.executable, "-m", "benchmarks.scale", "--first", url, where]
    done = subprocess.run(
        command, cwd=HERE.parent, env=report.environment(), stdout=subprocess.PIPE, text=True, check=True
    )
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def plan_first(url: str, where: str) -> None:
    other = fuse_index.create_table("memory://other", "n INT", properties={"zone_rows": 1})
    other.create_index("n", "bloom", ["n"])
    other.append([{"n": number} for number in range(3)])
    other.refresh().explain("n = 1")  # all that is imported, is by now
    started = time.process_time()
    fuse_index.open_table(url).explain(where)
    print(json.dumps({"seconds": time.process_time() - started, "memory": peak_memory()}))


def measure(folder: Path, blocks: list[int], runs: int) -> None:
    urls = [str(folder / f"blocks-{count}") for count in blocks]
    for url, count in zip(urls, blocks, strict=True):
        build(url, count)
    tables = [fuse_index.open_table(url) for url in urls]
    all_rows = [count * BLOCK_ROWS for count in blocks]

    def lookup(table: fuse_index.Table, first: int) -> Callable[[int], Any]:
        return lambda run: table.refresh().scan(f"code = {code(first + run)}").count()

    def plan(table: fuse_index.Table, first: int) -> Callable[[int], Any]:
        return lambda run: table.refresh().explain(f"code = {code(first + run)}")

    plans = least_cpu([plan(table, 1 << 40) for table in tables], runs)
    misses = least_cpu([lookup(table, 1 << 40) for table in tables], runs)
    hits = least_cpu([lookup(table, rows // 2) for table, rows in zip(tables, all_rows, strict=True)], runs)
    firsts = [first_plan(url, f"code = {code(1 << 40)}") for url in urls]
    print("| blocks | plan of a miss, ms | miss, ms | hit, ms | first plan, ms | memory of a new process |")
    print("|---:|---:|---:|---:|---:|---:|")
    for count, planned, miss, hit, first in zip(blocks, plans, misses, hits, firsts, strict=True):
        milliseconds = " | ".join(f"{1000 * seconds:.1f}" for seconds in (planned, miss, hit, first["seconds"]))
        print(f"| {count:,} | {milliseconds} | {first['memory'] / 1e6:.0f} MB |", flush=True)
    terabyte = str(folder / "terabyte")
    planning.synthetic(terabyte, TERABYTE_BLOCKS)
    wheres = [f"c{column} BETWEEN 5000000000 AND 5000500000" for column in (0, 1)]
    table = fuse_index.open_table(terabyte)
    warm = least_cpu([lambda run, where=where: table.explain(where) for where in wheres], runs)  # type: ignore[misc]
    print("\n| 1 TB, 16,384 blocks | warm, ms | first plan, ms | memory of a new process |\n|---|---:|---:|---:|")
    for name, where, seconds in zip(("sorted column", "unsorted column"), wheres, warm, strict=True):
        first = first_plan(terabyte, where)
        print(
            f"| range, {name} | {1000 * seconds:.1f} | {1000 * first['seconds']:.1f} | {first['memory'] / 1e6:.0f} MB |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, nargs="+", default=[50, 500, 1_000])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--first", nargs=2, metavar=("URL", "CONDITION"), help="plan once, as a new process")
    chosen = parser.parse_args()
    if chosen.first:
        plan_first(*chosen.first)
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder), chosen.blocks, chosen.runs)


if __name__ == "__main__":
    main()
