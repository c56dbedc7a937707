"""Full text: how fast lines are indexed, how large that is, and what one word costs: ``python -m benchmarks.full_text
--rows N``.

Beside it ClickHouse (chdb) with its own text index, and Spark's LIKE on the same rows as Parquet, where they are
installed. Cold reads go through an S3 server on this machine (moto), whose requests and bytes are counted. Prints
Markdown.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fuse_index as fuse
from benchmarks import report
from fuse_plugins.full_text import FullText, FullTextOptions
from fuse_storage import StoredTable, meter_requests, process_cache

RARE, COMMON = "needleword", "refund"
PIECE = 100_000


def lines(rows: int, first: int, seed: int = 7) -> pa.Array:
    """Made-up lines of a log: five templates, random numbers, users by Zipf's law; a rare word in one line of
    100,000.
    """
    random = np.random.default_rng((seed, first))
    ids, sizes, times = (random.integers(10**5, high, rows).tolist() for high in (10**9, 10**6, 10**6))
    users, kinds = (
        (random.zipf(1.3, rows) % 50_000).tolist(),
        random.choice(5, rows, p=[0.4, 0.3, 0.15, 0.1, 0.05]).tolist(),
    )
    templates: list[Callable[[int], str]] = [
        lambda i: (
            f"INFO dfs.DataNode: Received block blk_{ids[i]} of size {sizes[i]} from "
            f"/10.251.{ids[i] % 251}.{sizes[i] % 253}"
        ),
        lambda i: f"INFO http.Server: GET /api/v1/users/{users[i]}/orders 200 in {times[i] % 5000} ms",
        lambda i: f"WARN scheduler.Queue: task {ids[i]} waited {times[i] % 5000} ms for worker-{ids[i] % 256}",
        lambda i: f"DEBUG cache.Store: miss for key user:{users[i]}",
        lambda i: f"ERROR payment.Gateway: refund for user {users[i]} failed: timeout after {times[i] % 5000} ms",
    ]
    return pa.array(
        [templates[kinds[i]](i) + (f" {RARE}" if (first + i) % 100_000 == 777 else "") for i in range(rows)]
    )


def sentences(rows: int, seed: int = 7) -> pa.Array:
    """Made-up sentences of 6 to 18 words, by Zipf's law out of 50,000; no numbers."""
    random = np.random.default_rng(seed)
    letters = random.choice(list("aaabcddeeeeefghhiiijklmmnnnooopqrrrsssttttuuvwxyz"), (100_000, 10))
    words = ("".join(word[:size]) for word, size in zip(letters, random.integers(2, 11, len(letters)), strict=True))
    known = list(dict.fromkeys(words))[:50_000]
    odds = 1 / np.arange(1, len(known) + 1)
    sizes = random.integers(6, 19, rows)
    chosen = np.array(known)[random.choice(len(known), sizes.sum(), p=odds / odds.sum())]
    return pa.array([" ".join(words) for words in np.split(chosen, np.cumsum(sizes)[:-1])])


def pieces(rows: int) -> Iterator[pa.Table]:
    for first in range(0, rows, PIECE):
        count = min(PIECE, rows - first)
        yield pa.table({"id": np.arange(first, first + count), "body": lines(count, first)})


def timed(work: Callable[[], Any], runs: int) -> tuple[float, float, Any]:
    """The first run's seconds, the median of the others', and the answer."""
    seconds, answer = [], None
    for _ in range(runs + 1):
        started = time.perf_counter()
        answer = work()
        seconds.append(time.perf_counter() - started)
    return seconds[0], statistics.median(seconds[1:]), answer


def build(rows: int) -> list[str]:
    """Of one block in this process, by its own CPU time, so that what else runs does not count."""
    said = []
    for name, texts in (("lines of a log", lines(rows, 0)), ("sentences", sentences(rows))):
        body = pa.table([texts], names=["0"])
        column = pa.BufferOutputStream()
        pq.write_table(
            body, column, compression="zstd", compression_level=1, use_dictionary=False, row_group_size=65_536
        )
        for positions in (False, True):
            started = time.process_time()
            sidecar = FullText().build(body, np.array([0, rows]), FullTextOptions(positions=positions))
            seconds = time.process_time() - started
            assert sidecar.payload is not None
            what = "with positions" if positions else "without positions"
            size = len(sidecar.payload) / column.getvalue().size
            said.append(
                f"| {rows:,} {name}, {what} | {rows / seconds:,.0f} a second of CPU | {size:.2f} x the column |"
            )
    return said


def ours(folder: Path, rows: int, runs: int) -> list[str]:
    table = fuse.create_table(str(folder / "fuse"), "id BIGINT, body STRING", properties={"block_rows": 1_000_000})
    table.create_index("words", "full_text", ["body"])
    started = time.perf_counter()
    table.append(folder / "lines.parquet")
    said = [f"| fuse-index | ingest with the index | {rows / (time.perf_counter() - started):,.0f} rows/s | |"]
    for word in (RARE, COMMON):
        first, median, count = timed(lambda word=word: table.scan(f"match(body, '{word}')").count(), runs)  # type: ignore[misc]
        said.append(
            f"| fuse-index | count of `{word}` ({count:,}) | {median * 1000:.1f} ms | first {first * 1000:.0f} ms |"
        )
    first, median, _ = timed(lambda: table.search("body", f"{RARE} timeout", 10, select=["id"]), runs)
    return [
        *said,
        f"| fuse-index | ten best of `{RARE} timeout` | {median * 1000:.1f} ms | first {first * 1000:.0f} ms |",
    ]


