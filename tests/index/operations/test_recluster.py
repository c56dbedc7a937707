"""Overlapping blocks are sorted apart: depth falls, rows stay the same multiset, indexes stay right, and it comes to an
end.
"""

import math
import pickle
from collections import Counter
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fuse_index as fuse
from fuse_index.clustering import overlaps, select_blocks
from fuse_index.clustering.key import ClusterKey
from fuse_index.clustering.overlaps import Intervals
from fuse_index.clustering.report import key_intervals
from fuse_index.clustering.sorted_writer import SortedRun
from fuse_index.operations.recluster import ReclusterStep, max_depth_between_ranks, start_reclustering
from fuse_storage.testing import check_invariants
from tests.effort import effort

SCHEMA = "id BIGINT, name STRING"


def made(by=("id",), schema=SCHEMA, **properties) -> fuse.Table:
    """A table whose appends are not sorted yet."""
    table = fuse.create_table(f"memory://recluster-{uuid4().hex}", schema, (), {"block_rows": 10, **properties})
    table.create_index("by_name", "bloom", ["name"])
    table.create_index("sums", "aggregate", ["name"], aggregates=["sum(id)", "count(*)"])
    return table


def drawn(count: int, seed: int = 1) -> pa.Table:
    ids = np.random.default_rng(seed).permutation(count)
    return pa.table({"id": ids, "name": [f"n{row_id % 7}" for row_id in ids]})


def filled(blocks: int = 30, by=("id",), method="linear", **properties) -> fuse.Table:
    table = made(**properties)
    table.append(drawn(blocks * 10))
    table.cluster_by(by, method)
    return table


def held(table: fuse.Table) -> Counter:
    return Counter(map(repr, table.scan().to_arrow().to_pylist()))


def met(table: fuse.Table) -> int:
    """The most blocks that surely overlap anywhere: what a step must never raise."""
    key = ClusterKey.from_snapshot(table.snapshot)
    return max_depth_between_ranks(
        overlaps.lexicographic_intervals(key_intervals(table.stored.blocks(), key), certain=True)
    )


def right(table: fuse.Table) -> None:
    """Indexes cover all blocks, and change no answer."""
    covered = table.inspect.indexes()
    assert covered.column("blocks_indexed") == covered.column("blocks")
    assert covered.column("problem").null_count == covered.num_rows
    for where in ("name = 'n3'", "id BETWEEN 17 AND 40", "id IS NULL OR name = 'n1'"):
        assert table.scan(where).count() == table.scan(where, indexes=False).count()
    asked = (["name"], ["sum(id)", "count(*)"])
    with_indexes, without = (table.aggregate(*asked, indexes=indexes).to_pylist() for indexes in (True, False))
    assert sorted(with_indexes, key=repr) == sorted(without, key=repr)
    check_invariants(table.stored)


def test_depth_falls_to_what_was_asked_for_and_rows_stay():
    table = filled()
    before = held(table)
    assert table.inspect.clustering().average_depth == 30.0
    steps: list[ReclusterStep] = []

    depths = [met(table)]
    table.maintenance.recluster(
        depth=1, step_blocks=8, progress=lambda step: (steps.append(step), depths.append(met(table)))
    )

    assert depths == sorted(depths, reverse=True)
    assert (table.inspect.clustering().average_depth, table.inspect.clustering().maximum_depth) == (1.0, 1)
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    assert max(step.read for step in steps) <= 8
    assert sum(step.read for step in steps) < 30 * 4  # each row about log_8(30) times, and edges
    assert table.history().column("operation").to_pylist()[: len(steps)] == ["recluster"] * len(steps)
    assert table.explain("id = 17").to_dict()["blocks"]["kept"] == 1
    assert held(table) == before
    right(table)
    same = table.snapshot
    assert table.maintenance.recluster(depth=1) is same


