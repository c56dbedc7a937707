"""What a server adds: lookups by Spark Connect beside classic ones, the first statement of a session, and what is kept.

``python -m benchmarks.serve --rows 1000000 --sessions 200 --minutes 60``: so many sessions one after the other, then
for so many minutes 50 at once, of which eight ask at a time, each a few times before another takes its place. The
client is a process of its own without a JVM; classic lookups and those by Connect take turns, and each figure is the
median of them. Bytes are the JVM's heap after collections, and this process's resident memory.
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
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any

from pyspark.sql import SparkSession

import fuse_index as fuse
from fuse_index import spark as fuse_spark
from fuse_index.spark import Server
from fuse_index.spark.server.address import Address
from fuse_index.spark.server.connect import ConnectServer

_PAIRS = 30
_CROWD, _AT_ONCE, _LOOKUPS_OF_A_VISIT = 50, 8, 20
_LOOKUP = "SELECT * FROM fuse.db.t WHERE name = 'n{}'"
_FIRST = "SELECT 1"
_FIRSTS = 30


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
            statement = _FIRST
        session = spark
        print(_milliseconds(lambda session=session, text=statement: session.sql(text).collect()), flush=True)  # type: ignore[misc]


def crowd(url: str, rows: int, minutes: float) -> None:
    """Print how many lookups sessions that come and go had answered, and the first answers that were wrong."""
    ends, at_once = time.monotonic() + 60 * minutes, BoundedSemaphore(_AT_ONCE)

    def visit(number: int) -> tuple[int, list[str]]:
        asked, wrong = 0, list[str]()
        while time.monotonic() < ends and not wrong:
            spark = SparkSession.builder.remote(url).create()
            for _ in range(_LOOKUPS_OF_A_VISIT):
                number = (number * 7919 + 1) % rows
                with at_once:
                    found = [row.id for row in spark.sql(_LOOKUP.format(number)).collect()]
                asked += 1
                if found != [number]:
                    wrong.append(f"{number}: {found}")
            spark.stop()
        return asked, wrong

    with ThreadPoolExecutor(_CROWD) as threads:
        told = list(threads.map(visit, range(_CROWD)))
    print(
        json.dumps({"lookups": sum(asked for asked, _ in told), "wrong": [each for _, wrong in told for each in wrong]})
    )


def measure(rows: int, sessions: int, minutes: float) -> None:
    """Print the figures, a line each."""
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        warehouse = fuse.catalog(Path(folder) / "warehouse", create=True)
        warehouse.create_namespace("db")
        table = warehouse.create_table("db.t", "id BIGINT, name STRING", properties={"block_rows": max(rows // 100, 1)})
        table.create_index("by_name", "bloom", ["name"])
        table.append([{"id": number, "name": f"n{number}"} for number in range(rows)])
        # A server without us, of which the same server is made by the hook alone.
        connect = ConnectServer(spark, Address("127.0.0.1", 0), fuse_spark.Endpoints())
        command = [sys.executable, "-m", "benchmarks.serve", "--client", connect.url]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            without = [_ask(process, "") for _ in range(_FIRSTS)]
            server = Server(spark, fuse_spark.install_in_new_sessions(spark, warehouse.url), connect, None)
            _churn(spark, server, process, sessions, without)
            _compare(spark, process, rows)
            process.terminate()
        if minutes:
            _crowd(spark, server, rows, minutes)
        server.stop()


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
    bar = median["classic lookup"] + median["SELECT 1"]
    print(f"lookup by Connect: {median['lookup'] / bar:.2f} times a classic one and SELECT 1 by Connect (bar: 1.3)")


def _churn(
    spark: SparkSession, server: Server, process: subprocess.Popen[str], sessions: int, without: Sequence[float]
) -> None:
    """``without``: how long the first statements of sessions took that had nothing of ours."""
    firsts = [_ask(process, "") for _ in range(_FIRSTS)]
    warm, before_us = statistics.median(firsts[5:]), statistics.median(without[5:])
    print(f"first statement of a session {warm:.1f} ms, without us {before_us:.1f} ms (bar: 300 ms more)")
    before = _memory(spark, server)
    for _ in range(sessions):
        _ask(process, "")
    _print_memory(before, _memory(spark, server), f"{sessions} sessions")


def _crowd(spark: SparkSession, server: Server, rows: int, minutes: float) -> None:
    before = _memory(spark, server)
    command = [sys.executable, "-m", "benchmarks.serve", "--crowd", str(server.connect)]
    command += ["--rows", str(rows), "--minutes", str(minutes)]
    print(f"{_CROWD} sessions, {_AT_ONCE} asking at once, {minutes:g} minutes:")
    print(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip())
    _print_memory(before, _memory(spark, server), f"{minutes:g} minutes")


def _print_memory(before: dict[str, int], after: dict[str, int], what: str) -> None:
    for name, value in before.items():
        print(f"{name:28} {value:14,} before, {after[name]:14,} after {what}")


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
    parser.add_argument("--minutes", type=float, default=0, help="of many sessions at once")
    parser.add_argument("--crowd", metavar="URL", help="be these sessions, and tell what they were answered")
    parser.add_argument("--client", metavar="URL", help="be the client, which takes statements from standard input")
    given = parser.parse_args()
    if given.client:
        client(given.client)
    elif given.crowd:
        crowd(given.crowd, given.rows, given.minutes)
    else:
        measure(given.rows, given.sessions, given.minutes)
