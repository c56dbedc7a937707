"""Aggregates of a table: stored states, statistics and rows give one answer, whatever of it is indexed."""

import math
import warnings
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from threading import Event
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fuse_index as fuse
from fuse_index.aggregates.sketches import sketch_registers
from fuse_index.aggregates.state import COUNT_STAR_ARGUMENT, Aggregate, Aggregation
from fuse_index.errors import IndexFault, InputError, OpaqueError
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.registry import Host
from fuse_index.predicate import Column, Context
from fuse_index.query.aggregate import plan_aggregate
from fuse_plugins import aggregate, bloom, min_max
from fuse_storage import BlockFrame, process_cache
from tests.effort import effort
from tests.index.tables import damaged, files
from tests.sketches import computable

HOST = Host([min_max, bloom, aggregate])
SCHEMA = "city STRING, n INT, big BIGINT, d DOUBLE, price DECIMAL(10,2), at TIMESTAMP, flag BOOLEAN"
TYPES = fuse.create_table("memory://types", SCHEMA, host=HOST).schema
EPOCH = datetime(2024, 1, 1, tzinfo=UTC)
KEPT = [
    "count(*)",
    "sum(n)",
    "avg(n)",
    "min(d)",
    "max(d)",
    "sum(d)",
    "sum(price)",
    "avg(price)",
    "count(d)",
    "max(city)",
    "sum(big)",
    *computable(["hll_sketch_agg(city)", "hll_sketch_agg(n, 5)"]),
]


def rows(count, seed=0, nulls=0.2):
    """Rows of every type, with NULLs, NaN and both zeros; a few values of each, so that groups meet."""
    random = np.random.default_rng(seed)
    choices = {
        "city": ["Ber", "Bern", "", "\U0001f600"],
        "n": [1, -7, 2**31 - 1],
        "big": [3, 2**40, -(2**40)],
        "d": [math.nan, 0.0, -0.0, 1.5, -2.25, math.inf],
        "price": [Decimal("0.01"), Decimal("99999999.99"), Decimal("-1.50")],
        "at": [EPOCH + timedelta(hours=7 * i) for i in range(12)],
        "flag": [True, False],
    }
    columns = []
    for field in TYPES:
        known = choices[field.name]
        picked = [None if random.random() < nulls else known[i] for i in random.integers(0, len(known), count)]
        columns.append(pa.array(picked, field.type))
    return pa.table(columns, schema=TYPES)


def created(url=None, properties=None, context=None):
    made = fuse.create_table(
        url or f"memory://answer-{uuid4().hex}",
        SCHEMA,
        properties=properties or {"block_rows": 8, "zone_rows": 4},
        host=HOST,
        context=context,
    )
    return made


def plain(table):
    """Floats to nine digits, and of sketches the registers: the rest depends on the order of rows."""

    def shown(one):
        if isinstance(one, bytes):
            return sketch_registers(one)
        return float(f"{one:.9g}") + 0.0 if isinstance(one, float) else one

    return sorted(repr([shown(one) for one in row.values()]) for row in table.to_pylist())


GROUPS = [
    [],
    ["city"],
    ["city", "flag"],
    ["d"],
    ["date_trunc('day', at)"],
    ["city", "CAST(at AS DATE)"],
    ["price"],
    ["upper(city)", "flag"],
    ["date_trunc('month', at)"],
    ["length(city)", "CAST(price AS STRING)"],
    ["day(CAST(at AS DATE))", "date_trunc('hour', at)"],
    ["date_trunc('hour', at)"],
    ["date_trunc('week', at)", "at"],
]
CONDITIONS = [
    None,
    "city = 'Bern'",
    "n > 0",
    "city IN ('Ber', 'Bern') AND n <= 1",
    "d <> 1.5 OR city IS NULL",
    "flag",
    "lower(city) = 'bern'",
    "date_trunc('day', at) >= TIMESTAMP'2024-01-02 00:00:00'",
    "CAST(n AS STRING) = '1'",
    "d = 0.0",
    "big IS NOT NULL AND city > 'B'",
    "n > 100 AND n < 0",
    "day(CAST(at AS DATE)) = 2",
    "upper(city) LIKE 'B%' AND d = 1.5",
    "date_trunc('quarter', at) < TIMESTAMP'2025-01-01'",
]


