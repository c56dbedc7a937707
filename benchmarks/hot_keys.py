"""What a table with a primary key costs: reads that hide what the tail puts anew, lookups, tiering and its changelog.

Part of ``python -m benchmarks.hot``. A tail holds random keys, so that every block of the base has some of them.
Processor time is this process's, and in Spark the JVM's besides. Reads begin with nothing cached: they find out, too,
which rows the tail hides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import fuse_index as fuse
from benchmarks.hot import SCHEMA, Row, least_in_turn, make_rows
from fuse_storage import meter_requests, open_store, process_cache
from fuse_storage.metadata import encoding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PROPERTIES = {"tiering": "job", "block_rows": 1_000_000, "tail_rows": 100_000_000, "tail_commits": 1_000_000}
_KEYS, _FEW_KEYS = 100_000, 1_000
_LOOKUPS = 200
_HOURS, _COMMITS_AN_HOUR = 72, 6


class KeyedTable:
    """A table of ``rows`` rows and states of it, by the keys of their tails: random ones, and such as nobody has."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.url, self.rows, self.versions = str(folder / "keyed"), rows, dict[str, int]()
        table = fuse.create_table(self.url, SCHEMA, primary_key=["id"], properties=_PROPERTIES)
        table.create_index("by_id", "bloom", ["id"])
        for start in range(0, rows, 2_000_000):
            table.upsert(make_rows(start, min(2_000_000, rows - start)))
            table.maintenance.tier()
        keys = np.random.default_rng(0).choice(rows, _KEYS, replace=False)
        self.in_tail = keys
        empty = table.snapshot.id
        table.upsert(make_rows(rows, _KEYS))
        self.versions["100,000 keys that no block has"] = table.version
        table.restore(empty)
        table.upsert(make_rows_of(keys[:_FEW_KEYS]))
        self.versions["1,000 keys"] = table.version
        table.upsert(make_rows_of(keys[_FEW_KEYS:]))
        self.versions["100,000 keys"] = table.version

    def open(self, state: str, tail: bool = True) -> fuse.Table:
        """A state with its tail, or the base alone."""
        return fuse.open_table(self.url, version=self.versions[state], tail=tail)


def make_rows_of(keys: np.ndarray) -> pa.Table:
    """``keys``: int64, shape (rows,)."""
    return pa.table({"id": keys, "name": [f"new {number}" for number in keys.tolist()], "x": keys / 3}, SCHEMA)


def measure(folder: Path, rows: int, seconds: float) -> Iterable[Row]:
    """All of it; what needs Spark, for ``seconds`` each, unless that is 0."""
    yield from hot_bytes(folder)
    keyed = KeyedTable(folder, rows)
    yield from local_reads(keyed)
    yield from lookups(keyed)
    yield from tiering(folder, keyed)
    if seconds:
        from benchmarks import hot_spark

        with hot_spark.session() as spark:
            yield from hot_spark.keyed_reads(spark, keyed.url, keyed.versions)
            yield from changelog(spark, keyed, int(seconds), True, "≤ 15 s")
            yield from changelog(spark, keyed, int(seconds), False, "≤ 3 s")


def local_reads(keyed: KeyedTable) -> Iterable[Row]:
    for state, bar in (("1,000 keys", 1.2), ("100,000 keys", 1.6)):
        calls = [lambda tail=tail, state=state: keyed.open(state, tail).to_arrow("x > -1") for tail in (False, True)]
        base, union = least_in_turn(calls, time.process_time, before=process_cache.clear)
        again = least_in_turn(calls, time.process_time)
        result = f"{union / base:.2f} × ({union:.2f} s against {base:.2f} s); read again {again[1] / again[0]:.2f} ×"
        yield f"union read by a BIGINT key, {keyed.rows:,} rows, tail of {state}, local", result, f"≤ {bar} ×"


def lookups(keyed: KeyedTable) -> Iterable[Row]:
    table, among = keyed.open("100,000 keys"), set(keyed.in_tail.tolist())
    others = [key for key in np.random.default_rng(1).choice(keyed.rows, 2 * _LOOKUPS).tolist() if key not in among]
    for name, keys, bar in (("", others, 15), (" in the tail", keyed.in_tail.tolist(), 3)):
        took = []
        for key in keys[:_LOOKUPS]:
            started = time.perf_counter()
            found = table.lookup([key])
            took.append(time.perf_counter() - started)
            assert len(found) == 1
        p50, p95 = (1000 * float(each) for each in np.percentile(took[10:], [50, 95]))
        work = f"lookup of one key{name}, bloom on the key, tail of {_KEYS:,} keys, warm"
        yield work, f"p50 {p50:.1f} ms, p95 {p95:.1f} ms", f"≤ {bar} ms"


