"""TPC-H's 22 queries over tables of ours with indexes, against plain Parquet of the same codec, in one session.

``python -m benchmarks.tpch --scale 1 --runs 5``: runs of the two alternate, their order too; a line has the medians of
both, their ratio, the same of CPU time (of Spark and of Python, on a machine that does other things), and how many
blocks were read of all, scan by scan. The rows are compared.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from pathlib import Path

from pyspark.sql import Row, SparkSession

from benchmarks import report
from benchmarks.tpch.both import OURS, PLAIN, make_both, queries
from benchmarks.tpch.tables import make_tables
from fuse_index import spark as fuse_spark
from fuse_index.pruning.explanation import Explanation


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tpch", description=__doc__)
    parser.add_argument("--scale", type=float, default=0.1, help="1 has 6,000,000 rows in lineitem")
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each query, after one that is not counted")
    parser.add_argument("--block-rows", type=int, default=200_000)
    parser.add_argument("--queries", nargs="*", help="such as q01 q06; all if none is given")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spark = start(Path(folder))
        try:
            make_both(spark, make_tables(wanted.scale), Path(folder), wanted.block_rows)
            print(
                f"scale {wanted.scale}, blocks of {wanted.block_rows:,} rows, {wanted.runs} runs, medians in seconds\n"
            )
            print(f"{'query':<7}{'plain':>9}{'ours':>9}{'ratio':>8}{'CPU':>9}{'CPU':>9}{'ratio':>8}   blocks read")
            for name in wanted.queries or queries():
                measure(spark, name, wanted.runs)
        finally:
            spark.stop()


def start(folder: Path) -> SparkSession:
    os.environ |= report.environment()
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    builder = builder.config("spark.driver.memory", "4g").config("spark.ui.showConsoleProgress", False)
    builder = builder.config("spark.sql.shuffle.partitions", 2)
    builder = builder.config("spark.sql.warehouse.dir", str(folder / "spark"))
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    fuse_spark.install(spark, warehouse=folder / "warehouse")
    return spark


def measure(spark: SparkSession, name: str, runs: int) -> None:
    query = queries()[name]
    taken: dict[str, list[tuple[float, float]]] = {PLAIN: [], OURS: []}
    for run in range(runs + 1):
        rows = {}
        for place in (PLAIN, OURS) if run % 2 else (OURS, PLAIN):
            rows[place], seconds = timed(spark, query, place)
            taken[place].append(seconds)
        if rows[OURS] != rows[PLAIN]:
            raise SystemExit(f"{name}: other rows than plain Parquet has")
    line = f"{name:<7}"
    for clock in (0, 1):
        plain, ours = (statistics.median(seconds[clock] for seconds in taken[place][1:]) for place in (PLAIN, OURS))
        line += f"{plain:>9.3f}{ours:>9.3f}{ours / plain:>8.2f}"
    print(f"{line}   {blocks_read(spark, query)}", flush=True)


def timed(spark: SparkSession, query: str, place: str) -> tuple[list[Row], tuple[float, float]]:
    """The rows, and how long they took: by the clock, and of CPU time."""
    spark.sql(f"USE {place}")
    started, started_cpu = time.perf_counter(), cpu_seconds(spark)
    rows = spark.sql(query).collect()
    return rows, (time.perf_counter() - started, cpu_seconds(spark) - started_cpu)


def cpu_seconds(spark: SparkSession) -> float:
    """CPU time of this process and of the JVM, which do all there is to do."""
    jvm = spark._jvm.java.lang.ProcessHandle.current().info().totalCpuDuration().get().toMillis()
    return time.process_time() + float(jvm) / 1000


def blocks_read(spark: SparkSession, query: str) -> str:
    """Blocks read of all, scan by scan, in the plan that ran."""
    spark.sql(f"USE {OURS}")
    found = spark.sql(query)
    found.collect()
    told = fuse_spark.explain(found)
    scans = [told] if isinstance(told, Explanation) else told
    return " ".join(f"{each.blocks.kept}/{each.blocks.total}" for each in scans)


if __name__ == "__main__":
    main()
