"""What a condition of very many terms costs in seconds of processor and in memory.

``python -m benchmarks.conditions``: ten thousand comparisons, and lists of a million values, over 100 rows in four
blocks with min/max and bloom indexes. Reads the text, plans with an explanation, and counts the rows; "parser" is
what the SQL parser that we use takes of the reading.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from resource import RUSAGE_SELF, getrusage
from uuid import uuid4

import pyarrow as pa

import fuse_index as fuse
from fuse_index.expressions.normalize import normalize
from fuse_index.sql.parse import parse_predicate
from fuse_index.sql.text.dialect import SPARK_CONDITIONS
from fuse_index.sql.tokenizer import TokenizedSql

TERMS, VALUES = 10_000, 1_000_000
CONDITIONS: dict[str, Callable[[int], str]] = {
    "OR on one column": lambda n: " OR ".join(f"c0 = {i * 3}" for i in range(n)),
    "AND on one column": lambda n: " AND ".join(f"c0 <> {i * 3}" for i in range(n)),
    "OR on ten columns": lambda n: " OR ".join(f"c{i % 10} > {i + 50}" for i in range(n)),
    "OR of ANDs": lambda n: " OR ".join(f"(c{i % 10} = {i} AND c{(i + 3) % 10} < {i + 5})" for i in range(n // 2)),
    "AND of ORs": lambda n: " AND ".join(f"(c{i % 10} <> {i} OR c{(i + 3) % 10} < {i + 5})" for i in range(n // 2)),
    "IN of numbers": lambda n: f"c0 IN ({', '.join(map(str, range(n)))})",
    "IN of texts": lambda n: "s IN (" + ", ".join(f"'v{i}'" for i in range(n)) + ")",
}


def created() -> fuse.Table:
    """A table of 100 rows in four blocks, with ten columns of numbers and one of texts."""
    names = [f"c{number}" for number in range(10)]
    schema = pa.schema([*((name, pa.int64()) for name in names), ("s", pa.string())])
    table = fuse.create_table(f"memory://conditions-{uuid4().hex}", schema, properties={"block_rows": 25})
    table.create_index("by_number", "bloom", ["c0"])
    table.create_index("by_text", "bloom", ["s"])
    table.append(pa.table({**{name: list(range(100)) for name in names}, "s": [str(number) for number in range(100)]}))
    return table


def parser_seconds(text: str) -> float:
    """What sqlglot alone takes of the reading, nothing else running: no work of ours makes that less."""
    safe = TokenizedSql.tokenize(text).safe
    gc.collect()
    gc.disable()
    start = time.process_time()
    SPARK_CONDITIONS.parse(safe)
    seconds = time.process_time() - start
    gc.enable()
    return seconds


def measure(name: str) -> None:
    """Print the figures of one condition, in a process of its own."""
    table = created()
    table.scan("c0 = 1 AND s = 'x'").count()
    text = CONDITIONS[name](VALUES if name.startswith("IN") else TERMS)
    before = getrusage(RUSAGE_SELF).ru_maxrss
    seconds = [time.process_time()]
    predicate = parse_predicate(text, table.snapshot.schema, table.context)
    seconds.append(time.process_time())
    str(table.explain(normalize(predicate, table.context)))
    seconds.append(time.process_time())
    table.scan(predicate).count()
    seconds.append(time.process_time())
    read, planned, counted = (after - start for start, after in pairwise(seconds))
    peak = (getrusage(RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{name:20} {read:8.2f} {parser_seconds(text):8.2f} {planned:8.2f} {counted:8.2f} {peak:10,.0f}", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1])
    else:
        print(
            f"{'condition':20} {'read s':>8} {'parser s':>8} {'plan s':>8} {'count s':>8} {'memory MB':>10}", flush=True
        )
        for condition in CONDITIONS:
            subprocess.run([sys.executable, "-m", "benchmarks.conditions", condition], check=True)
