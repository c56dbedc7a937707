"""Files that come, go and change under an index, and folders that are read in other ways than it knows them."""

import os
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame

from tests.effort import in_turn
from tests.spark.foreign.sources import FILES, MISSING, ROWS, ZONE, a_of, rows, use_index, write_file, write_folder
from tests.spark.foreign.ways import Use, Ways, conf, uses

NEW = "b00001"
"""A value that comes with another file."""


def with_new_value(number: int) -> pa.Table:
    """The rows of a file, of which one has another value of the same length."""
    values = rows(number).column("a").to_pylist()
    return rows(number).set_column(1, "a", pa.array([NEW, *values[1:]]))


@pytest.fixture
def folder(ways: Ways, tmp_path: Path) -> Path:
    place = write_folder(tmp_path / "lake")
    use_index(ways.spark, place, tmp_path / "index")
    return place


def test_a_file_that_came_since_is_read(ways: Ways, folder: Path) -> None:
    pq.write_table(with_new_value(9), folder / "later.parquet")

    assert ways.same(f"SELECT * FROM parquet.`{folder}` WHERE a = '{NEW}'") == [Use(FILES + 1, FILES, 1, 0)]
    assert ways.same(f"SELECT * FROM parquet.`{folder}` WHERE a = '{a_of(5)}'") == [Use(FILES + 1, FILES - 1, 1, 1)]


@pytest.mark.parametrize("kept", ["nothing", "size", "size and time"])
def test_a_file_that_was_replaced_is_read(ways: Ways, folder: Path, kept: str) -> None:
    file = folder / "part-3.parquet"
    before = file.stat()
    other = with_new_value(3).slice(0, ROWS if kept != "nothing" else ROWS - 1)
    write_file(other, file)
    assert (file.stat().st_size == before.st_size) is (kept != "nothing")
    if kept == "size and time":
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    for value in (NEW, a_of(3 * ROWS + 1)):
        told = ways.same(f"SELECT * FROM parquet.`{folder}` WHERE a = '{value}'")
        assert [(use.files, use.left_out) for use in told] == [(FILES, FILES - 1)], told


def reversed_rows(number: int) -> pa.Table:
    """The rows of a file, each in another row group."""
    return rows(number).take(list(range(ROWS - 1, -1, -1)))


@pytest.mark.every_spark
@pytest.mark.parametrize(("value", "other"), [(NEW, with_new_value), (a_of(3 * ROWS + 1), reversed_rows)])
def test_a_file_that_is_replaced_behind_a_listing_is_read(
    ways: Ways, folder: Path, value: str, other: Callable[[int], pa.Table]
) -> None:
    df = ways.spark.read.parquet(str(folder)).where(f"a = '{value}'")
    df._jdf.queryExecution().executedPlan()
    size = (folder / "part-3.parquet").stat().st_size
    write_file(other(3), folder / "part-3.parquet")
    assert (folder / "part-3.parquet").stat().st_size == size

    assert len(df.collect()) == 1
    assert uses(df) == [Use(FILES, FILES - 1)]


def test_files_that_are_deleted_between_planning_and_reading_are_missed(ways: Ways, folder: Path) -> None:
    def query() -> DataFrame:
        write_file(rows(3), folder / "part-3.parquet")
        df = ways.spark.read.parquet(str(folder)).where(f"a = '{a_of(5)}'")
        df._jdf.queryExecution().executedPlan()
        (folder / "part-3.parquet").unlink()
        return df

    assert "FILE_NOT_EXIST" in ways.without(query)
    assert ways.same(query) == []
    with conf(ways.spark, **{"spark.sql.files.ignoreMissingFiles": "true"}):
        assert ways.left_out(query) == [FILES - 2]
    assert ways.left_out(f"SELECT * FROM parquet.`{folder}` WHERE a = '{a_of(5)}'") == [FILES - 2]


@pytest.mark.parametrize("nanoseconds", [0, 999_000_000, 123_999_499, 123_999_999, 999_999_999])
def test_a_file_is_known_whatever_its_time_ends_in(ways: Ways, tmp_path: Path, nanoseconds: int) -> None:
    folder = write_folder(tmp_path / "lake", 2)
    for file in folder.iterdir():
        os.utime(file, ns=(0, 1_795_865_000 * 10**9 + nanoseconds))
    use_index(ways.spark, folder, tmp_path / "index")

    assert ways.same(f"SELECT * FROM parquet.`{folder}` WHERE a = '{MISSING}'") == [Use(2, 2)]


