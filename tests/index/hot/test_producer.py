"""A producer: what threads send is committed together, once, and each is told."""

from __future__ import annotations

import threading
import uuid
from typing import Any

import pytest

import fuse_index as fuse
from fuse_index import InputError
from fuse_index.hot import append as hot_append
from fuse_storage import CommitUnknown, SchemaError


@pytest.fixture
def table() -> fuse.Table:
    return fuse.create_table(f"memory://{uuid.uuid4().hex}", "id BIGINT, who BIGINT")


def send_in(producer: Any, *numbers: int) -> Any:
    return producer.send([{"id": number, "who": 0} for number in numbers])


def flush_in_time(producer: Any) -> None:
    """Flush, or fail, for a producer whose thread has died."""
    flushing = threading.Thread(target=producer.flush, daemon=True)
    flushing.start()
    flushing.join(30)
    assert not flushing.is_alive()


def test_what_threads_send_is_committed_together_and_each_is_told_the_version(table: fuse.Table) -> None:
    futures = []

    def work(who: int, producer: Any) -> None:
        futures.extend(producer.send([{"id": number, "who": who}]) for number in range(50))

    with table.producer(linger=60.0) as producer:
        threads = [threading.Thread(target=work, args=(who, producer)) for who in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        producer.flush()
        assert all(future.done() for future in futures)

    head = table.refresh()
    assert head.count() == 200
    assert max(future.result() for future in futures) == head.version
    assert head.tail.commits <= 3
    for future in futures[::40]:
        assert fuse.open_table(table.stored.store.url, version=future.result()).count() > 0


def test_leaving_flushes_and_a_closed_producer_takes_nothing(table: fuse.Table) -> None:
    with table.producer(linger=60.0) as producer:
        first = producer.send([{"id": 1, "who": 1}])
        nothing = producer.send([])
    assert first.result() == table.refresh().version
    assert nothing.result() == 1
    with pytest.raises(InputError, match="closed"):
        producer.send([{"id": 2, "who": 1}])


def test_so_many_rows_are_not_waited_for(table: fuse.Table) -> None:
    with table.producer(linger=60.0, rows=10) as producer:
        producer.send([{"id": 0, "who": 0}]).result(30)
        futures = [producer.send([{"id": number, "who": 0}]) for number in range(10)]
        assert len({future.result(30) for future in futures}) == 1


def test_rows_that_do_not_fit_are_refused_at_once_and_errors_reach_who_sent(table: fuse.Table) -> None:
    with table.producer(linger=0) as producer:
        with pytest.raises(SchemaError):
            producer.send([{"nonsense": 1}])
        fuse.open_table(table.stored.store.url).drop_column("who")
        with pytest.raises(fuse.Conflict):
            producer.send([{"id": 1, "who": 1}]).result(30)


def test_a_batch_of_a_named_application_is_committed_once(table: fuse.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    real, lost = hot_append.storage.append_hot, []

    def lose_the_first_answer(*arguments: Any) -> Any:
        done = real(*arguments)
        if not lost:
            lost.append(1)
            raise CommitUnknown("no answer", "id")
        return done

    monkeypatch.setattr(hot_append.storage, "append_hot", lose_the_first_answer)
    with table.producer(linger=0, application="job") as producer:
        producer.send([{"id": 1, "who": 1}]).result(30)
        producer.send([{"id": 2, "who": 1}]).result(30)

    assert table.refresh().count() == 2
    assert table.snapshot.applications["job"] == 2


@pytest.mark.parametrize("options", [{"linger": -1}, {"rows": 0}, {"linger": float("nan")}])
def test_a_producer_of_nothing_is_refused(table: fuse.Table, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="linger"):
        table.producer(**options)


def test_what_is_cancelled_before_its_commit_is_left_out_and_nobody_waits_for_it(table: fuse.Table) -> None:
    with table.producer(linger=60.0) as producer:
        send_in(producer, 0).result(30)
        cancelled, kept = send_in(producer, 1, 2), send_in(producer, 3)
        assert cancelled.cancel()
        flush_in_time(producer)
        assert kept.result(0)
        assert not kept.cancel()
        assert send_in(producer, 4).cancel()
        flush_in_time(producer)

    assert sorted(table.refresh().scan().to_arrow().column("id").to_pylist()) == [0, 3]
