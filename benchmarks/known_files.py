"""What planning costs where an index knows very many files: ``python -m benchmarks.known_files --files 100000``.

A folder of small Parquet files, of which many are one file by several names, with bounds alone. Printed are the CPU
time (of Spark and of Python) until the index is known to Spark, and of planning a query afterwards, with votes and
without; and the memory that Spark keeps of the files. What was made is deleted.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import fuse_index as fuse
from benchmarks.pairs import cpu_seconds, start
from fuse_index import spark as fuse_spark

SWITCH = "spark.fuse.index.transparent"
DIFFERENT, ROWS = 50, 10
"""So many files have rows of their own, and so many rows each."""


def write_folder(folder: Path, files: int) -> None:
    """Write files, all but the first by further names."""
    folder.mkdir()
    for number in range(files):
        place, first = folder / f"part-{number:06d}.parquet", folder / f"part-{number % DIFFERENT:06d}.parquet"
        if number < DIFFERENT:
            pq.write_table(pa.table({"id": range(number * ROWS, (number + 1) * ROWS)}), place)
        else:
            os.link(first, place)


def spent(spark: SparkSession, work: Callable[[], Any]) -> float:
    """CPU time in milliseconds."""
    started = cpu_seconds(spark)
    work()
    return (cpu_seconds(spark) - started) * 1000


def heap(spark: SparkSession) -> float:
    """Megabytes that the JVM uses once it has collected."""
    assert spark._jvm is not None
    runtime = spark._jvm.java.lang.Runtime.getRuntime()
    for _ in range(3):
        runtime.gc()
    return float(runtime.totalMemory() - runtime.freeMemory()) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_folder(folder / "lake", options.files)
        fuse.attach(folder / "lake", folder / "index", votes_only=True)
        spark = start(folder)
        fuse_spark.use(spark, folder / "index")
        source = spark.read.parquet(str(folder / "lake"))
        before = heap(spark)
        queries = {"a condition": source.where(f"id = {ROWS * 7 + 3}"), "no condition": source.groupBy().count()}

        def plan(name: str) -> None:
            queries[name].select("*")._jdf.queryExecution().executedPlan()

        print(f"{options.files:,} files; CPU, ms (medians of {options.runs})")
        print(f"until the index is known  {spent(spark, lambda: plan('a condition')):>9.0f}")
        print(f"memory of it in Spark     {heap(spark) - before:>9.1f} MB")
        for name in queries:
            taken: dict[str, list[float]] = {"true": [], "false": []}
            for run in range(2 * options.runs):
                votes = ("true", "false")[run % 2]
                spark.conf.set(SWITCH, votes)
                taken[votes].append(spent(spark, lambda name=name: plan(name)))
            without, with_votes = (statistics.median(taken[each]) for each in ("false", "true"))
            print(f"planning, {name:<15} {without:>9.1f} without votes, {with_votes:.1f} with")
        spark.conf.set(SWITCH, "true")
        print(f"the query, 1 file in {DIFFERENT}  {spent(spark, queries['a condition'].collect):>9.0f}")
        spark.stop()


if __name__ == "__main__":
    main()
