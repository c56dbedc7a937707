"""Hot rows and tiered rows are one table to whoever asks."""

from __future__ import annotations

import pickle
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index import InputError
from fuse_index.hot import append as hot_append
from fuse_index.hot import tier
from fuse_index.operations.rewrite_job import run_job
from fuse_storage import BlockReplacement, Conflict, InvalidArgument, ReadOnly, StorageError, TailFull
from fuse_storage.metadata import encoding
from fuse_storage.testing import check_invariants


@pytest.fixture
def url() -> str:
    return f"memory://{uuid.uuid4().hex}"


def rows(start: int, count: int) -> pa.Table:
    ids = range(start, start + count)
    return pa.table({"id": ids, "name": [f"name {n}" for n in ids], "x": [n / 4 for n in ids]})


def make(url: str, hot_rows: int = 10, **properties: Any) -> fuse.Table:
    table = fuse.create_table(
        url, "id BIGINT, name STRING, x DOUBLE", ["id"], {"block_rows": 50, "hot_rows": hot_rows, **properties}
    )
    table.append(rows(0, 200))
    return table


def ids(found: Any) -> list[int]:
    return sorted(found.to_arrow().column("id").to_pylist())


@pytest.mark.parametrize(
    "where", [None, "id < 20", "id >= 195", "id = 203", "name = 'name 204'", "x > 50.5 OR id = 3", "id IS NULL"]
)
def test_a_table_with_a_tail_answers_as_the_same_rows_tiered(url: str, where: str | None) -> None:
    table = make(url)
    table.create_index("by_name", "bloom", ["name"])
    table.create_index("words", "full_text", ["name"])
    for start in range(200, 230, 5):
        table.append(rows(start, 5))
    assert table.tail.rows == 30
    with_tail = fuse.open_table(url, version=table.version)
    table.maintenance.tier()
    assert table.tail.rows == 0
    group = ["count(*)", "sum(id)", "max(name)", "min(x)"]

    assert ids(with_tail.scan(where)) == ids(table.scan(where))
    assert with_tail.count(where) == table.count(where)
    assert with_tail.aggregate([], group, where).to_pylist() == table.aggregate([], group, where).to_pylist()
    found = [each.search("name", "203", where=where).column("id").to_pylist() for each in (with_tail, table)]
    assert found[0] == found[1]
    check_invariants(table.stored)


def test_votes_of_statistics_leave_hot_blocks_unread_and_explain_counts_them(url: str) -> None:
    table = make(url)
    table.append(rows(200, 5))
    table.append(rows(205, 5))

    assert table.explain("id < 7").to_dict()["tail"] == {"commits": 2, "blocks": 2, "rows": 10, "kept": 0}
    assert table.explain("id = 207").to_dict()["tail"] == {"commits": 2, "blocks": 2, "rows": 10, "kept": 1}
    assert table.explain(None, [], ["count(*)"]).to_dict()["tail"]["kept"] == 0
    assert "tail" not in make(f"{url}-2").explain("id = 1").to_dict()


def test_who_is_hot_is_said_by_the_property_the_argument_and_the_number_of_rows(url: str) -> None:
    table = make(url)
    table.append(rows(200, 10))
    assert table.tail.commits == 1
    table.append(rows(210, 11))
    table.append(rows(221, 2), hot=False)
    assert table.tail.commits == 1
    table.append(rows(223, 50), hot=True)
    assert table.tail.commits == 2
    table.set_properties({"hot_rows": 0})
    table.append(rows(273, 1))
    assert table.tail.commits == 2
    assert ids(table.scan()) == list(range(274))


def test_an_overfull_or_reshaping_hot_append_is_refused(url: str) -> None:
    table = make(url, tail_rows=20)

    with pytest.raises(InputError, match="at most 20 rows"):
        table.append(rows(200, 21), hot=True)
    with pytest.raises(InputError, match="no new columns"):
        table.append(rows(200, 1).append_column("more", pa.array([1])), hot=True, merge_schema=True)
    with pytest.raises(fuse.SchemaError):
        table.append(pa.table({"nonsense": [1]}), hot=True)

    assert table.refresh().count() == 200


@pytest.mark.parametrize(
    "properties",
    [
        {"hot_rows": -1},
        {"hot_rows": True},
        {"tail_rows": 0},
        {"tail_commits": 1.5},
        {"tiering": "me"},
        {"max_hot_seconds": 0},
        {"max_hot_seconds": 1e18},
    ],
)
def test_limits_that_cannot_be_are_refused(url: str, properties: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgument, match=next(iter(properties))):
        fuse.create_table(url, "id BIGINT", properties=properties)


def test_a_writer_tiers_when_much_has_come(url: str) -> None:
    table = make(url, tail_commits=4)
    for start in range(200, 214, 2):
        table.append(rows(start, 2))

    assert table.tail.commits == 2
    assert ids(table.scan()) == list(range(214))
    assert "tier" in table.history().column("operation").to_pylist()


