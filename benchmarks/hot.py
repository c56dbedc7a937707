"""What hot commits cost, how soon their rows are read, and what tiering takes: ``python -m benchmarks.hot``.

Requests and bytes are counted; commits a second are of processes on a local disk; the time from an event to a reader is
measured on a store to which 40 ms per create and 20 ms per read are added. Results go to ``benchmarks/results/hot.md``.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import fuse_index as fuse
from benchmarks import report
from fuse_storage import StoredTable, append_hot, meter_requests, open_store, process_cache

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("x", pa.float64())])
CREATE_SECONDS, READ_SECONDS = 0.04, 0.02
_ROUND_SECONDS = 0.5
"""Of a read, where rounds are counted: so much longer than all computing that its multiples are rounds."""
_WARM_UP_SECONDS = 3
"""Commits of the first seconds are not counted: who writes, and who reads, load what they need."""
PARTS = ["commits", "freshness", "reads", "keys"]
Row = tuple[str, str, str]


def make_rows(start: int, count: int = 100) -> pa.Table:
    ids = np.arange(start, start + count)
    return pa.table({"id": ids, "name": [f"name {number}" for number in ids.tolist()], "x": ids / 3}, SCHEMA)


class SlowStore:
    """A store that answers as late as one far away."""

    def __init__(self, store: Any, read_seconds: float = READ_SECONDS) -> None:
        self.store, self.read_seconds = store, read_seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def read(self, key: str) -> bytes:
        time.sleep(self.read_seconds)
        return bytes(self.store.read(key))

    def read_ranges(self, key: str, ranges: Any) -> list[bytes]:
        time.sleep(self.read_seconds)
        return list(self.store.read_ranges(key, ranges))

    def list(self, prefix: str = "") -> Iterator[Any]:
        time.sleep(self.read_seconds)
        return iter(self.store.list(prefix))

    def list_keys_after(self, key: str) -> Any:
        time.sleep(self.read_seconds)
        return self.store.list_keys_after(key)

    def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
        time.sleep(CREATE_SECONDS)
        self.store.create(key, data, overwrite)


def counted(folder: Path) -> Iterable[Row]:
    """Requests and bytes, which are the same on every machine."""
    store = meter_requests(open_store(str(folder / "counted")))
    head = append_hot(StoredTable.create(store, SCHEMA), make_rows(0))
    store.reset()
    append_hot(head, make_rows(100))
    creates = [key for _, key, _ in store.writes if not key.endswith("_hint")]  # which is written once a second
    cost = f"{len(creates)} creates, {len(store.reads)} reads, {store.bytes_written / 1000:.1f} kB"
    yield "hot commit of 100 rows × 3 columns, lone writer", cost, "2, 0, ≤ 3 kB"
    for number in range(2, 200):
        head = append_hot(head, make_rows(100 * number))
    process_cache.clear()
    store.reset()
    StoredTable.open(store).segments()
    reads = len(store.reads)
    process_cache.clear()
    started = time.monotonic()
    StoredTable.open(SlowStore(open_store(str(folder / "counted")), _ROUND_SECONDS)).segments()
    rounds = int((time.monotonic() - started) / _ROUND_SECONDS)
    yield "opening a head with 200 hot commits, nothing cached", f"{reads} reads in {rounds} rounds", "≤ 100, ≤ 8"


def commit_rates(folder: Path, seconds: float) -> Iterable[Row]:
    """Commits a second of processes on a local disk, hot and ordinary."""
    for writers in (1, 4, 8):
        rates = {hot: _rate(folder / f"rate-{writers}-{hot}", writers, seconds, hot) for hot in (True, False)}
        result = f"{rates[True]:.0f} against {rates[False]:.0f}: {rates[True] / rates[False]:.1f} ×"
        yield f"commits a second, local disk, {writers} writers, hot against ordinary", result, "≥ 3 ×"


def _rate(url: Path, writers: int, seconds: float, hot: bool) -> float:
    fuse.create_table(str(url), SCHEMA, properties={"tiering": "job", "tail_commits": 1_000_000})
    command = [sys.executable, "-m", "benchmarks.hot", "--worker", str(url), "--seconds", str(seconds)]
    command += ["--ordinary"] * (not hot)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(writers)]  # type: ignore[call-overload]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    commits = sum(int(process.communicate()[0]) for process in processes)
    found, expected = fuse.open_table(str(url)).count(), 100 * commits
    assert found == expected, f"{found} rows are there, and {expected} were acknowledged"
    return commits / seconds


def work(url: str, seconds: float, hot: bool) -> None:
    """One writer: says that it is ready, waits to be told, and then says how many commits it made."""
    table = fuse.open_table(url)
    print("ready", flush=True)
    sys.stdin.readline()
    commits, ends = 0, time.monotonic() + seconds
    while time.monotonic() < ends:
        table.append(make_rows(commits), hot=hot)
        commits += 1
    print(commits)


def freshness(folder: Path, seconds: float, writers: int, bar: str) -> Iterable[Row]:
    """From the event to a reader that refreshes all the time, in seconds."""
    url = str(folder / f"fresh-{writers}")
    fuse.create_table(url, SCHEMA, properties={"hot_rows": 100, "tiering": "job", "tail_commits": 1_000_000})
    events, seen, stop = dict[int, float](), dict[int, float](), threading.Event()

    def write(number: int) -> None:
        table = fuse.open_table(SlowStore(open_store(url)))
        for second in range(_WARM_UP_SECONDS + int(seconds)):
            time.sleep(max(0.0, begun + second + number / writers - time.monotonic()))
            name = number * 1_000_000 + second * 100
            events[name] = time.monotonic()
            table.append(make_rows(name))

    def read() -> None:
        table = fuse.open_table(SlowStore(open_store(url)))
        while not stop.is_set():
            rows = table.refresh().snapshot.row_count
            now = time.monotonic()
            if rows > 100 * len(seen):
                waits = ", ".join(str(name) for name in list(events) if name not in seen)
                found = table.to_arrow(f"id IN ({waits})", ["id"]).column("id").to_pylist()
                seen.update({name: now for name in found if name not in seen})

    begun = time.monotonic() + 1
    threads = [threading.Thread(target=write, args=(number,)) for number in range(writers)]
    reader = threading.Thread(target=read)
    for thread in (reader, *threads):
        thread.start()
    for thread in threads:
        thread.join()
    ends = time.monotonic() + 60
    while len(seen) < len(events) and time.monotonic() < ends:
        time.sleep(0.05)
    stop.set()
    reader.join()
    measured = [name for name in events if name % 1_000_000 >= 100 * _WARM_UP_SECONDS]
    took = sorted(seen[name] - events[name] for name in measured)
    p99 = took[min(int(len(took) * 0.99), len(took) - 1)]
    result = f"p50 {statistics.median(took):.2f} s, p99 {p99:.2f} s of {len(took)} commits"
    yield f"event to union read, 40 ms and 20 ms injected, {writers} writers × 1 a second, {seconds:g} s", result, bar


def union_reads(folder: Path, rows: int, fresh_seconds: float) -> Iterable[Row]:
    """The same rows with a tail of 64 commits of 1,000, and tiered; and what tiering takes against an append.

    Then the same in Spark, and ``fresh_seconds`` of a stream.
    """
    url, limits = str(folder / "union"), {"tiering": "job", "block_rows": 1_000_000}
    table = fuse.create_table(url, SCHEMA, ["id"], limits)
    table.append(make_rows(0, rows))
    for commit in range(64):
        table.append(make_rows(rows + 1_000 * commit, 1_000), hot=True)
    version = table.version
    started = time.process_time()
    table.maintenance.tier()
    tiering = time.process_time() - started
    fresh = fuse.create_table(str(folder / "appended"), SCHEMA, ["id"], limits)
    started = time.process_time()
    fresh.append(make_rows(rows, 64_000))
    appending = time.process_time() - started
    hot, tiered = fuse.open_table(url, version=version), fuse.open_table(url)
    times = least_in_turn([lambda each=each: each.to_arrow("x > -1") for each in (hot, tiered)], time.process_time)
    yield (
        f"union read, {rows:,} rows + 64 commits of 1,000, local, against tiered",
        f"{times[0] / times[1]:.2f} ×",
        "≤ 1.15 ×",
    )
    kept = hot.explain(f"id < {rows // 2}").to_dict()["tail"]["kept"]
    yield "hot blocks opened where statistics rule them out", str(kept), "0"
    yield "tiering 64,000 rows, rate against an append of them", f"{appending / tiering:.2f} ×", "≥ 0.8 ×"
    if fresh_seconds:
        from benchmarks import hot_spark  # not in the workers, which import this module

        with hot_spark.session() as spark:
            yield from hot_spark.union_read_in_spark(spark, url, version)
            yield from hot_spark.deletion_vectors(spark, folder, make_rows(0, rows))
            yield from hot_spark.stream_freshness(spark, folder, fresh_seconds)


def least_in_turn(
    calls: list[Callable[[], object]],
    clock: Callable[[], float],
    before: Callable[[], object] = lambda: None,
    rounds: int = 8,
) -> list[float]:
    """The least of some times of each, taken in turn: what else the machine does falls on all of them.

    Those of the first two rounds are not counted, in which what is used for the first time gets ready.
    """
    times: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for call, taken in zip(calls, times, strict=True):
            before()
            started = clock()
            call()
            taken.append(clock() - started)
    return [min(taken[2:]) for taken in times]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=5.0, help="for each measurement of commits a second")
    parser.add_argument("--fresh-seconds", type=float, default=60.0)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS, help="all: the page is written")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--ordinary", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return work(options.worker, options.seconds, not options.ordinary)
    from benchmarks import hot_keys  # which imports this module

    lines = ["# Hot commits", "", report.made_by("benchmarks.hot"), ""]
    lines += ["| work | measured | bar |", "|---|---|---|"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts = {
            "commits": lambda: chain(counted(folder), commit_rates(folder, options.seconds)),
            "freshness": lambda: chain(
                freshness(folder, options.fresh_seconds, 1, "p99 ≤ 0.4 s"),
                freshness(folder, options.fresh_seconds, 8, "p50 ≤ 0.6 s, p99 ≤ 2 s"),
            ),
            "reads": lambda: union_reads(folder, options.rows, options.fresh_seconds),
            "keys": lambda: hot_keys.measure(folder, options.rows, options.fresh_seconds / 2),
        }
        for part in options.parts:
            for row in parts[part]():
                lines.append("| " + " | ".join(row) + " |")
                print(*row, sep="  |  ", flush=True)
            shutil.rmtree(folder)
            folder.mkdir()
    if options.parts == PARTS:
        report.page(Path(__file__).parent / "results" / "hot.md", lines)
    return None


if __name__ == "__main__":
    main()
