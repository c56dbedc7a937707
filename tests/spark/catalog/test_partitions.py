"""Partitioned tables are made, written, shown and replaced a partition at a time by statements of Spark."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_storage.testing import check_invariants

COLUMNS = "id BIGINT, `the day` DATE, c STRING"
ROWS = """SELECT id, IF(id % 5 = 0, NULL, date_add(DATE'2026-01-01', CAST(id % 3 AS INT))) AS `the day`,
    IF(id % 2 = 0, 'even', NULL) AS c FROM range(0, 60, 1, 2)"""


@pytest.fixture
def catalog(spark: SparkSession, tmp_path: Path) -> fuse.Catalog:
    fuse_spark.install(spark, warehouse=str(tmp_path / "warehouse"))
    made = fuse.catalog(tmp_path / "warehouse")
    made.create_namespace("db")
    return made


def listed(spark: SparkSession, name: str = "fuse.db.t") -> list[tuple[Any, ...]]:
    found = spark.table(f"{name}.partitions").collect()
    return [(*(None if each is None else str(each) for each in row.partition), row.rows) for row in found]


@pytest.mark.every_spark
def test_statements_keep_to_partitions(spark: SparkSession, catalog: fuse.Catalog) -> None:
    spark.sql(f"CREATE TABLE fuse.db.t ({COLUMNS}) PARTITIONED BY (`the day`, c)")
    spark.sql(f"INSERT INTO fuse.db.t {ROWS}")
    assert listed(spark) == [
        *((f"2026-01-0{day}", c, 8) for day in (1, 2, 3) for c in ("even", None)),
        (None, "even", 6),
        (None, None, 6),
    ]
    blocks = set(catalog.load_table("db.t").stored.blocks().ids)
    spark.sql("DELETE FROM fuse.db.t WHERE `the day` = DATE'2026-01-01'")
    assert set(catalog.load_table("db.t").stored.blocks().ids) < blocks
    spark.sql("UPDATE fuse.db.t SET c = 'moved' WHERE id IN (1, 5, 7)")
    spark.sql(
        "MERGE INTO fuse.db.t AS t USING (SELECT explode(array(1L, 300L)) AS id) s ON t.id = s.id "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, `the day`, c) VALUES (s.id, NULL, 'new')"
    )
    check_invariants(catalog.load_table("db.t").stored)
    assert listed(spark) == [
        ("2026-01-02", "even", 8),
        ("2026-01-02", "moved", 1),
        ("2026-01-02", None, 6),
        ("2026-01-03", "even", 8),
        ("2026-01-03", None, 8),
        (None, "even", 6),
        (None, "moved", 1),
        (None, "new", 1),
        (None, None, 5),
    ]


@pytest.mark.every_spark
def test_overwrites_replace_the_partitions_that_rows_come_for(spark: SparkSession, catalog: fuse.Catalog) -> None:
    spark.sql(f"CREATE TABLE fuse.db.t ({COLUMNS}) PARTITIONED BY (`the day`, c)")
    spark.sql(f"INSERT INTO fuse.db.t {ROWS}")
    spark.sql("INSERT OVERWRITE fuse.db.t PARTITION (`the day` = '2026-01-02', c) VALUES (100, 'new')")
    new = spark.sql("SELECT id, IF(id = 0, NULL, DATE'2026-01-03') AS `the day`, 'even' AS c FROM range(2)")
    new.writeTo("fuse.db.t").overwritePartitions()
    after = catalog.load_table("db.t").snapshot.id
    new.limit(0).writeTo("fuse.db.t").overwritePartitions()

    assert catalog.load_table("db.t").snapshot.id == after
    check_invariants(catalog.load_table("db.t").stored)
    assert listed(spark) == [
        ("2026-01-01", "even", 8),
        ("2026-01-01", None, 8),
        ("2026-01-02", "new", 1),
        ("2026-01-03", "even", 1),
        ("2026-01-03", None, 8),
        (None, "even", 1),
        (None, None, 6),
    ]


def test_show_create_table_makes_the_table_again(spark: SparkSession, catalog: fuse.Catalog) -> None:
    spark.sql(f"CREATE TABLE fuse.db.a ({COLUMNS}) PARTITIONED BY (`the day`, c) TBLPROPERTIES (cluster_by = 'id')")
    statement = spark.sql("SHOW CREATE TABLE fuse.db.a").collect()[0][0]
    assert "PARTITIONED BY (`the day`, c)" in statement
    spark.sql(statement.replace("fuse.db.a", "fuse.db.b").split("\nLOCATION")[0])
    a, b = (catalog.load_table(f"db.{name}").snapshot for name in "ab")

    assert (a.properties, a.cluster_by, a.writer_features) == (b.properties, b.cluster_by, b.writer_features)
    assert a.properties == {"partition_ids": [2, 3]}
    assert a.cluster_by == ("id",)
    described = {row.col_name: row.data_type for row in spark.sql("DESCRIBE TABLE fuse.db.a").collect()}
    assert "# Partition Information" in described or "# Partitioning" in described


def test_a_large_write_comes_partition_by_partition(spark: SparkSession, tmp_path: Path) -> None:
    """Tasks of an arranged write have few partitions each; whatever they have, no block mixes them."""
    table = fuse.create_table(tmp_path / "t", COLUMNS, ["id"], {"block_rows": 12}, partition_by=["the day"])
    rows = spark.sql(ROWS)
    fuse_spark.write(rows, str(tmp_path / "t"), rows=60)
    arranged = table.refresh().snapshot.block_count
    rows.write.format("fuse").mode("append").save(str(tmp_path / "t"))

    assert arranged <= 11  # 4 partitions of 12 to 16 rows, and a border in each range of 10
    table = table.refresh()
    assert (table.snapshot.row_count, table.snapshot.block_count > arranged) == (120, True)
    check_invariants(table.stored)
