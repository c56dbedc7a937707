"""Queries of Parquet files, a Delta and an Iceberg table by their own names, with votes on and off, in one session.

``python -m benchmarks.lakes --rows 5000000 --files 40 --runs 5``. Delta and Iceberg are measured where jars of their
connectors are (``--jars "folder/*.jar"``, for this Spark). A line has the medians of both ways, their ratio, the same
of CPU time (of Spark and of Python), and what was read. The rows are compared. What was made is deleted.

``--tpch 1`` asks the 22 queries of TPC-H at that scale over each format in place of these.
"""

from __future__ import annotations

import argparse
import glob
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Row, SparkSession

from benchmarks.pairs import comparable, cpu_seconds, start
from benchmarks.tpch.both import queries as tpch_queries
from benchmarks.tpch.sources import make_source
from benchmarks.tpch.tables import make_tables
from fuse_index import spark as fuse_spark
from fuse_index.errors import InputError

SWITCH = "spark.fuse.index.transparent"
HEADER = f"{'source':<9}{'query':<22}{'without':>9}{'with':>9}{'ratio':>8}{'CPU':>9}{'CPU':>9}{'ratio':>8}   read"
KEYS_OF_JOIN = 10


def rows_of(number: int, rows: int) -> pa.Table:
    """The rows of one file, in the order in which they came: no key is sorted."""
    random = np.random.default_rng(number)
    ids = np.arange(number * rows, (number + 1) * rows)
    amounts = random.integers(0, 1_000_000, rows)
    return pa.table(
        {
            "id": ids,
            "order_id": [order_of(each) for each in ids.tolist()],
            "user_id": [f"u{each:07d}" for each in random.integers(0, 1_000_000, rows)],
            "amount": pa.array(amounts, pa.int32()),
            "note": [f"note {each:07d} by nobody in particular" for each in amounts],
        }
    )


def order_of(number: int) -> str:
    return f"{(number * 2_654_435_761) % (1 << 40):012x}"


def settings_of(folder: Path, jars: list[str]) -> dict[str, str]:
    """What a session needs for both connectors, whose jars are given."""
    if not jars:
        return {}
    return {
        "spark.jars": ",".join(jars),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,"
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hadoop",
        "spark.sql.catalog.ice.warehouse": str(folder / "ice"),
        "spark.databricks.delta.snapshotPartitions": "2",
    }


def write_sources(spark: SparkSession, folder: Path, files: int, rows: int, lakes: bool) -> Iterator[tuple[str, str]]:
    """Write the same rows in each format; its name, and what queries call it.

    Parquet files are a table of the session's catalogue: a path would have its schema read anew by each query, 60 ms
    of Spark's own.
    """
    lake = folder / "lake"
    lake.mkdir()
    for number in range(files):
        pq.write_table(rows_of(number, rows), lake / f"part-{number:05d}.parquet", compression="zstd")
    spark.sql(f"CREATE TABLE lake USING parquet LOCATION '{lake}'")
    yield "parquet", "spark_catalog.default.lake"
    if not lakes:
        return
    for name, value in (
        ("maxPartitionBytes", str(1 << 40)),
        ("openCostInBytes", str(1 << 40)),
        ("minPartitionNum", "1"),
    ):
        spark.conf.set(f"spark.sql.files.{name}", value)  # a task for each file, so that the other formats have as many
    written = spark.read.parquet(str(lake))
    written.write.format("delta").save(str(folder / "delta"))
    spark.sql(f"CREATE TABLE ice.db.t ({', '.join(f'{n} {t}' for n, t in written.dtypes)}) USING iceberg")
    spark.conf.set("spark.sql.iceberg.distribution-mode", "none")
    written.writeTo("ice.db.t").append()
    for name in ("maxPartitionBytes", "openCostInBytes", "minPartitionNum"):
        spark.conf.unset(f"spark.sql.files.{name}")
    yield "delta", f"delta.`{folder / 'delta'}`"
    yield "iceberg", "ice.db.t"


