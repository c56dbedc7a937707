"""Files that say by Parquet's logical type what is VARIANT, which Spark's reader before 4.1 fails on."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.expressions.variant.columns import encode_values
from tests.index.sources.test_variants import Log

pytestmark = [
    pytest.mark.every_spark,
    pytest.mark.filterwarnings("ignore:.*fails on files with the logical type VARIANT"),
    pytest.mark.filterwarnings("ignore:.*is in some files as Spark does not read it"),
]

DOCUMENTS = ['{"a":1}', None, "[1,2]", '{"a":7,"b":"x"}']
_GROUP = b"\x18\x01v\x15\x04"
"""The end of a SchemaElement in Thrift's compact protocol: a name, ``v``, and two children."""
_VARIANT = b"\x5c\x0c\x20\x13\x01\x00\x00"
"""Its field 10, a union whose member 16 is VARIANT, in version 1."""


def tell(file: Path) -> None:
    """Say of the column ``v`` of a file that it is VARIANT, as writers of today do, and pyarrow not."""
    data = file.read_bytes()
    start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    footer = data[start:-8]
    assert footer.count(_GROUP + b"\0") == 1
    footer = footer.replace(_GROUP + b"\0", _GROUP + _VARIANT + b"\0")
    file.write_bytes(data[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")


def written(file: Path, first: int, nested: bool = False, told: bool = True) -> None:
    values: Any = encode_values(DOCUMENTS, "v").storage
    values = pa.StructArray.from_arrays([values], ["v"]) if nested else values
    rows = pa.table({"id": range(first, first + len(DOCUMENTS)), "s" if nested else "v": values})
    file.parent.mkdir(exist_ok=True)
    pq.write_table(rows, file, store_schema=False)
    if told:
        tell(file)


def texts(spark: SparkSession, url: str) -> list[tuple[Any, ...]]:
    rows = fuse_spark.read(spark, url)
    return sorted(map(tuple, rows.selectExpr("id", "to_json(v) v").collect()))


def knows_the_type(spark: SparkSession) -> bool:
    return tuple(map(int, spark.version.split(".")[:2])) >= (4, 1)


def test_a_folder_whose_files_say_it_is_read_on_every_spark(spark: SparkSession, tmp_path: Path) -> None:
    fuse_spark.install(spark)
    lake = tmp_path / "lake"
    written(lake / "0.parquet", 0)
    if not knows_the_type(spark):
        with pytest.raises(Py4JJavaError):  # of a NullPointerException
            spark.read.schema("id BIGINT").parquet(str(lake)).collect()
    table = fuse.attach(lake, tmp_path / "table")
    whole = list(enumerate(DOCUMENTS))
    assert texts(spark, table.stored.store.url) == whole
    table.create_index("by_path", "json_path", ["v"])
    found = fuse_spark.read(spark, table.stored.store.url).where("try_variant_get(v, '$.a', 'int') = 7")
    assert [row.id for row in found.collect()] == [3]
    written(lake / "1.parquet", 10)
    table.sync()
    assert texts(spark, table.stored.store.url) == whole + [(number + 10, text) for number, text in whole]
    assert table.snapshot.source is not None
    assert table.snapshot.source["told_variants"]


def test_a_delta_table_is_read_once_a_file_comes_that_says_it(spark: SparkSession, tmp_path: Path) -> None:
    fuse_spark.install(spark)
    lake = Log(tmp_path / "lake", {"id": "long", "v": "variant"})
    written(tmp_path / "lake/plain.parquet", 0, told=False)
    lake.add_file("plain.parquet")
    table = fuse.attach(tmp_path / "lake", tmp_path / "table", "delta")
    assert "told_variants" not in (table.snapshot.source or {})
    whole = list(enumerate(DOCUMENTS))
    assert texts(spark, table.stored.store.url) == whole
    written(tmp_path / "lake/told.parquet", 10)
    lake.add_file("told.parquet")
    table.sync()
    assert texts(spark, table.stored.store.url) == whole + [(number + 10, text) for number, text in whole]


def test_other_columns_are_read_where_it_is_said_within_one(spark: SparkSession, tmp_path: Path) -> None:
    fuse_spark.install(spark)
    written(tmp_path / "lake/0.parquet", 0, nested=True)
    table = fuse.attach(tmp_path / "lake", tmp_path / "table")
    rows = fuse_spark.read(spark, table.stored.store.url).where("id > 1")
    assert sorted(row.id for row in rows.select("id").collect()) == [2, 3]
    assert [row.s.v.value is None for row in rows.orderBy("id").collect() if row.s.v] == [False, False]