@pytest.mark.parametrize(("by", "method"), [(["id"], "linear"), (["id", "name"], "hilbert")])
def test_groups_that_have_no_block_in_common_are_sorted_at_the_same_time(by, method):
    table = made()
    for seed in range(12):
        table.append(drawn(100, seed))
    table.cluster_by(by, method)
    before, depths = held(table), [met(table)]
    job, together = start_reclustering(table, depth=1, step_blocks=16), []
    copy = table.clone(f"memory://recluster-{uuid4().hex}")

    while tasks := pickle.loads(pickle.dumps(job.plan_tasks(4))):
        groups = [block for task in tasks for block in task.block_numbers]
        assert len(set(groups)) == len(groups)
        together.append(len(tasks))
        run = pickle.loads(pickle.dumps(job.run))
        job.commit(pickle.loads(pickle.dumps([run(task) for task in tasks])))
        table.refresh()
        depths.append(met(table))

    assert max(together) == 4
    assert together[0] > 1
    assert table.history().num_rows < 20 + len(together)
    assert held(table) == before
    if method == "linear":
        assert depths == sorted(depths, reverse=True)
        assert depths[-1] == 1
    else:
        assert table.inspect.clustering().average_depth < copy.inspect.clustering().average_depth / 2
    right(table)


VALUES = {
    "BIGINT": [None, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    "DOUBLE": [None, math.nan, -math.inf, -0.0, 0.0, 1.0, 2.0],
    "STRING": [None, "", "a", "b", "c", "d", "x" * 40, "x" * 40 + "a", "x" * 40 + "b"],
}


@st.composite
def worlds(draw):
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=2))
    method = draw(st.sampled_from(["linear", "zorder", "hilbert"])) if len(kinds) == 2 else "linear"
    row = st.tuples(*(st.sampled_from(VALUES[kind]) for kind in kinds))
    blocks = draw(st.lists(st.lists(row, min_size=1, max_size=4), min_size=1, max_size=8))
    return kinds, method, blocks, draw(st.integers(1, 3)), draw(st.integers(2, 5))


@settings(max_examples=effort(10), deadline=None)
@given(worlds())
def test_whatever_overlaps_comes_to_an_end_no_deeper_and_with_the_same_rows(world):
    kinds, method, blocks, depth, most = world
    names = [f"c{place}" for place in range(len(kinds))]
    schema = ", ".join(f"{name} {kind}" for name, kind in zip(names, kinds, strict=True))
    table = fuse.create_table(f"memory://recluster-{uuid4().hex}", schema, (), {"block_rows": 4})
    for rows in blocks:
        table.append([dict(zip(names, row, strict=True)) for row in rows])
    table.cluster_by(names, method)
    before = held(table)
    depths = [met(table)]

    table.maintenance.recluster(depth=depth, step_blocks=most, passes=3, progress=lambda _: depths.append(met(table)))

    assert held(table) == before
    if len(kinds) == 1:
        assert depths == sorted(depths, reverse=True)
    if kinds == ["BIGINT"]:
        assert depths[-1] <= depth or max(table.inspect.blocks().column("level").to_pylist()) == 3, (
            "it stopped before all was as asked for"
        )
    check_invariants(table.stored)


def test_what_statistics_cannot_tell_apart_is_read_once_and_left_alone():
    table = made()
    for start in (0, 1):
        table.append(pa.table({"id": range(10), "name": ["x" * 40 + f"{2 * n + start}" for n in range(10)]}))
    table.cluster_by(["name"])
    same = table.snapshot

    assert table.maintenance.recluster(depth=1) is same


def test_blocks_of_one_value_and_such_as_only_touch_are_left_alone():
    table = made()
    for ids in ([1] * 5, [1] * 5, [1] * 5, [1, 2], [2, 3], [3] * 4, [None, None], [None]):
        table.append(pa.table({"id": pa.array(ids, pa.int64()), "name": ["n"] * len(ids)}))
    table.cluster_by(["id"])
    same = table.snapshot

    assert table.maintenance.recluster(depth=1) is same
    assert table.inspect.clustering().maximum_depth == 4


def test_sorted_blocks_with_several_values_of_the_first_column_are_not_even_read(monkeypatch):
    table = made()
    rows = drawn(300)
    table.cluster_by(["name", "id"])
    table.append(rows)
    assert table.inspect.clustering().maximum_depth > 1  # as far as bounds of each column tell
    monkeypatch.setattr(SortedRun, "from_rows", None)
    same = table.snapshot

    assert table.maintenance.recluster(depth=1) is same


