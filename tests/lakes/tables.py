"""Tables of Delta and Iceberg, and the tables of ours that vote on their files."""

from pathlib import Path
from uuid import uuid4

import pyarrow as pa
from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from tests.spark.foreign.sources import FILES, rows

COLUMNS = "id BIGINT, a STRING, b STRING, n INT"
SMALL_ROW_GROUPS = {
    "write.parquet.row-group-size-bytes": "2000",
    "write.parquet.row-group-check-min-record-count": "50",
    "write.parquet.row-group-check-max-record-count": "50",
}


def all_rows(spark: SparkSession) -> str:
    """The rows of ``sources``, a task for those of each file."""
    name = "all_rows"
    if not spark.catalog.tableExists(name):
        spark.createDataFrame(pa.concat_tables(map(rows, range(FILES)))).createOrReplaceTempView(name)
    return name


def create_delta(
    spark: SparkSession, home: Path, partition_by: str = "", columns: str = COLUMNS, **properties: str
) -> str:
    """A table of as many files as ``sources`` says; its name in queries."""
    place = home / f"delta-{uuid4().hex[:8]}"
    return _filled(spark, f"delta.`{place}`", "delta", columns, partition_by, properties)


def create_iceberg(spark: SparkSession, partition_by: str = "", columns: str = COLUMNS, **properties: str) -> str:
    """A table of as many files as ``sources`` says; its name in queries."""
    properties = SMALL_ROW_GROUPS | {"write.distribution-mode": "none"} | properties
    return _filled(spark, f"ice.db.t{uuid4().hex[:8]}", "iceberg", columns, partition_by, properties)


def _filled(
    spark: SparkSession, name: str, format_: str, columns: str, partition_by: str, properties: dict[str, str]
) -> str:
    listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    told = f"TBLPROPERTIES ({listed})" if listed else ""
    spark.sql(f"CREATE TABLE {name} ({columns}) USING {format_} {partition_by} {told}")
    spark.table(all_rows(spark)).repartitionByRange(FILES, "id").writeTo(name).append()
    return name


def place_of(home: Path, name: str) -> Path:
    if name.startswith("delta."):
        return Path(name[len("delta.`") : -1])
    return home / "ice" / "db" / name.rpartition(".")[2]


def use_index(spark: SparkSession, home: Path, name: str, *columns: str) -> fuse.Table:
    """Attach a table to a source, with a bloom index on each column, and have queries of the source ask it."""
    options, place = {"shared_places": str(home)}, home / f"index-{uuid4().hex[:8]}"
    format_ = "delta" if name.startswith("delta.") else "iceberg"
    table = fuse.attach(place_of(home, name), place, format=format_, options=options)
    for column in columns or ("a", "b"):
        table.create_index(f"by_{column}", "bloom", [column])
    fuse_spark.use(spark, place, options=options)
    return table
