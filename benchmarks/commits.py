"""How many commits a second several writers make to one table, beside Delta Lake's: ``python -m benchmarks.commits``.

Each writer is a process that appends a hundred rows again and again for some seconds, to the same table as the others;
a commit that lost its race is made again, by either library's own means. The rows are counted in the end. Results go to
``benchmarks/results/commits.md``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import report

HERE = Path(__file__).parent
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
ROWS = 100


def fuse_index(url: str) -> tuple[Callable[[pa.Table], Any], Callable[[], int]]:
    """How a row is appended, and how all are counted."""
    import fuse_index as fuse

    table = fuse.open_table(url) if Path(url).exists() else fuse.create_table(url, SCHEMA)
    return table.append, lambda: table.refresh().snapshot.row_count


def delta_lake(url: str) -> tuple[Callable[[pa.Table], Any], Callable[[], int]]:
    import deltalake

    if not Path(url).exists():
        deltalake.DeltaTable.create(url, SCHEMA)
    many = deltalake.CommitProperties(max_commit_retries=1_000_000)
    table = deltalake.DeltaTable(url)

    def append(rows: pa.Table) -> None:
        deltalake.write_deltalake(table, rows, mode="append", commit_properties=many)

    return append, lambda: deltalake.DeltaTable(url).to_pyarrow_dataset().count_rows()


LIBRARIES = {"fuse-index": fuse_index, "Delta Lake": delta_lake}


def write(library: str, url: str, number: int, seconds: float) -> None:
    """One writer: says that it is ready, waits to be told, and then says how long each of its commits took."""
    append, _ = LIBRARIES[library](url)
    print("ready", flush=True)
    sys.stdin.readline()
    took: list[float] = []
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        first = (number << 32) + len(took) * ROWS
        rows = pa.table({"id": range(first, first + ROWS), "name": ["name"] * ROWS}, SCHEMA)
        started = time.perf_counter()
        append(rows)
        took.append(time.perf_counter() - started)
    print(json.dumps(took))


def measured(library: str, data: Path, writers: int, seconds: float) -> Mapping[str, Any]:
    url = str(data / f"{library.replace(' ', '-')}-{writers}")
    _, count = LIBRARIES[library](url)
    command = [
        sys.executable,
        "-m",
        "benchmarks.commits",
        "--library",
        library,
        "--url",
        url,
        "--seconds",
        str(seconds),
    ]
    started = [
        subprocess.Popen(
            [*command, "--number", str(n)], cwd=HERE.parent, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for n in range(writers)
    ]
    for each in started:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n", f"a writer of {library} did not start"
    began = time.perf_counter()
    for each in started:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    told = [each.communicate()[0] for each in started]
    elapsed = time.perf_counter() - began
    assert not any(each.returncode for each in started), f"a writer of {library} failed"
    took = sorted(one for text in told for one in json.loads(text))
    assert count() == len(took) * ROWS, f"{library} lost or doubled rows: {count()} of {len(took) * ROWS}"
    return {
        "library": library,
        "writers": writers,
        "commits": len(took),
        "commits a second": round(len(took) / elapsed, 1),
        "median, ms": round(1000 * statistics.median(took), 1),
        "slowest of 100, ms": round(1000 * took[int(len(took) * 0.99)]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.commits", description=__doc__)
    parser.add_argument("--writers", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--data", type=Path, default=HERE / "data" / "commits")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    for hidden in ("--library", "--url", "--number"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    wanted = parser.parse_args()
    if wanted.library:
        write(wanted.library, wanted.url, int(wanted.number), wanted.seconds)
        return
    found = []
    for writers in wanted.writers:
        for library in LIBRARIES:
            shutil.rmtree(wanted.data, ignore_errors=True)
            wanted.data.mkdir(parents=True)
            found.append(measured(library, wanted.data.resolve(), writers, wanted.seconds))
            print(found[-1], file=sys.stderr)
            shutil.rmtree(wanted.data)
    note = f"deltalake {version('deltalake')}. A hundred rows a commit; no row was lost or doubled."
    report.page(
        wanted.results / "commits.md",
        ["# Commits", "", report.made_by("benchmarks.commits"), note, "", *report.grid(found)],
    )


if __name__ == "__main__":
    main()
