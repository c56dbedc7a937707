"""A folder of Parquet files that somebody else writes, attached: its rows, its changes, and what is refused."""

import dataclasses
import json
import os
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import fuse_index as fuse
from fuse_storage import Cache, Snapshot, meter_requests, open_store
from fuse_storage.parquet.reader import read_block
from tests.effort import effort, in_turn, some_of
from tests.index.sources.walks import assert_same_rows, sorted_rows

START = datetime(2024, 1, 1, tzinfo=UTC)
STRUCT = pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])


def float_of(n: int) -> float:
    return float("nan") if n % 7 == 0 else -0.0 if n % 5 == 0 else n / 3


def all_types(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "small": pa.array([n % 100 for n in numbers], pa.int8()),
            "unsigned": pa.array([n % 250 for n in numbers], pa.uint8()),
            "huge": pa.array([2**64 - 1 - n for n in numbers], pa.uint64()),
            "f": pa.array(
                [float("nan") if n % 7 == 0 else -0.0 if n % 5 == 0 else n / 3 for n in numbers], pa.float64()
            ),
            "name": pa.array([None if n % 4 == 0 else f"náme {n % 90}" for n in numbers], pa.string()),
            "data": pa.array([str(n % 50).encode() for n in numbers], pa.binary()),
            "price": pa.array([Decimal(n) / 100 for n in numbers], pa.decimal128(9, 2)),
            "wide": pa.array([Decimal(n) for n in numbers], pa.decimal128(38, 10)),
            "day": pa.array([date(2024, 1, 1) + timedelta(days=n % 300) for n in numbers], pa.date32()),
            "at": pa.array([START + timedelta(minutes=n) for n in numbers], pa.timestamp("us", "UTC")),
            "ms": pa.array([n * 1000 for n in numbers], pa.timestamp("ms")),
            "flag": pa.array([None if n % 3 == 0 else n % 2 == 0 for n in numbers], pa.bool_()),
            "list": pa.array([None if n % 6 == 0 else [n, None] for n in numbers], pa.list_(pa.int64())),
            "s": pa.array(
                [{"a": n, "b": [str(n)]} for n in numbers], pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))])
            ),
            "m": pa.array([[(str(n), n)] for n in numbers], pa.map_(pa.string(), pa.int64())),
        }
    )


CONDITIONS = [
    "id = 77",
    "id BETWEEN 120 AND 130",
    "small = 3 AND id > 100",
    "unsigned = 249",
    "huge = 18446744073709551600",
    "f > 40",
    "f = 0",
    "f IS NULL OR f < 1",
    "name = 'náme 7'",
    "name IS NULL",
    "data = X'37'",
    "price >= 1.95",
    "wide = 12",
    "day = DATE'2024-02-03'",
    "at >= TIMESTAMP'2024-01-01 02:30:00Z'",
    "ms < TIMESTAMP_NTZ'1970-01-01 00:00:09'",
    "flag",
    "s.a = 150",
]


def folder(tmp_path: Path, files: int = 4, rows: int = 50, **options: Any) -> Path:
    place = tmp_path / "lake"
    place.mkdir()
    for number in range(files):
        pq.write_table(all_types(number * rows, rows), place / f"{number}.parquet", row_group_size=20, **options)
    return place


def attached(tmp_path: Path, place: Path | None = None) -> fuse.Table:
    return fuse.attach(place or folder(tmp_path), tmp_path / "table")


def read_folder(place: Path, schema: pa.Schema) -> pa.Table:
    rows = pa.concat_tables(
        [pq.read_table(file, partitioning=None) for file in sorted(place.glob("*.parquet"))],
        promote_options="permissive",
    )
    columns = [rows.column(each.name).cast(each.type) for each in schema]
    return pa.table(columns, schema=schema)


