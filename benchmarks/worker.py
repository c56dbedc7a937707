"""One engine in one process of its own: ``python -m benchmarks.worker ENGINE WORKDIR ROWS BLOCK_ROWS RUNS FILE...``.

Prints one JSON object a line per measurement. Bytes are what the process and its children (Spark's JVM) asked the
operating system for (``rchar`` of /proc, page cache included), so they are counted alike for every engine; peak memory
is the sum of their high-water marks. Seconds of CPU of queries are those of the process alone, so they leave out
Spark's JVM; those of an ingest are of all of them.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.datasets import queries
from benchmarks.engines import ENGINES


def main(name: str, folder: Path, rows: int, block_rows: int, runs: int, files: list[Path]) -> None:
    folder.mkdir(parents=True)
    os.chdir(folder)
    engine = ENGINES[name](folder, block_rows)
    cpu_before, started = cpu_of_family(), time.perf_counter()
    engine.ingest(files)
    seconds = time.perf_counter() - started
    tell(
        engine=name,
        rows=rows,
        workload="ingest",
        seconds=seconds,
        rows_per_second=rows / seconds,
        cpu=cpu_of_family() - cpu_before,
        stored=stored(folder),
        peak=peak_memory(),
    )
    for query in queries(rows):
        times = []
        cpu_times = []
        answer = (0, 0)
        bytes_read = []
        for run in range(runs + 1):
            asked = query.at_run(run)
            before, cpu_started, started = bytes_asked(), time.process_time(), time.perf_counter()
            found = engine.answer(asked)
            times.append(time.perf_counter() - started)
            cpu_times.append(time.process_time() - cpu_started)
            answer = (answer[0] + found[0], answer[1] + found[1])
            bytes_read.append(bytes_asked() - before)
        tell(
            engine=name,
            rows=rows,
            workload=query.name,
            seconds=statistics.median(times[1:]),
            first=times[0],
            best=min(times[1:]),
            cpu=statistics.median(cpu_times[1:]),
            bytes_read=statistics.median(bytes_read[1:]),
            bytes_read_first=bytes_read[0],
            answer=answer,
            **engine.touched(query),
        )
    tell(engine=name, rows=rows, workload="memory", peak=peak_memory())
    engine.close()


def tell(**measured: Any) -> None:
    print(json.dumps(measured), flush=True)


def family(pid: int) -> list[int]:
    """This process and those it started, Spark's JVM and its Python workers among them."""
    found = [pid]
    for child in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that ended between listing and reading
            for each in child.read_text().split():
                found += family(int(each))
    return found


def bytes_asked() -> int:
    total = 0
    for pid in family(os.getpid()):
        try:
            total += int(Path(f"/proc/{pid}/io").read_text().split()[1])
        except FileNotFoundError:
            continue  # ended between listing and reading
    return total


def cpu_of_family() -> float:
    """Seconds, of processes that have ended, too."""
    ticks = 0
    for pid in family(os.getpid()):
        with suppress(FileNotFoundError):
            ticks += sum(map(int, Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def peak_memory() -> int:
    """Bytes."""
    total = 0
    for pid in family(os.getpid()):
        try:
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        except FileNotFoundError:
            continue
        total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    return total


def stored(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


if __name__ == "__main__":
    name, folder, rows, block_rows, runs, *files = sys.argv[1:]
    main(name, Path(folder), int(rows), int(block_rows), int(runs), [Path(file) for file in files])
