"""What is due at a table: at its limits and not before, of metadata alone, and nothing where nothing is to be done."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuse_index as fuse
from fuse_index.indexes.builder import index_builders
from fuse_index.indexes.registry import Host
from fuse_index.operations.unindexed import blocks_to_index, unindexed_blocks
from fuse_index.signals.plans import forget_plans
from fuse_index.upkeep.due import due_tasks, upkeep_context
from fuse_index.upkeep.due_times import describe_age
from fuse_index.upkeep.task import DueTask
from fuse_storage import MaintenancePolicy, StoredTable, meter_requests, process_cache, record_upkeep
from tests.index.tables import numbers

DAY = timedelta(days=1)


def created(properties: Mapping[str, Any] | None = None, **more: Any) -> fuse.Table:
    return fuse.create_table(
        f"memory://due-{uuid4().hex}",
        "n BIGINT, text STRING",
        properties={"block_rows": 10, **(properties or {})},
        **more,
    )


def filled(table: fuse.Table, blocks: int) -> fuse.Table:
    table.append(numbers(count=10 * blocks))
    return table


def small(table: fuse.Table, count: int) -> fuse.Table:
    for number in range(count):
        table.append(numbers(number, 1))
    return table


def due(table: fuse.Table, later: timedelta = timedelta(0), host: Host | None = None) -> list[DueTask]:
    policy = MaintenancePolicy.from_properties(table.snapshot.properties)
    return due_tasks(upkeep_context(table.stored, host or table.host, policy, datetime.now(UTC) + later))


def names(table: fuse.Table, later: timedelta = timedelta(0)) -> list[str]:
    return [task.task for task in due(table, later)]


def test_nothing_is_due_at_a_table_that_is_new_or_well_kept() -> None:
    table = created(cluster_by=["n"])
    assert due(table, 1000 * DAY) == []
    filled(table, 4).create_index("by_text", "bloom", ["text"])

    assert due(table) == []


def test_blocks_are_joined_from_a_share_of_small_ones_on() -> None:
    table = small(filled(created({"maintain_small_share": 0.4}), 4), 4)
    assert due(table) == []  # three of eight blocks would be saved

    (task,) = due(small(table, 2))
    assert (task.task, task.why, task.gain) == ("compact", "6 of 10 blocks are small", "6 blocks become 1")
    assert task.excess == pytest.approx(5 / 4)
    assert task.bytes == sum(table.inspect.blocks().column("bytes").to_pylist()[4:])
    assert task.since is not None
    table.maintenance.compact()
    assert due(table) == []


def test_a_block_that_grows_in_small_steps_is_not_written_again_at_each() -> None:
    table = small(created({"block_rows": 100}), 8)
    table.maintenance.compact()
    written = [len(due(small(table, 1))) for _ in range(23)]

    assert written == [0] * 23  # eight rows, and a row each: four times the rows would pay
    assert names(small(table, 1)) == ["compact"]


def test_a_block_of_which_more_than_a_fifth_was_deleted_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuse_storage.is_worn", lambda rows, live: live == 0)  # as older writers left them
    table = filled(created({"delete_mode": "merge-on-read"}), 20)
    table.delete("text in ('t1', 't2')")
    assert due(table) == []
    table.delete("text in ('t3')")

    (task,) = due(table)
    assert (task.task, task.why, task.excess) == ("compact", "of 1 blocks more than a fifth was deleted", 1.0)
    assert task.bytes == table.inspect.blocks().column("bytes")[0].as_py()
    table.maintenance.compact()
    assert due(table) == []


def test_blocks_that_meet_too_deep_are_due_for_a_step() -> None:
    table = created({"maintain_target_depth": 2}, cluster_by=["n"])
    for _ in range(2):
        table.append(numbers(count=10))
    assert due(table) == []
    table.append(numbers(count=10))

    (task,) = due(table)
    assert (task.task, task.why) == ("recluster", "3 blocks meet 3 deep, and 2 is the limit")
    assert (task.excess, task.bytes) == (1.5, table.snapshot.bytes)
    table.maintenance.recluster(2)
    assert due(table) == []


def test_an_index_that_lacks_blocks_is_due_as_the_refresh_finds_them() -> None:
    table = filled(created(), 4)
    table.create_index("by_text", "bloom", ["text"], build=False)
    table.create_index("by_n", "bloom", ["n"])

    (task,) = due(table)
    assert (task.task, task.index, task.excess) == ("refresh", "by_text", 2.0)
    assert task.why == "index 'by_text' lacks 4 of 4 blocks"
    assert task.bytes == table.snapshot.bytes
    for builder in index_builders(table.snapshot, table.host):
        assert blocks_to_index(table.stored, builder).tolist() == unindexed_blocks(table.stored, builder).tolist()


def test_an_index_whose_kind_is_missing_is_told_and_comes_last() -> None:
    table = small(filled(created(), 1), 4)
    table.create_index("by_text", "bloom", ["text"])

    tasks = due(table, host=Host([]))
    assert [task.task for task in tasks] == ["compact", "repair"]
    assert (tasks[1].index, tasks[1].bytes) == ("by_text", 0)
    assert tasks[1].why.startswith("index 'by_text' cannot be used here: ")


def test_rows_that_wait_are_due_by_their_age_and_number() -> None:
    table = created({"maintain_tail_age": "10m", "tail_rows": 100})
    table.append(numbers(count=40), hot=True)
    assert due(table, timedelta(minutes=9)) == []
    (task,) = due(table, timedelta(minutes=20, seconds=1))
    assert (task.task, round(task.excess, 1)) == ("tier", 2.0)
    assert task.why == "40 rows of 1 hot commits wait, the oldest for 20 minutes"

    table.append(numbers(count=20), hot=True)
    assert names(table) == ["tier"]  # more than half of what a tail may have
    table.maintenance.tier()
    assert due(table) == []


def test_a_vacuum_is_due_a_retention_after_the_last_where_something_came_since() -> None:
    table = filled(created({"maintain_retention": "2d"}), 1)
    assert (names(table, 1.9 * DAY), names(table, 2.1 * DAY)) == ([], ["vacuum"])
    (task,) = due(table, 4.04 * DAY)
    assert (task.why, round(task.excess, 1)) == ("the first commit was 4 days ago", 2.0)

    now = int(datetime.now(UTC).timestamp())
    table.stored = record_upkeep(table.stored, "vacuum", "vacuum", now)
    assert due(table, 4.1 * DAY) == []
    filled(table, 1)
    assert due(table, 4.1 * DAY)[0].why == "the last vacuum was 4 days ago"


def test_a_verification_is_due_now_and_then() -> None:
    table = filled(created({"maintain": "verify", "maintain_verify_every": "10d"}), 2)
    assert due(table, 11 * DAY) == []  # there is no index
    table.create_index("by_text", "bloom", ["text"])
    (task,) = due(table, 11 * DAY)

    assert (task.task, task.bytes) == ("verify", table.snapshot.bytes)
    table.stored = record_upkeep(table.stored, "verify", "verify", int(datetime.now(UTC).timestamp()))
    assert due(table, 9 * DAY) == []


def test_an_attached_table_is_due_for_a_sync_and_for_no_rewrite(tmp_path: Path) -> None:
    for number in range(6):
        pq.write_table(pa.table({"n": [number]}), tmp_path / f"{number}.parquet")
    options = {"shared_places": str(tmp_path)}
    table = fuse.attach(tmp_path, f"memory://due-{uuid4().hex}", options=options)
    assert due(table) == []
    pq.write_table(pa.table({"n": [7]}), tmp_path / "7.parquet")

    (task,) = due(table)
    assert task.task == "sync"
    table.sync()
    assert due(table) == []


@pytest.mark.parametrize(("maintain", "found"), [("off", []), ("refresh", ["refresh"]), ("on", ["compact", "refresh"])])
def test_a_policy_says_which_tasks_there_are(maintain: str, found: list[str]) -> None:
    table = small(created({"maintain": maintain}), 5)
    table.create_index("by_text", "bloom", ["text"], build=False)

    assert names(table) == found


def test_what_gained_nothing_is_not_due_again_before_a_block_comes() -> None:
    table = small(created(), 5)
    table.stored = record_upkeep(table.stored, "compact", "compact", table.snapshot.version)
    assert due(table) == []

    assert names(small(table, 1)) == ["compact"]


def test_metadata_alone_is_read_and_nothing_where_there_is_no_news() -> None:
    table = filled(created(cluster_by=["n"]), 4)
    table.create_index("by_text", "bloom", ["text"])
    store = meter_requests(table.stored.store)
    process_cache.clear()
    opened = fuse.Table(StoredTable.open(store), table.host)
    assert opened.inspect.due().num_rows == 0
    assert {key.partition("/")[0] for _, key, _ in store.reads} == {"_refs", "_ss", "_sg", "_x"}
    assert store.writes == []

    store.reset()
    assert opened.refresh().inspect.due().num_rows == 0
    assert store.request_count == 1


def test_an_age_is_said_in_its_largest_unit() -> None:
    ages = [timedelta(days=1.5), timedelta(hours=30), timedelta(minutes=59), timedelta(seconds=1), timedelta(0)]
    assert [describe_age(age) for age in ages] == ["1 day", "1 day", "59 minutes", "1 second", "0 seconds"]


def test_reclustering_is_due_where_queries_of_late_read() -> None:
    """Two ranges of a key are as deep; only one of them is asked about."""
    table = fuse.create_table(
        f"memory://due-{uuid4().hex}",
        "n BIGINT",
        cluster_by=["n"],
        properties={"block_rows": 4, "maintain": "recluster"},
    )
    for start in (0, 1000):
        for step in range(8):
            table.append([{"n": start + step + 10 * number} for number in range(4)])
    whole = {row["why"] for row in table.inspect.due().to_pylist()}
    for number in range(8):
        table.count(f"n = {1000 + number}")

    asked = table.inspect.due().to_pylist()
    table.maintenance.run()

    assert whole
    assert [row["task"] for row in asked] == ["recluster"]
    assert table.explain("n = 1005").blocks.kept <= 4
    assert table.explain("n = 7").blocks.kept == 8
    assert table.inspect.due().num_rows == 0
    forget_plans(table.stored.store.url)
    assert [row["task"] for row in table.inspect.due().to_pylist()] == ["recluster"]
