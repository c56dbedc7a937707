"""Equality deletes and deletion vectors of Iceberg, attached: rows are those that the spec says."""

import random
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from pyiceberg.table import Table
from pyiceberg.typedef import Record

import fuse_index as fuse
from fuse_index.export.deletion_vectors import puffin_vectors
from fuse_index.sources.deletes.roaring import bitmap_rows, framed_rows
from tests.effort import effort
from tests.index.sources.one_table import OneTable, add_file, delete_equal_rows, delete_rows_at
from tests.index.sources.walks import assert_same_rows

SCHEMA = pa.schema(
    [("id", pa.int64()), ("n", pa.int32()), ("name", pa.string()), ("f", pa.float64()), ("day", pa.date32())]
)
KEY_VALUES: dict[pa.DataType, list[Any]] = {
    pa.bool_(): [True, False, None],
    pa.float32(): [1.5, float("nan"), 0.0, -0.0, None],
    pa.decimal128(20, 3): [Decimal("1.5"), Decimal("-99999999999999999.999"), None],
    pa.timestamp("us", "UTC"): [datetime(1969, 12, 31, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=UTC), None],
    pa.binary(): [b"", b"\0\xff", None],
    pa.binary(4): [b"abcd", b"\0\0\0\xff", None],
    pa.uuid(): [UUID(int=1), UUID(int=1 << 127), None],
}
CONDITIONS = ["id = 33", "n = 7", "name = 'n7'", "name IS NULL", "id IN (3, 8, 70)", "f > 12"]


def some_rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    values: list[list[Any]] = [
        list(numbers),
        [n % 30 for n in numbers],
        [None if n % 4 == 0 else f"n{n % 40}" for n in numbers],
        [float("nan") if n % 7 == 0 else n / 3 for n in numbers],
        [date(2024, 1, 1 + n % 3) for n in numbers],
    ]
    return pa.table([pa.array(each, kind) for each, kind in zip(values, SCHEMA.types, strict=True)], SCHEMA)


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> OneTable:
    made = OneTable("test")
    monkeypatch.setattr("pyiceberg.catalog.load_catalog", lambda name: made)
    return made


def lake(tmp_path: Path, catalog: OneTable, partition_by: str | None = None) -> Table:
    table = catalog.create(tmp_path / "lake", SCHEMA, partition_by=partition_by)
    for first in (0, 50):
        table.append(some_rows(first, 50))
    return table


def attached(tmp_path: Path) -> fuse.Table:
    table = fuse.attach("iceberg://test/db.t", tmp_path / "table", format="iceberg")
    table.create_index("by_name", "bloom", ["name"])
    return table


def without(rows: pa.Table, *keys: tuple[tuple[str, Any], ...]) -> pa.Table:
    """The rows but those that have a key: pairs of a column and a value."""
    gone = [all(_same(row[name], value) for name, value in key) for row in rows.to_pylist() for key in keys]
    kept = [not any(gone[start : start + len(keys)]) for start in range(0, len(gone), len(keys))]
    return rows.filter(pa.array(kept, pa.bool_()))


def _same(one: Any, other: Any) -> bool:
    return bool(one == other or (one != one and other != other))


def test_rows_of_older_files_that_equal_a_key_are_gone(tmp_path: Path, catalog: OneTable) -> None:
    source = lake(tmp_path, catalog)
    table = attached(tmp_path)
    first = table.sync().version
    delete_equal_rows(source, tmp_path / "one.parquet", pa.table({"id": [3, 70, 500]}))
    second = source.current_snapshot()
    source.append(some_rows(3, 1))  # a newer file, whose row stays
    rows = without(pa.concat_tables([some_rows(0, 100)]), (("id", 3),), (("id", 70),))

    assert table.sync().added_files == 1
    assert_same_rows(table, pa.concat_tables([rows, some_rows(3, 1)]), CONDITIONS)
    assert table.inspect.index("by_name")["blocks_indexed"] == table.snapshot.block_count == 3
    assert second is not None
    table.sync(to=second.snapshot_id)
    assert_same_rows(table, rows, CONDITIONS)
    table.sync(to=first)
    assert_same_rows(table, some_rows(0, 100), CONDITIONS)
    other = fuse.attach("iceberg://test/db.t", tmp_path / "other", format="iceberg")
    assert_same_rows(other, pa.concat_tables([rows, some_rows(3, 1)]), CONDITIONS)


