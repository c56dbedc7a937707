"""A producer: what threads send is committed together, once, and each is told."""

from __future__ import annotations

import threading
import uuid
from typing import Any

import pytest

import fuse_index as fuse
from fuse_index import InputError
from fuse_index.hot import append as hot_append
from fuse_storage import CommitUnknown, SchemaError, TailFull


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


@pytest.mark.parametrize("options", [{"linger": -1}, {"rows": 0}, {"linger": float("nan")}])
def test_a_producer_of_nothing_is_refused(table: fuse.Table, options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="linger"):
        table.producer(**options)


@pytest.mark.parametrize("random", [(5, 9), (9, 5, 1)])
def test_producers_of_one_application_lose_no_rows(
    table: fuse.Table, monkeypatch: pytest.MonkeyPatch, random: tuple[int, ...]
) -> None:
    given = iter(random)
    monkeypatch.setattr("fuse_index.hot.producer.secrets.randbits", lambda _: next(given))
    stale = fuse.open_table(table.stored.store.url)
    for handle, number in ((table, 1), (stale, 2)):
        with handle.producer(linger=0, application="job") as producer:
            version = send_in(producer, number).result(30)
            assert fuse.open_table(table.stored.store.url, version=version).count() == number

    assert table.refresh().count() == 2


def test_producers_of_one_application_may_send_at_once(table: fuse.Table) -> None:
    producers = [fuse.open_table(table.stored.store.url).producer(0, 5, "job") for _ in range(3)]
    futures = [send_in(producer, number) for number in range(20) for producer in producers]
    for producer in producers:
        producer.close()

    assert {type(future.result()) for future in futures} == {int}
    assert table.refresh().count() == 60


def test_an_application_whose_numbers_others_always_take_is_told(
    table: fuse.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fuse_index.hot.producer._next_number", lambda _: 1)
    table.append([{"id": 0, "who": 0}], application=("job", 2))
    with table.producer(linger=0, application="job") as producer, pytest.raises(fuse.Conflict, match="'job'"):
        send_in(producer, 1).result(30)
    assert table.refresh().count() == 1


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


def test_a_producer_goes_on_after_another_has_changed_the_columns(table: fuse.Table) -> None:
    with table.producer(linger=0) as producer:
        send_in(producer, 0).result(30)
        fuse.open_table(table.stored.store.url).rename_column("who", "whom")
        with pytest.raises(fuse.Conflict):
            send_in(producer, 1).result(30)
        producer.send([{"id": 2, "whom": 2}]).result(30)

    assert table.refresh().scan().to_arrow().to_pylist() == [{"id": 0, "whom": 0}, {"id": 2, "whom": 2}]


def test_rows_that_wait_while_columns_change_are_of_the_columns_that_they_were_sent_for(table: fuse.Table) -> None:
    other = fuse.open_table(table.stored.store.url)
    with table.producer(linger=60.0, rows=2) as producer:
        send_in(producer, 0).result(30)
        other.add_column("more", "BIGINT")
        before = send_in(producer, 1)
        flush_in_time(producer)
        old = send_in(producer, 2)
        other.rename_column("who", "whom")
        other.add_column("who", "BIGINT")
        producer._table.refresh()
        new = producer.send([{"id": 3, "whom": 3, "who": 4}])
        flush_in_time(producer)
        with pytest.raises(fuse.Conflict, match="'who' was changed"):
            old.result(0)
        assert before.result(0) < new.result(0)

    assert table.refresh().scan("id = 3").to_arrow().to_pylist() == [{"id": 3, "whom": 3, "more": None, "who": 4}]
    assert table.count() == 3


def test_a_batch_has_no_more_rows_than_a_hot_commit_may_have() -> None:
    table = fuse.create_table(
        f"memory://{uuid.uuid4().hex}", "id BIGINT, who BIGINT", properties={"tail_rows": 100, "tiering": "job"}
    )
    with table.producer(linger=60.0) as producer:
        send_in(producer, 0).result(30)
        futures = [send_in(producer, *range(30)) for _ in range(6)]
        much = send_in(producer, *range(101))
        flush_in_time(producer)
        assert len({future.result(0) for future in futures}) == 2
        with pytest.raises(InputError, match="at most 100 rows"):
            much.result(0)

    assert table.refresh().count() == 181


def test_what_follows_a_commit_without_an_answer_does_not_hide_it(
    table: fuse.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, answers = hot_append.storage.append_hot, iter([CommitUnknown("no answer", "the id"), TailFull("tier first")])

    def answer(*arguments: Any) -> Any:
        if (problem := next(answers, None)) is None:
            return real(*arguments)
        raise problem

    monkeypatch.setattr(hot_append.storage, "append_hot", answer)
    with table.producer(linger=0, application="job") as producer:
        with pytest.raises(CommitUnknown, match=r"no answer.*tier first") as raised:
            send_in(producer, 1).result(30)
        assert raised.value.commit_id == "the id"
        send_in(producer, 2).result(30)

    assert table.refresh().count() == 1


def test_another_producer_of_the_name_is_no_answer(table: fuse.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    real, other = hot_append.storage.append_hot, fuse.open_table(table.stored.store.url)

    def be_second(stored: Any, rows: Any, application: Any) -> Any:
        monkeypatch.setattr(hot_append.storage, "append_hot", real)
        other.append([{"id": 9, "who": 9}], (application[0], application[1] + 1), True)
        raise CommitUnknown("no answer", "the id")

    monkeypatch.setattr(hot_append.storage, "append_hot", be_second)
    with table.producer(linger=0, application="job") as producer, pytest.raises(CommitUnknown, match="no answer"):
        send_in(producer, 1).result(30)
