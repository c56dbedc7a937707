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
"""Bits of a position on the curve, shared among the columns."""
_MAX_BITS_PER_COLUMN = 20
"""Bits of one column at most: a million cells are as many as there are rows to a block."""


def zorder_positions(ranks: Sequence[_Ranks]) -> _CurvePositions:
    """Place rows on the Z-order curve: bits of their ranks taken in turn from each column, the highest ones first.

    ``ranks``: one int64 array per column, each of shape (rows,), from 0. Returns uint64, shape (rows,).
    G. M. Morton, A Computer Oriented Geodetic Data Base, IBM 1966. The 16 cells of a square, in the order of the curve:

    >>> x, y = (numbers.ravel() for numbers in np.indices((4, 4)))
    >>> np.argsort(np.argsort(zorder_positions([x, y]))).reshape(4, 4)
    array([[ 0,  1,  4,  5],
           [ 2,  3,  6,  7],
           [ 8,  9, 12, 13],
           [10, 11, 14, 15]])
    """
    bits = _bits_per_column(len(ranks))
    return _interleave_bits([_quantiles(each, bits) for each in ranks], bits)


def hilbert_positions(ranks: Sequence[_Ranks]) -> _CurvePositions:
    """Place rows on the Hilbert curve, on which each cell comes after one of its neighbours in space.

    ``ranks``: one int64 array per column, each of shape (rows,), from 0. Returns uint64, shape (rows,). The 16 cells of
    a square, in the order of the curve:

    >>> x, y = (numbers.ravel() for numbers in np.indices((4, 4)))
    >>> np.argsort(np.argsort(hilbert_positions([x, y]))).reshape(4, 4)
    array([[ 0,  3,  4,  5],
           [ 1,  2,  7,  6],
           [14, 13,  8,  9],
           [15, 12, 11, 10]])

    This is AxesToTranspose of J. Skilling, Programming the Hilbert curve, AIP Conference Proceedings 707, 381 (2004),
    on whole columns. It turns coordinates, in place, into the position on the curve in its transposed form: as many
    words as there are axes, of which the interleaved bits (the highest bit of each in turn, then the next ones) are the
    position.
    """
    bits = _bits_per_column(len(ranks))
    axes = [_quantiles(each, bits) for each in ranks]
    one = np.uint64(1)
    # 1. Undo the turns. The highest bits of the axes say in which half of each axis a cell is, that is, in which of the
    #    2^axes parts of the cube. Each part holds a smaller copy of the curve, reflected or with two axes exchanged, so
    #    that its ends meet those of the parts beside it. Going down bit by bit, the bits below this one (the mask) are
    #    brought back into the position of the first part: in the upper half of an axis, the first axis is reflected
    #    (all bits below are inverted); in its lower half, the first axis and this one are exchanged, bit by bit, by the
    #    XOR trick: what two words differ in, XORed into both.
    for bit in range(bits - 1, 0, -1):
        mask = (one << np.uint64(bit)) - one
        for axis, values in enumerate(axes):
            is_upper_half = (values >> np.uint64(bit)) & one == one
            exchanged_bits = np.where(is_upper_half, np.uint64(0), (axes[0] ^ values) & mask)
            axes[0] = np.where(is_upper_half, axes[0] ^ mask, axes[0] ^ exchanged_bits)
            if axis:
                axes[axis] = values ^ exchanged_bits
    # 2. From Gray code to numbers. The curve visits the parts in the order of a Gray code, in which neighbours differ
    #    in one bit: of two axes 00, 01, 11, 10. The n-th part has the number of which each bit is the XOR of all bits
    #    of the code down to it: 00, 01, 10, 11. First within a level, from axis to axis...
    for axis in range(1, len(axes)):
        axes[axis] = axes[axis] ^ axes[axis - 1]
    #    ... so that the last axis holds the XOR of its whole level, which then inverts all bits of all levels below.
    inverted_bits = np.zeros_like(axes[0])
    for bit in range(bits - 1, 0, -1):
        is_odd = (axes[-1] >> np.uint64(bit)) & one == one
        inverted_bits ^= np.where(is_odd, (one << np.uint64(bit)) - one, np.uint64(0))
    return _interleave_bits([values ^ inverted_bits for values in axes], bits)


CURVES: Mapping[str, Callable[[Sequence[_Ranks]], _CurvePositions]] = {
    "zorder": zorder_positions,
    "hilbert": hilbert_positions,
}


def _quantiles(ranks: _Ranks, bits: int) -> _CurvePositions:
    """The share of rows with a lower rank, in ``bits`` bits; rows of one rank share a number. Shape (rows,) each."""
    lower_row_counts = np.concatenate([[0], np.cumsum(np.bincount(ranks))])[ranks]
    return (lower_row_counts.astype(np.float64) * ((1 << bits) / max(len(ranks), 1))).astype(np.uint64)


def _bits_per_column(columns: int) -> int:
    return max(min(_CURVE_BITS // columns, _MAX_BITS_PER_COLUMN), 1)


def _interleave_bits(axes: Sequence[_CurvePositions], bits: int) -> _CurvePositions:
    """Take one bit of each axis in turn, the highest ones first: of 0b10 and 0b11 comes 0b1101."""
    positions = np.zeros(len(axes[0]), np.uint64)
    for bit in range(bits - 1, -1, -1):
        for values in axes:
            positions = (positions << np.uint64(1)) | ((values >> np.uint64(bit)) & np.uint64(1))
    return positions
