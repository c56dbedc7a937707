"""Tables over files of others by statements: attached, synced and converted."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from tests.index.sources.one_table import OneTable, delete_equal_rows
from tests.index.sources.test_delta_logs import deletion_vector, written_log


def test_procedures_attach_sync_and_convert(sql_spark: SparkSession, tmp_path: Path) -> None:
    lake, place = str(tmp_path / "lake"), str(tmp_path / "table")
    sql_spark.range(100).selectExpr("id", "id % 7 AS k").write.partitionBy("k").parquet(lake)
    pq.write_table(pa.table({"id": [1000]}), tmp_path / "lake" / "k=3" / "+ö b%41.parquet")
    (made,) = sql_spark.sql(f"CALL fuse.system.attach('{lake}', '{place}')").collect()
    sql_spark.range(100, 120).selectExpr("id", "id % 7 AS k").write.mode("append").partitionBy("k").parquet(lake)
    (synced,) = sql_spark.sql(f"CALL fuse.system.sync('{place}')").collect()

    assert made.location == place
    assert synced.rows == 121
    assert synced.removed_files == 0
    assert sql_spark.sql(f"SELECT count(*) FROM fuse.`{place}` WHERE k = 3").head()[0] == 18
    (converted,) = sql_spark.sql(f"CALL fuse.system.convert('{place}')").collect()
    assert converted.rows == 121
    sql_spark.sql(f"DELETE FROM fuse.`{place}` WHERE id >= 100 AND id < 1000")
    assert fuse.open_table(place).count() == 101
    # By a query of Spark's, which says where rows lie: in files that have names in common, and one with an odd name.
    sql_spark.sql(f"UPDATE fuse.`{place}` SET k = NULL WHERE id IN (3, 1000) AND hash(k) <> 0")
    assert sql_spark.sql(f"SELECT count(*), sum(id), count(k) FROM fuse.`{place}`").head() == (101, 5950, 99)
    assert sql_spark.sql(f"SELECT id FROM fuse.`{place}` WHERE k = 3 AND id < 20").collect() == [(10,), (17,)]


def test_statements_keep_exports_up(sql_spark: SparkSession, tmp_path: Path) -> None:
    place = str(tmp_path / "table")
    fuse.create_table(place, "id BIGINT, s STRING", properties={"exports": "delta"})
    sql_spark.sql(f"INSERT INTO fuse.`{place}` SELECT id, 'a' FROM range(20)")
    sql_spark.sql(f"UPDATE fuse.`{place}` SET s = concat(s, id) WHERE id = 3")
    sql_spark.sql(f"DELETE FROM fuse.`{place}` WHERE id >= 4")
    sql_spark.range(100, 102).selectExpr("id", "'b' AS s").write.format("fuse").mode("append").save(place)
    expected = [(0, "a"), (1, "a"), (2, "a"), (3, "a3"), (100, "b"), (101, "b")]

    found = DeltaTable(place).to_pyarrow_table().to_pylist()
    assert sorted((row["id"], row["s"]) for row in found) == expected
    sql_spark.sql(f"ALTER TABLE fuse.`{place}` ADD COLUMN more INT")
    assert DeltaTable(place).to_pyarrow_table().column_names == ["id", "s", "more"]


def test_equality_deletes_of_iceberg_are_followed(sql_spark: SparkSession, tmp_path: Path) -> None:
    source = OneTable("test").create(tmp_path / "lake", pa.schema([("id", pa.int64())]))
    source.append(pa.table({"id": range(10)}))
    delete_equal_rows(source, tmp_path / "keys.parquet", pa.table({"id": [3]}))
    metadata = source.metadata_location.removeprefix("file://")

    sql_spark.sql(f"CALL fuse.system.attach('{metadata}', '{tmp_path / 'table'}', 'iceberg')")
    assert sql_spark.sql(f"SELECT count(*), sum(id) FROM fuse.`{tmp_path / 'table'}`").head() == (9, 42)


def test_rows_that_delta_deleted_are_left_out(sql_spark: SparkSession, tmp_path: Path) -> None:
    lake = written_log(tmp_path / "lake", ["deletionVectors"], {}, {"deletionVector": deletion_vector(1, 3)})
    table = fuse.attach(lake, tmp_path / "table", format="delta")
    table.create_index("by_a", "bloom", ["a"])
    name = f"fuse.`{tmp_path / 'table'}`"

    assert sql_spark.sql(f"SELECT count(*), sum(a) FROM {name}").head() == (8, 41)
    assert sql_spark.sql(f"SELECT count(*), min(a) FROM {name} WHERE a IN (1, 3, 4, 77) OR b = 'y'").head() == (1, 4)
    assert fuse_spark.read(sql_spark, tmp_path / "table").where("a < 5").count() == 3


def test_rows_of_a_table_for_votes_alone_are_not_read_here(sql_spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "one.parquet")
    place = str(tmp_path.parent / f"{tmp_path.name}-votes")
    fuse.attach(tmp_path, place, votes_only=True)
    ways: list[Callable[[], object]] = [
        lambda: fuse_spark.read(sql_spark, place),
        lambda: sql_spark.read.format("fuse").load(place).collect(),
        lambda: sql_spark.sql(f"SELECT count(*) FROM fuse.`{place}`").collect(),
        lambda: sql_spark.sql(f"DELETE FROM fuse.`{place}` WHERE id = 1"),
        lambda: sql_spark.sql(f"INSERT INTO fuse.`{place}` VALUES (3)"),
        lambda: sql_spark.range(3).write.format("fuse").mode("append").save(place),
        lambda: fuse_spark.delete(sql_spark, place, "id = 1"),
        lambda: sql_spark.sql(f"CALL fuse.system.convert('{place}')"),
    ]
    for way in ways:
        with pytest.raises(Exception, match=r"votes on the files of .*, and does not know which rows of them count"):
            way()
    assert sql_spark.sql(f"SELECT count(*) FROM fuse.`{place}`.snapshots").head()[0] == 2


def test_columns_and_ages_are_chosen_as_in_python(sql_spark: SparkSession, tmp_path: Path) -> None:
    lake, place = tmp_path / "lake", str(tmp_path / "table")
    lake.mkdir()
    pq.write_table(pa.table({"id": [1, 2], "n": [1, 2], "more": [1, 2]}), lake / "0.parquet")
    pq.write_table(pa.table({"id": [3], "n": [0.5], "more": [3]}), lake / "1.parquet")
    options = "columns => 'id, n', widen => true, max_age => '1m'"
    sql_spark.sql(f"CALL fuse.system.attach('{lake}', '{place}', {options})")
    table = fuse.open_table(place)
    assert (table.schema.names, table.snapshot.properties["max_age_seconds"]) == (["id", "n"], 60)
    assert table.to_arrow("n < 1").to_pylist() == [{"id": 3, "n": 0.5}]
