"""Upkeep in the storage room: policies in properties, records, the lease, and what commits say of themselves."""

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

from fuse_storage import (
    BlockReplacement,
    InvalidArgument,
    MaintenancePolicy,
    StoredTable,
    commits_checked_by,
    meter_requests,
    open_store,
    record_upkeep,
    said_of_commits,
    upkeep_lease,
    upkeep_record,
)
from tests.storage.small import COLUMNS


def created(properties: Mapping[str, Any] | None = None) -> StoredTable:
    return StoredTable.create(f"memory://upkeep-{uuid4().hex}", COLUMNS, properties=properties)


def appended(table: StoredTable, *ids: int) -> StoredTable:
    with table.writer() as writer:
        writer.write(pa.table({"id": ids, "name": [str(each) for each in ids]}, COLUMNS))
        staged = writer.finish()
    return table.transaction().append(list(staged)).commit()


def test_a_table_says_nothing_of_its_upkeep_unless_somebody_does() -> None:
    assert not MaintenancePolicy.from_properties({"block_rows": 10}).stated
    assert not MaintenancePolicy.from_properties({"maintain_target_depth": 2}).stated


def test_a_table_s_own_properties_come_before_those_of_its_namespace() -> None:
    policy = MaintenancePolicy.from_properties(
        {"maintain": "compact, tier", "maintain_window": "22:00-05:00"},
        {"maintain": "on", "maintain_target_depth": "3", "maintain_small_share": "0.5", "maintain_verify_every": "off"},
    )

    assert policy.tasks == ("compact", "tier")
    assert (policy.target_depth, policy.small_share, policy.verify_every) == (3, 0.5, None)
    assert policy.window == (time(22), time(5))
    assert [policy.allows(datetime(2026, 1, 1, hour, tzinfo=UTC)) for hour in (21, 22, 4, 5)] == [
        False,
        True,
        True,
        False,
    ]


def test_maintain_off_leaves_nothing_to_do() -> None:
    assert MaintenancePolicy.from_properties({"maintain": "off"}, {"maintain": "on"}).tasks == ()


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("maintain", "often", "'often' is neither on nor off nor a list of tier, sync, refresh"),
        ("maintain", "compact,tears", "'compact,tears' is neither on nor off"),
        ("maintain", "", "'' is neither on nor off"),
        ("maintain_target_depth", 0, "0 must be a whole number from 1 on"),
        ("maintain_target_depth", 2.5, "2.5 must be a whole number from 1 on"),
        ("maintain_target_depth", "deep", "'deep' "),
        ("maintain_small_share", 1.5, "1.5 must be a number from 0 to 1"),
        ("maintain_tail_age", "5 minutes", "'5 minutes' is no duration: say 12h, 7d, 0.5s"),
        ("maintain_tail_age", 5, "5 is no duration"),
        ("maintain_retention", "30m", "'30m' is below an hour"),
        ("maintain_window", "always", "'always' is no window of a day: say 22:00-05:00"),
        ("maintain_window", "05:00-05:00", "is no window of a day"),
        ("maintain_daily_bytes", "much", "'much' is no number of bytes: say 500MB, 100GB"),
        ("maintain_daily_bytes", "10.5", "is no whole number of bytes"),
        ("maintain_daily_bytes", 0, "0 must be a whole number from 1 on"),
        ("maintain_target_depth", "deep", "'deep' must be a whole number from 1 on"),
        ("maintain_small_share", "x", "'x' must be a number from 0 to 1"),
        ("maintain_after_commit", "tier", "'tier' names tasks that there are not: choose of refresh, compact"),
        ("maintain_often", "on", "there are maintain, maintain_target_depth"),
    ],
)
def test_a_policy_that_cannot_be_is_refused_with_a_sentence(name: str, value: object, said: str) -> None:
    with pytest.raises(InvalidArgument, match="maintain") as refused:
        created({name: value})
    assert said in str(refused.value)