def test_new_blocks_are_sorted_among_themselves_before_old_ones_are_touched():
    table = filled(20)
    table.maintenance.recluster(depth=1)
    old = set(table.inspect.blocks().column("block").to_pylist())
    table.cluster_by(None)
    for seed in (2, 3):
        table.append(drawn(200, seed).slice(0, 10))
    table.cluster_by(["id"])

    table.maintenance.recluster(depth=2)
    assert old <= set(table.inspect.blocks().column("block").to_pylist())
    assert met(table) == 2
    table.maintenance.recluster(depth=1)
    assert met(table) == 1
    right(table)


@pytest.mark.parametrize("method", ["zorder", "hilbert"])
def test_along_a_curve_blocks_become_narrow_in_every_column(method):
    table = made()
    table.append(pa.table({"id": np.random.default_rng(2).permutation(640), "name": [f"n{n:03}" for n in range(640)]}))
    table.cluster_by(["id", "name"], method)
    before = held(table)
    assert table.inspect.clustering().average_depth == 32.5  # unordered by id, ordered by name

    table.maintenance.recluster(step_blocks=16)
    assert table.inspect.clustering().average_depth < 20
    assert table.explain("id = 17").to_dict()["blocks"]["kept"] < 30
    assert held(table) == before
    right(table)


def test_a_step_holds_no_more_than_it_may():
    table = filled(12)
    steps: list[ReclusterStep] = []
    table.maintenance.recluster(depth=1, step_bytes=1, progress=steps.append)

    assert {step.read for step in steps} == {2}
    assert sum(step.rows for step in steps) <= 8 * 120  # passes
    assert table.inspect.clustering().average_depth < 12


def test_no_row_is_sorted_more_often_than_passes_allow():
    table = filled(30)
    read: list[ReclusterStep] = []
    table.maintenance.recluster(depth=1, step_blocks=3, passes=1, progress=read.append)

    assert sum(step.rows for step in read) <= 300
    assert set(table.stored.blocks().levels.tolist()) <= {0, 1}
    assert 1 < met(table) <= 10


def test_a_killed_run_keeps_its_steps_and_another_goes_on():
    table = filled()
    before = held(table)

    def dying(step: ReclusterStep) -> None:
        if step.number == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.maintenance.recluster(depth=1, step_blocks=8, progress=dying)
    assert table.snapshot.operation == "recluster"
    again = fuse.open_table(table.stored.store)
    assert again.snapshot.id == table.snapshot.id
    assert max(again.stored.blocks().levels) == 1
    again.maintenance.recluster(depth=1, step_blocks=8)
    assert (met(again), held(again)) == (1, before)
    right(again)


def test_rows_appended_meanwhile_stay_and_rows_deleted_meanwhile_are_a_conflict(monkeypatch):
    table = filled()
    other = fuse.open_table(table.stored.store)
    before = held(table)

    def append(step: ReclusterStep) -> None:
        if step.number == 1:
            other.append([{"id": row_id, "name": "late"} for row_id in (-1, 1000)])

    table.maintenance.recluster(depth=1, step_blocks=16, progress=append)
    assert (held(table.refresh()) - before).total() == 2
    assert 2 in table.inspect.blocks().column("rows").to_pylist()  # left for the next run
    right(table)

    table = filled()
    other = fuse.open_table(table.stored.store)
    write = SortedRun.write

    def late(run: SortedRun, writer) -> None:
        other.delete("id < 3")
        write(run, writer)

    monkeypatch.setattr(SortedRun, "write", late)
    with pytest.raises(fuse.Conflict, match="rows that this recluster read were replaced by delete"):
        table.maintenance.recluster()
    assert table.refresh().scan().count() == 297
    check_invariants(table.stored)


