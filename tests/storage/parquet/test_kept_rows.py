"""Rows of a mask, taken from a column as parts of it or copied."""

import numpy as np
import pyarrow as pa
import pytest

from fuse_storage.parquet.projection import keep_rows

ROWS = 50_000
LEFT_OUT = [
    [],
    [0],
    [ROWS - 1],
    [0, 1, 2, 999, 20_000, 30_000, ROWS - 1],
    range(0, ROWS, 10),
    range(1, ROWS),
    range(ROWS),
]


@pytest.mark.parametrize("rows", LEFT_OUT, ids=["none", "first", "last", "few", "many", "all but one", "all"])
@pytest.mark.parametrize("kind", [pa.int64(), pa.string(), pa.list_(pa.int64())], ids=str)
def test_rows_are_those_of_a_filter(kind: pa.DataType, rows: list[int]) -> None:
    values = [[number] if pa.types.is_nested(kind) else number % 7 or None for number in range(ROWS)]
    column = pa.chunked_array([pa.array(values[:20_000]).cast(kind), pa.array(values[20_000:]).cast(kind)])
    mask = np.ones(ROWS, np.bool_)
    mask[list(rows)] = False

    found = keep_rows({"a": column, "b": pa.chunked_array([pa.array(mask)])}, mask)

    assert found["a"].equals(column.filter(pa.array(mask)))
    assert found["b"].to_pylist() == [True] * int(mask.sum())


def test_few_rows_left_out_copy_nothing_and_few_kept_do_not_hold_the_rest() -> None:
    column = pa.chunked_array([pa.array(np.arange(ROWS))])
    address = column.chunk(0).buffers()[1].address
    mask = np.ones(ROWS, np.bool_)
    mask[[7, 30_000]] = False

    assert {chunk.buffers()[1].address for chunk in keep_rows({"a": column}, mask)["a"].chunks} == {address}
    assert sum(buffer.size for buffer in keep_rows({"a": column}, ~mask)["a"].chunk(0).buffers() if buffer) < 1_000


def test_of_no_rows_none_are_kept() -> None:
    empty = pa.chunked_array([], pa.int64())

    assert keep_rows({"a": empty}, np.zeros(0, np.bool_))["a"].equals(empty)