def test_a_table_that_is_overwritten_by_what_is_read_of_another(ways: Ways, tmp_path: Path) -> None:
    spark, lake = ways.spark, tmp_path / "lake"
    spark.sql(f"CREATE TABLE over (id BIGINT, a STRING, n INT) USING parquet LOCATION '{lake}'")
    try:
        spark.sql("INSERT INTO over SELECT /*+ REPARTITION(4, id) */ id, concat('k', id), 1 FROM range(400)")
        use_index(spark, lake, tmp_path / "index", columns=["a"])
        assert ways.left_out("SELECT * FROM over WHERE a = 'k7'") == [3]
        spark.sql("CREATE OR REPLACE TEMP VIEW some AS SELECT id, a, n + 1 FROM over WHERE a IN ('k7', 'k8')")
        with pytest.raises(Exception, match="UNSUPPORTED_OVERWRITE"):
            spark.sql("INSERT OVERWRITE over SELECT * FROM some")
        spark.sql("INSERT OVERWRITE over SELECT id, concat('k', id), 2 FROM range(5, 9)")
        assert [row.n for row in spark.sql("SELECT n FROM over WHERE a = 'k7'").collect()] == [2]
        ways.same("SELECT * FROM over WHERE a = 'k7'")
        spark.sql("INSERT INTO over SELECT id + 1000, a, 3 FROM over WHERE a = 'k7'")
        ways.same("SELECT * FROM over WHERE a = 'k7'")
    finally:
        spark.sql("DROP TABLE over")


@pytest.mark.every_spark
def test_a_column_with_a_default_is_not_null_in_files_without_it(ways: Ways, folder: Path, tmp_path: Path) -> None:
    spark = ways.spark
    spark.sql(f"CREATE TABLE grown USING parquet LOCATION '{folder}'")
    try:
        spark.sql("ALTER TABLE grown ADD COLUMN c STRING DEFAULT 'abc'")
        spark.sql("INSERT INTO grown SELECT /*+ COALESCE(1) */ id + 10000, a, b, n, 'other' FROM grown WHERE id < 5")
        use_index(spark, folder, tmp_path / "again", columns=["a", "c"])

        assert spark.sql("SELECT count(*) FROM grown WHERE c = 'abc'").head()[0] == FILES * ROWS
        for where in ("c = 'abc'", "c IS NULL", "c = 'other'", f"c = 'abc' AND a = '{a_of(5)}'"):
            ways.same(f"SELECT count(*), max(id) FROM grown WHERE {where}")
        assert ways.left_out(f"SELECT * FROM grown WHERE a = '{a_of(777)}' AND c = 'abc'") == [FILES]
    finally:
        spark.sql("DROP TABLE grown")


def readers(ways: Ways, place: Path) -> dict[str, DataFrame]:
    """Ways to read a folder of which two partitions have files."""

    def read(folder: str = "", **options: str) -> DataFrame:
        return ways.spark.read.options(**options).parquet(f"{place}{folder}")

    return {
        "whole": read(),
        "a partition": read("/year=2024"),
        "a partition with its column": read("/year=2024", basePath=str(place)),
        "as plain files": read(recursiveFileLookup="true"),
        "by a pattern": read(pathGlobFilter="p1*"),
        "merged": read(mergeSchema="true"),
    }


