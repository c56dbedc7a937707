"""Rows of one file that count before and after are no changes: they are not compared, and blocks of them not read."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.changes import row_diff

Row = dict[str, Any]
ROWS: list[Row] = [{"id": number, "n": number % 10} for number in range(2000)]


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows are hashed at a time."""
    counts, real = list[int](), row_diff.row_hashes

    def row_hashes(rows: pa.Table) -> Any:
        counts.append(len(rows))
        return real(rows)

    monkeypatch.setattr(row_diff, "row_hashes", row_hashes)
    return counts


def _create(**options: Any) -> fuse.Table:
    properties = {"block_rows": 500, "zone_rows": 100, **options.pop("properties", {})}
    return fuse.create_table(f"memory://{uuid.uuid4().hex}", "id BIGINT, n INT", properties=properties, **options)


def _told(table: fuse.Table, since: str, **options: Any) -> list[tuple[str, int, int]]:
    rows = table.changes(since, **options).to_arrow().to_pylist()
    return sorted((row["_change_type"], row["id"], row["n"]) for row in rows)


@pytest.mark.parametrize("after", [lambda table: None, lambda table: table.maintenance.tier()], ids=["hot", "tiered"])
def test_only_rows_that_later_ones_hide_are_compared(after: Callable[[fuse.Table], Any], hashed: list[int]) -> None:
    table = _create(primary_key=["id"])
    table.upsert(ROWS)
    table.maintenance.tier()
    since = table.snapshot.id
    table.upsert([{"id": 3, "n": 30}, {"id": 4, "n": 4}, {"id": 1203, "n": 31}, {"id": 9000, "n": 0}])
    table.delete_keys([700, 8000])
    after(table)

    assert _told(table, since) == [
        ("delete", 700, 0),
        ("insert", 9000, 0),
        ("update_postimage", 3, 30),
        ("update_postimage", 1203, 31),
        ("update_preimage", 3, 3),
        ("update_preimage", 1203, 3),
    ]
    assert sum(hashed) == (4 + 4) + (3 + 3)  # candidates, one of which is put as it was, and keys of the others


def test_rows_that_a_vector_hides_are_told_without_comparing_any(hashed: list[int]) -> None:
    table = _create(properties={"delete_mode": "merge-on-read"})
    table.append(ROWS)
    since = table.snapshot.id
    table.delete("id IN (3, 1203)")

    assert _told(table, since) == [("delete", 3, 3), ("delete", 1203, 3)]
    assert _told(table, since, where="id > 1000") == [("delete", 1203, 3)]
    assert hashed == []


def test_a_condition_is_asked_of_what_a_row_was_and_of_what_it_is() -> None:
    table = _create(primary_key=["id"])
    table.upsert(ROWS)
    table.maintenance.tier()
    since = table.snapshot.id
    table.upsert([{"id": 3, "n": 30}, {"id": 14, "n": 1}, {"id": 25, "n": 6}])

    assert _told(table, since, where="n > 3") == [
        ("delete", 14, 4),
        ("insert", 3, 30),
        ("update_postimage", 25, 6),
        ("update_preimage", 25, 5),
    ]


def test_a_row_that_comes_again_elsewhere_is_no_change() -> None:
    table = _create(properties={"delete_mode": "merge-on-read"})
    table.append(ROWS)
    since = table.snapshot.id
    table.delete("id IN (7, 8)")
    table.append([{"id": 7, "n": 8}, {"id": 8, "n": 8}])

    assert _told(table, since) == [("delete", 7, 7), ("insert", 7, 8)]


def test_changes_are_counted_without_columns_and_beyond_what_memory_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    table = _create(primary_key=["id"])
    table.upsert(ROWS)
    table.maintenance.tier()
    since = table.snapshot.id
    table.upsert([{"id": number, "n": 10} for number in range(0, 2000, 7)])
    expected = _told(table, since)

    assert table.changes(since, columns=[]).to_arrow().num_rows == len(expected) == 2 * 286
    monkeypatch.setattr(row_diff, "_MAX_KEPT_ROWS", 100)
    assert _told(table, since) == expected
