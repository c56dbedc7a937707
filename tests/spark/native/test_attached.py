"""Attached tables in Spark: the rows that Spark's own reader gives of the same files, with votes and without."""

import os
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake
from py4j.protocol import Py4JJavaError
from pyiceberg.types import StringType
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, Row, SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from tests.effort import in_turn
from tests.index.sources.one_table import OneTable
from tests.spark.each import judged, true_on

ALL_TYPES = """
    SELECT id, CAST(id AS INT) i, CAST(id % 100 AS TINYINT) ti, CAST(id AS SMALLINT) sm, CAST(id AS FLOAT) f,
      IF(id % 9 = 0, DOUBLE('NaN'), CAST(id AS DOUBLE)) d, CAST(id AS DECIMAL(9, 2)) d1, CAST(id AS DECIMAL(18, 3)) d2,
      CAST(id AS DECIMAL(30, 4)) d3, CAST(id AS STRING) s, CAST(CAST(id AS STRING) AS BINARY) b, id % 2 = 0 bo,
      DATE_ADD(DATE'1500-01-01', CAST(id AS INT)) da, TIMESTAMP_SECONDS(id * 1000) ts,
      CAST(TIMESTAMP_SECONDS(id * 1000) AS TIMESTAMP_NTZ) tn, ARRAY(id, NULL) ar, MAP('k', id) m,
      NAMED_STRUCT('x', id, 'y', ARRAY(NAMED_STRUCT('z', id))) st
    FROM RANGE(3000)"""
CONDITIONS = [
    "id = 77",
    "i > 2990 AND ti = 95",
    "d3 = 44",
    "d1 = 2001.00 OR d2 = 17",
    "s = '88'",
    "b = X'3838'",
    "bo AND id < 9",
    "da = DATE'1501-02-03'",
    "ts >= TIMESTAMP'1970-02-03 00:00:00Z' AND tn < TIMESTAMP_NTZ'1970-02-03 12:00:00'",
    "st.x = 9",
    "f = 12",
    "d > 2995",
]


