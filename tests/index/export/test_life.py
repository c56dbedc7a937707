"""A table with exports is what other engines see, whatever is done to it."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyiceberg.expressions import GreaterThan
from pyiceberg.table import StaticTable

import fuse_index as fuse
from tests.index.export.readers import (
    delta_features,
    iceberg_version,
    latest_metadata,
    our_rows,
    query_delta,
    read_delta,
    read_iceberg,
    sorted_rows,
)

COLUMNS = "id BIGINT, n INT, s STRING, d STRUCT<a: INT, b: STRING>, l ARRAY<STRUCT<x: INT>>"
EXPORTS = {"exports": "delta, iceberg", "block_rows": 10}
VECTORS = {**EXPORTS, "delete_mode": "merge-on-read"}

pytestmark = pytest.mark.filterwarnings("error::fuse_index.ExportWarning")


def rows(start: int, stop: int) -> list[dict]:
    return [{"id": n, "n": n, "s": f"s{n}", "d": {"a": n, "b": str(n)}, "l": [{"x": n}]} for n in range(start, stop)]


def late(n: int) -> list[dict]:
    """A row with the names that columns get; its list is not NULL, which PyIceberg reads as empty where one was."""
    return [{"id": n, "name": str(n), "d": {"c": n}, "l": [{"y": n}]}]


def check(place: Path) -> None:
    expected = our_rows(place)
    for name, found in [*read_delta(place), *read_iceberg(place)]:
        assert found == expected, name


def test_every_step_in_the_life_of_a_table_is_seen(tmp_path: Path) -> None:
    table = fuse.create_table(tmp_path, COLUMNS, properties=VECTORS)
    versions = {}
    for step in [
        lambda: table.append(rows(0, 35)),
        lambda: table.delete("id IN (1, 4, 7, 22)"),
        lambda: table.delete("id IN (2, 34)"),
        lambda: table.update("id = 6", {"s": "'six'"}),
        lambda: table.create_index("by_s", "bloom", ["s"]),
        lambda: table.tag("then"),
        lambda: table.rename_column("s", "name"),
        lambda: table.rename_column("d.a", "c"),
        lambda: table.rename_column("l.element.x", "y"),
        lambda: table.append(late(40)),
        lambda: table.drop_column("d.b"),
        lambda: table.add_column("s", "int"),
        lambda: table.rename_column("n", "n n,`n"),
        lambda: table.move_column("name", first=True),
        lambda: table.delete("id < 10"),
        lambda: [table.append(late(n), hot=True) for n in (60, 61)] and table.delete("id = 60"),
        lambda: table.append(late(62), hot=True) and table.maintenance.tier(),
        lambda: table.maintenance.compact(),
        lambda: table.restore("then"),
        lambda: table.overwrite(rows(0, 12)),
        lambda: table.delete("id IS NOT NULL"),
    ]:
        step()
        table.refresh()
        check(tmp_path)
        versions[DeltaTable(str(tmp_path)).version()] = our_rows(tmp_path)
    for version, expected in versions.items():
        assert sorted_rows(query_delta(tmp_path, version)) == expected


def test_rows_of_a_keyed_table_are_seen_once(tmp_path: Path) -> None:
    properties = {**EXPORTS, "hot_rows": 100, "tail_commits": 1000}
    table = fuse.create_table(tmp_path, "id BIGINT, n INT, s STRING", properties=properties, primary_key=["id"])
    for step in [
        lambda: table.upsert([{"id": n, "n": n, "s": "first"} for n in range(35)]),
        lambda: table.maintenance.tier(),
        lambda: table.upsert([{"id": n, "n": -n} for n in range(5, 15)]),
        lambda: table.maintenance.tier(),
        lambda: table.upsert([{"id": 7, "n": 70}, {"id": 8, "n": 80}]),
        lambda: table.delete("id < 20"),
        lambda: table.rename_column("s", "name"),  # an ordinary commit, which is exported with what the tail hides
        lambda: table.upsert([{"id": 8, "name": "again"}]),
        lambda: table.maintenance.compact(),
        lambda: table.maintenance.tier(),
    ]:
        step()
        table.refresh()
        table.export_delta()
        table.export_iceberg()
        check(tmp_path)


def test_columns_that_are_wider_than_in_files_are_seen(tmp_path: Path) -> None:
    columns = "id BIGINT, i TINYINT, f FLOAT, p DECIMAL(6, 2), l ARRAY<INT>, m MAP<STRING, SMALLINT>, d STRUCT<a: INT>"
    table = fuse.create_table(tmp_path, columns, properties=EXPORTS)
    whole = {"i": 3, "f": 1.5, "p": Decimal("1.25"), "l": [1], "m": [("k", 2)], "d": {"a": 4}}
    table.append([{"id": 1, **whole}, {"id": 2}])
    for path, kind in [
        ("i", "smallint"),
        ("i", "int"),
        ("f", "double"),
        ("p", "decimal(10, 2)"),
        ("l.element", "bigint"),
        ("m.value", "int"),
        ("d.a", "bigint"),
    ]:
        table.change_type(path, kind)
        table.append([{"id": 3, **whole}])
        check(tmp_path)
    described = json.loads(DeltaTable(str(tmp_path)).schema().to_json())["fields"]
    changes = {field["name"]: field["metadata"].get("delta.typeChanges") for field in described}
    assert changes["i"] == [{"fromType": "byte", "toType": "short"}, {"fromType": "short", "toType": "integer"}]
    assert changes["l"] == [{"fromType": "integer", "toType": "long", "fieldPath": "element"}]
    assert changes["m"] == [{"fromType": "short", "toType": "integer", "fieldPath": "value"}]

    table.update(None, {"id": "id"})
    assert delta_features(tmp_path) == set()
    check(tmp_path)


def test_defaults_of_older_rows_are_seen_by_iceberg(tmp_path: Path) -> None:
    table = fuse.create_table(tmp_path, "id BIGINT", properties={**VECTORS, "exports": "iceberg"})
    table.append([{"id": n} for n in range(20)])
    table.delete("id IN (1, 15)")
    assert iceberg_version(tmp_path) == 2
    for name, kind, default in [
        ("s", "string", "DE"),
        ("day", "date", date(2020, 1, 2)),
        ("price", "decimal(10, 2)", Decimal("1.50")),
        ("at", "timestamp", datetime(2020, 1, 2, tzinfo=UTC)),
        ("local", "timestamp_ntz", datetime(2020, 1, 2)),
        ("flag", "boolean", True),
        ("f", "double", 1.25),
        ("data", "binary", b"xy"),
        ("i", "tinyint", 3),
    ]:
        table.add_column(name, kind, default=default)
        assert iceberg_version(tmp_path) == 3
        check_iceberg(tmp_path)
    table.set_default("s", "IT")
    table.set_default("day", None)
    told = {
        field.name: (field.initial_default, field.write_default) for field in iceberg_table(tmp_path).schema().fields
    }
    assert (told["s"], told["day"], told["i"]) == (("DE", "IT"), (date(2020, 1, 2), None), (3, 3))
    for step in [
        lambda: table.append([{"id": 30, "s": "FR"}]),
        lambda: table.append([{"id": 31}]),
        lambda: table.delete("id IN (2, 16)"),
        lambda: table.delete("id IN (3, 30)"),
        lambda: table.change_type("i", "int"),
        lambda: table.update(None, {"id": "id"}),
    ]:
        step()
        check_iceberg(tmp_path)
    assert iceberg_version(tmp_path) == 3
    found = iceberg_table(tmp_path)
    assert found.scan(row_filter=GreaterThan("i", 2), selected_fields=("id",)).to_arrow().num_rows == table.count()


def iceberg_table(place: Path) -> StaticTable:
    return StaticTable.from_metadata(str(latest_metadata(place)))


def check_iceberg(place: Path) -> None:
    for name, found in read_iceberg(place):
        assert found == our_rows(place), name


def test_an_export_writes_the_vectors_that_are_new(tmp_path: Path) -> None:
    table = fuse.create_table(tmp_path, "id BIGINT, n INT", properties={**VECTORS, "exports": "delta, iceberg"})
    table.append([{"id": n, "n": n} for n in range(40)])
    table.delete("id IN (1, 11, 21)")
    written = set(vector_files(tmp_path))
    assert len([name for name in written if name.endswith(".bin")]) == 1
    assert len([name for name in written if name.endswith(".parquet")]) == 3

    table.delete("id = 12")
    came = set(vector_files(tmp_path)) - written
    assert sorted(Path(name).suffix for name in came) == [".bin", ".parquet"]
    table.add_column("more", "int")  # each file is added anew to Delta's log, with the vectors that are there
    assert set(vector_files(tmp_path)) == written | came
    check(tmp_path)


def vector_files(place: Path) -> list[str]:
    return [path.name for path in [*place.glob("deletion_vector_*.bin"), *place.glob("metadata/*-*.parquet")]]


def test_a_change_that_a_kept_export_cannot_say_is_refused(tmp_path: Path) -> None:
    table = fuse.create_table(tmp_path / "delta", "id BIGINT, i INT", properties={**EXPORTS, "exports": "delta"})
    table.append([{"id": 1, "i": 1}])
    with pytest.raises(fuse.SchemaError, match=r"'DE' in rows that were there before it, which Delta cannot say"):
        table.add_column("country", "string", default="DE")
    other = fuse.create_table(tmp_path / "iceberg", "id BIGINT, i INT", properties={**EXPORTS, "exports": "iceberg"})
    other.append([{"id": 1, "i": 1}])
    with pytest.raises(fuse.SchemaError, match="'i' was int32 in some blocks and is double, which Iceberg cannot say"):
        other.change_type("i", "double")
    other.add_column("country", "string", default="DE")
    with pytest.raises(fuse.SchemaError, match="which Delta cannot say"):
        other.set_properties({"exports": "delta, iceberg"})
    assert fuse.open_table(tmp_path / "iceberg").snapshot.properties["exports"] == "iceberg"
    other.update(None, {"i": "i"})
    other.set_properties({"exports": "delta, iceberg"})
    check(tmp_path / "iceberg")


@pytest.mark.parametrize(
    "write",
    [
        lambda table, rows: table.append(rows, merge_schema=True),
        lambda table, rows: table.overwrite(rows, "id > 0", merge_schema=True),
        lambda table, rows: table.merge(rows, ["id"], merge_schema=True),
    ],
    ids=["append", "overwrite", "merge"],
)
def test_rows_of_a_wider_type_are_refused_where_a_kept_export_cannot_say_it(tmp_path: Path, write: Any) -> None:
    table = fuse.create_table(tmp_path / "t", "id BIGINT, i INT", properties={**EXPORTS, "exports": "iceberg"})
    table.append([{"id": 1, "i": 1}])
    before = table.snapshot.id
    rows = pa.table({"id": [1], "i": [0.5]})
    with pytest.raises(fuse.SchemaError, match="'i' was int32 in some blocks and is double, which Iceberg cannot say"):
        write(table, rows)
    assert fuse.open_table(tmp_path / "t").snapshot.id == before
    table.overwrite(rows, merge_schema=True)  # of what it was nothing is left
    table.set_properties({"exports": "delta, iceberg"})
    assert fuse.open_table(tmp_path / "t").to_arrow().to_pylist() == rows.to_pylist()
    check(tmp_path / "t")