def test_a_record_is_kept_by_whoever_commits_next() -> None:
    table = created()
    assert upkeep_record(table.snapshot, "vacuum") is None

    recorded = record_upkeep(table, "vacuum", "vacuum", 7, {"files": 0})
    assert (recorded.snapshot.operation, recorded.snapshot.same_rows) == ("vacuum", True)
    assert dict(recorded.snapshot.summary) == {"files": 0}
    assert upkeep_record(appended(recorded, 1).snapshot, "vacuum") == 7


def test_of_two_that_record_the_same_one_commits() -> None:
    table = created()
    first, second = (record_upkeep(table, "verify", "verify", 7) for _ in range(2))

    assert second.snapshot.id == first.snapshot.id
    assert record_upkeep(first, "verify", "verify", 6).snapshot.id == first.snapshot.id


def test_commits_say_what_they_are_told_to_and_only_within() -> None:
    table = created()
    numbers = iter(range(3))
    with said_of_commits(lambda: {"why": next(numbers)}):
        first = appended(table, 1)
        second = appended(first, 2)
    third = appended(second, 3)

    assert [each.snapshot.summary.get("why") for each in (first, second, third)] == [0, 1, None]


def test_commits_are_refused_by_what_checks_them_and_only_within() -> None:
    table = created()

    def refuse() -> None:
        raise RuntimeError("not now")

    with commits_checked_by(refuse):
        for commit in (lambda: appended(table, 1), lambda: record_upkeep(table, "verify", "verify", 7)):
            with pytest.raises(RuntimeError, match="not now"):
                commit()
        with commits_checked_by(lambda: None):
            inner = appended(table, 2)

    assert appended(inner, 3).snapshot.sequence == table.snapshot.sequence + 2


def test_commits_count_the_bytes_that_come_and_go() -> None:
    first = appended(created(), 1)
    second = appended(first, 2)
    came = second.snapshot.bytes - first.snapshot.bytes
    assert (first.snapshot.summary["added_bytes"], second.snapshot.summary["added_bytes"]) == (
        first.snapshot.bytes,
        came,
    )

    blocks = second.blocks()
    with second.writer() as writer:
        writer.write(pa.table({"id": [1], "name": ["1"]}, COLUMNS))
        staged = writer.finish()
    gone = second.segments().segments_containing([0])
    after = second.transaction().replace_blocks([BlockReplacement((blocks.ids[0],), 1)], list(staged), gone).commit()
    assert after.snapshot.summary["removed_bytes"] == first.snapshot.bytes
    assert after.snapshot.summary["added_bytes"] == after.snapshot.bytes - came


def test_a_lease_is_one_s_until_it_ends() -> None:
    store = open_store(f"memory://lease-{uuid4().hex}")
    with upkeep_lease(store, timedelta(minutes=1)) as mine, upkeep_lease(store, timedelta(minutes=1)) as other:
        assert (mine, other) == (True, False)
    with upkeep_lease(store, timedelta(minutes=1)) as again:
        assert again
    assert list(store.list()) == []


def test_the_lease_of_one_who_died_counts_for_nothing_once_it_is_old() -> None:
    store = open_store(f"memory://lease-{uuid4().hex}")
    store.create(f"_m/{5:020d}.lease", b"dead")
    with upkeep_lease(store, timedelta(minutes=1)) as early:
        assert not early
    with upkeep_lease(store, timedelta(0)) as late:
        assert late
        assert [file.key for file in store.list()] == [f"_m/{6:020d}.lease"]
    assert list(store.list()) == []


def test_a_lease_costs_three_requests() -> None:
    store = meter_requests(open_store(f"memory://lease-{uuid4().hex}"))
    with upkeep_lease(store, timedelta(minutes=1)):
        pass
    assert [verb for verb, *_ in [*store.reads, *store.writes]] == ["list", "create", "delete"]
