"""Columns of types that Spark does not write: unsigned, of other units, of fixed length, and read in other ways."""

from contextlib import suppress
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import PySparkException
from pyspark.sql.types import AtomicType, StructType

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from tests.spark.foreign.ways import Ways, conf, same_on_conditions

FILES, ROWS = 4, 40
_BEGIN = datetime(2021, 3, 28, 0, 30)

COLUMNS: dict[str, pa.Array] = {
    "u8": pa.array([7 * i % 256 for i in range(FILES * ROWS)], pa.uint8()),
    "u16": pa.array([65_535 - 7 * i for i in range(FILES * ROWS)], pa.uint16()),
    "u32": pa.array([4_294_967_295 - 7919 * i for i in range(FILES * ROWS)], pa.uint32()),
    "u64": pa.array([18_446_744_073_709_551_615 - 7919 * i for i in range(FILES * ROWS)], pa.uint64()),
    "seconds": pa.array([_BEGIN + timedelta(seconds=1801 * i) for i in range(FILES * ROWS)], pa.timestamp("s")),
    "milliseconds": pa.array(
        [_BEGIN + timedelta(milliseconds=1801 * i) for i in range(FILES * ROWS)], pa.timestamp("ms", "UTC")
    ),
    "nanoseconds": pa.array(
        [1_616_886_000_000_000_001 + 1_801_000_000_007 * i for i in range(FILES * ROWS)], pa.int64()
    ).cast(pa.timestamp("ns", "UTC")),
    "int96": pa.array([_BEGIN - timedelta(days=50_000 - i) for i in range(FILES * ROWS)], pa.timestamp("us")),
    "date64": pa.array([date(2020, 2, 1) + timedelta(days=i) for i in range(FILES * ROWS)], pa.date64()),
    "time": pa.array([1801 * i % 86_400 for i in range(FILES * ROWS)], pa.int32()).cast(pa.time32("s")),
    "time64": pa.array([1_801_000_001 * i % 86_400_000_000 for i in range(FILES * ROWS)], pa.int64()).cast(
        pa.time64("us")
    ),
    "duration": pa.array([1801 * i for i in range(FILES * ROWS)], pa.duration("s")),
    "fixed": pa.array([b"%04d" % i for i in range(FILES * ROWS)], pa.binary(4)),
    "large": pa.array([f"l{i}" for i in range(FILES * ROWS)], pa.large_string()),
    "view": pa.array([f"v{i}" for i in range(FILES * ROWS)], pa.string_view()),
    "dictionary": pa.array([f"d{i % 50}" for i in range(FILES * ROWS)]).dictionary_encode(),
    "half": pa.array([i / 4 for i in range(FILES * ROWS)], pa.float16()),
    "decimal4": pa.array([Decimal(i) / 4 for i in range(FILES * ROWS)], pa.decimal128(9, 2)),
    "decimal38": pa.array([Decimal(10) ** 37 + i for i in range(FILES * ROWS)], pa.decimal128(38, 0)),
    "decimal50": pa.array([Decimal(10) ** 45 + i for i in range(FILES * ROWS)], pa.decimal256(50, 0)),
    "uuid": pa.array([UUID(int=i).bytes for i in range(FILES * ROWS)], pa.binary(16)).cast(pa.uuid()),
    "nothing": pa.nulls(FILES * ROWS),
    "list": pa.array([[i, i + 1] for i in range(FILES * ROWS)], pa.list_(pa.uint16())),
    "struct": pa.array(
        [{"u": i + 4_294_967_000 - 200, "f": b"%02d" % (i % 99)} for i in range(FILES * ROWS)],
        pa.struct([("u", pa.uint32()), ("f", pa.binary(2))]),
    ),
}
"""Columns of all files, one file after the other."""

