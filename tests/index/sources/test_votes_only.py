"""Tables for votes alone: they take what is not read here, leave out no file with a row that matches, read nothing."""

import json
import shutil
import warnings
from collections.abc import Callable, Iterable
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.typedef import Record

import fuse_index as fuse
from fuse_index.predicate import Predicate
from fuse_index.pruning.planner import plan_scan
from fuse_index.table.sources import refresh_if_due
from fuse_storage import StoredTable, known_files
from tests.index.sources.corpora import folder_of, questions
from tests.index.sources.one_table import OneTable, add_file, delete_equal_rows

DATA = folder_of("DELTA_TEST_DATA")
DELTA_TABLES = [
    "delta-golden/collations-table",
    "delta-golden/data-reader-timestamp_ntz-id-mode",
    "delta-golden/data-skipping-basic-stats-all-types-columnmapping-id",
    "delta-golden/dv-partitioned-with-checkpoint",
    "delta-golden/dv-with-columnmapping",
    "delta-golden/spark-variant-checkpoint",
    "delta-golden/table-with-columnmapping-mode-id",
    "delta-rs/cdf-table-with-cdc-and-dvs",
    "delta-rs/spark-shredded-variant-preview-delta",
    "delta-rs/table-with-dv-small",
]
"""Tables that ``attach`` refuses to read, or has only as far as its types go."""


def left_out(table: fuse.Table, where: Predicate | str) -> set[str]:
    """The files on which votes say that no row matches."""
    predicate = table._predicate(where)
    mask = plan_scan(table.stored, predicate, table.engine, strict=True).block_mask
    return {location for location, file in known_files(table.stored).items() if not mask[file.block]}


def delta_rows(place: Path, table: fuse.Table) -> tuple[pa.Table, list[str]]:
    """All rows that files of a Delta table hold, deleted ones too, in the columns of ours, and the file of each."""
    source = DeltaTable(str(place))
    physical = {
        each["name"]: each.get("metadata", {}).get("delta.columnMapping.physicalName", each["name"])
        for each in json.loads(source.schema().to_json())["fields"]
    }
    actions = pa.table(source.get_add_actions(flatten=False)).to_pylist()
    parts, files = [], list[str]()
    for action in actions:
        location = f"{place}/{unquote(action['path'])}"
        found = pq.read_table(location, partitioning=None, coerce_int96_timestamp_unit="us")
        values = action.get("partition") or {}
        columns = [
            found.column(physical[each.name]).cast(each.type)
            if physical[each.name] in found.column_names
            else pa.chunked_array(
                [pa.array([values.get(each.name, values.get(physical[each.name]))] * len(found), each.type)]
            )
            for each in table.schema
        ]
        parts.append(pa.table(columns, schema=table.schema))
        files += [location] * len(found)
    return pa.concat_tables([table.schema.empty_table(), *parts]), files


@pytest.mark.skipif(DATA is None, reason="DELTA_TEST_DATA names no folder of Delta tables")
@pytest.mark.parametrize("name", DELTA_TABLES)
def test_a_delta_table_that_is_not_read_here_has_votes_that_hold(name: str, tmp_path: Path) -> None:
    assert DATA is not None
    place = DATA / name
    table = fuse.attach(place, tmp_path / "table", format="delta", votes_only=True)
    rows, files = delta_rows(place, table)

    assert set(files) == set(known_files(table.stored))
    for predicate, keep in questions(table, rows):
        needed = {file for file, wanted in zip(files, keep.to_pylist(), strict=True) if wanted}
        assert not needed & left_out(table, predicate), predicate
    assert len(set(files)) < 2 or left_out(table, f"`{table.schema.names[0]}` IS NULL AND false") == set(files)


def test_votes_are_given_on_files_with_deletion_vectors(tmp_path: Path) -> None:
    if DATA is None:
        pytest.skip("DELTA_TEST_DATA names no folder of Delta tables")
    place = DATA / "delta-golden/dv-with-columnmapping"
    table = fuse.attach(place, tmp_path / "table", format="delta", votes_only=True)
    table.create_index("by_col1", "bloom", ["col1"])

    assert len(left_out(table, "col1 = 7")) == len(known_files(table.stored)) - 1
    assert table.explain("col1 = 7").blocks.kept == 1


