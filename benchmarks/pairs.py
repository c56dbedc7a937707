"""Queries over the same tables twice in one session, ours and plain Parquet: which is faster, and do they say the same?

Runs of the two alternate, their order too; a line has the medians of both, their ratio, the same of CPU time (of Spark
and of Python, on a machine that does other things), and how many blocks were read of all, scan by scan.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import Row, SparkSession

from benchmarks import report
from fuse_index import spark as fuse_spark
from fuse_index.pruning.explanation import Explanation

HEADER = f"{'query':<7}{'plain':>9}{'ours':>9}{'ratio':>8}{'CPU':>9}{'CPU':>9}{'ratio':>8}   blocks read"


def start(folder: Path, settings: Mapping[str, Any] | None = None) -> SparkSession:
    """A session of two cores whose catalogue ``fuse`` has its warehouse in ``folder / "warehouse"``."""
    os.environ |= report.environment()
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    builder = builder.config("spark.driver.memory", "4g").config("spark.ui.showConsoleProgress", False)
    builder = builder.config("spark.sql.shuffle.partitions", 2)
    builder = builder.config("spark.sql.warehouse.dir", str(folder / "spark"))
    for name, value in (settings or {}).items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    fuse_spark.install(spark, warehouse=folder / "warehouse")
    return spark


def measure(spark: SparkSession, name: str, query: str, places: tuple[str, str], runs: int) -> None:
    """Print the line of one query; ``places`` are the namespaces of plain Parquet's tables and of ours."""
    taken: dict[str, list[tuple[float, float]]] = {place: [] for place in places}
    plain, ours = places
    for run in range(runs + 1):
        rows = {}
        for place in places if run % 2 else (ours, plain):
            rows[place], seconds = timed(spark, query, place)
            taken[place].append(seconds)
        if rows[ours] != rows[plain] and comparable(rows[ours]) != comparable(rows[plain]):
            raise SystemExit(f"{name}: other rows than plain Parquet has")
    line = f"{name:<7}"
    for clock in (0, 1):
        medians = [statistics.median(seconds[clock] for seconds in taken[place][1:]) for place in places]
        line += f"{medians[0]:>9.3f}{medians[1]:>9.3f}{medians[1] / medians[0]:>8.2f}"
    print(f"{line}   {blocks_read(spark, query, ours)}", flush=True)


def comparable(rows: Sequence[Row]) -> list[str]:
    """The rows in an order of their own, as there may be ties, and without digits in which sums of floats differ."""
    return sorted(repr([f"{value:.9g}" if isinstance(value, float) else value for value in row]) for row in rows)


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


def blocks_read(spark: SparkSession, query: str, ours: str) -> str:
    """Blocks read of all, scan by scan, in the plan that ran."""
    spark.sql(f"USE {ours}")
    found = spark.sql(query)
    found.collect()
    told = fuse_spark.explain(found)
    scans = [told] if isinstance(told, Explanation) else told
    return " ".join(f"{each.blocks.kept}/{each.blocks.total}" for each in scans)
