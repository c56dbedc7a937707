"""Accounts of statements and searches equal what these then read, counted by the store; stages add up."""

from collections.abc import Callable
from uuid import uuid4

import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.errors import InputError
from tests.index.tables import counted, read_blocks

ROWS = [{"id": n, "name": f"n{n % 7}", "n": n % 5} for n in range(60)]


def heap(**properties: object) -> fuse.Table:
    table = fuse.create_table(
        f"memory://explain-{uuid4().hex}",
        "id BIGINT, name STRING, n INT",
        ["id"],
        {"block_rows": 10, "zone_rows": 5, **properties},
        key=["id"],
    )
    table.create_index("by_name", "bloom", ["name"])
    table.append(ROWS)
    return table


def keyed() -> fuse.Table:
    table = fuse.create_table(
        f"memory://explain-{uuid4().hex}",
        "id BIGINT, name STRING, n INT",
        ["id"],
        {"block_rows": 10, "zone_rows": 5},
        primary_key=["id"],
    )
    table.overwrite(ROWS)
    table.upsert([{"id": 1000, "name": "new", "n": 1}])
    return table


MERGE_ROWS = [{"id": 17, "name": "x", "n": 1}, {"id": 41, "name": "y", "n": 2}, {"id": 99, "name": "z", "n": 3}]
STATEMENTS: dict[str, tuple[Callable[[fuse.Table], fuse.Explanation], Callable[[fuse.Table], object]]] = {
    "delete in part": (lambda t: t.explain.delete("id = 17"), lambda t: t.delete("id = 17")),
    "delete blocks": (lambda t: t.explain.delete("id >= 25"), lambda t: t.delete("id >= 25")),
    "delete nothing": (lambda t: t.explain.delete("id > 500"), lambda t: t.delete("id > 500")),
    "update": (
        lambda t: t.explain.update("id BETWEEN 8 AND 21", {"n": "n + 1"}),
        lambda t: t.update("id BETWEEN 8 AND 21", {"n": "n + 1"}),
    ),
    "update by an index": (
        lambda t: t.explain.update("name = 'nowhere'", {"n": "0"}),
        lambda t: t.update("name = 'nowhere'", {"n": "0"}),
    ),
    "merge": (lambda t: t.explain.merge(MERGE_ROWS), lambda t: t.merge(MERGE_ROWS)),
    "merge of nothing": (lambda t: t.explain.merge(pa.table({"id": pa.array([], pa.int64())})),) * 2,
    "merge that deletes others": (
        lambda t: t.explain.merge(MERGE_ROWS, not_matched_by_source={"delete": "target.id < 15"}),
        lambda t: t.merge(MERGE_ROWS, not_matched_by_source={"delete": "target.id < 15"}),
    ),
}
TABLES = {
    "copy-on-write": lambda: heap(delete_mode="copy-on-write"),
    "merge-on-read": lambda: heap(delete_mode="merge-on-read"),
    "keyed": keyed,
}


@pytest.mark.parametrize("make", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_reads_the_blocks_that_its_account_names(name: str, make: Callable[[], fuse.Table]) -> None:
    explain, run = STATEMENTS[name]
    table = make()
    before = table.snapshot

    told = explain(table)
    assert table.snapshot == before
    table, store = counted(table)
    run(table)

    assert told.statement is not None
    in_tail = told.tail.kept if told.tail is not None else 0  # whose rows came with the snapshot
    assert told.blocks.kept - in_tail == len(read_blocks(store))


def test_a_statement_tells_what_it_writes_and_what_goes_unread() -> None:
    told = heap(delete_mode="merge-on-read").explain.delete("id >= 25")

    assert told.to_dict()["change"] == {
        "operation": "delete",
        "unread": 3,
        "writes": "deletion vectors, and rows anew",
    }
    assert "change   delete writes deletion vectors, and rows anew; 3 blocks go unread" in str(told)


def test_conditions_that_nobody_wrote_are_marked() -> None:
    table = heap()

    merged = table.explain.merge(MERGE_ROWS, not_matched_by_source={"delete": "target.n < 1"})
    implied = table.explain("n + 1 = 4")

    assert {vote.leaf: vote.added for vote in merged.votes} == {"id IN (17, 41, 99)": True, "n < 1": False}
    assert [vote.added for vote in implied.votes if vote.leaf.startswith("n ")][-1]
    assert "(added)" in str(merged)


def test_stages_tell_what_was_asked_what_is_left_and_what_was_fetched() -> None:
    table = heap()
    table, store = counted(table)
    opened = len(store.reads)

    stages = table.explain("id < 25 AND name = 'n3'").stages

    assert [stage.name for stage in stages] == ["segments", "blocks", "zones", "payloads"]
    assert stages.requests == len(store.reads) - opened > 0
    assert stages[0].blocks == 6
    assert [stage.blocks for stage in stages] == sorted((stage.blocks for stage in stages), reverse=True)
    assert stages[1].votes > 0
    assert stages[3].asked == 1
    assert str(stages).splitlines()[0].split() == [
        "stage", "asked", "votes", "blocks", "zones", "rows", "requests", "bytes", "ms",
    ]  # fmt: skip
    assert table.explain("id < 25").to_dict()["stages"][0]["name"] == "segments"


def test_a_plan_that_nobody_measures_counts_no_requests() -> None:
    assert heap().scan("id < 25").explanation.stages.requests is None


def test_a_search_opens_the_blocks_that_its_account_names() -> None:
    table = fuse.create_table(f"memory://explain-{uuid4().hex}", "id BIGINT, text STRING", properties={"block_rows": 2})
    table.create_index("words", "full_text", ["text"])
    table.append(
        [{"id": n, "text": "red red red" if n == 5 else f"a word {n} red" if n > 4 else "blue"} for n in range(8)]
    )

    told = table.explain.search("text", "red", limit=1)

    assert (told.blocks.total, told.blocks.kept, told.search.opened, told.search.unindexed) == (4, 2, 2, 0)
    assert told.votes[0].index == "words"
    assert table.search("text", "red", limit=1).column("id").to_pylist() == [5]


def test_a_search_says_which_blocks_it_indexes_and_does_so_once(caplog: pytest.LogCaptureFixture) -> None:
    table = fuse.create_table(f"memory://explain-{uuid4().hex}", "id BIGINT, text STRING", properties={"block_rows": 2})
    table.append([{"id": n, "text": f"red {n}"} for n in range(4)])
    table.create_index("words", "full_text", ["text"], build=False)

    first = table.search("text", "red").num_rows
    assert [record.getMessage().partition(": ")[2] for record in caplog.records] == [
        "words has nothing that can be read of 2 blocks, which were indexed in memory: refresh it"
    ]
    assert table.search("text", "red", select=["id"]).num_rows == first == 4
    told = table.explain.search("text", "red")

    assert len(caplog.records) == 1
    assert told.search.unindexed == 2
    assert "2 blocks have no index that can be read" in str(told)


def test_accounts_refuse_what_the_statement_would() -> None:
    table = heap()

    with pytest.raises(InputError, match="limit=-1"):
        table.explain.search("name", "x", limit=-1)
    with pytest.raises(InputError, match="where=5"):
        table.explain(5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="set="):
        table.explain.update("id = 1", {})
    with pytest.raises(InputError, match="merged by it"):
        keyed().explain.merge(MERGE_ROWS, on=["n"])
