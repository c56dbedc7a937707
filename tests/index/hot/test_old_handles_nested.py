"""Puts by a handle that is older than a change of the parts of a column: they go as they were meant, or are told."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from typing import Any

import pytest

import fuse_index as fuse
from fuse_storage import Conflict
from tests.index.hot.test_old_handles import WRITERS, Row

COLUMNS = "id BIGINT, a INT, s STRUCT<x: INT, y: INT, in: STRUCT<p: INT>>, l ARRAY<STRUCT<x: INT, y: INT>>"
PUTS = {name: put for name, put in WRITERS.items() if name != "staged"}


def row(key: int, number: int) -> Row:
    within = {"x": number, "y": number + 1}
    return {"id": key, "a": number, "s": {**within, "in": {"p": number + 2}}, "l": [within]}


def exchange(top: str) -> Callable[[fuse.Table], Any]:
    def change(table: fuse.Table) -> None:
        for old, new in (("x", "z"), ("y", "x"), ("z", "y")):
            table.rename_column(f"{top}.{old}", new)

    return change


CHANGES: dict[str, Callable[[fuse.Table], Any]] = {
    "exchange": exchange("s"),
    "exchange in lists": exchange("l.element"),
    "drop and add": lambda table: (table.drop_column("s.y"), table.add_column("s.y", "INT")),
    "drop": lambda table: table.drop_column("s.y"),
    "add": lambda table: table.add_column("s.z", "INT"),
    "add deep": lambda table: table.add_column("s.in.z", "INT"),
    "add in lists": lambda table: table.add_column("l.element.z", "INT"),
}


@pytest.fixture
def url() -> str:
    return f"memory://{uuid.uuid4().hex}"


@pytest.fixture
def table(url: str) -> fuse.Table:
    made = fuse.create_table(url, COLUMNS, primary_key=["id"])
    made.upsert([row(1, 1)])
    return made


@pytest.mark.alike
@pytest.mark.parametrize("writer", PUTS)
@pytest.mark.parametrize("change", CHANGES)
def test_a_value_of_which_a_part_was_changed_is_a_conflict(
    url: str, table: fuse.Table, writer: str, change: str
) -> None:
    old = fuse.open_table(url)
    CHANGES[change](table)
    before = table.refresh().to_arrow()

    with pytest.raises(Conflict, match="since this handle was opened: refresh"):
        PUTS[writer](old, [row(1, 5)])

    assert table.refresh().to_arrow() == before
    PUTS[writer](old.refresh(), [{"id": 1, "a": 9}])
    assert table.refresh().lookup([1]).column("a").to_pylist() == [9]


@pytest.mark.alike
@pytest.mark.parametrize("writer", PUTS)
@pytest.mark.parametrize("change", CHANGES)
def test_other_columns_are_put(url: str, table: fuse.Table, writer: str, change: str) -> None:
    old = fuse.open_table(url)
    CHANGES[change](table)
    (before,) = table.refresh().to_arrow().to_pylist()

    PUTS[writer](old, [{"id": 1, "a": 5}])

    assert table.refresh().to_arrow().to_pylist() == [{**before, "a": 5}]


def test_rows_that_wait_in_a_producer_are_not_put_by_parts_that_were_changed(
    url: str, table: fuse.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, goes_on, append = threading.Event(), threading.Event(), fuse.Table.append

    def slow(*arguments: Any, **named: Any) -> Any:
        began.set()
        assert goes_on.wait(60)
        return append(*arguments, **named)

    monkeypatch.setattr(fuse.Table, "append", slow)
    with fuse.open_table(url).producer(linger=0.0) as producer:
        first = producer.send([row(2, 5)])
        assert began.wait(60)
        waiting = producer.send([row(1, 5)])
        table.add_column("s.z", "INT")
        table.upsert([{"id": 1, "s": {**row(1, 1)["s"], "z": 7}}])
        goes_on.set()
        for sent in (first, waiting):
            with pytest.raises(Conflict, match="gained"):
                sent.result(timeout=60)
    assert table.refresh().lookup([1]).column("s").to_pylist()[0]["z"] == 7
