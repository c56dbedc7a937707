"""Blocks are skipped by what a function is on; the answer is that of a scan that opens all of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.expressions.evaluate import evaluate
from fuse_index.predicate import Context
from fuse_index.sql.parse import parse_predicate

START = datetime(2023, 1, 1, tzinfo=UTC)
DAYS = [START + timedelta(days=day, hours=day % 24) for day in range(0, 1600, 20)]
ROWS = pa.table(
    {
        "n": pa.array([*range(-3, 75), 2**31 - 2, 2**31 - 1], pa.int32()),
        "ts": pa.array(DAYS, pa.timestamp("us", "UTC")),
        "s": pa.array([f"{chr(97 + row // 8)}{row:03}" for row in range(80)]),
    }
)


@pytest.fixture(scope="module", params=[Context(), Context(ansi=False), Context("America/New_York")], ids=str)
def table(request: pytest.FixtureRequest) -> fuse.Table:
    made = fuse.create_table(
        f"memory://implied-{uuid4().hex}", ROWS.schema, properties={"block_rows": 8}, context=request.param
    )
    made.append(ROWS)
    return made


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("n + 1 = 4", 1),
        ("2 * n - 7 > 100", 3),
        ("n + 1 < 0", 1),
        ("year(ts) = 2026", 4),
        ("year(ts) IN (2023, 2024)", 5),
        ("date(ts) BETWEEN DATE'2024-01-01' AND DATE'2024-02-01'", 1),
        ("substr(s, 1, 2) = 'c0'", 1),
        ("left(s, 1) >= 'h'", 3),
        ("unix_timestamp(ts) < 1680000000", 1),
        ("NOT (n + 1 = 4)", 10),
        ("n + 1 = 4 OR year(ts) = 2026", 5),
    ],
)
def test_few_blocks_are_kept_and_all_rows_found(table: fuse.Table, where: str, kept: int) -> None:
    explanation = table.explain(where)
    found = table.scan(where).to_arrow()
    truth = evaluate(parse_predicate(where, table.snapshot.schema, table.context), ROWS, table.context)

    assert found.sort_by("s").equals(ROWS.filter(truth.fill_null(False)))
    assert table.context != Context() or explanation.blocks.kept == kept
