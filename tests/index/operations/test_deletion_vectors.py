"""A table whose rows were deleted by vectors is, to whoever asks, the table whose blocks were written without them."""

from __future__ import annotations

import pickle
import uuid
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.changes.follow import BatchLimit, OnChange, TableFollower
from fuse_index.errors import StreamError
from fuse_index.operations.compact import start_compaction
from fuse_storage import (
    Conflict,
    InvalidArgument,
    MeteredStore,
    StoredTable,
    meter_requests,
    process_cache,
)
from fuse_storage.testing import check_invariants

COUNT, BLOCK, ZONE = 400, 100, 10
GONE = ["name LIKE 'n3%'", "id BETWEEN 120 AND 129", "x IS NULL", "id IN (5, 7, 399)"]
"""Of the second block a whole zone goes."""
CONDITIONS = [
    None,
    "id = 5",
    "id = 6",
    "id IN (5, 6, 125, 140)",
    "id BETWEEN 121 AND 138",
    "NOT (id > 100 AND name LIKE 'n3%')",
    "x > 20 OR x IS NULL",
    "name IS NOT NULL",
    "tag = 3",
    "match(text, 'seven')",
]


def rows(start: int = 0, count: int = COUNT) -> pa.Table:
    ids = range(start, start + count)
    words = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "name": [f"n{n % 23} of {n}" for n in ids],
            "x": pa.array([None if n % 31 == 0 else n / 8 for n in ids], pa.float64()),
            "tag": pa.array([n * 7 % 50 for n in ids], pa.int32()),
            "text": [f"{words[n % 11]} {words[n % 7]} {words[n % 3]}" for n in ids],
        }
    )


def make(mode: str, url: str | None = None, **properties: Any) -> fuse.Table:
    schema = "id BIGINT, name STRING, x DOUBLE, tag INT, text STRING"
    properties = {"block_rows": BLOCK, "zone_rows": ZONE, "delete_mode": mode, **properties}
    table = fuse.create_table(url or f"memory://{uuid.uuid4().hex}", schema, properties=properties)
    table.append(rows())
    table.create_index("b", "bloom", ["tag"])
    table.create_index("w", "full_text", ["text"])
    table.create_index("a", "aggregate", ["tag"], aggregates=["count(*)", "sum(id)", "max(x)"])
    return table


def deleted(mode: str, url: str | None = None) -> fuse.Table:
    table = make(mode, url)
    for where in GONE:
        table.delete(where)
    return table


@pytest.fixture(scope="module")
def both() -> tuple[fuse.Table, fuse.Table]:
    """By vectors, and rewritten."""
    marked, plain = deleted("merge-on-read"), deleted("copy-on-write")
    assert (marked.stored.blocks().row_counts == BLOCK).all()
    assert not marked.stored.blocks().has_all_rows.any()
    assert plain.stored.blocks().has_all_rows.all()
    return marked, plain


def content(found: pa.Table) -> list[str]:
    return sorted(map(repr, found.to_pylist()))


@pytest.mark.parametrize("where", CONDITIONS)
@pytest.mark.parametrize("indexes", [True, False])
def test_scans_counts_and_aggregates(both: tuple[fuse.Table, fuse.Table], where: str | None, indexes: bool) -> None:
    marked, plain = both
    assert content(marked.scan(where, indexes=indexes).to_arrow()) == content(plain.scan(where).to_arrow())
    assert marked.scan(where, indexes=indexes).count() == plain.count(where)
    assert marked.scan(where, limit=7, indexes=indexes).count() == min(7, plain.count(where))
    for groups in ([], ["tag"]) if indexes else ():
        functions = ["count(*)", "sum(id)", "min(id)", "max(x)", "count(x)"]
        found = [table.aggregate(groups, functions, where) for table in both]
        assert content(found[0]) == content(found[1])
    assert marked.snapshot.row_count == plain.snapshot.row_count == plain.count()
    assert marked.aggregate([], ["max(id)"]).to_pylist() == [{"max(id)": 398}]  # 399 is the bound that statistics have


@pytest.mark.parametrize("where", [None, "id < 150", "id = 7", "tag > 25"])
def test_a_search_ranks_no_row_that_does_not_count(both: tuple[fuse.Table, fuse.Table], where: str | None) -> None:
    found = [table.search("text", "seven three", limit=500, where=where)["id"].to_pylist() for table in both]
    assert sorted(found[0]) == sorted(found[1])
    assert len(both[0].search("text", "three", limit=1, where="id IN (3, 14, 25)")) == 1


def test_a_zone_of_which_no_row_counts_is_not_read(both: tuple[fuse.Table, fuse.Table]) -> None:
    marked, _ = both
    assert marked.explain(None).zones.kept == COUNT // ZONE - 1
    assert marked.explain("id = 125").zones.kept == 0
    assert marked.explain(None).rows.kept == marked.count()


