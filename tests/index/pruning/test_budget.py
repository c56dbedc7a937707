"""Indexes that hang cost one budget, not one for each query; exact statistics are asked however slow the driver is."""

import threading
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.errors import InputError
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.plugins import Plugin
from fuse_index.indexes.registry import Host
from fuse_index.indexes.sandbox import PluginFailure
from fuse_index.plugin import NONE, Ballot, IndexKind, Probe, Reason, Refusal, Sidecar
from fuse_index.pruning.calls import budget as budgets
from fuse_index.pruning.calls.budget import CallBudget, TimeoutMemory, budget_of, failure_reason
from fuse_index.pruning.planner import plan_scan
from fuse_index.query.aggregate import plan_aggregate
from fuse_index.sql.parse import parse_predicate
from fuse_plugins import bloom, min_max
from fuse_storage import InvalidArgument

SHORT = 0.25
"""A budget that a kind which never answers uses up, on whatever machine."""


class Clock:
    """A clock that stands still until it is moved."""

    now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(budgets, "TIMEOUTS", TimeoutMemory(clock))
    return clock


class Hangs(IndexKind):
    """Never answers, as long as ``hanging`` is set; counts how often it is asked."""

    name = "hangs"
    hanging = True
    asked = 0

    def build(self, rows, zones, options):
        return Sidecar(None, b"one")

    def compile(self, what, inputs, options, context):
        return Probe(what, cost=1.0)

    def probe(self, probe, batch):
        type(self).asked += 1
        if self.hanging:
            threading.Event().wait()
        return Ballot.unknown(len(batch))


class HangsAtOnce(Hangs):
    name = "hangs_at_once"

    def compile(self, what, inputs, options, context):
        type(self).asked += 1
        if self.hanging:
            threading.Event().wait()
        return Refusal(Reason.LEAF_UNSUPPORTED, "nothing to say")


def table_of(*kinds):
    host = Host([min_max, bloom, *kinds])
    table = fuse.create_table(f"memory://budget-{uuid4().hex}", "n BIGINT", properties={"block_rows": 2}, host=host)
    for kind in kinds:
        table.create_index(f"by_{kind.name}", kind.name, ["n"])
    table.append(pa.table({"n": [1, 9, 2, 8, 3, 7]}))
    return table


def planned(table, where="n = 2", budget=SHORT, **how):
    predicate = parse_predicate(where, table.snapshot.schema)
    return plan_scan(table.stored, predicate, Engine(table.host), budget=budget, **how)


def vote(plan, index):
    return next(found for found in plan.explanation.votes if found.index == index)


@pytest.mark.parametrize("kind", [Hangs, HangsAtOnce])
def test_an_index_that_hangs_is_asked_once_and_then_passed_over_for_a_while(clock, kind):
    table, kind.asked, kind.hanging = table_of(kind), 0, True

    first, second = planned(table), planned(table)

    assert kind.asked == 1
    assert [vote(plan, f"by_{kind.name}").reason for plan in (first, second)] == [Reason.TIMEOUT, Reason.TIMEOUT]
    assert "not asked for another 60 s" in vote(second, f"by_{kind.name}").detail
    assert [len(plan.blocks) for plan in (first, second)] == [2, 2]
    clock.now += 61
    planned(table)
    assert kind.asked == 2
    clock.now += 61
    assert "not asked for another 59 s" in vote(planned(table), f"by_{kind.name}").detail
    clock.now += 60
    kind.hanging = False
    assert vote(planned(table, budget=1000.0), f"by_{kind.name}").reason is not Reason.TIMEOUT
    assert vote(planned(table, budget=1000.0), f"by_{kind.name}").reason is not Reason.TIMEOUT
    assert kind.asked == 4


def test_a_condition_of_many_leaves_is_one_budget(clock):
    table, HangsAtOnce.asked, HangsAtOnce.hanging = table_of(HangsAtOnce), 0, True

    planned(table, " OR ".join(f"n = {number}" for number in range(20)))

    assert HangsAtOnce.asked == 1


def test_one_table_s_index_says_nothing_of_another_s(clock):
    Hangs.asked, Hangs.hanging = 0, True
    planned(table_of(Hangs))
    planned(table_of(Hangs))

    assert Hangs.asked == 2


