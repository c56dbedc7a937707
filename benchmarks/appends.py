"""Whether tiny appends stay fast to make and to plan: ``python -m benchmarks.appends --appends 10000``.

One row an append, with a bloom index. At 10, 100, 1,000, … of them: what the last appends took, how many segments there
are, and what a lookup takes that has nothing in memory, in requests, bytes and seconds; at the end, the same after
``compact``. Results go to ``benchmarks/results/appends.md``.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import fuse_index as fuse
from benchmarks import report
from fuse_storage import StoredTable, meter_requests, process_cache

HERE = Path(__file__).parent
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
COLUMNS = ("appends", "blocks", "segments", "ms an append", "first plan, ms", "requests", "bytes", "of 1 row, ms")


def measured(url: str, appends: int) -> Iterator[dict[str, Any]]:
    table = fuse.create_table(url, SCHEMA)
    table.create_index("by_name", "bloom", ["name"])
    stops = {10**power for power in range(1, 9)} | {appends}
    seconds: list[float] = []
    for number in range(1, appends + 1):
        row = pa.table({"id": [number], "name": [f"n{number * 7919 % 100_003}"]}, SCHEMA)
        started = time.perf_counter()
        table.append(row)
        seconds.append(time.perf_counter() - started)
        if number in stops:
            last = seconds[-max(number // 10, 10) :]
            took = round(1000 * statistics.median(last), 1)
            found = {"appends": f"{number:,}", "ms an append": took, **looked_up(table, number // 2 + 1)}
            print(found, file=sys.stderr)
            yield found
    started = time.perf_counter()
    table.maintenance.compact()
    took = time.perf_counter() - started
    yield {"appends": f"compacted in {took:.1f} s", "ms an append": "", **looked_up(table, appends // 2 + 1)}


def looked_up(table: fuse.Table, number: int) -> dict[str, Any]:
    """A first plan, and reading what it leaves, counted."""
    process_cache.clear()
    where = f"name = 'n{number * 7919 % 100_003}'"
    store = meter_requests(table.stored.store)
    opened = fuse.Table(StoredTable.open(store), table.host)
    started = time.perf_counter()
    opened.explain(where)
    planned = time.perf_counter() - started
    requests, size = store.request_count, store.bytes_read
    rows = opened.scan(where).to_arrow()
    assert rows.column("id").to_pylist() == [number]
    snapshot = table.snapshot
    return {
        "blocks": f"{snapshot.block_count:,}",
        "segments": snapshot.segment_count,
        "first plan, ms": round(1000 * planned),
        "requests": requests,
        "bytes": f"{size:,}",
        "of 1 row, ms": round(1000 * (time.perf_counter() - started)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.appends", description=__doc__)
    parser.add_argument("--appends", type=int, default=10_000)
    parser.add_argument("--data", type=Path, default=HERE / "data" / "appends")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    wanted = parser.parse_args()
    shutil.rmtree(wanted.data, ignore_errors=True)
    wanted.data.mkdir(parents=True)
    found = list(measured(str(wanted.data / "table"), wanted.appends))
    shutil.rmtree(wanted.data)
    note = (
        "One row an append, with a bloom index; the median of the last tenth. Lookups have nothing in "
        "memory but the open table."
    )
    table = report.grid([{name: each[name] for name in COLUMNS} for each in found])
    report.page(
        wanted.results / "appends.md", ["# Tiny appends", "", report.made_by("benchmarks.appends"), note, "", *table]
    )


if __name__ == "__main__":
    main()
