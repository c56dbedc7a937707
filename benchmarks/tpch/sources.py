"""TPC-H's tables as somebody has them, in Parquet, Delta and Iceberg, with indexes of ours that their queries ask.

``USE`` chooses a format; the switch ``spark.fuse.index.transparent`` whether indexes are asked.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from fuse_index import spark as fuse_spark

INDEXES = {
    "lineitem": ["l_orderkey", "l_partkey"],
    "orders": ["o_orderkey", "o_custkey"],
    "customer": ["c_custkey"],
    "part": ["p_partkey"],
    "partsupp": ["ps_partkey"],
    "supplier": ["s_suppkey"],
}
"""Columns of each table with a bloom index; bounds of all others are known, too."""

PLACES = {"parquet": "spark_catalog.tpch_parquet", "delta": "spark_catalog.tpch_delta", "iceberg": "ice.tpch"}
"""Namespaces by formats."""


def make_source(spark: SparkSession, format_: str, tables: Mapping[str, pa.Table], folder: Path, file_rows: int) -> str:
    """Make the tables in one format, with indexes in the session's warehouse; the namespace that they are in.

    ``file_rows``: a file has so many rows.
    """
    place = PLACES[format_]
    spark.sql(f"CREATE NAMESPACE {place}")
    for name, rows in tables.items():
        files = folder / "files" / format_ / name
        files.mkdir(parents=True)
        for number, start in enumerate(range(0, rows.num_rows, file_rows)):
            pq.write_table(rows.slice(start, file_rows), files / f"part-{number:05}.parquet", compression="zstd")
        if format_ == "parquet":
            spark.sql(f"CREATE TABLE {place}.{name} USING parquet LOCATION '{files}'")
        else:
            columns = ", ".join(f"`{column}` {kind}" for column, kind in spark.read.parquet(str(files)).dtypes)
            spark.sql(f"CREATE TABLE {place}.{name} ({columns}) USING {format_}")
            _append_as_they_are(spark, files, f"{place}.{name}")
        for column in INDEXES.get(name, []):
            fuse_spark.index(spark, f"{place}.{name}", "bloom", [column])
    return place


def _append_as_they_are(spark: SparkSession, files: Path, table: str) -> None:
    """Append rows to a table, those of a file by a task of their own."""
    settings = {
        "spark.sql.files.maxPartitionBytes": str(1 << 40),
        "spark.sql.files.openCostInBytes": str(1 << 40),
        "spark.sql.files.minPartitionNum": "1",
        "spark.sql.iceberg.distribution-mode": "none",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    spark.read.parquet(str(files)).writeTo(table).append()
    for name in settings:
        spark.conf.unset(name)
