"""The rows that are measured: five columns, made from a seed, so that every machine measures the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

FILE_ROWS = 1_000_000
SCATTER = 0x9E3779B97F4A7C15
"""Odd, so that multiplying by it modulo a power of two is a permutation: unique codes in no order."""
CODE_BITS = 48

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),  # 0, 1, 2 …: sorted
        pa.field("code", pa.int64(), nullable=False),  # unique, unsorted
        pa.field("ts", pa.timestamp("us", tz="UTC"), nullable=False),  # one a second: sorted
        pa.field("amount", pa.float64(), nullable=False),  # uniform in [0, 1000), unsorted
        pa.field("name", pa.string(), nullable=False),  # unique, unsorted
    ]
)


def codes(ids: np.ndarray) -> np.ndarray:
    mask = (1 << CODE_BITS) - 1
    return (((ids.astype(np.uint64) + np.uint64(1)) * np.uint64(SCATTER)) & np.uint64(mask)).astype(np.int64)


def batch(first: int, rows: int) -> pa.Table:
    ids = np.arange(first, first + rows, dtype=np.int64)
    code = codes(ids)
    amount = np.random.default_rng([7, first]).random(rows) * 1000
    name = pa.array(np.char.add("name-", np.char.mod("%012x", code)))
    ts = pa.array(1_700_000_000_000_000 + ids * 1_000_000).cast(SCHEMA.field("ts").type)
    return pa.table([ids, code, ts, amount, name], schema=SCHEMA)


def files(folder: Path, rows: int) -> list[Path]:
    """The Parquet files of so many rows, made once per folder and then reused."""
    made = folder / f"rows-{rows}"
    if not (made / "_done").exists():
        made.mkdir(parents=True, exist_ok=True)
        for path, table in _parts(made, rows):
            pq.write_table(table, path)
        (made / "_done").touch()
    return sorted(made.glob("*.parquet"))


def _parts(folder: Path, rows: int) -> Iterator[tuple[Path, pa.Table]]:
    for number, first in enumerate(range(0, rows, FILE_ROWS)):
        yield folder / f"{number:04}.parquet", batch(first, min(FILE_ROWS, rows - first))


@dataclass(frozen=True, slots=True)
class Query:
    """One thing to ask: the rows where ``where`` holds, or with None the aggregate over all columns of all rows."""

    name: str
    where: str | None


AGGREGATE = "count(*) AS n, sum(id) AS id, max(code) AS code, max(ts) AS ts, max(amount) AS amount, max(name) AS name"
"""Touches every value of every column, and is exact in every engine."""


def queries(rows: int) -> list[Query]:
    some = codes(np.linspace(0, rows - 1, 50).astype(np.int64))
    absent = int(codes(np.array([rows + 12345]))[0])
    return [
        Query("full scan", None),
        Query("lookup, hit", f"code = {some[33]}"),
        Query("lookup, miss", f"code = {absent}"),
        Query("lookup by text", f"name = 'name-{some[33]:012x}'"),
        Query("IN of 50", f"code IN ({', '.join(map(str, some))})"),
        Query("range, sorted", f"id BETWEEN {rows // 3} AND {rows // 3 + rows // 1000}"),
        Query("range, unsorted", "amount BETWEEN 500 AND 500.01"),
    ]