def test_keys_of_several_columns_and_null_and_nan(tmp_path: Path, catalog: OneTable) -> None:
    source = lake(tmp_path, catalog)
    table = attached(tmp_path)
    keys = pa.table({"n": pa.array([4, 7, 7, 1], pa.int32()), "name": pa.array([None, "n7", "n37", "n2"])})
    delete_equal_rows(source, tmp_path / "two.parquet", keys)
    delete_equal_rows(
        source,
        tmp_path / "nan.parquet",
        pa.table({"f": [float("nan"), -0.0, 11.0], "n": pa.array([14, 0, 3], pa.int32())}),
    )
    pairs = [(("n", key["n"]), ("name", key["name"])) for key in keys.to_pylist()]
    rows = without(some_rows(0, 100), *pairs, (("f", float("nan")), ("n", 14)), (("f", 11.0), ("n", 3)))

    table.sync()
    assert table.count() == len(rows) < 100
    assert_same_rows(table, rows, CONDITIONS)


def test_deletes_of_a_partition_hit_no_other(tmp_path: Path, catalog: OneTable) -> None:
    source = lake(tmp_path, catalog, partition_by="day")
    table = attached(tmp_path)
    keys = pa.table({"n": pa.array([4, 5, 6, 7], pa.int32())})
    day = (date(2024, 1, 2) - date(1970, 1, 1)).days
    delete_equal_rows(source, tmp_path / "day.parquet", keys, Record(day))
    here = [(("n", n), ("day", date(2024, 1, 2))) for n in range(4, 8)]
    table.sync()
    assert_same_rows(table, without(some_rows(0, 100), *here), CONDITIONS)

    with source.update_spec() as spec:
        spec.remove_field("day")
    delete_equal_rows(source, tmp_path / "all.parquet", pa.table({"n": pa.array([9], pa.int32())}))
    table.sync()
    assert_same_rows(table, without(some_rows(0, 100), *here, (("n", 9),)), CONDITIONS)


def test_a_partition_of_nan_is_one_and_that_of_minus_zero_is_not_of_zero(tmp_path: Path, catalog: OneTable) -> None:
    schema = pa.schema([("id", pa.int64()), ("f", pa.float32())])
    source = catalog.create(tmp_path / "lake", schema, partition_by="f")
    values = [float("nan"), -0.0, 0.0]
    for number, value in enumerate(values):
        rows = pa.table([range(10 * number, 10 * number + 5), [value] * 5], schema)
        add_file(source, tmp_path / f"{number}.parquet", rows, Record(value))
    table = fuse.attach("iceberg://test/db.t", tmp_path / "table", format="iceberg")
    assert table.count() == 15
    for number, value in enumerate(values):
        keys = pa.table({"id": [number, 10 + number, 20 + number]})
        delete_equal_rows(source, tmp_path / f"keys{number}.parquet", keys, Record(value))
    of_nan = {"path": f"file://{tmp_path}/0.parquet", "partition": Record(values[0])}
    delete_rows_at(source, tmp_path / "positions.parquet", [4], **of_nan)

    table.sync()
    assert sorted(table.to_arrow().column("id").to_pylist()) == [1, 2, 3, 10, 12, 13, 14, 20, 21, 23, 24]


