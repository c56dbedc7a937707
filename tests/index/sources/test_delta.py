"""A Delta table that others write, attached: what Delta's own reader gives, at each version, and what is refused."""

import random
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import fuse_index as fuse
from tests.effort import effort, in_turn, some_of
from tests.index.sources.walks import assert_same_rows


def some_rows(first: int, count: int) -> pa.Table:
    numbers = range(first, first + count)
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "small": pa.array([n % 100 for n in numbers], pa.int16()),
            "name": pa.array([None if n % 4 == 0 else f"n{n % 40}" for n in numbers], pa.string()),
            "f": pa.array([float("nan") if n % 7 == 0 else n / 3 for n in numbers], pa.float64()),
            "price": pa.array([Decimal(n) / 100 for n in numbers], pa.decimal128(9, 2)),
            "day": pa.array([date(2024, 1, 1 + n % 3) for n in numbers], pa.date32()),
            "at": pa.array([datetime(2024, 1, 1, n % 24, tzinfo=UTC) for n in numbers], pa.timestamp("us", "UTC")),
            "city": pa.array([["Bonn", "a/b c", None, "Öl 100%"][n % 4] for n in numbers], pa.string()),
            "l": pa.array([[n, None] for n in numbers], pa.list_(pa.int64())),
            "s": pa.array([{"a": n} for n in numbers], pa.struct([("a", pa.int64())])),
        }
    )


CONDITIONS = [
    "id = 13",
    "name = 'n7'",
    "name IS NULL AND id > 20",
    "f > 12",
    "price < 0.10",
    "city = 'a/b c'",
    "city IS NULL",
    "day = DATE'2024-01-02' AND city = 'Öl 100%'",
    "at >= TIMESTAMP'2024-01-01 20:00:00Z'",
    "s.a IN (3, 44)",
]


def lake(tmp_path: Path, partition_by: list[str] | None = None, count: int = 50) -> str:
    """A table of two versions with so many rows each."""
    place = str(tmp_path / "lake")
    for first in (0, 50):
        write_deltalake(place, some_rows(first, count), mode="append", partition_by=partition_by)
    return place


@pytest.mark.parametrize(
    ("turn", "partition_by"), list(enumerate([None, ["city"], ["day", "city"], ["at", "small"], ["price"]]))
)
def test_rows_are_those_of_the_table(tmp_path: Path, turn: int, partition_by: list[str] | None) -> None:
    place = lake(tmp_path, partition_by, min(50, effort(25)))  # of the last two each row is a file
    table = fuse.attach(place, tmp_path / "table", format="delta")
    expected = DeltaTable(place).to_pyarrow_table()

    conditions = in_turn(CONDITIONS, turn, 2)  # of columns that are in paths, and in files
    assert_same_rows(table, expected, some_of(conditions))
    for column in ("name", "city"):
        table.create_index(f"by_{column}", "bloom", [column])
        assert table.maintenance.verify_index(f"by_{column}").sound
    assert_same_rows(table, expected, conditions)
    assert set(map(str, table.inspect.files())) == {str(Path(uri)) for uri in DeltaTable(place).file_uris()}


def test_versions_are_followed_and_gone_back_to(tmp_path: Path) -> None:
    place = lake(tmp_path)
    table = fuse.attach(place, tmp_path / "table", format="delta")
    table.create_index("by_name", "bloom", ["name"])
    first = table.snapshot.id
    DeltaTable(place).delete("id >= 10 AND id < 60")
    write_deltalake(place, some_rows(200, 30), mode="append")
    DeltaTable(place).update(predicate="id = 5", updates={"name": "'changed'"})
    DeltaTable(place).optimize.compact()

    result = table.sync()
    newest = DeltaTable(place).version()
    assert (newest, 80) == (result.version, result.rows)
    assert_same_rows(table, DeltaTable(place).to_pyarrow_table(), [*CONDITIONS, "name = 'changed'"])
    changes = table.changes(first).to_arrow()
    assert [changes.column("_change_type").to_pylist().count(kind) for kind in ("delete", "insert")] == [51, 31]
    for version in (0, newest - 1, 2, newest):
        assert version == table.sync(to=version).version
        assert_same_rows(table, DeltaTable(place, version=version).to_pyarrow_table(), CONDITIONS)
    assert fuse.open_table(tmp_path / "table", at=first).count() == 100
    for wrong in (newest + 7, "soon"):
        with pytest.raises((fuse.StorageError, fuse.InputError), match=str(wrong)):
            table.sync(to=wrong)
    head = table.snapshot.id
    assert head == table.sync().snapshot  # nothing is committed where nothing changed


@pytest.mark.parametrize("wrong", [-1, 3, 2**63 - 1, 2**70, "²", "+1", "1" * 5000, ""])
def test_a_version_that_is_not_there_is_told(tmp_path: Path, wrong: str | int) -> None:
    table = fuse.attach(lake(tmp_path), tmp_path / "table", format="delta")
    newest = table.sync().version

    with pytest.raises(fuse.InputError, match=f"to={re.escape(repr(wrong))}: the newest version of .* is {newest}"):
        table.sync(to=wrong)
    assert table.sync(to="0").version == 0


