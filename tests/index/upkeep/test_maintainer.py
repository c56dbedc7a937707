"""Upkeep that is done: worst first, within what it may cost, beside writers and other maintainers, and on record."""

import random
import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.indexes.registry import Host
from fuse_index.table.upkeep.account import DoneTask
from fuse_index.table.upkeep.maintainer import STEPS, KeptTable, Maintainer, RunLimits
from fuse_index.upkeep.steps import Stepped
from fuse_index.upkeep.task import DueTask, UpkeepContext
from fuse_storage import upkeep_lease, upkeep_record
from fuse_storage.testing import check_invariants
from tests.index.kinds import Lies, Values
from tests.index.tables import numbers

LIMITS = RunLimits()


def created(blocks: int = 0, properties: Mapping[str, Any] | None = None, **more: Any) -> fuse.Table:
    """A table of this many small blocks."""
    table = fuse.create_table(
        f"memory://kept-{uuid4().hex}",
        "n BIGINT, text STRING",
        properties={"block_rows": 10, **(properties or {})},
        **more,
    )
    for number in range(blocks):
        table.append(numbers(number, 1))
    return table


def kept(table: fuse.Table, name: str = "t", **more: Any) -> KeptTable:
    return KeptTable(name, lambda: fuse.open_table(table.stored.store, host=table.host), asked=True, **more)


def short(done: list[DoneTask]) -> list[tuple[str, str, str]]:
    return [(each.table, each.task, each.outcome) for each in done]


def test_all_that_is_due_is_done_and_then_nothing_is() -> None:
    table = created(8, {"maintain_target_depth": 1, "maintain_tail_age": "0s"}, cluster_by=["n"])
    table.create_index("by_text", "bloom", ["text"], build=False)
    table.append(numbers(count=3), hot=True)
    before = sorted(table.to_arrow().column("n").to_pylist())

    done = table.maintenance.run()
    assert {"tier", "compact"} <= set(done.column("task").to_pylist())
    assert set(done.column("outcome").to_pylist()) == {"done"}
    assert table.inspect.due().num_rows == 0
    assert sorted(table.to_arrow().column("n").to_pylist()) == before
    assert table.maintenance.run().num_rows == 0
    check_invariants(table.stored)


def test_the_worst_comes_first_of_all_tables() -> None:
    done = Maintainer([kept(created(6), "six"), kept(created(9), "nine"), kept(created(7), "seven")], LIMITS).run()

    assert short(done) == [(name, "compact", "done") for name in ("nine", "seven", "six")]


def test_a_table_of_which_nobody_says_so_is_left_alone() -> None:
    tables = [created(6), created(6, {"maintain": "off"}), created(6, {"maintain": "on"})]
    maintained = [replace(kept(table, str(number)), asked=False) for number, table in enumerate(tables)]
    assert short(Maintainer(maintained, LIMITS).run()) == [("2", "compact", "done")]

    by_namespace = [replace(each, table=None, defaults={"maintain": "on"}) for each in maintained]
    assert short(Maintainer(by_namespace, LIMITS).run()) == [("0", "compact", "done")]


def test_bytes_are_bounded_in_a_run_and_in_a_day() -> None:
    table = created(6)
    size = table.snapshot.bytes
    assert Maintainer([kept(table)], replace(LIMITS, bytes=size - 1)).run() == []
    assert short(Maintainer([kept(table)], replace(LIMITS, bytes=size)).run()) == [("t", "compact", "done")]

    frugal = created(6, {"maintain_daily_bytes": size + 1})
    assert len(Maintainer([kept(frugal)], LIMITS).run()) == 1
    for number in range(6):
        frugal.append(numbers(number, 1))
    assert Maintainer([kept(frugal)], LIMITS).run() == []


def test_a_window_and_a_list_leave_tasks_out() -> None:
    table = created(6, {"maintain_window": "00:00-00:01"})
    table.create_index("by_text", "bloom", ["text"], build=False)
    only = replace(LIMITS, only=frozenset(["compact"]))
    policy = kept(table)
    policy.look()
    outside = [each for each in [policy] if not each.policy.allows(each.look().now)]

    assert short(Maintainer(outside, only).run()) == []
    assert short(Maintainer([kept(table)], replace(LIMITS, only=frozenset(["refresh"]))).run()) == [
        ("t", "refresh", "done")
    ]


def test_who_loses_to_a_writer_backs_off_and_leaves_the_others() -> None:
    table, other = created(6), created(6)

    def beaten(context: UpkeepContext, task: DueTask) -> Stepped:
        """A writer deletes rows of the blocks while they are joined."""
        if context.table.store is table.stored.store:
            fuse.open_table(table.stored.store).delete("n = 3")
            fuse.open_table(table.stored.store).maintenance.compact()
        return STEPS["compact"](context, task)

    tables = [kept(table, "beaten"), kept(other, "other")]
    maintainer = Maintainer(tables, LIMITS, steps={**STEPS, "compact": beaten})
    done = maintainer.run()

    assert short(done) == [("beaten", "compact", "lost"), ("other", "compact", "done")]
    assert "replaced by" in str(done[0].problem)
    assert table.refresh().count() == 5
    assert maintainer.run() == []


