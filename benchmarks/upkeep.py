"""What keeping a table costs: ``python -m benchmarks.upkeep``, or some of it: ``python -m benchmarks.upkeep --parts
metadata compact``.

- metadata: rename, tag, branch, clone and such, of tables of ten and of many blocks: milliseconds, requests, bytes
  written
- append: a hundred rows to a table of many blocks, beside the same to one of ten, in turns
- delete: one key of many rows: which blocks are read and written again
- compact: many small blocks: rows a second, and the peak of memory
- due: what many small tables are due for, asked by a process that knows none of them, and again without news

Tables for the first two have segments as a writer makes them, over blocks that nobody opens. Each part runs in a
process of its own. Results go to ``benchmarks/results/upkeep.md``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa

import fuse_index as fuse
from benchmarks import datasets, planning, report
from benchmarks.worker import peak_memory
from fuse_index.indexes.builder import index_builders
from fuse_index.table.upkeep.maintainer import KeptTable
from fuse_storage import StoredTable, meter_requests, open_store, process_cache
from fuse_storage.store.wrappers import MeteredStore

HERE = Path(__file__).parent
RUNS = 7
APPENDS = 25
Cells = Mapping[str, Any]


def timed(work: Callable[[], Any]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def metadata(data: Path, wanted: argparse.Namespace) -> Iterator[Cells]:
    for blocks in (10, wanted.blocks):
        url = str(data / f"metadata-{blocks}")
        planning.synthetic(url, blocks)
        store = meter_requests(StoredTable.open(url).store)
        table = fuse.Table(StoredTable.open(store), fuse.open_table(url).host)
        for name, work in operations(table, fuse.open_table(url), data).items():
            yield {"blocks": f"{blocks:,}", "operation": name} | counted(work, store)


def operations(table: fuse.Table, plain: fuse.Table, data: Path) -> Mapping[str, Callable[[], Any]]:
    """What changes or reads no rows, each as often as wanted. ``plain``: the table on a store that can be cloned."""
    first, fresh = table.snapshot.id, (f"n{number}" for number in count())
    return {
        "tag": lambda: table.tag(next(fresh)),
        "branch": lambda: table.branch(next(fresh)),
        "rename_column": lambda: table.rename_column(table.schema.names[3], next(fresh)),
        "add_column": lambda: table.add_column(next(fresh), "BIGINT", default=7),
        "restore": lambda: table.restore(first),
        "clone": lambda: plain.clone(str(data / f"clone-{uuid4().hex}")),
        "diff": lambda: table.diff(first),
        "history": lambda: table.history(),
    }


def counted(work: Callable[[], Any], store: MeteredStore) -> Cells:
    """The median of some runs. A clone goes past the store that counts."""
    seconds, requests, written = [], [], []
    for _ in range(RUNS):
        store.reset()
        seconds.append(timed(work))
        requests.append(store.request_count)
        written.append(store.bytes_written)
        assert not any(key.startswith("_b/") for _, key, _ in store.writes), "rows were written"
    known = max(requests) > 0
    return {
        "ms": round(1000 * statistics.median(seconds), 1),
        "requests": round(statistics.median(requests)) if known else "",
        "bytes written": f"{round(statistics.median(written)):,}" if known else "",
    }


def append(data: Path, wanted: argparse.Namespace) -> Iterator[Cells]:
    tables = {}
    for blocks in (10, wanted.many_blocks):
        planning.synthetic(str(data / f"append-{blocks}"), blocks)
        tables[blocks] = fuse.open_table(str(data / f"append-{blocks}"))
    rows = pa.table({name: range(100) for name in tables[10].schema.names}, tables[10].schema)
    seconds: dict[int, list[float]] = {blocks: [] for blocks in tables}
    for _ in range(APPENDS):
        for blocks, table in tables.items():
            seconds[blocks].append(timed(partial(table.append, rows)))
    small, large = (statistics.median(found) for found in seconds.values())
    for blocks, found in seconds.items():
        yield {"blocks": f"{blocks:,}", "ms of 100 rows": round(1000 * statistics.median(found), 1)}
    yield {"blocks": "ratio", "ms of 100 rows": round(large / small, 2)}


def delete(data: Path, wanted: argparse.Namespace) -> Iterator[Cells]:
    table = fuse.create_table(str(data / "delete"), datasets.SCHEMA, properties={"block_rows": 200_000})
    table.create_index("by_code", "bloom", ["code"])
    for first in range(0, wanted.rows, datasets.FILE_ROWS):
        table.append(datasets.batch(first, min(datasets.FILE_ROWS, wanted.rows - first)))
    code = datasets.batch(wanted.rows // 3, 1).column("code")[0].as_py()
    before = table.snapshot
    store = meter_requests(table.stored.store)
    opened = fuse.Table(StoredTable.open(store), table.host)
    store.reset()
    seconds = timed(lambda: opened.delete(f"code = {code}"))
    changed = opened.diff(before.id)
    assert before.row_count - opened.snapshot.row_count == 1
    yield {
        "rows": f"{wanted.rows:,}",
        "blocks": before.block_count,
        "blocks replaced": changed.removed.blocks,
        "blocks kept": changed.kept.blocks,
        "bytes read": f"{store.bytes_read:,}",
        "bytes written": f"{store.bytes_written:,}",
        "s": round(seconds, 2),
    }


def compact(data: Path, wanted: argparse.Namespace) -> Iterator[Cells]:
    rows = wanted.blocks * wanted.small_rows
    for indexes in ([], ["code"]):
        table = fuse.create_table(str(data / f"compact-{len(indexes)}"), datasets.SCHEMA)
        for column in indexes:
            table.create_index(f"by_{column}", "bloom", [column])
        building = index_builders(table.snapshot, table.host)
        for first in range(0, rows, datasets.FILE_ROWS):
            with table.stored.writer(building, block_rows=wanted.small_rows) as writer:
                writer.write(datasets.batch(first, min(datasets.FILE_ROWS, rows - first)))
                staged = writer.finish()
            table.stored = table.stored.transaction(building).append(staged).commit("append")
        before = table.snapshot
        seconds = timed(table.maintenance.compact)
        assert table.snapshot.row_count == before.row_count == rows
        yield {
            "rows": f"{rows:,}",
            "bloom indexes": len(indexes),
            "blocks before": f"{before.block_count:,}",
            "after": table.snapshot.block_count,
            "s": round(seconds, 1),
            "M rows a second": round(rows / seconds / 1e6, 2),
            "peak, GB": round(peak_memory() / 1e9, 2),
        }


def due(data: Path, wanted: argparse.Namespace) -> Iterator[Cells]:
    catalog = fuse.catalog(str(data / "warehouse"), create=True)
    rows = pa.table({"id": range(60), "name": [str(number) for number in range(60)]})
    for number in range(wanted.tables):
        properties = {"block_rows": 10, "maintain": "on"}
        table = catalog.create_table(f"t{number}", "id BIGINT, name STRING", ["id"], properties)
        table.create_index("by_name", "bloom", ["name"])
        table.append(rows)
    kept = [KeptTable(f"t{number}", partial(metered, catalog, number)) for number in range(wanted.tables)]
    process_cache.clear()
    for name in ("cold", "without news", "without news"):
        began, asked = time.process_time(), requests(kept)
        assert all(each.look().policy.stated and not each.due for each in kept)
        seconds = time.process_time() - began
        yield {
            "tables": wanted.tables,
            "asked": name,
            "processor seconds": round(seconds, 2),
            "ms a table": round(1000 * seconds / wanted.tables, 2),
            "requests a table": round((requests(kept) - asked) / wanted.tables, 2),
        }


def metered(catalog: fuse.Catalog, number: int) -> fuse.Table:
    store = meter_requests(open_store(catalog.table_url(f"t{number}")))
    return fuse.Table(StoredTable.open(store), catalog.host)


def requests(kept: Sequence[KeptTable]) -> int:
    stores = [each.table.stored.store for each in kept if each.table is not None]
    return sum(store.request_count for store in stores if isinstance(store, MeteredStore))


PARTS: Mapping[str, Callable[[Path, argparse.Namespace], Iterator[Cells]]] = {
    "metadata": metadata,
    "append": append,
    "delete": delete,
    "compact": compact,
    "due": due,
}


def alone(part: str, wanted: argparse.Namespace) -> list[Cells]:
    """A part in a process of its own, for its peak of memory."""
    print(part, file=sys.stderr)
    sizes = [
        f"--{name.replace('_', '-')}={getattr(wanted, name)}"
        for name in ("rows", "blocks", "many_blocks", "small_rows", "tables", "data")
    ]
    command = [sys.executable, "-m", "benchmarks.upkeep", "--as-json", "--parts", part, *sizes]
    done = subprocess.run(
        command, cwd=HERE.parent, env=report.environment(), stdout=subprocess.PIPE, text=True, check=True
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.upkeep", description=__doc__)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the table that one is deleted of")
    parser.add_argument("--blocks", type=int, default=10_000, help="of the tables for metadata and compact")
    parser.add_argument("--many-blocks", type=int, default=100_000, help="of the table that is appended to")
    parser.add_argument("--small-rows", type=int, default=1_000, help="of each block that is compacted")
    parser.add_argument("--tables", type=int, default=1_000, help="of the warehouse that is asked what is due")
    parser.add_argument("--as-json", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, default=HERE / "data" / "upkeep")
    parser.add_argument("--results", type=Path, default=HERE / "results")
    wanted = parser.parse_args()
    wanted.data = wanted.data.resolve()
    if wanted.as_json:
        for row in PARTS[wanted.parts[0]](wanted.data, wanted):
            print(json.dumps(row), flush=True)
        return
    found = {}
    for part in wanted.parts:
        shutil.rmtree(wanted.data, ignore_errors=True)
        wanted.data.mkdir(parents=True)
        found[part] = alone(part, wanted)
        shutil.rmtree(wanted.data)
    parts = [line for name, rows in found.items() for line in ("", f"## {name}", "", *report.grid(rows))]
    report.page(wanted.results / "upkeep.md", ["# Upkeep", "", report.made_by("benchmarks.upkeep"), *parts])


if __name__ == "__main__":
    main()
