"""Variants of our own hot code that are wrong in one place; each is found out by what a user would notice."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

import fuse_index as fuse
import fuse_storage as storage
from fuse_index.hot import tier_heap
from fuse_index.operations import dml_job
from fuse_index.table.tier import start_tiering
from fuse_storage.commit import draft, replace_blocks
from fuse_storage.hot import chain, tail
from fuse_storage.hot_commit import append as hot_append
from fuse_storage.hot_commit import snapshot_of
from fuse_storage.testing import check_invariants

Patch = pytest.MonkeyPatch


def rows(*ids: int) -> pa.Table:
    return pa.table({"id": pa.array(ids, pa.int64()), "word": [f"w{n}" for n in ids]})


def ids(table: fuse.Table, where: str | None = None) -> list[int]:
    return sorted(table.to_arrow(where).column("id").to_pylist())


def live(url: str) -> None:
    """A life of a table with hot commits, compared with a list at each step."""
    table = fuse.create_table(url, "id BIGINT, word STRING", properties={"hot_rows": 10, "block_rows": 4})
    table.append(rows(*range(20, 32)))
    known = list(range(20, 32))
    for version, number in enumerate((1, 7, 3, 9)):
        table.append(rows(number), application=("job", version))
        known.append(number)
    assert ids(fuse.open_table(url)) == sorted(known)
    version = table.version
    assert table.append(rows(9), application=("job", 3)).version == version  # it was committed before
    for where, expected in (("id < 5", [1, 3]), ("word = 'w7'", [7]), ("id = 9 OR id = 21", [9, 21])):
        assert ids(fuse.open_table(url), where) == expected
        assert fuse.open_table(url).count(where) == len(expected)
    assert fuse.open_table(url).aggregate([], ["sum(id)"]).to_pylist() == [{"sum(id)": sum(known)}]
    before = fuse.open_table(url, version=table.version)
    stale, late = fuse.open_table(url), fuse.open_table(url)
    table.add_column("more", "int", default=5)
    table.append(rows(11).append_column("more", pa.array([6], pa.int32())))
    known.append(11)
    stale.append(rows(12))
    known.append(12)
    assert sorted(fuse.open_table(url).changes(before.snapshot.id).to_arrow().column("id").to_pylist()) == [11, 12]
    table.refresh().tag("kept")
    other = fuse.open_table(url)
    other.append(rows(13))
    known.append(13)
    job = start_tiering(table)
    outcomes = [job.run(task) for task in job.plan_tasks()]
    other.append(rows(15))
    known.append(15)
    assert not job.commit(outcomes)
    assert fuse.open_table(url).tail.rows == 1  # which came meanwhile
    assert ids(fuse.open_table(url)) == sorted(known)
    table.maintenance.tier()
    with pytest.raises(fuse.Conflict):
        late.delete("id = 13 OR id = 20")
    assert ids(before) == sorted(set(known) - {11, 12, 13, 15})
    assert fuse.open_table(url).tail.rows == 0
    other.delete("id = 3")
    known.remove(3)
    assert ids(fuse.open_table(url)) == sorted(known)
    assert ids(fuse.open_table(url, at="kept")) == sorted({*known, 3} - {13, 15})
    fuse.open_table(url).drop_column("word")
    with pytest.raises(fuse.Conflict):
        other.append(rows(14), hot=True)
    check_invariants(fuse.open_table(url).stored)
    assert fuse.open_table(url).snapshot.row_count == len(known)


def _application_forgotten(patch: Patch) -> None:
    patch.setattr(hot_append, "is_applied", lambda state, application: False)


def _columns_unchecked(patch: Patch) -> None:
    patch.setattr(hot_append, "check_hot_columns", lambda blocks, base, state: None)


def _row_ids_from_zero(patch: Patch) -> None:
    patch.setattr(hot_append, "number_rows", lambda blocks, row_id: blocks)


def _statistics_of_the_first_block(patch: Patch) -> None:
    real = tail.hot_block_rows
    first: list[Any] = []

    def same(entry: Any, state: Any) -> pa.Table:
        found = real(entry, state)
        first.append(found)
        for name in (name for name in found.column_names if name not in tail.TAIL_SCHEMA.names):
            found = found.set_column(found.column_names.index(name), name, first[0].column(name))
        return found

    patch.setattr(tail, "hot_block_rows", same)


def _later_hot_rows_forgotten(patch: Patch) -> None:
    real = tail.state_after
    patch.setattr(chain, "state_after", lambda state, entry: replace(real(state, entry), hot_rows=state.hot_rows))


def _tail_twice_where_carried(patch: Patch) -> None:
    real = draft.read_tail

    def twice(store: Any, state: Any, cache: Any = None) -> Any:
        found = real(store, state, cache)
        return None if found is None else pa.concat_tables([found, found])

    patch.setattr(draft, "read_tail", twice)


def _tail_left_after_tiering(patch: Patch) -> None:
    patch.setattr(replace_blocks.np, "setdiff1d", lambda every, removed: every)


def _all_of_the_tail_taken(patch: Patch) -> None:
    patch.setattr(replace_blocks.np, "setdiff1d", lambda every, removed: every[:0])


def _last_block_left_out_of_tiering(patch: Patch) -> None:
    real = tier_heap.prefetch_blocks
    patch.setattr(tier_heap, "prefetch_blocks", lambda table, blocks, numbers: real(table, blocks, list(numbers)[:-1]))


def _tier_changes_rows(patch: Patch) -> None:
    """Tiering does not say that it changed no row."""
    real = replace_blocks.ReplaceBlocks.apply

    def apply(self: Any, draft_: Any) -> None:
        real(replace(self, same_rows=False), draft_)

    patch.setattr(replace_blocks.ReplaceBlocks, "apply", apply)


def _unseen_hot_rows_do_not_matter(patch: Patch) -> None:
    patch.setattr(dml_job.DmlJob, "_leaves_rows", lambda self, head: True)
    patch.setattr(replace_blocks.ReplaceBlocks, "_check_unseen_blocks", lambda self, draft_: None)


def _replanned_without_asking_what_came(patch: Patch) -> None:
    patch.setattr(dml_job.DmlJob, "_leaves_rows", lambda self, head: True)


def _named_before_its_tail(patch: Patch) -> None:
    """A tag of a hot head names the snapshot that hot commits followed."""

    def older(table: Any) -> Any:
        return table if table.snapshot.base is None else table.at_entry(table.entry, table.snapshot.stored)

    patch.setattr("fuse_storage.table.snapshot_of", older)
    patch.setattr(storage, "snapshot_of", older)
    assert snapshot_of.snapshot_of is not older


def _versions_not_counted(patch: Patch) -> None:
    real = tail.state_after
    patch.setattr(
        chain, "state_after", lambda state, entry: replace(real(state, entry), stated_version=state.stated_version)
    )


def _seals_of_another_block(patch: Patch) -> None:
    real = hot_append.write_block

    def swapped(*arguments: Any) -> Any:
        data, layout = real(*arguments)
        return data, replace(layout, seal=layout.seal ^ 1)

    patch.setattr(hot_append, "write_block", swapped)


MUTANTS: list[Callable[[Patch], None]] = [
    _application_forgotten,
    _columns_unchecked,
    _row_ids_from_zero,
    _statistics_of_the_first_block,
    _later_hot_rows_forgotten,
    _tail_twice_where_carried,
    _tail_left_after_tiering,
    _all_of_the_tail_taken,
    _last_block_left_out_of_tiering,
    _tier_changes_rows,
    _unseen_hot_rows_do_not_matter,
    _replanned_without_asking_what_came,
    _named_before_its_tail,
    _versions_not_counted,
    _seals_of_another_block,
]


def test_the_life_of_a_sound_table() -> None:
    live(f"memory://{uuid.uuid4().hex}")


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_killed(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    monkeypatch.setattr(hot_append, "COMMIT_TIMEOUT_SECONDS", 1.0)
    mutant(monkeypatch)

    with pytest.raises(BaseException):  # noqa: B017 - however it comes out
        live(f"memory://{uuid.uuid4().hex}")
