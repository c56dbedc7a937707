"""A table as its users see it: created, opened at any of its versions, written to and read."""

import math
import pickle
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest

from fuse_storage import (
    AlreadyExists,
    InvalidArgument,
    NotFound,
    SchemaError,
    StorageError,
    StoredTable,
    open_store,
    update_properties,
)
from fuse_storage.testing import Crash, FaultMode, FaultyStore, check_invariants
from tests.storage.small import COLUMNS, append, ids_of


def test_a_new_table_is_empty_and_says_what_it_is(url: str) -> None:
    table = StoredTable.create(url, COLUMNS, cluster_by=["name"], properties={"block_rows": 10})

    opened = StoredTable.open(url)

    assert opened.snapshot == table.snapshot
    assert opened.snapshot.schema.arrow == COLUMNS
    assert opened.snapshot.cluster_by == ("name",)
    assert opened.snapshot.properties == {"block_rows": 10}
    assert (opened.snapshot.row_count, opened.snapshot.sequence, opened.snapshot.operation) == (0, 1, "create")
    assert ids_of(opened) == []
    assert opened.block_files()[0] == []


def test_rows_come_back_in_the_order_in_which_they_were_appended(url: str) -> None:
    table = StoredTable.create(url, COLUMNS)
    for first in range(0, 60, 2):
        table = append(table, first, first + 1)

    assert ids_of(StoredTable.open(url)) == list(range(60))
    assert table.snapshot.row_count == 60
    assert table.snapshot.segment_count < 16


def test_a_handle_reads_the_snapshot_it_was_opened_at(url: str) -> None:
    old = append(StoredTable.create(url, COLUMNS), 1)
    append(old, 2)

    assert ids_of(old) == [1]
    assert ids_of(old.refresh()) == [1, 2]
    assert ids_of(pickle.loads(pickle.dumps(old))) == [1]


def test_a_table_opens_at_a_snapshot_a_time_and_a_tag(url: str) -> None:
    first = append(StoredTable.create(url, COLUMNS), 1)
    first.tag("v1.0")
    second = append(first, 2)
    between = first.entry.timestamp + (second.entry.timestamp - first.entry.timestamp) / 2

    assert ids_of(StoredTable.open(url, at=first.snapshot.id)) == [1]
    assert ids_of(StoredTable.open(url, at="v1.0")) == [1]
    assert ids_of(StoredTable.open(url, at=between)) == [1]
    assert ids_of(StoredTable.open(url, at=between.isoformat())) == [1]
    assert ids_of(StoredTable.open(url, at=second.entry.timestamp)) == [1, 2]
    assert ids_of(StoredTable.open(url, at=datetime.now(UTC) + timedelta(days=1))) == [1, 2]


def test_what_cannot_be_opened_is_named(url: str, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="there is nothing"):
        StoredTable.open(url)
    table = StoredTable.create(url, COLUMNS)
    with pytest.raises(NotFound, match=r"no branch 'side': it has \['main'\]"):
        StoredTable.open(url, branch="side")
    with pytest.raises(NotFound, match="no tag 'v9'"):
        StoredTable.open(url, at="v9")
    with pytest.raises(NotFound, match="has no snapshot"):
        StoredTable.open(url, at="0" * 32)
    with pytest.raises(NotFound, match="began at"):
        StoredTable.open(url, at=table.entry.timestamp - timedelta(seconds=1))
    with pytest.raises(InvalidArgument, match="no time zone"):
        StoredTable.open(url, at="2026-01-01T00:00:00")


