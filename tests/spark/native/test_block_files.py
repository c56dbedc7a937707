"""A block's file is a plain Parquet file to Spark's own readers: types, values and pushed filters."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import unix_micros

from fuse_storage import Schema, WriteOptions
from fuse_storage.parquet.writer import write_block

NAN = float("nan")
ROWS: list[dict[str, Any]] = [
    {
        "flag": n % 2 == 0,
        "tiny": n % 100,
        "small": n,
        "int": n,
        "big": n << 40,
        "float": n / 2,
        "double": NAN if n % 7 == 0 else n / 4,
        "price": Decimal(n).scaleb(-2),
        "long": Decimal(n).scaleb(-4),
        "huge": Decimal(n) * 10**30,
        "text": f"text {n}",
        "few": "ab"[n % 2],
        "bytes": bytes([n % 256]),
        "day": date(2020, 1, 1 + n % 28),
        "at": datetime(2020, 1, 1, 12, n % 60, 0, n, tzinfo=UTC),
        "local": datetime(1960, 1, 1, 12, n % 60, 0, n),
        "place": {"city": f"c{n}", "lat": n / 8},
        "tags": ["a", None, str(n)],
        "scores": [("k", n / 2)],
    }
    for n in range(500)
]
ARROW = pa.schema(
    [
        ("flag", pa.bool_()),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("int", pa.int32()),
        ("big", pa.int64()),
        ("float", pa.float32()),
        ("double", pa.float64()),
        ("price", pa.decimal128(9, 2)),
        ("long", pa.decimal128(18, 4)),
        ("huge", pa.decimal128(38, 0)),
        ("text", pa.string()),
        ("few", pa.string()),
        ("bytes", pa.binary()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("place", pa.struct([("city", pa.string()), ("lat", pa.float64())])),
        ("tags", pa.list_(pa.string())),
        ("scores", pa.map_(pa.string(), pa.float64())),
    ]
)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = pa.Table.from_pylist([*ROWS, dict.fromkeys(ARROW.names)], ARROW)
    path = tmp_path_factory.mktemp("block") / "block.parquet"
    path.write_bytes(write_block(rows, Schema.create(ARROW), WriteOptions(zone_rows=100))[0])
    return path


READERS = ("spark.sql.parquet.enableVectorizedReader", "spark.sql.parquet.enableNestedColumnVectorizedReader")


@pytest.fixture(params=["vectorized", "row by row"])
def frame(request: pytest.FixtureRequest, spark: SparkSession, file: Path) -> Iterator[DataFrame]:
    for conf in READERS:
        spark.conf.set(conf, str(request.param == "vectorized").lower())
    yield spark.read.parquet(str(file))
    for conf in READERS:
        spark.conf.unset(conf)


@pytest.mark.every_spark
def test_spark_infers_the_types_that_the_schema_names(frame: DataFrame) -> None:
    named = {field.name: field.to_json()["type"] for field in Schema.create(ARROW).fields}

    nested = {"place": "struct<city:string,lat:double>", "tags": "array<string>", "scores": "map<string,double>"}
    assert dict(frame.dtypes) == {**named, **nested}


def comparable(row: dict[str, Any]) -> dict[str, Any]:
    """Instants as microseconds, maps as dicts, and a NaN that is equal to itself."""
    at, double, scores = row["at"], row["double"], row["scores"]
    micros = (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1) if isinstance(at, datetime) else at
    return {**row, "at": micros, "double": "NaN" if double != double else double, "scores": scores and dict(scores)}


@pytest.mark.every_spark
def test_spark_reads_the_rows_that_were_written(frame: DataFrame) -> None:
    found = frame.withColumn("at", unix_micros("at")).collect()

    expected = [*ROWS, dict.fromkeys(ARROW.names)]
    assert [comparable(row.asDict(recursive=True)) for row in found] == [comparable(row) for row in expected]


@pytest.mark.every_spark
@pytest.mark.alike
@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("int = 250", 1),
        ("big = 250 * 1099511627776", 1),
        ("text = 'text 250'", 1),
        ("few = 'a'", 250),
        ("price = 2.50", 1),
        ("long = 0.0250", 1),
        ("huge = 250000000000000000000000000000000", 1),
        ("tiny = 50", 5),
        ("small >= 490", 10),
        ("day = DATE'2020-01-05'", 18),
        ("local = TIMESTAMP_NTZ'1960-01-01 12:10:00.00025'", 1),
        ("bytes = X'05'", 2),
        ("unix_micros(at) % 1000000 = 250", 1),
        ("double > 1e9", 72),
        ("place.city = 'c250'", 1),
        ("int IS NULL", 1),
    ],
)
def test_spark_finds_rows_by_its_own_pushed_filters(frame: DataFrame, where: str, count: int) -> None:
    assert frame.where(where).count() == count


@pytest.mark.every_spark
@pytest.mark.parametrize("mode", ["EXCEPTION", "LEGACY", "CORRECTED"])
def test_old_days_are_the_same_under_every_setting(spark: SparkSession, tmp_path: Path, mode: str) -> None:
    at = pa.array([-(10**16) * 2], pa.timestamp("us", "UTC"))
    rows = pa.table({"day": [date(1500, 1, 1)], "local": [datetime(1500, 1, 1)], "at": at})
    (tmp_path / "old.parquet").write_bytes(write_block(rows, Schema.create(rows.schema))[0])
    spark.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", mode)
    try:
        frame = spark.read.parquet(str(tmp_path / "old.parquet"))
        found = frame.selectExpr("unix_date(day)", "cast(local as string)", "unix_micros(at)").collect()
    finally:
        spark.conf.unset("spark.sql.parquet.datetimeRebaseModeInRead")

    assert [tuple(row) for row in found] == [
        ((date(1500, 1, 1) - date(1970, 1, 1)).days, "1500-01-01 00:00:00", -(10**16) * 2)
    ]


def test_a_file_is_hardly_larger_than_sparks_own(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(0, 400_000, numPartitions=1).selectExpr(
        "id",
        "hash(id) as h",
        "id % 1000 as k",
        "concat('city-', pmod(hash(id), 200)) as city",
        "concat('user-', pmod(hash(id), 100000), '@example.com') as user",
        "rand(1) as amount",
        "timestamp_micros(1600000000000000 + id * 1000) as at",
    )
    rows = frame.toArrow()

    ours, _ = write_block(rows, Schema.create(rows.schema))

    for codec in ("snappy", "zstd"):
        frame.write.option("compression", codec).parquet(str(tmp_path / codec))
        (theirs,) = (tmp_path / codec).glob("part-*.parquet")
        assert len(ours) <= 1.05 * theirs.stat().st_size, codec