@settings(max_examples=effort(12), deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["append", "define", "refresh", "rebuild"]), st.integers(0, 99)),
        min_size=2,
        max_size=6,
    ),
    st.sampled_from(GROUPS[1:]),
    st.sampled_from(GROUPS),
    st.sets(st.sampled_from(KEPT), min_size=1),
    st.sampled_from(CONDITIONS),
)
def test_whatever_is_indexed_the_answer_is_that_of_a_scan(steps, keys, groups, aggregates, condition):
    table = created()
    table.append(rows(30, 1))
    for step, seed in steps:
        if step == "append":
            table.append(rows(seed % 25 + 1, seed))
        elif step == "define" and "x" not in table.snapshot.definitions:
            table.create_index("x", "aggregate", keys, build=bool(seed % 2), aggregates=KEPT)
        elif step == "refresh":
            table.maintenance.refresh_index()
        elif "x" in table.snapshot.definitions:
            table.maintenance.rebuild_index("x")
    asked = sorted(aggregates)

    assert plain(table.aggregate(groups, asked, condition)) == plain(
        table.aggregate(groups, asked, condition, indexes=False)
    )


@pytest.fixture
def table(tmp_path):
    made = created(str(tmp_path / "t"))
    made.create_index("by_city", "aggregate", ["city", "date_trunc('day', at)"], aggregates=KEPT)
    for seed in range(4):
        made.append(rows(16, seed))
    return made


def left(table, groups, aggregates, where=None):
    """Blocks that are scanned."""
    return table.explain(where, groups, aggregates).blocks.kept


def test_with_every_block_indexed_no_row_is_read(table):
    assert left(table, ["city"], ["count(*)", "avg(price)"]) == 0
    assert left(table, ["date_trunc('day', at)"], ["max(d)"]) == 0
    assert left(table, [], ["sum(n)", "max(city)"]) == 0


def test_a_condition_on_groups_filters_states_and_any_other_is_voted_on(table):
    assert left(table, ["city"], ["count(*)"], "city = 'Bern'") == 0
    assert left(table, [], ["sum(n)"], "city LIKE 'B%' AND date_trunc('day', at) > TIMESTAMP'2024-01-01'") == 0
    assert left(table, ["city"], ["count(*)"], "n > 0") == 8


@pytest.mark.alike
@pytest.mark.parametrize(
    "groups",
    [
        ["upper(city)"],
        ["length(city)", "date_trunc('month', at)"],
        ["year(CAST(at AS DATE))"],
        ["city", "upper(city)"],
        ["date_trunc('week', at)", "month(CAST(at AS DATE))"],
        ["CAST(date_trunc('day', at) AS STRING)"],
    ],
)
@pytest.mark.parametrize(
    "where",
    [
        None,
        "lower(city) <> 'bern'",
        "date_trunc('year', at) = TIMESTAMP'2024-01-01'",
        "at >= TIMESTAMP'2024-01-02' AND at IS NOT NULL",
        "at <= TIMESTAMP'2024-01-02 23:59:59.999999' OR city IS NULL",
        "NOT at < TIMESTAMP'2024-01-03'",
        "CAST(at AS DATE) > DATE'2024-01-02'",
    ],
)
def test_what_is_made_of_keys_is_answered_by_states(table, groups, where):
    asked = ["count(*)", "avg(price)", *computable(["hll_sketch_agg(city)"])]

    assert left(table, groups, asked, where) == 0
    assert plain(table.aggregate(groups, asked, where)) == plain(table.aggregate(groups, asked, where, indexes=False))


