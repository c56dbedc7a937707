"""Space-filling curves: one number for the ranks that a row has in several columns, near for rows that are near in all.

What is numbered is not values but ranks, spread evenly over the curve: a column whose values crowd together, or that
has few of them, gets as fine a part in it as any other. Knows no rows and no types.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

_CurvePositions = npt.NDArray[np.uint64]
_Ranks = npt.NDArray[np.int64]

_CURVE_BITS = 63
"""Of the number on the curve, shared among the columns."""
_MAX_BITS_PER_COLUMN = 20
"""Bits of one column at most: a million cells are as many as there are rows to a block."""


def zorder_positions(ranks: Sequence[_Ranks]) -> _CurvePositions:
    """The place of each row on the Z-order curve (G. M. Morton, A Computer Oriented Geodetic Data Base, IBM 1966)."""
    bits = _bits_per_column(len(ranks))
    return _interleave_bits([_quantiles(each, bits) for each in ranks], bits)


def hilbert_positions(ranks: Sequence[_Ranks]) -> _CurvePositions:
    """The place of each row on the Hilbert curve, of which neighbours are neighbours in space.

    J. Skilling, Programming the Hilbert curve, AIP Conference Proceedings 707, 381 (2004): AxesToTranspose, on whole
    columns.
    """
    bits = _bits_per_column(len(ranks))
    axes = [_quantiles(each, bits) for each in ranks]
    one = np.uint64(1)
    for bit in range(bits - 1, 0, -1):
        mask = (one << np.uint64(bit)) - one
        for axis, values in enumerate(axes):
            flip = (values >> np.uint64(bit)) & one == one
            exchanged = np.where(flip, np.uint64(0), (axes[0] ^ values) & mask)
            axes[0] = np.where(flip, axes[0] ^ mask, axes[0] ^ exchanged)
            if axis:
                axes[axis] = values ^ exchanged
    for axis in range(1, len(axes)):
        axes[axis] = axes[axis] ^ axes[axis - 1]
    turned = np.zeros_like(axes[0])
    for bit in range(bits - 1, 0, -1):
        set_ = (axes[-1] >> np.uint64(bit)) & one == one
        turned ^= np.where(set_, (one << np.uint64(bit)) - one, np.uint64(0))
    return _interleave_bits([values ^ turned for values in axes], bits)


CURVES: Mapping[str, Callable[[Sequence[_Ranks]], _CurvePositions]] = {
    "zorder": zorder_positions,
    "hilbert": hilbert_positions,
}


def _quantiles(ranks: _Ranks, bits: int) -> _CurvePositions:
    """The share of rows with a lower rank, in ``bits`` bits; rows of one rank share a number."""
    below = np.concatenate([[0], np.cumsum(np.bincount(ranks))])[ranks]
    return (below.astype(np.float64) * ((1 << bits) / max(len(ranks), 1))).astype(np.uint64)


def _bits_per_column(columns: int) -> int:
    return max(min(_CURVE_BITS // columns, _MAX_BITS_PER_COLUMN), 1)


def _interleave_bits(axes: Sequence[_CurvePositions], bits: int) -> _CurvePositions:
    """One bit of each in turn, the highest ones first."""
    found = np.zeros(len(axes[0]), np.uint64)
    for bit in range(bits - 1, -1, -1):
        for values in axes:
            found = (found << np.uint64(1)) | ((values >> np.uint64(bit)) & np.uint64(1))
    return found