def test_a_delete_of_a_spec_whose_fields_were_all_dropped_hits_every_partition(
    tmp_path: Path, catalog: OneTable
) -> None:
    """Format 1 keeps a dropped field of a spec, as one that is always NULL."""
    source = catalog.create(tmp_path / "lake", SCHEMA, partition_by="day", **{"format-version": "1"})
    source.append(some_rows(0, 50))
    with source.update_spec() as spec:
        spec.remove_field("day")
    source.append(some_rows(50, 50))
    with source.transaction() as transaction:
        transaction.upgrade_table_version(2)
    table = attached(tmp_path)
    delete_equal_rows(source, tmp_path / "keys.parquet", pa.table({"id": [3, 70]}), Record(None))

    table.sync()
    assert len(source.spec().fields) == 1
    assert_same_rows(table, without(some_rows(0, 100), (("id", 3),), (("id", 70),)), CONDITIONS)


@pytest.mark.parametrize("kind", KEY_VALUES, ids=str)
def test_keys_of_any_type_delete(tmp_path: Path, catalog: OneTable, kind: pa.DataType) -> None:
    schema = pa.schema([("id", pa.int64()), ("key", kind)])
    values = KEY_VALUES[kind]
    source = catalog.create(tmp_path / "lake", schema)
    source.append(pa.table([range(len(values)), pa.array(values, kind)], schema))
    table = fuse.attach("iceberg://test/db.t", tmp_path / "table", format="iceberg")
    left = list(range(len(values)))
    for gone in (1, len(values) - 1):
        delete_equal_rows(source, tmp_path / f"{gone}.parquet", pa.table({"key": pa.array([values[gone]], kind)}))
        table.sync()
        left.remove(gone)
        assert table.to_arrow(columns=["id"]).column("id").to_pylist() == left


def test_only_what_came_since_is_read(tmp_path: Path, catalog: OneTable, monkeypatch: pytest.MonkeyPatch) -> None:
    source = lake(tmp_path, catalog)
    first = next(iter(source.scan("id = 3").plan_files())).file.file_path
    delete_equal_rows(source, tmp_path / "one.parquet", pa.table({"id": [3, 7]}))
    table = attached(tmp_path)
    opened: list[str] = []
    io, new_input = type(source.io), type(source.io).new_input
    monkeypatch.setattr(io, "new_input", lambda self, place: opened.append(Path(place).name) or new_input(self, place))

    def read() -> list[str]:
        opened.clear()
        table.sync()
        return [name for name in opened if name.endswith((".parquet", ".puffin"))]

    assert read() == []
    source.append(some_rows(500, 10))
    assert read() == []
    delete_equal_rows(source, tmp_path / "two.parquet", pa.table({"id": [4, 505]}))
    names = sorted(read())
    assert names[-1] == "two.parquet"
    assert len(names) == 3  # the first file, and the last: the bounds of one exclude it
    delete_rows_at(source, tmp_path / "positions.parquet", [0], first)
    assert read() == ["positions.parquet"]
    assert read() == []
    assert table.count() == 110 - 5