def test_what_keys_do_not_tell_is_not_made_of_them(tmp_path):
    table = created(str(tmp_path / "t"))
    table.create_index("x", "aggregate", ["d", "date_trunc('week', at)", "n"], aggregates=["count(*)"])
    table.append(rows(16))
    beyond = (
        ["CAST(d AS STRING)"],
        ["date_trunc('month', at)"],
        ["CAST(at AS DATE)"],
        ["date_trunc('hour', at)"],
        ["upper(city)"],
    )

    for groups in beyond:
        assert any("does not group" in vote.detail for vote in table.explain(None, groups, ["count(*)"]).votes)
    assert left(table, ["d", "CAST(n AS STRING)"], ["count(*)"]) == 0


@pytest.mark.parametrize("zone", ["+05:30", "Europe/Berlin"])
def test_a_range_of_whole_days_is_told_by_days_where_clocks_are_never_changed(tmp_path, zone):
    table = created(str(tmp_path / "t"), context=Context(zone))
    table.create_index("x", "aggregate", ["CAST(at AS DATE)"], aggregates=["count(*)"])
    table.append(rows(64))
    for where, whole in (
        ("at >= TIMESTAMP'2024-01-02 00:00:00'", zone == "+05:30"),
        ("at >= TIMESTAMP'2024-01-02 00:00:01' AND at < TIMESTAMP'2024-01-03 00:00:00'", False),
    ):
        assert (left(table, [], ["count(*)"], where) == 0) == whole
        assert plain(table.aggregate([], ["count(*)"], where)) == plain(
            table.aggregate([], ["count(*)"], where, indexes=False)
        )


def test_where_only_spark_can_tell_what_is_made_of_a_key_rows_are_read(table):
    table.append(rows(8).set_column(0, "city", pa.array(["\u0130"] * 8)))
    doubted = table.explain(None, ["upper(city)"], ["count(*)"])
    assert doubted.blocks.kept == 9
    assert any(vote.index == "by_city" and "only Spark can evaluate" in vote.detail for vote in doubted.votes)

    table.delete("city = '\u0130'")
    assert left(table, ["upper(city)"], ["count(*)"]) == 0


@pytest.mark.parametrize("keys", [["city"], ["CAST(city AS INT)"]])
def test_what_spark_raises_on_is_never_answered(tmp_path, keys):
    table = created(str(tmp_path / "t"))
    table.append(rows(8).set_column(0, "city", pa.array(["1", "2"] * 4)))
    table.create_index("x", "aggregate", keys, aggregates=["count(*)"])
    assert left(table, ["CAST(city AS INT)"], ["count(*)"]) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fuse.PluginWarning)
        table.append(rows(8).set_column(0, "city", pa.array(["1", "x"] * 4)))

    assert left(table, ["CAST(city AS INT)"], ["count(*)"]) > 0
    with pytest.raises(OpaqueError, match=r"raises on .* of 'x'"):
        table.aggregate(["CAST(city AS INT)"], ["count(*)"])


def test_what_is_not_kept_is_scanned_and_explained(table):
    for groups, aggregates, says in ((["flag"], ["count(*)"], "group by"), (["city"], ["max(n)"], "no max")):
        explanation = table.explain(None, groups, aggregates)

        assert explanation.blocks.kept == 8
        assert any(vote.index == "by_city" and says in vote.detail for vote in explanation.votes)


def test_a_new_block_is_indexed_as_it_is_written_and_an_old_one_when_refreshed():
    table = created()
    table.append(rows(16))
    table.create_index("x", "aggregate", ["city"], build=False, aggregates=["count(*)"])
    table.append(rows(8, 1))

    assert left(table, ["city"], ["count(*)"]) == 2
    table.maintenance.refresh_index("x")
    assert left(table, ["city"], ["count(*)"]) == 0


