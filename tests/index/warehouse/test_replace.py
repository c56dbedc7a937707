"""A table that is made anew keeps its name, its place, its versions and its tags, whatever happens on the way."""

import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fuse_index as fuse
import fuse_storage as storage
from fuse_index import Catalog
from fuse_storage import Conflict, NotFound, SchemaError
from fuse_storage.maintenance import replace_table
from fuse_storage.maintenance.check import check_invariants

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    return fuse.catalog(str(tmp_path / "lake"), create=True)


def some(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": [f"n{i}" for i in ids]})


def rows(table: Any) -> list[dict[str, Any]]:
    return sorted(table.to_arrow().to_pylist(), key=repr)


def replace(catalog: Catalog, schema: Any, data: pa.Table | None = None, **more: Any) -> fuse.Table:
    staged = catalog.stage_table("t", schema, replace=True, **more)
    if data is not None:
        staged.table.append(data)
    staged.commit()
    return staged.table


def test_versions_and_tags_of_before_stay(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA, properties={"comment": "old", "block_rows": 5})
    table.append(some(1, 2))
    table.create_index("b", "bloom", ["name"])
    table.tag("monday")
    url, before = catalog.table_url("t"), table.snapshot.version
    new = pa.table({"name": ["x"], "price": [1.5]})

    after = replace(catalog, new.schema, new, properties={"comment": "new"})

    assert (catalog.table_url("t"), after.stored.branch, list(storage.list_branches(after.stored.store))) == (
        url,
        "main",
        ["main"],
    )
    assert rows(catalog.load_table("t")) == rows(after) == [{"name": "x", "price": 1.5}]
    assert rows(catalog.load_table("t", at="monday")) == some(1, 2).to_pylist()
    assert after.snapshot.version == before + 1
    assert next(step["operation"] for step in after.history().to_pylist()) == "replace"
    assert (dict(after.snapshot.definitions), after.snapshot.properties.get("block_rows")) == ({}, None)
    assert catalog.load_table_properties("t") == {"comment": "new"}
    after.restore("monday")
    assert rows(after) == some(1, 2).to_pylist()
    assert list(after.snapshot.definitions) == ["b"]
    check_invariants(after.stored)


def test_columns_of_the_same_name_and_type_stay_the_same_columns(catalog: Catalog) -> None:
    first = catalog.create_table("t", "id BIGINT, name STRING, at STRUCT<x: INT>, gone INT", cluster_by=["name"])
    old = {field.name: field for field in first.snapshot.schema.fields}
    nested = pa.struct([("x", pa.int32())])

    after = replace(
        catalog, pa.schema([("name", pa.string()), ("at", nested), ("id", pa.string()), ("new", pa.int32())]), None
    )

    new = {field.name: field for field in after.snapshot.schema.fields}
    assert [new[name] for name in ("name", "at")] == [old[name] for name in ("name", "at")]
    assert {new["id"].id, new["new"].id}.isdisjoint(part.id for field in old.values() for part in field.walk())
    assert new["id"].physical_name not in {field.physical_name for field in old.values()}
    assert after.snapshot.cluster_by == ()
    again = replace(catalog, pa.schema([("gone", pa.int32()), ("id", pa.int64())]), None, cluster_by=["gone"])
    assert again.snapshot.cluster_by == ("gone",)
    assert {field.id for field in again.snapshot.schema.fields}.isdisjoint(field.id for field in old.values())


@pytest.mark.parametrize(
    ("first", "then", "keeps"),
    [
        ({"primary_key": ["id"]}, {"primary_key": ["id"]}, True),
        ({"partition_by": ["name"]}, {"partition_by": ["name"]}, True),
        ({"primary_key": ["id"]}, {}, False),
        ({}, {"primary_key": ["id"]}, False),
        ({"primary_key": ["id"]}, {"primary_key": ["name"]}, False),
        ({"partition_by": ["name"]}, {}, False),
        ({"key": ["id"]}, {"key": ["name"]}, True),
    ],
)
def test_what_open_handles_rely_on_stays_or_another_table_comes(
    catalog: Catalog, first: dict[str, Any], then: dict[str, Any], keeps: bool
) -> None:
    table = catalog.create_table("t", SCHEMA, **first)
    keyed = "primary_key" in first
    table.upsert(some(1, 2)) if keyed else table.append(some(1, 2))
    staged = catalog.stage_table("t", SCHEMA, replace=True, **then)
    staged.table.upsert(some(7)) if "primary_key" in then else staged.table.append(some(7))
    staged.commit()

    now = catalog.load_table("t")
    assert rows(now) == some(7).to_pylist()
    assert (now.stored.store.url == table.stored.store.url) is keeps
    assert list(now.snapshot.key) == list(then.get("primary_key", then.get("key", [])))
    if keeps:
        assert rows(catalog.load_table("t", at=table.refresh().history().to_pylist()[-1]["snapshot"])) == []
        if keyed:
            table.upsert(some(7, 8))  # by the handle of before
            assert rows(catalog.load_table("t")) == some(7, 8).to_pylist()
    else:
        assert rows(catalog.undrop_table("t", to="before")) == some(1, 2).to_pylist()
    check_invariants(now.stored)


def test_an_old_handle_writes_to_what_it_knows_or_not_at_all(catalog: Catalog) -> None:
    old = catalog.create_table("t", SCHEMA)
    old.append(some(1))
    same, other = catalog.load_table("t"), catalog.load_table("t")
    replace(catalog, SCHEMA, some(5))

    same.append(some(6))
    assert rows(catalog.load_table("t")) == some(5, 6).to_pylist()
    with pytest.raises(Conflict):
        other.delete("id = 1")
    replace(catalog, pa.schema([("id", pa.string())]), None)
    with pytest.raises((Conflict, SchemaError)):
        old.append(some(9))
    assert rows(catalog.load_table("t")) == []


@pytest.mark.parametrize("hot", [False, True])
def test_whatever_others_did_meanwhile_is_replaced_too(catalog: Catalog, hot: bool) -> None:
    catalog.create_table("t", SCHEMA).append(some(1))
    staged = catalog.stage_table("t", SCHEMA, replace=True)
    staged.table.append(some(7))
    other = catalog.load_table("t")
    other.add_column("late", pa.int32())
    other.append(pa.table({"id": [2], "name": ["n2"], "late": pa.array([3], pa.int32())}), hot=hot)
    other.tag("late")
    staged.commit()

    assert rows(catalog.load_table("t")) == some(7).to_pylist()
    assert [row["late"] for row in rows(catalog.load_table("t", at="late"))] == [None, 3]
    again = replace(catalog, pa.schema([*SCHEMA, ("late", pa.string())]), None)
    ids = {name: field.id for name, field in ((f.name, f) for f in again.snapshot.schema.fields)}
    assert ids["late"] > max(field.id for field in other.snapshot.schema.fields)
    check_invariants(again.stored)


def test_readers_of_before_and_changes_know_both(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA, key=["id"])
    table.append(some(1, 2))
    since = table.snapshot.id
    reader = catalog.load_table("t")
    replace(catalog, SCHEMA, pa.table({"id": [2, 3], "name": ["other", "n3"]}), key=["id"])

    assert rows(reader) == some(1, 2).to_pylist()
    told = catalog.load_table("t").changes(since).to_arrow().to_pylist()
    assert sorted((row["_change_type"], row["id"]) for row in told) == [
        ("delete", 1),
        ("insert", 3),
        ("update_postimage", 2),
        ("update_preimage", 2),
    ]


def test_the_same_columns_are_the_same_schema(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA, key=["id"])
    table.append(some(1))
    after = replace(catalog, SCHEMA, some(2), key=["id"])
    assert after.snapshot.schema_id == table.snapshot.schema_id
    assert replace(catalog, SCHEMA.remove(1)).snapshot.schema_id != table.snapshot.schema_id


def test_nothing_is_left_of_what_is_given_up(catalog: Catalog) -> None:
    table = catalog.create_table("t", SCHEMA)
    table.append(some(1))
    staged = catalog.stage_table("t", SCHEMA, replace=True)
    staged.table.append(some(7))
    staged.abort()
    assert rows(catalog.load_table("t")) == some(1).to_pylist()

    dropped = catalog.stage_table("t", SCHEMA, replace=True)
    catalog.drop_table("t")
    with pytest.raises((Conflict, NotFound), match="'t'"):
        dropped.commit()
    assert rows(catalog.undrop_table("t")) == some(1).to_pylist()
    assert list(storage.list_branches(table.stored.store)) == ["main"]


def test_the_branch_of_a_process_that_died_goes_with_the_next(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = catalog.create_table("t", SCHEMA)
    table.append(some(1))
    program = (
        "import os, sys, fuse_index as fuse\n"
        "staged = fuse.catalog(sys.argv[1]).stage_table('t', 'id BIGINT, name STRING', replace=True)\n"
        "staged.table.append({'id': [7], 'name': ['x']})\n"
        "os._exit(9)\n"
    )
    died = subprocess.run([sys.executable, "-c", program, catalog.url], env=os.environ, check=False)
    assert died.returncode == 9
    assert rows(catalog.load_table("t")) == some(1).to_pylist()
    replace(catalog, SCHEMA, some(2))
    assert len(storage.list_branches(table.stored.store)) == 2  # it may still be at work
    monkeypatch.setattr(replace_table, "MAX_REPLACEMENT_TIME", timedelta(0))
    replace(catalog, SCHEMA, some(3))
    assert list(storage.list_branches(table.stored.store)) == ["main"]
    assert rows(catalog.load_table("t")) == some(3).to_pylist()


def test_a_table_that_cannot_be_read_makes_place_for_another(catalog: Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("t", SCHEMA)
    snapshots = Path(table.stored.store.url) / "_snapshots"
    files = list(snapshots.rglob("*.json")) or [
        path for path in Path(table.stored.store.url).rglob("*.json") if "_refs" not in path.parts
    ]
    for path in files:
        path.write_text("{")
    replace(fuse.catalog(catalog.url), SCHEMA, some(4))
    assert rows(fuse.catalog(catalog.url).load_table("t")) == some(4).to_pylist()


DRAWN: dict[str, tuple[str, list[dict[str, Any]], dict[str, Any]]] = {
    "another type": ("id BIGINT, x STRING", [{"id": 6, "x": "six"}], {}),
    "another name": ("id BIGINT, y STRING", [{"id": 6, "y": "six"}], {}),
    "a wider type": ("id BIGINT, x BIGINT, z INT", [{"id": 6, "x": 1 << 40, "z": 3}], {}),
    "partitions": ("id BIGINT, x DOUBLE", [{"id": i, "x": i / 2} for i in (1, 2, 6)], {"partition_by": ["id"]}),
    "a primary key": ("id BIGINT, x DATE", [{"id": 6, "x": None}], {"primary_key": ["id"]}),
}


@pytest.mark.parametrize("case", DRAWN)
def test_two_at_once_draw_other_ids(catalog: Catalog, case: str) -> None:
    columns, given, keys = DRAWN[case]
    catalog.create_table("t", "id BIGINT", **keys).append([{"id": 1}])
    first = catalog.stage_table("t", "id BIGINT, x INT", replace=True, **keys)
    second = catalog.stage_table("t", columns, ["id"], {"block_rows": 2}, replace=True, **keys)
    first.table.append([{"id": 5, "x": 5}])
    second.table.append(given)
    second.table.append([{"id": 7}])
    second.table.delete("id = 7")
    second.table.set_default(second.table.schema.names[1], None)
    first.commit()
    before = catalog.load_table("t").snapshot
    second.commit()

    now = catalog.load_table("t")
    assert rows(now) == sorted(given, key=repr)
    assert now.snapshot.cluster_by == ("id",)
    assert now.snapshot.properties["block_rows"] == 2
    assert now.version == before.version + 1
    drawn = {part.id: part.physical_name for field in now.snapshot.schema.fields[1:] for part in field.walk()}
    others = {part.id: part.physical_name for field in before.schema.fields for part in field.walk()}
    assert drawn.keys().isdisjoint(others)
    assert set(drawn.values()).isdisjoint(others.values())
    assert all(now.snapshot.schemas[number] == schema for number, schema in before.schemas.items())
    assert list(storage.list_branches(now.stored.store)) == ["main"]
    told = now.changes(before.id).to_arrow().to_pylist()  # what was in another column is not in this one
    gone = dict.fromkeys(now.schema.names) | {"id": 5, "_change_type": "delete"}
    assert [row for row in told if row["_change_type"] == "delete"] == [gone]
    check_invariants(now.stored)


def test_two_at_once_with_the_same_columns_write_nothing_twice(catalog: Catalog) -> None:
    catalog.create_table("t", "id BIGINT")
    first, second = (catalog.stage_table("t", SCHEMA, replace=True) for _ in range(2))
    first.table.append(some(1))
    second.table.append(some(2))
    files = second.table.inspect.files()
    first.commit()
    second.commit()
    now = catalog.load_table("t")
    assert (rows(now), now.inspect.files()) == (some(2).to_pylist(), files)


def test_indexes_on_what_is_prepared_are_not_taken_to_other_columns(catalog: Catalog) -> None:
    catalog.create_table("t", "id BIGINT")
    first = catalog.stage_table("t", "id BIGINT, x INT", replace=True)
    second = catalog.stage_table("t", "id BIGINT, y STRING", replace=True)
    second.table.create_index("by_y", "bloom", ["y"])
    first.commit()
    with pytest.raises(Conflict, match="others gave the table columns while indexes were made"):
        second.commit()
    now = catalog.load_table("t")
    assert now.schema.names == ["id", "x"]
    assert list(storage.list_branches(now.stored.store)) == ["main"]
