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
    """One thing to ask: the rows where ``where`` holds, or with None the aggregate over all columns of all rows.

    ``template``: the same question with ``{}`` in place of what it asks for, and ``needles``, one for each run: an
    engine that remembers answers, or conditions, has no advantage that a user would not have.
    """

    name: str
    template: str | None
    needles: tuple[object, ...] = ()

    @property
    def where(self) -> str | None:
        return self.of_run(0)

    def of_run(self, run: int) -> str | None:
        """The condition of one run; runs beyond the needles begin with the first again."""
        if self.template is None:
            return None
        return self.template.format(self.needles[run % len(self.needles)])

    def at_run(self, run: int) -> Query:
        """The same question with the needle of this run alone."""
        return self if self.template is None else Query(self.name, self.of_run(run), ("",))


AGGREGATE = "count(*) AS n, sum(id) AS id, max(code) AS code, max(ts) AS ts, max(amount) AS amount, max(name) AS name"
"""Touches every value of every column, and is exact in every engine."""


RUNS_WITH_OWN_NEEDLES = 32


def queries(rows: int) -> list[Query]:
    """The questions, whose needles lie all over the table and differ from run to run."""
    runs = range(RUNS_WITH_OWN_NEEDLES)
    places = np.random.default_rng(11).integers(0, rows, (RUNS_WITH_OWN_NEEDLES, 50))
    found = [codes(each) for each in places]
    absent = codes(np.arange(rows + 12_345, rows + 12_345 + RUNS_WITH_OWN_NEEDLES))
    starts = [rows // 3 + run * rows // 1000 for run in runs]
    return [
        Query("full scan", None),
        Query("lookup, hit", "code = {}", tuple(each[0] for each in found)),
        Query("lookup, miss", "code = {}", tuple(absent)),
        Query("lookup by text", "name = 'name-{}'", tuple(f"{each[1]:012x}" for each in found)),
        Query("IN of 50", "code IN ({})", tuple(", ".join(map(str, each)) for each in found)),
        Query("range, sorted", "id BETWEEN {}", tuple(f"{start} AND {start + rows // 1000}" for start in starts)),
        Query("range, unsorted", "amount BETWEEN {}", tuple(f"{500 + run} AND {500 + run}.01" for run in runs)),
    ]