NTZ = {"spark.sql.parquet.inferTimestampNTZ.enabled": "false", "spark.sql.session.timeZone": "America/New_York"}
ROW_BY_ROW = {"spark.sql.parquet.enableVectorizedReader": "false"}
OTHERWISE: dict[str, dict[str, str]] = {
    "nanoseconds": {"spark.sql.legacy.parquet.nanosAsLong": "true"},
    "fixed": {"spark.sql.parquet.binaryAsString": "true"},
    "uuid": {"spark.sql.parquet.binaryAsString": "true"},
    "seconds": NTZ,
    "milliseconds": NTZ,
    "int96": {"spark.sql.parquet.int96TimestampConversion": "true", "spark.sql.session.timeZone": "America/New_York"},
    **dict.fromkeys(("u32", "u64", "decimal38", "struct", "date64"), ROW_BY_ROW),
}
"""Settings by which Spark takes columns of files for others, or reads them by other code."""

UNREAD = {"nanoseconds", "time", "time64", "half", "decimal50", "uuid"}
"""Columns that a release of Spark does not read, or not in all settings."""


def write(folder: Path, name: str) -> None:
    folder.mkdir()
    rows = pa.table({"id": pa.array(range(FILES * ROWS)), "c": COLUMNS[name]})
    for number in range(FILES):
        some = rows.slice(number * ROWS, ROWS)
        some = pa.table({"id": some["id"], "c": pa.chunked_array([_with_null(some["c"])])})
        pq.write_table(
            some,
            folder / f"{number}.parquet",
            use_deprecated_int96_timestamps=name == "int96",
            store_schema=number % 2 == 0,  # most writers say nothing of Arrow's types
        )


def _with_null(column: pa.ChunkedArray) -> pa.Array:
    values = column.combine_chunks()
    values = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return pa.concat_arrays([values.slice(0, 5), pa.nulls(1, values.type), values.slice(6)])


@pytest.mark.every_spark
@pytest.mark.alike
@pytest.mark.filterwarnings("ignore:left out of the table")
@pytest.mark.parametrize("name", COLUMNS)
def test_conditions_on_values_that_spark_reads(ways: Ways, tmp_path: Path, name: str) -> None:
    spark, lake = ways.spark, tmp_path / "lake"
    write(lake, name)
    table = fuse.attach(lake, tmp_path / "index", votes_only=True)
    for number, term in enumerate(("id", "c", "c.u", "c.f")):
        with suppress(fuse.FuseIndexError):  # a column that is none of the table's, or of no type for bloom
            table.create_index(f"index{number}", "bloom", [term])
    fuse_spark.use(spark, tmp_path / "index")

    for settings in ({}, OTHERWISE.get(name)):
        if settings is None:
            continue
        with conf(spark, **settings):
            try:
                spark.read.parquet(str(lake)).createOrReplaceTempView("odd_types")
                spark.sql("SELECT * FROM odd_types").collect()
            except PySparkException:
                assert name in UNREAD
                continue
            assert ways.left_out("SELECT id FROM odd_types WHERE id = 77") == [FILES - 1]
            _compare(ways, "odd_types")


def _compare(ways: Ways, source: str) -> None:
    kind = ways.spark.table(source).schema["c"].dataType
    conditions = list[str]()
    parts = {f"c.{each.name}": each.dataType for each in kind.fields} if isinstance(kind, StructType) else {"c": kind}
    for part, of in parts.items():
        some = ways.spark.sql(f"SELECT CAST({part} AS STRING) s FROM {source} WHERE id IN (5, 7, 45, 119)").collect()
        conditions += [f"{part} IS NULL", f"{part} IS NOT NULL AND id % 50 = 9"]
        for text in {row.s for row in some} - {None}:
            literal = f"CAST('{text}' AS {of.simpleString()})" if isinstance(of, AtomicType) else "NULL"
            conditions += [f"{part} = {literal}", f"{part} <=> {literal} AND id > 0", f"{part} IN ({literal}, NULL)"]
            conditions += [f"{part} >= {literal} AND id % 9 = 0", f"CAST({part} AS STRING) = '{text}'"]
    for start in range(0, len(conditions), 12):
        told = same_on_conditions(ways, source, conditions[start : start + 12], 0)
        assert not any(use.problem or use.unknown for use in told)
    if isinstance(kind, AtomicType):
        ways.same(f"SELECT id FROM {source} ORDER BY c DESC NULLS LAST, id LIMIT 3")