def test_a_table_that_fails_is_told_passed_over_and_tried_again_later(tmp_path: Path) -> None:
    place = tmp_path / "gone"
    fuse.create_table(str(place), "n BIGINT")
    gone = KeptTable("gone", lambda: fuse.open_table(str(place)), asked=True)
    shutil.move(place, tmp_path / "elsewhere")
    maintainer = Maintainer([gone, kept(created(6), "other")], LIMITS)

    done = maintainer.run()
    assert short(done) == [("gone", "look", "failed"), ("other", "compact", "done")]
    assert "is no table" in str(done[0].problem)
    runs = [len(maintainer.run()) for _ in range(9)]
    assert runs == [1, 0, 1, 0, 0, 0, 1, 0, 0]  # after the second and the third time it is left out longer


def test_one_of_two_maintainers_does_it() -> None:
    table = created(6)
    with upkeep_lease(table.stored.store, timedelta(minutes=1)) as mine:
        assert mine
        assert Maintainer([kept(table)], LIMITS).run() == []
    assert short(Maintainer([kept(table)], LIMITS).run()) == [("t", "compact", "done")]


def test_what_somebody_has_just_done_is_not_done_again() -> None:
    table = created(6)
    late = kept(table)
    late.look()
    table.maintenance.run()

    done: list[DoneTask] = []
    maintainer = Maintainer([late], LIMITS)
    assert maintainer._do(late, late.due[0]) is None
    assert done == []
    assert table.refresh().snapshot.operation == "compact"


def test_a_step_that_gains_nothing_is_on_record_until_blocks_come() -> None:
    table = created(0, {"block_rows": 8, "block_bytes": 1})
    for number in range(6):
        table.append(numbers(number, 1))

    assert table.maintenance.run().column("outcome").to_pylist() == ["no gain"]
    assert table.inspect.due().num_rows == 0
    assert upkeep_record(table.snapshot, "compact") is not None
    assert table.maintenance.run().num_rows == 0


def test_a_step_that_leaves_a_task_as_due_as_it_was_is_done_once_in_a_run() -> None:
    def idle(context: UpkeepContext, task: DueTask) -> Stepped:
        return Stepped(context.table)

    maintainer = Maintainer([kept(created(6))], LIMITS, steps={**STEPS, "compact": idle})
    assert [len(maintainer.run()) for _ in range(2)] == [1, 1]


def test_an_index_that_fails_on_a_block_is_not_built_at_every_run() -> None:
    class Failing(Values):
        name = "failing"

        def build(self, rows: pa.Table, zones: Any, options: Any) -> Any:
            raise ValueError("cannot")

    table = created(2, host=Host([Failing]))
    table.create_index("x", "failing", ["text"], build=False)
    with pytest.warns(fuse.PluginWarning, match="cannot"):
        done = table.maintenance.run(only=["refresh"])
    assert done.column("outcome").to_pylist() == ["no gain", "told"]
    assert table.maintenance.run(only=["refresh"]).column("outcome").to_pylist() == ["told"]


def test_a_dry_run_tells_and_does_nothing() -> None:
    table = created(6)
    before = table.snapshot.id
    done = table.maintenance.run(dry_run=True)

    assert done.select(["task", "outcome", "bytes_read"]).to_pylist() == [
        {"task": "compact", "outcome": "due", "bytes_read": table.snapshot.bytes}
    ]
    assert table.refresh().snapshot.id == before


def test_a_run_stops_where_it_is_told_to() -> None:
    table, asked = created(6), iter([False, True])
    tables = [kept(table, "a"), kept(created(6), "b")]
    assert len(Maintainer(tables, LIMITS, stop=lambda: next(asked)).run()) == 1
    assert Maintainer([kept(created(6))], replace(LIMITS, budget=timedelta(microseconds=1))).run() == []


def test_commits_say_why_and_what_it_cost() -> None:
    table = created(6)
    came = sum(table.inspect.blocks().column("bytes").to_pylist())
    table.maintenance.run()
    (row,) = table.inspect.maintenance().to_pylist()

    assert (row["task"], row["why"], row["operation"]) == ("compact", "6 of 6 blocks are small", "compact")
    assert (row["bytes_read"], row["bytes_written"], row["bytes_ingested"]) == (came, table.snapshot.bytes, came)
    assert 0 <= row["seconds"] < 60
    assert table.inspect.maintenance(0).num_rows == 0