def test_blocks_of_older_columns_are_sorted_by_present_ones():
    table = filled(6)
    table.add_column("year", "SMALLINT", default=2025)
    table.change_type("year", "INT")
    table.append([{"id": row_id, "name": "n", "year": 2000 + row_id} for row_id in range(20, 50)])
    table.cluster_by(["year", "id"])
    before = held(table)

    table.maintenance.recluster(depth=1)
    assert held(table) == before
    assert table.scan("year = 2030 AND id = 30").count() == 1
    assert table.scan(columns=["year"]).to_arrow().column("year").to_pylist() == sorted(
        [2025] * 60 + list(range(2020, 2050))
    )
    right(table)


def test_changes_between_are_none_and_older_snapshots_stay():
    table = filled()
    old = table.snapshot.id
    before = held(table)
    table.maintenance.recluster(depth=1)

    assert table.changes(old).count() == 0
    assert held(fuse.open_table(table.stored.store, at=old)) == before


def test_what_cannot_be_is_said():
    table = made()

    with pytest.raises(fuse.InputError, match=r"no clustering key: give it one with cluster_by\(\[...\]\)$"):
        table.maintenance.recluster()
    table.cluster_by(["id"])
    for given_ in ({"depth": 0}, {"step_blocks": 1}, {"passes": True}, {"step_bytes": "1"}, {"step_bytes": 1 << 40}):
        with pytest.raises(fuse.InputError, match=next(iter(given_))):
            table.maintenance.recluster(**given_)
    same = table.snapshot
    assert table.maintenance.recluster() is same
    with pytest.raises(fuse.ReadOnly):
        fuse.open_table(table.stored.store, at=same.id).maintenance.recluster()


def found(*spans: tuple[int, int]) -> Intervals:
    low, high = (np.array(part) for part in zip(*spans, strict=True))
    return Intervals(low, high, low == high, np.zeros(len(low), bool))


@pytest.mark.parametrize(
    ("spans", "levels", "depth", "most", "chosen"),
    [
        ([(0, 2), (2, 4), (4, 9)], [0, 0, 0], 1, 9, None),
        ([(0, 3), (2, 4), (4, 9)], [0, 0, 0], 1, 9, {0, 1}),
        ([(0, 9), (0, 9), (0, 9)], [1, 0, 0], 2, 9, {1, 2}),
        ([(0, 9), (0, 9), (0, 9)], [1, 0, 0], 1, 9, {0, 1, 2}),
        ([(0, 9), (0, 9), (0, 9)], [1, 0, 0], 1, 2, {1, 2}),
        ([(0, 9), (0, 3), (3, 6), (6, 9)], [0, 0, 0, 0], 1, 9, {0, 1, 2, 3}),
        ([(0, 9), (0, 3), (3, 6), (6, 9)], [0, 0, 0, 0], 1, 3, {0, 1, 2}),
        ([(5, 5), (5, 5), (0, 9)], [0, 0, 0], 1, 9, None),
        ([(0, 2), (2, 5), (2, 5)], [0, 0, 0], 1, 9, {1, 2}),
        ([(0, 3), (0, 3), (0, 3), (5, 8), (5, 8)], [0, 0, 0, 0, 0], 1, 9, {0, 1, 2}),
    ],
)
def test_blocks_that_share_a_point_are_chosen_the_least_sorted_first(spans, levels, depth, most, chosen):
    got = select_blocks.select_overlapping(found(*spans), np.array(levels), np.ones(len(spans), bool), depth, most)

    assert (None if got is None else set(got.tolist())) == chosen


def test_a_key_stays_the_field_that_was_chosen_when_a_column_gets_its_path_as_a_name():
    table = fuse.create_table(f"memory://recluster-{uuid4().hex}", "at STRUCT<day: INT>, x INT", (), {"block_rows": 2})
    table.cluster_by(["at.day"])
    for days in ([1, 4], [2, 3]):
        table.append([{"at": {"day": day}, "x": 1} for day in days])
    table.rename_column("x", "at.day")

    assert [order.overlaps.maximum_depth for order in table.inspect.clustering().orders] == [2]
    table.maintenance.recluster(depth=1)

    assert [at["day"] for at in table.scan(columns=["at"]).to_arrow().column("at").to_pylist()] == [1, 2, 3, 4]
