"""Spark reads a table whose blocks have every codec, encoding and repetition, and were written under other schemas."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from tests.effort import in_turn
from tests.spark.each import judged, true_on

BLOCK = 1_200
"""Rows of a block: enough for forms to be tried."""
COMPRESSIONS = ("auto", "uncompressed", "lz4", "zstd")
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("tiny", pa.int8()),
        ("small", pa.int16()),
        ("whole", pa.int32()),
        ("price", pa.decimal128(9, 2)),
        ("long", pa.decimal128(18, 4)),
        ("real", pa.float64()),
        ("word", pa.string()),
        ("few", pa.string()),
        ("day", pa.date32()),
        ("at", pa.timestamp("us", "UTC")),
        ("local", pa.timestamp("us")),
        ("place", pa.struct([("x", pa.int32()), ("name", pa.string())])),
        ("tags", pa.list_(pa.int64())),
    ]
)


def rows(first: int, null_every: int) -> pa.Table:
    def row(n: int) -> dict[str, Any]:
        values = {
            "tiny": n // 100 % 100,
            "small": n % 30_000,
            "whole": n,
            "price": Decimal(n).scaleb(-2),
            "long": Decimal(n).scaleb(-4),
            "real": float("nan") if n % 7 == 0 else n / 4,
            "word": f"w{n * 2654435761 % (1 << 32):08x}",
            "few": "ab"[n % 2],
            "day": date(1500, 1, 1) + timedelta(n),
            "at": datetime(1960, 1, 1, tzinfo=UTC) + timedelta(seconds=n),
            "local": datetime(1960, 1, 1) + timedelta(seconds=n),
            "place": {"x": n, "name": str(n)},
            "tags": [n, n + 1][: n % 3],
        }
        if null_every and n % null_every == 0:
            values = dict.fromkeys(values)
        return {"id": n} | values

    return pa.Table.from_pylist([row(n) for n in range(first, first + BLOCK)], SCHEMA)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> fuse.Table:
    table = fuse.create_table(
        str(tmp_path_factory.mktemp("forms") / "t"), SCHEMA, properties={"block_rows": BLOCK, "page_rows": 500}
    )
    for evolved in (False, True):
        for number, compression in enumerate(COMPRESSIONS):
            table.set_properties({"compression": compression})
            for null_every in (0, 5):
                first = ((evolved * len(COMPRESSIONS) + number) * 2 + bool(null_every)) * BLOCK
                table.append(rows(first, null_every).rename_columns(table.snapshot.schema.names))
        if not evolved:
            table.change_type("whole", "BIGINT")
            table.change_type("tiny", "SMALLINT")
            table.change_type("price", "DECIMAL(12, 3)")
            table.rename_column("word", "term")
    return table


def forms(table: fuse.Table) -> set[tuple[str, str, bool]]:
    """Codec, encodings and repetition of all column chunks."""
    found = set()
    for path in Path(table.stored.store.url, "_b").iterdir():
        file = pq.ParquetFile(path)
        for number in range(file.metadata.num_columns):
            chunk, column = file.metadata.row_group(0).column(number), file.schema.column(number)
            kind = "delta" if "DELTA_BINARY_PACKED" in chunk.encodings else "dictionary"
            kind = kind if "DELTA_BINARY_PACKED" in chunk.encodings or chunk.has_dictionary_page else "plain"
            found.add((chunk.compression, kind, column.max_definition_level == 0))
    return found


def test_the_table_has_every_form(table: fuse.Table) -> None:
    codecs = ("UNCOMPRESSED", "LZ4", "ZSTD")
    encodings = ("plain", "delta", "dictionary")

    assert forms(table) >= {(codec, how, level) for codec in codecs for how in encodings for level in (True, False)}


@pytest.fixture(params=["vectorized", "row by row"])
def frame(request: pytest.FixtureRequest, spark: SparkSession, table: fuse.Table) -> Iterator[DataFrame]:
    readers = ("spark.sql.parquet.enableVectorizedReader", "spark.sql.parquet.enableNestedColumnVectorizedReader")
    for conf in readers:
        spark.conf.set(conf, str(request.param == "vectorized").lower())
    yield fuse_spark.read(spark, table.stored.store.url)
    for conf in readers:
        spark.conf.unset(conf)


CONDITIONS = [
    "true",
    *(f"{column.name} IS NULL" for column in SCHEMA if column.name not in ("word", "tags")),
    "term IS NULL AND id < 3000",
    "whole IS NOT NULL AND id % 7 = 3",
    "whole = 4321",
    "whole <=> NULL",
    "tiny = 42",
    "small BETWEEN 2390 AND 2410",
    "price = 43.21",
    "long > 1.8",
    "real > 4000",
    "term = 'w00000000' OR few = 'b' AND id > 18000",
    "day = DATE'1510-01-01'",
    "at > TIMESTAMP'1960-01-01 05:00:00Z'",
    "local < TIMESTAMP_NTZ'1960-01-01 00:00:10'",
    "place.x = 777",
    "place.x IS NULL AND place IS NOT NULL",
    "tags IS NULL",
]


@pytest.mark.every_spark
def test_spark_reads_what_is_there(frame: DataFrame, table: fuse.Table) -> None:
    names = ["id", "tiny", "small", "whole", "price", "long", "term", "few", "day", "place", "tags"]
    expected = table.scan().to_arrow().select(names).to_pylist()

    found = sorted((row.asDict(recursive=True) for row in frame.select(names).collect()), key=lambda row: row["id"])

    assert found == sorted(expected, key=lambda row: row["id"])


@pytest.fixture(scope="module")
def matching(spark: SparkSession, table: fuse.Table) -> dict[str, list[int]]:
    """The ids that each condition is true on, judged without any filter in a reader."""
    return dict(zip(CONDITIONS, judged(fuse_spark.read(spark, table.stored.store.url), CONDITIONS), strict=True))


def test_pushed_filters_find_what_is_there(frame: DataFrame, matching: dict[str, list[int]]) -> None:
    vectorized = frame.sparkSession.conf.get("spark.sql.parquet.enableVectorizedReader") == "true"
    expected = dict(in_turn(matching.items(), vectorized))
    assert dict(zip(expected, true_on(frame, expected), strict=True)) == expected
    assert frame.filter("term IS NULL").count() == 8 * BLOCK // 5


def test_local_scans_find_what_is_there(table: fuse.Table, matching: dict[str, list[int]]) -> None:
    for condition, expected in matching.items():
        if "%" not in condition:
            assert sorted(table.scan(condition, columns=["id"]).to_arrow()["id"].to_pylist()) == expected, condition


def test_compaction_chooses_forms_anew(spark: SparkSession, tmp_path: Path) -> None:
    table = fuse.create_table(str(tmp_path / "t"), SCHEMA, properties={"block_rows": 2 * BLOCK, "compression": "zstd"})
    for first in (0, BLOCK - 200):
        table.append(rows(first, 5).slice(0, BLOCK - 200))
    assert {codec for codec, _, _ in forms(table)} == {"ZSTD"}
    before = fuse_spark.read(spark, table.stored.store.url).orderBy("id").collect()
    table.set_properties({"compression": "auto"})

    table.maintenance.compact()

    newest = max(Path(tmp_path, "t", "_b").iterdir(), key=lambda path: path.stat().st_mtime)
    group = pq.read_metadata(newest).row_group(0)
    assert group.column(0).compression == "UNCOMPRESSED"
    assert "DELTA_BINARY_PACKED" in group.column(0).encodings
    after = fuse_spark.read(spark, table.stored.store.url).orderBy("id").collect()
    assert str(after) == str(before)  # NaN is not equal to itself
