"""What an index on JSON paths is worth: ``python -m benchmarks.json_path --documents 1000000``.

Documents of 1 kB: how fast they are indexed at five paths; what Spark takes to find a few of them in plain Parquet, in
a table of ours without its index, and with it; and what a first lookup reads from S3 (a local server), with and
without. Answers are compared. Results go to ``benchmarks/results/json_path.md``.
"""

from __future__ import annotations

import argparse
import logging
import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import fuse_index as fuse
from benchmarks import report
from fuse_index import spark as fuse_spark
from fuse_plugins.json_path import JsonPathOptions, JsonPaths
from fuse_storage import StoredTable, meter_requests, process_cache

HERE = Path(__file__).parent
PATHS = ("$.id", "$.user.id", "$.at", "$.status", "$.tags[*]")
SCHEMA = pa.schema([("body", pa.string())])
CHUNK = 100_000
WORDS = np.random.default_rng(5).integers(0, 2**62, 4096)


def batch(first: int, count: int) -> pa.Table:
    """Documents in the order of ``$.id`` and ``$.at``; ``$.user.id`` is anywhere, once in every table."""
    random = np.random.default_rng([7, first])
    words = random.integers(0, len(WORDS), (count, 40))
    rows = []
    for row, number in enumerate(range(first, first + count)):
        day = f"2024-{number // 2_592_000 % 12 + 1:02}-{number // 86_400 % 30 + 1:02}"
        at = f"{day}T{number // 3600 % 24:02}:{number // 60 % 60:02}:{number % 60:02}Z"
        user = f'{{"id":"{scattered(number):010}","name":"user {number % 5000}","mail":"u{number}@example.org"}}'
        text = " ".join(f"{word:x}" for word in WORDS[words[row]])
        rows.append(
            f'{{"id":{number},"at":"{at}","user":{user},'
            f'"status":"{("ok", "late", "failed")[number % 3]}","amount":{number % 9973 / 4},'
            f'"tags":["t{number % 1000}","all"],'
            f'"address":{{"city":"c{number % 300}","zip":"{number % 99999:05}"}},"text":"{text}"}}'
        )
    return pa.table({"body": rows}, SCHEMA)


def scattered(number: int) -> int:
    return number * 7_919_317 % 9_999_999_967


def queries(documents: int) -> dict[str, str]:
    wanted = documents * 2 // 3
    return {
        "one user, anywhere (text)": f"get_json_object(body, '$.user.id') = '{scattered(wanted):010}'",
        "one number, sorted (CAST)": f"CAST(get_json_object(body, '$.id') AS BIGINT) = {wanted}",
        "a user that is not there": "get_json_object(body, '$.user.id') = 'nobody'",
    }


def build_rate(runs: int) -> dict[str, Any]:
    """Documents a second on one core, by its own time: others may use the machine too."""
    rows = batch(0, 65_536)
    kind, options, seconds = JsonPaths(), JsonPathOptions(paths=PATHS), []
    zones = np.array([0, len(rows)])
    for _ in range(runs):
        started = time.process_time()
        sidecar = kind.build(rows, zones, options)
        seconds.append(time.process_time() - started)
    return {
        "bytes_a_document": round(mean_length(rows)),
        "documents_a_second": round(len(rows) / min(seconds)),
        "payload_bytes_a_document": round(len(sidecar.payload or b"") / len(rows), 2),
    }


def mean_length(rows: pa.Table) -> float:
    return rows.column(0).nbytes / len(rows)


def fill(
    url: str, documents: int, block_rows: int, plain: Path | None = None, options: dict[str, str] | None = None
) -> dict[str, Any]:
    """A table of so many documents with its index, and the same as plain Parquet files."""
    table = fuse.create_table(url, SCHEMA, properties={"block_rows": block_rows}, options=options)
    table.create_index("by_path", "json_path", ["body"], paths=PATHS)
    seconds = 0.0
    for first in range(0, documents, CHUNK):
        rows = batch(first, min(CHUNK, documents - first))
        started = time.perf_counter()
        table.append(rows)
        seconds += time.perf_counter() - started
        if plain is not None:
            pq.write_table(rows, plain / f"{first:012}.parquet", compression="zstd")
        table = fuse.open_table(url, options=options)
    [found] = table.inspect.indexes().to_pylist()
    blocks = table.inspect.blocks()
    return {
        "blocks": len(blocks),
        "append_seconds": round(seconds, 1),
        "bytes": table.snapshot.bytes,
        "summary_bytes_a_block": round(found["summary_bytes"] / len(blocks)),
        "payload_bytes": found["payload_bytes"],
    }


def in_spark(url: str, plain: Path, documents: int, runs: int) -> Iterator[dict[str, Any]]:
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
    )
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    fuse_spark.install(spark)
    ways: dict[str, Callable[[], Any]] = {
        "plain Parquet": lambda: spark.read.parquet(str(plain)),
        "without its index": lambda: fuse_spark.read(spark, url, indexes=False),
        "with its index": lambda: fuse_spark.read(spark, url),
    }
    try:
        for name, where in queries(documents).items():
            answers, outcome = set(), {"query": name, "where": where}
            for way, frame in ways.items():
                df = frame()
                times = []
                for _ in range(runs + 1):
                    started = time.perf_counter()
                    found = df.filter(where)
                    rows = found.collect()
                    times.append(time.perf_counter() - started)
                answers.add(tuple(sorted(rows)))
                outcome[way] = round(statistics.median(times[1:]), 3)
            assert len(answers) == 1, f"{name}: the answers differ"
            told = fuse_spark.explain(found).to_dict()
            yield outcome | {"blocks": told["blocks"], "bytes": told["bytes"], "rows": len(rows)}
    finally:
        spark.stop()


