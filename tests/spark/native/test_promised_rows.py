"""The first rows of an order where some files alone can promise rows: of others a source has deleted some, or all."""

import math
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuse_index as fuse
from fuse_index.handle import resolve_predicate
from fuse_index.pruning.planner import plan_scan
from fuse_index.spark.native.top_rows import TopRows, keep_top_rows
from tests.effort import effort

FILES = 5
TYPES = {"v": pa.int64(), "x": pa.float64(), "s": pa.string()}
CONDITIONS = {"": lambda row: True, "v > 20": lambda row: row["v"] is not None and row["v"] > 20}


def some_rows(draw: random.Random) -> list[dict[str, Any]]:
    """Of a file: near one another, with NULL, NaN and -0.0; of some files all are NULL."""
    first, rows = draw.randrange(40), list[dict[str, Any]]()
    nulls = draw.choice([0.2, 0.2, 0.2, 1])
    for _ in range(draw.randrange(1, 9)):
        value = None if draw.random() < nulls else first + draw.randrange(8)
        double = None if value is None else float("nan") if draw.random() < 0.15 else -0.0 if value % 7 == 0 else value
        text = None if value is None else f"{'z' * (value % 3)}{value:03d}"
        rows.append({"v": value, "x": double, "s": text})
    return rows


def place(value: Any, top: TopRows) -> tuple[int, int, Any]:
    """Where a value comes in the order, as Spark has it: NaN is the greatest, and -0.0 is 0.0."""
    if value is None:
        return (0 if top.nulls_first else 2), 0, 0
    is_nan = isinstance(value, float) and math.isnan(value)
    number = int.from_bytes(value.encode().ljust(8, b"\0"), "big") if isinstance(value, str) else 0 if is_nan else value
    return (1, -is_nan, -number) if top.descending else (1, is_nan, number)


@pytest.mark.every_spark
@pytest.mark.parametrize("seed", range(effort(4)))
def test_the_first_of_the_rows_that_are_left_are_in_files_that_are_read(tmp_path: Path, seed: int) -> None:
    draw, left_out = random.Random(seed), 0
    (tmp_path / "lake").mkdir()
    files = [some_rows(draw) for _ in range(FILES)]
    for number, rows in enumerate(files):
        pq.write_table(
            pa.Table.from_pylist(rows, pa.schema(TYPES)), tmp_path / "lake" / f"{number}.parquet", row_group_size=3
        )
    table = fuse.attach(tmp_path / "lake", tmp_path / "table", votes_only=True)
    order = [int(Path(each).stem) for each in table.stored.blocks().locations]
    for _ in range(60):
        column, where = draw.choice(sorted(TYPES)), draw.choice(sorted(CONDITIONS))
        whole, limit = draw.sample(range(FILES), draw.randrange(FILES + 1)), draw.choice([1, 2, 5, 12])
        column_id = table.stored.snapshot.schema.find((column,)).id
        top = TopRows(limit, "", column_id, draw.random() < 0.5, draw.random() < 0.5, whole)
        predicate = resolve_predicate(where, table.stored.snapshot, table.engine) if where else None
        mask = keep_top_rows(plan_scan(table.stored, predicate, table.engine), top).block_mask
        left = [
            (place(row[column], top), block)
            for block, number in enumerate(order)
            for row in files[number]
            if (block in whole or draw.random() < 0.4) and CONDITIONS[where](row)
        ]
        last = sorted(left)[:limit][-1][0] if left else None
        assert all(mask[block] for key, block in left if last is not None and key <= last), (column, where, top)
        left_out += FILES - int(mask.sum())
    assert left_out > 0
