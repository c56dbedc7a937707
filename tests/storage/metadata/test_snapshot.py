"""Snapshots: readable by people, and refused by name where a newer version wrote them."""

import json
import pickle
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from fuse_storage import FileRef, FormatError, Snapshot, StorageError, StoredTable, Unsupported
from fuse_storage.commit.head import write_snapshot
from fuse_storage.metadata.refs import Branch
from tests.storage.small import append

COLUMNS = pa.schema(
    [("id", pa.int64()), ("at", pa.struct([("lat", pa.float64()), ("when", pa.timestamp("us", "UTC"))]))]
)


@pytest.fixture
def snapshot(url: str) -> Snapshot:
    return replace(
        StoredTable.create(url, COLUMNS, ["at.lat"], {"zone_rows": 10}).snapshot,
        definitions={"a": {"key": "x", "on": [1]}},
        applications={"stream": 3},
        summary={"files": 2},
        segments=FileRef("_ss/a.parquet", 3, "ff"),
        segment_count=1,
    )


def test_a_snapshot_survives_its_file_and_its_pickle(snapshot: Snapshot) -> None:
    assert Snapshot.decode(snapshot.encode(), "there") == snapshot
    assert pickle.loads(pickle.dumps(snapshot)) == snapshot


def test_a_snapshot_can_be_read_by_people(snapshot: Snapshot) -> None:
    found = json.loads(snapshot.encode())

    assert (found["format"], found["format_version"]) == ("fuse-index table", 1)
    assert found["schemas"][0]["fields"][0] == {"id": 1, "name": "id", "type": "bigint", "nullable": True}
    assert found["names"] == {"1": ["id"], "2": ["at"], "3": ["lat"], "4": ["when"]}
    assert found["last_column_id"] == 4
    assert found["cluster_by"] == [3]
    assert found["definitions"] == {"a": {"key": "x", "on": [1]}}
    assert found["applications"] == {"stream": 3}


def test_columns_are_known_by_their_present_names(snapshot: Snapshot) -> None:
    assert snapshot.cluster_by == ("at.lat",)
    assert snapshot.keys == {"x"}


def test_nothing_of_a_snapshot_can_be_changed(snapshot: Snapshot) -> None:
    read = Snapshot.decode(snapshot.encode(), "there")

    with pytest.raises(TypeError):
        read.properties["a"] = 1  # type: ignore[index]
    with pytest.raises(AttributeError):
        read.row_count = 5  # type: ignore[misc]


def changed(snapshot: Snapshot, **members: Any) -> bytes:
    return json.dumps({**json.loads(snapshot.encode()), **members}).encode()


def test_a_newer_format_is_refused_by_its_number(snapshot: Snapshot) -> None:
    with pytest.raises(Unsupported, match="format version 2, and this version knows 1: upgrade"):
        Snapshot.decode(changed(snapshot, format_version=2, schemas="of another shape"), "there")


def test_an_unknown_reader_feature_is_refused_by_name(snapshot: Snapshot) -> None:
    with pytest.raises(Unsupported, match="'deletion_vectors', feature 'encryption'"):
        Snapshot.decode(changed(snapshot, reader_features=["encryption", "deletion_vectors"]), "there")


def test_a_type_of_a_newer_version_is_refused_by_name(snapshot: Snapshot) -> None:
    schemas = [{"id": 0, "fields": [{"id": 1, "name": "v", "type": "geography", "nullable": True}]}]

    with pytest.raises(Unsupported, match="'geography'"):
        Snapshot.decode(changed(snapshot, schemas=schemas), "there")


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b"null", b'{"format": 1', b"\xff", b'{"format": "fuse-index table"}']
)
def test_what_is_no_snapshot_is_said_to_be_none(data: bytes) -> None:
    with pytest.raises(FormatError, match="there"):
        Snapshot.decode(data, "there")


def test_members_of_a_later_version_are_passed_over(snapshot: Snapshot) -> None:
    assert Snapshot.decode(changed(snapshot, hints={"a": 1}), "there") == snapshot


@pytest.mark.parametrize("name", ["format", "schemas", "segments", "commit", "applications"])
def test_a_snapshot_that_lacks_a_member_says_which(snapshot: Snapshot, name: str) -> None:
    found = json.loads(snapshot.encode())
    del found[name]

    with pytest.raises(FormatError, match=name):
        Snapshot.decode(json.dumps(found).encode(), "there")


def test_a_table_of_a_newer_version_is_refused_when_it_is_opened(url: str) -> None:
    table = StoredTable.create(url, COLUMNS)
    later = replace(
        table.snapshot,
        id="a" * 32,
        sequence=2,
        commit_id="b" * 32,
        parent=table.snapshot.id,
        reader_features=("rows_in_columns",),
        timestamp=table.snapshot.timestamp.replace(year=2090),
    )
    Branch(table.store, "main").create(write_snapshot(table.store, later, table.entry))

    with pytest.raises(Unsupported, match="rows_in_columns"):
        StoredTable.open(url)
    with pytest.raises(Unsupported, match="rows_in_columns"):
        table.refresh()
    assert StoredTable.open(url, at=table.snapshot.id).snapshot == table.snapshot


def test_an_unknown_writer_feature_makes_a_table_read_only(url: str) -> None:
    table = StoredTable.create(url, pa.schema([("id", pa.int64()), ("name", pa.string())]))
    later = replace(
        table.snapshot,
        id="a" * 32,
        sequence=2,
        commit_id="b" * 32,
        parent=table.snapshot.id,
        writer_features=("row_marks",),
        timestamp=table.snapshot.timestamp.replace(year=2090),
    )
    Branch(table.store, "main").create(write_snapshot(table.store, later, table.entry))

    opened = StoredTable.open(url)

    assert opened.snapshot.row_count == 0
    with pytest.raises(StorageError, match=r"'row_marks'.*read-only"):
        append(opened, 1)
    with pytest.raises(StorageError, match=r"'row_marks'.*read-only"):
        table.transaction().add_index("a", {"key": "b"}).commit()
