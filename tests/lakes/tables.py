"""Tables of Delta and Iceberg, and the tables of ours that vote on their files."""

from pathlib import Path
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from tests.spark.foreign.sources import FILES, ROWS

COLUMNS = "id BIGINT, a STRING, b STRING, n INT"
SMALL_ROW_GROUPS = {
    "write.parquet.row-group-size-bytes": "2000",
    "write.parquet.row-group-check-min-record-count": "50",
    "write.parquet.row-group-check-max-record-count": "50",
}


def all_rows(spark: SparkSession) -> DataFrame:
    """The rows of ``sources``, a task for those of each file."""
    text = "concat('a', lpad(CAST(({}) % 100000 AS STRING), 5, '0'))"
    a, b = text.format("id * 7919"), text.format("id * 104729 + 1")
    values = ["id", f"{a} a", f"IF(id % 50 = 7, NULL, {b}) b", "CAST(id * 31 % 1000 AS INT) n"]
    return spark.range(0, FILES * ROWS, 1, FILES).selectExpr(*values)


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
    all_rows(spark).writeTo(name).append()
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
