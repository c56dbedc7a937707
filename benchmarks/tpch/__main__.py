"""TPC-H's 22 queries over tables of ours with indexes, against plain Parquet of the same codec, in one session.

``python -m benchmarks.tpch --scale 1 --runs 5``: ``pairs`` says what a line has. The rows are compared.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from benchmarks.pairs import HEADER, measure, start
from benchmarks.tpch.both import OURS, PLAIN, make_both, queries
from benchmarks.tpch.tables import make_tables


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tpch", description=__doc__)
    parser.add_argument("--scale", type=float, default=0.1, help="1 has 6,000,000 rows in lineitem")
    parser.add_argument("--runs", type=int, default=5, help="counted runs of each query, after one that is not counted")
    parser.add_argument("--block-rows", type=int, default=200_000)
    parser.add_argument("--queries", nargs="*", help="such as q01 q06; all if none is given")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        spark = start(Path(folder))
        try:
            make_both(spark, make_tables(wanted.scale), Path(folder), wanted.block_rows)
            print(
                f"scale {wanted.scale}, blocks of {wanted.block_rows:,} rows, {wanted.runs} runs, medians in seconds\n"
            )
            print(HEADER)
            for name in wanted.queries or queries():
                measure(spark, name, queries()[name], (PLAIN, OURS), wanted.runs)
        finally:
            spark.stop()


if __name__ == "__main__":
    main()
