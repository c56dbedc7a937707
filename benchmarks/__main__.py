"""``python -m benchmarks``: measure fuse-index and its peers on the same rows, and write tables and pictures.

Each engine runs in a process of its own, one after the other; answers are compared, and a run in which two engines
differ fails. Results go to ``benchmarks/results``, with the command that made them.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import datasets, planning, report
from benchmarks.engines import ENGINES

HERE = Path(__file__).parent


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--rows",
        type=int,
        nargs="*",
        default=[1_000_000, 10_000_000],
        help="table sizes; none: no tables, only planning",
    )
    parser.add_argument("--block-rows", type=int, default=200_000, help="rows a block, for engines that can be told")
    parser.add_argument("--runs", type=int, default=5, help="warm runs of each query, after one that is not counted")
    parser.add_argument(
        "--engines",
        nargs="+",
        choices=sorted(ENGINES),
        default=list(ENGINES),
        metavar="ENGINE",
        help=", ".join(ENGINES),
    )
    parser.add_argument(
        "--planning-blocks", type=int, nargs="*", default=[10_000, 1_000_000], help="blocks of synthetic tables"
    )
    parser.add_argument("--data", type=Path, default=HERE / "data", help="where rows and tables lie while it runs")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--name", default="tables", help="of the result files")
    return parser.parse_args()


def main() -> None:
    wanted = arguments()
    wanted.data = wanted.data.resolve()
    wanted.data.mkdir(parents=True, exist_ok=True)
    measured: list[dict[str, Any]] = []
    for rows in wanted.rows:
        files = datasets.files(wanted.data, rows)
        for engine in wanted.engines:
            measured += run(engine, rows, wanted, files)
        compare(measured, rows)
    planned = [outcome for blocks in wanted.planning_blocks for outcome in planning.measure(blocks, wanted.data)]
    report.write(wanted.results, wanted.name, measured, planned)


def run(engine: str, rows: int, wanted: argparse.Namespace, files: list[Path]) -> list[dict[str, Any]]:
    print(f"{engine}, {rows:,} rows", file=sys.stderr)
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=wanted.data))
    command = [
        sys.executable,
        "-m",
        "benchmarks.worker",
        engine,
        str(folder / "work"),
        str(rows),
        str(wanted.block_rows),
        str(wanted.runs),
    ]
    try:
        done = subprocess.run(
            [*command, *map(str, (file.resolve() for file in files))],
            cwd=HERE.parent,
            env=report.environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
    finally:
        shutil.rmtree(folder)
    outcomes = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode:
        outcomes.append({"engine": engine, "rows": rows, "workload": "failed", "code": done.returncode})
    return outcomes


def compare(measured: list[dict[str, Any]], rows: int) -> None:
    answers: dict[str, dict[str, Any]] = {}
    for each in measured:
        if each["rows"] == rows and "answer" in each:
            answers.setdefault(each["workload"], {})[each["engine"]] = tuple(each["answer"])
    for workload, given in answers.items():
        if len(set(given.values())) > 1:
            raise SystemExit(f"{workload} at {rows:,} rows: the engines differ: {given}")


if __name__ == "__main__":
    main()
