"""Statements on our own tables in a session that has the parsers of Delta and Iceberg as well."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from fuse_index import spark as fuse_spark


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A namespace of a catalogue of ours."""
    place: Path = tmp_path_factory.mktemp("warehouse")
    fuse_spark.install(spark, warehouse=str(place), catalog="ours")
    spark.sql("CREATE NAMESPACE ours.shop")
    return "ours.shop"


def properties(spark: SparkSession, table: str) -> str:
    return str(spark.sql(f"SHOW CREATE TABLE {table}").collect()[0][0])


def test_cluster_by_means_the_same_under_the_parser_of_delta(spark: SparkSession, shop: str) -> None:
    table = f"{shop}.people"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, home STRUCT<city: STRING>) CLUSTER BY (home.city, id)")
    assert "CLUSTER BY (home.city, id)" in properties(spark, table)
    spark.sql(f"ALTER TABLE {table} CLUSTER BY (id)")
    assert "CLUSTER BY (id)" in properties(spark, table)
    spark.sql(f"ALTER TABLE {table} CLUSTER BY NONE")
    assert "CLUSTER BY" not in properties(spark, table)
    spark.sql(f"CREATE TABLE {table}_too CLUSTER BY (id) AS SELECT id FROM range(3)")
    assert "CLUSTER BY (id)" in properties(spark, f"{table}_too")
    assert spark.table(f"{table}_too").count() == 3


def test_statements_go_through_other_parsers(spark: SparkSession, shop: str) -> None:
    table = f"{shop}.orders"
    spark.sql(f"CREATE TABLE {table} (id BIGINT, city STRING) PARTITIONED BY (city) COMMENT 'sold'")
    spark.sql(f"INSERT INTO {table} VALUES (1, 'Bonn'), (2, 'Ulm'), (3, 'Bonn')")
    spark.sql(f"CREATE INDEX by_id ON {table} USING bloom (id)")
    spark.sql(f"MERGE INTO {table} t USING (SELECT 2 AS id) s ON t.id = s.id WHEN MATCHED THEN DELETE")
    spark.sql(f"UPDATE {table} SET city = 'Kiel' WHERE id = 3")
    spark.sql(f"DELETE FROM {table} WHERE id = 1")
    spark.sql(f"ALTER TABLE {table} ADD COLUMNS (note STRING)")
    assert [tuple(row) for row in spark.table(table).collect()] == [(3, "Kiel", None)]
    assert spark.sql("CALL ours.system.verify_index('shop.orders', 'by_id')").count()
    assert spark.sql(f"SELECT count(*) FROM {table} VERSION AS OF 2").collect()[0][0] == 3
