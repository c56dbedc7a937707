"""Conditions that are very long, very deep or of very long lists are asked about up to a bound, and left out beyond."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.java_gateway import get_field
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
import fuse_index.spark as fuse_spark
from fuse_index.pruning.explanation import Explanation
from fuse_index.reasons import Reason
from fuse_index.spark.native.java_compiler import java_class
from fuse_index.spark.session import find_native_session
from tests.effort import everything

BLOCKS = 4


@pytest.fixture(scope="module")
def df(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> DataFrame:
    url = str(tmp_path_factory.mktemp("large") / "t")
    table = fuse.create_table(url, "n BIGINT, m BIGINT", properties={"block_rows": 25})
    table.append(pa.table({"n": range(100), "m": range(100)}))
    return fuse_spark.read(spark, url)


class Asked:
    """The scan of a table, asked about conditions as Spark asks: ``node`` makes one of Catalyst's expressions."""

    def __init__(self, df: DataFrame) -> None:
        self.df, self.jvm = df, df.sparkSession._jvm
        relation = df._jdf.queryExecution().analyzed()
        while relation.children().nonEmpty():
            relation = relation.children().head()
        options = self.jvm.org.apache.spark.sql.util.CaseInsensitiveStringMap.empty()
        self.scan, self.column = relation.table().newScanBuilder(options).build(), relation.output().head()
        self.classes = dict[str, Any]()

    def node(self, name: str, *arguments: Any) -> Any:
        if name not in self.classes:
            self.classes[name] = java_class(self.jvm, f"org.apache.spark.sql.catalyst.expressions.{name}")
        return self.classes[name](*arguments)

    def files(self, condition: Any) -> int:
        """How many files Spark is told to read."""
        parts = self.told(condition).planInputPartitions()
        return len({file.filePath().toString() for part in parts for file in part.files()})

    def explain(self, condition: Any) -> Explanation:
        session = find_native_session(get_field(get_field(self.scan, "snapshot"), "callbackKey"))
        assert session is not None
        return session.callback.explain(self.request(condition))

    def request(self, condition: Any) -> str:
        return str(self.told(condition).request())

    def told(self, condition: Any) -> Any:
        """The scan of the rows on which a condition is true."""
        conditions = self.jvm.java.util.ArrayList()
        conditions.add(condition)
        return self.scan.withFilters(conditions)


@pytest.fixture
def asked(df: DataFrame) -> Asked:
    return Asked(df)


def condition_of(df: DataFrame, text: str) -> Any:
    return df.filter(text)._jdf.queryExecution().analyzed().condition()


def test_thousands_of_terms_are_asked_about(df: DataFrame, asked: Asked) -> None:
    pairs = 5_000 if everything() else 1_000
    condition = condition_of(df, " OR ".join(f"n = {3 * i} OR m > {1000 + i}" for i in range(5_000, 5_000 + pairs)))

    assert asked.files(condition) == 0
    [tree] = json.loads(asked.request(condition))["filters"]
    assert len(tree["children"]) == 2 * pairs  # a chain is one level


@pytest.mark.parametrize("count", [5_000, 260_000, 1_000_000])
def test_long_lists_are_asked_about_up_to_a_bound(asked: Asked, count: int) -> None:
    streams = asked.jvm.java.util.stream
    values = streams.LongStream.range(1_000, 1_000 + count).boxed().collect(streams.Collectors.toSet())
    listed = asked.jvm.scala.jdk.javaapi.CollectionConverters.asScala(values).toSet()
    condition = asked.node("InSet", asked.column, listed)

    assert asked.files(condition) == (0 if count == 5_000 else BLOCKS)
    if count > 5_000:
        [vote] = asked.explain(condition).votes
        assert (vote.reason, vote.leaf) == (Reason.TOO_MANY_TERMS, "a condition of more than 250,000 terms and values")


@pytest.mark.parametrize("names", [("Or", "And"), ("Not",)])
@pytest.mark.parametrize(("depth", "kept"), [(80, 1), (5_000, BLOCKS)])
def test_deep_conditions_are_asked_about_up_to_a_bound(
    df: DataFrame, asked: Asked, names: tuple[str, ...], depth: int, kept: int
) -> None:
    condition, always, never = (condition_of(df, text) for text in ("n = 7", "n > -100", "n > 200"))
    for level in range(depth):
        name = names[level % len(names)]
        condition = asked.node(name, condition, *({"Not": [], "Or": [never], "And": [always]}[name]))

    assert asked.files(condition) == kept
    if depth > 100:
        [vote] = asked.explain(condition).votes
        assert (vote.reason, vote.leaf) == (Reason.TOO_MANY_TERMS, "a condition nested more than 100 levels deep")


def test_a_chain_of_five_thousand_is_no_depth(df: DataFrame, asked: Asked) -> None:
    condition, further = condition_of(df, "n = 7"), condition_of(df, "n > 200")
    for _ in range(5_000):
        condition = asked.node("Or", condition, further)

    assert asked.files(condition) == 1


def test_rows_are_the_same_with_a_condition_that_is_left_out(df: DataFrame, asked: Asked) -> None:
    values = ", ".join(map(str, range(5_000)))

    assert df.filter(f"n IN ({values}) AND n < 3").count() == 3


@pytest.mark.every_spark
@pytest.mark.parametrize(
    ("count", "pushed"),
    [(100, "In(n, "), (101, "And(GreaterThanOrEqual(n,1001),LessThanOrEqual(n,1100))")],
)
def test_files_are_filtered_by_the_bounds_of_a_long_list(asked: Asked, count: int, pushed: str) -> None:
    streams = asked.jvm.java.util.stream
    keys = streams.LongStream.range(1_001, 1_000 + count).boxed().collect(streams.Collectors.toSet())
    keys.add(None)
    listed = asked.jvm.scala.jdk.javaapi.CollectionConverters.asScala(keys).toSet()

    [filter_] = asked.told(asked.node("InSet", asked.column, listed)).createReaderFactory().filters()

    assert str(filter_.toString()).startswith(pushed)


@pytest.mark.parametrize("type_", ["BIGINT", "STRING", "DATE", "DECIMAL(20, 2)", "DOUBLE", "TIMESTAMP_NTZ", "BINARY"])
def test_rows_are_the_same_by_the_bounds_of_a_list(spark: SparkSession, tmp_path: Path, type_: str) -> None:
    value = "date_add(DATE'1582-09-01', CAST(id AS INT))" if type_ in ("DATE", "TIMESTAMP_NTZ") else "id - 100"
    if type_ == "BINARY":
        value = "CAST(id - 100 AS STRING)"
    rows = spark.range(400).selectExpr("id", f"CAST({value} AS {type_}) v")
    table = fuse.create_table(tmp_path / "t", rows.schema.simpleString()[7:-1].replace(":", " "))
    table.append(rows.toArrow())
    df, wanted = fuse_spark.read(spark, str(tmp_path / "t")), rows.filter("id % 3 = 0 AND id BETWEEN 20 AND 380")
    listed = ", ".join(f"CAST('{row.v}' AS {type_})" for row in wanted.selectExpr("CAST(v AS STRING) v").collect())

    found = df.filter(f"v IN ({listed})").select("id").collect()
    assert df.filter(f"v NOT IN ({listed})").count() == 400 - len(found)

    assert sorted(found) == sorted(wanted.select("id").collect())
    assert len(found) == 120
