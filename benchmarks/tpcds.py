"""TPC-DS's 99 queries over tables of ours with indexes, against plain Parquet of the same codec, in one session.

``python -m benchmarks.tpcds --scale 0.1 --runs 5``: ``pairs`` says what a line has. The rows are compared.

Tables and queries are of DuckDB's extension. PyPI has it for another DuckDB than the other benchmarks compare with, so
pip installs both into a folder of their own, which is deleted when the tables are made. ``--data FOLDER`` keeps the
tables and the queries there for further runs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import fuse_index as fuse
from benchmarks.pairs import HEADER, measure, start

OURS, PLAIN = "fuse.tpcds", "spark_catalog.tpcds_plain"
EXTENSION = "duckdb-extension-tpcds==1.5.5"
SETTINGS = {"spark.sql.ansi.doubleQuotedIdentifiers": True}  # as the queries have "order count"
CLUSTERED = {
    "store_sales": "ss_sold_date_sk",
    "store_returns": "sr_returned_date_sk",
    "catalog_sales": "cs_sold_date_sk",
    "catalog_returns": "cr_returned_date_sk",
    "web_sales": "ws_sold_date_sk",
    "web_returns": "wr_returned_date_sk",
    "inventory": "inv_date_sk",
    "date_dim": "d_date_sk",
}
INDEXES = {
    "store_sales_ticket": "store_sales USING bloom (ss_ticket_number)",
    "store_sales_customer": "store_sales USING bloom (ss_customer_sk)",
    "store_sales_item": "store_sales USING bloom (ss_item_sk)",
    "catalog_sales_order": "catalog_sales USING bloom (cs_order_number)",
    "catalog_sales_item": "catalog_sales USING bloom (cs_item_sk)",
    "web_sales_order": "web_sales USING bloom (ws_order_number)",
    "customer_key": "customer USING bloom (c_customer_sk)",
}
GENERATE = """
import json, sys
from pathlib import Path
import duckdb

packages, folder, scale = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
connection = duckdb.connect()
connection.load_extension(str(next(packages.glob("duckdb_extension_tpcds/extensions/*/*.duckdb_extension"))))
connection.execute("SET enable_progress_bar = false")
connection.execute(f"CALL dsdgen(sf = {scale})")
for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
    connection.execute(f"COPY {name} TO '{folder / name}.parquet'")
queries = connection.execute("SELECT query_nr, query FROM tpcds_queries()").fetchall()
named = {f"q{number:02}": query.strip().rstrip(";") for number, query in queries}
(folder / "queries.json").write_text(json.dumps(named))
"""
QUERIES = "queries.json"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tpcds", description=__doc__)
    parser.add_argument("--scale", type=float, default=0.1, help="1 has 2,880,000 rows in store_sales")
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each query, after one that is not counted")
    parser.add_argument("--block-rows", type=int, default=20_000)
    parser.add_argument("--queries", nargs="*", help="such as q03 q72; all if none is given")
    parser.add_argument(
        "--data", type=Path, help="a folder that keeps tables and queries, and is filled if it has none"
    )
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = wanted.data or Path(folder) / "data"
        if not (data / QUERIES).exists():
            with tempfile.TemporaryDirectory() as packages:
                pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", packages, EXTENSION]
                subprocess.run(pip, check=True)
                generate(data, wanted.scale, Path(packages))
        queries = load_queries(data)
        spark = start(Path(folder), SETTINGS)
        try:
            make_both(spark, data, Path(folder), wanted.block_rows)
            print(
                f"scale {wanted.scale}, blocks of {wanted.block_rows:,} rows, {wanted.runs} runs, medians in seconds\n"
            )
            print(HEADER)
            for name in wanted.queries or queries:
                measure(spark, name, queries[name], (PLAIN, OURS), wanted.runs)
        finally:
            spark.stop()


def generate(folder: Path, scale: float, packages: Path) -> None:
    """Make a Parquet file of each of the 24 tables, and a file of the queries by their names.

    ``packages``: where the extension, and DuckDB of its version, are installed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    program = [sys.executable, "-c", GENERATE, str(packages), str(folder), str(scale)]
    subprocess.run(program, check=True, env=os.environ | {"PYTHONPATH": str(packages)})


def load_queries(data: Path) -> Mapping[str, str]:
    """The queries of a folder that ``generate`` filled, by name."""
    return json.loads((data / QUERIES).read_text())


def make_both(spark: SparkSession, data: Path, folder: Path, block_rows: int, codec: str = "zstd") -> None:
    """Make both of the files in ``data``: the same rows in the same order, in as many files, in ours with indexes.

    ``folder``: has them, the warehouse of the session's catalogue ``fuse`` among them.
    """
    spark.sql(f"CREATE NAMESPACE {OURS}")
    spark.sql(f"CREATE DATABASE {PLAIN} LOCATION '{folder / 'plain'}'")
    warehouse = fuse.catalog(str(folder / "warehouse"))
    for file in sorted(data.glob("*.parquet")):
        name, rows = file.stem, pq.read_table(file)
        clustered = [CLUSTERED[name]] if name in CLUSTERED else []
        if clustered:
            rows = rows.sort_by([(clustered[0], "ascending")])
        properties = {"block_rows": block_rows, "compression": codec}
        warehouse.create_table(f"tpcds.{name}", rows.schema, clustered, properties).append(rows)
        place = folder / "plain" / name
        place.mkdir(parents=True)
        for start_row in range(0, rows.num_rows, block_rows):
            part = rows.slice(start_row, block_rows)
            pq.write_table(part, place / f"part-{start_row:09}.parquet", compression=codec)
        spark.sql(f"CREATE TABLE {PLAIN}.{name} USING parquet LOCATION '{place}'")
    for name, about in INDEXES.items():
        spark.sql(f"CREATE INDEX {name} ON {OURS}.{about}")


if __name__ == "__main__":
    main()