@pytest.fixture
def utc(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    yield spark
    spark.conf.unset("spark.sql.session.timeZone")


def collected(rows: DataFrame) -> list[str]:
    return sorted(map(str, rows.collect()))


def test_files_that_spark_wrote_are_read_as_spark_reads_them(utc: SparkSession, tmp_path: Path) -> None:
    place, url = str(tmp_path / "lake"), str(tmp_path / "table")
    utc.sql(ALL_TYPES).repartition(3).write.parquet(place)
    table = fuse.attach(place, url)
    theirs, ours = utc.read.parquet(place), fuse_spark.read(utc, url)

    assert theirs.schema == ours.schema
    assert collected(theirs) == collected(ours)
    table.create_index("by_s", "bloom", ["s"])
    ours = fuse_spark.read(utc, url)
    found = true_on(ours, CONDITIONS)
    assert found == judged(theirs, CONDITIONS)
    for condition, expected in zip(CONDITIONS, found, strict=True):
        assert expected == sorted(table.to_arrow(condition, ["id"]).column("id").to_pylist()), condition


@pytest.mark.every_spark
def test_partition_columns_are_values_of_files(utc: SparkSession, tmp_path: Path) -> None:
    rows = pa.table(
        {
            "id": range(400),
            "city": ["Bonn", "Oslo", None, "a/b c"] * 100,
            "s": [{"a": n, "b": None} for n in range(400)],
            "year": [2020 + n // 200 for n in range(400)],
        },
        schema=pa.schema(
            [
                ("id", pa.int64()),
                ("city", pa.string()),
                ("s", pa.struct([("a", pa.int64()), ("b", pa.string())])),
                ("year", pa.int32()),
            ]
        ),
    )
    partitioning = ds.partitioning(pa.schema([("city", pa.string()), ("year", pa.int32())]), flavor="hive")
    ds.write_dataset(rows, tmp_path / "lake", format="parquet", partitioning=partitioning)
    table = fuse.attach(tmp_path / "lake", tmp_path / "table")
    theirs, ours = utc.read.parquet(str(tmp_path / "lake")), fuse_spark.read(utc, str(tmp_path / "table"))

    assert collected(theirs.select(*ours.columns)) == collected(ours)
    wanted = ["year", "_metadata.file_name", "city", "_metadata.row_index", "s.a", "id"]
    assert collected(theirs.where("id < 9").select(*wanted)) == collected(ours.where("id < 9").select(*wanted))
    conditions = ["city = 'Bonn' AND s.a < 40", "city IS NULL", "year > 2020", "year = 2020 AND id % 7 = 1"]
    for number, condition in enumerate(conditions):
        for columns in in_turn((["id"], ["year", "id"], ["city"]), number, 3):
            assert collected(theirs.where(condition).select(*columns)) == collected(
                ours.where(condition).select(*columns)
            )
    assert collected(theirs.groupBy("city").count()) == collected(ours.groupBy("city").count())
    assert "1 of 8 to read" in str(fuse_spark.explain(ours.where("city = 'Oslo' AND year = 2021")))

    ours.createOrReplaceTempView("attached")
    extra = rows.select(["id", "s"]).slice(0, 5)
    pq.write_table(extra, tmp_path / "lake" / "city=Bonn" / "year=2020" / "more.parquet")
    table.sync()
    utc.sql("REFRESH TABLE attached")
    assert utc.sql("SELECT count(*) FROM attached WHERE city = 'Bonn'").head() == (105,)

    table.convert()
    table.append(pa.table({"id": [1000], "city": ["Rome"], "year": pa.array([2024])}))
    converted = fuse_spark.read(utc, str(tmp_path / "table"))
    assert converted.count() == 406
    assert [tuple(row) for row in converted.where("id = 1000").select("city", "year").collect()] == [("Rome", 2024)]


def test_rows_written_since_go_together_with_values_of_partitions(utc: SparkSession, tmp_path: Path) -> None:
    days = [None, date(1969, 12, 31), date(2026, 2, 28)]
    schema = pa.schema([("id", pa.int64()), ("city", pa.string()), ("day", pa.date32()), ("f", pa.float64())])
    rows = [
        {"id": n, "city": ["Bonn", "a/b 50%=c", None, "Öslo"][n % 4], "day": days[n % 3], "f": n % 2 / 2}
        for n in range(120)
    ]
    lake, place = str(tmp_path / "lake"), str(tmp_path / "table")
    write_deltalake(lake, pa.Table.from_pylist(rows, schema), partition_by=["city", "day", "f"])
    table = fuse.attach(lake, place, format="delta")
    table.convert()
    more = [{"id": n, "city": ["Rome", "Bonn", None][n % 3], "day": days[n % 2], "f": float("nan")} for n in range(9)]
    table.append(pa.Table.from_pylist([{**row, "id": row["id"] + 1000} for row in more], schema))
    table.delete("id IN (3, 7) OR city = 'Öslo' AND id > 100")
    expected = table.to_arrow()
    oracle = utc.createDataFrame(expected)
    ours = fuse_spark.read(utc, place)

    assert expected.num_rows > 120
    assert collected(oracle) == collected(ours)
    for condition in [
        "city = 'a/b 50%=c'",
        "city IS NULL AND day IS NULL",
        "day = DATE'1969-12-31' OR city = 'Rome'",
        "day > DATE'1970-01-01' AND id % 2 = 0",
        "f > 1",
        "NOT (city = 'Bonn')",
        "upper(city) = 'BONN' AND id > 1000",
    ]:
        expected_rows = collected(oracle.where(condition))
        assert expected_rows == collected(ours.where(condition)), condition
        assert len(expected_rows) == ours.where(condition).count(), condition
    for columns in (["city"], ["day", "id"], ["f", "day", "city"]):
        assert collected(oracle.select(*columns)) == collected(ours.select(*columns))
    assert collected(oracle.groupBy("city", "day").count()) == collected(ours.groupBy("city", "day").count())
    firsts = [each.orderBy("city", "day", "id").limit(5).collect() for each in (oracle, ours)]
    assert firsts[0] == firsts[1]
    assert collected(ours.where("id = 1000").select("city", "_metadata.file_name", "_metadata.row_index", "day")) == [
        str(Row(city="Rome", file_name=name, row_index=0, day=None))
        for name in {Path(path).name for path in fuse.open_table(place).inspect.files() if path.startswith(place)}
        if ours.where(f"id = 1000 AND _metadata.file_name = '{name}'").count()
    ]
    small = utc.createDataFrame([("Bonn",), ("a/b 50%=c",)], "city string")
    for side in (small, ours.where("id IN (1, 1001)").select("city")):  # whose keys the other waits for
        joined = [each.join(side, "city").select("id", "city", "day") for each in (oracle, ours)]
        assert collected(joined[0]) == collected(joined[1])


def test_what_a_path_hides_in_files_is_left_to_the_python_source(utc: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "lake" / "year=2026").mkdir(parents=True)
    pq.write_table(pa.table({"n": [1], "year": ["none"]}), tmp_path / "lake" / "year=2026" / "a.parquet")
    fuse.attach(tmp_path / "lake", tmp_path / "table").convert()
    assert [tuple(row) for row in fuse_spark.read(utc, str(tmp_path / "table")).collect()] == [(1, 2026)]

    fuse.open_table(tmp_path / "table").append([{"n": 2, "year": 2027}])
    with pytest.warns(fuse_spark.FallbackWarning, match="'year' is in some files as Spark does not read it"):
        ours = fuse_spark.read(utc, str(tmp_path / "table"))
    assert sorted(map(tuple, ours.collect())) == [(1, 2026), (2, 2027)]


def test_nanoseconds_and_columns_without_a_type_are_left_to_the_python_source(
    utc: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "lake").mkdir()
    at = pa.array([1_000, 2_000], pa.timestamp("ns"))
    pq.write_table(pa.table({"n": [1, 2], "at": at, "x": pa.nulls(2)}), tmp_path / "lake" / "0.parquet")
    pq.write_table(pa.table({"n": [3], "x": [7]}), tmp_path / "lake" / "1.parquet")
    fuse.attach(tmp_path / "lake", tmp_path / "table")

    with pytest.warns(fuse_spark.FallbackWarning, match="'at' is in some files as Spark does not read it"):
        ours = fuse_spark.read(utc, str(tmp_path / "table"))
    assert [(row.n, row.at and row.at.microsecond, row.x) for row in ours.orderBy("n").collect()] == [
        (1, 1, None),
        (2, 2, None),
        (3, None, 7),
    ]
    assert ours.where("x IS NULL AND n > 1").count() == 1


def test_a_file_that_changed_is_an_error_before_it_is_read(utc: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    for number in range(2):
        pq.write_table(pa.table({"n": range(number * 10, number * 10 + 10)}), tmp_path / "lake" / f"{number}.parquet")
    table = fuse.attach(tmp_path / "lake", tmp_path / "table")
    ours = fuse_spark.read(utc, str(tmp_path / "table"))
    assert ours.where("n >= 0").count() == 20
    pq.write_table(pa.table({"n": range(50, 62)}), tmp_path / "lake" / "0.parquet")

    with pytest.raises((PySparkException, Py4JJavaError), match=r"0\.parquet has changed.*sync"):
        ours.where("n >= 0").collect()
    assert len(ours.where("n >= 10 AND n < 50").collect()) == 10
    table.sync()
    ours = fuse_spark.read(utc, str(tmp_path / "table"))
    assert ours.where("n >= 0").count() == 22
    state = (tmp_path / "lake" / "0.parquet").stat()
    os.utime(tmp_path / "lake" / "0.parquet", ns=(state.st_atime_ns, state.st_mtime_ns))
    with pytest.raises((PySparkException, Py4JJavaError), match=r"0\.parquet has changed.*sync"):
        ours.where("n >= 0").collect()
    table.sync()
    assert fuse_spark.read(utc, str(tmp_path / "table")).where("n >= 0").count() == 22


def test_jobs_index_an_attached_table_on_executors(utc: SparkSession, tmp_path: Path) -> None:
    utc.range(2000).selectExpr("id", "concat('n', id % 500) name").repartition(4).write.parquet(str(tmp_path / "lake"))
    fuse.attach(tmp_path / "lake", tmp_path / "table").create_index("by_name", "bloom", ["name"], build=False)
    fuse_spark.build_index(utc, str(tmp_path / "table"), "by_name")

    table = fuse.open_table(tmp_path / "table")
    assert [table.inspect.indexes().to_pylist()[0][name] for name in ("blocks_indexed", "blocks")] == [4, 4]
    assert table.maintenance.verify_index("by_name").sound
    assert fuse_spark.read(utc, str(tmp_path / "table")).where("name = 'n7'").count() == 4


def test_each_kind_of_index_answers_on_an_attached_table(utc: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    for first in (0, 50, 100):
        numbers = range(first, first + 50)
        rows = {"id": list(numbers), "k": [n % 3 for n in numbers], "text": [f"a late order{n}" for n in numbers]}
        bodies = [f'{{"user": {n}}}' for n in numbers]
        pq.write_table(pa.table({**rows, "body": bodies}), tmp_path / "lake" / f"{first}.parquet")
    table = fuse.attach(tmp_path / "lake", tmp_path / "table")
    table.create_index("words", "full_text", ["text"])
    table.create_index("paths", "json_path", ["body"], paths=["$.user"])
    table.create_index("totals", "aggregate", ["k"], aggregates=["count(*)", "sum(id)"])
    fuse_spark.install(utc)
    ours = fuse_spark.read(utc, str(tmp_path / "table"))

    same = "match(text, 'order17') OR CAST(get_json_object(body, '$.user') AS BIGINT) = 18"
    assert sorted(row.id for row in ours.where(same).collect()) == [17, 18]
    assert table.explain(same).to_dict()["blocks"] == {"total": 3, "kept": 1}
    grouped = ours.groupBy("k").agg({"*": "count", "id": "sum"}).collect()
    assert sorted(map(tuple, grouped)) == [(k, 50, sum(range(k, 150, 3))) for k in range(3)]


def test_columns_of_iceberg_are_found_by_their_ids(
    utc: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = OneTable("test")
    monkeypatch.setattr("pyiceberg.catalog.load_catalog", lambda name: catalog)
    rows = pa.table(
        {
            "id": range(100),
            "name": [f"n{n}" for n in range(100)],
            "s": [{"a": n, "b": str(n)} for n in range(100)],
            "l": [[{"x": n}] for n in range(100)],
        }
    )
    source = catalog.create(tmp_path / "lake", rows.schema)
    source.append(rows)
    table = fuse.attach("iceberg://test/db.t", tmp_path / "table", format="iceberg")
    with source.update_schema() as update:
        update.rename_column("name", "label")
        update.rename_column(("s", "b"), "c")
        update.rename_column(("l", "x"), "y")
    with source.update_schema() as update:
        update.add_column("name", StringType())
        update.add_column(("s", "b"), StringType())
    source.append(source.scan().to_arrow().slice(0, 5))
    table.sync()
    expected = source.scan().to_arrow()
    ours = fuse_spark.read(utc, str(tmp_path / "table"))

    assert expected.schema.names == ours.columns
    assert sorted(map(str, expected.to_pylist())) == sorted(str(row.asDict(recursive=True)) for row in ours.collect())
    for condition, count in [
        ("label = 'n7'", 1),
        ("name IS NULL", 105),
        ("s.c = '3' AND s.b IS NULL", 2),
        ("id = 4", 2),
    ]:
        assert count == ours.where(condition).count() == table.count(condition)
    assert [tuple(row) for row in ours.where("label = 'n7'").select("l.y").selectExpr("y[0]").collect()] == [(7,)]
