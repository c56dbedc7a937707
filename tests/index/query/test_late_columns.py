"""Other columns of rows that matched are read for many blocks at once, in order, and within bounds."""

import numpy as np
import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.query import late_columns
from fuse_storage import StoredTable

ROWS = pa.table(
    {
        "id": range(3_000),
        "k": [n * 7919 % 3_000 for n in range(3_000)],
        "word": [None if n % 11 == 0 else f"w{n}" for n in range(3_000)],
        "tags": [[n] * (n % 3) for n in range(3_000)],
        "place": [{"x": n, "name": str(n)} for n in range(3_000)],
    }
)


@pytest.fixture(scope="module")
def table() -> fuse.Table:
    table = fuse.create_table(
        "memory://late-columns", ROWS.schema, properties={"block_rows": 100, "zone_rows": 40, "page_rows": 8}
    )
    table.append(ROWS)
    return table


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many blocks' rows were read together, each time."""
    seen: list[int] = []
    read = StoredTable.read_rows

    def counted(self: StoredTable, frame: object, columns: object, found: list[object]) -> pa.Table:
        seen.append(len(found))
        return read(self, frame, columns, found)  # type: ignore[arg-type]

    monkeypatch.setattr(StoredTable, "read_rows", counted)
    return seen


@pytest.mark.parametrize("columns", [["id", "word"], ["word", "id", "k"], ROWS.column_names, ["place"]])
def test_rows_come_in_order_and_together(table: fuse.Table, batches: list[int], columns: list[str]) -> None:
    expected = ROWS.filter(pa.array(np.array(ROWS["k"]) < 200)).select(columns)

    found = table.scan("k < 200", columns=columns).to_arrow()

    assert found.to_pylist() == expected.to_pylist()
    assert batches == [30]


def test_batches_are_bounded(table: fuse.Table, batches: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(late_columns, "_MAX_BATCHED_BLOCKS", 7)
    expected = ROWS.filter(pa.array(np.array(ROWS["k"]) < 200)).to_pylist()
    assert table.scan("k < 200").to_arrow().to_pylist() == expected
    assert max(batches) == 7
    monkeypatch.setattr(late_columns, "_MAX_MASKED_ROWS", 400)
    batches.clear()
    assert table.scan("k < 200").to_arrow().to_pylist() == expected
    assert max(batches) == 4
    monkeypatch.setattr(late_columns, "_MAX_BATCHED_ROWS", 250)
    batches.clear()
    assert table.scan("k < 200").to_arrow().to_pylist() == expected
    assert max(batches) == 2


def test_blocks_with_many_rows_stand_between_those_with_few(
    table: fuse.Table, batches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_columns, "_MAX_LATE_ROWS", 50)
    where = "(id BETWEEN 1000 AND 1180) OR k < 100"  # of the block from 1000 on every row, and of the next most
    expected = [row for row in ROWS.to_pylist() if 1000 <= row["id"] <= 1180 or row["k"] < 100]

    assert table.scan(where).to_arrow().to_pylist() == expected
    assert len(batches) == 2


def test_a_limit_reads_block_by_block(table: fuse.Table, batches: list[int]) -> None:
    expected = [row for row in ROWS.to_pylist() if row["k"] < 200][:9]

    assert table.scan("k < 200", limit=9).to_arrow().to_pylist() == expected
    assert batches == []


def test_nothing_matches(table: fuse.Table) -> None:
    assert table.scan("k = 5 AND word = 'nobody'").to_arrow().num_rows == 0
    assert table.scan("k < 0").to_arrow().schema.names == ROWS.column_names