@pytest.mark.parametrize("in_files", ["year", "other"])
def test_columns_that_paths_give(ways: Ways, tmp_path: Path, in_files: str) -> None:
    place = tmp_path / "lake"
    for number, year in enumerate((2024, 2024, 2025, 2025)):
        folder = place / f"year={year}"
        folder.mkdir(parents=True, exist_ok=True)
        table = rows(number).append_column(in_files, pa.array([1999] * ROWS, pa.int32()))
        pq.write_table(table, folder / f"p{number}.parquet", row_group_size=ZONE)
    use_index(ways.spark, place, tmp_path / "index", columns=["a"])
    found = {}
    conditions = ("year = 2024", "year = 1999", f"a = '{a_of(5)}' AND year < 3000")
    for number, (name, df) in enumerate(readers(ways, place).items()):
        turn = number + (in_files == "year")
        for where in in_turn(conditions, turn, len(conditions)) if "year" in df.columns else ():
            ways.same(lambda df=df, where=where: df.where(where))
        found[name] = ways.left_out(lambda df=df: df.where(f"a = '{a_of(ROWS + 5)}'"))

    expected = {"whole": [3], "a partition": [1], "a partition with its column": [1], "as plain files": [3]}
    assert found == {**expected, "by a pattern": [0], "merged": [3]}


def test_an_index_of_one_partition_helps_the_whole(ways: Ways, tmp_path: Path) -> None:
    place = tmp_path / "lake"
    for number in range(4):
        (place / f"year={number // 2}").mkdir(parents=True, exist_ok=True)
        table = rows(number).append_column("year", pa.array([1999] * ROWS, pa.int32()))
        pq.write_table(table, place / f"year={number // 2}" / f"{number}.parquet")
    use_index(ways.spark, place / "year=1", tmp_path / "index", columns=["a", "year"])

    assert ways.same(f"SELECT * FROM parquet.`{place}` WHERE a = '{MISSING}'") == [Use(4, 2, 2)]
    for where in ("year = 1", "year = 1999", "year = 0"):
        ways.same(f"SELECT * FROM parquet.`{place}` WHERE {where}")


@pytest.mark.every_spark
def test_a_schema_of_one_s_own(ways: Ways, folder: Path) -> None:
    def reader(schema: str, where: str) -> Callable[[], DataFrame]:
        return lambda: ways.spark.read.schema(schema).parquet(str(folder)).where(where)

    assert ways.left_out(reader("id BIGINT, a STRING, n INT", f"a = '{a_of(5)}'")) == [FILES - 1]
    assert ways.left_out(reader("a STRING, zzz STRING", f"a = '{a_of(5)}' AND zzz IS NULL")) == [FILES - 1]
    for schema, where in [
        ("id BIGINT, n BIGINT", "n = 31"),
        ("id BIGINT, n BIGINT", "n = 31000000000"),
        ("id BIGINT, A STRING", f"A = '{a_of(5)}'"),
        ("id BIGINT, zzz STRING", "zzz IS NULL"),
        ("id BIGINT, zzz STRING", "zzz = 'x'"),
        ("id BIGINT, a BINARY", f"a = CAST('{a_of(5)}' AS BINARY)"),
        ("id BIGINT, a STRING COLLATE UTF8_LCASE", f"a = '{a_of(5).upper()}'"),
        ("id STRING", "id = '5'"),
    ]:
        ways.same(reader(schema, where))
    with conf(ways.spark, spark_sql_caseSensitive="true"):
        ways.same(reader("id BIGINT, A STRING", "A IS NULL AND id < 7"))


@pytest.mark.every_spark
def test_padded_and_collated_columns_of_a_table(ways: Ways, folder: Path) -> None:
    spark = ways.spark
    columns = "id BIGINT, a CHAR(9), b STRING COLLATE UTF8_LCASE, n INT"
    spark.sql(f"CREATE TABLE odd ({columns}) USING parquet LOCATION '{folder}'")
    try:
        for where in (
            f"a = '{a_of(5)}'",
            f"a = '{a_of(5)}   '",
            f"b = '{a_of(1).upper()}'",
            f"a IN ('{a_of(5)}', 'x')",
        ):
            ways.same(f"SELECT * FROM odd WHERE {where}")
        assert len(spark.sql(f"SELECT * FROM odd WHERE a = '{a_of(5)}'").collect()) == 1
    finally:
        spark.sql("DROP TABLE odd")