WRITERS = {
    "plain": {},
    "pages": {"write_page_index": True, "data_page_size": 64, "write_batch_size": 4},
    "dictionary pages": {"write_page_index": True, "data_page_size": 64, "write_batch_size": 4, "use_dictionary": True},
    "no dictionary": {"use_dictionary": False, "compression": "none"},
    "v2 pages": {"data_page_version": "2.0", "compression": "zstd", "write_page_index": True},
    "INT96": {"use_deprecated_int96_timestamps": True},
    "no statistics": {"write_statistics": False},
    "integers as decimals": {"store_decimal_as_integer": True},
    "delta encodings": {
        "use_dictionary": False,
        "column_encoding": {"id": "DELTA_BINARY_PACKED", "name": "DELTA_BYTE_ARRAY", "f": "BYTE_STREAM_SPLIT"},
        "write_page_index": True,
    },
}


@pytest.mark.parametrize(("number", "options"), list(enumerate(WRITERS.values())), ids=WRITERS.keys())
def test_rows_are_those_of_the_files(tmp_path: Path, number: int, options: dict[str, Any]) -> None:
    int96 = "use_deprecated_int96_timestamps" in options
    place = tmp_path / "lake"
    place.mkdir()
    for file in range(4):
        rows = all_types(file * 50, 50)
        pq.write_table(
            rows.drop_columns(["ms"]) if int96 else rows, place / f"{file}.parquet", row_group_size=20, **options
        )
    table = attached(tmp_path, place)
    conditions = [each for each in in_turn(CONDITIONS, number, 4) if not (int96 and each.startswith("ms"))]

    expected = read_folder(place, table.schema)
    assert_same_rows(table, expected, some_of(conditions))
    for column in in_turn(["name", "unsigned", "s.a"], number, 3):
        table.create_index(f"bloom_{column.replace('.', '_')}", "bloom", [column])
        assert table.maintenance.verify_index(f"bloom_{column.replace('.', '_')}").sound
    assert_same_rows(table, expected, conditions)
    for position in (3, 77, 180):  # through pages, where there is an index of them
        assert sorted_rows(
            expected.filter(pa.compute.equal(expected["id"], position)), table.schema.names
        ) == sorted_rows(table.to_arrow(f"id = {position}"), table.schema.names)


def test_a_lookup_reads_some_pages_where_there_is_an_index_of_them(tmp_path: Path) -> None:
    rows = pa.table({"id": np.arange(20_000), "text": [f"{n:0100d}" for n in range(20_000)]})
    plain: dict[str, Any] = {"use_dictionary": False, "compression": "none", "data_page_size": 8192}
    read = {}
    for indexed in (True, False):
        place = tmp_path / str(indexed)
        place.mkdir()
        pq.write_table(rows, place / "0.parquet", write_page_index=indexed, write_batch_size=64, **plain)
        table = fuse.attach(place, tmp_path / f"table-{indexed}")
        counter = meter_requests(open_store(place))
        file = dataclasses.replace(table.stored.blocks().file(0), key="0.parquet")
        mask = np.arange(20_000) == 12_345
        found = read_block(counter, file, table.snapshot.schema, ["text", "id"], None, Cache(0), mask)
        read[indexed] = counter.bytes_read

        assert [{"text": f"{12345:0100d}", "id": 12345}] == found.to_pylist()
    assert read[True] < 60_000 < 2_000_000 < read[False]


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_an_index_of_pages_that_lies_is_not_believed(tmp_path: Path, version: str) -> None:
    rows = pa.table({"k": range(300), "x": range(300)})
    options: dict[str, Any] = {"use_dictionary": False, "compression": "none", "data_page_size": 1}
    place = tmp_path / "lake"
    place.mkdir()
    file = place / "a.parquet"
    pq.write_table(rows, file, write_page_index=True, write_batch_size=100, data_page_version=version, **options)
    data = bytearray(file.read_bytes())
    at = data.rfind(b"\x16\xc8\x01\x00")  # the first row of the second page of x, 100
    data[at : at + 3] = b"\x16\xdc\x01"  # 110
    file.write_bytes(data)
    table = attached(tmp_path, place)

    for k in (5, 95, 105, 115, 150, 205, 250):
        assert table.to_arrow(f"k = {k}").to_pylist() == [{"k": k, "x": k}]


