"""What a server adds: lookups by Spark Connect beside classic ones, the first statement of a session, and what is kept.

``python -m benchmarks.serve --rows 1000000 --sessions 200``. The client is a process of its own without a JVM; classic
lookups and those by Connect take turns, and each figure is the median of them. Bytes are the JVM's heap after
collections, and this process's resident memory.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.spark import Server

_PAIRS = 30
_LOOKUP = "SELECT * FROM fuse.db.t WHERE name = 'n{}'"
_SHOW = "SHOW NAMESPACES IN fuse"


def _milliseconds(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def client(url: str) -> None:
    """Run statements, a line of JSON each, and print how long each took; an empty one begins a new session."""
    spark = SparkSession.builder.remote(url).create()
    for line in sys.stdin:
        statement = json.loads(line)
        if not statement:
            spark.stop()
            spark = SparkSession.builder.remote(url).create()
            statement = _SHOW
        session = spark
        print(_milliseconds(lambda session=session, text=statement: session.sql(text).collect()), flush=True)  # type: ignore[misc]


def measure(rows: int, sessions: int) -> None:
    """Print the figures, a line each."""
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        warehouse = fuse.catalog(Path(folder) / "warehouse", create=True)
        warehouse.create_namespace("db")
        table = warehouse.create_table("db.t", "id BIGINT, name STRING", properties={"block_rows": max(rows // 100, 1)})
        table.create_index("by_name", "bloom", ["name"])
        table.append([{"id": number, "name": f"n{number}"} for number in range(rows)])
        with fuse_spark.serve(spark, warehouse.url, fuse_spark.Endpoints(connect=0)) as server:
            command = [sys.executable, "-m", "benchmarks.serve", "--client", str(server.connect)]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
                _compare(spark, process, rows)
                _churn(spark, server, process, sessions)
                process.terminate()


def _ask(process: subprocess.Popen[str], statement: str) -> float:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(statement) + "\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def _compare(spark: SparkSession, process: subprocess.Popen[str], rows: int) -> None:
    taken: dict[str, list[float]] = {"classic SELECT 1": [], "SELECT 1": [], "classic lookup": [], "lookup": []}
    for number in range(_PAIRS):
        lookup = _LOOKUP.format(number * 7919 % rows)
        for name, statement in (("SELECT 1", "SELECT 1"), ("lookup", lookup)):
            taken[f"classic {name}"].append(_milliseconds(spark.sql(statement).collect))
            taken[name].append(_ask(process, statement))
    median = {name: statistics.median(times[5:]) for name, times in taken.items()}  # the first ones compile
    for name, value in median.items():
        print(f"{name:18} {value:8.1f} ms")
    added = median["SELECT 1"] - median["classic SELECT 1"]
    times = (median["lookup"] - added) / median["classic lookup"]
    print(f"lookup by Connect, without what SELECT 1 adds: {times:.2f} times a classic one")


def _churn(spark: SparkSession, server: Server, process: subprocess.Popen[str], sessions: int) -> None:
    firsts = [_ask(process, "") for _ in range(20)]
    seconds = [_ask(process, _SHOW) for _ in range(20)]
    print(f"first statement of a session {statistics.median(firsts):.1f} ms, next {statistics.median(seconds):.1f} ms")
    before = _memory(spark, server)
    for _ in range(sessions):
        _ask(process, "")
    after = _memory(spark, server)
    for name, value in before.items():
        print(f"{name:28} {value:14,} before, {after[name]:14,} after {sessions} sessions")


def _memory(spark: SparkSession, server: Server) -> dict[str, int]:
    """Numbers and bytes after collections."""
    runtime: Any = spark.sparkContext._jvm.java.lang.Runtime.getRuntime()
    for _ in range(3):
        runtime.gc()
        time.sleep(1)
        server.check()
    return {
        "sessions": server.check()["sessions"],
        "bytes of the JVM's heap": runtime.totalMemory() - runtime.freeMemory(),
        "bytes of Python at most": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--client", metavar="URL", help="be the client, which takes statements from standard input")
    given = parser.parse_args()
    client(given.client) if given.client else measure(given.rows, given.sessions)