def some_rows(first: int, count: int) -> pa.Table:
    return pa.table({"id": pa.array(range(first, first + count)), "name": [f"n{n % 40}" for n in range(count)]})


@pytest.fixture
def table(tmp_path: Path) -> fuse.Table:
    for first in (0, 100):
        write_deltalake(str(tmp_path / "lake"), some_rows(first, 100), mode="append")
    return fuse.attach(tmp_path / "lake", tmp_path / "table", format="delta", votes_only=True)


ROWS: dict[str, Callable[[fuse.Table], Any]] = {
    "scan": lambda table: table.scan("id = 1"),
    "count": lambda table: table.count(),
    "head": lambda table: table.head(),
    "to_arrow": lambda table: table.to_arrow(),
    "search": lambda table: table.search("name", "n1"),
    "aggregate": lambda table: table.aggregate([], ["count(*)"]),
    "explain an aggregate": lambda table: table.explain(aggregates=["max(id)"]),
    "polars": fuse.scan_polars,
    "changes": lambda table: table.changes(table.snapshot.id),
    "convert": lambda table: table.convert(),
    "export_delta": lambda table: table.export_delta(),
    "export_iceberg": lambda table: table.export_iceberg(),
    "append": lambda table: table.append(some_rows(0, 1)),
    "delete": lambda table: table.delete("id = 1"),
    "update": lambda table: table.update("id = 1", {"name": "'x'"}),
    "overwrite": lambda table: table.overwrite(some_rows(0, 1)),
    "merge": lambda table: table.merge(some_rows(0, 1), on=["id"]),
    "add_column": lambda table: table.add_column("more", "INT"),
    "compact": lambda table: table.maintenance.compact(),
}


@pytest.mark.parametrize("name", ROWS)
def test_no_row_is_read_or_changed(table: fuse.Table, name: str) -> None:
    before = table.snapshot.id
    with pytest.raises(fuse.VotesOnly, match=r"votes on the files of .*lake, and does not know which rows") as refused:
        ROWS[name](table)

    assert refused.value.code == "VOTES_ONLY"
    assert table.refresh().snapshot.id == before


def test_an_older_reader_refuses_the_table(table: fuse.Table) -> None:
    stored = json.loads(table.stored.store.read(table.snapshot.path))

    assert "votes-only" in stored["reader_features"]
    assert fuse.open_table(table.stored.store.url).snapshot.votes_only
    clone = table.clone(f"{table.stored.store.url}-clone")
    assert clone.snapshot.votes_only


