"""What votes leave of a source tells Spark which side of a join to broadcast; its keys then reach the other index."""

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.effort import everything, in_turn
from tests.spark.foreign.sources import FILES, MISSING, a_of, use_index, write_folder
from tests.spark.foreign.ways import Ways, conf, uses

X = a_of(777)


@pytest.fixture(scope="module")
def sources(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    home = tmp_path_factory.mktemp("sizes")
    for name in ("left", "right"):
        use_index(spark, write_folder(home / name), home / f"{name}-index", columns=("a", "b", "id"))
        spark.read.parquet(f"{home}/{name}").createOrReplaceTempView(f"the_{name}")
    yield "the_left", "the_right"
    for name in ("the_left", "the_right"):
        spark.catalog.dropTempView(name)


def broadcasts(df: DataFrame) -> int:
    """How many joins of the first plan are by broadcast."""
    return str(df._jdf.queryExecution().sparkPlan().toString()).count("BroadcastHashJoin")


@pytest.mark.every_spark
def test_a_side_that_votes_leave_little_of_is_broadcast(ways: Ways, sources: tuple[str, str]) -> None:
    left, right = sources
    query = f"SELECT p.id, q.b FROM {left} p JOIN {right} q ON p.b = q.b WHERE p.a = '{X}'"
    with conf(ways.spark, spark_sql_autoBroadcastJoinThreshold="12000"):
        assert broadcasts(ways.spark.sql(query)) == 1
        assert sorted(ways.left_out(query)) == [FILES - 1, FILES - 1]
        with conf(ways.spark, spark_fuse_index_transparent="false"):
            assert broadcasts(ways.spark.sql(query)) == 0


JOINS = ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
THRESHOLDS = ["-1", "12000", "24000", "10000000"]
PLANS = [*zip(THRESHOLDS, ("true", "false", "false", "true"), strict=True)]
"""By default each size with adaptive execution or without; each join at two sizes, with and without, on either side."""


def test_joins_of_many_sizes(ways: Ways, sources: tuple[str, str]) -> None:
    left, right = sources
    plain: dict[str, Any] = {}  # answers without votes
    some = f"(SELECT * FROM {left} WHERE a IN ('{X}', '{a_of(1501)}', NULL))"
    others = [
        f"SELECT count(*) FROM {some} p JOIN {right} q USING (id) JOIN {left} r USING (id) WHERE r.n > 3",
        f"SELECT count(*) FROM {right} WHERE id IN (SELECT id FROM {left} WHERE a = '{MISSING}')",
    ]
    for number, (threshold, adaptive) in enumerate(product(THRESHOLDS, ("true", "false")) if everything() else PLANS):
        with conf(ways.spark, spark_sql_autoBroadcastJoinThreshold=threshold, spark_sql_adaptive_enabled=adaptive):
            for turn, join in enumerate(in_turn(JOINS, number)):
                columns = "count(*), sum(p.id)" + ("" if "SEMI" in join or "ANTI" in join else ", count(q.id)")
                sides = [f"{right} p {join} {some} q ON p.id = q.id", f"{some} p {join} {right} q ON p.id = q.id + 1"]
                for side in in_turn(sides, number // 2 + turn):
                    ways.same(f"SELECT {columns} FROM {side}", plain)
            for query in in_turn(others, number // 2):
                ways.same(query, plain)


def test_what_is_not_known_counts_as_it_is(ways: Ways, sources: tuple[str, str]) -> None:
    left, right = sources
    query = f"SELECT p.id FROM {left} p JOIN {right} q ON p.id = q.id WHERE p.n < 990 AND q.n < 990"
    with conf(ways.spark, spark_sql_autoBroadcastJoinThreshold="12000"):
        df = ways.spark.sql(query)
        assert broadcasts(df) == 0
        df.collect()
        assert [use.left_out for use in uses(df)] == [0, 0]
