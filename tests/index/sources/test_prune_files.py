"""Readers of a source in Python leave out files by votes: rows are the same with and without, at every version."""

import itertools
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.types import LongType, StringType

import fuse_index as fuse
from tests.effort import effort
from tests.index.sources.one_table import OneTable, delete_rows_at


def some_rows(first: int, count: int, seed: int = 0) -> pa.Table:
    draw = random.Random(seed + first)
    return pa.table(
        {
            "id": pa.array(range(first, first + count), pa.int64()),
            "a": pa.array([draw.choice([None, *range(first % 7, 900, 7)]) for _ in range(count)], pa.int64()),
            "b": pa.array([draw.choice([None, f"b{draw.randrange(900)}"]) for _ in range(count)], pa.string()),
        }
    )


def condition(draw: random.Random, names: dict[str, pa.DataType], depth: int = 2) -> str:
    """A condition that Spark and DuckDB understand alike."""
    if depth and draw.random() < 0.6:
        word = draw.choice(["AND", "OR", "OR"])
        parts = f" {word} ".join(condition(draw, names, depth - 1) for _ in range(2))
        return f"NOT ({parts})" if draw.random() < 0.2 else f"({parts})"
    name = draw.choice(sorted(names))
    values = [f"'b{draw.randrange(900)}'" if names[name] == pa.string() else str(draw.randrange(900)) for _ in range(3)]
    kind = draw.choice(["{0} = {1}", "{0} = {1}", "{0} IN ({1}, {2}, {3})", "{0} < {1}", "{0} IS NULL", "{0} <> {1}"])
    return kind.format(name, *values)


def matching(rows: Any, where: str) -> list[dict[str, Any]]:
    assert rows is not None
    found = duckdb.sql(f"SELECT * FROM rows WHERE {where}").to_arrow_table().to_pylist()
    return sorted(found, key=lambda row: (row["id"] is None, row["id"]))


def check(
    table: fuse.Table, source: Any, whole: pa.Table, read: Callable[[Any], pa.Table], total: int, seed: int = 0
) -> int:
    """Compare rows with and without votes for random conditions; the number of files that were left out."""
    draw, left = random.Random(seed), 0
    names = {each.name: each.type for each in whole.schema if each.type in (pa.int64(), pa.string())}
    conditions = [condition(draw, names) for _ in range(effort(6))]
    for where in [*conditions, f"id = {whole.column('id')[0].as_py()}", "id = -5"]:
        pruned = fuse.prune_files(table, where, source)
        assert matching(read(pruned), where) == matching(whole, where), where
        left += total - len(pruned if isinstance(pruned, list) else list(pruned.get_fragments()))
    return left


def with_indexes(table: fuse.Table) -> fuse.Table:
    for name in ("id", "a", "b"):
        table.create_index(f"by_{name}", "bloom", [name])
    return table


