"""Queries of a folder of Parquet files by its own name."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from fuse_index import spark as fuse_spark
from tests.effort import effort, in_turn
from tests.spark.foreign.shapes import OF_FILES, SHAPES, X, Y
from tests.spark.foreign.sources import FILES, MISSING, ROWS, a_of, use_index, write_folder
from tests.spark.foreign.ways import SWITCH, Use, Ways, conf, same_on_random_conditions, uses


@pytest.fixture(scope="module")
def source(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    home = tmp_path_factory.mktemp("shapes")
    use_index(spark, write_folder(home / "lake"), home / "index")
    return f"parquet.`{home}/lake`"


@pytest.fixture(scope="module")
def listed(spark: SparkSession, source: str) -> Iterator[str]:
    """A view of the folder, whose files are listed once, and not by each query."""
    spark.table(source).createOrReplaceTempView("listed")
    yield "listed"
    spark.catalog.dropTempView("listed")


@pytest.fixture(scope="module", autouse=True)
def _functions(spark: SparkSession) -> None:
    spark.udf.register("has_digits", lambda text: text is not None and text[1:].isdigit(), "boolean")


@pytest.fixture(scope="module")
def without_votes(ways: Ways, source: str, listed: str) -> dict[str, Any]:
    """What comes of each shape without votes: the same, however Spark plans it."""
    asked = [(SHAPES, listed), (OF_FILES, source)]  # no view has the columns that Spark knows of files
    return {name: ways.without(sql.format(t=of)) for shapes, of in asked for name, (sql, _) in shapes.items()}


EMPTY_SIDE = "full join with nobody"
"""Of whose plan adaptive execution takes the scan of the empty side."""
OTHERS = [name for name in SHAPES | OF_FILES if name != EMPTY_SIDE]


@pytest.mark.every_spark
@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_shapes_of_queries(ways: Ways, source: str, without_votes: dict[str, Any], adaptive: str) -> None:
    names = in_turn(OTHERS, adaptive == "true") + ([EMPTY_SIDE] if adaptive == "false" else [])
    shapes = {name: (SHAPES | OF_FILES)[name] for name in names}
    with conf(ways.spark, spark_sql_adaptive_enabled=adaptive, spark_sql_autoBroadcastJoinThreshold="-1"):
        found = {name: ways.with_votes(sql.format(t=source)) for name, (sql, _) in shapes.items()}

    assert {name: came for name, (came, _) in found.items()} == {name: without_votes[name] for name in shapes}
    assert {name: sorted(use.left_out for use in told) for name, (_, told) in found.items()} == {
        name: expected for name, (_, expected) in shapes.items()
    }


@pytest.mark.parametrize("seed", range(effort(1)))
def test_random_conditions(ways: Ways, listed: str, seed: int) -> None:
    told = same_on_random_conditions(ways, listed, seed, 20)

    assert sum(use.left_out for use in told) > FILES * 20 // 4
    assert not any(use.unknown or use.problem for use in told)


@pytest.mark.every_spark
def test_row_groups_are_left_out_too(ways: Ways, source: str) -> None:
    assert ways.same(f"SELECT * FROM {source} WHERE a = '{X}'") == [Use(FILES, FILES - 1, 0, 1)]
    df = ways.spark.sql(f"SELECT * FROM {source} WHERE a = '{X}' AND length(b) > 0")
    df.collect()
    scan = df._jdf.queryExecution().executedPlan().collectLeaves().head()
    assert scan.metrics().apply("numOutputRows").value() == ROWS // 4


def test_one_dataframe_in_many_places(ways: Ways, source: str) -> None:
    def query() -> DataFrame:
        some = ways.spark.table(source).where(col("a").isin(X, Y))
        other = ways.spark.table(source).where(col("a") == a_of(5))
        joined = some.alias("p").join(some.alias("q"), "id").select("id", "p.a", "p.b", "p.n")
        return some.union(some).union(joined).union(other).union(some.where("n > 0"))

    assert sorted(set(ways.left_out(query))) == [6, 7]


@pytest.mark.every_spark
def test_views_and_cached_dataframes(ways: Ways, source: str) -> None:
    spark = ways.spark
    spark.sql(f"CREATE OR REPLACE TEMP VIEW narrow AS SELECT id, a AS key FROM {source} WHERE n < 500")
    assert ways.left_out(f"SELECT * FROM narrow WHERE key = '{X}'") == [7]
    for filled in ("true", "false"):
        spark.conf.set(SWITCH, filled)
        cached = spark.table(source).where(f"a = '{X}'").cache()
        try:
            assert cached.count() == 1
            spark.conf.set(SWITCH, "true" if filled == "false" else "false")
            again = spark.table(source).where(f"a = '{X}'")
            assert [row.id for row in again.collect()] == [777]
            assert [row.id for row in again.where("n >= 0").collect()] == [777]
        finally:
            cached.unpersist()
            spark.conf.unset(SWITCH)
    whole = spark.table(source).cache()
    try:
        assert whole.where(f"a = '{X}'").count() == 1
    finally:
        whole.unpersist()


ERRORS = [
    "CAST(b AS INT) = 5 AND a = '{x}'",
    "a = '{x}' AND CAST(b AS INT) = 5",
    "10 / (n - n) > 1 AND a = '{x}'",
    "element_at(array(1), n) = 1 AND a = '{x}'",
    "upper(a) = 'A' OR CAST(b AS INT) = 5",
]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_an_error_is_the_same_unless_its_rows_were_left_out(ways: Ways, listed: str, ansi: str) -> None:
    with conf(ways.spark, spark_sql_ansi_enabled=ansi):
        for number, text in enumerate(ERRORS):
            for value in in_turn((X, MISSING), number + (ansi == "true")):
                query = f"SELECT id FROM {listed} WHERE {text.format(x=value)}"
                ways.same_but_for_errors(query)


def test_who_asks_for_no_votes_gets_none(ways: Ways, source: str) -> None:
    spark, place = ways.spark, source[len("parquet.`") : -1]
    df = spark.read.option("fuse.index.transparent", "false").parquet(place).where(f"a = '{X}'")
    assert len(df.collect()) == 1
    assert uses(df) == []
    with conf(spark, spark_fuse_index_transparent="FALSE"):
        df = spark.table(source).where(f"a = '{X}'")
        assert len(df.collect()) == 1
        assert uses(df) == []


def test_an_explanation_before_the_query_runs_is_that_of_the_run(ways: Ways, source: str) -> None:
    df = ways.spark.sql(f"SELECT * FROM {source} WHERE a = '{X}'")
    before = fuse_spark.explain(df).to_dict()
    assert len(df.collect()) == 1
    after = fuse_spark.explain(df).to_dict()

    assert before["blocks"] == after["blocks"] == {"total": FILES, "kept": 1}
    assert uses(df) == [Use(FILES, FILES - 1, 0, 1)]


@pytest.mark.every_spark
@pytest.mark.parametrize("mode", ["FORMATTED", "EXTENDED", "COST", "CODEGEN"])
def test_spark_s_explain_names_the_scan(ways: Ways, source: str, mode: str) -> None:
    told = ways.spark.sql(f"EXPLAIN {mode} SELECT * FROM {source} WHERE a = '{X}'").head()[0]
    assert "FuseIndexedScan" in told


def test_actions_of_other_kinds(ways: Ways, source: str) -> None:
    df = ways.spark.sql(f"SELECT id FROM {source} WHERE a IN ('{X}', '{Y}')")
    assert sorted(row.id for row in df.toLocalIterator()) == [777, 1501]
    assert sorted(df.rdd.map(lambda row: row.id).collect()) == [777, 1501]
    assert df.coalesce(1).count() == df.repartition(3).count() == len(df.take(9)) == len(df.tail(9)) == 2
    assert df.where("id > 777").isEmpty() is False
