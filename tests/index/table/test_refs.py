"""Names for snapshots, branches and ways back, through the front door."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.table.indexes import plan_index_tasks

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "name": pa.array([f"n{row_id}" for row_id in ids])})


def ids(table: fuse.Table, where: str | None = None) -> list[int]:
    return table.scan(where, columns=["id"]).to_arrow().column("id").to_pylist()


@pytest.fixture
def table() -> fuse.Table:
    made = fuse.create_table(f"memory://history-{uuid4().hex}", SCHEMA, properties={"block_rows": 2})
    made.append(rows(1, 2, 3))
    return made


def test_a_branch_is_written_and_comes_home_with_its_indexes(table):
    side = table.branch("side")
    side.create_index("by_name", "bloom", ["name"])
    side.append(rows(4))

    assert ids(side, "name = 'n4'") == [4]
    assert ids(table.refresh()) == [1, 2, 3]
    with pytest.raises(fuse.InvalidArgument, match="'' is no name for a branch"):
        table.fast_forward("")
    table.fast_forward("side")
    assert ids(table, "name = 'n4'") == [4]
    assert table.explain("name = 'n4'").to_dict()["blocks"]["kept"] == 1
    assert table.inspect.indexes().column("blocks_indexed").to_pylist() == [3]
    table.drop_branch("side")
    assert table.inspect.refs().column("name").to_pylist() == ["main"]


def test_a_clone_skips_blocks_as_its_source_does_and_changes_alone(table):
    table.create_index("by_name", "bloom", ["name"])
    copy = table.clone(f"memory://clone-{uuid4().hex}")
    copy.append(rows(4))
    copy.delete("id = 1")

    assert (ids(table), ids(copy)) == ([1, 2, 3], [2, 3, 4])
    assert copy.explain("name = 'n3'").to_dict()["blocks"]["kept"] == 1
    assert copy.maintenance.verify_index("by_name").sound
    assert copy.history().column("operation").to_pylist() == ["delete", "append", "clone"]
    (held,) = [row for row in table.inspect.refs().to_pylist() if row["kind"] == "tag"]
    assert held["holder"] == copy.stored.store.url


def test_an_index_of_a_clone_is_complete_as_long_as_its_sources_packs_are(table, tmp_path):
    source = fuse.create_table(str(tmp_path / "source"), table.schema)
    source.create_index("by_name", "bloom", ["name"])
    source.append(pa.table({"id": range(3000), "name": [f"n{number}" for number in range(3000)]}))
    copy = source.clone(str(tmp_path / "copy"))

    assert plan_index_tasks(copy, "by_name") == []
    (pack,) = [path for path in (tmp_path / "source" / "_i").rglob("*") if path.is_file()]
    pack.unlink()
    assert len(plan_index_tasks(copy, "by_name")) == 1


def test_a_table_attached_to_be_read_is_not_changed_by_mistake(table):
    table.branch("side")
    attached = fuse.open_table(table.stored.store.url, read_only=True)
    table.append(rows(4))

    assert ids(attached.refresh(), "name = 'n4'") == [4]
    for change in (
        lambda: attached.append(rows(5)),
        lambda: attached.delete("id = 1"),
        lambda: attached.create_index("x", "bloom", ["name"]),
        lambda: attached.tag("x"),
        lambda: attached.branch("x"),
        lambda: attached.maintenance.vacuum(dry_run=False),
        lambda: attached.maintenance.compact(),
        lambda: attached.add_column("x", "int"),
        lambda: attached.restore(attached.snapshot.id),
        lambda: attached.drop_branch("side"),
    ):
        with pytest.raises(fuse.ReadOnly, match="was opened to be read only"):
            change()


def test_a_table_without_refs_is_recovered_with_its_indexes(table):
    url = table.stored.store.url
    table.create_index("by_name", "bloom", ["name"])
    table.stored.store.delete([one.key for one in table.stored.store.list("_refs")])
    with pytest.raises(fuse.NotFound, match="recover"):
        fuse.open_table(url)

    assert fuse.recover_table(url, dry_run=True).to_dict()["branches"][0]["newest"] == table.snapshot.id
    assert fuse.recover_table(url).done
    assert fuse.open_table(url).explain("name = 'n3'").to_dict()["blocks"]["kept"] == 1


def test_what_was_tagged_is_read_and_restored(table):
    tag = table.tag("good", timedelta(days=7))
    assert tag.expires - tag.timestamp == pytest.approx(timedelta(days=7), abs=timedelta(seconds=5))
    table.append(rows(4))
    url = table.stored.store

    assert ids(fuse.open_table(url, at="good")) == [1, 2, 3]
    assert table.diff("good").added.rows == 1
    assert table.diff("good", until="good").empty
    assert table.restore("good").operation == "restore"
    assert ids(table) == [1, 2, 3]
    assert ids(table.branch("older")) == [1, 2, 3]
    table.untag("good")
    with pytest.raises(fuse.NotFound, match="no tag 'good'"):
        table.restore("good")


def test_an_index_made_since_is_gone_after_a_restore_and_the_one_of_then_is_whole(table):
    table.create_index("by_id", "bloom", ["id"])
    table.tag("then")
    table.drop_index("by_id")
    table.create_index("by_name", "bloom", ["name"])
    table.append(rows(4))

    assert table.diff("then").definitions == ("added 'by_name'", "dropped 'by_id'")
    table.restore("then")
    assert table.inspect.indexes().select(["name", "blocks_indexed"]).to_pylist() == [
        {"name": "by_id", "blocks_indexed": 2}
    ]


def test_a_pinned_handle_names_and_branches_what_it_reads_but_changes_nothing(table):
    first = table.snapshot.id
    table.append(rows(4))
    old = fuse.open_table(table.stored.store, at=first)

    with pytest.raises(fuse.ReadOnly):
        old.restore(first)
    with pytest.raises(fuse.ReadOnly):
        old.fast_forward("main")
    assert old.tag("first").snapshot_id == first
    side = old.branch("side")
    side.append(rows(9))
    assert ids(side) == [1, 2, 3, 9]


def test_a_version_is_named_by_its_number_wherever_a_state_is(table):
    store = table.stored.store
    table.append(rows(100))

    assert [ids(fuse.open_table(store, **state)) for state in ({"at": 2}, {"at": "2"}, {"version": 2})] == [
        [1, 2, 3]
    ] * 3
    assert table.diff(2).added.rows == 1
    with pytest.raises(fuse.InvalidArgument, match="'2' is no name for a tag: it could be taken for a version"):
        table.tag("2")
    with pytest.raises(fuse.InvalidArgument, match="'2' is no name for a branch: it could be taken for a version"):
        table.branch("2")
    store.create("_refs/tag/2.json", replace(table.tag("two"), name="2").encode())  # as older versions made
    assert ids(fuse.open_table(store, at="2")) == ids(table)
    table.untag("2")
    assert ids(fuse.open_table(store, at="2")) == [1, 2, 3]
    table.restore(2)
    assert ids(table) == [1, 2, 3]
    with pytest.raises(fuse.NotFound, match="has no version 99: its newest is 4"):
        fuse.open_table(store, at=99)
    with pytest.raises(fuse.InputError, match=r"at=2\.5: give a text or "):
        fuse.open_table(store, at=2.5)


def test_a_number_or_a_time_beyond_all_is_refused(table):
    with pytest.raises(fuse.NotFound, match="has no version 1111"):
        fuse.open_table(table.stored.store, at="1" * 5000)
    for take, argument in [
        (lambda ever: table.tag("ever", expires=ever), "expires"),
        (lambda ever: table.maintenance.vacuum(ever), "retention"),
    ]:
        for ever in (timedelta(days=10**8), "9" * 400 + "d"):
            with pytest.raises(fuse.InputError, match=f"{argument}='.*' is longer than a thousand years"):
                take(ever)


def test_a_tag_and_a_branch_have_different_names(table):
    table.branch("side")
    table.tag("done")
    for name in ("main", "side"):
        with pytest.raises(fuse.AlreadyExists, match=f"already has a branch '{name}', which a tag"):
            table.tag(name)
    with pytest.raises(fuse.AlreadyExists, match="already has a tag 'done', which would hide the branch"):
        table.branch("done")
    table.drop_branch("side")
    table.untag("done")
    table.tag("side")
    table.branch("done")


def test_a_table_of_a_warehouse_is_opened_at_a_version_too():
    catalog = fuse.catalog(f"memory://versions-{uuid4().hex}", create=True)
    made = catalog.create_table("orders", SCHEMA)
    made.append(rows(1))
    made.append(rows(2), hot=True)

    assert [ids(catalog.load_table("orders", version=version)) for version in (1, 2, 3)] == [[], [1], [1, 2]]
    assert ids(catalog.load_table("orders", at=2)) == ids(catalog.load_table("orders", tail=False)) == [1]
    with pytest.raises(fuse.ReadOnly):
        catalog.load_table("orders", version=1).append(rows(3))


def test_a_vacuum_says_what_it_would_delete_and_deletes_nothing_young(table):
    table.delete("id > 1")
    found = table.maintenance.vacuum(timedelta(0), force=True)

    assert not found.deleted
    assert table.maintenance.vacuum(timedelta(0), force=True, dry_run=False).deleted
    assert sum(found.files.values()) == 0
    assert found.kept > 5
    with pytest.raises(fuse.StorageError, match="say force"):
        table.maintenance.vacuum(timedelta(0))


def test_a_time_before_the_table_and_a_wrong_at_are_named(table):
    with pytest.raises(fuse.NotFound, match="began at"):
        table.restore(datetime(2020, 1, 1, tzinfo=UTC))
    with pytest.raises(fuse.InputError, match=r"since=3\.5: give a text or .* or a datetime"):
        table.diff(3.5)
