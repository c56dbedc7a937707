"""Suggestions say what statistics tell, ask the installed kinds, and read no row."""

from uuid import uuid4

import numpy as np
import pyarrow as pa

import fuse_index as fuse
from fuse_storage import meter_requests, process_cache

SCHEMA = "id BIGINT, user STRING, status STRING, ok BOOLEAN, at STRUCT<x: DOUBLE>, nothing INT, tags ARRAY<INT>"


def filled(blocks: int = 20) -> fuse.Table:
    table = fuse.create_table(f"memory://suggesting-{uuid4().hex}", SCHEMA, (), {"block_rows": 100})
    count = blocks * 100
    mixed = np.random.default_rng(1).permutation(count)
    table.append(
        pa.table(
            {
                "id": range(count),
                "user": [f"u{n}" for n in mixed],
                "status": [f"s{n % 3}" for n in mixed],
                "ok": [bool(n % 2) for n in mixed],
                "at": [{"x": float(n)} for n in mixed],
                "nothing": pa.nulls(count, pa.int32()),
                "tags": [[int(n)] for n in mixed],
            }
        )
    )
    return table


def advised(table: fuse.Table) -> dict[str, dict]:
    return {row["column"]: row for row in table.inspect.suggest().to_pylist()}


def test_each_column_is_judged_by_what_its_bounds_and_counts_tell():
    table = filled()
    store = meter_requests(table.stored.store)
    process_cache.clear()
    found = advised(fuse.open_table(store))

    assert {name: row["advice"] for name, row in found.items()} == {
        "id": "none",
        "user": "index",
        "status": "cluster",
        "ok": "cluster",
        "at.x": "index",
        "nothing": "none",
    }
    assert (found["id"]["reads"], found["user"]["reads"], found["status"]["distinct_per_block"]) == (0.05, 1.0, 3)
    assert (found["nothing"]["nulls"], found["user"]["nulls"], found["user"]["distinct_per_block"]) == (1.0, 0.0, None)
    assert "bloom" in found["user"]["kinds"]
    assert "aggregate" not in found["user"]["kinds"]
    assert found["status"]["kinds"] == []
    assert "reads 100% of the blocks" in found["user"]["why"]
    assert [key for _, key, _ in store.reads if key.startswith(("_b/", "_i/"))] == []


def test_what_is_there_already_is_not_suggested():
    table = filled()
    table.create_index("by_user", "bloom", ["user"], build=False)
    found = advised(table)["user"]
    assert (found["advice"], found["why"]) == (
        "none",
        "an equality reads 100% of the blocks by their bounds, and index 'by_user' is on it",
    )
    table.cluster_by(["at.x"])
    table.maintenance.recluster()
    assert advised(table)["at.x"]["advice"] == "none"


def test_little_tables_need_no_advice():
    assert {row["advice"] for row in advised(filled(3)).values()} == {"none"}
    assert {row["advice"] for row in advised(filled(0)).values()} == {"none"}
