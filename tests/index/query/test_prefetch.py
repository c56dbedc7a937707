"""Which blocks are read together."""

from types import SimpleNamespace

import numpy as np

from fuse_index.query.prefetch import join_hot_blocks


def test_hot_neighbours_are_read_together_up_to_a_number_of_rows() -> None:
    zone_rows = np.array([500, 20, 10, 30, 60, 200, 10])  # the second block has two zones
    offsets = np.array([0, 1, 3, 4, 5, 6, 7])
    blocks = SimpleNamespace(in_tail=np.array([False, *[True] * 5]), zone_offsets=offsets, zone_rows=zone_rows)

    assert join_hot_blocks(blocks, range(6), 64) == [[0], [1, 2], [3], [4], [5]]
    assert join_hot_blocks(blocks, range(6), 270) == [[0], [1, 2, 3], [4, 5]]
    assert join_hot_blocks(blocks, [1, 0, 2], 1000) == [[1], [0], [2]]
    assert join_hot_blocks(blocks, [1, 3, 5], 1000) == [[1, 3, 5]]
