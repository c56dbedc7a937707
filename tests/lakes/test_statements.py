"""Statements on our own tables in a session that has the parsers of Delta and Iceberg as well."""

import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A warehouse."""
    return str(tmp_path_factory.mktemp("warehouse"))


@pytest.fixture(scope="module")
def shop(spark: SparkSession, place: str) -> str:
    """A namespace of a catalogue of ours."""
    fuse_spark.install(spark, warehouse=place, catalog="ours")
    spark.sql("CREATE NAMESPACE ours.shop")
    return "ours.shop"


def test_cluster_by_means_the_same_under_the_parser_of_delta(spark: SparkSession, shop: str, place: str) -> None:
    def cluster_by(name: str) -> tuple[str, ...]:
        return tuple(fuse.catalog(place).load_table(f"shop.{name}").snapshot.cluster_by)

    spark.sql(f"CREATE TABLE {shop}.people (id BIGINT, city STRING, name STRING) CLUSTER BY (name, id, city)")
    assert cluster_by("people") == ("name", "id", "city")
    spark.sql(f"ALTER TABLE {shop}.people CLUSTER BY (city, id)")
    assert cluster_by("people") == ("city", "id")
    spark.sql(f"ALTER TABLE {shop}.people CLUSTER BY NONE")
    assert cluster_by("people") == ()
    spark.sql(f"CREATE TABLE {shop}.copied CLUSTER BY (id) AS SELECT id FROM range(3)")
    assert cluster_by("copied") == ("id",)
    assert spark.table(f"{shop}.copied").count() == 3


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