def queries(table: str, total: int) -> Iterator[tuple[str, str]]:
    """Name and text of each query; each has another key."""
    yield "one order", f"SELECT * FROM {table} WHERE order_id = '{order_of(total // 3)}'"
    keys = ", ".join(f"('{order_of(total // 2 + 7919 * each)}')" for each in range(KEYS_OF_JOIN))
    few = f"(SELECT /*+ REPARTITION(1) */ * FROM VALUES {keys} AS v(k))"
    yield "join with ten orders", f"SELECT /*+ BROADCAST(few) */ t.* FROM {table} t JOIN {few} few ON order_id = k"
    yield "one of every file", f"SELECT count(*), sum(amount) FROM {table} WHERE amount < 100000"
    yield "no condition", f"SELECT count(*), sum(amount), max(note) FROM {table}"


def measure(spark: SparkSession, source: str, name: str, query: str, runs: int) -> None:
    """Print the line of one query."""
    taken: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for run in range(runs + 1):
        rows: dict[bool, list[Row]] = {}
        for votes in (True, False) if run % 2 else (False, True):
            spark.conf.set(SWITCH, str(votes).lower())
            rows[votes], seconds = timed(spark, lambda: spark.sql(query).collect())
            taken[votes].append(seconds)
        if comparable(rows[True]) != comparable(rows[False]):
            raise SystemExit(f"{source}, {name}: other rows with votes")
    line = f"{source:<9}{name:<22}"
    for clock in (0, 1):
        without, votes = (statistics.median(each[clock] for each in taken[way][1:]) for way in (False, True))
        line += f"{without:>9.3f}{votes:>9.3f}{without / votes:>7.1f}x"
    print(f"{line}   {read_of(spark, query)}", flush=True)


def timed(spark: SparkSession, work: Callable[[], list[Row]]) -> tuple[list[Row], tuple[float, float]]:
    started, started_cpu = time.perf_counter(), cpu_seconds(spark)
    rows = work()
    return rows, (time.perf_counter() - started, cpu_seconds(spark) - started_cpu)


def read_of(spark: SparkSession, query: str) -> str:
    spark.conf.set(SWITCH, "true")
    asked = spark.sql(query)
    asked.collect()
    try:
        return str(fuse_spark.explain(asked).source)
    except InputError:
        return "not asked"


def planning(spark: SparkSession, source: str, name: str, query: str, runs: int) -> None:
    """Print how long EXPLAIN takes both ways, by the clock and of CPU time: nothing is executed."""
    taken: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
    for run in range(runs * 6 + 2):
        for votes in (True, False) if run % 2 else (False, True):
            spark.conf.set(SWITCH, str(votes).lower())
            taken[votes].append(timed(spark, lambda: spark.sql(f"EXPLAIN {query}").collect())[1])
    line = f"{source:<9}{name:<22}"
    for clock in (0, 1):
        for way in (False, True):
            line += f"{statistics.median(each[clock] for each in taken[way][2:]) * 1000:>7.1f}ms"
        line += " " * 8
    print(line, flush=True)


def measure_tpch(spark: SparkSession, folder: Path, scale: float, formats: list[str], runs: int) -> None:
    """Print a line for each query of TPC-H over each format."""
    tables = make_tables(scale)
    for source in formats:
        spark.conf.set(SWITCH, "true")
        spark.sql(f"USE {make_source(spark, source, tables, folder, 200_000)}")
        for name, query in tpch_queries().items():
            measure(spark, source, name, query, runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--jars", default="", help="of the connectors, as a pattern of paths")
    parser.add_argument("--tpch", type=float, metavar="SCALE", help="the queries of TPC-H: 1 has 6,000,000 rows")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder, jars = Path(place), sorted(glob.glob(options.jars)) if options.jars else []
        if options.jars and not jars:
            raise SystemExit(f"--jars {options.jars!r}: no file is called so")
        spark = start(folder, settings_of(folder, jars))
        print(HEADER)
        if options.tpch:
            formats = ["parquet", "delta", "iceberg"] if jars else ["parquet"]
            measure_tpch(spark, folder, options.tpch, formats, options.runs)
            return
        for source, table in write_sources(spark, folder, options.files, options.rows // options.files, bool(jars)):
            fuse_spark.index(spark, spark.sql(f"SELECT * FROM {table}"), "bloom", ["order_id"])
            for name, query in queries(table, options.rows):
                measure(spark, source, name, query, options.runs)
            planning(spark, source, "EXPLAIN, no condition", f"SELECT count(*) FROM {table}", options.runs)
            where = f"order_id = '{order_of(options.rows // 3)}'"
            planning(spark, source, "EXPLAIN, one order", f"SELECT * FROM {table} WHERE {where}", options.runs)
        spark.stop()


if __name__ == "__main__":
    main()
