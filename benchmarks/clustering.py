"""What reclustering costs and gains: ``python -m benchmarks.clustering --rows 4000000``.

In memory and with small blocks: how often rows are rewritten until blocks overlap no deeper than asked for, from
several states, and how wide blocks along a curve are. On disk, with a bloom index: rows sorted and written a second,
and the peak of memory. And how long a report takes over so many blocks. Results go to
``benchmarks/results/clustering.md``.
"""

from __future__ import annotations

import argparse
import math
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa

import fuse_index as fuse
from benchmarks import report
from benchmarks.worker import peak_memory
from fuse_index.clustering import overlaps
from fuse_storage import compute_statistics

HERE = Path(__file__).parent
BLOCK_ROWS = 50
STEP = 16
"""Blocks of a step in the small tables."""


def small(keys: list[np.ndarray], by: tuple[str, ...], method: str = "linear") -> fuse.Table:
    """A table with a block of each array of rows, which has a column for each of ``by``."""
    schema = pa.schema([(name, pa.int64()) for name in by])
    table = fuse.create_table(f"memory://{uuid4().hex}", schema, properties={"block_rows": BLOCK_ROWS})
    rows = np.concatenate(keys).reshape(-1, len(by))
    table.append(pa.table({name: rows[:, number] for number, name in enumerate(by)}))
    table.cluster_by(by, method)
    return table


def states() -> Iterator[tuple[str, fuse.Table, int]]:
    """What is reclustered, and to which depth."""
    for blocks in (100, 400):
        yield (
            f"{blocks} blocks in random order",
            small([np.random.default_rng(1).permutation(blocks * BLOCK_ROWS)], ("k",)),
            1,
        )
    runs = [np.sort(np.random.default_rng(run).integers(0, 10**6, 20 * BLOCK_ROWS)) for run in range(5)]
    yield "5 sorted runs of 20 blocks", small(runs, ("k",)), 1
    for depth in (2, 1):
        old, new = (
            np.arange(96 * BLOCK_ROWS) * 10,
            np.random.default_rng(3).integers(0, 960 * BLOCK_ROWS, 4 * BLOCK_ROWS),
        )
        yield "4 unsorted blocks after 96 sorted ones", small([old, new], ("k",)), depth


def linear() -> Iterator[str]:
    yield "| state | depth before | asked for | after | rows rewritten, times |"
    yield "|---|---|---|---|---|"
    for name, table, depth in states():
        before, written = table.inspect.clustering().maximum_depth, [0]
        table.maintenance.recluster(
            depth=depth,
            step_blocks=STEP,
            progress=lambda step, written=written: written.append(step.rows),  # type: ignore[misc]
        )
        after = table.inspect.clustering().maximum_depth
        yield f"| {name} | {before} | {depth} | {after} | {sum(written) / table.snapshot.row_count:.2f} |"


def curves() -> Iterator[str]:
    yield (
        "| curve through two columns | blocks | blocks that a value of one column is in, of √n "
        "| rows rewritten, times |"
    )
    yield "|---|---|---|---|"
    for method in ("hilbert", "zorder"):
        for blocks in (100, 200):
            points = np.random.default_rng(2).integers(0, 10**6, (blocks * BLOCK_ROWS, 2))
            table, written = small([points.ravel()], ("x", "y"), method), [0]
            table.maintenance.recluster(
                step_blocks=STEP,
                progress=lambda step, written=written: written.append(step.rows),  # type: ignore[misc]
            )
            width = table.inspect.clustering().average_depth / math.sqrt(blocks)
            yield f"| {method} | {blocks} | {width:.2f} | {sum(written) / table.snapshot.row_count:.2f} |"


def rate(folder: Path, rows: int) -> str:
    """On disk: random keys into 40 blocks, then sorted apart."""
    random = np.random.default_rng(4)
    table = fuse.create_table(
        str(folder), "k BIGINT, a BIGINT, b DOUBLE, c STRING, d INT", properties={"block_rows": max(rows // 40, 1)}
    )
    table.create_index("by_c", "bloom", ["c"])
    for start in range(0, rows, 500_000):
        count = min(500_000, rows - start)
        numbers = random.integers(0, 10**9, count)
        table.append(
            pa.table(
                {
                    "k": numbers,
                    "a": np.arange(start, start + count),
                    "b": random.random(count),
                    "c": np.char.mod("user%d", numbers % 100_000),
                    "d": pa.array(numbers % 97, pa.int32()),
                }
            )
        )
    table.cluster_by(["k"])
    written, started = [0], time.perf_counter()
    table.maintenance.recluster(depth=1, step_bytes=64 << 20, progress=lambda step: written.append(step.rows))
    seconds = time.perf_counter() - started
    found = (
        f"{sum(written) / seconds / 1e6:.2f} M rows a second sorted and written, each {sum(written) / rows:.1f} times"
    )
    return (
        f"{rows:,} rows of five columns with a bloom index, steps of 64 MiB: {found}; "
        f"{peak_memory() / 1e9:.2f} GB at the peak."
    )


def reported(blocks: int) -> str:
    """The report over synthetic bounds of text."""
    texts = np.char.mod("user%010d", np.random.default_rng(5).integers(0, 10**10, 2 * blocks))
    kept = compute_statistics(pa.array(texts), np.arange(0, 2 * blocks + 1, 2))
    started = time.perf_counter()
    overlaps.measure_overlaps(overlaps.column_intervals(kept, np.full(blocks, 2)))
    return f"The report over {blocks:,} blocks by a text column takes {time.perf_counter() - started:.1f} s."


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clustering", description=__doc__)
    parser.add_argument("--rows", type=int, default=4_000_000)
    parser.add_argument("--blocks", type=int, default=1_000_000, help="of the report")
    parser.add_argument("--data", type=Path, default=HERE / "data" / "clustering")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    wanted = parser.parse_args()
    shutil.rmtree(wanted.data, ignore_errors=True)
    speed = rate(wanted.data, wanted.rows)
    shutil.rmtree(wanted.data)
    note = (
        f"Small tables: blocks of {BLOCK_ROWS} rows, steps of {STEP} blocks. Blocks that only touch count "
        f"as overlapping in a depth."
    )
    parts = [*linear(), "", *curves(), "", speed, "", reported(wanted.blocks)]
    report.page(
        wanted.results / "clustering.md",
        ["# Reclustering", "", report.made_by("benchmarks.clustering"), note, "", *parts],
    )


if __name__ == "__main__":
    main()