@pytest.mark.parametrize("how", ["gone", "cut", "flipped"])
def test_of_a_block_with_a_corrupt_state_the_rows_are_read(table, how):
    expected = plain(table.aggregate(["city"], ["count(*)", "sum(price)"], indexes=False))
    damaged(files(table, "_i")[0], how)
    process_cache.clear()

    explanation = table.explain(None, ["city"], ["count(*)", "sum(price)"])
    assert explanation.blocks.kept == 2
    assert plain(table.aggregate(["city"], ["count(*)", "sum(price)"])) == expected
    with pytest.raises(IndexFault, match="by_city"):
        table.aggregate(["city"], ["count(*)"], strict=True)


def test_a_state_that_never_comes_is_waited_for_once(table, monkeypatch):
    called = []

    def hangs(self, probe, batch, unit):
        called.append(unit)
        Event().wait()

    monkeypatch.setattr(aggregate.AggregateIndex, "state", hangs)
    asked = Aggregation((Column(("city",), pa.string()),), (Aggregate("count", COUNT_STAR_ARGUMENT),))
    found = plan_aggregate(table.stored, asked, None, Engine(HOST), budget=0.2)

    assert len(found.scan_plan.blocks) == 8
    assert called == [0]
    assert any(vote.reason == "TIMEOUT" for vote in found.explanation.votes)


def test_only_blocks_whose_rows_are_all_live_answer(table, monkeypatch):
    for name in ("has_all_rows", "has_exact_statistics"):
        monkeypatch.setattr(BlockFrame, name, property(lambda blocks: np.arange(len(blocks)) % 2 == 0))

    assert left(table, ["city"], ["count(*)"]) == 4
    assert left(table, [], ["count(*)"]) == 4


def test_counts_and_bounds_of_all_rows_are_known_without_an_index():
    table = created()
    table.append(rows(40, nulls=0))

    assert left(table, [], ["count(*)", "count(n)", "min(price)", "max(at)", "max(city)"]) == 0
    assert left(table, [], ["count(*)", "max(n)"], "n < 2147483648L") == 0
    assert left(table, [], ["sum(n)"]) == 5
    assert table.aggregate([], ["count(*)", "min(n)"], "n > 5 AND n < 0").to_pylist() == [
        {"count(*)": 0, "min(n)": None}
    ]


def test_a_cut_bound_and_the_sign_of_a_zero_are_never_an_answer():
    table = created()
    longer = [f"{'x' * 40}{i}" for i in range(3)]
    table.append(
        pa.table([longer, [1, 2, 3], [1, 2, 3], [-0.0, 1.0, 2.0], [None] * 3, [None] * 3, [None] * 3], schema=TYPES)
    )

    assert left(table, [], ["max(city)"]) == 1
    assert left(table, [], ["min(d)"]) == 1
    assert left(table, [], ["max(d)"]) == 0
    assert table.aggregate([], ["max(city)"]).to_pylist() == [{"max(city)": longer[2]}]
    assert math.copysign(1, table.aggregate([], ["min(d)"]).column(0)[0].as_py()) == -1


@pytest.mark.parametrize("ansi", [True, False])
def test_a_sum_that_might_overflow_on_the_way_is_spark_s_alone(ansi):
    table = created(context=Context(ansi=ansi))
    table.create_index("x", "aggregate", ["city"], aggregates=["sum(big)", "count(*)"])
    table.append(rows(8))
    assert left(table, ["city"], ["sum(big)"]) == 0
    table.append(rows(8).set_column(2, "big", pa.array([2**62, -(2**62)] * 4)))

    with pytest.raises(OpaqueError, match="overflow"):
        table.aggregate(["city"], ["sum(big)"])
    assert left(table, ["city"], ["count(*)"]) == 0


def test_a_day_of_another_time_zone_is_another_group(tmp_path):
    url = str(tmp_path / "t")
    table = created(url, context=Context("UTC"))
    table.create_index("x", "aggregate", ["date_trunc('day', at)"], aggregates=["count(*)"])
    table.append(rows(16))

    elsewhere = fuse.open_table(url, host=HOST, context=Context("+05:00"))
    assert left(table, ["date_trunc('day', at)"], ["count(*)"]) == 0
    assert left(elsewhere, ["date_trunc('day', at)"], ["count(*)"]) == 2
    assert any(
        vote.reason == "SESSION_SEMANTICS"
        for vote in elsewhere.explain(None, ["date_trunc('day', at)"], ["count(*)"]).votes
    )


