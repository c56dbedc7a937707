"""TPC-H's 22 queries have the rows of plain Parquet over tables of ours with indexes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import Row, SparkSession

from benchmarks.tpch.both import OURS, PLAIN, make_both, queries
from benchmarks.tpch.tables import make_tables
from fuse_index import spark as fuse_spark
from fuse_index.pruning.explanation import Explanation
from tests.spark.native.test_aggregates import answered

SCALE, BLOCK_ROWS = 0.01, 4_000  # a block of lineitem has the lines of half a year


@pytest.fixture(scope="module")
def tpch(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session, folder = spark.newSession(), tmp_path_factory.mktemp("tpch")
    fuse_spark.install(session, warehouse=str(folder / "warehouse"))
    make_both(session, make_tables(SCALE), folder, BLOCK_ROWS)
    yield session
    session.sql(f"DROP DATABASE {PLAIN} CASCADE")


def rows(session: SparkSession, query: str, place: str) -> list[Row]:
    session.sql(f"USE {place}")
    return session.sql(query).collect()


def test_there_are_22_queries() -> None:
    assert list(queries()) == [f"q{number:02}" for number in range(1, 23)]


@pytest.mark.alike
@pytest.mark.parametrize("name", queries())
def test_a_query_has_the_rows_of_plain_parquet(tpch: SparkSession, name: str) -> None:
    query = queries()[name]

    found = rows(tpch, query, OURS)

    assert found == rows(tpch, query, PLAIN)
    assert found


@pytest.mark.parametrize("name", ["q01", "q06"])
def test_sums_of_expressions_are_answered_by_states(tpch: SparkSession, name: str) -> None:
    tpch.sql(f"USE {OURS}")
    found = tpch.sql(queries()[name])
    found.collect()
    told = fuse_spark.explain(found)
    [first] = [told] if isinstance(told, Explanation) else told[:1]

    assert answered(found)
    assert first.blocks.kept < 3 < first.blocks.total


def test_no_small_side_is_computed_once_more_for_a_scan_alone(tpch: SparkSession) -> None:
    """Joins of joins are estimated far larger than the scan within that is to be spared."""
    tpch.sql(f"USE {OURS}")
    found = tpch.sql(queries()["q05"])
    found.collect()

    executed = str(found._jdf.queryExecution().executedPlan().toString())
    assert "dynamicpruning" in executed
    assert " Subquery dynamicpruning" not in executed
