"""What planning costs on tables with many blocks: ``python -m benchmarks.planning URL PREDICATE`` measures one, cold
and warm.

The large tables are synthetic: segments as a writer makes them, over blocks that nobody will ever open. The one with
payload indexes is real, of very small blocks. "Cold" is a process's first plan of the table, opening it included, and
imports not (the operating system's cache is warm); "warm" the median of the next ones.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks import datasets, report
from benchmarks.worker import peak_memory

HERE = Path(__file__).parent
SEGMENT_BLOCKS = 1_000
BLOCK_ROWS = 1_000_000
COLUMNS = 20
WARM_RUNS = 7
SMALL_BLOCK_ROWS = 100


def measure(blocks: int, data: Path) -> Iterator[dict[str, Any]]:
    """Plans over a synthetic table of so many blocks; up to 10,000 blocks also over one with three payload indexes."""
    url = data / f"planning-{blocks}"
    if not (url / "_done").exists():
        synthetic(str(url), blocks)
        (url / "_done").touch()
    span = blocks * BLOCK_ROWS
    for name, predicate in (
        ("range, sorted column", f"c0 BETWEEN {span // 3} AND {span // 3 + BLOCK_ROWS}"),
        ("range, unsorted column", f"c1 BETWEEN {span // 3} AND {span // 3 + BLOCK_ROWS // 2}"),
    ):
        yield {"blocks": blocks, "predicate": name} | in_a_process(str(url), predicate)
    if blocks <= 10_000:
        url = data / f"indexed-{blocks}"
        if not (url / "_done").exists():
            indexed(str(url), blocks)
            (url / "_done").touch()
        rows = datasets.batch(0, 500).to_pylist()
        predicate = f"code = {rows[40]['code']} OR name = '{rows[240]['name']}' OR amount = {rows[440]['amount']!r}D"
        yield {"blocks": blocks, "predicate": "OR of three bloom indexes"} | in_a_process(str(url), predicate)


def in_a_process(url: str, predicate: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.planning", url, predicate]
    done = subprocess.run(
        command, cwd=HERE.parent, env=report.environment(), stdout=subprocess.PIPE, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def main(url: str, predicate: str) -> None:
    import fuse_index

    fuse_index.create_table("memory://empty", "c1 BIGINT").explain("c1 = 1")  # imports what planning needs
    started = time.perf_counter()
    table = fuse_index.open_table(url)
    explanation = table.explain(predicate)
    cold = time.perf_counter() - started
    times = []
    for _ in range(WARM_RUNS):
        started = time.perf_counter()
        explanation = table.explain(predicate)
        times.append(time.perf_counter() - started)
    told = explanation.to_dict()
    print(
        json.dumps(
            {"cold": cold, "warm": statistics.median(times), "kept": told["blocks"]["kept"], "peak": peak_memory()}
        )
    )


def synthetic(url: str, blocks: int, options: Mapping[str, str] | None = None, span: int = BLOCK_ROWS) -> None:
    """A table of ``COLUMNS`` columns: in c0 blocks follow each other, in the others they lie anywhere.

    ``span``: how far the greatest value of a block is from its least.
    """
    import fuse_storage
    from fuse_storage.metadata import metadata_table, segment, segment_list
    from fuse_storage.metadata.file_ref import create_file, new_id

    schema = pa.schema([pa.field(f"c{i}", pa.int64()) for i in range(COLUMNS)])
    table = fuse_storage.StoredTable.create(fuse_storage.open_store(url, options) if options else url, schema)
    random = np.random.default_rng(7)
    staged = []
    for first in range(0, blocks, SEGMENT_BLOCKS):
        ordinals = np.arange(first, min(first + SEGMENT_BLOCKS, blocks))
        schema = table.snapshot.schema
        rows = _blocks(schema, ordinals, random.integers(0, blocks, (COLUMNS, len(ordinals))), span)
        row_id = new_id()
        reference = create_file(table.store, segment.segment_path(row_id), metadata_table.encode_metadata(rows))
        row = segment_list.segment_row(row_id, reference, None, rows, schema)
        staged.append(
            segment.StagedSegment(
                row_id,
                schema.id,
                len(ordinals) * BLOCK_ROWS,
                len(ordinals),
                datetime.now(UTC),
                row,
            )
        )
    table.transaction().append(staged).commit("append")


def _blocks(schema: Any, ordinals: np.ndarray, places: np.ndarray, span: int) -> pa.Table:
    from fuse_storage import ColumnStatistics
    from fuse_storage import statistics as stored
    from fuse_storage.metadata import segment
    from fuse_storage.metadata.file_ref import new_id

    count = len(ordinals)
    known = {
        "id": [new_id() for _ in ordinals],
        "format": ["parquet"] * count,
        "row_count": [BLOCK_ROWS] * count,
        "live_rows": [BLOCK_ROWS] * count,
        "stats_exact": [True] * count,
        "size": [64 << 20] * count,
        "hash": ["0" * 32] * count,
        "footer_offset": [(64 << 20) - 40_000] * count,
        "footer_length": [38_000] * count,
        "zone_rows": [[BLOCK_ROWS]] * count,
        "schema_id": [schema.id] * count,
        "level": [0] * count,
    }
    columns = {
        field.name: pa.array(known.get(field.name, [None] * count), field.type) for field in segment.BLOCK_SCHEMA
    }
    whole = pa.array(np.full(count, BLOCK_ROWS))
    none = pa.array(np.zeros(count, np.int64))
    exact = pa.array(np.zeros(count, np.bool_))
    for number, (_, field) in enumerate(schema.leaves()):
        low = (ordinals if number == 0 else places[number]) * BLOCK_ROWS
        found = ColumnStatistics(
            min=pa.array(low),
            max=pa.array(low + span - 1),
            min_cut=exact,
            max_cut=exact,
            null_count=none,
            nan_count=none,
            distinct_count=whole,
            size=whole,
        )
        columns |= stored.encode_statistics(field.id, found)
    return pa.table(columns)


def indexed(url: str, blocks: int) -> None:
    """A real table of very small blocks, with three bloom indexes."""
    import fuse_index

    table = fuse_index.create_table(
        url, datasets.SCHEMA, properties={"block_rows": SMALL_BLOCK_ROWS, "zone_rows": SMALL_BLOCK_ROWS}
    )
    for column in ("code", "name", "amount"):
        table.create_index(column, "bloom", [column])
    table.append(datasets.batch(0, blocks * SMALL_BLOCK_ROWS))


if __name__ == "__main__":
    main(*sys.argv[1:])
