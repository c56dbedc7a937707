"""TPC-DS's queries have the rows of plain Parquet over tables of ours with indexes on.

Tables and queries are of a generator that the development environment lacks: the folder ``TPCDS_DATA`` has them, which
``python -m benchmarks.tpcds --scale 0.01 --data FOLDER --queries`` fills. A fifth of the queries is run; all of them
with ``EFFORT=5``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.pairs import comparable
from benchmarks.tpcds import OURS, PLAIN, SETTINGS, load_queries, make_both
from fuse_index import spark as fuse_spark
from tests.effort import effort

DATA = os.environ.get("TPCDS_DATA", "")
BLOCK_ROWS = 2_000
QUERIES: Mapping[str, str] = load_queries(Path(DATA)) if DATA else {}
STEP = max(1, round(99 / effort(20)))
CHOSEN = list(QUERIES)[3 % STEP :: STEP]
"""With the fourteenth, which scans each of the large tables six times, and the sixty-fourth, of the most joins."""

pytestmark = [
    pytest.mark.any_spark,
    pytest.mark.skipif(not DATA, reason="TPCDS_DATA names no folder of tables and queries: see benchmarks/tpcds.py"),
]


@pytest.fixture(scope="module")
def tpcds(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session, folder = spark.newSession(), tmp_path_factory.mktemp("tpcds")
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    fuse_spark.install(session, warehouse=str(folder / "warehouse"))
    make_both(session, Path(DATA), folder, BLOCK_ROWS)
    yield session
    session.sql(f"DROP DATABASE {PLAIN} CASCADE")


def test_there_are_99_queries() -> None:
    assert list(QUERIES) == [f"q{number:02}" for number in range(1, 100)]


@pytest.mark.parametrize("name", CHOSEN)
def test_a_query_has_the_rows_of_plain_parquet(tpcds: SparkSession, name: str) -> None:
    found = {}
    for place in (OURS, PLAIN):
        tpcds.sql(f"USE {place}")
        found[place] = tpcds.sql(QUERIES[name]).collect()

    assert comparable(found[OURS]) == comparable(found[PLAIN])