def test_nothing_is_written_at_the_source_and_no_row_is_read(tmp_path: Path) -> None:
    place = folder(tmp_path)
    before = {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in place.iterdir()}
    table = attached(tmp_path, place)
    table.create_index("by_name", "bloom", ["name"])
    table.sync()
    fuse.open_table(tmp_path / "table").to_arrow()

    assert before == {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in place.iterdir()}


def test_a_sync_brings_what_came_and_went_in_one_commit(tmp_path: Path) -> None:
    place = folder(tmp_path)
    table = attached(tmp_path, place)
    table.create_index("by_id", "bloom", ["id"])
    first = table.snapshot
    (place / "0.parquet").unlink()
    pq.write_table(all_types(1000, 30), place / "9.parquet")
    pq.write_table(all_types(2000, 10), place / "1.parquet")

    result = table.sync()

    assert (result.added_files, result.removed_files, result.kept_files, result.rows) == (2, 2, 2, 140)
    assert_same_rows(table, read_folder(place, table.schema), CONDITIONS)
    assert [table.inspect.indexes().to_pylist()[0][name] for name in ("blocks_indexed", "blocks")] == [4, 4]
    assert "3 of 4 blocks" not in str(table.explain("id = 1005"))
    assert len(table.to_arrow("id = 1005")) == 1
    assert first.row_count == 200
    again = table.sync()
    assert (0, 0, 4, result.version) == (again.added_files, again.removed_files, again.kept_files, again.version)
    assert fuse.open_table(tmp_path / "table", at=first.id).snapshot.row_count == 200


def test_changes_across_syncs_are_those_of_the_files(tmp_path: Path) -> None:
    place = folder(tmp_path, files=2)
    table = attached(tmp_path, place)
    before = table.snapshot.id
    pq.write_table(all_types(500, 5), place / "5.parquet")
    table.sync()

    changes = table.changes(before).to_arrow()

    assert changes.column("_change_type").to_pylist() == ["insert"] * 5
    assert sorted(changes.column("id").to_pylist()) == [500, 501, 502, 503, 504]


def test_a_file_that_changed_is_an_error_that_says_to_sync(tmp_path: Path) -> None:
    place = folder(tmp_path)
    table = attached(tmp_path, place)
    assert len(table.to_arrow("id < 50")) == 50
    pq.write_table(all_types(900, 50), place / "0.parquet", row_group_size=20)

    with pytest.raises(fuse.Corrupt, match=r"0\.parquet.* sync the table"):
        table.to_arrow("id < 50")
    assert len(table.to_arrow("id BETWEEN 50 AND 99")) == 50  # others are as they were
    table.sync()
    assert len(table.to_arrow("id < 50")) == 0
    assert len(table.to_arrow("id >= 900")) == 50


def test_a_file_of_the_same_size_and_footer_is_told_by_its_time(tmp_path: Path) -> None:
    place = tmp_path / "lake"
    place.mkdir()
    options: dict[str, Any] = {"use_dictionary": False, "compression": "none", "write_statistics": False}
    pq.write_table(pa.table({"n": [1, 2, 3]}), place / "0.parquet", **options)
    table = attached(tmp_path, place)
    assert table.to_arrow().column("n").to_pylist() == [1, 2, 3]
    size = (place / "0.parquet").stat().st_size
    pq.write_table(pa.table({"n": [7, 8, 9]}), place / "0.parquet", **options)
    os.utime(place / "0.parquet", (1_000_000_000, 1_000_000_000))

    assert size == (place / "0.parquet").stat().st_size
    with pytest.raises(fuse.Corrupt, match="sync"):
        table.to_arrow()


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    place = folder(tmp_path)
    table = attached(tmp_path, place)
    (place / "2.parquet").unlink()

    with pytest.raises(fuse.NotFound, match=r"2\.parquet"):
        table.to_arrow("id = 101")
    assert table.sync().removed_files == 1