def test_names_of_files_are_not_unescaped(ways: Ways, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    names = ("a b.parquet", "a%20b.parquet", "ä+b.parquet")
    for number, name in enumerate(names):
        pq.write_table(pa.table({"a": [f"x{number}", f"z{number}"]}), tmp_path / "lake" / name)
        os.utime(tmp_path / "lake" / name, (1e9, 1e9))
    use_index(ways.spark, tmp_path / "lake", tmp_path / "index", columns=["a"])

    for number in range(len(names)):
        query = f"SELECT * FROM parquet.`{tmp_path}/lake` WHERE a = 'x{number}'"
        assert len(ways.without(query)) == 1
        assert ways.same(query) == [Use(3, 2, 0, 0)]


@pytest.mark.every_spark
def test_old_calendars(ways: Ways, tmp_path: Path) -> None:
    place = str(tmp_path / "lake")
    days = "SELECT DATE_ADD(DATE'1970-01-01', CAST(id AS INT) * 40) d, TIMESTAMP_SECONDS(id * 86400) t FROM range(8)"
    ways.spark.sql(days).repartitionByRange(4, "d").write.parquet(place)
    use_index(ways.spark, place, tmp_path / "index", columns=["d"])
    where = "d = DATE'1970-02-10'"

    assert ways.left_out(f"SELECT * FROM parquet.`{place}` WHERE {where}") == [3]
    for name, value in (
        ("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY"),
        ("spark.sql.legacy.parquet.datetimeRebaseModeInRead", "legacy"),  # as it was called before 3.3
        ("spark.sql.parquet.int96TimestampConversion", "TRUE"),
    ):
        with conf(ways.spark, **{name: value}):
            assert ways.left_out(f"SELECT * FROM parquet.`{place}` WHERE {where}") == []
    legacy = lambda: ways.spark.read.option("datetimeRebaseMode", "LEGACY").parquet(place).where(where)  # noqa: E731
    assert ways.left_out(legacy) == []


@pytest.mark.every_spark
def test_a_partitioned_table_and_keys_that_prune_it(ways: Ways, tmp_path: Path) -> None:
    spark, place = ways.spark, tmp_path / "lake"
    for number in range(FILES):
        (place / f"p={number}").mkdir(parents=True)
        pq.write_table(rows(number), place / f"p={number}" / "0.parquet", row_group_size=ZONE)
    use_index(spark, place, tmp_path / "index")
    spark.range(FILES).selectExpr("CAST(id AS INT) p", "concat('name', id) name").createOrReplaceTempView("names")
    query = f"""SELECT t.id, name FROM parquet.`{place}` t JOIN names USING (p)
        WHERE name IN ('name2', 'name3', 'name4') AND a IN ('{a_of(2 * ROWS)}', '{a_of(3 * ROWS)}')"""
    for adaptive in ("true", "false"):
        with conf(spark, spark_sql_adaptive_enabled=adaptive):
            (use,) = ways.same(query)
            assert (use.files, use.left_out) in [(3, 1), (FILES, FILES - 2)]
    assert ways.same(f"SELECT * FROM parquet.`{place}` WHERE p IN (1, 2) AND a = '{a_of(5)}'") == [Use(2, 2)]


@pytest.mark.every_spark
def test_buckets_stay_where_joins_expect_them(ways: Ways) -> None:
    spark = ways.spark
    spark.createDataFrame(pa.concat_tables(map(rows, range(FILES)))).createOrReplaceTempView("all_rows")
    try:
        for name in ("bucketed", "other"):
            spark.table("all_rows").coalesce(2).write.bucketBy(4, "id").sortBy("id").saveAsTable(name, format="parquet")
        place = _place(ways, "bucketed")
        use_index(spark, place, f"{place}-index")
        with conf(spark, spark_sql_autoBroadcastJoinThreshold="-1"):
            for query, expected in [
                (f"SELECT p.id, q.b FROM bucketed p JOIN other q USING (id) WHERE p.a = '{a_of(777)}'", [7]),
                (f"SELECT p.id FROM bucketed p JOIN other q USING (id) WHERE p.a = '{MISSING}'", [8]),
                (f"SELECT id, count(*) FROM bucketed WHERE a = '{a_of(777)}' GROUP BY id", [7]),
            ]:
                assert ways.left_out(query) == expected
    finally:
        spark.sql("DROP TABLE IF EXISTS bucketed")
        spark.sql("DROP TABLE IF EXISTS other")


def _place(ways: Ways, name: str) -> str:
    described = ways.spark.sql(f"DESCRIBE EXTENDED {name}").where("col_name = 'Location'").head()
    return str(described.data_type).removeprefix("file:")