def test_plans_go_to_tasks_with_the_rows_that_count(both: tuple[fuse.Table, fuse.Table]) -> None:
    again = pickle.loads(pickle.dumps(both[0].stored))
    assert fuse.Table(again, both[0].host).count() == both[1].count()


def test_changes_and_streams_tell_what_vectors_hid() -> None:
    marked, plain = make("merge-on-read"), make("copy-on-write")
    starts = [table.snapshot.id for table in (marked, plain)]
    middles = []
    for number, where in enumerate(GONE):
        for table in (marked, plain):
            table.delete(where)
            if number == 1:
                middles.append(table.snapshot.id)
    for start in (starts, middles):
        found = [content(table.changes(since).to_arrow()) for table, since in zip((marked, plain), start, strict=True)]
        assert found[0] == found[1]
        assert found[0]
        with_where = [
            content(table.changes(since, where="id < 130 AND x > 1", key=["id"]).to_arrow())
            for table, since in zip((marked, plain), start, strict=True)
        ]
        assert with_where[0] == with_where[1]
    assert content(marked.changes(starts[0]).to_arrow().select(["id"])) == content(
        pa.table({"id": sorted(set(range(COUNT)) - set(marked.scan().to_arrow()["id"].to_pylist()))})
    )
    marked.maintenance.compact()
    marked.update("id = 6", {"tag": 7})
    assert marked.changes(middles[0]).count() == plain.changes(middles[1]).count() + 2
    follower = TableFollower(marked.stored, OnChange.REFUSE)
    start, newest = follower.initial_offset(marked.stored.at(starts[0])), follower.head_sequence()
    with pytest.raises(StreamError, match="deleted or changed"):
        follower.latest_offset(start, BatchLimit(), newest)


def test_statements_after_one_another_leave_what_they_would_of_rewritten_blocks() -> None:
    tables = make("merge-on-read"), make("copy-on-write")
    for table in tables:
        for where in GONE:
            table.delete(where)
        table.update("id < 20", {"name": "'n'"})
        table.merge(rows(390, 20), on=["id"], matched={"update": "source.id > 395"})
        table.delete("tag = 8")
        table.overwrite(rows(200, 10), "id BETWEEN 200 AND 209")
        check_invariants(table.stored)
    assert content(tables[0].to_arrow()) == content(tables[1].to_arrow())
    assert all(tables[0].maintenance.verify_index(name).sound for name in ("b", "w", "a"))


def test_a_delete_reads_what_its_condition_names_and_writes_a_vector(tmp_path: Path) -> None:
    url = str(tmp_path / "t")
    make("merge-on-read", url)
    before = {path.name for path in (tmp_path / "t" / "_b").iterdir()}
    process_cache.clear()
    store = meter_requests(StoredTable.open(url).store)
    table = fuse.Table(StoredTable.open(store), fuse.Host.discover())
    table.delete("id IN (5, 7)")

    assert {path.name for path in (tmp_path / "t" / "_b").iterdir()} == before
    (pack,) = (tmp_path / "t" / "_d").iterdir()
    assert pack.stat().st_size == 1028
    assert isinstance(store, MeteredStore)
    assert len({key for _, key, _ in store.reads if key.startswith("_b/")}) == 1
    assert table.count() == COUNT - 2


def test_updates_and_merges_of_few_rows_write_these_and_no_block_anew(tmp_path: Path) -> None:
    table = make("merge-on-read", str(tmp_path / "t"))
    before = {path.name for path in (tmp_path / "t" / "_b").iterdir()}

    table.update("id IN (5, 7, 305)", {"tag": 1})
    assert table.stored.blocks().row_counts.tolist() == [100] * 4 + [3]
    assert table.stored.blocks().live_row_counts.tolist() == [98, 100, 100, 99, 3]
    assert table.snapshot.summary["updated_rows"] == 3
    since = table.snapshot.id
    table.merge({"id": [6, 7, 500], "tag": [2, 2, 2]}, ["id"])
    assert table.stored.blocks().live_row_counts.tolist() == [97, 100, 100, 99, 3, 1, 1]
    assert (table.snapshot.summary["updated_rows"], table.snapshot.summary["inserted_rows"]) == (2, 1)
    changes = content(table.changes(since, key=["id"]).to_arrow().select(["id", "tag"]))
    assert changes == content(pa.table({"id": [6, 6, 7, 7, 500], "tag": pa.array([42, 2, 1, 2, 2], pa.int32())}))
    table.update("id < 90", {"x": 0.0})  # most of the first block is written anew
    assert table.stored.blocks().live_row_counts.tolist() == [97, 100, 100, 99, 3, 1, 1]
    assert table.stored.blocks().row_counts.tolist() == [97, 100, 100, 100, 3, 1, 1]
    assert table.count("tag = 1 AND id = 5 AND x = 0") == 1
    assert before & {path.name for path in (tmp_path / "t" / "_b").iterdir()} == before
    assert all(table.maintenance.verify_index(name).sound for name in ("b", "w", "a"))