def test_rows_change_through_the_source_alone(tmp_path: Path) -> None:
    table = attached(tmp_path)
    refused: list[Callable[[], Any]] = [
        lambda: table.append(all_types(0, 1).select(["id"])),
        lambda: table.delete("id = 1"),
        lambda: table.delete("id >= 0"),
        lambda: table.update("id = 1", {"name": "'x'"}),
        lambda: table.overwrite(all_types(0, 1).select(["id"])),
        lambda: table.add_column("more", "INT"),
        lambda: table.drop_column("name"),
        lambda: table.maintenance.compact(),
    ]

    for change in refused:
        with pytest.raises(fuse.ReadOnly, match=r"lake.*change them there, and sync; or convert"):
            change()
    assert fuse.open_table(tmp_path / "table").count() == 200


def test_a_converted_table_changes_its_own_rows_and_leaves_the_files(tmp_path: Path) -> None:
    place = folder(tmp_path)
    before = {file.name: file.read_bytes() for file in place.iterdir()}
    table = attached(tmp_path, place)
    table.create_index("by_id", "bloom", ["id"])
    snapshot = table.convert()

    table.delete("id = 77")
    table.append(pa.table({"id": [5000], "name": ["new"]}))
    table.add_column("more", "INT")
    table.update("id = 5", {"more": "7"})

    assert snapshot.row_count == 200
    assert table.count() == 200
    assert table.to_arrow("more IS NOT NULL", ["id", "more"]).to_pylist() == [{"id": 5, "more": 7}]
    assert table.to_arrow("name = 'new'", ["id"]).column("id").to_pylist() == [5000]
    assert before == {file.name: file.read_bytes() for file in place.iterdir()}
    with pytest.raises(fuse.InvalidArgument, match="no longer follows"):
        table.sync()


def test_a_new_column_of_a_converted_table_is_not_what_a_file_has_by_that_name(tmp_path: Path) -> None:
    place = tmp_path / "lake" / "year=2020"
    place.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1], "year": ["in the file"]}), place / "0.parquet")
    table = attached(tmp_path, tmp_path / "lake")
    assert table.to_arrow().to_pylist() == [{"id": 1, "year": 2020}]
    table.convert()
    table.drop_column("year")
    table.add_column("year", "STRING")

    assert table.to_arrow().to_pylist() == [{"id": 1, "year": None}]
    assert table.count("year IS NULL") == 1


def test_hives_folders_are_columns(tmp_path: Path) -> None:
    rows = pa.table(
        {"id": range(400), "city": ["Bonn", "Oslo", None, "a/b c"] * 100, "year": [2020 + n // 200 for n in range(400)]}
    )
    partitioning = ds.partitioning(pa.schema([("city", pa.string()), ("year", pa.int64())]), flavor="hive")
    ds.write_dataset(rows, tmp_path / "lake", format="parquet", partitioning=partitioning)
    table = attached(tmp_path, tmp_path / "lake")
    conditions = ["city = 'Bonn'", "city IS NULL AND year = 2021", "year > 2020 AND id < 250", "city = 'a/b c'"]

    assert_same_rows(table, rows, conditions)
    assert "1 of 8 to read" in str(table.explain("city = 'Bonn' AND year = 2020"))
    table.create_index("by_city", "bloom", ["city"])
    assert table.maintenance.verify_index("by_city").sound
    assert_same_rows(table, rows, conditions)
    assert table.aggregate([], ["count(*)"], "city = 'Oslo'").to_pylist() == [{"count(*)": 100}]
    assert {row["year"]: row["count(*)"] for row in table.aggregate(["year"], ["count(*)"]).to_pylist()} == {
        2020: 200,
        2021: 200,
    }


def test_a_column_that_only_some_paths_give_is_read_from_the_other_files(tmp_path: Path) -> None:
    place = tmp_path / "lake"
    for file, columns in {
        "year=1/a": {"x": [1]},
        "b": {"x": [2], "year": pa.array([7], pa.int32())},
        "c": {"x": [3]},
        "year=1/d": {"x": [4], "year": [9]},
    }.items():
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), place / f"{file}.parquet")
    table = attached(tmp_path, place)
    rows = pa.table({"x": [1, 2, 3, 4], "year": [1, 7, None, 1]})

    assert_same_rows(table, rows, ["year = 7", "year IS NULL", "year = 1", "year > 0", "year = 9"])
    pq.write_table(pa.table({"x": [5], "year": ["text"]}), place / "e.parquet")
    with pytest.raises(fuse.SchemaError, match=r"e\.parquet has column 'year' as string, and the table as int64"):
        table.sync()
    (place / "e.parquet").unlink()
    (place / "b.parquet").rename(place / "year=1" / "b.parquet")
    table.sync()
    assert_same_rows(table, rows.set_column(1, "year", pa.array([1, 1, None, 1])), ["year = 7", "year = 1"])