def test_rows_of_a_delta_table_are_the_same_at_each_version(tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    for first in (0, 200, 400):
        write_deltalake(lake, some_rows(first, 200), mode="append")
    table = with_indexes(fuse.attach(lake, tmp_path / "table", format="delta", votes_only=True))
    DeltaTable(lake).delete("id >= 150 AND id < 260")
    DeltaTable(lake).update(predicate="id = 5", updates={"b": "'b5'"})
    more = some_rows(600, 100).append_column("more", pa.array(["m"] * 100))
    write_deltalake(lake, more, mode="append", schema_mode="merge")
    newest = DeltaTable(lake).version()

    for synced in (False, True):
        if synced:
            table.sync()
        for version in range(newest + 1):
            source = DeltaTable(lake, version=version)
            whole = pa.table(source.to_pyarrow_dataset().to_table())
            left = check(table, source, whole, lambda found: found.to_table(), len(source.file_uris()), version)
            assert left > 0, version
    with pytest.raises(fuse.WhereError, match="no column 'none'"):
        fuse.prune_files(table, "none = 5", DeltaTable(lake))


def test_rows_of_a_partitioned_delta_table_are_the_same(tmp_path: Path) -> None:
    lake, cities = str(tmp_path / "lake"), ["a/b c", "Öl 100%", "x%2Fy", None]
    rows = some_rows(0, 200).append_column("city", pa.array([cities[n % 4] for n in range(200)]))
    write_deltalake(lake, rows, partition_by=["city"])
    table = with_indexes(fuse.attach(lake, tmp_path / "table", format="delta", votes_only=True))
    source = DeltaTable(lake)

    whole = source.to_pyarrow_dataset().to_table()
    assert check(table, source, whole, lambda found: found.to_table(), 4) > 0
    for city in cities[:3]:
        (fragment,) = fuse.prune_files(table, f"city = '{city}'", source).get_fragments()
        assert fragment.to_table(schema=whole.schema).column("city").to_pylist() == [city] * 50


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> OneTable:
    made = OneTable("test")
    monkeypatch.setattr("pyiceberg.catalog.load_catalog", lambda name: made)
    return made


def test_rows_of_an_iceberg_table_are_the_same_in_each_snapshot(tmp_path: Path, catalog: OneTable) -> None:
    source = catalog.create(tmp_path / "lake", some_rows(0, 1).schema)
    for first in (0, 200, 400):
        source.append(some_rows(first, 200))
    table = with_indexes(fuse.attach("iceberg://test/db.t", tmp_path / "table", format="iceberg", votes_only=True))
    source.delete("id >= 150 and id < 260")
    delete_rows_at(source, tmp_path / "deleted.parquet", [3, 5, 8])
    with source.update_schema() as update:  # a number and a text exchange their names
        update.rename_column("a", "c")
        update.rename_column("b", "a")
    with source.update_schema() as update:
        update.rename_column("c", "b")
        update.add_column("more", StringType())
    last = some_rows(600, 100).rename_columns(["id", "b", "a"]).select(["id", "b", "a"])
    source.append(last.append_column("more", pa.array(["m"] * 100)))
    snapshots = [each.snapshot_id for each in source.snapshots()]

    def rows(scan: Any, tasks: Any) -> pa.Table:
        return ArrowScan(scan.table_metadata, scan.io, scan.projection(), scan.row_filter).to_table(tasks)

    for synced in (False, True):
        if synced:
            table.sync()
        for number, snapshot in enumerate([*snapshots, None]):
            scan = source.scan(snapshot_id=snapshot)
            read = lambda tasks, scan=scan: rows(scan, tasks)  # noqa: E731
            assert check(table, scan, scan.to_arrow(), read, len(list(scan.plan_files())), number) > 0, number


def test_widened_columns_get_no_votes_where_they_are_narrow(tmp_path: Path, catalog: OneTable) -> None:
    narrow = pa.schema([("id", pa.int32())])
    source = catalog.create(tmp_path / "lake", narrow)
    for value in (1, 2):
        source.append(pa.table({"id": pa.array([value], pa.int32())}))
    before = source.current_snapshot()
    assert before is not None
    with source.update_schema() as update:
        update.update_column("id", LongType())
    table = fuse.attach("iceberg://test/db.t", tmp_path / "table", format="iceberg", votes_only=True)

    assert len(fuse.prune_files(table, "id = 1", source.scan())) == 1
    source.append(pa.table({"id": [7]}))
    assert len(fuse.prune_files(table, "id = 1", source.scan())) == 2  # one is not known
    assert len(fuse.prune_files(table, "id = 1", source.scan(snapshot_id=before.snapshot_id))) == 2


def test_files_of_a_folder_are_left_out_where_they_are_as_they_were(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    for part, first in (("x", 0), ("x", 200), ("y", 400)):
        (lake / f"part={part}").mkdir(parents=True, exist_ok=True)
        pq.write_table(some_rows(first, 200), lake / f"part={part}" / f"{first}.parquet", compression="none")
    table = with_indexes(fuse.attach(lake, tmp_path / "table", votes_only=True))

    def dataset() -> ds.Dataset:
        return ds.dataset(lake, format="parquet", partitioning="hive")

    whole = dataset().to_table()
    assert check(table, dataset(), whole, lambda found: found.to_table(), 3) > 0
    assert len(fuse.prune_files(table, "part = 'y'", dataset()).files) == 1

    replaced = lake / "part=x" / "0.parquet"  # by one of the same size and time
    before = replaced.stat()
    pq.write_table(some_rows(0, 200).set_column(0, "id", pa.array(range(900, 1100))), replaced, compression="none")
    assert replaced.stat().st_size == before.st_size
    os.utime(replaced, ns=(before.st_atime_ns, before.st_mtime_ns))
    pq.write_table(some_rows(700, 10), lake / "part=y" / "new.parquet")
    left = fuse.prune_files(table, "id = 1000", dataset())
    assert {Path(each).name for each in left.files} == {"0.parquet", "new.parquet"}
    assert check(table, dataset(), dataset().to_table(), lambda found: found.to_table(), 4) > 0

    cast = ds.dataset(lake, format="parquet", schema=pa.schema([("id", pa.string())]))
    assert len(fuse.prune_files(table, "id = '1'", cast).files) == 4  # other columns than ours


@pytest.mark.parametrize("votes_only", [True, False])
def test_a_column_that_files_hold_and_a_path_names_gets_votes_where_both_read_the_path(
    tmp_path: Path, votes_only: bool
) -> None:
    lake = tmp_path / "lake"
    for year, rows in ((2024, {"id": [1, 2], "year": [7, 8]}), (2025, {"id": [3, 4], "year": [9, 2024]})):
        (lake / f"year={year}").mkdir(parents=True)
        pq.write_table(pa.table(rows), lake / f"year={year}" / "f.parquet")
    table = fuse.attach(lake, tmp_path / "table", votes_only=votes_only)
    own, schema = ds.dataset(lake), pa.schema([("id", pa.int64()), ("year", pa.int64())])
    hive = ds.dataset(lake, schema=schema, partitioning=ds.partitioning(schema.remove(0), flavor="hive"))

    for dataset, condition in itertools.product((own, hive), (ds.field("year") == 8, ds.field("year") == 2024)):
        pruned = fuse.prune_files(table, str(condition).strip("()").replace("==", "="), dataset)
        assert pruned.to_table(filter=condition) == dataset.to_table(filter=condition)
    assert len(fuse.prune_files(table, "year = 8", own).files) == 2
    assert fuse.prune_files(table, "year = 2025", hive).files == [f"{lake}/year=2025/f.parquet"]
    assert len(fuse.prune_files(table, "id = 1 AND year = 7", own).files) == 1


def test_files_stay_where_a_condition_is_on_a_column_that_tables_cannot_have(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    pq.write_table(pa.table({"id": [1], "t": pa.array([1], pa.time64("us"))}), tmp_path / "lake" / "f.parquet")
    table = fuse.attach(tmp_path / "lake", tmp_path / "table", votes_only=True)
    dataset = ds.dataset(tmp_path / "lake")

    assert len(fuse.prune_files(table, "t = '00:00'", dataset).files) == 1
    assert len(fuse.prune_files(table, "id = 2", dataset).files) == 0
    with pytest.raises(fuse.WhereError, match="no column 'total'"):
        fuse.prune_files(table, "total = 2", dataset)


def test_what_cannot_be_pruned_is_told(tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    write_deltalake(lake, some_rows(0, 10))
    table = fuse.attach(lake, tmp_path / "table", format="delta", votes_only=True)
    dataset = DeltaTable(lake).to_pyarrow_dataset()

    with pytest.raises(fuse.InputError, match="is over no source of format 'parquet'"):
        fuse.prune_files(table, "id = 1", dataset)
    with pytest.raises(fuse.InputError, match="give a DeltaTable, a scan of PyIceberg"):
        fuse.prune_files(table, "id = 1", ["a.parquet"])
    own = fuse.create_table(tmp_path / "own", "id BIGINT")
    with pytest.raises(fuse.InputError, match="own is over no source of format 'delta'"):
        fuse.prune_files(own, "id = 1", DeltaTable(lake))


def test_rows_that_are_deleted_now_are_found_where_they_count(tmp_path: Path, catalog: OneTable) -> None:
    source = catalog.create(tmp_path / "lake", some_rows(0, 1).schema)
    source.append(pa.table({"id": range(50), "a": range(50), "b": ["red"] * 49 + ["blue"]}))
    before = source.current_snapshot()
    assert before is not None
    delete_rows_at(source, tmp_path / "deleted.parquet", [49])
    table = fuse.attach("iceberg://test/db.t", tmp_path / "table", format="iceberg")
    table.create_index("words", "full_text", ["b"])  # which knows single rows
    assert table.explain("match(b, 'blue')").blocks.kept == 0

    assert len(fuse.prune_files(table, "match(b, 'blue')", source.scan(snapshot_id=before.snapshot_id))) == 1


def test_a_path_in_place_of_a_table_is_refused_by_what_to_give() -> None:
    with pytest.raises(fuse.InputError, match="table='/lake': give an open table over the source"):
        fuse.prune_files("/lake", "id = 1", None)  # type: ignore[arg-type]
