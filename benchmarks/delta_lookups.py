"""Lookups of single rows in a Delta table, beside deltalake's own engine: ``python -m benchmarks.delta_lookups``.

Rows of five columns in files of deltalake, attached, with a bloom index on an unsorted text. Each lookup is of another
row, first by a table that is open, then by one that is opened for it. Milliseconds of CPU, medians, and how many times
as long deltalake takes.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder, write_deltalake

import fuse_index as fuse

FACTOR, RANGE = 2_654_435_761, 1 << 40
"""Keys are numbers times a factor, within a range: in no order, and each once."""
UNCOUNTED = 48
"""Lookups before those that are counted, so that each file has been read from."""


def key(number: int) -> str:
    return f"{number * FACTOR % RANGE:012x}"


def rows_of(file: int, count: int) -> pa.Table:
    draw, first = np.random.default_rng(file), file * count
    return pa.table(
        {
            "id": pa.array(range(first, first + count)),
            "order_id": [key(number) for number in range(first, first + count)],
            "user": [f"u{user:07d}" for user in draw.integers(0, 10**6, count).tolist()],
            "amount": pa.array(draw.integers(0, 10**6, count), pa.int32()),
            "note": [f"note {number:07d} by nobody" for number in draw.integers(0, 10**6, count).tolist()],
        }
    )


def cpu(work: Callable[[], pa.Table]) -> float:
    """Milliseconds of CPU that a lookup takes."""
    started = time.process_time()
    found = work()
    seconds = time.process_time() - started
    if found.num_rows != 1:
        raise SystemExit(f"{found.num_rows} rows were found, and not one")
    return seconds * 1000


def ask_delta(table: DeltaTable, condition: str) -> pa.Table:
    return pa.table(QueryBuilder().register("t", table).execute(f"SELECT * FROM t WHERE {condition}"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.delta_lookups", description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--files", type=int, default=12)
    parser.add_argument("--lookups", type=int, default=40)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place, indexed = f"{folder}/orders", f"{folder}/indexed"
        for file in range(chosen.files):
            write_deltalake(place, rows_of(file, chosen.rows // chosen.files), mode="append")
        fuse.attach(place, indexed, format="delta").create_index("by_order", "bloom", ["order_id"])
        table, delta = fuse.open_table(indexed), DeltaTable(place)
        ways: list[Callable[[str], pa.Table]] = [
            lambda where: table.scan(where).to_arrow(),
            lambda where: ask_delta(delta, where),
            lambda where: fuse.open_table(indexed).scan(where).to_arrow(),
            lambda where: ask_delta(DeltaTable(place), where),
        ]
        taken: list[tuple[float, ...]] = []
        for lookup in range(UNCOUNTED + chosen.lookups):
            condition = f"order_id = '{key(lookup * 1_000_003 % (chosen.rows // chosen.files * chosen.files))}'"
            taken.append(tuple(cpu(partial(way, condition)) for way in ways))
        warm, delta_warm, opened, delta_opened = map(statistics.median, zip(*taken[UNCOUNTED:], strict=True))
    print("| lookup | ours | deltalake | times |")
    print("|---|---|---|---|")
    print(f"| open | {warm:.1f} | {delta_warm:.1f} | {delta_warm / warm:.1f} |")
    print(f"| opened for it | {opened:.1f} | {delta_opened:.1f} | {delta_opened / opened:.1f} |")


if __name__ == "__main__":
    main()