def test_columns_that_come_and_widen_are_followed(tmp_path: Path) -> None:
    place = tmp_path / "lake"
    place.mkdir()
    pq.write_table(pa.table({"id": pa.array([1, 2], pa.int32()), "s": [{"a": 1}, None]}), place / "0.parquet")
    table = attached(tmp_path, place)
    table.create_index("by_id", "bloom", ["s.a"])
    pq.write_table(
        pa.table({"id": pa.array([3, 2**40]), "s": [{"a": 2, "b": "x"}, {"a": None, "b": "y"}], "n": [1.5, 2.5]}),
        place / "1.parquet",
    )
    result = table.sync()

    assert not result.reread
    assert table.to_arrow().to_pylist() == [
        {"id": 1, "s": {"a": 1, "b": None}, "n": None},
        {"id": 2, "s": None, "n": None},
        {"id": 3, "s": {"a": 2, "b": "x"}, "n": 1.5},
        {"id": 2**40, "s": {"a": None, "b": "y"}, "n": 2.5},
    ]
    for condition, ids in [
        ("n IS NULL", [1, 2]),
        ("n > 2", [2**40]),
        ("id > 2", [3, 2**40]),
        ("s.b = 'x'", [3]),
        ("s.b IS NULL", [1, 2]),
        ("s.a = 2", [3]),
    ]:
        assert ids == table.to_arrow(condition).column("id").to_pylist(), condition


def test_a_name_that_comes_back_is_looked_for_in_all_files(tmp_path: Path) -> None:
    """A partition column hides a column of files; when it goes, the column is there, in old files too."""
    place = tmp_path / "lake"
    (place / "kind=a").mkdir(parents=True)
    pq.write_table(pa.table({"id": [1], "kind": ["hidden"]}), place / "kind=a" / "0.parquet")
    table = attached(tmp_path, place)
    assert table.to_arrow().to_pylist() == [{"id": 1, "kind": "a"}]
    (place / "kind=a" / "0.parquet").rename(place / "0.parquet")
    table.sync()

    assert table.to_arrow("kind = 'hidden'").to_pylist() == [{"id": 1, "kind": "hidden"}]


@pytest.mark.parametrize("seed", range(effort(1)))
def test_random_walks_of_a_folder_are_followed(tmp_path: Path, seed: int) -> None:
    chance, place = random.Random(seed), folder(tmp_path, files=2)
    table = attached(tmp_path, place)
    table.create_index("by_name", "bloom", ["name"])
    table.create_index("by_price", "bloom", ["price"])
    number = 100
    for _ in range(6):
        for _ in range(chance.randint(0, 3)):
            files = sorted(place.glob("*.parquet"))
            step = chance.choice(["add", "add", "remove", "rewrite", "empty"])
            number += 1
            target = place / f"{number}.parquet" if step in ("add", "empty") or not files else chance.choice(files)
            if step == "remove" and len(files) > 1:
                target.unlink()
            else:
                rows = all_types(chance.randint(0, 500), 0 if step == "empty" else chance.randint(1, 60))
                pq.write_table(rows, target, row_group_size=chance.choice([7, 100]))
        at = table.snapshot.id
        table.sync(indexes=chance.random() < 0.7)
        assert_same_rows(table, read_folder(place, table.schema), chance.sample(CONDITIONS, 5))
        assert fuse.open_table(tmp_path / "table", at=at).snapshot.id == at


