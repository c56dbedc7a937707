"""What wide tables cost: ``python -m benchmarks.wide --columns 150 600 1200``. Prints Markdown.

Two rows are appended to a table of so many columns, half of them BIGINT and half STRING, which is opened, asked and
read. Milliseconds of CPU, the least of several runs, beside PyArrow's for a file of the same rows in the same process.
"Cold": nothing of the table is in memory, as in a new process; the table has three segments.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import fuse_index
from benchmarks.scale import least_cpu
from fuse_storage import process_cache


def rows_of(columns: int) -> pa.Table:
    return pa.table({f"c{number}": [1, 2] if number % 2 else ["a", "b"] for number in range(columns)})


def measure(columns: int, runs: int) -> list[float]:
    """CPU seconds of PyArrow's file, of an append, and of an open, an explanation and a read, cold and not."""
    rows = rows_of(columns)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as read:
        table = fuse_index.create_table(folder, rows.schema)
        table.create_index("by_c0", "bloom", ["c0"])
        table.append(rows)
        appends: list[Callable[[int], Any]] = [
            lambda run: pq.write_table(rows, io.BytesIO()),
            lambda run: table.append(rows),
        ]
        written = least_cpu(appends, runs)
        table = fuse_index.create_table(read, rows.schema)
        table.create_index("by_c0", "bloom", ["c0"])
        for _ in range(3):
            table.append(rows)
        reads: list[Callable[[int], Any]] = [
            lambda run: fuse_index.open_table(read),
            lambda run: fuse_index.open_table(read).explain("c1 = 1 AND c0 = 'a'"),
            lambda run: fuse_index.open_table(read).scan("c1 = 1", columns=["c0"]).to_arrow(),
        ]
        return [*written, *least_cpu([cold(work) for work in reads], runs), *least_cpu(reads[1:], runs)]


def cold(work: Callable[[int], Any]) -> Callable[[int], Any]:
    """Make work that first forgets what the process has read."""

    def forgetting(run: int) -> Any:
        process_cache.clear()
        return work(run)

    return forgetting


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wide", description=__doc__)
    parser.add_argument("--columns", type=int, nargs="+", default=[150, 600, 1200])
    parser.add_argument("--runs", type=int, default=5)
    chosen = parser.parse_args()
    print(
        "| columns | PyArrow's file | append | ratio | open, cold | explain, cold | look up, cold | explain | look up |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for columns in chosen.columns:
        file, append, *others = measure(columns, chosen.runs)
        cells = [f"{columns:,}", f"{file * 1000:.1f}", f"{append * 1000:.0f}", f"{append / file:.0f}"]
        print(f"| {' | '.join([*cells, *(f'{seconds * 1000:.0f}' for seconds in others)])} |")


if __name__ == "__main__":
    main()