def test_columns_of_unknown_types_have_no_votes(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    folder.mkdir()
    rows = pa.table(
        {
            "id": [1, 2],
            "at": pa.array([1, 2], pa.timestamp("ns")),
            "clock": pa.array([1, 2], pa.time64("us")),
            "half": pa.array([1.0, 2.0], pa.float16()),
            "a.b": [1, 2],
            "twin": [1, 2],
            "Twin": [3, 4],
            "s": pa.array([{"t": 1}, None], pa.struct([("t", pa.time32("ms"))])),
        }
    )
    pq.write_table(rows, folder / "one.parquet")
    pq.write_table(rows, folder / "two.parquet")
    pq.write_table(pa.table({"id": [5], "ID": [6]}), folder / "twins.parquet")
    (folder / "none.parquet").write_bytes(b"no Parquet")
    table = fuse.attach(folder, tmp_path / "table", votes_only=True)

    assert table.schema.names == ["id", "a.b"]
    assert set(table.inspect.left_out()) == {"at", "clock", "half", "twin", "Twin", "s", "ID"}
    told = r"(?s)no column 'half'.*'half' has no votes here: .*halffloat"
    with pytest.raises(fuse.WhereError, match=told):
        table.create_index("by_half", "bloom", ["lower(half)"])
    with pytest.raises(fuse.WhereError, match=told):
        table.explain("half = 1")
    with pytest.raises(fuse.WhereError) as refused:
        table.create_index("by_clocks", "bloom", ["clocks"])
    assert "has no votes" not in str(refused.value)
    assert table.explain("id = 1").left_out == ()  # whoever reads the files reads these columns
    assert [Path(each).name for each in known_files(table.stored)] == ["one.parquet", "two.parquet"]


def test_files_that_nobody_can_know_are_read_as_ever(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    folder.mkdir()
    pq.write_table(pa.table({"id": [1, 2], "name": ["a", "b"]}), folder / "one.parquet")
    table = fuse.attach(folder, tmp_path / "table", votes_only=True)
    (folder / "broken.parquet").write_bytes(b"no Parquet")
    pq.write_table(pa.table({"ID": [7]}), folder / "case.parquet")
    pq.write_table(pa.table({"id": ["text"]}), folder / "type.parquet")
    pq.write_table(pa.table({"id": pa.array([1], pa.timestamp("ns"))}), folder / "time.parquet")
    pq.write_table(pa.table({"id": [3], "more": [1]}), folder / "two.parquet")

    result = table.sync()
    assert (result.added_files, result.unknown_files, result.kept_files) == (1, 4, 1)
    assert table.schema.names == ["id", "name", "more"]
    assert {Path(each).name for each in known_files(table.stored)} == {"one.parquet", "two.parquet"}
    told = table.snapshot.summary["unknown_files"]
    assert told["count"] == 4
    assert "is no Parquet file" in told["reasons"][str(folder / "broken.parquet")]
    assert "type.parquet" in told["reasons"][str(folder / "type.parquet")]
    again = table.sync()
    assert (again.added_files, again.unknown_files, again.snapshot) == (0, 4, result.snapshot)


def test_the_known_files_have_sizes_and_times(table: fuse.Table) -> None:
    files = known_files(StoredTable.open(table.stored.store.url))

    assert {(path, file.size) for path, file in files.items()} == {(path, Path(path).stat().st_size) for path in files}
    assert [file.block for file in files.values()] == [0, 1]
    assert all(abs((file.modified or 0) - Path(path).stat().st_mtime_ns // 1000) <= 1 for path, file in files.items())


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> OneTable:
    made = OneTable("test")
    monkeypatch.setattr("pyiceberg.catalog.load_catalog", lambda name: made)
    return made


def iceberg_rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    days = pa.array([date(2024, 1, 1 + first // 50)] * count, pa.date32())
    return pa.table({"id": list(numbers), "name": [f"n{n}" for n in numbers], "day": days})


def attached(tmp_path: Path, source: str = "iceberg://test/db.t") -> fuse.Table:
    table = fuse.attach(source, tmp_path / "table", format="iceberg", votes_only=True)
    assert set(table.inspect.left_out()) == set(["at", "key"] if source.endswith("newer.metadata.json") else [])
    table.create_index("by_id", "bloom", ["id"])
    return table


def test_an_iceberg_table_with_deletes_has_votes(tmp_path: Path, catalog: OneTable) -> None:
    source = catalog.create(tmp_path / "lake", iceberg_rows(0, 1).schema)
    for first in (0, 50):
        source.append(iceberg_rows(first, 50))
    delete_equal_rows(source, tmp_path / "keys.parquet", pa.table({"id": [3, 70]}))
    table = attached(tmp_path)

    files = set(known_files(table.stored))
    assert len(files) == 2
    (first,) = files - left_out(table, "id = 3")  # a deleted row is one of the file still
    (second,) = files - left_out(table, "name = 'n71' AND id = 71")
    assert first != second
    assert left_out(table, "id = 1000") == files


def test_defaults_and_values_of_partitions_are_in_files_that_lack_them(tmp_path: Path, catalog: OneTable) -> None:
    source = catalog.create(tmp_path / "lake", iceberg_rows(0, 1).schema, partition_by="day")
    for first in (0, 50):
        source.append(iceberg_rows(first, 50))
    bare = iceberg_rows(100, 50).drop_columns("day")
    add_file(source, tmp_path / "bare.parquet", bare, Record(19_731))  # 2024-01-09
    described = json.loads(Path(source.metadata_location.removeprefix("file://")).read_text())
    for schema in described["schemas"]:
        schema["fields"] += [
            {"id": 71, "name": "more", "type": "int", "required": False, "initial-default": 5},
            {"id": 72, "name": "at", "type": "timestamp_ns", "required": False},
            {"id": 73, "name": "key", "type": "uuid", "required": False},
            {"id": 74, "name": "since", "type": "date", "required": False, "initial-default": "2020-02-03"},
        ]
    newer = tmp_path / "lake/metadata/newer.metadata.json"
    newer.write_text(json.dumps(described | {"format-version": 3, "next-row-id": 150, "last-column-id": 80}))
    table = attached(tmp_path, str(newer))
    for name in ("more", "since", "day"):
        table.create_index(f"by_{name}", "bloom", [name])

    files = set(known_files(table.stored))
    assert table.schema.names == ["id", "name", "day", "more", "since"]
    (bare,) = files - left_out(table, "day = DATE'2024-01-09'")
    assert Path(bare).name == "bare.parquet"
    for where in ("more = 5", "since = DATE'2020-02-03'", "more IS NOT NULL", "NOT (more = 6)", "id < 500"):
        assert left_out(table, where) == set(), where
    for where in ("more = 6", "more IS NULL", "since IS NULL", "day IS NULL"):
        assert left_out(table, where) == files, where


def test_an_iceberg_file_without_ids_is_not_known(tmp_path: Path, catalog: OneTable) -> None:
    source = catalog.create(tmp_path / "lake", pa.schema([("id", pa.int64())]))
    source.append(pa.table({"id": [7]}))
    pq.write_table(pa.table({"id": [1]}), tmp_path / "without-ids.parquet")
    source.add_files([str(tmp_path / "without-ids.parquet")])
    table = attached(tmp_path)

    assert len(known_files(table.stored)) == 1
    assert table.sync().unknown_files == 1


def names_of(files: Iterable[str]) -> set[str]:
    return {Path(file).name for file in files}


def test_files_that_left_the_newest_version_stay_known(tmp_path: Path, table: fuse.Table) -> None:
    lake = str(tmp_path / "lake")
    first = names_of(known_files(table.stored))
    table.create_index("by_name", "bloom", ["name"])
    write_deltalake(lake, some_rows(500, 10), mode="overwrite")
    result = table.sync()
    (new,) = names_of(DeltaTable(lake).file_uris())

    assert (result.added_files, result.removed_files, result.kept_files) == (1, 0, 2)
    assert names_of(known_files(table.stored)) == {*first, new}
    assert names_of(left_out(table, "id = 505")) == first  # for VERSION AS OF at the source
    DeltaTable(lake).restore(1)
    assert (table.sync().added_files, names_of(known_files(table.stored))) == (0, {*first, new})

    table.set_properties({"max_dropped_files": 0})
    assert table.sync().removed_files == 1
    assert names_of(known_files(table.stored)) == first


def test_of_files_that_left_the_latest_stay(tmp_path: Path, table: fuse.Table) -> None:
    table.set_properties({"max_dropped_files": 2})
    lake = str(tmp_path / "lake")
    for number in range(3):
        write_deltalake(lake, some_rows(1000 * number, 5), mode="overwrite")
        table.sync()
    left = names_of(known_files(table.stored)) - names_of(DeltaTable(lake).file_uris())

    assert left == {
        *names_of(DeltaTable(lake, version=2).file_uris()),
        *names_of(DeltaTable(lake, version=3).file_uris()),
    }


def test_files_that_are_gone_hinder_no_index(tmp_path: Path, table: fuse.Table) -> None:
    lake = DeltaTable(str(tmp_path / "lake"))
    lake.optimize.compact()
    lake.vacuum(0, dry_run=False, enforce_retention_duration=False)
    table.sync()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table.create_index("by_name", "bloom", ["name"])

    assert len(known_files(table.stored)) == 3
    assert names_of(lake.file_uris()) <= names_of(left_out(table, "name = 'none'"))


def test_a_file_that_left_a_folder_is_forgotten(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    folder.mkdir()
    for name in ("one", "two"):
        pq.write_table(some_rows(0, 5), folder / f"{name}.parquet")
    table = fuse.attach(folder, tmp_path / "table", votes_only=True)
    (folder / "one.parquet").unlink()

    assert table.sync().removed_files == 1
    assert names_of(known_files(table.stored)) == {"two.parquet"}


def test_columns_that_become_others_forget_what_left(tmp_path: Path, table: fuse.Table) -> None:
    lake = str(tmp_path / "lake")
    write_deltalake(lake, pa.table({"id": ["text"]}), mode="overwrite", schema_mode="overwrite")
    table.sync()

    assert names_of(known_files(table.stored)) == names_of(DeltaTable(lake).file_uris())
    assert left_out(table, "id = 'text'") == set()


def test_a_table_is_refreshed_where_it_is_due(tmp_path: Path, table: fuse.Table) -> None:
    lake = str(tmp_path / "lake")
    table.create_index("by_name", "bloom", ["name"])
    write_deltalake(lake, some_rows(500, 10), mode="append")

    assert not refresh_if_due(table, 99)
    assert refresh_if_due(table, 100)
    assert left_out(table, "name = 'none'") == set(known_files(table.stored))
    write_deltalake(lake, some_rows(600, 10), mode="append")
    assert not refresh_if_due(table, 100)  # so soon
    table.set_properties({"max_age_seconds": 1e-9})
    assert refresh_if_due(table)
    assert not refresh_if_due(table)
    shutil.rmtree(lake)
    assert not refresh_if_due(table)
    assert len(known_files(table.stored)) == 4


@pytest.mark.parametrize(
    "properties",
    [{"max_age_seconds": 0}, {"max_unknown_files": 0}, {"max_dropped_files": -1}, {"max_dropped_files": "x"}],
)
def test_properties_that_cannot_be_are_refused(table: fuse.Table, properties: dict[str, Any]) -> None:
    with pytest.raises(fuse.InvalidArgument, match=next(iter(properties))):
        table.set_properties(properties)


def test_a_column_that_files_disagree_about_costs_no_sync(tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    folder.mkdir()
    for name, kind in (("one", pa.int64()), ("two", pa.string())):
        pq.write_table(pa.table({"id": [1, 2], "x": pa.array([None, None], kind)}), folder / f"{name}.parquet")
    table = fuse.attach(folder, tmp_path / "table", votes_only=True)
    assert table.schema.names == ["id"]
    pq.write_table(pa.table({"id": [3], "x": [4]}), folder / "three.parquet")

    done = table.sync()
    assert (done.added_files, done.kept_files, done.reread) == (1, 2, False)
    assert table.schema.names == ["id"]
    assert "x" in table.inspect.left_out()


def test_a_table_of_a_catalogue_needs_no_hint_of_its_newest_metadata(tmp_path: Path) -> None:
    source = OneTable("memory").create(tmp_path / "lake", pa.schema([("id", pa.int64())]))
    for first in (0, 100):
        source.append(pa.table({"id": range(first, first + 100)}))
    with pytest.raises(fuse.NotFound, match=r"no metadata/version-hint\.text"):
        fuse.attach(tmp_path / "lake", tmp_path / "rows", format="iceberg")

    table = fuse.attach(tmp_path / "lake", tmp_path / "votes", format="iceberg", votes_only=True)

    assert table.snapshot.block_count == 2
    source.append(pa.table({"id": range(200, 300)}))
    assert table.sync().added_files == 1
    assert table.explain("id = 250").blocks.kept == 1
