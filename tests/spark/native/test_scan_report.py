"""What an executed plan asked of our tables, and what it kept from them."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, udf

from fuse_index import spark as fuse_spark
from fuse_index.spark.native.java_compiler import jvm_bridge
from tests.spark.executed import PASSES_VALUES
from tests.spark.plain import names

EMPTY_JOIN = """
    SELECT a.kind, count(*) FROM native a JOIN (SELECT id, kind FROM native WHERE abs(id) = -1) b
    ON a.kind = b.kind WHERE a.id < 50 AND upper(a.kind) <> b.kind GROUP BY a.kind"""


def asked_by(df: DataFrame) -> list[dict[str, Any]]:
    """Each scan of the plan: what it asks, and the conditions that it does not ask about."""
    found = json.loads(jvm_bridge(df.sparkSession).scans(df._jdf.queryExecution()))
    return [{"nodes": names(json.loads(scan["request"])["filters"]), "unpushed": scan["unpushed"]} for scan in found]


@pytest.mark.every_spark
def test_adaptive_plans_name_their_scans(spark: SparkSession, plain_view: str) -> None:
    found = spark.sql(
        "SELECT a.kind, count(*) FROM native a JOIN native b USING (id) WHERE a.id = 421 AND "
        "a.kind > 'k' GROUP BY a.kind"
    )
    before = [scan["nodes"] for scan in asked_by(found)]
    found.collect()
    after = [scan["nodes"] for scan in asked_by(found)]

    assert sorted(before) == [["EqualTo", "GreaterThan", "IsNotNull", "IsNotNull"], ["EqualTo", "IsNotNull"]]
    # What the join found out is part of what the larger side was asked.
    assert sorted(after) == [["EqualTo", "GreaterThan", "InSet", "IsNotNull", "IsNotNull"], ["EqualTo", "IsNotNull"]]


@pytest.mark.every_spark
def test_a_cached_plan_and_a_subquery_name_their_scans(spark: SparkSession, plain_view: str, plain: DataFrame) -> None:
    cached = plain.filter("id < 500").cache()
    try:
        cached.createOrReplaceTempView("some")
        found = spark.sql("SELECT count(*) FROM some WHERE id = (SELECT max(id) FROM native WHERE kind = 'k1')")
        assert sorted(scan["nodes"] for scan in asked_by(found)) == [
            ["EqualTo", "IsNotNull"],
            ["IsNotNull", "LessThan"],
        ]
    finally:
        spark.catalog.dropTempView("some")
        cached.unpersist()


@pytest.mark.every_spark
def test_conditions_that_spark_keeps_to_itself_are_named(
    spark: SparkSession, plain_view: str, plain: DataFrame
) -> None:
    odd = udf(lambda number: number % 2 == 1, "boolean")
    small = spark.range(3).withColumnRenamed("id", "other")
    joined = plain.filter(odd("id") & (col("id") > 7)).join(small, col("id") == col("other"))
    [scan] = asked_by(joined)
    assert scan["nodes"] == ["GreaterThan", "IsNotNull"]
    assert len(scan["unpushed"]) == 1  # of the join it is told the keys
    assert "pythonUDF" in next(iter(scan["unpushed"]))

    newest = spark.sql("SELECT * FROM native WHERE id = (SELECT max(id) FROM native)")
    [outer, inner] = asked_by(newest)
    assert [outer["nodes"], inner["nodes"]] == [["IsNotNull"], []]
    newest.collect()
    [outer, _] = asked_by(newest)
    # Eight small files are not worth running a subquery a second time for its value.
    assert len(outer["unpushed"]) == (0 if PASSES_VALUES else 1)
    assert asked_by(plain.filter("id = 4"))[0]["unpushed"] == {}


def test_a_join_of_which_keys_are_asked_is_not_called_spark_s_own(spark: SparkSession, plain_view: str) -> None:
    keyed = spark.sql(
        "SELECT a.kind FROM native a JOIN (SELECT id AS key FROM native WHERE kind = 'k1') b ON a.id = b.key"
    )
    for executed in (False, True):
        if executed:
            keyed.collect()
        asking, asked = sorted(asked_by(keyed), key=lambda scan: "EqualTo" in scan["nodes"])
        assert asking["unpushed"] == {}
        assert len(asked["unpushed"]) == 1  # by whose keys nothing is asked
    assert "InSet" in asking["nodes"]


def test_explanations_name_tables_as_the_query_does(spark: SparkSession, tmp_path: Path) -> None:
    fuse_spark.install(spark, warehouse=str(tmp_path))
    spark.conf.set("spark.fuse.index.rows.maxBytes", "0")  # or the driver reads the few rows without waiting
    try:
        spark.sql("CREATE NAMESPACE fuse.n")
        spark.sql("CREATE TABLE fuse.n.big AS SELECT id, id % 7 AS k FROM range(50)")
        spark.sql("CREATE INDEX by_k ON fuse.n.big USING bloom (k)")
        spark.sql("CREATE TABLE fuse.n.small AS SELECT 3L AS k2")
        joined = spark.sql("SELECT b.id FROM fuse.n.big b JOIN fuse.n.small ON b.k = k2 WHERE b.id > 5")
        big, small = sorted(fuse_spark.explain(joined), key=lambda each: each.table)
        before = str(big)
        joined.collect()
        after = [str(each) for each in fuse_spark.explain(joined)]
    finally:
        spark.conf.unset("spark.fuse.index.rows.maxBytes")

    assert [big.called, small.called] == ["fuse.n.big AS b", "fuse.n.small"]
    assert big.to_dict()["table"] == "fuse.n.big"
    assert big.to_dict()["alias"] == "b"
    assert "KEYS_AWAITED" in before
    assert not any("KEYS_AWAITED" in text for text in after)
    assert any("k IN (3)" in text for text in after)


@pytest.mark.every_spark
@pytest.mark.parametrize("asked", ["SELECT * FROM native WHERE id = -1 ORDER BY kind", EMPTY_JOIN])
def test_a_query_that_was_found_empty_while_it_ran_names_its_scans(
    spark: SparkSession, plain_view: str, asked: str
) -> None:
    found = spark.sql(asked)
    before = asked_by(found)
    assert found.collect() == []
    after = asked_by(found)

    assert "EmptyRelation" in found._jdf.queryExecution().executedPlan().toString()
    assert after
    assert all(scan in before for scan in after)
