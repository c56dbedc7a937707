"""A table that is opened when it is older than it may be follows its source first, and asks it little."""

import logging
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.types import LongType

import fuse_index as fuse
from fuse_index.sources.delta.source import DeltaSource
from fuse_index.table import sources
from fuse_storage.store.local import LocalStore
from tests.index.sources.one_table import OneTable


@pytest.fixture(autouse=True)
def nobody_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_asked", {})


def attached(tmp_path: Path, max_age: str) -> tuple[str, Path]:
    place, url = str(tmp_path / "lake"), tmp_path / "table"
    write_deltalake(place, pa.table({"id": range(100)}))
    table = fuse.attach(place, url, "delta", max_age=max_age)
    table.create_index("by_id", "bloom", ["id"])
    return place, url


def test_an_old_table_follows_its_source_when_it_is_opened(tmp_path: Path) -> None:
    place, url = attached(tmp_path, "0.001s")
    write_deltalake(place, pa.table({"id": [500]}), mode="append")
    before = fuse.open_table(url, read_only=True)
    assert before.count() == 100
    assert fuse.open_table(url, version=before.version).count() == 100

    table = fuse.open_table(url)
    assert table.to_arrow("id = 500").num_rows == 1
    assert table.inspect.index("by_id")["blocks_indexed"] == 2
    assert table.convert().id
    write_deltalake(place, pa.table({"id": [501]}), mode="append")
    assert fuse.open_table(url).count() == 101


def test_a_table_of_a_warehouse_follows_too(tmp_path: Path) -> None:
    place = str(tmp_path / "lake")
    write_deltalake(place, pa.table({"id": range(100)}))
    catalog = fuse.catalog(tmp_path / "warehouse", create=True)
    catalog.attach_table("t", place, "delta").set_properties({"max_age_seconds": 0.001})
    write_deltalake(place, pa.table({"id": [500]}), mode="append")

    assert catalog.load_table("t").count("id = 500") == 1


def test_a_young_table_asks_nobody_and_an_old_one_asks_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place, url = attached(tmp_path, "1h")
    write_deltalake(place, pa.table({"id": [500]}), mode="append")
    assert fuse.open_table(url).count() == 100
    table = fuse.open_table(url)
    table.set_properties({"max_age_seconds": 0.001})
    assert fuse.open_table(url).count() == 101

    asked: list[str] = []
    for name in ("read", "read_ranges", "list", "object_meta", "list_keys_after"):
        known = getattr(LocalStore, name)

        def counted(self: LocalStore, key: str = "", *more: Any, known: Any = known) -> Any:
            if self.url == place:
                asked.append(key)
            return known(self, key, *more)

        monkeypatch.setattr(LocalStore, name, counted)
    monkeypatch.setattr(DeltaSource, "state", lambda *_: pytest.fail("the log was read"))
    fuse.open_table(url)
    assert asked == [f"_delta_log/{1:020}", f"_delta_log/{1:020}.json"]


def test_a_log_of_which_old_commits_were_cleaned_up_has_moved(tmp_path: Path) -> None:
    place, url = attached(tmp_path, "0.001s")
    for number in range(3):
        write_deltalake(place, pa.table({"id": [500 + number]}), mode="append")
    lake = DeltaTable(place)
    lake.create_checkpoint()
    for version in range(3):
        (tmp_path / "lake" / "_delta_log" / f"{version:020}.json").unlink()

    assert fuse.open_table(url).count() == 103
    assert not DeltaSource.open(place, {}).has_moved(3, None)
    (tmp_path / "lake" / "_delta_log" / f"{3:020}.json").unlink()  # the checkpoint says the version
    assert not DeltaSource.open(place, {}).has_moved(3, "an etag")


@pytest.mark.parametrize("versions", [1, 2, 3])
@pytest.mark.parametrize("keeps_files", [True, False])
def test_a_table_that_was_made_anew_at_its_place_has_moved(tmp_path: Path, versions: int, keeps_files: bool) -> None:
    place, url = attached(tmp_path, "0.001s")
    write_deltalake(place, pa.table({"id": [500]}), mode="append")
    assert fuse.open_table(url).count() == 101
    fuse.open_table(url).create_index("bounds", "zone_map", ["id"])
    shutil.rmtree(tmp_path / "lake" / ("_delta_log" if keeps_files else ""))
    for number in range(versions):
        write_deltalake(place, pa.table({"id": [900 + number]}), mode="append")

    ids = fuse.open_table(url).to_arrow().column("id").to_pylist()
    assert sorted(ids) == [900 + number for number in range(versions)]


def test_columns_of_an_iceberg_table_are_followed_without_a_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = OneTable("test")
    monkeypatch.setattr("pyiceberg.catalog.load_catalog", lambda name: catalog)
    source = catalog.create(tmp_path / "lake", pa.schema([("id", pa.int64()), ("a", pa.string())]))
    source.append(pa.table({"id": [1], "a": ["x"]}))
    fuse.attach("iceberg://test/db.t", tmp_path / "table", "iceberg", max_age="0.001s")

    with source.update_schema() as update:
        update.rename_column("a", "b").add_column("n", LongType())
    followed = fuse.open_table(tmp_path / "table")
    assert followed.to_arrow("b = 'x'").to_pylist() == [{"id": 1, "b": "x", "n": None}]
    assert fuse.open_table(tmp_path / "table").snapshot.id == followed.snapshot.id  # nothing is new
    with source.update_schema() as update:
        update.delete_column("n")
    assert fuse.open_table(tmp_path / "table").schema.names == ["id", "b"]


def test_a_source_that_is_gone_is_a_line_in_the_log(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "folder").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "folder" / "a.parquet")
    fuse.attach(tmp_path / "folder", tmp_path / "table", max_age="0.001s")
    shutil.rmtree(tmp_path / "folder")

    with caplog.at_level(logging.WARNING, "fuse_index"):
        table = fuse.open_table(tmp_path / "table")
    assert "does not follow its source: there is no folder" in caplog.text
    assert table.snapshot.row_count == 1
    with pytest.raises(fuse.InputError, match="max_age='soon' is no duration"):
        fuse.attach(tmp_path, tmp_path / "other", max_age="soon")