def test_a_merge_that_brings_columns_rewrites_blocks() -> None:
    table = make("merge-on-read")
    table.merge({"id": [6], "more": [1.5]}, ["id"], merge_schema=True)
    assert table.stored.blocks().row_counts.tolist() == [100] * 4
    assert table.stored.blocks().has_all_rows.all()
    assert table.scan("id = 6", columns=["more", "tag"]).to_arrow().to_pylist() == [{"more": 1.5, "tag": 42}]


def test_who_read_a_block_conflicts_with_who_gave_it_a_vector_meanwhile() -> None:
    table = make("merge-on-read")
    updating = fuse.Table(table.stored, table.host).updating("id = 50", {"tag": 1})
    updating.replans = 0
    outcomes = [updating.run(task) for task in updating.plan_tasks()]
    table.delete("id = 51")
    with pytest.raises(Conflict, match="by delete"):
        updating.commit(outcomes)
    small = make("merge-on-read", block_rows=1000)
    small.append(rows(COUNT, 20))
    compacting = start_compaction(fuse.Table(small.stored, small.host))
    outcomes = [compacting.run(task) for task in compacting.plan_tasks()]
    assert outcomes
    small.delete("id = 51")
    with pytest.raises(Conflict, match="read them again"):
        compacting.commit(outcomes)
    assert small.count("id = 51") == 0


def test_compaction_writes_a_block_anew_of_which_more_than_a_fifth_went() -> None:
    table = make("merge-on-read")
    ids = table.stored.blocks().ids
    table.delete("id < 19")
    table.delete("id = 300")
    table.maintenance.compact()
    assert table.stored.blocks().live_row_counts.tolist() == [81, 100, 100, 99]
    assert table.stored.blocks().row_counts.tolist() == [100] * 4
    table.set_properties({"delete_mode": "copy-on-write"})
    table.set_properties({"delete_mode": "merge-on-read"})
    table.delete("id = 19")
    table.maintenance.compact()
    assert table.stored.blocks().row_counts.tolist() == [100] * 4  # a fifth, and not more
    table.delete("id = 20")
    assert table.stored.blocks().row_counts.tolist() == [79, 100, 100, 100]  # no vector is made that compaction removes
    assert table.stored.blocks().ids[1:3] == ids[1:3]
    check_invariants(table.stored)


def test_worn_blocks_that_are_there_are_compacted(monkeypatch: pytest.MonkeyPatch) -> None:
    table = make("merge-on-read")
    monkeypatch.setattr("fuse_storage.is_worn", lambda rows, live: live == 0)
    table.delete("id < 30")
    monkeypatch.undo()
    before = content(table.to_arrow())
    since = table.snapshot.id
    table.maintenance.compact()
    assert table.stored.blocks().row_counts.tolist() == [70, 100, 100, 100]
    assert content(table.to_arrow()) == before
    assert table.changes(since).count() == 0
    assert table.snapshot.same_rows
    check_invariants(table.stored)


def test_clones_branches_restores_and_vacuums_know_vectors(tmp_path: Path) -> None:
    table = make("merge-on-read", str(tmp_path / "t"))
    whole = table.snapshot.id
    table.delete("id IN (5, 7)")
    table.tag("two")
    copy = table.clone(str(tmp_path / "copy"))
    copy.delete("id = 9")
    table.delete("id < 10")
    again = fuse.open_table(str(tmp_path / "copy"))
    assert again.count() == COUNT - 3
    assert again.clone(str(tmp_path / "copy of copy")).count() == COUNT - 3
    check_invariants(again.stored)
    table.restore("two")
    assert table.count() == COUNT - 2
    table.restore(whole)
    assert table.count() == COUNT
    table.delete("id = 1")
    packs = len(list((tmp_path / "t" / "_d").iterdir()))
    assert packs == 3
    table.set_properties({"max_write_seconds": 1})
    result = table.maintenance.vacuum(timedelta(0), force=True, dry_run=False)
    assert result.kept
    assert table.count() == COUNT - 1
    assert fuse.open_table(str(tmp_path / "t"), at="two").count() == COUNT - 2
    assert fuse.open_table(str(tmp_path / "copy")).count() == COUNT - 3


def test_other_formats_are_told_that_rows_were_deleted_and_modes_are_checked(
    both: tuple[fuse.Table, fuse.Table], tmp_path: Path
) -> None:
    table = make("merge-on-read", str(tmp_path / "t"))
    table.delete("id = 1")
    table.export_delta()
    assert len(list((tmp_path / "t").glob("deletion_vector_*.bin"))) == 1
    with pytest.raises(InvalidArgument, match=r"'sometimes'.*merge-on-read"):
        table.set_properties({"delete_mode": "sometimes"})
    assert np.count_nonzero(~both[0].stored.blocks().has_all_rows) == 4
