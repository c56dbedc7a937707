"""Statements on our own tables in a session that has the parsers of Delta and Iceberg as well."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from tests.effort import in_turn


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


def test_statements_of_others_reach_their_parsers_and_ours_are_done(spark: SparkSession, shop: str, home: Path) -> None:
    spark.sql(f"CREATE TABLE delta.`{home}/habits` (id BIGINT) USING delta")
    spark.sql(f"INSERT INTO delta.`{home}/habits` VALUES (1)")
    spark.sql(f"INSERT INTO delta.`{home}/habits` VALUES (2)")
    spark.sql(f"CREATE TABLE {shop}.habits (id BIGINT)")
    spark.sql(f"INSERT INTO {shop}.habits VALUES (1)")
    spark.sql(f"INSERT INTO {shop}.habits VALUES (2)")

    theirs = {"OPTIMIZE": "path", "DESCRIBE DETAIL": "format", "DESCRIBE HISTORY": "operationMetrics"}
    for turn, name in enumerate((f"delta.`{home}/habits`", f"'{home}/habits'")):
        for statement, column in in_turn(theirs.items(), turn):
            row = spark.sql(f"{statement} {name}").first()
            assert column in row
            assert column != "format" or row["format"] == "delta"
    spark.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "2")  # 10,000 tasks of a VACUUM
    assert spark.sql(f"VACUUM delta.`{home}/habits` RETAIN 168 HOURS DRY RUN").columns == ["path"]
    spark.conf.unset("spark.sql.sources.parallelPartitionDiscovery.parallelism")
    assert "restored_files_size" in spark.sql(f"RESTORE delta.`{home}/habits` TO VERSION AS OF 1").columns

    assert spark.sql(f"OPTIMIZE {shop}.habits").collect()[0]["blocks"] == 1
    assert [row["operation"] for row in spark.sql(f"DESCRIBE HISTORY {shop}.habits LIMIT 1").collect()] == ["compact"]
    assert spark.sql(f"DESCRIBE DETAIL {shop}.habits").first()["format"] == "fuse"
    assert spark.sql(f"RESTORE {shop}.habits TO VERSION AS OF 2").first()["rows"] == 1

    spark.sql(f"USE {shop}")  # delta.`/path` is no name of ours there
    try:
        assert spark.sql(f"DESCRIBE HISTORY delta.`{home}/habits`").first()["operation"] == "RESTORE"
        assert spark.sql("DESCRIBE HISTORY habits").first()["operation"] == "restore"
    finally:
        spark.sql("USE spark_catalog.default")


def test_iceberg_still_finds_its_parser(spark: SparkSession, shop: str) -> None:
    spark.sql("CREATE TABLE ice.db.habits (id BIGINT) USING iceberg")
    spark.sql("INSERT INTO ice.db.habits VALUES (2), (1)")

    spark.sql("ALTER TABLE ice.db.habits CREATE TAG monday")
    assert spark.sql("SELECT name FROM ice.db.habits.refs WHERE type = 'TAG'").collect() == [("monday",)]
    done = spark.sql("CALL ice.system.rewrite_data_files(table => 'db.habits', strategy => 'sort', sort_order => 'id')")
    assert "rewritten_data_files_count" in done.columns
