"""Pages that hold the wanted rows: found once for all columns whose pages hold the same rows."""

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuse_storage import Schema, open_store
from fuse_storage.parquet.pages import WantedRows, mask_of_runs
from fuse_storage.parquet.writer import BlockFile, BlockOptions, read_block, write_block


@given(st.lists(st.integers(1, 5), min_size=1, max_size=8), st.booleans(), st.data())
def test_needed_pages_are_those_of_wanted_rows_and_the_dictionary(
    sizes: list[int], has_dictionary: bool, data: st.DataObject
) -> None:
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=sum(sizes), max_size=sum(sizes))))
    counts = np.array([0, *sizes] if has_dictionary else sizes, np.int64)
    ends = np.cumsum(counts)
    needed = [not count or mask[end - count : end].any() for count, end in zip(counts, ends, strict=True)]

    chosen, covered = WantedRows(mask).covering(counts)

    assert chosen.tolist() == np.flatnonzero(needed).tolist()
    assert mask_of_runs([covered], [len(mask)]).tolist() == np.repeat(needed, counts).tolist()
    assert all(start < end for start, end in covered)
    assert all(one[1] < other[0] for one, other in pairwise(covered))


@pytest.mark.parametrize("counts", [[], [0], [2, 2], [0, 3, 3]])
def test_pages_whose_rows_are_not_known_are_all_needed(counts: list[int]) -> None:
    wanted = WantedRows(np.array([False, True, False]))

    chosen, covered = wanted.covering(np.array(counts, np.int64))

    assert chosen.tolist() == list(range(len(counts)))
    assert covered == wanted.whole == ((0, 3),)


def test_a_read_of_a_row_looks_once_for_the_pages_of_all_columns_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pa.table({f"c{number}": np.arange(400) for number in range(9)} | {"text": ["x" * 2_000] * 400})
    schema, store = Schema.create(rows.schema), open_store("memory://looks-once")
    data, layout = write_block(rows, schema, BlockOptions(page_rows=100, zone_rows=200, encoding="plain"))
    store.create("_b/1.parquet", data)
    block = BlockFile("_b/1.parquet", layout.footer_offset, layout.footer_length)
    looked, find = list[int](), WantedRows._find_covering

    def counted(wanted: WantedRows, row_counts: Any) -> Any:
        looked.append(len(row_counts))
        return find(wanted, row_counts)

    monkeypatch.setattr(WantedRows, "_find_covering", counted)
    found = read_block(store, block, schema, rows.column_names, row_mask=np.arange(400) == 250)

    assert found.to_pylist() == rows.slice(250, 1).to_pylist()
    assert sorted(looked) == [2, 2, 3, 3]  # of both zones, with a dictionary and without
