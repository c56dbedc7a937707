"""Writers with a handle that is older than a change of columns lose nothing that others wrote, or are told."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.statements.keyed_rows import KeyedRows
from fuse_storage import Conflict, SchemaError
from fuse_storage.hot_commit.put import commit_puts, stage_puts
from tests.effort import effort, everything

Row = dict[str, Any]


@pytest.fixture
def url() -> str:
    return f"memory://{uuid.uuid4().hex}"


def send(table: fuse.Table, rows: list[Row]) -> None:
    with table.producer(linger=0.0) as producer:
        producer.send(rows).result(timeout=60)


def apply(table: fuse.Table, rows: list[Row]) -> None:
    table.apply([{**row, "_change_type": "update_postimage"} for row in rows])


def put_staged(table: fuse.Table, rows: list[Row]) -> None:
    """As tasks of Spark do, which write whole rows, and of which the driver commits."""
    whole = pa.Table.from_pylist(rows, table.schema)
    commit_puts(table.stored, [stage_puts(table.stored, whole, table.schema.empty_table().select(["id"]))])


WRITERS: dict[str, Callable[[fuse.Table, list[Row]], Any]] = {
    "upsert": lambda table, rows: table.upsert(rows),
    "append": lambda table, rows: table.append(rows),
    "apply": apply,
    "producer": send,
    "staged": put_staged,
}

CHANGES: dict[str, Callable[[fuse.Table], Any]] = {
    "nothing": lambda table: None,
    "add": lambda table: table.add_column("c", "string"),
    "add with a default": lambda table: table.add_column("c", "string", default="new"),
    "rename": lambda table: table.rename_column("b", "bb"),
    "drop": lambda table: table.drop_column("b"),
    "drop and add": lambda table: (table.drop_column("b"), table.add_column("b", "INT")),
    "widen": lambda table: table.change_type("b", "BIGINT"),
    "rename the key": lambda table: table.rename_column("id", "key"),
}


def made(url: str) -> fuse.Table:
    table = fuse.create_table(url, "id BIGINT, a INT, b INT", primary_key=["id"])
    table.upsert([{"id": number, "a": number, "b": number} for number in (1, 2)])
    return table


def fill(table: fuse.Table) -> None:
    """Set what the change brought in the row that the old handle is to put."""
    key = table.snapshot.key[0]
    new = {"c": "v"} if "c" in table.schema.names else {}
    if "b" in table.schema.names:
        new["b"] = 7
    table.upsert([{key: 1, "a": 3, **new}])


def is_conflict(writer: str, change: str, given: tuple[str, ...]) -> bool:
    """Whether rows of these columns cannot be put after this change: blocks that were written are whole rows."""
    if writer == "staged":
        return change != "nothing"
    return change == "rename the key" or ("b" in given and change in ("rename", "drop", "drop and add"))


CASES = [
    (writer, change, given, tiers)
    for at, writer in enumerate(WRITERS)
    for number, change in enumerate(CHANGES)
    for columns, given in enumerate((("a", "b"), ("a",)))
    for tiers in (False, True)
    if writer != "staged" or given == ("a", "b")
    if everything() or (at + number + columns) % 2 == tiers
]


@pytest.mark.parametrize(("writer", "change", "given", "tiers"), CASES)
def test_a_put_by_an_old_handle_sets_the_columns_that_it_has(
    url: str, writer: str, change: str, given: tuple[str, ...], tiers: bool
) -> None:
    table, old = made(url), fuse.open_table(url)
    CHANGES[change](table)
    fill(table)
    if tiers:
        table.maintenance.tier()
    before = fuse.open_table(url).to_arrow()
    puts = [{"id": number, **dict.fromkeys(given, 50 + number)} for number in (1, 3)]

    if is_conflict(writer, change, given):
        with pytest.raises(Conflict, match=r"column '\w+' was"):
            WRITERS[writer](old, puts)
        assert fuse.open_table(url).to_arrow().equals(before)
        return

    WRITERS[writer](old, puts)
    found = {row["id"]: row for row in fuse.open_table(url).to_arrow().to_pylist()}
    expected = {row["id"]: row for row in before.to_pylist()}
    new = dict.fromkeys(before.column_names) | ({"c": "new"} if change == "add with a default" else {})
    for put in puts:
        expected[put["id"]] = {**new, **expected.get(put["id"], {}), **put}
    assert found == expected


STATEMENTS: dict[str, Callable[[fuse.Table], Any]] = {
    "merge": lambda table: table.merge([{"id": 1, "a": 51, "b": 51}]),
    "update": lambda table: table.update("a = 1", {"a": 51}),
    "delete": lambda table: table.delete("a = 1"),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_of_an_old_handle_is_a_conflict_with_changes_of_what_it_read(
    url: str, statement: str, change: str
) -> None:
    table, old = made(url), fuse.open_table(url)
    CHANGES[change](table)
    fill(table)
    before = fuse.open_table(url).to_arrow()

    with pytest.raises(Conflict, match=f"rows that this {statement} read were changed"):
        STATEMENTS[statement](old)

    assert fuse.open_table(url).to_arrow().equals(before)


def test_a_handle_goes_on_after_a_column_was_added(url: str) -> None:
    table, old = made(url), fuse.open_table(url)
    table.add_column("c", "string")
    table.upsert([{"id": 1, "c": "v"}])

    for number in range(3):
        old.upsert([{"id": 1, "a": number, "b": number}])

    assert fuse.open_table(url).lookup([1]).to_pylist() == [{"id": 1, "a": 2, "b": 2, "c": "v"}]
    assert "c" in old.schema.names


@pytest.mark.parametrize("change", ["add", "add with a default", "drop", "rename", "widen"])
def test_keys_are_deleted_by_a_handle_older_than_a_change_of_other_columns(url: str, change: str) -> None:
    table, old = made(url), fuse.open_table(url)
    CHANGES[change](table)

    old.delete_keys([1])

    assert [row["id"] for row in fuse.open_table(url).to_arrow().to_pylist()] == [2]


def test_a_producer_goes_on_after_columns_were_added_and_dropped(url: str) -> None:
    table = made(url)
    with fuse.open_table(url).producer(linger=0.0) as producer:
        producer.send([{"id": 1, "a": 1, "b": 1}]).result(timeout=60)
        table.refresh().add_column("c", "string")
        table.upsert([{"id": 1, "c": "v"}])
        producer.send([{"id": 1, "a": 2, "b": 2}]).result(timeout=60)
        producer.send([{"id": 1, "a": 3, "b": 3}]).result(timeout=60)
        table.refresh().drop_column("b")
        producer.send([{"id": 1, "a": 4}, {"id": 5, "a": 5}]).result(timeout=60)
        with pytest.raises((Conflict, SchemaError), match="'b'"):
            producer.send([{"id": 1, "a": 4, "b": 4}]).result(timeout=60)

    assert fuse.open_table(url).lookup([1, 5]).to_pylist() == [
        {"id": 1, "a": 4, "c": "v"},
        {"id": 5, "a": 5, "c": None},
    ]


def test_a_producer_puts_rows_of_unlike_columns_one_after_the_other(url: str) -> None:
    made(url)
    with fuse.open_table(url).producer(linger=60.0) as producer:
        futures = [
            producer.send([{"id": 1, "a": 10}]),
            producer.send([{"id": 1, "b": 20}]),
            producer.send([{"id": 1, "a": 11}, {"id": 2, "a": 12}]),
        ]
        producer.flush()
        versions = [future.result() for future in futures]

    assert versions == sorted(set(versions))
    assert fuse.open_table(url).to_arrow().sort_by("id").to_pylist() == [
        {"id": 1, "a": 11, "b": 20},
        {"id": 2, "a": 12, "b": 2},
    ]


# --- others commit in between


def between(monkeypatch: pytest.MonkeyPatch, act: Callable[[int], Any], name: str = "_completed") -> list[int]:
    """Let others act each time after rows were completed, and before they are committed."""
    real, calls = getattr(KeyedRows, name), list[int]()

    def completed(self: Any, *given: Any) -> pa.Table:
        rows = real(self, *given)
        calls.append(len(calls))
        act(calls[-1])
        return rows

    monkeypatch.setattr(KeyedRows, name, completed)
    return calls


def test_a_partial_put_is_not_done_over_for_puts_of_other_keys(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, other = made(url), fuse.open_table(url)
    calls = between(
        monkeypatch,
        lambda call: [other.upsert([{"id": 100 + n, "a": n, "b": n}]) for n in range(3)] and other.delete_keys([101]),
    )

    table.upsert([{"id": 1, "a": 9}])

    assert len(calls) == 1
    assert table.refresh().lookup([1, 100, 101, 102]).column("a").to_pylist() == [9, 0, 2]


def test_a_partial_put_is_done_over_for_a_put_of_its_key_and_after_tiering(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, other = made(url), fuse.open_table(url)
    acts = [lambda: other.upsert([{"id": 1, "a": 0, "b": 77}]), lambda: other.maintenance.tier(), lambda: None]
    calls = between(monkeypatch, lambda call: acts[call]())

    table.upsert([{"id": 1, "a": 9}])

    assert len(calls) == 3
    assert table.refresh().lookup([1]).to_pylist() == [{"id": 1, "a": 9, "b": 77}]


def test_an_update_is_committed_after_puts_of_rows_that_it_does_not_change(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, other = made(url), fuse.open_table(url)
    real, scans = KeyedRows._change_matching, list[int]()

    def changed(self: Any, operation: str, predicate: Any, change: Any, *others: Any) -> Any:
        def change_and_wait(rows: pa.Table) -> Any:
            scans.append(1)
            if len(scans) == 1:
                other.upsert([{"id": 50, "a": 5, "b": 5}])
            return change(rows)

        return real(self, operation, predicate, change_and_wait, *others)

    monkeypatch.setattr(KeyedRows, "_change_matching", changed)

    table.update("a < 5", {"a": "a + 100"})  # another row, which the condition is false on
    assert len(scans) == 1
    assert table.refresh().to_arrow().sort_by("id").column("a").to_pylist() == [101, 102, 5]


def test_an_update_is_a_conflict_with_a_new_row_that_its_condition_is_true_on(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, other = made(url), fuse.open_table(url)
    real = KeyedRows._change_matching

    def changed(self: Any, operation: str, predicate: Any, change: Any, *others: Any) -> Any:
        def change_and_wait(rows: pa.Table) -> Any:
            if other.count("id = 50") == 0:
                other.upsert([{"id": 50, "a": 4, "b": 5}])
            return change(rows)

        return real(self, operation, predicate, change_and_wait, *others)

    monkeypatch.setattr(KeyedRows, "_change_matching", changed)

    with pytest.raises(Conflict, match="rows that this update read were changed"):
        table.update("a < 5", {"a": "a + 100"})
    assert fuse.open_table(url).to_arrow().sort_by("id").column("a").to_pylist() == [1, 2, 4]


def test_threads_that_put_columns_of_their_own_beside_a_busy_writer_all_end(url: str) -> None:
    fuse.create_table(url, "id BIGINT, a INT, b INT, c INT", primary_key=["id"])
    rounds = effort(1)  # a put that others outrun takes seconds
    fuse.open_table(url).upsert([{"id": 1, "a": 0, "b": 0, "c": 0}])
    done, problems = threading.Event(), list[BaseException]()

    def busy() -> None:
        table, number = fuse.open_table(url), 1000
        while not done.is_set():
            number += 1
            table.upsert([{"id": number, "a": 0, "b": 0, "c": 0}])

    def partial(name: str) -> None:
        table = fuse.open_table(url)
        try:
            for number in range(1, rounds + 1):
                table.upsert([{"id": 1, name: number}])
        except BaseException as problem:
            problems.append(problem)

    writer = threading.Thread(target=busy)
    writer.start()
    threads = [threading.Thread(target=partial, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    writer.join()

    assert problems == []
    assert fuse.open_table(url).lookup([1]).to_pylist() == [{"id": 1, "a": rounds, "b": rounds, "c": rounds}]
