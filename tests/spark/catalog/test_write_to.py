"""DataFrames make, fill and replace tables of a warehouse by their names."""

from pathlib import Path

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col

import fuse_index as fuse
from fuse_index import spark as fuse_spark


@pytest.fixture
def catalog(spark: SparkSession, tmp_path: Path) -> fuse.Catalog:
    fuse_spark.install(spark, warehouse=str(tmp_path / "warehouse"))
    made = fuse.catalog(tmp_path / "warehouse")
    made.create_namespace("db")
    return made


def ids(df: DataFrame) -> list[int]:
    return sorted(row.id for row in df.collect())


@pytest.mark.every_spark
def test_write_to_in_all_its_forms(spark, catalog):
    numbers = spark.range(3)
    numbers.writeTo("fuse.db.t").tableProperty("block_rows", "10").create()
    numbers.writeTo("fuse.db.t").append()
    assert ids(spark.table("fuse.db.t")) == [0, 0, 1, 1, 2, 2]
    assert catalog.load_table("db.t").snapshot.properties == {"block_rows": 10}
    with pytest.raises(AnalysisException, match="already exists"):
        numbers.writeTo("fuse.db.t").create()

    numbers.where("id > 0").writeTo("fuse.db.t").overwrite(col("id") > 0)
    assert ids(spark.table("fuse.db.t")) == [0, 0, 1, 2]
    numbers.selectExpr("id", "id * 2 AS twice").writeTo("fuse.db.t").replace()
    assert spark.table("fuse.db.t").columns == ["id", "twice"]
    numbers.writeTo("fuse.db.t").createOrReplace()
    numbers.writeTo("fuse.db.u").createOrReplace()
    assert ids(spark.table("fuse.db.u")) == [0, 1, 2]
    with pytest.raises(AnalysisException):
        numbers.writeTo("fuse.db.nothing").append()
    with pytest.raises(AnalysisException):
        numbers.writeTo("fuse.db.nothing").replace()
    with pytest.raises(AnalysisException, match=r"ADD COLUMNS, or write to the table's place"):
        numbers.writeTo("fuse.db.t").option("mergeSchema", "true").append()


@pytest.mark.every_spark
def test_save_as_table_and_insert_into(spark, catalog):
    numbers = spark.range(3)
    numbers.write.saveAsTable("fuse.db.t")
    numbers.write.mode("append").saveAsTable("fuse.db.t")
    numbers.write.insertInto("fuse.db.t")
    assert len(ids(spark.table("fuse.db.t"))) == 9
    with pytest.raises(AnalysisException, match="already exists"):
        numbers.write.saveAsTable("fuse.db.t")
    numbers.write.mode("ignore").saveAsTable("fuse.db.t")
    numbers.write.mode("overwrite").saveAsTable("fuse.db.t")
    numbers.write.mode("append").saveAsTable("fuse.db.new")

    assert ids(spark.table("fuse.db.t")) == ids(spark.table("fuse.db.new")) == [0, 1, 2]
    numbers.write.partitionBy("id").saveAsTable("fuse.db.parts")
    assert spark.table("fuse.db.parts.partitions").select("partition.id", "rows").collect() == [(0, 1), (1, 1), (2, 1)]
