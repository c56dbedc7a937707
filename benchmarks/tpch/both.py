"""TPC-H's tables twice in one session: in a warehouse of ours, with indexes, and as plain Parquet of the same codec.

Both have the rows in the same order and in as many files; ``USE`` chooses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import fuse_index as fuse

OURS, PLAIN = "fuse.tpch", "spark_catalog.tpch_plain"
CLUSTERED = {"lineitem": "l_shipdate", "orders": "o_orderdate"}
INDEXES = {
    "lineitem_order": "lineitem USING bloom (l_orderkey)",
    "lineitem_part": "lineitem USING bloom (l_partkey)",
    "orders_key": "orders USING bloom (o_orderkey)",
    "orders_customer": "orders USING bloom (o_custkey)",
    "partsupp_part": "partsupp USING bloom (ps_partkey)",
    "pricing": """lineitem USING aggregate (l_returnflag, l_linestatus) OPTIONS (aggregates = '[
        "sum(l_quantity)", "sum(l_extendedprice)", "sum(l_extendedprice * (1 - l_discount))",
        "sum(l_extendedprice * (1 - l_discount) * (1 + l_tax))", "avg(l_quantity)", "avg(l_extendedprice)",
        "avg(l_discount)", "count(*)"]')""",
    "forecast": """lineitem USING aggregate (l_discount, l_quantity)
        OPTIONS (aggregates = '["sum(l_extendedprice * l_discount)"]')""",
}
"""By name; the last two are what the first and the sixth query add up."""


def queries() -> Mapping[str, str]:
    """The 22 queries, with the parameters that the specification validates by."""
    return {path.stem: path.read_text() for path in sorted((Path(__file__).parent / "queries").glob("*.sql"))}


def make_both(
    spark: SparkSession, tables: Mapping[str, pa.Table], folder: Path, block_rows: int, codec: str = "zstd"
) -> None:
    """Make both in a session whose catalogue ``fuse`` has its warehouse in ``folder / "warehouse"``."""
    spark.sql(f"CREATE NAMESPACE {OURS}")
    spark.sql(f"CREATE DATABASE {PLAIN} LOCATION '{folder / 'plain'}'")
    warehouse = fuse.catalog(str(folder / "warehouse"))
    for name, rows in tables.items():
        properties = {"block_rows": block_rows, "compression": codec}
        clustered = [CLUSTERED[name]] if name in CLUSTERED else []
        warehouse.create_table(f"tpch.{name}", rows.schema, clustered, properties).append(rows)
        place = folder / "plain" / name
        place.mkdir(parents=True)
        for number, part in enumerate(_parts(rows, block_rows)):
            pq.write_table(part, place / f"part-{number:05}.parquet", compression=codec)
        spark.sql(f"CREATE TABLE {PLAIN}.{name} USING parquet LOCATION '{place}'")
    for name, about in INDEXES.items():
        spark.sql(f"CREATE INDEX {name} ON {OURS}.{about}")


def _parts(rows: pa.Table, block_rows: int) -> Iterator[pa.Table]:
    for start in range(0, rows.num_rows, block_rows):
        yield rows.slice(start, block_rows)
