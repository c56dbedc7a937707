"""What SQL over a table of ours costs, against the same rows as plain Parquet of the same codec, in one session.

``python -m benchmarks.spark_sql --rows 10000000``: the table is clustered by ``id``; ``k`` is in no order, and a bloom
index knows it. Runs of the two alternate, their order too, and each looks for other keys; lines have the medians of
both by the clock and of CPU time (of Spark and of Python), their ratios and what these are to be. Rows are compared.
Results go to ``benchmarks/results/spark_sql.md``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from benchmarks import report
from benchmarks.pairs import cpu_seconds
from fuse_index import spark as fuse_spark

BARS = {"full scan": 1 / 1.05, "IN of 50 keys": 3.0, "join with 10 rows": 5.0, "top 10 by k": 5.0}
"""How many times as fast as plain Parquet a query is to be at ten million rows."""
LOAD_BAR_SECONDS = 0.010
NAMED_BAR = 1.2
"""How many times what a lookup by ``read`` takes one by name may take."""
HERE = Path(__file__).parent

PAYLOAD = "id, k, v, concat('customer ', k % 1000, ' of district ', v) AS name"
_MULTIPLIERS = (2_654_435_761, 2_246_822_519)
"""Odd, so that no two numbers of as many bits have one product."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.spark_sql", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--runs", type=int, default=9, help="counted runs of each query")
    parser.add_argument("--warm", type=int, default=8, help="runs before, which are not counted: the JVM compiles")
    parser.add_argument(
        "--data", type=Path, help="where tables are made, and found by the next run; by default they go"
    )
    parser.add_argument("--results", type=Path, default=HERE / "results")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (wanted.data or Path(temporary)).resolve()
        spark = start(folder)
        try:
            if not (folder / "dimension").exists():
                make_tables(spark, folder, wanted.rows)
            for name in ("plain", "dimension"):
                spark.read.parquet(str(folder / name)).createOrReplaceTempView(name)
            lines = measure(spark, wanted.rows, wanted.runs, wanted.warm)
            names = measure_names(spark, wanted.rows, wanted.runs)
        finally:
            spark.stop()
    about = [
        f"{wanted.rows:,} rows; medians of {wanted.runs} runs in turn, after {wanted.warm} not counted. Ratios",
        "are how many times as fast as plain Parquet; the last is by CPU time of Spark and Python together.",
    ]
    page = ["# SQL in Spark, against plain Parquet", "", report.made_by("benchmarks.spark_sql"), *about, ""]
    report.page(wanted.results / "spark_sql.md", [*page, *report.grid(lines), "", "## Names", "", *report.grid(names)])


def start(folder: Path) -> SparkSession:
    os.environ |= report.environment()
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
    """The table ``fuse.t``, and the same rows as Parquet files in ``plain``; in ``dimension`` 10 keys, last."""
    bits, half = _bits(rows)
    numbers = spark.range(rows).selectExpr("id", f"id ^ (id >> {half}) AS k")
    for multiplier in _MULTIPLIERS:
        numbers = numbers.selectExpr("id", f"(k * {multiplier}L) & {bits} AS k").selectExpr(
            "id", f"k ^ (k >> {half}) AS k"
        )
    numbers = numbers.selectExpr("id", "k", "id % 977 AS v").selectExpr(*PAYLOAD.split(", ", 3))
    numbers.write.parquet(str(folder / "plain"))
    spark.sql("CREATE TABLE fuse.t (id BIGINT, k BIGINT, v BIGINT, name STRING) CLUSTER BY (id)")
    spark.read.parquet(str(folder / "plain")).writeTo("fuse.t").append()
    spark.sql("CREATE INDEX by_k ON fuse.t USING bloom (k)")
    keys = ", ".join(f"({key}L, 'd{key}')" for key in draw(rows, 10))
    spark.sql(f"SELECT * FROM VALUES {keys} AS d(key, what)").write.parquet(str(folder / "dimension"))