def test_what_cannot_be_read_exactly_is_refused_by_name(tmp_path: Path) -> None:
    twins = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    cases: dict[str, tuple[dict[str, Any], str]] = {
        "text": ({"a.parquet": b"no parquet at all"}, "a.parquet is no Parquet file"),
        "cut": ({"a.parquet": b"PAR1" + bytes(50) + b"\xff\xff\xff\x00PAR1"}, "a.parquet is no Parquet file"),
        "encrypted": ({"a.parquet": b"PAR1" + bytes(50) + b"\x04\x00\x00\x00PARE"}, "a.parquet is encrypted"),
        "nanoseconds": ({"a.parquet": pa.table({"t": pa.array([1], pa.timestamp("ns"))})}, "column 't'.*finer than"),
        "a time": ({"a.parquet": pa.table({"t": pa.array([1], pa.time64("us"))})}, "column 't'.*time64"),
        "half floats": ({"a.parquet": pa.table({"h": pa.array(np.array([1], "f2"))})}, "column 'h'.*halffloat"),
        "two schemas": (
            {"a.parquet": pa.table({"x": [1]}), "b.parquet": pa.table({"x": ["one"]})},
            "column 'x' is int64 in .*a.parquet and string in .*b.parquet",
        ),
        "case": ({"a.parquet": pa.table({"x": [1], "X": [2]})}, "differ only in case"),
        "case of two": (
            {"a.parquet": pa.table({"x": [1]}), "b.parquet": pa.table({"X": [2]})},
            "differ only in case",
        ),
        "twins": ({"a.parquet": twins}, "a.parquet has two columns x: rename one"),
        "nothing": ({"a.csv": b"x\n1\n"}, "has no Parquet file"),
        "hudi": ({".hoodie/hoodie.properties": b"", "a.parquet": pa.table({"x": [1]})}, "a table of Hudi.*XTable"),
        "delta": ({"_delta_log/00000000000000000000.json": b"{}", "a.parquet": pa.table({"x": [1]})}, "format='delta'"),
    }
    for name, (files, message) in cases.items():
        for file, content in files.items():
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                path.write_bytes(content)
            else:
                pq.write_table(content, path)
        with pytest.raises((fuse.StorageError, fuse.InputError), match=message):
            fuse.attach(tmp_path / name, tmp_path / "tables" / name)
        assert not (tmp_path / "tables" / name / "_refs").exists()


def test_a_bad_file_that_comes_leaves_the_table_as_it_was(tmp_path: Path) -> None:
    place = folder(tmp_path)
    table = attached(tmp_path, place)
    (place / "bad.parquet").write_bytes(b"PAR1 nothing")

    with pytest.raises(fuse.SchemaError, match=r"bad\.parquet"):
        table.sync()
    assert fuse.open_table(tmp_path / "table").count() == 200
    (place / "bad.parquet").unlink()
    assert table.sync().added_files == 0


def test_two_syncs_that_race_do_not_bring_a_file_twice(tmp_path: Path) -> None:
    place = folder(tmp_path)
    attached(tmp_path, place)
    one, other = (fuse.open_table(tmp_path / "table") for _ in range(2))
    pq.write_table(all_types(1000, 10), place / "9.parquet")
    from fuse_index.sources.formats import open_source
    from fuse_index.sources.plan import plan_sync
    from fuse_index.sources.sync import commit_sync

    source = open_source("parquet", str(place), {})
    plans = [(each.stored, plan_sync(each.stored, source, source.state())) for each in (one, other)]
    commit_sync(*plans[0])

    with pytest.raises(fuse.Conflict, match="sync again"):
        commit_sync(*plans[1])
    assert fuse.open_table(tmp_path / "table").count() == 210