def cold(documents: int, block_rows: int) -> Iterator[dict[str, Any]]:
    """First lookups in a table on S3, by the local engine; nothing is in memory."""
    with s3() as options:
        fill("s3://tables/t", documents, block_rows, options=options)
        opened = fuse.open_table("s3://tables/t", options=options)
        for name, where in queries(documents).items():
            for indexes in (True, False):
                process_cache.clear()
                store = meter_requests(opened.stored.store)
                started = time.perf_counter()
                found = fuse.Table(StoredTable.open(store), opened.host).scan(where, indexes=indexes).to_arrow()
                seconds = time.perf_counter() - started
                payloads = [size for _, key, size in store.reads if key.startswith("_i/")]
                yield {
                    "query": name,
                    "index": indexes,
                    "rows": len(found),
                    "seconds": round(seconds, 3),
                    "requests": store.request_count,
                    "bytes": store.bytes_read,
                    "payload_requests": len(payloads),
                    "payload_bytes": sum(payloads),
                }


@contextmanager
def s3() -> Iterator[dict[str, str]]:
    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    keys = {"region_name": "us-east-1", "aws_access_key_id": "test", "aws_secret_access_key": "test"}
    boto3.client("s3", endpoint_url=f"http://{host}:{port}", **keys).create_bucket(Bucket="tables")
    try:
        yield {
            "endpoint": f"http://{host}:{port}",
            "access_key_id": "test",
            "secret_access_key": "test",
            "region": "us-east-1",
        }
    finally:
        server.stop()


def lines(
    wanted: argparse.Namespace,
    built: dict[str, Any],
    table: dict[str, Any],
    spark: list[dict[str, Any]],
    first: list[dict[str, Any]],
) -> Iterator[str]:
    facts = report.machine()
    yield "# Paths of JSON documents"
    yield ""
    yield f"Made by `python -m benchmarks.json_path {' '.join(sys.argv[1:])}` on {facts['date']}."
    yield (
        f"{facts['cpus']} CPUs, {facts['memory_gib']} GiB; load at the end {os.getloadavg()[0]:.1f}: above the "
        f"CPUs, times are too long."
    )
    yield ""
    yield f"**Indexing** documents of {built['bytes_a_document']:,} bytes at {', '.join(PATHS)}:"
    yield (
        f"{built['documents_a_second']:,} documents a second of one core; "
        f"{built['payload_bytes_a_document']} bytes of filters each."
    )
    yield f"The summary of a block takes {table.get('summary_bytes_a_block', 0):,} bytes."
    yield ""
    size = table.get("bytes", 0) / 1e6
    yield f"**Lookups in Spark**, {wanted.documents:,} documents in {table.get('blocks', 0)} blocks ({size:,.0f} MB)."
    yield f"Seconds, the median of {wanted.runs} warm runs:"
    yield ""
    yield "| condition | plain Parquet | without its index | with its index | times faster | blocks read | MB read |"
    yield "|---|---|---|---|---|---|---|"
    for each in spark:
        blocks, read = each["blocks"], each["bytes"]
        seconds = [each[way] for way in ("plain Parquet", "without its index", "with its index")]
        cells = [each["query"], *seconds, f"{seconds[0] / seconds[2]:.0f}", f"{blocks['kept']} of {blocks['total']}"]
        yield f"| {' | '.join(map(str, cells))} | {read['kept'] / 1e6:,.1f} of {read['total'] / 1e6:,.1f} |"
    yield ""
    yield (
        f"**First lookups on S3** (a server on this machine), {wanted.s3_documents:,} documents, by the local "
        f"engine, nothing in memory:"
    )
    yield ""
    yield "| condition | index | seconds | requests | bytes read | of them in filters |"
    yield "|---|---|---|---|---|---|"
    for each in first:
        filters = f"{each['payload_requests']} requests, {each['payload_bytes']:,} bytes"
        cells = [
            each["query"],
            "yes" if each["index"] else "no",
            each["seconds"],
            each["requests"],
            f"{each['bytes']:,}",
            filters,
        ]
        yield f"| {' | '.join(map(str, cells))} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.json_path", description=__doc__)
    parser.add_argument("--documents", type=int, default=1_000_000, help="in Spark; 0: none")
    parser.add_argument("--s3-documents", type=int, default=200_000)
    parser.add_argument("--block-rows", type=int, default=50_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--data", type=Path, default=HERE / "data" / "json_path")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    wanted = parser.parse_args()
    os.environ.update(report.environment())
    shutil.rmtree(wanted.data, ignore_errors=True)
    (wanted.data / "plain").mkdir(parents=True)
    built = build_rate(wanted.runs)
    print(built, file=sys.stderr)
    table, spark = {}, []
    if wanted.documents:
        table = fill(str(wanted.data / "table"), wanted.documents, wanted.block_rows, wanted.data / "plain")
        print(table, file=sys.stderr)
        spark = list(in_spark(str(wanted.data / "table"), wanted.data / "plain", wanted.documents, wanted.runs))
    first = list(cold(wanted.s3_documents, wanted.block_rows)) if wanted.s3_documents else []
    text = "\n".join(lines(wanted, built, table, spark, first)) + "\n"
    (wanted.results / "json_path.md").write_text(text)
    print(text)
    shutil.rmtree(wanted.data)


if __name__ == "__main__":
    main()