def test_a_folder_of_other_files_is_not_a_table_and_does_not_become_one(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2")

    with pytest.raises(NotFound, match=r"other files, such as 'a\.csv'"):
        StoredTable.open(tmp_path)
    with pytest.raises(AlreadyExists, match=r"other files, such as 'a\.csv'"):
        StoredTable.create(tmp_path, COLUMNS)
    with pytest.raises(StorageError, match="is a file"):
        StoredTable.open(tmp_path / "a.csv")
    with pytest.raises(StorageError, match="is a file"):
        StoredTable.create(tmp_path / "a.csv", COLUMNS)


def test_a_table_is_not_created_twice(url: str) -> None:
    append(StoredTable.create(url, COLUMNS), 1)

    with pytest.raises(AlreadyExists, match="already is a table"):
        StoredTable.create(url, COLUMNS)

    assert ids_of(StoredTable.open(url)) == [1]


def test_what_a_crashed_creation_left_behind_is_no_hindrance(url: str) -> None:
    open_store(url).create("_ss/0123.json", b"{}")

    assert ids_of(append(StoredTable.create(url, COLUMNS), 1)) == [1]


@pytest.mark.parametrize(
    "properties",
    [
        {"block_rows": 0},
        {"zone_rows": "many"},
        {"block_bytes": True},
        {"max_write_seconds": "an hour"},
        {"max_write_seconds": 0},
        {"page_rows": "few"},
        {"compression_level": 99},
        {"block_row": 10},
        {"max_writeseconds": 5},
        {"partition_retention": "30d"},
        {"delete.behavior": "soft"},
        {"tail-age": 5},
        {"fuse.block_rows": 100},
        {"fuse_index.retention": "1d"},
    ],
)
def test_properties_that_cannot_be_are_refused(url: str, properties: dict[str, object]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(properties))):
        StoredTable.create(url, COLUMNS, properties=properties)


def test_properties_of_somebody_else_are_kept(url: str) -> None:
    properties = {"owner": "a", "team.delete": 1, "delta.appendOnly": "true", "my.partition_retention": "30d"}
    assert StoredTable.create(url, COLUMNS, properties=properties).snapshot.properties == properties


def test_properties_of_older_tables_do_not_stand_in_the_way(url: str) -> None:
    table = StoredTable.create(url, COLUMNS)
    old = replace(table.snapshot, properties={"partition_retention": "30d"})
    assert update_properties(old, {"owner": "a"}).properties == {"partition_retention": "30d", "owner": "a"}
    assert update_properties(old, {}, ["partition_retention"]).properties == {}


def test_properties_that_json_cannot_hold_are_refused(url: str) -> None:
    with pytest.raises(InvalidArgument, match="JSON"):
        StoredTable.create(url, COLUMNS, properties={"owner": object()})
    with pytest.raises(InvalidArgument, match="JSON"):
        StoredTable.create(url, COLUMNS, properties={"share": math.nan})


def test_a_table_without_columns_is_refused(url: str) -> None:
    with pytest.raises(SchemaError, match="at least one column"):
        StoredTable.create(url, pa.schema([]))


def test_a_cluster_key_that_is_no_column_is_refused(url: str) -> None:
    with pytest.raises(SchemaError, match="nam"):
        StoredTable.create(url, COLUMNS, cluster_by=["nam"])
    with pytest.raises(SchemaError, match="plain types"):
        StoredTable.create(url, pa.schema([("tags", pa.list_(pa.int64()))]), cluster_by=["tags"])


def test_history_tells_all_commits_newest_first(url: str) -> None:
    table = append(append(StoredTable.create(url, COLUMNS), 1), 2)

    history = table.history()

    assert [entry.operation for entry in history] == ["append", "append", "create"]
    assert [entry.sequence for entry in history] == [3, 2, 1]
    assert history[0].parent == history[1].commit_id
    assert history[0].snapshot_id == table.snapshot.id
    assert history[0].timestamp > history[1].timestamp > history[2].timestamp
    assert table.history(limit=1) == history[:1]


def test_a_listing_names_local_files_and_their_sizes(tmp_path: Path) -> None:
    table = append(StoredTable.create(tmp_path / "t", COLUMNS), *range(25), block_rows=10)

    paths, sizes = table.block_files()

    assert [Path(path).stat().st_size for path in paths] == sizes.tolist()
    assert len(paths) == 3


@pytest.mark.parametrize("how", ["before", "after", "lost"])
@pytest.mark.parametrize("nth", [1, 2, 3])
def test_a_creation_that_breaks_leaves_a_table_or_room_for_one(url: str, how: FaultMode, nth: int) -> None:
    store = open_store(url)

    with suppress(Crash, StorageError):
        StoredTable.create(FaultyStore(store, nth, how), COLUMNS)

    try:
        table = StoredTable.open(url)
    except NotFound:
        table = StoredTable.create(url, COLUMNS)
    assert ids_of(append(table, 1)) == [1]
    check_invariants(table.refresh())