def test_who_was_left_no_time_is_not_remembered(clock):
    memory = TimeoutMemory(clock)
    calls = []

    def late(seconds):
        calls.append(seconds)
        clock.now += seconds
        return PluginFailure(Reason.TIMEOUT, "late")

    def run(budget, index, seconds=None):
        def call(left):
            clock.now += seconds
            return "answer"

        return budget.run(index, late if seconds is None else call, failure_reason)

    budget = CallBudget(10.0, "table", clock, memory)
    assert run(budget, "quick", 6.0) == "answer"
    assert run(budget, "late").reason is Reason.TIMEOUT  # of 4 seconds
    assert run(budget, "nobody").reason is Reason.TIMEOUT
    assert calls == [4.0]
    assert [memory.seconds_left(f"table {index}") for index in ("quick", "late", "nobody")] == [float("-inf")] * 3
    run(CallBudget(10.0, "table", clock, memory), "late")
    assert memory.seconds_left("table late") == 60.0


def test_who_raises_after_a_long_time_is_remembered_as_who_hangs(clock):
    def run(seconds):
        def call(left):
            clock.now += seconds
            return PluginFailure(Reason.PLUGIN_ERROR, "no")

        memory = TimeoutMemory(clock)
        CallBudget(10.0, "table", clock, memory).run("index", call, failure_reason)
        return memory.seconds_left("table index")

    assert run(5.0) == 60.0
    assert run(4.9) == float("-inf")  # it costs little, and may do better


def test_strangers_kinds_do_not_spend_the_time_of_those_that_are_built_in(clock):
    budget = CallBudget(10.0, "table", clock, TimeoutMemory(clock))

    def late(left):
        clock.now += left
        return PluginFailure(Reason.TIMEOUT, "late")

    budget.run("stranger", late, failure_reason)

    assert budget.run("another", late, failure_reason).detail.startswith("others had spent the 10 s")
    assert budget.run("bloom", lambda left: left, failure_reason, built_in=True) == 10.0


def test_a_hanging_stranger_leaves_a_built_in_index_its_votes(clock):
    HangsAtOnce.hanging = True
    host = Host([min_max, Plugin(bloom, "fuse-index"), HangsAtOnce])
    table = fuse.create_table(f"memory://both-{uuid4().hex}", "n BIGINT", properties={"block_rows": 2}, host=host)
    table.create_index("first", "hangs_at_once", ["n"])
    table.create_index("second", "bloom", ["n"])
    table.append(pa.table({"n": [1, 9, 2, 8, 3, 7]}))

    plan = planned(table, budget=0.5)

    assert vote(plan, "first").reason is Reason.TIMEOUT
    assert vote(plan, "second").reason is Reason.USED
    assert len(plan.blocks) == 1


class SpendsTime(IndexKind):
    """Rules out all that it is asked about, and takes a second of its clock for it; counts the units of each call."""

    name = "spends_time"
    clock = None
    asked = ()

    def build(self, rows, zones, options):
        return Sidecar(None, b"one")

    def compile(self, what, inputs, options, context):
        return Probe(what, cost=1.0)

    def probe(self, probe, batch):
        cls = type(self)
        cls.asked = (*cls.asked, len(batch))
        cls.clock.now += 1.0
        if len(cls.asked) == 3:
            raise ValueError("the third is one too many")
        return Ballot(np.full(len(batch), NONE, np.uint8))


def test_votes_that_were_given_stay_when_an_index_fails_in_the_midst(clock):
    table = table_of(SpendsTime)
    SpendsTime.clock, SpendsTime.asked = clock, ()
    budget = CallBudget(10.0, table.stored.store.url, clock, TimeoutMemory(clock), units_per_call=1)

    plan = planned(table, "n = 5", budget)

    assert SpendsTime.asked == (1, 1, 1)
    assert len(plan.blocks) == 1
    told = vote(plan, "by_spends_time")
    assert (told.reason, told.blocks_removed) == (Reason.PLUGIN_ERROR, 2)
    assert told.detail == "ValueError: the third is one too many; votes on 2 of 3 blocks count"


