"""A table says where its files are, and is believed only as far as its user would be: not to another store unasked."""

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fuse_storage as storage
from fuse_storage import StorageError, StoredTable, meter_requests, open_store, process_cache
from fuse_storage.metadata import metadata_table, segment_list
from fuse_storage.metadata.file_ref import create_file
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.store import shared_files
from fuse_storage.store.shared_files import resolve_store
from tests.storage.small import COLUMNS, Totals, append, ids_of
from tests.storage.tampering import rewrite_head

FOREIGN = (
    "s3://stranger/t/_b/a.parquet",
    "gs://stranger/t/_b/a.parquet",
    "az://stranger/t/_b/a.parquet",
    "abfss://c@stranger.dfs.core.windows.net/t/_b/a.parquet",
    "memory://other/_b/a.parquet",
    "http://169.254.169.254/_b/a.parquet",
)


@pytest.fixture(autouse=True)
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The stores that were opened because a table said so."""
    urls: list[str] = []

    def watched(url: str, options: Any) -> Any:
        urls.append(url)
        return open_store(url, dict(options))

    monkeypatch.setattr(shared_files, "_open_cached", watched)
    monkeypatch.delenv("FUSE_INDEX_SHARED_PLACES", raising=False)
    return urls


def made(url: object) -> StoredTable:
    table = StoredTable.create(str(url), COLUMNS).transaction().add_index("totals", {"key": "70a1"}).commit()
    return append(append(table, 1, 2, builders=[Totals()]), 3, builders=[Totals()])


def pointing(table: StoredTable, location: str | None, pack: str | None = None, declared: bool = True) -> StoredTable:
    """The table, but that its files say that blocks or packs are elsewhere, as whoever wrote it could have them say."""

    def change(snapshot: Snapshot) -> Snapshot:
        rows = segment_list.read_segment_list(table.store, snapshot)
        for number, (segment, sidecars) in enumerate(
            zip(segment_list.segment_files(rows), segment_list.sidecar_files(rows, "70a1"), strict=True)
        ):
            assert sidecars is not None
            for file, column, value, prefix in (
                (segment, "location", location, ""),
                (sidecars, "pack", pack, "x.70a1."),
            ):
                if value is None:
                    continue
                found = metadata_table.read_all_columns(table.store, file)
                found = found.set_column(
                    found.column_names.index(column), column, pa.array([value] * len(found), pa.string())
                )
                table.store.delete([file.reference.path])
                written = create_file(
                    table.store, file.reference.path, metadata_table.encode_metadata(found, keep_arrow_types=True)
                )
                for name, new in (("length", written.length), ("hash", written.hash)):
                    column_values = rows.column(prefix + name).to_pylist()
                    column_values[number] = new
                    index = rows.column_names.index(prefix + name)
                    rows = rows.set_column(index, prefix + name, pa.array(column_values, rows.schema.field(index).type))
        assert snapshot.segments is not None
        table.store.delete([snapshot.segments.path])
        reference = create_file(
            table.store, snapshot.segments.path, metadata_table.encode_metadata(rows, keep_arrow_types=True)
        )
        features = ("shared-files",) if declared else ()
        return replace(snapshot, segments=reference, reader_features=features)

    return rewrite_head(table, change)


def refused(table: StoredTable, match: str) -> None:
    for read in (lambda: ids_of(table), table.block_files):
        with pytest.raises(StorageError, match=match):
            read()


@pytest.mark.parametrize("url", FOREIGN)
def test_another_store_is_not_asked_unless_the_user_names_it(tmp_path: Path, url: str, opened: list[str]) -> None:
    refused(pointing(made(tmp_path / "t"), url), "on another store. If you trust both tables, name that place")

    assert opened == []


@pytest.mark.parametrize("url", ["/somewhere/else/_b/a.parquet", *FOREIGN])
def test_no_other_table_is_read_without_the_feature(tmp_path: Path, url: str, opened: list[str]) -> None:
    refused(pointing(made(tmp_path / "t"), url, declared=False), "without the feature 'shared-files'")

    assert opened == []


@pytest.mark.parametrize(
    "location",
    [
        "../up/_b/a",
        "_b/../../x",
        "_b/a\0b",
        "_b//a",
        "_tmp/x",
        "_b/..",
        "/x/../y/_b/a",
        "/x/%2e%2e/y/_b/a",
        "//x/./_b/a",
    ],
)
def test_no_path_leads_out_of_a_table(tmp_path: Path, location: str, opened: list[str]) -> None:
    refused(pointing(made(tmp_path / "t"), location), "is no key|could lead anywhere")

    assert opened == []


def test_what_the_user_names_is_followed(tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    source = made(url)
    with pytest.raises(StorageError, match="shared_places"):
        storage.clone_table(source, open_store(tmp_path / "copy"))
    assert storage.list_tags(source.store) == []

    options = {"shared_places": f"s3://other, {url}"}
    copy = storage.clone_table(source, open_store(tmp_path / "copy", options))

    for table in (
        copy,
        StoredTable.open(tmp_path / "copy", options=options),
        pickle.loads(pickle.dumps(copy)),
        StoredTable.open(storage.ReadOnlyStore(copy.store)),
        StoredTable.open(meter_requests(copy.store)),
    ):
        process_cache.clear()
        assert ids_of(table) == [1, 2, 3]
    refused(StoredTable.open(tmp_path / "copy"), "name that place")
    monkeypatch.setenv("FUSE_INDEX_SHARED_PLACES", "memory://")
    assert ids_of(StoredTable.open(tmp_path / "copy")) == [1, 2, 3]


@pytest.mark.parametrize(
    "named", ["", "s3://buck", "s3://bucket/t", "s3://bucket/table2", "gs://bucket/table", "/", "s3:", "s3://"]
)
def test_a_name_is_of_whole_folders(named: str) -> None:
    store = open_store("memory://named", {"shared_places": named})

    with pytest.raises(StorageError, match="another store"):
        resolve_store(store, "s3://bucket/table/_b/a", True)


@pytest.mark.parametrize("named", ["s3://bucket/table", "s3a://bucket", "s3://bucket/", "gs://x s3://bucket/table/"])
def test_a_name_holds_for_all_below_it(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_files, "_open_cached", lambda url, options: open_store("memory://instead"))
    store = open_store("memory://named", {"shared_places": named})

    assert resolve_store(store, "s3://bucket/table/_b/a", True)[1] == "_b/a"


def test_a_bucket_is_another_store(s3: dict[str, str]) -> None:
    store = open_store("s3://tables/t", s3)

    assert resolve_store(store, "s3://tables/u/_b/a", True)[1] == "_b/a"
    for url in ("s3://tables2/u/_b/a", "s3://tables@stranger/u/_b/a", "gs://tables/u/_b/a", "/tables/u/_b/a"):
        with pytest.raises(StorageError, match="another store"):
            resolve_store(store, url, True)


@pytest.mark.parametrize("pack", ["s3://stranger/t/_i/70a1/a", "../_i/x", "/x/_sg/y"])
@pytest.mark.parametrize("declared", [True, False])
def test_a_pack_elsewhere_is_one_that_cannot_be_read(
    tmp_path: Path, pack: str, declared: bool, opened: list[str]
) -> None:
    table = pointing(made(tmp_path / "t"), None, pack, declared)

    assert ids_of(table) == [1, 2, 3]
    sidecars = table.blocks().sidecars("70a1")
    assert sidecars is not None
    [(whole, members)] = sidecars.packs()
    assert np.array_equal(members, [0, 1])
    for read in (lambda: sidecars.payload(0), lambda: whole.read([(0, 1)]), lambda: whole.decoded((0, 1), bytes, len)):
        with pytest.raises(StorageError, match=r"is no key|another store|no file of a table|without the feature"):
            read()
    assert opened == []


def test_a_listing_stays_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "outside").write_bytes(b"1")
    (tmp_path / "t").mkdir()

    for prefix in ("..", "../..", "a/../..", "_tmp"):
        with pytest.raises(StorageError, match="is no key"):
            list(open_store(tmp_path / "t").list(prefix))
