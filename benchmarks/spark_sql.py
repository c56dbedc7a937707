"""What SQL over a table of ours costs, against the same rows as plain Parquet of the same codec, in one session.

``python -m benchmarks.spark_sql --rows 10000000``: the table is clustered by ``id``; ``k`` is in no order, and a bloom
index knows it. Runs of the two alternate; lines have both medians, their ratio and what it is to be. Rows are compared.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from fuse_index import spark as fuse_spark

BARS = {"full scan": 1 / 1.05, "IN of 50 keys": 3.0, "join with 10 rows": 5.0, "top 10 by k": 5.0}
"""How many times as fast as plain Parquet a query is to be at ten million rows."""
LOAD_BAR_SECONDS = 0.010
NAMED_BAR = 1.2
"""How many times what a lookup by ``read`` takes one by name may take."""

PAYLOAD = "id, k, v, concat('customer ', k % 1000, ' of district ', v) AS name"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_sql", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each query")
    parser.add_argument("--warm", type=int, default=8, help="runs before, which are not counted: the JVM compiles")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spark = start(Path(folder))
        try:
            make_tables(spark, Path(folder), wanted.rows)
            measure(spark, wanted.rows, wanted.runs, wanted.warm)
        finally:
            spark.stop()


def start(folder: Path) -> SparkSession:
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    builder = (
        builder.config("spark.driver.memory", "4g")
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.sql.shuffle.partitions", 2)
    )
    spark = builder.config("spark.sql.parquet.compression.codec", "zstd").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    fuse_spark.install(spark, warehouse=folder / "warehouse")
    return spark


def make_tables(spark: SparkSession, folder: Path, rows: int) -> None:
    """The table ``fuse.t``, and views ``plain`` and ``dimension``, of 10 keys."""
    step = 2 * (rows // 3) + 1  # odd, and with luck prime to the number of rows: k takes all values in no order
    numbers = (
        spark.range(rows)
        .selectExpr("id", f"(id * {step}L + 17) % {rows} AS k", "id % 977 AS v")
        .selectExpr(*PAYLOAD.split(", ", 3))
    )
    numbers.write.parquet(str(folder / "plain"))
    spark.read.parquet(str(folder / "plain")).createOrReplaceTempView("plain")
    spark.sql("CREATE TABLE fuse.t (id BIGINT, k BIGINT, v BIGINT, name STRING) CLUSTER BY (id)")
    spark.table("plain").writeTo("fuse.t").append()
    spark.sql("CREATE INDEX by_k ON fuse.t USING bloom (k)")
    keys = ", ".join(f"({key}L, 'd{key}')" for key in draw(rows, 10))
    spark.sql(f"SELECT * FROM VALUES {keys} AS d(key, what)").write.parquet(str(folder / "dimension"))
    spark.read.parquet(str(folder / "dimension")).createOrReplaceTempView("dimension")


def draw(rows: int, count: int, seed: int = 5) -> list[int]:
    return np.random.default_rng(seed).integers(0, rows, count).tolist()


def queries(rows: int, run: int) -> dict[str, str]:
    """By what they do; other needles in each run."""
    some = ", ".join(map(str, draw(rows, 50, run)))
    return {
        "full scan": "SELECT sum(k), sum(v), max(length(name)) FROM {t}",
        "one key": f"SELECT * FROM {{t}} WHERE k = {draw(rows, 1, run)[0]}",
        "IN of 50 keys": f"SELECT sum(id), count(name) FROM {{t}} WHERE k IN ({some})",
        "join with 10 rows": "SELECT what, id, name FROM {t} JOIN dimension ON k = key ORDER BY id",
        "top 10 by k": "SELECT k, name FROM {t} ORDER BY k DESC LIMIT 10",
        "k = (SELECT ...)": "SELECT id, name FROM {t} WHERE k = (SELECT max(key) FROM dimension)",
    }


def measure(spark: SparkSession, rows: int, runs: int, warm: int) -> None:
    print(f"{rows:,} rows, {runs} runs after {warm}, medians in seconds\n")
    print(f"{'query':<20}{'plain':>9}{'ours':>9}{'faster':>9}{'bar':>9}")
    for name in queries(rows, 0):
        plain, ours = [], []
        for run in range(warm + runs):
            query = queries(rows, run)[name]
            expected, plain_seconds = timed(lambda query=query: spark.sql(query.format(t="plain")).collect())
            found, own_seconds = timed(lambda query=query: spark.sql(query.format(t="fuse.t")).collect())
            if sorted(map(repr, found)) != sorted(map(repr, expected)):
                raise SystemExit(f"{name}: other rows than plain Parquet has: {query}")
            plain.append(plain_seconds)
            ours.append(own_seconds)
        first, second = statistics.median(plain[warm:]), statistics.median(ours[warm:])
        bar = f"{BARS[name]:>7.2f} x" if name in BARS else ""
        print(f"{name:<20}{first:>9.3f}{second:>9.3f}{first / second:>7.2f} x{bar}")
    measure_names(spark, rows, runs)


def measure_names(spark: SparkSession, rows: int, runs: int) -> None:
    """What a name costs: to load it, and to look a key up by it."""
    load = statistics.median(timed(lambda: spark.table("fuse.t"))[1] for _ in range(20))
    print(f"\nname to DataFrame, warm: {load * 1000:.1f} ms, bar {LOAD_BAR_SECONDS * 1000:.0f} ms")
    location = spark.sql("DESCRIBE EXTENDED fuse.t").where("col_name = 'Location'").collect()[0].data_type
    fuse_spark.read(spark, location).createOrReplaceTempView("by_place")
    seconds: dict[str, list[float]] = {"fuse.t": [], "by_place": []}
    for run in range(4 * runs):
        for name, took in seconds.items():
            query = queries(rows, 100 + run)["one key"].format(t=name)
            took.append(timed(lambda query=query: spark.sql(query).collect())[1])
    named, placed = (statistics.median(took[1:]) for took in seconds.values())
    print(f"one key by name {named:.3f} s, by read {placed:.3f} s: {named / placed:.2f} x, bar {NAMED_BAR} x")


def timed(do: Callable[[], list[object]]) -> tuple[list[object], float]:
    started = time.perf_counter()
    result = do()
    return result, time.perf_counter() - started


if __name__ == "__main__":
    main()