def test_hot_rows_count_as_ingested_once() -> None:
    table = created()
    table.append(numbers(count=5), hot=True)
    size = table.snapshot.bytes
    table.maintenance.tier()
    (row,) = table.inspect.maintenance().to_pylist()

    assert (row["operation"], row["task"], row["bytes_ingested"]) == ("tier", None, size)


def test_vacuums_and_verifications_are_on_record() -> None:
    table = created(3, {"maintain_verify_every": "0.001s", "maintain": "verify"})
    table.create_index("by_text", "bloom", ["text"])
    done = table.maintenance.run(budget="1s", only=["verify"])

    assert done.column("outcome").to_pylist()[:1] == ["done"]
    assert table.snapshot.operation == "verify"
    assert table.snapshot.summary["problems"] == []
    assert upkeep_record(table.snapshot, "verify") is not None


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"budget": "soon"}, "budget='soon' is no duration"),
        ({"budget": "0s"}, "budget=0:00:00: give more than no time"),
        ({"max_bytes": 0}, "max_bytes=0: give a number of bytes"),
        ({"only": ["tears"]}, "only='tears': tasks are tier, sync"),
        ({"only": "tier"}, "only='tier': give a list of texts"),
    ],
)
def test_what_is_no_limit_is_refused(given: Mapping[str, Any], said: str) -> None:
    with pytest.raises(fuse.InputError) as refused:
        created().maintenance.run(**given)
    assert said in str(refused.value)


def test_a_table_that_is_only_read_is_not_kept() -> None:
    table = created(6)
    for reading in (
        fuse.open_table(table.stored.store.url, read_only=True),
        fuse.open_table(table.stored.store, at=table.snapshot.id),
    ):
        with pytest.raises(fuse.ReadOnly):
            reading.maintenance.run()


def test_a_warehouse_is_kept_by_the_policies_of_its_namespaces() -> None:
    catalog = fuse.catalog(f"memory://kept-{uuid4().hex}", create=True)
    catalog.create_namespace("shop", {"maintain": "on"})
    catalog.create_namespace("shop.old", {"maintain": "off"})
    for name in ("shop.orders", "shop.old.orders", "notes"):
        table = catalog.create_table(name, "n BIGINT, text STRING")
        for number in range(6):
            table.append(numbers(number, 1))

    assert catalog.due().column("table").to_pylist() == ["notes", "shop.orders"]
    assert catalog.due("shop").column("table").to_pylist() == ["shop.orders"]
    assert catalog.maintain(dry_run=True, defaults={"maintain": "on"}).column("table").to_pylist() == [
        "notes",
        "shop.orders",
    ]
    assert catalog.maintain().select(["table", "outcome"]).to_pylist() == [{"table": "shop.orders", "outcome": "done"}]
    assert catalog.due().column("table").to_pylist() == ["notes"]

    with pytest.raises(fuse.InvalidArgument, match="maintain = 'always' is neither on nor off"):
        catalog.update_namespace_properties("shop", updates={"maintain": "always"})
    with pytest.raises(fuse.InvalidArgument, match="maintain_window"):
        catalog.create_namespace("new", {"maintain_window": "night"})


def test_a_table_that_cannot_be_asked_has_a_row_that_says_why() -> None:
    catalog = fuse.catalog(f"memory://kept-{uuid4().hex}", create=True)
    table = catalog.create_table("lost", "n BIGINT")
    store = table.stored.store
    store.delete([file.key for file in store.list()])

    (row,) = catalog.due().to_pylist()
    assert (row["table"], row["task"]) == ("lost", "repair")
    assert "no files at" in row["why"]


@pytest.mark.parametrize("key", [[], ["n"]])
def test_a_row_is_written_again_a_few_times_at_most_while_a_table_grows_row_by_row(key: list[str]) -> None:
    table, chance = created(0, {"block_rows": 40}, cluster_by=key), random.Random(1)
    for _ in range(60):
        table.append(numbers(chance.randrange(10**6), 1))
        table.maintenance.run()
        assert table.inspect.due().num_rows == 0
    commits = [state.summary for _, state in table.stored.snapshots() if state is not None and state.same_rows]

    assert sum(summary.get("added_rows", 0) for summary in commits) <= 3 * 60
    assert table.count() == 60


def test_an_index_that_is_not_sound_is_told_once_a_period() -> None:
    table = fuse.create_table(f"memory://kept-{uuid4().hex}", "n BIGINT", host=Host([Lies]))
    table.append([{"n": number} for number in range(20)])
    table.create_index("x", "lies", ["n"])
    table.set_properties({"maintain_verify_every": "0.001s"})

    (told,) = table.maintenance.run(only=["verify"]).to_pylist()
    assert told["outcome"] == "failed"
    assert told["problem"].startswith("index 'x' of kind 'lies': not sound: ")
    assert table.refresh().snapshot.summary["problems"] == [told["problem"]]
    table.set_properties({"maintain_verify_every": "1d"})
    assert table.maintenance.run(only=["verify"]).num_rows == 0