def test_a_folder_without_a_log_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(fuse.InputError, match=r"is no Delta table: there is no log \(_delta_log\) in it$") as refused:
        fuse.attach(tmp_path / "none", tmp_path / "table", format="delta")
    assert "\n" not in str(refused.value)


def test_a_folder_whose_name_looks_escaped_is_refused_by_name(tmp_path: Path) -> None:
    for name, rows in (("a%20b", 3), ("a b", 5)):  # deltalake reads the log of the second for both
        place = tmp_path / name
        write_deltalake(tmp_path / f"log{rows}", pa.table({"id": range(rows)}))
        (tmp_path / f"log{rows}").rename(place)
    with pytest.raises(fuse.Unsupported, match=r"a%20b has %20 in its path"):
        fuse.attach(tmp_path / "a%20b", tmp_path / "table", format="delta")
    assert fuse.attach(tmp_path / "a b", tmp_path / "other", format="delta").count() == 5


def test_a_sync_reads_the_footers_of_new_files_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fuse_index.sources.plan as module

    place = lake(tmp_path)
    table = fuse.attach(place, tmp_path / "table", format="delta")
    opened: list[int] = []
    reader = module.open_source_files

    def counted(store: Any, source: str, files: Any, *more: Any) -> Any:
        opened.append(len(files))
        return reader(store, source, files, *more)

    monkeypatch.setattr(module, "open_source_files", counted)
    write_deltalake(place, some_rows(200, 30), mode="append")
    table.sync()
    table.sync()

    assert opened == [1, 0]


def test_columns_that_come_and_go_are_followed(tmp_path: Path) -> None:
    place = lake(tmp_path)
    table = fuse.attach(place, tmp_path / "table", format="delta")
    more = some_rows(300, 10).append_column("more", pa.array([f"m{n}" for n in range(10)]))
    write_deltalake(place, more, mode="append", schema_mode="merge")
    table.sync()
    assert_same_rows(table, DeltaTable(place).to_pyarrow_table(), [*CONDITIONS, "more = 'm3'", "more IS NULL"])

    fewer = some_rows(400, 10).select(["id", "name"])
    write_deltalake(place, fewer, mode="overwrite", schema_mode="overwrite")
    table.sync()
    assert table.schema.names == ["id", "name"]
    assert_same_rows(table, DeltaTable(place).to_pyarrow_table(), ["id = 405"])

    other = pa.table({"id": [1, 2], "more": [1.5, None]})
    write_deltalake(place, other, mode="overwrite", schema_mode="overwrite")
    result = table.sync()
    assert_same_rows(table, DeltaTable(place).to_pyarrow_table(), ["more > 1", "more IS NULL"])
    assert result.reread
    table.sync(to=2)
    assert_same_rows(table, DeltaTable(place, version=2).to_pyarrow_table(), [*CONDITIONS, "more = 'm3'"])


@pytest.mark.parametrize("seed", range(effort(1)))
def test_random_walks_of_a_table_are_followed(tmp_path: Path, seed: int) -> None:
    chance, place = random.Random(seed), lake(tmp_path, ["city"])
    table = fuse.attach(place, tmp_path / "table", format="delta")
    table.create_index("by_name", "bloom", ["name"])
    for _ in range(5):
        for _ in range(chance.randint(1, 3)):
            start = chance.randint(0, 300)
            match chance.choice(["append", "delete", "update", "optimize", "overwrite"]):
                case "append":
                    write_deltalake(place, some_rows(start, chance.randint(1, 40)), mode="append")
                case "delete":
                    DeltaTable(place).delete(f"id >= {start} AND id < {start + 30}")
                case "update":
                    DeltaTable(place).update(predicate=f"id = {start}", updates={"name": "'u'"})
                case "optimize":
                    DeltaTable(place).optimize.compact()
                case "overwrite":
                    write_deltalake(place, some_rows(start, 20), mode="overwrite")
        table.sync()
        assert_same_rows(table, DeltaTable(place).to_pyarrow_table(), chance.sample(CONDITIONS, 4))


def test_a_source_that_loses_a_file_is_told_by_its_name(tmp_path: Path) -> None:
    place = lake(tmp_path)
    table = fuse.attach(place, tmp_path / "table", format="delta")
    write_deltalake(place, some_rows(200, 30), mode="append")
    new = [uri for uri in DeltaTable(place).file_uris() if uri not in set(map(str, table.inspect.files()))]
    Path(new[0]).unlink()

    with pytest.raises(fuse.NotFound, match=Path(new[0]).name):
        table.sync()
    assert table.count() == 100


def test_a_name_of_unity_catalog_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(fuse.InputError, match=r"uc://main\.db\.t is a name of Unity Catalog.*storage location"):
        fuse.attach("uc://main.db.t", tmp_path / "table", format="delta")
