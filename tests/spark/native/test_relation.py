"""The native scan: what Spark asks, what it reads, and that queries cannot tell it from a Parquet table."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

from fuse_index.predicate import Context
from fuse_index.spark.native.relation import NativeScan, snapshot_dataframe
from fuse_index.spark.protocol.replies import RefreshReply
from fuse_storage import Schema
from tests.spark.executed import files_read
from tests.spark.plain import FILES, ROWS, Judge, Tree, listing, names, read, rows, write


@pytest.mark.every_spark
def test_plain_sql_reads_only_the_files_that_the_vote_keeps(spark: SparkSession, plain_view: str, judge: Judge) -> None:
    found = spark.sql("SELECT id, kind FROM native WHERE id = 421")

    assert found.collect() == [(421, "k1")]
    assert files_read(found) == 1
    assert names(judge.asked[0]) == ["EqualTo", "IsNotNull"]


@pytest.mark.every_spark
def test_a_query_asks_python_once_though_spark_asks_twice(spark: SparkSession, plain_view: str, judge: Judge) -> None:
    spark.sql("SELECT count(*) FROM native WHERE id = 421 AND kind LIKE 'k%'").collect()

    assert len(judge.asked) == 1


def test_a_scan_without_filters_asks_nobody(plain: DataFrame, judge: Judge) -> None:
    assert plain.count() == FILES * ROWS
    assert judge.asked == []


@pytest.mark.every_spark
def test_filters_inferred_through_a_join_reach_the_vote(spark: SparkSession, plain_view: str) -> None:
    found = spark.sql("SELECT a.kind FROM native a JOIN native b ON a.id = b.id WHERE b.id = 421")

    assert found.collect() == [("k1",)]
    assert files_read(found) == 2  # one of each side


@pytest.mark.every_spark
def test_literals_arrive_as_values_not_as_text(spark: SparkSession, plain: DataFrame, judge: Judge) -> None:
    plain.filter(col("kind") == 'a "q\\\n\u0001😀').count()

    [literal] = [tree["children"][1] for tree in judge.asked[0] if tree["node"] == "EqualTo"]
    assert literal == {"node": "Literal", "type": "string", "value": 'a "q\\\n\u0001😀', "children": []}


@pytest.mark.every_spark
def test_text_that_is_not_utf8_arrives_as_bytes(spark: SparkSession, plain: DataFrame, judge: Judge) -> None:
    plain.filter("kind = CAST(X'ff61' AS STRING)").count()

    assert [tree["children"][1]["value"] for tree in judge.asked[0] if tree["node"] == "EqualTo"] == [{"hex": "ff61"}]


@pytest.mark.every_spark
def test_two_instants_of_a_clock_change_are_told_apart(spark: SparkSession, tmp_path: Path) -> None:
    judge = Judge(lambda trees: np.ones(1, np.bool_))
    when = pa.table({"at": pa.array([0], pa.timestamp("us", "UTC"))})
    df = read(spark, write(tmp_path / "t", [when]), Schema.create(when.schema), judge)
    for instant in ("2024-10-27 00:30:00+00:00", "2024-10-27 01:30:00+00:00"):
        df.filter(f"at = timestamp'{instant}'").count()

    values = [tree["children"][1]["value"] for trees in judge.asked for tree in trees if tree["node"] == "EqualTo"]
    assert values == ["1729989000000000", "1729992600000000"]


@pytest.mark.every_spark
def test_metadata_is_not_taken_for_a_column_of_its_name(spark: SparkSession, tmp_path: Path) -> None:
    judge = Judge(lambda trees: np.ones(1, np.bool_))
    rows = pa.table({"file_size": [1, 2, 3]})
    df = read(spark, write(tmp_path / "t", [rows]), Schema.create(rows.schema), judge)
    assert df.filter("file_size = 2 AND _metadata.file_size > 2").count() == 1

    ours = {
        attribute["ours"]: tree["node"]
        for tree in judge.asked[-1]
        for attribute in attributes(tree)
        if tree["node"] != "IsNotNull"
    }
    assert ours == {True: "EqualTo", False: "GreaterThan"}


def attributes(tree: Tree) -> Iterator[Tree]:
    if tree["node"] == "AttributeReference":
        yield tree
    for child in tree["children"]:
        yield from attributes(child)


@pytest.mark.every_spark
def test_parameters_of_expressions_arrive(spark: SparkSession, plain: DataFrame, judge: Judge) -> None:
    many = ", ".join(str(i) for i in range(20))
    plain.filter(
        rf"kind LIKE 'k!_%x' ESCAPE '!' AND try_cast(kind AS int) = 3 AND point.x = 7 AND id IN ({many})"
    ).count()

    trees = {tree["node"]: tree for tree in judge.asked[0]}
    assert trees["Like"]["escape"] == "!"
    assert sorted(trees["InSet"]["values"], key=int) == [str(i) for i in range(20)]
    terms = {tree["children"][0]["node"]: tree["children"][0] for tree in judge.asked[0] if tree["node"] == "EqualTo"}
    assert (terms["Cast"]["evalMode"], terms["GetStructField"]["ordinal"]) == ("TRY", 0)


@pytest.mark.every_spark
def test_collated_text_is_not_called_a_string(spark: SparkSession, plain: DataFrame, judge: Judge) -> None:
    assert plain.filter("kind COLLATE UTF8_LCASE = 'K1'").count() == FILES * ROWS // 5

    [equal] = [tree for tree in judge.asked[0] if tree["node"] == "EqualTo"]
    assert [child["type"] for child in equal["children"]] == ["string collate UTF8_LCASE"] * 2


def test_the_session_travels_with_the_question(spark: SparkSession, plain: DataFrame, judge: Judge) -> None:
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        plain.filter("id = 1").count()
    finally:
        spark.conf.unset("spark.sql.session.timeZone")
        spark.conf.unset("spark.sql.ansi.enabled")

    assert judge.questions[0].context == Context(time_zone="Asia/Tokyo", ansi=False, case_sensitive=False)


@pytest.mark.every_spark
def test_a_subquery_is_not_asked_about_before_its_value_is_known(
    spark: SparkSession, plain_view: str, judge: Judge
) -> None:
    found = spark.sql("SELECT count(*) FROM native WHERE id = (SELECT max(id) FROM native WHERE kind = 'k1')")

    assert found.collect() == [(1,)]
    assert not [tree for trees in judge.asked for tree in trees if "Subquery" in str(tree)]


@pytest.mark.every_spark
def test_the_estimate_is_the_size_of_what_the_vote_keeps(
    spark: SparkSession, plain: DataFrame, plain_files: list[Path]
) -> None:
    def estimate(df: DataFrame) -> int:
        return int(str(df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))

    assert estimate(plain) == sum(file.stat().st_size for file in plain_files)
    assert estimate(plain.filter("id = 421")) == plain_files[4].stat().st_size


@pytest.mark.every_spark
def test_a_lookup_of_one_file_is_broadcast(spark: SparkSession, plain: DataFrame, plain_files: list[Path]) -> None:
    spark.conf.set("spark.sql.autoBroadcastJoinThreshold", str(2 * plain_files[0].stat().st_size))
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        joined = plain.alias("a").join(plain.alias("b").filter("id = 421"), col("a.point.x") == col("b.point.x"))
        whole = plain.alias("a").join(plain.alias("b"), col("a.point.x") == col("b.point.x"))

        assert "BroadcastHashJoin" in joined._jdf.queryExecution().executedPlan().toString()
        assert "SortMergeJoin" in whole._jdf.queryExecution().executedPlan().toString()
        assert joined.count() == 1
    finally:
        spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
        spark.conf.unset("spark.sql.adaptive.enabled")


def test_two_tables_in_one_query_ask_their_own_voters(
    spark: SparkSession, plain: DataFrame, judge: Judge, tmp_path: Path
) -> None:
    other = Judge(lambda trees: np.array([False, True]))
    halves = [pa.table({"id": [n], "name": [f"n{n}"]}) for n in (420, 421)]
    second = read(spark, write(tmp_path / "second", halves), Schema.create(halves[0].schema), other)

    joined = plain.join(second.filter("id > 420"), "id")
    assert joined.select("kind", "name").collect() == [("k1", "n421")]
    assert {tree["node"] for trees in other.asked for tree in trees} == {"GreaterThan", "IsNotNull"}
    assert judge.asked


@pytest.mark.every_spark
def test_equal_scans_are_read_once(spark: SparkSession, plain_view: str) -> None:
    sums = "SELECT kind, sum(id) s FROM native WHERE id > 3 GROUP BY kind"
    found = spark.sql(f"{sums} UNION ALL {sums}")
    assert len(found.collect()) == 10

    assert "ReusedExchange" in found._jdf.queryExecution().executedPlan().toString()


def test_a_cached_table_serves_a_second_dataframe_of_the_same_snapshot(
    spark: SparkSession, plain_files: list[Path], judge: Judge
) -> None:
    schema = Schema.create(rows(0).schema)
    first = read(spark, plain_files, schema, judge, url="/same").cache()
    try:
        assert first.count() == FILES * ROWS
        second = read(spark, plain_files, schema, judge, url="/same")
        assert "InMemoryTableScan" in second.filter("id = 421")._jdf.queryExecution().executedPlan().toString()
        assert second.filter("id = 421").count() == 1
        other = read(spark, plain_files, schema, judge, url="/same", mode="plain")
        assert "InMemoryTableScan" not in other._jdf.queryExecution().executedPlan().toString()
    finally:
        first.unpersist()


def test_a_dataframe_is_asked_about_anew_for_each_query(plain: DataFrame, judge: Judge) -> None:
    assert [plain.filter(f"id = {n}").count() for n in (1, 101, 799, 800)] == [1, 1, 1, 0]
    assert len(judge.asked) == 4


def test_nothing_kept_is_an_empty_answer(plain: DataFrame, judge: Judge) -> None:
    judge.say = lambda trees: np.zeros(FILES, np.bool_)

    assert plain.filter("id > 5").collect() == []
    assert plain.filter("id > 6").groupBy().count().collect() == [(0,)]


def test_a_table_without_files_is_empty(spark: SparkSession, judge: Judge) -> None:
    empty = snapshot_dataframe(
        spark, NativeScan("nobody", "/none", "main", "indexes", "s0", listing([]), Schema.create(rows(0).schema))
    )

    assert empty.filter("id = 1").collect() == []
    assert empty.count() == 0
    assert empty.columns == ["id", "kind", "point"]


@pytest.mark.every_spark
def test_a_refresh_moves_a_view_to_the_head(
    spark: SparkSession, plain_view: str, judge: Judge, plain_files: list[Path], tmp_path: Path
) -> None:
    more = write(tmp_path / "more", [rows(FILES)])
    judge.next = RefreshReply("s2", listing([*plain_files, *more]))
    judge.say = lambda trees: np.ones(FILES + 1, np.bool_)
    assert spark.table(plain_view).count() == FILES * ROWS

    spark.sql(f"REFRESH TABLE {plain_view}")

    assert spark.table(plain_view).count() == (FILES + 1) * ROWS
    assert spark.table(plain_view).filter("id = 850").count() == 1
    assert judge.questions[-1].snapshot == "s2"


def test_a_refresh_at_the_head_changes_nothing(spark: SparkSession, plain_view: str, judge: Judge) -> None:
    spark.sql(f"REFRESH TABLE {plain_view}")

    assert spark.table(plain_view).filter("id = 421").count() == 1
    assert judge.questions[-1].snapshot == "s1"


def test_a_refresh_that_cannot_be_says_what_to_do(spark: SparkSession, plain_view: str, judge: Judge) -> None:
    judge.next = ValueError("the schema has changed: read the table again")

    with pytest.raises(Exception, match="read the table again"):
        spark.sql(f"REFRESH TABLE {plain_view}")

    assert spark.table(plain_view).filter("id = 421").count() == 1


@pytest.mark.every_spark
def test_a_row_tells_its_file_and_its_place_in_it(plain: DataFrame, plain_files: list[Path]) -> None:
    hidden = ["file_path", "file_name", "file_size", "file_block_start", "row_index"]
    found = plain.select("id", *[f"_metadata.{name}" for name in hidden]).collect()

    assert {row.file_path for row in found} == {f"file:{file}" for file in plain_files}
    by_name = {file.name: file for file in plain_files}
    for row in found:
        file = by_name[row.file_name]
        assert row.file_size == file.stat().st_size
        assert row.file_block_start == 0
        assert row.row_index == row.id % ROWS
    assert plain.filter(f"_metadata.file_name = '{plain_files[3].name}' AND id % 2 = 0").count() == ROWS // 2
    assert plain.groupBy("_metadata.file_path").count().count() == FILES
    assert plain.select("_metadata").first()["_metadata"].file_size > 0