def test_what_stands_in_the_way_of_tiering_is_no_error_of_the_append(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise StorageError("no")

    monkeypatch.setattr(hot_append, "tier_table", refuse)
    table = make(url, tail_commits=1)
    table.append(rows(200, 1))
    table.append(rows(201, 1))

    assert table.tail.commits == 2


def test_a_job_that_does_not_keep_up_stops_writers(url: str) -> None:
    table = make(url, tail_commits=2, tiering="job")
    for start in range(200, 205):
        table.append(rows(start, 1))

    with pytest.raises(TailFull, match="5 rows of 5 hot commits"):
        table.append(rows(205, 1))
    fuse.open_table(url).maintenance.tier()
    table.append(rows(205, 1))

    assert table.tail.commits == 1


@pytest.mark.parametrize("stale", [False, True])
def test_a_full_tail_refuses_no_version_that_an_application_has_committed(url: str, stale: bool) -> None:
    table = make(url, tail_commits=1, tiering="job")
    for version in (1, 2):
        table.append(rows(200 + version, 1), application=("job", version))
    table.append(rows(203, 1))
    handle = fuse.open_table(url)
    table.append(rows(204, 1), hot=False, application=("job", 3))

    again = handle if stale else table
    assert again.append(rows(204, 1), application=("job", 3)).id == table.snapshot.id
    with pytest.raises(TailFull):
        again.append(rows(205, 1), application=("job", 4))

    assert fuse.open_table(url).count() == 204


def test_tiering_takes_old_commits_alone_and_leaves_what_came_meanwhile(url: str) -> None:
    table = make(url)
    table.append(rows(200, 5))
    assert table.maintenance.tier(min_age="1h").id == table.snapshot.id
    other = fuse.open_table(url)
    other.append(rows(205, 5))

    table.maintenance.tier()

    assert fuse.open_table(url).tail.rows == 0
    assert ids(fuse.open_table(url).scan()) == list(range(210))


def test_commits_of_a_clock_that_is_ahead_are_tiered_too(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make(url)
    table.append(rows(200, 5))
    monkeypatch.setattr(encoding, "_clock", lambda: datetime.now(UTC) + timedelta(hours=3))
    table.append(rows(205, 5))
    monkeypatch.undo()
    table.append(rows(210, 5))

    table.maintenance.tier("1m")
    assert table.tail.rows == 15  # the first is young, and the others came after it
    table.maintenance.tier(timedelta(0))
    table.append(rows(215, 5))
    table.maintenance.tier("1m")
    assert table.tail.rows == 0
    assert ids(table.scan()) == list(range(220))


def test_of_two_tierers_one_wins_and_no_row_is_there_twice(url: str) -> None:
    table = make(url)
    table.append(rows(200, 5))
    table.append(rows(205, 5))
    first, second = fuse.open_table(url), fuse.open_table(url)
    first.maintenance.tier()

    with pytest.raises(Conflict):
        run_job(tier.TierJob(second.stored, (), attempts=1))
    assert tier.tier_table(second.stored, second.host).snapshot.id == first.snapshot.id

    assert ids(fuse.open_table(url).scan()) == list(range(210))


def test_tiering_in_tasks_is_one_commit_of_full_blocks_and_takes_anew_what_others_took(url: str) -> None:
    table = make(url)
    for start in range(200, 320, 10):
        table.append(rows(start, 10))
    job = tier.TierJob(fuse.open_table(url).stored, ())
    tasks = job.plan_tasks(8)
    assert [len(task.block_numbers) for task in tasks] == [6, 6]  # of blocks of 50 rows there are two and a bit
    outcomes = [job.run(task) for task in pickle.loads(pickle.dumps(tasks))]
    fuse.open_table(url).maintenance.tier()
    table.refresh().append(rows(320, 3))

    assert job.commit(outcomes)  # to plan again
    assert not job.commit([job.run(task) for task in job.plan_tasks(8)])

    after = fuse.open_table(url)
    assert (after.tail.rows, ids(after.scan())) == (0, list(range(323)))
    assert after.history().column("operation").to_pylist().count("tier") == 2
    check_invariants(after.stored)


def test_changes_go_through_hot_commits_and_tiering(url: str) -> None:
    table = make(url)
    since = table.snapshot.id
    table.append(rows(200, 5))
    middle = table.snapshot.id
    table.append(rows(205, 5))
    table.maintenance.tier()
    table.append(rows(210, 1))

    assert ids(table.changes(since)) == list(range(200, 211))
    assert ids(table.changes(middle)) == list(range(205, 211))
    assert set(table.changes(since).to_arrow().column("_change_type").to_pylist()) == {"insert"}


def test_statements_change_hot_rows_too(url: str) -> None:
    table = make(url)
    table.append(rows(200, 5))
    table.append(rows(205, 5))

    table.delete("id in (3, 202)")
    table.update("id = 207", {"name": "'other'"})
    table.merge(pa.table({"id": [209, 500], "name": ["m", "n"], "x": [0.0, 1.0]}), on=["id"])

    assert ids(table.scan()) == [n for n in [*range(210), 500] if n not in (3, 202)]
    assert table.scan("id >= 207 and id < 500").to_arrow().column("name").to_pylist() == ["other", "name 208", "m"]
    check_invariants(table.stored)


def test_a_statement_conflicts_with_hot_rows_that_it_has_not_seen_if_they_may_matter(url: str) -> None:
    table = make(url)
    table.append(rows(200, 5))
    stale, other = fuse.open_table(url), fuse.open_table(url)
    other.append(rows(205, 5))

    with pytest.raises(Conflict, match="were added"):
        stale.delete("id = 206")
    stale.delete("id = 3")

    assert ids(stale.scan()) == [n for n in range(210) if n != 3]


def test_without_its_tail_a_table_is_only_read(url: str) -> None:
    table = make(url)
    table.append(rows(200, 5))
    base = fuse.open_table(url, tail=False)

    assert (base.count(), ids(base.scan("id > 197")), base.tail.rows) == (200, [198, 199], 0)
    assert base.aggregate([], ["max(id)"]).to_pylist() == [{"max(id)": 199}]
    with pytest.raises(ReadOnly, match="tail="):
        base.append(rows(300, 1))
    assert table.refresh().count() == 205


def test_compaction_and_indexes_leave_the_tail_to_tiering(url: str) -> None:
    table = make(url)
    for start in range(200, 210):
        table.append(rows(start, 1))
    table.create_index("by_name", "bloom", ["name"])
    table.maintenance.compact()
    table.maintenance.recluster()

    assert table.tail.commits == 10
    assert table.maintenance.refresh_index("by_name").id == table.snapshot.id
    assert ids(table.scan("name = 'name 205'")) == [205]
    table.maintenance.tier()
    assert [names for names in table.inspect.blocks().column("indexes").to_pylist() if names != ["by_name"]] == []


CHANGES: dict[str, Any] = {
    "overwrite": lambda table: table.overwrite(rows(900, 2)),
    "overwrite where": lambda table: table.overwrite(rows(203, 1), "id BETWEEN 202 AND 206"),
    "delete": lambda table: table.delete("id in (3, 202)"),
    "update": lambda table: table.update("id >= 204", {"name": "'other'"}),
    "merge": lambda table: table.merge(rows(208, 4), on=["id"]),
}


def with_others(url: str, first_id: int | None, maintenance: str) -> fuse.Table:
    """A handle of a hot table, after which others appended a row, and moved all that there was."""
    table = make(url)
    table.append(rows(200, 5))
    table.append(rows(205, 5))
    other = fuse.open_table(url)
    if first_id is not None:
        other.append(rows(first_id, 1))
    getattr(other.maintenance, maintenance)()
    return table


def found(table: fuse.Table) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.to_arrow().to_pylist())


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("first_id", [None, 150_000])
def test_a_change_finds_its_rows_again_that_were_tiered_meanwhile(url: str, change: str, first_id: int | None) -> None:
    alone = make(f"{url}-alone")
    alone.append(rows(200, 5))
    alone.append(rows(205, 5))
    CHANGES[change](alone)
    if first_id is not None:
        alone.append(rows(first_id, 1))
    table = with_others(url, first_id, "tier")
    matters = first_id is not None and change in ("overwrite", "update")

    if matters:
        with pytest.raises(Conflict):
            CHANGES[change](table)
    else:
        CHANGES[change](table)

    assert matters or found(fuse.open_table(url)) == found(alone)
    assert matters or found(table) == found(alone)
    check_invariants(fuse.open_table(url).stored)


def test_a_change_of_rows_that_others_deleted_or_whose_columns_changed_is_a_conflict(url: str) -> None:
    table, other = with_others(url, None, "tier"), fuse.open_table(url)
    other.delete("id = 207")
    with pytest.raises(Conflict):
        table.delete("id >= 205")
    table, other = fuse.open_table(url), fuse.open_table(url)
    other.append(rows(300, 1))
    later = fuse.open_table(url)
    other.maintenance.tier()
    other.rename_column("x", "y")
    with pytest.raises(Conflict):
        later.delete("id = 300")
    assert ids(fuse.open_table(url).scan("id >= 200")) == [200, 201, 202, 203, 204, 205, 206, 208, 209, 300]


def test_a_change_whose_rows_are_moved_each_time_is_a_conflict_in_the_end(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = make(url)
    job = table.deleting("id = 3")
    real = type(job).plan_tasks

    def moved(self: Any, *arguments: Any) -> Any:
        tasks = real(self, *arguments)
        other = fuse.open_table(url)
        other.stored.transaction().replace_blocks(*moving(other), None, "tier", True).commit("tier")
        return tasks

    def moving(other: fuse.Table) -> tuple[Any, ...]:
        stored = other.stored
        with stored.writer() as writer:
            writer.write(stored.read_block(stored.blocks(), 0, stored.snapshot.schema.names))
            staged = writer.finish()
        return [BlockReplacement((stored.blocks().ids[0],), 1)], staged, stored.segments().ids

    monkeypatch.setattr(type(job), "plan_tasks", moved)
    with pytest.raises(Conflict, match="by tier"):
        table.delete("id = 3")

    assert fuse.open_table(url).count() == 200