def test_seconds_are_said_by_the_call_the_table_or_the_process(clock, monkeypatch):
    table, HangsAtOnce.asked, HangsAtOnce.hanging = table_of(HangsAtOnce), 0, True

    def seconds(asked=None):
        return budget_of("url", table.snapshot.properties, asked).seconds

    assert seconds() == 10.0
    monkeypatch.setenv("FUSE_INDEX_SECONDS", "3.5")
    assert seconds() == 3.5
    table.set_properties({"index_seconds": SHORT})
    assert seconds() == SHORT
    assert seconds(0.25) == 0.25
    assert "no vote within 0.25 s" in vote(table.scan("n = 2"), "by_hangs_at_once").detail
    with pytest.raises(InvalidArgument, match="index_seconds = 'long'"):
        table.set_properties({"index_seconds": "long"})
    with pytest.raises(InputError, match="index_seconds=-1"):
        table.scan("n = 2", index_seconds=-1)
    table.set_properties({"index_seconds": None})
    monkeypatch.setenv("FUSE_INDEX_SECONDS", "soon")
    with pytest.raises(InputError, match="FUSE_INDEX_SECONDS='soon'"):
        table.scan("n = 2")


def test_only_time_within_indexes_counts(clock):
    budget = CallBudget(10.0, "table", clock, TimeoutMemory(clock))
    clock.now += 1000  # the engine reads segments on a driver with much else to do

    assert budget.run("index", lambda left: left, failure_reason) == 10.0


def test_pauses_double_up_to_an_hour(clock):
    memory = TimeoutMemory(clock)
    pauses = []
    for _ in range(9):
        memory.note_timeout("x")
        pauses.append(memory.seconds_left("x"))

    assert pauses == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    memory.note_answer("x")
    memory.note_timeout("x")
    assert memory.seconds_left("x") == 60


class LateMinMax(min_max.MinMax):
    """Answers after a while, as on a driver that has much else to do."""

    def compile(self, *arguments):
        threading.Event().wait(SHORT)
        return super().compile(*arguments)

    def probe(self, *arguments):
        threading.Event().wait(SHORT)
        return super().probe(*arguments)


@pytest.mark.parametrize("budget", [0.0, 0.001])
def test_exact_statistics_are_asked_without_a_limit(clock, budget):
    host = Host([Plugin(LateMinMax, "fuse-index"), bloom])
    table = fuse.create_table(f"memory://late-{uuid4().hex}", "n BIGINT", properties={"block_rows": 2}, host=host)
    table.append(pa.table({"n": [1, 1, 2, 2, 3, 3]}))

    plan = planned(table, budget=budget)

    assert len(plan.blocks) == 1
    assert vote(plan, "min_max").reason is Reason.USED


def test_a_strangers_kind_on_statistics_has_a_limit(clock):
    host = Host([Plugin(LateMinMax, "acme"), bloom])
    table = fuse.create_table(f"memory://late-{uuid4().hex}", "n BIGINT", properties={"block_rows": 2}, host=host)
    table.append(pa.table({"n": [1, 1, 2, 2, 3, 3]}))

    assert len(planned(table, budget=0.0).blocks) == 3


class HangsAnswering(IndexKind):
    name = "hangs_answering"
    asked = 0

    def build(self, rows, zones, options):
        return Sidecar(None, b"one")

    def match(self, request, inputs, options, context):
        return Probe(request)

    def state(self, probe, batch, unit):
        type(self).asked += 1
        threading.Event().wait()


def test_an_index_that_hangs_at_aggregates_is_passed_over_too(clock):
    from fuse_index.aggregates.state import Aggregation
    from fuse_index.sql.parse import parse_aggregate

    table, HangsAnswering.asked = table_of(HangsAnswering), 0
    engine = Engine(table.host)
    aggregate = parse_aggregate("sum(n)", table.snapshot.schema, engine.context, engine.functions)

    for _ in range(2):
        plan = plan_aggregate(table.stored, Aggregation((), (aggregate,)), None, engine, budget=SHORT)
        assert plan.to_table(["total"], engine.functions).to_pylist() == [{"total": 30}]

    assert HangsAnswering.asked == 1
    assert "not asked for another" in next(
        vote.detail for vote in plan.explanation.votes if vote.index == "by_hangs_answering"
    )
