"""Masks and Arrow's truths say the same, wherever they begin and whatever is NULL."""

import numpy as np
import pyarrow as pa
import pytest

from fuse_storage.bitmaps import pack_mask, unpack_mask


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 17, 200])
def test_packing_is_what_arrow_does(count: int) -> None:
    mask = np.random.default_rng(count).random(count) < 0.5

    packed = pack_mask(mask)
    packed.validate(full=True)
    assert packed.equals(pa.array(mask))
    assert pack_mask(np.repeat(mask, 2)[::2]).equals(packed)
    assert unpack_mask(packed).tolist() == mask.tolist()


@pytest.mark.parametrize("chance", [0.0, 0.3, 1.0])
def test_any_part_of_an_array(chance: float) -> None:
    random = np.random.default_rng(7)
    values = [None if random.random() < chance else bool(random.integers(2)) for _ in range(40)]
    truths = pa.array(values, pa.bool_())

    for start in range(20):
        for count in (0, 1, 5, 8, 20):
            part = truths.slice(start, count)
            mask = unpack_mask(part)
            assert mask.dtype == np.bool_
            assert mask.tolist() == [value is True for value in values[start : start + count]]
            mask[:] = True  # its own memory
            assert part.to_pylist() == values[start : start + count]


def test_chunks_are_one_mask() -> None:
    chunks = [pa.array([True, None]), pa.array([], pa.bool_()), pa.array([False, True, True])[1:]]

    assert unpack_mask(pa.chunked_array(chunks)).tolist() == [True, False, True, True]
    assert unpack_mask(pa.chunked_array([], pa.bool_())).tolist() == []
