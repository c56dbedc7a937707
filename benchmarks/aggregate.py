"""What an aggregate index is worth: ``python -m benchmarks.aggregate --rows 10000000``.

One GROUP BY over the same rows: by Spark over plain Parquet, by Spark and by the local engine over a table of ours of
which 0, 25, 50, 75 and 100 % of the blocks are indexed, and by Databend embedded, if it is installed. Each engine runs
in a process of its own; answers are compared. Results go to ``benchmarks/results/aggregate.*``.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import report

HERE = Path(__file__).parent
FILE_ROWS = 1_000_000
CITIES, DAYS = 500, 60
GROUPS = ["city"]
AGGREGATES = ["count(*)", "sum(amount)", "min(amount)", "max(amount)", "avg(quantity)"]
SQL = f"SELECT city, {', '.join(AGGREGATES)} FROM {{table}} GROUP BY city"
QUARTERS = 4


def batch(first: int, rows: int) -> pa.Table:
    random = np.random.default_rng([11, first])
    city = pa.array([f"city-{number:03}" for number in range(CITIES)]).take(pa.array(random.integers(0, CITIES, rows)))
    days = (np.arange(first, first + rows) // 1000 % DAYS).astype(np.int32) + 20_000
    amount = np.round(random.random(rows) * 1000, 2)
    return pa.table(
        {
            "id": np.arange(first, first + rows),
            "city": city,
            "day": pa.array(days, pa.date32()),
            "amount": amount,
            "quantity": pa.array(random.integers(1, 9, rows), pa.int32()),
        }
    )


def files(folder: Path, rows: int) -> list[Path]:
    """Parquet files of so many rows, made once per folder."""
    made = folder / f"sales-{rows}"
    if not (made / "_done").exists():
        made.mkdir(parents=True, exist_ok=True)
        for number, first in enumerate(range(0, rows, FILE_ROWS)):
            pq.write_table(batch(first, min(FILE_ROWS, rows - first)), made / f"{number:04}.parquet")
        (made / "_done").touch()
    return sorted(made.glob("*.parquet"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.aggregate", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--block-rows", type=int, default=200_000)
    parser.add_argument("--runs", type=int, default=5, help="warm runs, after one that is not counted")
    parser.add_argument("--data", type=Path, default=HERE / "data")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    parser.add_argument("--name", default="aggregate")
    wanted = parser.parse_args()
    made = files(wanted.data.resolve(), wanted.rows)
    measured: list[dict[str, Any]] = []
    for engine in ("ingest", "plain", "fuse", *(["databend"] if find_spec("databend") else [])):
        folder = Path(tempfile.mkdtemp(prefix="bench-", dir=wanted.data))
        command = [
            sys.executable,
            "-m",
            "benchmarks.aggregate_worker",
            engine,
            str(folder),
            str(wanted.block_rows),
            str(wanted.runs),
        ]
        done = subprocess.run(
            [*command, *map(str, made)],
            cwd=HERE.parent,
            env=report.environment(),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        measured += [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        shutil.rmtree(folder)
    if len(answers := {each["answer"] for each in measured if "answer" in each}) != 1:
        raise SystemExit(f"engines differ: {answers}")
    write(wanted.results, wanted.name, wanted.rows, measured)


# --- what is printed --------------------------------------------------------------------------------------------


def write(folder: Path, name: str, rows: int, measured: list[dict[str, Any]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    command = f"python -m benchmarks.aggregate {' '.join(sys.argv[1:])}"
    facts = report.machine() | {"command": command, "load": [round(load, 1) for load in os.getloadavg()]}
    (folder / f"{name}.json").write_text(
        json.dumps({"machine": facts, "rows": rows, "measured": measured}, indent=1) + "\n"
    )
    text = "\n".join(lines(facts, rows, measured)) + "\n"
    (folder / f"{name}.md").write_text(text)
    print(text)
    picture(folder / f"{name}.png", rows, measured)


def lines(facts: dict[str, Any], rows: int, measured: list[dict[str, Any]]) -> Iterator[str]:
    versions = ", ".join(f"{package} {version}" for package, version in facts["versions"].items() if version)
    yield "# GROUP BY, answered from an aggregate index"
    yield ""
    yield (
        f"{rows:,} rows; `{SQL.format(table='t')}`; {CITIES} groups. {facts['cpus']} CPUs, "
        f"{facts['memory_gib']} GiB, {versions}."
    )
    yield (
        f'Made by `{facts["command"]}` on {facts["date"]}. Seconds: the median of warm runs; "first" is '
        f"the first in its process."
    )
    load = ", ".join(map(str, facts["load"]))
    yield f"Load averages of the machine at the end: {load}; above the number of CPUs, all times are too long."
    yield ""
    yield "| engine | blocks indexed | seconds | first | rows scanned |"
    yield "|---|---|---|---|---|"
    for each in measured:
        if "seconds" in each:
            covered = f"{each['coverage']} %" if "coverage" in each else ""
            scanned = f"{each['scanned']:,}" if "scanned" in each else ""
            yield f"| {each['engine']} | {covered} | {each['seconds']:.4f} | {each['first']:.3f} | {scanned} |"
    yield ""
    seconds = {(each["engine"], each.get("coverage")): each["seconds"] for each in measured if "seconds" in each}
    faster = seconds["Spark, plain Parquet", None] / seconds["fuse, Spark", 100]
    yield f"- Spark with all blocks indexed: {faster:.0f} × faster than Spark's own."
    if ("Databend", None) in seconds:
        yield (
            f"- Local with all blocks indexed: "
            f"1/{seconds['Databend', None] / seconds['fuse, local', 100]:.0f} of Databend's time."
        )
    ingest = next(each for each in measured if each["engine"] == "ingest")
    yield (
        f"- Ingest without the index {ingest['without']:.2f} s, with it {ingest['with']:.2f} s (the best of "
        f"{ingest['times']} each): "
        f"{_lost(ingest)} % of the rate is lost. Of processor time, which other work on the machine does not count in: "
        f"{ingest['cpu']['without']:.2f} s and {ingest['cpu']['with']:.2f} s, {_lost(ingest['cpu'])} %."
    )
    yield f"- States take {ingest['state_bytes']:,} bytes; the blocks {ingest['block_bytes']:,}."


def _lost(seconds: dict[str, Any]) -> int:
    return round(100 * (1 - seconds["without"] / seconds["with"]))


def picture(path: Path, rows: int, measured: list[dict[str, Any]]) -> None:
    """Seconds by coverage."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, panel = pyplot.subplots(figsize=(7, 4))
    for engine in ("fuse, Spark", "fuse, local"):
        points = [(each["coverage"], each["seconds"]) for each in measured if each["engine"] == engine]
        panel.plot(*zip(*points, strict=True), marker="o", label=engine)
    for each in measured:
        if "seconds" in each and "coverage" not in each:
            panel.axhline(each["seconds"], linestyle="--", linewidth=1, color="grey")
            panel.annotate(each["engine"], (0, each["seconds"]), fontsize=8, va="bottom")
    panel.set_yscale("log")
    panel.set_xlabel("% of blocks indexed")
    panel.set_ylabel("seconds (warm median)")
    panel.set_title(f"GROUP BY over {rows:,} rows")
    panel.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def timed(runs: int, ask: Callable[[], Any]) -> tuple[dict[str, float], Any]:
    """Seconds, and the last answer."""
    times = []
    for _ in range(runs + 1):
        started = time.perf_counter()
        answer = ask()
        times.append(time.perf_counter() - started)
    return {"seconds": statistics.median(times[1:]), "first": times[0]}, answer


if __name__ == "__main__":
    main()
