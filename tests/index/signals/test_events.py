"""Who listens is told of plans, commits, builds, faults and upkeep; who does not, costs nothing."""

import logging
from collections.abc import Iterator
from time import process_time
from types import ModuleType
from uuid import uuid4

import pytest

import fuse_index as fuse
from fuse_index.errors import InputError
from fuse_index.indexes.registry import Host
from fuse_index.plugin import hookimpl
from fuse_index.pruning.account import tell
from fuse_index.signals import listeners
from fuse_index.signals.events import CommitMade, Event, IndexBuilt, IndexFailed, PlanMade, TaskDone
from fuse_index.signals.plans import forget_plans, recent_plans
from tests.index.pruning.test_planner import Raising
from tests.index.tables import created, numbers


@pytest.fixture
def heard() -> Iterator[list[Event]]:
    events: list[Event] = []
    with fuse.listen(events.append):
        yield events


def small_table(**properties: object) -> fuse.Table:
    table = fuse.create_table(f"memory://events-{uuid4().hex}", "id BIGINT", properties={"block_rows": 2, **properties})
    table.append([{"id": number} for number in range(6)])
    return table


def test_commits_and_plans_are_told(heard: list[Event]) -> None:
    table = small_table()

    table.scan("id = 3").to_arrow()
    table.delete("id = 3")

    committed = [event for event in heard if isinstance(event, CommitMade)]
    assert [(event.operation, event.version) for event in committed] == [("append", 2), ("delete", 3)]
    assert committed[1].summary["deleted_rows"] == 1
    plan = next(event for event in heard if isinstance(event, PlanMade))
    assert (plan.table, plan.explanation.blocks.kept, plan.seconds > 0) == (table.stored.store.url, 1, True)
    assert plan.to_dict()["where"] == "id = 3"


def test_builds_and_upkeep_are_told(heard: list[Event]) -> None:
    table = created()
    table.append(numbers())
    table.append(numbers())
    table.create_index("by_n", "bloom", ["n"])
    table.maintenance.run(only=["verify", "vacuum"])

    (built,) = (event for event in heard if isinstance(event, IndexBuilt))
    assert (built.index, built.kind, built.blocks, built.seconds > 0) == ("by_n", "bloom", 8, True)
    assert {event.task for event in heard if isinstance(event, TaskDone)} <= {"verify", "vacuum"}


def test_hot_commits_are_told(heard: list[Event]) -> None:
    table = small_table()
    table.append([{"id": 9}], hot=True)

    assert [event.operation for event in heard if isinstance(event, CommitMade)] == ["append", "append"]


def test_faults_are_told(heard: list[Event]) -> None:
    table = created(None, Raising)
    table.create_index("bad", "own", ["n"])
    table.append(numbers())

    table.scan("n = 3").to_arrow()

    (failed,) = (event for event in heard if isinstance(event, IndexFailed))
    assert (failed.index, failed.kind, failed.reason) == ("bad", "own", "PLUGIN_ERROR")


def test_a_listener_that_raises_fails_nothing_and_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    def fail(event: Event) -> None:
        raise RuntimeError("deaf")

    with fuse.listen(fail):
        table = small_table()
        assert table.count("id = 3") == 1

    assert [record.levelname for record in caplog.records if "listener" in record.getMessage()] == ["WARNING"]


def test_what_cannot_listen_is_refused() -> None:
    with pytest.raises(InputError, match="cannot listen"), fuse.listen(5):
        pass


def test_a_plugin_that_is_installed_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[Event] = []
    plugin = ModuleType("listening_plugin")
    plugin.fuse_index_events = hookimpl(lambda event: events.append(event))  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, "listening_plugin", plugin)
    monkeypatch.setattr("fuse_index.indexes.registry.installed_plugins", lambda: [("listening_plugin", "acme", "1")])

    host = Host.discover()
    try:
        small_table()
    finally:
        listeners._LISTENERS.pop(id(plugin))

    assert host.problems == ()
    assert [type(event) for event in events] == [CommitMade]


def test_events_are_lines_of_log_where_these_are_wanted(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "fuse_index.events"):
        small_table()

    assert [record.getMessage().partition("(")[0] for record in caplog.records] == ["CommitMade"]


def test_counters_count(heard: list[Event]) -> None:
    with fuse.listen(fuse.Counters()) as counters:
        table = small_table()
        table.count("id = 3")

    assert counters.to_dict()["plans.blocks_read"] == 1
    assert table.count("id = 3") == 1
    assert counters.to_dict()["plans"] == 1


def test_a_plan_that_nobody_hears_of_costs_less_than_a_hundredth() -> None:
    table = small_table()
    told = table.scan("id = 3").explanation
    rounds = 2_000

    began = process_time()
    for _ in range(rounds // 20):
        table.scan("id = 3").to_arrow()
    lookup = (process_time() - began) / (rounds // 20)
    began = process_time()
    for _ in range(rounds):
        tell.tell_plan(table.stored, told)
    events = (process_time() - began) / rounds

    assert not listeners.is_heard()
    assert events <= lookup / 100


def test_plans_of_late_are_kept_unless_a_table_says_no() -> None:
    table, silent = small_table(), small_table(plan_log="off")
    for asked in (table, silent):
        asked.count("id = 3")
        asked.explain("id = 4")

    assert len(recent_plans(table.stored.store.url)) == 1
    assert recent_plans(silent.stored.store.url) == []
    forget_plans(table.stored.store.url)
    assert recent_plans(table.stored.store.url) == []