def test_a_folder_that_is_gone_or_empty_does_not_empty_the_table(tmp_path: Path) -> None:
    place = folder(tmp_path, files=1)
    table = attached(tmp_path, place)
    place.rename(tmp_path / "elsewhere")
    with pytest.raises(fuse.NotFound, match=rf"there is no folder {place}"):
        table.sync()
    place.mkdir()
    (place / "notes.txt").write_text("no rows")
    with pytest.raises(fuse.NotFound, match=rf"{place} has no Parquet file, .*1 of its files"):
        table.sync()
    pq.write_table(all_types(0, 0), place / "0.parquet")

    assert table.sync().rows == 0
    (place / "0.parquet").unlink()
    assert table.sync().rows == 0


def test_a_folder_whose_files_all_change_a_columns_type_is_followed(tmp_path: Path) -> None:
    place = tmp_path / "lake"
    place.mkdir()
    for number in range(2):
        pq.write_table(pa.table({"id": [number], "k": [number], "old": [1]}), place / f"{number}.parquet")
    table = attached(tmp_path, place)
    table.create_index("by_k", "bloom", ["k"])
    table.create_index("by_id", "bloom", ["id"])
    before = table.snapshot.id
    pq.write_table(pa.table({"id": [0], "k": ["a"]}), place / "0.parquet")
    with pytest.raises(fuse.SchemaError, match=r"column 'k' is int64 in the table and string .* a folder of their own"):
        table.sync()
    pq.write_table(pa.table({"id": [1], "k": ["b"]}), place / "1.parquet")

    assert table.sync().added_files == 2
    assert table.to_arrow("k = 'b'").to_pylist() == [{"id": 1, "k": "b"}]
    assert table.count("id = 0") == 1
    assert fuse.open_table(tmp_path / "table", at=before).schema.names == ["id", "k", "old"]


def test_a_folder_without_a_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "lake").mkdir()
    with pytest.raises(fuse.NotFound, match="lake has no Parquet file"):
        attached(tmp_path, tmp_path / "lake")
    assert not (tmp_path / "table" / "_refs").exists()


def test_a_place_that_cannot_be_a_source_is_told(tmp_path: Path) -> None:
    place = folder(tmp_path, files=1)
    with pytest.raises(fuse.InputError, match=r"0\.parquet is a file: attach the folder"):
        fuse.attach(place / "0.parquet", tmp_path / "table")
    with pytest.raises(fuse.InputError, match=r"lake/indexed is within .*lake, where nothing is to be written"):
        fuse.attach(place, place / "indexed")
    attached(tmp_path, place)
    with pytest.raises(fuse.InputError, match="table is a table already"):
        fuse.attach(tmp_path / "table", tmp_path / "other")
    assert [file.name for file in place.rglob("*")] == ["0.parquet"]


def test_a_file_without_row_groups_has_columns_and_no_rows(tmp_path: Path) -> None:
    place = folder(tmp_path, files=1, rows=10)
    pq.ParquetWriter(place / "empty.parquet", pa.schema([("id", pa.int64()), ("more", pa.string())])).close()
    assert pq.read_metadata(place / "empty.parquet").num_row_groups == 0
    table = attached(tmp_path, place)

    assert table.count() == table.count("more IS NULL") == 10
    assert table.sync().added_files == 1  # it is no block, so it is looked into again
    assert table.to_arrow("id = 3", ["id", "more"]).to_pylist() == [{"id": 3, "more": None}]


