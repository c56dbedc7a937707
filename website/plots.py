"""Plots of the results of benchmarks, as SVG: made of what is committed, whenever the site is built.

In: ``benchmarks/results/*.json``. Out: SVG by name. Text takes the colour of the ground that the reader's system has.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
WIDTH, LABELS, VALUES, BAR = 860, 190, 70, 14
"""Points: of a plot, of what is left of its bars, of what is right of them, and of the height of one."""
STYLE = """
text { font: 12px sans-serif; fill: #3c4043; }
.title { font-weight: 600; font-size: 14px; } .small { font-size: 11px; }
.axis { stroke: #3c4043; stroke-opacity: .18; } .ours { fill: #3f51b5; } .ours-too { fill: #8a96d6; }
.spark { fill: #e07a1f; } .other { fill: #8d9399; }
@media (prefers-color-scheme: dark) {
  text { fill: #d7dae0; } .axis { stroke: #d7dae0; } .ours { fill: #7f8ff0; } .ours-too { fill: #4d5aa8; }
  .spark { fill: #f0a04b; } .other { fill: #767d86; }
}
"""
LOCAL = ("fuse, local", "DuckDB", "ClickHouse", "Databend", "fuse, local, no index")
IN_SPARK = ("fuse, Spark", "fuse, Spark, no index", "Parquet, Spark")

Bar = tuple[str, str, float]
"""What a bar is called, its class, and how long it is."""


def plots() -> dict[str, str]:
    """All plots, by the names of their files."""
    tables, aggregate = _read("tables"), _read("aggregate")
    return {
        "lookups.svg": _lookups(tables),
        "spark.svg": _workloads(tables, IN_SPARK, "In Spark, 10,000,000 rows: seconds, warm"),
        "ingest.svg": _ingest(tables),
        "aggregate.svg": _aggregate(aggregate),
    }


def described() -> str:
    """The part of a page that shows all plots, each with what it says in words."""
    texts = {
        "lookups.svg": "Seconds of local queries, by engine; the axis is logarithmic",
        "spark.svg": "Seconds in Spark, with indexes, without, and of plain Parquet; the axis is logarithmic",
        "ingest.svg": "Rows a second that are written, by engine",
        "aggregate.svg": "Seconds of a GROUP BY, by how many blocks are indexed; the axis is logarithmic",
    }
    shown = "\n\n".join(f"![{text}](plots/{name})" for name, text in texts.items())
    return (
        f"## In pictures\n\n{shown}\n\nPlots are made of [tables.json](tables.md) and [aggregate.json](aggregate.md), "
        "which name the machine, the versions and the command.\n\n## In tables"
    )


def _read(name: str) -> Mapping[str, Any]:
    read: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    return read


def _seconds(tables: Mapping[str, Any], workload: str, engine: str) -> float | None:
    found = [
        row["seconds"]
        for row in tables["tables"]
        if (row["workload"], row["engine"], row["rows"]) == (workload, engine, 10_000_000)
    ]
    return found[0] if found else None


def _kind(engine: str) -> str:
    if engine.startswith("fuse"):
        return "ours-too" if "no index" in engine else "ours"
    return "spark" if "Spark" in engine else "other"


def _lookups(tables: Mapping[str, Any]) -> str:
    return _workloads(tables, LOCAL, "Without Spark, 10,000,000 rows: seconds, warm")


def _workloads(tables: Mapping[str, Any], engines: Sequence[str], title: str) -> str:
    groups: list[tuple[str, list[Bar]]] = []
    for workload in ("lookup, hit", "lookup, miss", "lookup by text", "IN of 50", "range, sorted", "full scan"):
        seconds = [(engine, _seconds(tables, workload, engine)) for engine in engines]
        groups.append((workload, [(engine, _kind(engine), each) for engine, each in seconds if each is not None]))
    return bars(title, groups, told_seconds, logarithmic=True)


def _ingest(tables: Mapping[str, Any]) -> str:
    engines = (*LOCAL, *IN_SPARK)
    taken = [(engine, _seconds(tables, "ingest", engine)) for engine in engines]
    rates = [(engine, _kind(engine), 10_000_000 / seconds) for engine, seconds in taken if seconds]
    return bars("Written, 10,000,000 rows: millions a second", [("ingest", rates)], lambda rate: f"{rate / 1e6:.2f} M")


def _aggregate(aggregate: Mapping[str, Any]) -> str:
    engines: dict[str, list[Bar]] = {}
    for row in aggregate["measured"]:
        if "seconds" in row:
            covered = f"{row['coverage']} % indexed" if "coverage" in row else row["engine"]
            group = row["engine"] if "coverage" in row else "others"
            engines.setdefault(group, []).append((covered, _kind(row["engine"]), row["seconds"]))
    title = f"GROUP BY over {aggregate['rows']:,} rows: seconds, warm"
    return bars(title, list(engines.items()), told_seconds, logarithmic=True)


def told_seconds(seconds: float) -> str:
    """A time in the unit that suits it."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms"


def bars(
    title: str, groups: Sequence[tuple[str, Sequence[Bar]]], told: Callable[[float], str], logarithmic: bool = False
) -> str:
    """Horizontal bars in groups; a logarithmic axis begins at the power of ten below the least value."""
    values = [value for _, group in groups for _, _, value in group]
    lowest = math.floor(math.log10(min(values))) if logarithmic else 0
    highest = math.log10(max(values)) if logarithmic else max(values)
    room, drawn, top = WIDTH - LABELS - VALUES, [f'<text class="title" x="0" y="16">{escape(title)}</text>'], 40
    for name, group in groups:
        drawn.append(f'<text x="0" y="{top}" font-weight="600">{escape(name)}</text>')
        top += 8
        for label, kind, value in group:
            share = (math.log10(value) - lowest) / (highest - lowest) if logarithmic else value / highest
            width, middle = max(2.0, room * share), top + BAR - 3
            drawn += [
                f'<text class="small" x="{LABELS - 8}" y="{middle}" text-anchor="end">{escape(label)}</text>',
                f'<rect class="{kind}" x="{LABELS}" y="{top}" width="{width:.1f}" height="{BAR - 2}" rx="2"/>',
                f'<text class="small" x="{LABELS + width + 6:.1f}" y="{middle}">{escape(told(value))}</text>',
            ]
            top += BAR + 2
        top += 22
    for power in range(lowest, math.floor(highest) + 1) if logarithmic else ():
        x = LABELS + room * (power - lowest) / (highest - lowest)
        drawn.append(f'<line class="axis" x1="{x:.1f}" y1="34" x2="{x:.1f}" y2="{top - 18}"/>')
        drawn.append(
            f'<text class="small" x="{x:.1f}" y="{top - 4}" text-anchor="middle">{told_seconds(10**power)}</text>'
        )
    size, named = f'viewBox="0 0 {WIDTH} {top + 4}"', f'role="img" aria-label="{escape(title)}"'
    opened = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {named}>'
    return f"{opened}<style>{STYLE}</style>{''.join(drawn)}</svg>\n"