def clickhouse(folder: Path, rows: int, runs: int) -> list[str]:
    from chdb import session

    source = folder / "lines.parquet"
    clicks = session.Session(str(folder / "clickhouse"))
    clicks.query("SET allow_experimental_full_text_index = 1")
    clicks.query("CREATE DATABASE b ENGINE = Atomic")
    index = "INDEX words body TYPE text(tokenizer = 'splitByNonAlpha')"
    clicks.query(f"CREATE TABLE b.t (id Int64, body String, {index}) ENGINE = MergeTree ORDER BY id")
    started = time.perf_counter()
    clicks.query(f"INSERT INTO b.t SELECT * FROM file('{source}', Parquet)")
    said = [f"| ClickHouse | ingest with its text index | {rows / (time.perf_counter() - started):,.0f} rows/s | |"]
    for word in (RARE, COMMON):
        ask = f"SELECT count() FROM b.t WHERE hasToken(body, '{word}')"
        first, median, answer = timed(lambda ask=ask: str(clicks.query(ask)).strip(), runs)  # type: ignore[misc]
        said.append(
            f"| ClickHouse | count of `{word}` ({answer}) | {median * 1000:.1f} ms | first {first * 1000:.0f} ms |"
        )
    return said


def spark(folder: Path, rows: int, runs: int) -> list[str]:
    from pyspark.sql import SparkSession

    from fuse_index import spark as fuse_spark

    os.environ |= report.environment()
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    session = builder.config("spark.ui.showConsoleProgress", False).getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    fuse_spark.install(session)
    session.read.parquet(str(folder / "lines.parquet")).createOrReplaceTempView("plain")
    fuse_spark.read(session, str(folder / "fuse")).createOrReplaceTempView("indexed")
    said = []
    for name, ask in (
        ("LIKE on Parquet", f"SELECT count(*) FROM plain WHERE body LIKE '%{RARE}%'"),
        ("match() on the table", f"SELECT count(*) FROM indexed WHERE match(body, '{RARE}')"),
    ):
        first, median, answer = timed(lambda ask=ask: session.sql(ask).collect()[0][0], runs)  # type: ignore[misc]
        said.append(f"| Spark | {name}, `{RARE}` ({answer:,}) | {median * 1000:.0f} ms | first {first * 1000:.0f} ms |")
    session.stop()
    return said


def cold(rows: int) -> list[str]:
    """A word that is there once in 100,000 lines, from S3, with nothing in memory: beside reading the column for
    LIKE.
    """
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    client = boto3.client(
        "s3", endpoint_url=url, aws_access_key_id="a", aws_secret_access_key="b", region_name="us-east-1"
    )
    client.create_bucket(Bucket="cold")
    options = {
        "endpoint": url,
        "access_key_id": "a",
        "secret_access_key": "b",
        "region": "us-east-1",
        "allow_http": "true",
    }
    table = fuse.create_table("s3://cold/t", "id BIGINT, body STRING", options=options)
    table.create_index("words", "full_text", ["body"])
    table.append(
        pa.RecordBatchReader.from_batches(
            next(pieces(1)).schema, (b for piece in pieces(rows) for b in piece.to_batches())
        )
    )
    said = []
    for what, where in (("match()", f"match(body, '{RARE}')"), ("LIKE", f"body LIKE '%{RARE}%'")):
        store = meter_requests(table.stored.store)
        process_cache.clear()
        started = time.perf_counter()
        count = fuse.Table(StoredTable.open(store), table.host).scan(where, ["id", "body"]).to_arrow().num_rows
        seconds = time.perf_counter() - started
        said.append(
            f"| {what}, {count} rows | {seconds * 1000:.0f} ms | {store.request_count} | {store.bytes_read:,} |"
        )
    server.stop()
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=5)
    chosen = parser.parse_args()
    print(f"## {chosen.rows:,} lines\n\n| what | rate | payload |\n|---|---|---|")
    print("\n".join(build(min(chosen.rows, 1_000_000))), flush=True)
    print("\n| engine | work | time (median, warm) | |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with pq.ParquetWriter(folder / "lines.parquet", next(pieces(1)).schema) as writer:
            for piece in pieces(chosen.rows):
                writer.write_table(piece)
        print("\n".join(ours(folder, chosen.rows, chosen.runs)), flush=True)
        if find_spec("moto"):
            print("\n| cold, from S3 | time | requests | bytes |\n|---|---|---|---|")
            print("\n".join(cold(chosen.rows)), flush=True)
        print("\n| engine | work | time (median, warm) | |\n|---|---|---|---|")
        if find_spec("chdb"):
            print("\n".join(clickhouse(folder, chosen.rows, chosen.runs)), flush=True)
        if find_spec("pyspark"):
            print("\n".join(spark(folder, chosen.rows, chosen.runs)), flush=True)


if __name__ == "__main__":
    main()
