"""Indexes of sources in a warehouse: made once, found by where the source is, shown by no listing of tables."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

import fuse_index as fuse
from fuse_index.sources.location import normal_location
from fuse_index.warehouse.source_indexes import default_index_name
from tests.index.sources.one_table import OneTable

ROWS = pa.table({"id": range(100), "name": [f"n{n}" for n in range(100)]})


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake" / "orders"
    folder.mkdir(parents=True)
    pq.write_table(ROWS, folder / "one.parquet")
    return folder


@pytest.fixture
def catalog(tmp_path: Path) -> fuse.Catalog:
    return fuse.catalog(tmp_path / "warehouse", create=True)


def test_a_source_has_one_table_in_all_sessions(tmp_path: Path, lake: Path, catalog: fuse.Catalog) -> None:
    table = catalog.index_source(lake, "bloom", ["name"])
    again = fuse.catalog(tmp_path / "warehouse").index_source(f"file://{lake}/", "bloom", ["id"], "by_id")

    assert again.stored.store.url == table.stored.store.url
    assert list(again.snapshot.definitions) == ["bloom_name", "by_id"]
    assert again.snapshot.votes_only
    (found,) = catalog.source_indexes()
    assert (found.source, found.format, found.location) == (str(lake), "parquet", str(lake))
    assert (found.url, found.indexes) == (table.stored.store.url, ("bloom_name", "by_id"))


@pytest.mark.parametrize("spelt", ["{}", "{}/", "file:{}", "file://{}", "file:///{}"])
def test_it_is_found_by_any_spelling_of_its_place(lake: Path, catalog: fuse.Catalog, spelt: str) -> None:
    catalog.source_index(lake)

    assert catalog.find_source_index(spelt.format(lake)) is not None
    assert catalog.find_source_index(spelt.format(lake.parent)) is None


def test_stores_have_one_name() -> None:
    assert normal_location("s3a://lake/a//b/") == normal_location("S3://lake/a/b") == "s3://lake/a/b"
    assert normal_location("s3://lake/A") != normal_location("s3://lake/a")


def test_no_listing_of_tables_shows_it(lake: Path, catalog: fuse.Catalog) -> None:
    catalog.create_namespace("shop")
    catalog.index_source(lake, "bloom", ["id"])

    assert catalog.list_namespaces() == [("shop",)]
    assert catalog.list_tables() == []


def test_formats_are_told_by_what_lies_there(
    tmp_path: Path, catalog: fuse.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_deltalake(str(tmp_path / "delta"), ROWS)
    made = OneTable("test")
    monkeypatch.setattr("pyiceberg.catalog.load_catalog", lambda name: made)
    source = made.create(tmp_path / "iceberg", ROWS.schema)
    source.append(ROWS)
    catalog.index_source(tmp_path / "delta", "bloom", ["id"])
    table = catalog.index_source("iceberg://test/db.t", "bloom", ["id"])

    assert {(each.format, each.location) for each in catalog.source_indexes()} == {
        ("delta", str(tmp_path / "delta")),
        ("iceberg", str(tmp_path / "iceberg")),
    }
    metadata = catalog.source_index(source.metadata_location)  # the table that its catalogue has, by another way
    assert metadata.stored.store.url == table.stored.store.url
    assert catalog.find_source_index(source.location()) is not None


def test_an_index_without_a_name_gets_one_whatever_its_columns_are_called(tmp_path: Path) -> None:
    catalog, names = fuse.catalog(tmp_path / "warehouse", create=True), ["größe", "grüße", "数", "x" * 130]
    (tmp_path / "wide").mkdir()
    pq.write_table(pa.table({name: [number] for number, name in enumerate(names)}), tmp_path / "wide" / "a.parquet")
    for name in names:
        table = catalog.index_source(tmp_path / "wide", "bloom", [name])

    assert [table.explain(f"`{name}` = 9").blocks.kept for name in names] == [0] * len(names)
    assert len({*table.snapshot.definitions}) == len(names)
    assert default_index_name("bloom", ["x" * 122]) == "bloom_" + "x" * 122  # as long as one may be


def test_those_who_make_it_at_once_get_one_table(tmp_path: Path, lake: Path, catalog: fuse.Catalog) -> None:
    catalogs = [fuse.catalog(tmp_path / "warehouse") for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        urls = set(pool.map(lambda each: each.source_index(lake).stored.store.url, catalogs))

    assert len(urls) == 1
    assert [each.url for each in catalog.source_indexes()] == list(urls)


def test_a_dropped_index_is_made_anew(lake: Path, catalog: fuse.Catalog) -> None:
    first = catalog.index_source(f"file:{lake}", "bloom", ["id"])  # as Hadoop prints a path
    catalog.drop_source_index(f"file:{lake}")

    assert catalog.source_indexes() == []
    assert catalog.find_source_index(str(lake)) is None
    second = catalog.index_source(lake, "bloom", ["name"])
    assert second.stored.store.url != first.stored.store.url
    assert list(second.snapshot.definitions) == ["bloom_name"]


def test_an_index_whose_files_are_gone_is_told_of_made_anew_and_dropped(lake: Path, catalog: fuse.Catalog) -> None:
    other = lake.parent / "other"
    other.mkdir()
    pq.write_table(ROWS, other / "one.parquet")
    first = catalog.index_source(lake, "bloom", ["id"])
    catalog.index_source(other, "bloom", ["id"])
    shutil.rmtree(first.stored.store.url)

    gone, whole = catalog.source_indexes()
    assert (gone.source, gone.indexes) == (str(lake), ())
    assert "its files are gone: index the source anew" in gone.problem
    assert (whole.source, whole.indexes, whole.problem) == (str(other), ("bloom_id",), "")
    assert catalog.find_source_index(str(lake)) is None
    second = catalog.index_source(lake, "bloom", ["name"])
    assert second.stored.store.url != first.stored.store.url
    assert [each.problem for each in catalog.source_indexes()] == ["", ""]

    shutil.rmtree(second.stored.store.url)
    catalog.drop_source_index(lake)
    assert [each.source for each in catalog.source_indexes()] == [str(other)]
    with pytest.raises(fuse.NotFound, match=rf"no index of {lake}: there are indexes of {other}"):
        catalog.drop_source_index(lake)


def test_a_source_has_indexes_as_one_format(lake: Path, catalog: fuse.Catalog) -> None:
    catalog.index_source(lake, "bloom", ["id"])
    with pytest.raises(fuse.InputError, match=r"format='delta': .*orders has indexes as parquet: drop these first"):
        catalog.index_source(lake, "bloom", ["name"], format="delta")
    write_deltalake(str(lake), ROWS)
    with pytest.raises(fuse.InputError, match="has indexes as parquet"):
        catalog.index_source(lake, "bloom", ["name"])
    catalog.drop_source_index(lake)
    assert catalog.index_source(lake, "bloom", ["name"]).snapshot.source is not None
    assert [each.format for each in catalog.source_indexes()] == ["delta"]


def test_an_index_with_a_damaged_state_does_not_hide_others(lake: Path, catalog: fuse.Catalog) -> None:
    table = catalog.index_source(lake, "bloom", ["id"])
    for each in Path(table.stored.store.url, "_refs").rglob("*.json"):
        each.write_bytes(b"{")

    (found,) = catalog.source_indexes()
    assert found.problem
    catalog.drop_source_index(lake)
    assert catalog.index_source(lake, "bloom", ["id"]).snapshot.votes_only


def test_what_cannot_be_indexed_is_told(tmp_path: Path, lake: Path, catalog: fuse.Catalog) -> None:
    with pytest.raises(fuse.NotFound, match="no folder"):
        catalog.index_source(tmp_path / "nowhere", "bloom", ["id"])
    with pytest.raises(fuse.InputError, match="format='csv'"):
        catalog.index_source(lake, "bloom", ["id"], format="csv")
    with pytest.raises(fuse.InputError, match="is no Delta table"):
        catalog.index_source(lake, "bloom", ["id"], format="delta")
    with pytest.raises(fuse.NotFound, match=r"no index of .*lake, nor of any other source"):
        catalog.drop_source_index(lake.parent)
    with pytest.raises(fuse.DefinitionError, match="no index kind"):
        catalog.index_source(lake, "blom", ["id"])
    with pytest.raises((fuse.SchemaError, fuse.WhereError), match="no column 'idd'"):
        catalog.index_source(lake, "bloom", ["idd"])
    assert [each.indexes for each in catalog.source_indexes()] == [()]
