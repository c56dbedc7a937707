"""Variants of our own code that forget keys in one place; each is found out by a short life of a table."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fuse_index as fuse
import fuse_storage as storage
from fuse_index.hot import tier_by_key
from fuse_index.operations import compact
from fuse_index.query import prefetch
from fuse_index.statements.heap_rows import HeapRows
from fuse_index.table.tier import start_tiering
from fuse_storage.maintenance import diff
from fuse_storage.metadata.block_frame import BlockFrame
from fuse_storage.primary_key import hidden_rows
from fuse_storage.primary_key.key_sets import SoughtKeys
from fuse_storage.primary_key.row_rules import KeyedRules

Row = dict[str, Any]


class Life:
    """A table whose keys are numbers in parts, and what should be in it."""

    def __init__(self) -> None:
        columns, properties = "id INT, part INT, n INT", {"block_rows": 10, "zone_rows": 5}
        place = f"memory://{uuid.uuid4().hex}"
        self.table = fuse.create_table(place, columns, primary_key=["id", "part"], properties=properties)
        self.model: dict[tuple[int, int], Row] = {}

    def put(self, n: int, *ids: int, part: int = 0) -> None:
        rows = [{"id": each, "part": part, "n": n} for each in ids]
        self.table.upsert(rows)
        self.model |= {(row["id"], row["part"]): row for row in rows}
        self.check()

    def delete(self, *ids: int) -> None:
        self.table.delete_keys([{"id": each, "part": 0} for each in ids])
        self.model = {key: row for key, row in self.model.items() if key not in {(each, 0) for each in ids}}
        self.check()

    def no_keys(self) -> pa.Table:
        return storage.key_schema_of(self.table.snapshot).arrow.empty_table()

    def tier(self) -> None:
        self.table.maintenance.tier()
        self.check()

    def check(self) -> None:
        rows = self.table.to_arrow().to_pylist()
        assert sorted(rows, key=str) == sorted(self.model.values(), key=str)
        assert self.table.count() == len(self.model)
        assert self.table.count("n < 3") == sum(row["n"] < 3 for row in self.model.values())


def live() -> None:
    life = Life()
    life.put(0, *range(40))
    life.put(0, 5, 6, part=1)
    life.tier()
    life.delete(0, 1, 2)
    life.tier()
    since, before = life.table.snapshot.id, dict(life.model)
    life.put(2, 2, 5, 50)
    life.put(3, 5, 31)
    life.delete(6, 50)
    version, model = life.table.snapshot.id, dict(life.model)
    life.put(4, 7, 33)
    life.table.restore(version)
    life.model = model
    life.check()
    life.table.maintenance.compact()
    life.check()
    told = life.table.changes(since).to_arrow().column("_change_type").to_pylist()
    assert told.count("update_postimage") == sum(before[key] != row for key, row in life.model.items() if key in before)
    assert (told.count("insert"), told.count("delete")) == (1, 1)
    life.tier()
    life.put(7, *range(10))
    life.tier()
    late = storage.stage_puts(life.table.stored, pa.table(late_row(1), life.table.schema), life.no_keys())
    life.put(2, 8)
    storage.commit_puts(life.table.refresh().stored, [late])  # whose file is the older one
    life.model[8, 0] = {"id": 8, "part": 0, "n": 1}
    life.table.refresh()
    life.check()
    tiering = start_tiering(life.table)
    outcomes = [tiering.run(task) for task in tiering.plan_tasks()]
    life.delete(8)
    assert not tiering.commit(outcomes)
    life.table.refresh()
    life.check()
    assert [
        row["n"] for row in fuse.open_table(life.table.stored.store, tail=False).scan("id = 8").to_arrow().to_pylist()
    ] == [1]


def late_row(n: int) -> dict[str, list[int]]:
    return {"id": [8], "part": [0], "n": [n]}


def live_by_text() -> None:
    """Keys that are alike in what bounds keep of them, and some above which there is no text."""
    url = f"memory://{uuid.uuid4().hex}"
    table = fuse.create_table(url, "id STRING, n INT", primary_key=["id"], properties={"block_rows": 4})
    keys = ["x" * 40 + letter for letter in "abcdefgh"] + ["\U0010ffff" * 12 + letter for letter in "ab"]
    table.upsert([{"id": key, "n": 0} for key in keys])
    table.maintenance.tier()
    table.upsert([{"id": key, "n": 1} for key in keys[1::2]])

    assert table.count() == len(keys)
    assert table.aggregate([], ["sum(n)"]).to_pylist() == [{"sum(n)": len(keys) // 2}]


def first_of_each(patch: pytest.MonkeyPatch) -> None:
    def first(keys: pa.Table) -> np.ndarray:
        numbered = keys.append_column("row", pa.array(np.arange(len(keys))))
        return np.sort(numbered.group_by(keys.column_names).aggregate([("row", "min")]).column("row_min").to_numpy())

    patch.setattr(hidden_rows, "last_of_each", first)


def no_vectors(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(hidden_rows, "_leave_out_vector", lambda *_: None)


def believe_another_tail(patch: pytest.MonkeyPatch) -> None:
    real = hidden_rows._compare

    def compare(reader: Any, base: Any, hot_blocks: pa.Table, known: Any) -> Any:
        if known is not None:
            kept = known.hot & set(hot_blocks.column("id").to_pylist())
            known = hidden_rows._Hits(kept, known.base, known.in_base, known.last)
        return real(reader, base, hot_blocks, known)

    patch.setattr(hidden_rows, "_compare", compare)


def forget_deletes(patch: pytest.MonkeyPatch) -> None:
    real = hidden_rows._KeyReader.read_hot

    def read_hot(self: Any, hot_blocks: pa.Table) -> list[pa.Table]:
        changes = hot_blocks.column("change").to_pylist()
        found = zip(real(self, hot_blocks), changes, strict=True)
        return [keys.slice(0, 0) if change == "delete" else keys for keys, change in found]

    patch.setattr(hidden_rows._KeyReader, "read_hot", read_hot)


def _of_first(sought: SoughtKeys) -> SoughtKeys:
    return SoughtKeys(sought.keys.select(["0"]))


def first_column_alone(patch: pytest.MonkeyPatch) -> None:
    real = SoughtKeys.rows_in
    patch.setattr(SoughtKeys, "rows_in", lambda self, rows: real(_of_first(self), rows.select(["0"])))


def bounds_of_some_keys(patch: pytest.MonkeyPatch) -> None:
    real = SoughtKeys.may_be_in
    patch.setattr(SoughtKeys, "may_be_in", lambda self, *asked: real(SoughtKeys(self.keys.slice(0, 1)), *asked))


def count_hidden_rows(patch: pytest.MonkeyPatch) -> None:
    counts = cached_property(lambda frame: frame.row_counts)
    counts.__set_name__(BlockFrame, "live_row_counts")
    patch.setattr(BlockFrame, "live_row_counts", counts)


def hot_blocks_as_they_are(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(prefetch, "live_among", lambda blocks, position: None)


def tier_without_vectors(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(tier_by_key, "_rows_to_delete", lambda table: {})


def compact_what_counts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compact.storage, "stored_blocks", lambda table: table.blocks())


def changes_by_ids_alone(patch: pytest.MonkeyPatch) -> None:
    def changed(before: Any, after: Any) -> Any:
        old, new = before.blocks(), after.blocks()
        return diff._blocks_not_in(old, new), diff._blocks_not_in(new, old)

    patch.setattr(diff, "_changed_by_key", changed)


def filter_before_keys(patch: pytest.MonkeyPatch) -> None:
    """Hot blocks that a condition such as ``n < 3`` rules out hide nothing."""
    real = hidden_rows._KeyReader.read_hot

    def read_hot(self: Any, hot_blocks: pa.Table) -> list[pa.Table]:
        least = hot_blocks.column("c.3.min").to_pylist()
        found = zip(real(self, hot_blocks), least, strict=True)
        return [keys if low is None or low < 3 else keys.slice(0, 0) for keys, low in found]

    patch.setattr(hidden_rows._KeyReader, "read_hot", read_hot)


def deletes_hide_the_tail_alone(patch: pytest.MonkeyPatch) -> None:
    real = hidden_rows._KeyReader.read_hot

    def read_hot(self: Any, hot_blocks: pa.Table) -> list[pa.Table]:
        found, puts = [], None
        for keys, change in zip(real(self, hot_blocks), hot_blocks.column("change").to_pylist(), strict=True):
            if change == "delete":
                found.append(keys.slice(0, 0) if puts is None else keys.join(puts, ["0", "1"], join_type="left semi"))
            else:
                found.append(keys)
                puts = keys if puts is None else pa.concat_tables([puts, keys])
        return found

    patch.setattr(hidden_rows._KeyReader, "read_hot", read_hot)


def rewritten_blocks_are_known(patch: pytest.MonkeyPatch) -> None:
    real = hidden_rows._compare

    def compare(reader: Any, base: Any, hot_blocks: pa.Table, known: Any) -> Any:
        return real(reader, base, hot_blocks, None if known is None else replace(known, base=frozenset(base.ids)))

    patch.setattr(hidden_rows, "_compare", compare)


def last_by_file_order(patch: pytest.MonkeyPatch) -> None:
    real = hidden_rows._compare
    patch.setattr(
        hidden_rows, "_compare", lambda reader, base, hot, known: real(reader, base, hot.sort_by("id"), known)
    )


def bounds_that_were_cut(patch: pytest.MonkeyPatch) -> None:
    """The greatest is a prefix of what it bounds, and not raised."""
    real = SoughtKeys.may_be_in

    def may_be_in(self: SoughtKeys, bounds: Any, units: int) -> Any:
        cut = [each and replace(each, max=pc.if_else(each.max_cut, each.min, each.max)) for each in bounds]
        return real(self, cut, units)

    patch.setattr(SoughtKeys, "may_be_in", may_be_in)


def bounds_that_are_missing(patch: pytest.MonkeyPatch) -> None:
    real = SoughtKeys.may_be_in

    def may_be_in(self: SoughtKeys, bounds: Any, units: int) -> Any:
        known = [np.ones(units, np.bool_) if each is None else np.asarray(each.max.is_valid()) for each in bounds]
        return real(self, bounds, units) & np.logical_and.reduce(known)

    patch.setattr(SoughtKeys, "may_be_in", may_be_in)


MUTANTS = [
    filter_before_keys,
    deletes_hide_the_tail_alone,
    rewritten_blocks_are_known,
    last_by_file_order,
    bounds_that_were_cut,
    bounds_that_are_missing,
    first_of_each,
    no_vectors,
    believe_another_tail,
    forget_deletes,
    first_column_alone,
    bounds_of_some_keys,
    count_hidden_rows,
    hot_blocks_as_they_are,
    tier_without_vectors,
    compact_what_counts,
    changes_by_ids_alone,
]


def test_the_life_itself_is_as_it_should_be() -> None:
    live()
    live_by_text()


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_a_variant_is_found_out(mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)

    with pytest.raises((AssertionError, fuse.StorageError)):
        (live_by_text if mutant in (bounds_that_were_cut, bounds_that_are_missing) else live)()


def test_without_the_guard_a_merge_makes_two_rows_of_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(KeyedRules, "check_commit", lambda *_: None)
    life = Life()
    life.put(0, 1, 2)
    life.tier()
    clauses = ("update", "insert", None)
    HeapRows(life.table).merge([{"id": 1, "part": 0, "n": 9}], ["n"], clauses, merge_schema=False)
    life.table.refresh()

    with pytest.raises(AssertionError):
        life.check()