def test_files_are_read_that_an_index_names(tmp_path: Path, catalog: OneTable, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pa.schema([("key", pa.string()), ("n", pa.int64())])
    rows = [
        pa.table({"key": [f"k{n * 7919 % 1000:04}" for n in range(f, f + 100)], "n": range(100)})
        for f in range(0, 400, 100)
    ]
    source = catalog.create(tmp_path / "lake", schema)
    for each in rows:
        source.append(each)
    table = fuse.attach("iceberg://test/db.t", tmp_path / "table", format="iceberg")
    table.create_index("by_key", "bloom", ["key"])
    gone = [rows[2].column("key")[7].as_py(), "k0000x"]
    delete_equal_rows(source, tmp_path / "keys.parquet", pa.table({"key": gone}))
    opened: list[str] = []
    io, new_input = type(source.io), type(source.io).new_input
    monkeypatch.setattr(io, "new_input", lambda self, place: opened.append(Path(place).name) or new_input(self, place))

    table.sync()
    read = [name for name in opened if name.endswith(".parquet")]
    assert len(read) == 2  # the keys, and of four files the one that has a key
    assert_same_rows(table, without(pa.concat_tables(rows), (("key", gone[0]),)), ["n = 7", f"key = '{gone[0]}'"])


def test_rows_that_a_key_took_stay_away_when_their_file_gets_deletes_of_its_own(
    tmp_path: Path, catalog: OneTable
) -> None:
    """Votes know nothing of rows that are deleted already, and these are asked for anew where a file's name changes."""
    source = catalog.create(tmp_path / "lake", SCHEMA, **{"write.parquet.row-group-limit": "25"})
    source.append(some_rows(0, 50))
    (file,) = source.scan().plan_files()
    delete_equal_rows(source, tmp_path / "one.parquet", pa.table({"id": range(25)}))  # a row group, whole
    table = attached(tmp_path)
    assert_same_rows(table, some_rows(25, 25), CONDITIONS)

    delete_rows_at(source, tmp_path / "positions.parquet", [0, 25], file.file.file_path, bounds=True)
    table.sync()
    assert_same_rows(table, some_rows(26, 24), CONDITIONS)


def test_a_column_that_was_dropped_still_deletes(tmp_path: Path, catalog: OneTable) -> None:
    source = lake(tmp_path, catalog)
    delete_equal_rows(source, tmp_path / "one.parquet", pa.table({"n": pa.array([3, 7], pa.int32())}))
    with source.update_schema() as update:
        update.delete_column("n")
    rows = without(some_rows(0, 100), (("n", 3),), (("n", 7),)).drop_columns("n")

    assert_same_rows(attached(tmp_path), rows, ["id = 33", "name = 'n7'"])


@pytest.mark.parametrize("seed", range(effort(1)))
def test_random_deletes_and_appends_are_followed(tmp_path: Path, catalog: OneTable, seed: int) -> None:
    draw, source = random.Random(seed), lake(tmp_path, catalog)
    table, states = attached(tmp_path), []
    first = next(iter(source.scan("id = 3").plan_files())).file.file_path
    expected = some_rows(0, 100).append_column("file", pa.array([n // 50 for n in range(100)]))
    for step in range(8):
        match draw.choice(["append", "equal", "equal", "names", "positions"]):
            case "append":
                rows = some_rows(draw.randrange(120), 20)
                source.append(rows)
                expected = pa.concat_tables([expected, rows.append_column("file", pa.array([step + 2] * 20))])
            case "equal":
                ids = draw.sample(range(130), 6)
                delete_equal_rows(source, tmp_path / f"{step}.parquet", pa.table({"id": ids}))
                expected = without(expected, *((("id", each),) for each in ids))
            case "names":
                names = [draw.choice([None, "n7", "n13", "n22"]), "n99"]
                delete_equal_rows(source, tmp_path / f"{step}.parquet", pa.table({"name": names}))
                expected = without(expected, (("name", names[0]),))
            case "positions":
                delete_rows_at(source, tmp_path / f"{step}.parquet", [place := draw.randrange(50)], first)
                expected = without(expected, (("id", place), ("file", 0)))
        snapshot = source.current_snapshot()
        assert snapshot is not None
        states.append((snapshot.snapshot_id, expected.drop_columns("file")))
        if step % 2:
            table.sync()
            assert_same_rows(table, states[-1][1], CONDITIONS)
    for number, rows in draw.sample(states, 4):
        table.sync(to=number)
        assert_same_rows(table, rows, CONDITIONS)


def test_a_vector_is_read_as_it_was_written() -> None:
    deleted = np.zeros(1000, np.bool_)
    deleted[[0, 7, 500, 999]] = True
    data, (vector,) = puffin_vectors([deleted], ["a.parquet"])
    framed = data[vector.offset : vector.offset + vector.size]

    assert np.array_equal(framed_rows(framed, "here"), deleted)
    assert np.array_equal(bitmap_rows(framed[4:-4], "here"), deleted)
    for place in range(len(framed)):
        broken = bytearray(framed)
        broken[place] ^= 0x10
        with pytest.raises(fuse.Corrupt, match="here has a deletion vector that is damaged"):
            framed_rows(bytes(broken), "here")
    for cut in (0, 3, 8, 20, len(framed) - 9):
        with pytest.raises(fuse.Corrupt, match="here has a deletion vector"):
            bitmap_rows(framed[4 : 4 + cut], "here")