def tiering(folder: Path, keyed: KeyedTable) -> Iterable[Row]:
    """The tail becomes part of the base; and the same rows are merged into the same table without a primary key."""
    merged_url = str(folder / "merged")
    merged = fuse.create_table(merged_url, SCHEMA, ["id"], _PROPERTIES)
    merged.create_index("by_id", "bloom", ["id"])
    merged.append(keyed.open("100,000 keys", tail=False).to_arrow())
    source = make_rows_of(keyed.in_tail)
    costs = []
    for url in (merged_url, keyed.url):
        process_cache.clear()
        store = meter_requests(open_store(url))
        table = fuse.open_table(store)
        blocks = set(table.stored.without_tail().blocks().locations)
        started = time.process_time()
        if url == keyed.url:
            table.maintenance.tier()
        else:
            table.merge(source, ["id"])
        seconds = time.process_time() - started
        rewritten = len(blocks - set(table.stored.blocks().locations))
        costs.append((seconds, store.bytes_written, rewritten))
    (merge, merge_bytes, _), (tier, tier_bytes, rewritten) = costs
    work = f"tiering {_KEYS:,} random keys into {keyed.rows:,} rows, against merge"
    seconds = f"1/{merge / tier:.1f} of the processor time ({tier:.2f} s against {merge:.2f} s)"
    yield work, f"{seconds}, 1/{merge_bytes / tier_bytes:.0f} of the bytes", "≤ 1/4, ≤ 1/20"
    yield "blocks of the base that it rewrites", str(rewritten), "0"


def changelog(spark: SparkSession, keyed: KeyedTable, commits: int, preimages: bool, bar: str) -> Iterable[Row]:
    """Somebody puts 1,000 random keys a second, and a stream is told the changes of each commit."""
    table, random = fuse.open_table(keyed.url), np.random.default_rng(2)
    made, told = dict[int, float](), dict[int, float]()

    def note(batch: DataFrame, _: int) -> None:
        versions = [row[0] for row in batch.select("_commit_version").distinct().collect()]
        told.update(dict.fromkeys(versions, time.monotonic()))

    options = {"read_changes": "true", "preimages": str(preimages).lower(), "since": table.snapshot.id}
    changes = spark.readStream.format("fuse").options(**options).load(keyed.url)
    running = changes.writeStream.foreachBatch(note).trigger(processingTime="1 second").start()

    def put() -> int:
        return table.upsert(make_rows_of(random.choice(keyed.rows, 1_000, replace=False))).version

    first = put()
    _wait_until(lambda: first in told)  # a JVM and its Python workers start
    begun = time.monotonic()
    for second in range(commits):
        time.sleep(max(0.0, begun + second - time.monotonic()))
        made[put()] = time.monotonic()
    ends = _wait_until(lambda: made.keys() <= told.keys())
    running.stop()
    p50, p99 = np.percentile([told.get(version, ends) - moment for version, moment in made.items()], [50, 99])
    work = (
        f"changelog {'with' if preimages else 'without'} preimages, 1,000 random keys a second on {keyed.rows:,} rows"
    )
    yield f"{work}, {commits} s", f"p50 {p50:.1f} s, p99 {p99:.1f} s behind", bar


def _wait_until(is_done: Callable[[], bool]) -> float:
    """Wait, a minute at most; gives when it ended."""
    ends = time.monotonic() + 60
    while not is_done() and time.monotonic() < ends:
        time.sleep(0.1)
    return time.monotonic()


class _AgingStore:
    """A store, and a clock, that are told what time it is."""

    def __init__(self, store: Any) -> None:
        self.store, self.now = store, datetime(2026, 1, 1, tzinfo=UTC)
        self.modified = dict[str, datetime]()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.store, name)

    def create(self, key: str, data: bytes, overwrite: bool = False) -> None:
        self.store.create(key, data, overwrite)
        self.modified[key] = self.now

    def list(self, prefix: str = "") -> Iterator[Any]:
        return (replace(found, modified=self.modified[found.key]) for found in self.store.list(prefix))


def hot_bytes(folder: Path) -> Iterable[Row]:
    """Three days of hot commits, tiered each hour, with a vacuum after it."""
    store = _AgingStore(open_store(str(folder / "aged")))
    clock, encoding._clock = encoding._clock, lambda: store.now  # noqa: SLF001  # as tests put another in its place
    try:
        table = fuse.create_table(store, SCHEMA, ["id"], _PROPERTIES)
        for commit in range(_HOURS * _COMMITS_AN_HOUR):
            table.append(make_rows(1_000 * commit, 1_000), hot=True)
            store.now += timedelta(hours=1) / _COMMITS_AN_HOUR
            if commit % _COMMITS_AN_HOUR == _COMMITS_AN_HOUR - 1:
                table.maintenance.tier()
                table.maintenance.vacuum(hot_retention="6h", force=True, dry_run=False)
        sizes = {found.key: found.size for found in store.list()}
    finally:
        encoding._clock = clock  # noqa: SLF001
    hot = sum(size for key, size in sizes.items() if key.startswith("_h/"))
    share = f"1/{sum(sizes.values()) / hot:.1f} of all bytes ({hot / 1000:.0f} kB)"
    yield f"bytes of _h/ after {_HOURS} simulated hours, hot_retention=6h", share, "≤ 1/7"
