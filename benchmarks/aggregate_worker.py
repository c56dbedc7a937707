"""One engine of ``benchmarks.aggregate``: ``python -m benchmarks.aggregate_worker ENGINE WORKDIR BLOCK_ROWS RUNS
FILE...``.

Prints one JSON object a line per measurement. ``answer`` says what was found: the number of groups, of rows, and the
sum of amounts.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.aggregate import AGGREGATES, GROUPS, QUARTERS, SQL, timed

SCHEMA = "id BIGINT, city STRING, day DATE, amount DOUBLE, quantity INT"
TIMES = 3


def tell(**outcome: Any) -> None:
    print(json.dumps(outcome), flush=True)


def checked(rows: Iterable[Any]) -> str:
    found = [tuple(row) for row in rows]
    return f"{len(found)} groups, {sum(row[1] for row in found)} rows, {sum(row[2] for row in found):.6g}"


def ingest(folder: Path, block_rows: int, runs: int, files: list[str]) -> None:
    """The same rows into tables without and with the index, by turns."""
    import fuse_index

    best = {"without": float("inf"), "with": float("inf")}
    cpu = dict(best)
    for number in range(TIMES):
        for name in best:
            table = fuse_index.create_table(
                str(folder / f"{name}-{number}"), SCHEMA, properties={"block_rows": block_rows}
            )
            if name == "with":
                table.create_index("by_city", "aggregate", GROUPS, aggregates=AGGREGATES)
            started, worked = time.perf_counter(), time.process_time()
            table.append(files)
            best[name] = min(best[name], time.perf_counter() - started)
            cpu[name] = min(cpu[name], time.process_time() - worked)
    [index] = table.inspect.indexes().to_pylist()
    tell(
        engine="ingest",
        times=TIMES,
        state_bytes=index["payload_bytes"],
        block_bytes=table.snapshot.bytes,
        cpu=cpu,
        **best,
    )


def session(folder: Path) -> Any:
    from pyspark.sql import SparkSession

    builder = (
        SparkSession.builder.master("local[2]").config("spark.driver.memory", "4g").config("spark.ui.enabled", False)
    )
    builder = builder.config("spark.ui.showConsoleProgress", False).config("spark.sql.shuffle.partitions", 2)
    return builder.config("spark.sql.warehouse.dir", str(folder / "warehouse")).getOrCreate()


def plain(folder: Path, block_rows: int, runs: int, files: list[str]) -> None:
    spark = session(folder)
    spark.read.parquet(*files).createOrReplaceTempView("t")
    seconds, found = timed(runs, lambda: spark.sql(SQL.format(table="t")).collect())
    tell(engine="Spark, plain Parquet", answer=checked(found), **seconds)
    spark.stop()


def fuse(folder: Path, block_rows: int, runs: int, files: list[str]) -> None:
    """The index of one table, built by quarters: measured after each."""
    import fuse_index
    from fuse_index import spark as fuse_spark
    from fuse_index.operations import build_index
    from fuse_index.table.indexes import plan_index_tasks

    spark = session(folder)
    url = str(folder / "table")
    table = fuse_index.create_table(url, SCHEMA, properties={"block_rows": block_rows})
    table.append(files)
    table.create_index("by_city", "aggregate", GROUPS, aggregates=AGGREGATES, build=False)
    work = plan_index_tasks(table, "by_city", processes=QUARTERS)
    for quarter in range(QUARTERS + 1):
        if quarter:
            done = [build_index.run_build_task(task) for task in work[quarter - 1 :: QUARTERS]]
            build_index.commit_build_results(work[0].builder, work[0].table, done)
        table = fuse_index.open_table(url)
        row = table.inspect.indexes().to_pylist()[0]
        scanned = table.explain(None, GROUPS, AGGREGATES).rows.kept
        about = {"coverage": round(100 * row["blocks_indexed"] / row["blocks"]), "scanned": scanned}
        seconds, found = timed(runs, lambda table=table: table.refresh().aggregate(GROUPS, AGGREGATES))
        tell(
            engine="fuse, local",
            answer=checked(zip(*(column.to_pylist() for column in found.columns), strict=True)),
            **about,
            **seconds,
        )
        fuse_spark.read(spark, url).createOrReplaceTempView("t")
        seconds, found = timed(runs, lambda: spark.sql(SQL.format(table="t")).collect())
        tell(engine="fuse, Spark", answer=checked(found), **about, **seconds)
    spark.stop()


def databend(folder: Path, block_rows: int, runs: int, files: list[str]) -> None:
    os.chdir(folder)  # its import makes a folder where one stands
    from databend import SessionContext

    context = SessionContext()
    context.register_parquet("source", f"{Path(files[0]).parent}/", pattern=r".*[.]parquet")
    context.sql(
        f"CREATE TABLE lines (id BIGINT, city VARCHAR, day DATE, amount DOUBLE, quantity INT) "
        f"ROW_PER_BLOCK = {block_rows}"
    ).to_pandas()
    context.sql("INSERT INTO lines SELECT id, city, day, amount, quantity FROM source").to_pandas()
    seconds, found = timed(runs, lambda: context.sql(SQL.format(table="lines")).to_pandas())
    tell(engine="Databend", answer=checked(found.itertuples(index=False)), **seconds)


if __name__ == "__main__":
    engines = {"ingest": ingest, "plain": plain, "fuse": fuse, "databend": databend}
    engines[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]), sys.argv[5:])
