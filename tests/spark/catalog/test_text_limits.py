"""VARCHAR(n) is what it is in a plain Parquet table, and CHAR(n) is refused."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark

COLUMNS = "id INT, v VARCHAR(3), s STRUCT<x: VARCHAR(2)>, l ARRAY<VARCHAR(2)>"
ROWS = [
    "1, 'abc', named_struct('x', 'ab'), array('b', 'bb')",
    "2, 'abc  ', NULL, NULL",
    "3, 'abcd', NULL, NULL",
    "4, 'a', named_struct('x', 'abc'), array('bbb')",
]


@pytest.fixture
def catalog(spark: SparkSession, tmp_path: Path) -> Iterator[fuse.Catalog]:
    fuse_spark.install(spark, warehouse=str(tmp_path / "warehouse"))
    made = fuse.catalog(tmp_path / "warehouse")
    made.create_namespace("db")
    yield made
    spark.sql("DROP TABLE IF EXISTS plain_limits")


def refusal(spark: SparkSession, sql: str) -> str:
    try:
        spark.sql(sql)
    except PySparkException as refused:
        return str(refused)
    return ""


def test_char_is_refused_by_name(spark, catalog):
    assert "say VARCHAR(3)" in refusal(spark, "CREATE TABLE fuse.db.t (id INT, l ARRAY<STRUCT<x: CHAR(3)>>)")
    spark.sql("CREATE TABLE fuse.db.t (id INT)")
    assert "say VARCHAR(3)" in refusal(spark, "ALTER TABLE fuse.db.t ADD COLUMN c CHAR(3)")


@pytest.mark.every_spark
def test_varchar_is_checked_as_in_a_plain_parquet_table(spark, catalog):
    create = f"CREATE TABLE fuse.db.t ({COLUMNS})"
    if spark.version < "4.1":
        assert "'v' is varchar(3)" in refusal(spark, create)
        return
    spark.sql(create)
    spark.sql(f"CREATE TABLE plain_limits ({COLUMNS}) USING parquet")
    for row in ROWS:
        plain, ours = (refusal(spark, f"INSERT INTO {name} VALUES ({row})") for name in ("plain_limits", "fuse.db.t"))
        assert ("EXCEED_LIMIT_LENGTH" in plain) == ("EXCEED_LIMIT_LENGTH" in ours) == bool(ours), row
    for query in ("SELECT * FROM {} ORDER BY id", "SELECT id FROM {} WHERE v = 'abc'", "DESCRIBE {}"):
        plain, ours = (spark.sql(query.format(name)).collect() for name in ("plain_limits", "fuse.db.t"))
        assert plain == ours, query
    assert len(spark.table("fuse.db.t").collect()) == 2

    assert "EXCEED_LIMIT" in refusal(spark, "UPDATE fuse.db.t SET v = 'abcd'")
    assert "EXCEED_LIMIT" in refusal(
        spark,
        "MERGE INTO fuse.db.t USING (SELECT 9 AS k) ON id = k WHEN NOT MATCHED THEN INSERT (id, v) VALUES (k, 'abcd')",
    )
    assert "text_limits" not in {row.key for row in spark.sql("SHOW TBLPROPERTIES fuse.db.t").collect()}
    assert "ALTER COLUMN" in refusal(spark, "ALTER TABLE fuse.db.t SET TBLPROPERTIES (text_limits = 'x')")


def test_a_limit_is_its_column_s_through_changes_of_the_table(spark, catalog):
    if spark.version < "4.1":
        pytest.skip("tables have no limits there")
    spark.sql("CREATE TABLE fuse.db.t (id INT, v VARCHAR(3))")
    spark.sql("CREATE INDEX by_v ON fuse.db.t USING bloom (v)")
    spark.sql("ALTER TABLE fuse.db.t RENAME COLUMN v TO w")
    spark.sql("ALTER TABLE fuse.db.t ADD COLUMN more STRUCT<x: VARCHAR(2)>")
    columns = [row.data_type for row in spark.sql("DESCRIBE fuse.db.t").collect()]
    assert columns == ["int", "varchar(3)", "struct<x:varchar(2)>"]
    catalog.load_table("db.t").append([{"id": 1, "w": "a"}])
    catalog.load_table("db.t").append([{"id": 2, "w": "b"}])
    found = spark.sql("SELECT id FROM fuse.db.t WHERE w = 'b'")
    assert (found.first().id, fuse_spark.explain(found).blocks.kept) == (2, 1)

    spark.sql("DROP INDEX by_v ON fuse.db.t")
    spark.sql("ALTER TABLE fuse.db.t ALTER COLUMN w TYPE STRING")
    spark.sql("INSERT INTO fuse.db.t VALUES (2, 'of any length', named_struct('x', 'ab'))")
    assert catalog.load_table("db.t").snapshot.properties == {"text_limits": {"4": 2}}
    catalog.load_table("db.t").append([{"id": 3, "more": {"x": "longer than Spark writes"}}])
    assert spark.sql("SELECT more.x FROM fuse.db.t WHERE id = 3").first().x == "longer than Spark writes"
