"""Results as Markdown for people, JSON for programs, and a picture; each with the machine and the command that made
it.
"""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("fuse-index", "pyspark", "pyarrow", "numpy", "duckdb", "chdb", "databend")

Measured = Mapping[str, Any]


def environment() -> dict[str, str]:
    """For a process that measures: Spark's workers must be this Python."""
    return os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }


def machine() -> dict[str, Any]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cpus": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory / 2**30),
        "python": platform.python_version(),
        "system": platform.system(),
        "versions": {name: _version(name) for name in PACKAGES},
        "command": "python -m benchmarks " + " ".join(sys.argv[1:]),
    }


def made_by(module: str) -> str:
    """By what command, when and on what a page was made."""
    facts = machine()
    return (
        f"Made by `{' '.join(['python -m', module, *sys.argv[1:]])}` on {facts['date']}; "
        f"{facts['cpus']} CPUs, a local disk."
    )


def grid(rows: Sequence[Measured]) -> list[str]:
    """Rows of the same columns as a table in Markdown."""
    return [
        _row(list(rows[0])),
        _row(["---"] * len(rows[0])),
        *(_row([str(cell) for cell in row.values()]) for row in rows),
    ]


def page(path: Path, lines: Iterable[str]) -> None:
    text = "\n".join(lines) + "\n"
    path.write_text(text)
    print(text)


def write(folder: Path, name: str, measured: Sequence[Measured], planned: Sequence[Measured]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    facts = machine()
    (folder / f"{name}.json").write_text(
        json.dumps({"machine": facts, "tables": measured, "planning": planned}, indent=1) + "\n"
    )
    text = "\n".join([*_about(facts), *_tables(measured), *_planning(planned)]) + "\n"
    (folder / f"{name}.md").write_text(text)
    print(text)
    if measured:
        picture(folder / f"{name}.png", measured)


def picture(path: Path, measured: Sequence[Measured]) -> None:
    """Seconds by workload and engine, one panel per table size, on a logarithmic axis."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    sizes = sorted({each["rows"] for each in measured})
    engines = list(dict.fromkeys(each["engine"] for each in measured))
    workloads = list(dict.fromkeys(each["workload"] for each in measured if "seconds" in each))
    figure, panels = pyplot.subplots(
        1, len(sizes), figsize=(7 * len(sizes), 1 + 0.16 * len(workloads) * (len(engines) + 1)), squeeze=False
    )
    height = 0.8 / len(engines)
    for panel, rows in zip(panels[0], sizes, strict=True):
        for number, engine in enumerate(engines):
            found = _by_workload(measured, rows, engine)
            places = [i + number * height for i, workload in enumerate(workloads) if workload in found]
            seconds = [found[workload]["seconds"] for workload in workloads if workload in found]
            bars = panel.barh(places, seconds, height, label=engine)
            panel.bar_label(bars, [_seconds(value) for value in seconds], fontsize=7, padding=2)
        panel.set_yticks([i + 0.4 - height / 2 for i in range(len(workloads))], workloads)
        panel.invert_yaxis()
        panel.set_xscale("log")
        panel.set_xlabel("seconds (warm median; ingest once)")
        panel.set_title(f"{rows:,} rows")
        panel.margins(x=0.15)
    panels[0][0].legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def _about(facts: Mapping[str, Any]) -> list[str]:
    versions = ", ".join(f"{name} {number}" for name, number in facts["versions"].items() if number)
    return [
        "# Benchmark results",
        "",
        f"{facts['date']}, {facts['cpus']} CPUs, {facts['memory_gib']} GiB, {facts['system']}, Python "
        f"{facts['python']}, {versions}.",
        f"Made by `{facts['command']}`.",
        "",
    ]


def _tables(measured: Sequence[Measured]) -> list[str]:
    lines = []
    for rows in sorted({each["rows"] for each in measured}):
        here = [each for each in measured if each["rows"] == rows]
        engines = list(dict.fromkeys(each["engine"] for each in here))
        lines += [f"## {rows:,} rows", "", _row(["", *engines]), _row(["---", *["---:"] * len(engines)])]
        for workload in dict.fromkeys(each["workload"] for each in here):
            cells = [_by_workload(here, rows, engine).get(workload) for engine in engines]
            lines.append(_row([workload, *(_cell(cell) for cell in cells)]))
        lines.append("")
    if lines:
        lines += [
            "Queries: median of the warm runs (first run); then the bytes that the process and its "
            "children read (page cache",
            "included), and the blocks read of all. Ingest: seconds, rows a second, seconds of CPU of all "
            "processes, bytes stored. Memory: sum of the processes'",
            "high-water marks.",
            "",
        ]
    return lines


def _planning(planned: Sequence[Measured]) -> list[str]:
    if not planned:
        return []
    lines = [
        "## Planning, synthetic segments",
        "",
        _row(["blocks", "predicate", "cold", "warm", "blocks kept", "peak memory"]),
    ]
    lines.append(_row(["---:", "---", "---:", "---:", "---:", "---:"]))
    for each in planned:
        cells = [f"{each['blocks']:,}", each["predicate"], _seconds(each["cold"]), _seconds(each["warm"])]
        lines.append(_row([*cells, f"{each['kept']:,}", _bytes(each["peak"])]))
    return [*lines, ""]


def _by_workload(measured: Sequence[Measured], rows: int, engine: str) -> dict[str, Measured]:
    return {each["workload"]: each for each in measured if each["rows"] == rows and each["engine"] == engine}


def _cell(each: Measured | None) -> str:
    if each is None:
        return ""
    if each["workload"] == "ingest":
        rate, cpu = f"{each['rows_per_second'] / 1e6:.2f} M/s", f"{each['cpu']:.1f} s CPU"
        return f"{_seconds(each['seconds'])}; {rate}; {cpu}; {_bytes(each['stored'])}"
    if each["workload"] == "memory":
        return _bytes(each["peak"])
    if each["workload"] == "failed":
        return f"exit code {each['code']}"
    blocks = f"; {each['blocks']:,}/{each['blocks_total']:,}" if "blocks" in each else ""
    return f"{_seconds(each['seconds'])} ({_seconds(each['first'])}); {_bytes(each['bytes_read'])}{blocks}"


def _seconds(value: float) -> str:
    return f"{value:.2f} s" if value >= 1 else f"{value * 1000:.1f} ms"


def _bytes(value: float) -> str:
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}"
        value /= 1000
    return f"{value:.2f} GB"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
