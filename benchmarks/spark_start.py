"""What a session of Spark pays for us when it begins: ``python -m benchmarks.spark_start --runs 5``.

Pairs of sessions, each with a JVM of its own. One compiles our Java classes, the other takes them from the jar that the
first left beside Python's bytecode. Prints seconds, and processor seconds of the JVM, of ``fuse_spark.install``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any


def main() -> None:
    """Print the medians of both, and what they are of each other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    pairs = [run_pair() for _ in range(parser.parse_args().runs)]
    for number, unit in enumerate(("seconds", "processor seconds of the JVM")):
        compiled, taken = (statistics.median(run[number] for run in side) for side in zip(*pairs, strict=True))
        print(f"{unit}: {compiled:.2f} compiled, {taken:.2f} from the jar, 1 : {compiled / taken:.1f}")


def run_pair() -> tuple[list[float], list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"PYTHONPYCACHEPREFIX": folder, "PYTHONDONTWRITEBYTECODE": ""}
        command = [sys.executable, "-m", "benchmarks.spark_start", "session"]
        done = [subprocess.run(command, env=environment, check=True, capture_output=True, text=True) for _ in range(2)]
    compiled, taken = (json.loads(each.stdout.splitlines()[-1]) for each in done)
    return compiled, taken


def session() -> None:
    """A session that has answered a query, and has us from then on."""
    from pyspark.sql import SparkSession

    from fuse_index import spark as fuse_spark

    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.range(3).collect()
    processor, begun = processor_seconds(spark.sparkContext._jvm), time.perf_counter()
    fuse_spark.install(spark)
    print(json.dumps([time.perf_counter() - begun, processor_seconds(spark.sparkContext._jvm) - processor]))


def processor_seconds(jvm: Any) -> float:
    """What a JVM has used of the processors until now."""
    return float(jvm.java.lang.ProcessHandle.current().info().totalCpuDuration().get().toMillis()) / 1000


if __name__ == "__main__":
    session() if sys.argv[1:] == ["session"] else main()
