"""Small segments merge so that appends stay cheap for ever: counted, not timed."""

import random
import uuid

import pytest

from fuse_storage import StoredTable, meter_requests, open_store
from fuse_storage.commit.merge_segments import plan_segment_merges
from fuse_storage.testing import check_invariants
from tests.storage.small import COLUMNS, Totals, append, ids_of, rows


@pytest.mark.parametrize(
    ("counts", "spans"),
    [
        ([], []),
        ([1] * 7, []),
        ([1] * 8, [(0, 8)]),
        ([1] * 16, [(0, 8), (8, 16)]),
        ([1] * 64, [(0, 64)]),
        ([8] * 7 + [1] * 8, [(0, 15)]),
        ([700] + [1] * 8 + [700], [(1, 9)]),
        ([700, 1] * 8, []),
        ([700, 1, 20, 300, 700, 1, 1], [(1, 4)]),
        ([10, 1] * 8, [(0, 15)]),
        ([300] * 8, [(0, 3), (3, 6)]),
        ([1000] * 20, []),
        ([501] * 8, []),
        ([500] * 5, [(0, 2), (2, 4)]),
        ([499, 2, 500], [(0, 2)]),
    ],
)
def test_what_merges_is_planned(counts: list[int], spans: list[tuple[int, int]]) -> None:
    assert plan_segment_merges(counts) == spans


def appended(sizes: list[int]) -> tuple[list[int], int]:
    """Segments after appending segments of these sizes one by one, and how many rows of blocks were copied."""
    counts: list[int] = []
    copied = 0
    for size in sizes:
        counts.append(size)
        for start, end in reversed(plan_segment_merges(counts)):
            copied += sum(counts[start:end])
            counts[start:end] = [sum(counts[start:end])]
    return counts, copied


@pytest.mark.parametrize("sizes", [[1], [1, 10], [100], [3, 900], [501], [1000], [1, 1, 1, 400]])
def test_segments_stay_few_and_copies_rare_whatever_is_appended(sizes: list[int]) -> None:
    many = sizes * (600 // len(sizes))
    counts, copied = appended(many)

    assert sum(counts) == sum(many)
    assert max(counts) <= 1000
    assert len(counts) <= 2 * sum(many) / 500 + 60
    assert copied <= 6 * sum(many)


@pytest.mark.alike
@pytest.mark.parametrize("seed", range(5))
def test_random_sizes_merge_as_well(seed: int) -> None:
    draw = random.Random(seed)
    many = [int(10 ** draw.uniform(0, 3)) for _ in range(600)]

    counts, copied = appended(many)

    assert sum(counts) == sum(many)
    assert max(counts) <= 1000
    assert len(counts) <= 2 * sum(many) / 500 + 60
    assert copied <= 6 * sum(many)


def test_two_hundred_appends_keep_order_row_numbers_and_few_segments(url: str) -> None:
    table = StoredTable.create(url, COLUMNS)
    for row_id in range(200):
        table = append(table, row_id)

    assert ids_of(table) == list(range(200))
    assert table.snapshot.segment_count == 3 + 1
    assert table.snapshot.next_row_id == 200
    assert table.segments().block_counts.tolist() == [64, 64, 64, 8]
    check_invariants(table)


def test_a_merge_touches_no_block(url: str) -> None:
    table = StoredTable.create(url, COLUMNS).transaction().add_index("totals", {"key": "70a1"}).commit()
    for row_id in range(7):
        table = append(table, row_id, builders=[Totals()])
    counted = meter_requests(open_store(url))

    after = append(StoredTable.open(counted), 7, builders=[Totals()])

    assert after.snapshot.segment_count == 1
    assert [key for _, key, _ in counted.reads if key.startswith(("_b/", "_i/"))] == []
    assert len([key for _, key, _ in counted.writes if key.startswith("_b/")]) == 1


def test_many_staged_segments_merge_within_their_commit(url: str) -> None:
    table = StoredTable.create(url, COLUMNS)
    parts = []
    for row_id in range(64):
        with table.writer() as writer:
            writer.write(rows([row_id]))
            parts += writer.finish()

    table = table.transaction().append(parts).commit()

    assert (table.snapshot.segment_count, table.snapshot.block_count) == (1, 64)
    assert ids_of(table) == list(range(64))
    check_invariants(table)


def test_segments_grow_no_larger_than_the_table_says() -> None:
    properties = {"block_rows": 1, "segment_blocks": 4}
    table = StoredTable.create(f"memory://{uuid.uuid4().hex}", COLUMNS, properties=properties)
    for row_id in range(23):
        table = append(table, row_id)
        assert max(table.segments().block_counts.tolist()) <= 4

    compacted = table.transaction().compact_segments().commit()

    assert compacted.segments().block_counts.tolist() == [4, 4, 4, 4, 4, 3]
    assert ids_of(compacted) == list(range(23))
    check_invariants(compacted)
