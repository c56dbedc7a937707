"""Variants of our own code that forget deletion vectors in one place; each is found out by what a user would notice."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.changes import row_diff
from fuse_index.operations import dml_job, row_edits
from fuse_index.pruning import planner
from fuse_index.query import prefetch
from fuse_index.query.ranking import search
from fuse_storage import BlockFrame
from fuse_storage.deletion import stage_deletions
from fuse_storage.maintenance import clone

Patch = pytest.MonkeyPatch


def live() -> None:
    """A life of a table with deletion vectors, compared with a list at each step."""
    url = f"memory://{uuid.uuid4().hex}"
    properties = {"block_rows": 20, "zone_rows": 5, "delete_mode": "merge-on-read"}
    table = fuse.create_table(url, "id BIGINT, word STRING", properties=properties)
    table.append(pa.table({"id": range(60), "word": [f"word w{n % 3}" for n in range(60)]}))
    table.create_index("words", "full_text", ["word"])
    table.create_index("sums", "aggregate", ["word"], aggregates=["sum(id)", "count(*)"])
    stale = fuse.Table(table.stored, table.host).updating("id = 4", {"word": "'new'"})
    stale.replans = 0
    outcomes = [stale.run(task) for task in stale.plan_tasks()]
    before, known = table.snapshot.id, set(range(60))
    for gone in ({3, 19}, {20}, {0, 59}):
        table.delete(f"id IN ({', '.join(map(str, gone))})")
        known -= gone
    assert table.stored.blocks().row_counts.tolist() == [20, 20, 20]
    with pytest.raises(fuse.Conflict):
        stale.commit(outcomes)
    assert set(table.to_arrow()["id"].to_pylist()) == known
    assert table.count() == table.count("id >= 0") == table.snapshot.row_count == len(known)
    assert table.aggregate([], ["count(*)", "sum(id)"]).to_pylist() == [{"count(*)": 55, "sum(id)": sum(known)}]
    assert table.aggregate([], ["min(id)", "max(id)"]).to_pylist() == [{"min(id)": 1, "max(id)": 58}]
    assert {3, 19, 20, 0, 59} == set(table.changes(before).to_arrow()["id"].to_pylist())
    assert set(table.search("word", "word", limit=99)["id"].to_pylist()) == known
    copy = table.clone(f"memory://{uuid.uuid4().hex}")
    assert set(copy.to_arrow()["id"].to_pylist()) == known
    table.update("id IN (5, 25)", {"word": "'x'"})
    table.merge({"id": [58, 60], "word": ["word y", "word z"]}, ["id"])
    known.add(60)
    assert table.stored.blocks().live_row_counts.tolist() == [16, 18, 18, 2, 1, 1]
    assert table.count("word = 'x'") == 2
    assert table.aggregate(["word"], ["count(*)"], "id > 57").to_pylist() == [
        {"word": "word y", "count(*)": 1},
        {"word": "word z", "count(*)": 1},
    ]
    assert set(table.to_arrow()["id"].to_pylist()) == known
    half = table.snapshot.id
    table.update("id BETWEEN 41 AND 50", {"word": "'half'"})
    assert set(table.to_arrow()["id"].to_pylist()) == known
    table.set_properties({"block_rows": 100})
    table.maintenance.compact()
    assert table.stored.blocks().row_counts.tolist() == [56]
    assert sorted(table.to_arrow()["id"].to_pylist()) == sorted(known)
    assert set(table.changes(half).to_arrow()["id"].to_pylist()) == set(range(41, 51))


def _count_and_scans(patch: Patch) -> None:
    patch.setattr(planner, "leave_out_deleted", lambda blocks, zones, masks: (zones, dict(masks)))


def _statistics_and_stored_states(patch: Patch) -> None:
    patch.setattr(BlockFrame, "has_all_rows", property(lambda blocks: np.ones(len(blocks), np.bool_)))


def _exact_bounds(patch: Patch) -> None:
    patch.setattr(
        planner.ScanPlan, "always_matching_blocks", property(lambda plan: np.ones(len(plan.blocks), np.bool_))
    )
    patch.setattr(BlockFrame, "has_exact_statistics", property(lambda blocks: np.ones(len(blocks), np.bool_)))


def _changes(patch: Patch) -> None:
    patch.setattr(row_diff, "live_among", lambda blocks, block, among=None: among)


def _changes_in_one_file(patch: Patch) -> None:
    patch.setattr(row_diff, "live_row_masks", lambda blocks, numbers: {})


def _search(patch: Patch) -> None:
    patch.setattr(search, "live_among", lambda blocks, block, among=None: among)


def _statements(patch: Patch) -> None:
    patch.setattr(
        dml_job, "read_live_rows", lambda table, blocks, block, columns: table.read_block(blocks, block, columns)
    )


def _compaction(patch: Patch) -> None:
    patch.setattr(
        prefetch, "read_live_rows", lambda table, blocks, block, columns: table.read_block(blocks, block, columns)
    )


def _blocks_keep_their_ids(patch: Patch) -> None:
    """By which conflicts of statements and compactions are found, and changes."""
    staged = stage_deletions.SegmentMerger.rearrange_blocks

    def keeping(self, rows, block_indices, replaced=None):  # type: ignore[no-untyped-def]
        return staged(
            self, rows, block_indices, {name: each for name, each in (replaced or {}).items() if name != "id"}
        )

    patch.setattr(stage_deletions.SegmentMerger, "rearrange_blocks", keeping)


def _earlier_vectors(patch: Patch) -> None:
    patch.setattr(dml_job.storage, "live_among", lambda blocks, block, among=None: None)


def _updated_rows_stay(patch: Patch) -> None:
    marked = dml_job.DmlJob._stage_marked

    def some(job, rows):  # type: ignore[no-untyped-def]
        return marked(job, rows) if job.operation == "delete" else dml_job.RewriteOutcome()

    patch.setattr(dml_job.DmlJob, "_stage_marked", some)


def _updated_rows_are_lost(patch: Patch) -> None:
    patch.setattr(dml_job.NewRows, "finish", lambda rows: rows._writer.finish())


def _updates_bring_deleted_rows_back(patch: Patch) -> None:
    """Masks of live rows taken for masks of the file's rows."""
    patch.setattr(
        row_edits, "spread_mask", lambda chosen, live: np.resize(chosen, chosen.size if live is None else live.size)
    )


def _clones(patch: Patch) -> None:
    patch.setattr(clone, "has_deleted_rows", lambda blocks: False)


MUTANTS: list[Callable[[Patch], None]] = [
    _count_and_scans,
    _statistics_and_stored_states,
    _exact_bounds,
    _changes,
    _changes_in_one_file,
    _search,
    _statements,
    _compaction,
    _blocks_keep_their_ids,
    _earlier_vectors,
    _updated_rows_stay,
    _updated_rows_are_lost,
    _updates_bring_deleted_rows_back,
    _clones,
]


def test_the_life_of_a_sound_table() -> None:
    live()


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_mutant_is_killed(mutant: Callable[[Patch], None], monkeypatch: Patch) -> None:
    mutant(monkeypatch)

    with pytest.raises(BaseException):  # noqa: B017 - however it comes out
        live()
