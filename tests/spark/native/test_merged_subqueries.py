"""Subqueries that scan a table alike scan it once where Spark merges those of its own files, and skip what they did."""

import re
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
import fuse_index.spark as fuse_spark
from fuse_index.pruning.explanation import Explanation
from tests.spark.executed import plan_of

BLOCKS, ROWS = 8, 500
MERGES = tuple(map(int, pyspark.__version__.split(".")[:2])) >= (4, 3)
"""Whether Spark merges scans of DataSource V2."""


@pytest.fixture(scope="module")
def views(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """``sold``, of which some rows are marked as deleted, ``before`` that, and plain Parquet of both."""
    folder = tmp_path_factory.mktemp("merged")
    ids = np.arange(BLOCKS * ROWS)
    rows = pa.table({"id": ids, "day": ids // 100, "v": ids % 7, "w": ids % 11})
    table = fuse.create_table(folder / "sold", rows.schema, ["day"], {"block_rows": ROWS})
    table.append(rows)
    before = table.snapshot.id
    table.delete("v = 3")
    fuse_spark.read(spark, folder / "sold").createOrReplaceTempView("sold")
    fuse_spark.read(spark, folder / "sold", at=before).createOrReplaceTempView("before")
    pq.write_table(rows.filter(pa.array(ids % 7 != 3)), folder / "sold.parquet")
    pq.write_table(rows, folder / "before.parquet")
    for name in ("sold", "before"):
        spark.read.parquet(str(folder / f"{name}.parquet")).createOrReplaceTempView(f"{name}_plain")
    numbered = fuse_spark.read(spark, folder / "sold").select("_metadata.row_index")
    numbered.createOrReplaceTempView("numbered")
    yield spark
    for name in ("numbered", "sold", "sold_plain", "before", "before_plain"):
        spark.catalog.dropTempView(name)


def compare(spark: SparkSession, query: str) -> DataFrame:
    """The query over our tables, after its rows were compared with those over plain Parquet."""
    found = spark.sql(query.format(sold="sold", before="before"))
    assert found.collect() == spark.sql(query.format(sold="sold_plain", before="before_plain")).collect()
    return found


def scans(found: DataFrame) -> list[Explanation]:
    told = fuse_spark.explain(found)
    return [told] if isinstance(told, Explanation) else list(told)


def columns_scanned(found: DataFrame) -> set[str]:
    """The columns of each scan in the plan that ran, by their names and numbers there."""
    return set(re.findall(r"BatchScan [^\[]*\[([^\]]*)\]", plan_of(found)))


ALIKE = [
    """SELECT (SELECT sum(v) FROM {sold} WHERE day < 12) a, (SELECT avg(w) FROM {sold} WHERE day < 12) b,
    (SELECT sum(id) FROM {sold} WHERE day < 12) c""",
    """SELECT CASE WHEN (SELECT avg(v) FROM {sold} WHERE day < 12) > 1 THEN (SELECT sum(v) FROM {sold} WHERE day < 12)
    ELSE (SELECT sum(w) FROM {sold} WHERE day < 12) END""",
]


@pytest.mark.every_spark
@pytest.mark.parametrize("query", ALIKE)
def test_subqueries_of_one_condition_scan_a_table_once_and_skip_its_blocks(views: SparkSession, query: str) -> None:
    found = compare(views, query)

    assert (len(columns_scanned(found)) == 1) == MERGES
    assert {(each.blocks.kept, each.blocks.total) for each in scans(found)} == {(3, BLOCKS)}


OTHERS = [
    "SELECT (SELECT sum(v) FROM {sold} WHERE day < 12) a, (SELECT sum(w) FROM {before} WHERE day < 12) b",
    "SELECT (SELECT sum(v) FROM {sold} WHERE day < 12) a, (SELECT sum(w) FROM {sold} WHERE day > 12) b",
]


@pytest.mark.parametrize("query", OTHERS)
def test_versions_and_conditions_are_kept_apart(views: SparkSession, query: str) -> None:
    assert len(columns_scanned(compare(views, query))) == 2


def test_what_is_answered_without_rows_is_read_for_no_other_subquery(views: SparkSession) -> None:
    query = "SELECT (SELECT count(*) FROM {sold}) a, (SELECT sum(v) FROM {sold} WHERE day < 12) b"
    found = scans(compare(views, query))

    assert sorted(each.blocks.kept for each in found) == [0, 3]


def test_aggregates_that_spark_merged_skip_blocks(views: SparkSession) -> None:
    """Spark makes subqueries of these, after subqueries were optimized."""
    found = compare(
        views,
        """SELECT * FROM (SELECT sum(v) FROM {sold} WHERE day < 12) JOIN (SELECT avg(v) FROM {sold} WHERE day < 12)""",
    )

    assert {(each.blocks.kept, each.blocks.total) for each in scans(found)} == {(3, BLOCKS)}


def test_aggregates_of_hidden_columns_are_merged(views: SparkSession) -> None:
    """Their scans read parts, of which the columns are made."""
    alone = [views.sql(f"SELECT {each}(row_index) FROM numbered").first()[0] for each in ("sum", "avg")]
    found = views.sql("SELECT * FROM (SELECT sum(row_index) FROM numbered) JOIN (SELECT avg(row_index) FROM numbered)")

    assert [list(row) for row in found.collect()] == [alone]