def draw(rows: int, count: int, seed: int = 5) -> list[int]:
    """Keys that there are: those of random ids.

    Every id has a key of its own, of as many bits, and neither differences of neighbours nor bounds of pages tell
    anything of the order: when k was a multiple of id, pages of 8,192 keys took 240 bytes.
    """
    bits, half = _bits(rows)
    ids = np.random.default_rng(seed).integers(0, rows, count)
    keys = ids ^ (ids >> half)
    for multiplier in _MULTIPLIERS:
        keys = (keys * multiplier) & bits
        keys ^= keys >> half
    return keys.tolist()


def _bits(rows: int) -> tuple[int, int]:
    """All bits of the numbers of so many rows, and half as many as they are."""
    count = (rows - 1).bit_length()
    return (1 << count) - 1, count // 2


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


def measure(spark: SparkSession, rows: int, runs: int, warm: int) -> list[Mapping[str, str]]:
    """A line for each query: what it takes of plain Parquet and of ours."""
    lines = []
    for name in queries(rows, 0):
        taken: dict[str, list[tuple[float, float]]] = {"plain": [], "fuse.t": []}
        for run in range(warm + runs):
            found = {}
            for table in ("plain", "fuse.t") if run % 2 else ("fuse.t", "plain"):
                query, started = queries(rows, run)[name].format(t=table), cpu_seconds(spark)
                found[table], seconds = timed(lambda query=query: spark.sql(query).collect())
                taken[table].append((seconds, cpu_seconds(spark) - started))
            if sorted(map(repr, found["plain"])) != sorted(map(repr, found["fuse.t"])):
                raise SystemExit(f"{name}: other rows than plain Parquet has: {queries(rows, run)[name]}")
        plain, ours, plain_cpu, our_cpu = (
            statistics.median(each[clock] for each in taken[table][warm:]) for clock in (0, 1) for table in taken
        )
        faster, bar = plain / ours, BARS.get(name)
        met = "" if bar is None else f"{bar:.2f}: {'met' if faster >= bar else 'missed'}"
        lines.append(
            {
                "query": name,
                "plain s": f"{plain:.3f}",
                "ours s": f"{ours:.3f}",
                "faster": f"{faster:.2f}",
                "bar": met,
                "by CPU": f"{plain_cpu / our_cpu:.2f}",
            }
        )
        print(" ".join(f"{each:<20}" for each in lines[-1].values()), flush=True)
    return lines


def measure_names(spark: SparkSession, rows: int, runs: int) -> list[Mapping[str, str]]:
    """What a name costs: to load it, and to look keys up by it, each of which nobody has asked for before."""
    load = statistics.median(timed(lambda: spark.table("fuse.t"))[1] for _ in range(20))
    location = spark.sql("DESCRIBE EXTENDED fuse.t").where("col_name = 'Location'").collect()[0].data_type
    fuse_spark.read(spark, location).createOrReplaceTempView("by_place")
    seconds: dict[str, list[float]] = {"fuse.t": [], "by_place": []}
    for run in range(8 * runs):
        name = ("fuse.t", "by_place")[(run + run // 2) % 2]
        query = queries(rows, 100 + run)["one key"].format(t=name)
        seconds[name].append(timed(lambda query=query: spark.sql(query).collect())[1])
    named, placed = (statistics.median(took[runs:]) for took in seconds.values())
    measured = [
        (
            "name to DataFrame, warm",
            load <= LOAD_BAR_SECONDS,
            f"{load * 1000:.1f} ms",
            f"{LOAD_BAR_SECONDS * 1000:.0f} ms",
        ),
        (
            f"one key by name ({named * 1000:.0f} ms), of what it takes by read ({placed * 1000:.0f} ms)",
            named <= NAMED_BAR * placed,
            f"{named / placed:.2f}",
            f"{NAMED_BAR}",
        ),
    ]
    print(*measured, sep="\n")
    return [
        {"what": what, "seen": seen, "bar": f"{bar}: {'met' if is_met else 'missed'}"}
        for what, is_met, seen, bar in measured
    ]


def timed(do: Callable[[], list[object]]) -> tuple[list[object], float]:
    started = time.perf_counter()
    result = do()
    return result, time.perf_counter() - started


if __name__ == "__main__":
    main()
