"""Indexes that are switched off are not asked, answers stay, and the account says by whom."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from uuid import uuid4

import pytest

import fuse_index as fuse
from fuse_index.errors import DefinitionError, InputError
from fuse_index.reasons import Reason
from tests.index.tables import created, numbers


@pytest.fixture
def table() -> fuse.Table:
    table = created()
    table.create_index("by_n", "bloom", ["n"])
    table.append(numbers())
    return table


def by_call(switch: str) -> Callable[[fuse.Table, pytest.MonkeyPatch], AbstractContextManager[None]]:
    return lambda table, monkeypatch: fuse.indexes_off(switch)


def by_property(table: fuse.Table, monkeypatch: pytest.MonkeyPatch) -> AbstractContextManager[None]:
    table.set_properties({"indexes_off": "other, kind:bloom"})
    return nullcontext()


def by_environment(table: fuse.Table, monkeypatch: pytest.MonkeyPatch) -> AbstractContextManager[None]:
    monkeypatch.setenv("FUSE_INDEX_OFF", "by_n")
    return nullcontext()


WAYS = {
    "index": (by_call("by_n"), "indexes_off()"),
    "kind": (by_call("kind:bloom"), "indexes_off()"),
    "distribution": (by_call("distribution:fuse_plugins.bloom"), "indexes_off()"),
    "property": (by_property, "the property indexes_off"),
    "environment": (by_environment, "FUSE_INDEX_OFF in the environment"),
}


@pytest.mark.parametrize("way", WAYS)
def test_an_index_that_is_off_is_not_asked(way: str, table: fuse.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    before = table.explain("n = 3")
    switch, by = WAYS[way]

    with switch(table, monkeypatch):
        told, rows = table.explain("n = 3"), table.scan("n = 3").to_arrow()

    assert (before.blocks.kept, told.blocks.kept) == (1, 2)
    (vote,) = (vote for vote in told.votes if vote.index == "by_n")
    assert (vote.reason, vote.detail) == (Reason.DISABLED, f"switched off by {by}")
    assert rows.num_rows == 1


def test_a_switch_ends_where_it_was_made(table: fuse.Table) -> None:
    with fuse.indexes_off("by_n"), fuse.indexes_off("other"):
        assert table.explain("n = 3").blocks.kept == 2

    assert table.explain("n = 3").blocks.kept == 1


def test_new_blocks_are_indexed_whatever_is_off(table: fuse.Table) -> None:
    with fuse.indexes_off("kind:bloom"):
        table.append(numbers())
        assert table.inspect.due().num_rows == 0

    assert table.explain("n = 3").blocks.kept == 2


def test_statistics_may_be_off_and_are_told() -> None:
    table = fuse.create_table(f"memory://off-{uuid4().hex}", "id BIGINT", properties={"block_rows": 2})
    table.append([{"id": number} for number in range(6)])

    with fuse.indexes_off("kind:min_max"):
        told = table.explain("id = 3")

    assert (told.blocks.kept, told.votes[0].reason) == (3, Reason.DISABLED)
    assert table.explain("id = 3").blocks.kept == 1


def test_search_and_aggregates_keep_to_switches() -> None:
    table = fuse.create_table(f"memory://off-{uuid4().hex}", "text STRING, n INT")
    table.create_index("words", "full_text", ["text"])
    table.create_index("sums", "aggregate", ["text"], aggregates=["sum(n)"])
    table.append([{"text": "red", "n": 1}, {"text": "red", "n": 2}])

    with fuse.indexes_off("words", "kind:aggregate"):
        told = table.explain(None, ["text"], ["sum(n)"])
        with pytest.raises(DefinitionError, match=r"'words': switched off by indexes_off\(\)"):
            table.search("text", "red")
        assert table.aggregate(["text"], ["sum(n)"]).to_pylist() == [{"text": "red", "sum(n)": 3}]

    assert [vote.reason for vote in told.votes if vote.index == "sums"] == [Reason.DISABLED]


@pytest.mark.parametrize("switch", ["", " ", "kind:", "sort:bloom", ":x"])
def test_what_switches_nothing_off_is_refused(switch: str, table: fuse.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="switches nothing off"), fuse.indexes_off(switch):
        pass
    with pytest.raises(fuse.InvalidArgument, match="indexes_off"):
        table.set_properties({"indexes_off": ["by_n"]})
    if switch.strip():
        monkeypatch.setenv("FUSE_INDEX_OFF", switch)
        with pytest.raises(InputError, match="FUSE_INDEX_OFF in the environment"):
            table.explain("n = 3")


@pytest.mark.parametrize("text", ["kind:", "by_x, :bloom", "sort:bloom", ":"])
def test_a_property_that_switches_nothing_off_is_refused_when_it_is_set(text: str) -> None:
    table = fuse.create_table(f"memory://{uuid4().hex}", "n BIGINT")

    with pytest.raises(fuse.InvalidArgument, match="switches nothing off: give the name of an index, kind:NAME"):
        table.set_properties({"indexes_off": text})
    assert table.set_properties({"indexes_off": "by_x, kind:bloom, distribution:acme"}).version == 2
