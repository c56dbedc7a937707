"""What hot rows cost Spark: the union read against the same rows tiered, and the time from a stream to a reader.

Part of ``python -m benchmarks.hot``. Processor time is the JVM's own, which does all of a native scan.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
from benchmarks import report
from benchmarks.hot import Row, least_in_turn
from fuse_index import spark as fuse_spark
from fuse_storage import process_cache

_WARM_UP_SECONDS = 20
"""Events of the first seconds are not counted: a JVM and its Python workers start."""


@contextmanager
def session() -> Iterator[SparkSession]:
    os.environ |= report.environment()
    builder = SparkSession.builder.master("local[2]").config("spark.driver.memory", "3g")
    spark = builder.config("spark.ui.enabled", False).config("spark.driver.host", "127.0.0.1").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    fuse_spark.install(spark)
    try:
        yield spark
    finally:
        spark.stop()


def union_read_in_spark(spark: SparkSession, url: str, version: int) -> Iterable[Row]:
    """The table at a version that has a tail, and as it is now, tiered."""
    frames = [fuse_spark.read(spark, url, version=version), fuse_spark.read(spark, url)]
    times = _scan_in_turn(spark, [partial(frame.where, "x > -1") for frame in frames])
    result = f"{times[0] / times[1]:.2f} × ({times[0]:.2f} s against {times[1]:.2f} s of processor time)"
    yield "union read, Spark, against tiered", result, "≤ 1.1 ×"


def deletion_vectors(spark: SparkSession, folder: Path, rows: pa.Table) -> Iterable[Row]:
    """A full scan of a table of which one row in a hundred is deleted, in every block, and of the same without."""
    urls = [str(folder / name) for name in ("whole", "vectors")]
    for url in urls:
        fuse.create_table(url, rows.schema, properties={"delete_mode": "merge-on-read"}).append(rows)
    fuse.open_table(urls[1]).merge(rows.select(["id"]).take(pa.array(range(0, len(rows), 100))), ["id"], "delete", None)
    blocks = fuse.open_table(urls[1]).stored.blocks()
    assert not blocks.has_all_rows.any(), "every block has a vector"
    frames = [fuse_spark.read(spark, url) for url in urls]
    times = _scan_in_turn(spark, [partial(frame.select, "*") for frame in frames])
    result = f"{times[1] / times[0]:.2f} × ({times[1]:.2f} s against {times[0]:.2f} s of processor time)"
    yield (
        f"a deletion vector of 1 % in each of {len(blocks)} blocks, full scan in Spark, against without",
        result,
        "≤ 1.3 ×",
    )


def keyed_reads(spark: SparkSession, url: str, versions: Mapping[str, int]) -> Iterable[Row]:
    """States of a table with a primary key, by the keys of their tails; finding out what these hide is counted, too."""
    rows = fuse.open_table(url, version=min(versions.values()), tail=False).count()
    for (keys, version), bar in zip(versions.items(), ("1.2", "1.2", "2.2"), strict=True):

        def read(tail: bool, version: int = version) -> DataFrame:
            return fuse_spark.read(spark, url, version=version, tail=tail).where("x > -1")

        base, union = _scan_in_turn(spark, [partial(read, False), partial(read, True)], process_cache.clear, 6)
        again = _scan_in_turn(spark, [partial(read, False), partial(read, True)], rounds=5)
        result = f"{union / base:.2f} × ({union:.2f} s against {base:.2f} s); read again {again[1] / again[0]:.2f} ×"
        yield f"union read by a BIGINT key, {rows:,} rows, tail of {keys}, Spark", result, f"≤ {bar} ×"


def _scan_in_turn(
    spark: SparkSession,
    frames: list[Callable[[], DataFrame]],
    before: Callable[[], object] = lambda: None,
    rounds: int = 8,
) -> list[float]:
    """Least seconds of processor time, of the JVM and of this process, for all columns of each frame."""
    pid = spark._jvm.java.lang.ProcessHandle.current().pid()

    def scan(frame: Callable[[], DataFrame]) -> None:
        frame().write.format("noop").mode("overwrite").save()

    clock = lambda: _cpu_seconds(pid) + time.process_time()  # noqa: E731
    return least_in_turn([partial(scan, frame) for frame in frames], clock, before, rounds)


def stream_freshness(spark: SparkSession, folder: Path, seconds: float) -> Iterable[Row]:
    """From an event of Spark's rate source to a fresh read that has it; a stream with a trigger of 1 s writes it."""
    url, seen, stop = str(folder / "streamed"), list[float](), threading.Event()
    fuse.create_table(url, "timestamp TIMESTAMP, value BIGINT", properties={"hot_rows": 1000})
    events = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    query = events.writeStream.format("fuse").option("checkpointLocation", str(folder / "checkpoint"))
    running = query.trigger(processingTime="1 second").start(url)

    def read() -> None:
        last = -1
        while not stop.is_set():
            rows = fuse_spark.read(spark, url).where(f"value > {last}").collect()
            now = time.time()
            if now - begun > _WARM_UP_SECONDS:
                seen.extend(now - row.timestamp.timestamp() for row in rows)
            last = max([last, *(row.value for row in rows)])
            time.sleep(0.05)

    begun = time.time()
    reader = threading.Thread(target=read)
    reader.start()
    time.sleep(_WARM_UP_SECONDS + seconds)
    stop.set()
    reader.join()
    running.stop()
    took = sorted(seen)
    p50, p99 = took[len(took) // 2], took[min(int(len(took) * 0.99), len(took) - 1)]
    result = f"p50 {p50:.1f} s, p99 {p99:.1f} s of {len(took)} events"
    yield f"writeStream, trigger 1 s, to a fresh fuse_spark.read, {seconds:g} s", result, "p99 ≤ 3 s"


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