def test_dates_of_sparks_old_calendar_are_refused_when_they_are_read(tmp_path: Path) -> None:
    place = tmp_path / "lake"
    for name, day in [("old", date(1500, 1, 1)), ("new", date(2020, 1, 1))]:
        rows = pa.table({"id": [name], "day": [day]})
        place.mkdir(exist_ok=True)
        with pq.ParquetWriter(place / f"{name}.parquet", rows.schema) as writer:
            writer.write_table(rows)
            writer.add_key_value_metadata({"org.apache.spark.version": "2.4.5"})
    table = attached(tmp_path, place)

    assert len(table.to_arrow("id = 'new'")) == 1
    with pytest.raises(fuse.Unsupported, match=r"old\.parquet.*'day'.*rewrite"):
        table.to_arrow()
    assert "min_max  USED " not in str(table.explain("day > DATE'2021-01-01'"))  # no bound is believed


def test_an_attached_table_survives_a_clone_and_a_vacuum(tmp_path: Path) -> None:
    place = folder(tmp_path)
    table = attached(tmp_path, place)
    table.create_index("by_id", "bloom", ["id"])
    clone = table.clone(str(tmp_path / "clone"))

    assert_same_rows(clone, read_folder(place, table.schema), CONDITIONS[:4])
    pq.write_table(all_types(1000, 10), place / "9.parquet")
    assert clone.sync().added_files == 1
    assert table.count() == 200


def test_a_key_of_the_table_itself_is_no_source(tmp_path: Path) -> None:
    with pytest.raises(fuse.InvalidArgument, match="attached"):
        fuse.create_table(tmp_path / "t", "id INT", properties={"foreign_source": {}})
    table = fuse.create_table(tmp_path / "t", "id INT")
    for act in (table.sync, table.convert):
        with pytest.raises(fuse.InvalidArgument, match="not attached"):
            act()
    with pytest.raises(fuse.InputError, match="parquet"):
        fuse.attach(tmp_path, tmp_path / "u", format="orc")
    with pytest.raises(fuse.AlreadyExists):
        fuse.attach(folder(tmp_path), tmp_path / "t")


def test_files_of_others_are_not_exported(tmp_path: Path) -> None:
    table = attached(tmp_path)
    for export in (table.export_delta, table.export_iceberg):
        with pytest.raises(fuse.SchemaError, match=r"lake.*read the source itself"):
            export()


def test_a_table_that_names_files_without_the_feature_is_damaged(tmp_path: Path) -> None:
    table = attached(tmp_path)
    stored = table.stored
    plain = dataclasses.replace(stored.snapshot, reader_features=())

    with pytest.raises(fuse.Corrupt, match="without the feature 'foreign-files'"):
        stored.at_entry(stored.entry, plain).read_block(stored.blocks(), 0, ["id"])


def test_an_unknown_reader_refuses_the_table_by_its_feature(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = attached(tmp_path)
    monkeypatch.setattr("fuse_storage.validation.features.READER_FEATURES", frozenset())

    with pytest.raises(fuse.Unsupported, match="'foreign-files'"):
        Snapshot.decode(table.snapshot.encode(), "here")


def test_a_tampered_source_is_refused(tmp_path: Path) -> None:
    table = attached(tmp_path)
    broken: list[Any] = [None, {}, {"format": "parquet", "url": 7, "version": None, "unread": []}, "text"]
    for source in broken:
        data = json.loads(table.snapshot.encode())
        data["properties"]["foreign_source"] = source
        with pytest.raises(fuse.FormatError):
            Snapshot.decode(json.dumps(data).encode(), "here")


def test_another_store_is_asked_only_if_it_is_named(tmp_path: Path) -> None:
    place = folder(tmp_path)
    with pytest.raises(fuse.StorageError, match="shared_places"):
        fuse.attach(place, f"memory://elsewhere-{tmp_path.name}")
    options = {"shared_places": str(place)}
    table = fuse.attach(place, f"memory://elsewhere-{tmp_path.name}", options=options)
    assert table.count() == 200
    with pytest.raises(fuse.StorageError, match="shared_places"):
        fuse.open_table(f"memory://elsewhere-{tmp_path.name}").to_arrow("id = 3")
