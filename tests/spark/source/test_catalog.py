"""Spark's catalog keeps no tables of ours, and says so; nothing is left of the attempt."""

from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from fuse_index import spark as fuse_spark

pytestmark = pytest.mark.every_spark

Attempt = Callable[[SparkSession, str], object]

ATTEMPTS: dict[str, Attempt] = {
    "create": lambda spark, url: spark.sql("CREATE TABLE fuse_t (id BIGINT) USING fuse"),
    "create with a path": lambda spark, url: spark.sql(
        f"CREATE TABLE fuse_t (id BIGINT) USING FUSE OPTIONS (path '{url}')"
    ),
    "create at a location": lambda spark, url: spark.sql(
        f"CREATE TABLE IF NOT EXISTS fuse_t (id BIGINT) USING fuse LOCATION '{url}'"
    ),
    "create as select": lambda spark, url: spark.sql("CREATE TABLE fuse_t USING fuse AS SELECT id FROM range(3)"),
    "saveAsTable": lambda spark, url: spark.range(3).write.format("fuse").mode("append").saveAsTable("fuse_t"),
    "saveAsTable with a path": lambda spark, url: (
        spark.range(3).write.format("fuse").mode("overwrite").option("path", url).saveAsTable("fuse_t")
    ),
    "writeTo": lambda spark, url: spark.range(3).writeTo("fuse_t").using("fuse").createOrReplace(),
    "toTable": lambda spark, url: (
        spark.readStream.format("rate")
        .load()
        .writeStream.format("fuse")
        .option("checkpointLocation", f"{url}-checkpoint")
        .toTable("fuse_t")
    ),
    "catalog": lambda spark, url: spark.catalog.createTable("fuse_t", path=url, source="fuse"),
}


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_a_table_in_the_catalog_is_refused(spark: SparkSession, tmp_path: Path, attempt: str) -> None:
    fuse_spark.install(spark)

    with pytest.raises(AnalysisException, match=r"keeps no tables of format 'fuse'.*CREATE TEMPORARY VIEW"):
        ATTEMPTS[attempt](spark, str(tmp_path / "t"))
    assert not spark.catalog.tableExists("fuse_t")
    assert not (tmp_path / "t").exists()


def test_tables_of_other_formats_and_views_of_ours_are_made(spark: SparkSession, tmp_path: Path) -> None:
    fuse_spark.install(spark)
    spark.range(3).write.format("fuse").mode("append").save(str(tmp_path / "t"))
    spark.sql("CREATE TABLE plain_t USING parquet AS SELECT id FROM range(3)")
    spark.sql(f"CREATE TEMPORARY VIEW fuse_v USING fuse OPTIONS (path '{tmp_path}/t')")
    try:
        assert spark.table("plain_t").count() == spark.table("fuse_v").count() == 3
    finally:
        spark.sql("DROP TABLE plain_t")
        spark.catalog.dropTempView("fuse_v")
