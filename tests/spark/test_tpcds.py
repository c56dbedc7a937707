"""TPC-DS's queries have the rows of plain Parquet over tables of ours with indexes on.

The generator is an extension of DuckDB that the environment of the oldest Spark has. Four of the 99 queries are run, a
fifth with ``EFFORT=2``, and all with ``EFFORT=10``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from benchmarks.pairs import comparable
from benchmarks.tpcds import OURS, PLAIN, SETTINGS, generate, load_queries, make_both
from fuse_index import spark as fuse_spark
from tests.effort import effort, everything

SCALE, BLOCK_ROWS = 0.01, 2_000
STEP = max(1, round(99 / effort(10))) if everything() else 25
FOUND = find_spec("duckdb_extension_tpcds")

pytestmark = [
    pytest.mark.every_spark,
    pytest.mark.skipif(FOUND is None, reason="the generator's extension of DuckDB is not installed (see the Makefile)"),
]


@pytest.fixture(scope="module")
def queries(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Mapping[str, str]]:
    assert FOUND is not None
    assert FOUND.origin is not None
    folder = tmp_path_factory.mktemp("tpcds-data")
    generate(folder, SCALE, Path(FOUND.origin).parents[1])
    return folder, load_queries(folder)


@pytest.fixture(scope="module")
def session(
    spark: SparkSession, queries: tuple[Path, Mapping[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SparkSession]:
    session, folder = spark.newSession(), tmp_path_factory.mktemp("tpcds")
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    fuse_spark.install(session, warehouse=str(folder / "warehouse"))
    make_both(session, queries[0], folder, BLOCK_ROWS)
    yield session
    session.sql(f"DROP DATABASE {PLAIN} CASCADE")


def test_queries_have_the_rows_of_plain_parquet(session: SparkSession, queries: tuple[Path, Mapping[str, str]]) -> None:
    """The fourteenth is one, which scans each of the large tables six times, and the sixty-fourth, of most joins."""
    names = [f"q{number:02}" for number in range(1, 100)]
    assert list(queries[1]) == names
    differ, rows = [], 0
    for name in names[13 % STEP :: STEP]:
        found = {}
        for place in (OURS, PLAIN):
            session.sql(f"USE {place}")
            found[place] = comparable(session.sql(queries[1][name]).collect())
        rows += len(found[PLAIN])
        if found[OURS] != found[PLAIN]:
            differ.append(name)

    assert not differ
    assert rows
