"""What there is to see of a table: complete, right, and read from metadata alone."""

import json
from datetime import date
from decimal import Decimal
from uuid import uuid4

import pyarrow.compute as pc
import pytest

import fuse_index as fuse
from fuse_index.table.views import METADATA_VIEWS
from fuse_storage import MeteredStore, meter_requests, process_cache

SCHEMA = (
    "id BIGINT NOT NULL, name STRING, at STRUCT<x: DOUBLE, deep: STRUCT<y: DATE>>, tags ARRAY<INT>, raw "
    "BINARY, price DECIMAL(9,2)"
)


def row(row_id: int, name: str | None = "n", x: float | None = 1.0) -> dict:
    at = {"x": x, "deep": {"y": date(2026, 1, row_id % 28 + 1)}}
    return {"id": row_id, "name": name, "at": at, "tags": [row_id], "raw": b"\xff\x00", "price": Decimal(row_id)}


@pytest.fixture
def table() -> fuse.Table:
    """Three blocks of two commits, the second one with an index more; then a column more."""
    made = fuse.create_table(f"memory://looking-{uuid4().hex}", SCHEMA, ["id"], {"block_rows": 4})
    made.append([row(n, f"n{n}" if n else None, float("nan") if n == 3 else None if n == 4 else n) for n in range(8)])
    made.create_index("by_name", "bloom", ["name"], build=False)
    made.append([row(100, "x" * 50)])
    made.add_column("country", "STRING", default="DE")
    return made


def test_snapshots_tell_what_the_table_was(table):
    found = table.inspect.snapshots()

    assert found.column("operation").to_pylist() == ["add column", "append", "create index", "append", "create"]
    assert found.column("rows").to_pylist() == [9, 9, 8, 8, 0]
    assert found.column("blocks").to_pylist() == [3, 3, 2, 2, 0]
    assert found.column("schema").to_pylist() == [1, 0, 0, 0, 0]
    assert found.column("indexes").to_pylist() == [["by_name"]] * 3 + [[]] * 2
    assert found.column("cluster_by").to_pylist() == [["id"]] * 5
    assert found.column("snapshot").to_pylist()[1:] == found.column("parent").to_pylist()[:-1]
    appended = json.loads(found.column("summary").to_pylist()[1])
    grown = found.column("bytes")[1].as_py() - found.column("bytes")[2].as_py()
    assert appended == {"added_rows": 1, "added_blocks": 1, "added_bytes": grown}
    assert table.inspect.snapshots(2) == found.slice(0, 2)
    assert fuse.open_table(
        table.stored.store, at=found.column("snapshot")[2].as_py()
    ).inspect.snapshots() == found.slice(2)


def test_of_a_collected_snapshot_only_the_log_tells(table):
    gone = table.inspect.snapshots().column("snapshot")[1].as_py()
    table.stored.store.delete([f"_ss/{gone}.json"])
    process_cache.clear()
    found = fuse.open_table(table.stored.store).inspect.snapshots().to_pylist()

    assert (found[1]["operation"], found[1]["rows"], found[0]["rows"]) == ("append", None, 9)


def test_segments_and_blocks_tell_where_they_are_from(table):
    blocks = table.inspect.blocks()
    assert blocks.select(["rows", "level", "schema", "added_by", "indexes"]).to_pylist() == [
        {"rows": 4, "level": 0, "schema": 0, "added_by": 2, "indexes": []},
        {"rows": 4, "level": 0, "schema": 0, "added_by": 2, "indexes": []},
        {"rows": 1, "level": 0, "schema": 0, "added_by": 4, "indexes": ["by_name"]},
    ]
    assert table.inspect.segments().select(["rows", "blocks", "added_by"]).to_pylist() == [
        {"rows": 8, "blocks": 2, "added_by": 2},
        {"rows": 1, "blocks": 1, "added_by": 4},
    ]
    table.maintenance.compact()
    assert table.inspect.blocks().column("added_by").to_pylist() == [2, 2, 4]
    assert table.inspect.segments().column("added_by").to_pylist() == [4]
    table.append([{**row(n), "country": None} for n in (2, 102)])
    table.maintenance.recluster(depth=1)
    assert max(table.inspect.blocks().column("level").to_pylist()) == 1


def test_columns_tell_what_is_known_over_all_blocks(table):
    table.rename_column("name", "called")
    found = {one["name"]: one for one in table.inspect.columns().to_pylist()}

    assert list(found) == ["id", "called", "at", "at.x", "at.deep", "at.deep.y", "tags", "raw", "price", "country"]
    assert (found["id"]["min"], found["id"]["max"], found["id"]["nullable"], found["id"]["nulls"]) == (
        "0",
        "100",
        False,
        0,
    )
    assert (found["called"]["stored_as"], found["called"]["nulls"], found["called"]["min"]) == ("name", 1, "n1")
    assert (found["called"]["max"], found["called"]["bounds_exact"]) == ("x" * 31 + "y", False)
    assert (found["at.x"]["nulls"], found["at.x"]["nans"], found["at.x"]["max"]) == (1, 1, "nan")
    assert (found["raw"]["min"], found["price"]["max"], found["at.deep.y"]["type"]) == ("ff00", "100.00", "date32[day]")
    assert (found["country"]["default"], found["country"]["min"], found["country"]["nulls"]) == ("DE", "DE", 0)
    table.set_default("country", "FR")
    (country,) = (one for one in table.inspect.columns().to_pylist() if one["name"] == "country")
    assert (country["default"], country["initial_default"], country["min"]) == ("FR", "DE", "DE")
    assert (found["at"]["nulls"], found["tags"]["min"]) == (None, None)
    assert found["id"]["bytes"] > 0


def test_statistics_tell_of_each_block_and_column(table):
    found = table.inspect.statistics()

    assert len(found) == 3 * 7
    assert found.column("column").to_pylist()[:7] == ["id", "name", "at.x", "at.deep.y", "raw", "price", "country"]
    assert found.column("block").to_pylist() == [row_id for row_id in table.stored.blocks().ids for _ in range(7)]
    ids = table.inspect.statistics(["id", "at.x"])
    assert ids.filter(pc.equal(ids.column("column"), "id")).column("max").to_pylist() == ["3", "7", "100"]
    assert ids.column("rows").to_pylist() == [4, 4, 4, 4, 1, 1]
    assert table.inspect.statistics(["country"]).column("distinct").to_pylist() == [1, 1, 1]
    with pytest.raises(fuse.InputError, match="'tags' has no statistics"):
        table.inspect.statistics(["id", "tags"])
    with pytest.raises(fuse.SchemaError, match="did you mean"):
        table.inspect.statistics(["idd"])
    for limit in (-1, "2"):
        with pytest.raises(fuse.InputError, match=r"limit=.*give a (number of commits|whole number)"):
            table.inspect.snapshots(limit)


@pytest.mark.parametrize("name", METADATA_VIEWS)
def test_every_view_is_of_metadata_alone_and_an_empty_table_has_it_too(table, name):
    if name == "maintenance":
        table.maintenance.refresh_index("by_name")
    store = meter_requests(table.stored.store)
    assert isinstance(store, MeteredStore)
    process_cache.clear()
    full = METADATA_VIEWS[name](fuse.open_table(store))
    assert full.num_rows or name in ("partitions", "plans")  # the table has none, and logs none
    assert [key for _, key, _ in store.reads if key.startswith("_b/")] == []

    empty = METADATA_VIEWS[name](fuse.create_table(f"memory://looking-{uuid4().hex}", SCHEMA))
    assert empty.schema.equals(full.schema)
