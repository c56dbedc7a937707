"""Substrings of a log by the trigrams of ``examples/plugins``: ``python -m benchmarks.substrings --lines 10000000``.

One word stands in one line of all. Told are, for LIKE, ILIKE and RLIKE, the processor time of Spark's driver and of
Python with the index, that without it, and how many blocks are read of all.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

import fuse_index as fuse
from benchmarks import report
from benchmarks.worker import cpu_of_family
from fuse_index import spark as fuse_spark
from fuse_index.indexes.registry import Host

LINES_AT_ONCE = 500_000
RUNS = 5
CONDITIONS = ("line LIKE '%quagmire%'", "line ILIKE '%QUAGMIRE%'", "line RLIKE 'in a quag[a-z]+ of'")


def lines(first: int, count: int, rare: int) -> pa.Table:
    """Lines of a log, by their numbers; that of the number ``rare`` has a word of its own."""
    random = np.random.default_rng(first)
    texts = pc.binary_join_element_wise(
        pa.array([f"2026-11-{day:02d} host{host}" for day, host in random.integers(1, 30, (count, 2))]),
        pa.array(random.choice(["INFO", "WARN", "ERROR"], count, p=[0.9, 0.08, 0.02])),
        pa.array([f"request {number:x} served" for number in random.integers(0, 1 << 40, count)]),
        pa.array(random.choice(["from cache", "from disk", "after a retry", "over a slow link"], count)),
        " ",
    ).to_pylist()
    if first <= rare < first + count:
        texts[rare - first] += " in a quagmire of locks"
    return pa.table({"line": texts})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=10_000_000)
    parser.add_argument("--block-rows", type=int, default=250_000)
    parser.add_argument("--place", help="a folder to keep the table in; a run that was ended goes on where it was")
    wanted = parser.parse_args()
    sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "plugins" / "fuse-index-trigram"))
    import fuse_index_trigram

    os.environ |= report.environment()
    with nullcontext(wanted.place) if wanted.place else tempfile.TemporaryDirectory() as folder:
        host = Host([*Host.discover().plugins, fuse_index_trigram])
        if not any(Path(folder).iterdir()):
            made = fuse.create_table(folder, "line STRING", properties={"block_rows": wanted.block_rows}, host=host)
            made.create_index("by_substring", "trigram", ["line"])
        table = fuse.open_table(folder, host=host)
        for first in range(table.count(), wanted.lines, LINES_AT_ONCE):
            table.append(lines(first, min(LINES_AT_ONCE, wanted.lines - first), wanted.lines // 3))
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
        spark = builder.config("spark.driver.memory", "4g").getOrCreate()
        spark.sparkContext.setLogLevel("ERROR")
        fuse_spark.install(spark, host=host)
        for where in CONDITIONS:
            indexed = fuse_spark.read(spark, folder).where(where)
            plain = fuse_spark.read(spark, folder, indexes=False).where(where)
            taken = {name: [] for name in ("with", "without")}
            for _ in range(RUNS):
                taken["with"].append(seconds(indexed))
                taken["without"].append(seconds(plain))
            medians = {name: round(statistics.median(times), 3) for name, times in taken.items()}
            blocks = fuse_spark.explain(indexed).to_dict()["blocks"]
            ratio = round(medians["with"] / medians["without"], 3)
            print(json.dumps({"where": where, **medians, "ratio": ratio, "blocks": blocks}), flush=True)
        spark.stop()


def seconds(rows: DataFrame) -> float:
    """Processor time of the JVM and of this process for all rows; there is to be one."""
    before = cpu_of_family()
    assert len(rows.collect()) == 1
    return cpu_of_family() - before


if __name__ == "__main__":
    main()