def test_days_are_not_cut_where_clocks_are_changed(tmp_path):
    table = created(str(tmp_path / "t"), context=Context("America/New_York"))

    with pytest.raises(fuse.DefinitionError, match="CAST"):
        table.create_index("x", "aggregate", ["date_trunc('day', at)"], aggregates=["count(*)"])


@pytest.mark.parametrize(
    ("groups", "aggregates"),
    [
        ("city", []),
        (1, []),
        ([None], []),
        (["city"], [None]),
        (["city"], ["sum(n)", "sum(n)"]),
        (["1"], ["count(*)"]),
        ([], ["count(flag)", "sum(flag)"]),
    ],
)
def test_a_bad_request_is_refused(table, groups, aggregates):
    with pytest.raises((InputError, fuse.WhereError)):
        table.aggregate(groups, aggregates)


WHERE = "n > 0 AND city LIKE 'B%'"


def test_an_index_on_some_rows_answers_queries_about_those(tmp_path):
    table = created(str(tmp_path / "t"))
    table.append(rows(16))
    table.create_index("x", "aggregate", ["city"], aggregates=["count(*)", "sum(n)"], where=WHERE)
    table.append(rows(16, 1))
    expected = plain(table.aggregate(["city"], ["count(*)", "sum(n)"], WHERE, indexes=False))

    assert plain(table.aggregate(["city"], ["count(*)", "sum(n)"], WHERE)) == expected
    assert left(table, ["city"], ["count(*)"], WHERE) == 0
    assert left(table, [], ["sum(n)"], f"{WHERE} AND city = 'Bern' AND n IS NOT NULL") == 0
    assert left(table, ["city"], ["count(*)"], f"{WHERE} AND flag") > 0
    assert left(table, ["city"], ["count(*)"], "n > 0") > 0
    assert left(table, ["city"], ["count(*)"]) == 4
    assert any("only on rows where" in vote.detail for vote in table.explain(None, ["city"], ["count(*)"]).votes)
    table.maintenance.rebuild_index("x")
    assert plain(table.aggregate(["city"], ["count(*)", "sum(n)"], WHERE)) == expected


@pytest.mark.parametrize("where", ["rand() > 0.5", "nothing > 1", "n +", "n IN (SELECT 1)"])
def test_an_index_on_rows_that_nobody_can_tell_is_refused(table, where):
    with pytest.raises((fuse.DefinitionError, fuse.WhereError)):
        table.create_index("y", "aggregate", ["city"], where=where)


def test_verifying_adds_up_rows_anew(table, monkeypatch):
    found = table.maintenance.verify_index("by_city")

    assert found.sound
    assert found.leaves == 8
    kept = aggregate.AggregateIndex.state
    monkeypatch.setattr(aggregate.AggregateIndex, "state", lambda *about: kept(*about).slice(1))
    assert any("other aggregates" in problem for problem in table.maintenance.verify_index("by_city").problems)


def test_states_of_one_condition_are_not_taken_for_those_of_another(tmp_path):
    table = fuse.create_table(tmp_path, "id BIGINT, p STRING", properties={"block_rows": 10})
    table.create_index("totals", "aggregate", ["p"], aggregates=["count(*)", "sum(id)"])
    for first, p in [(0, "a"), (10, "b"), (20, None)]:
        table.append(pa.table({"id": range(first, first + 10), "p": pa.array([p] * 10, pa.string())}))

    for where, total in [("p = 'a'", 45), ("p = 'b'", 145), ("p IS NULL", 245), ("p = 'a'", 45)]:
        assert table.aggregate([], ["sum(id)"], where=where).to_pylist() == [{"sum(id)": total}]
