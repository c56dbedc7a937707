"""Which values are among some: ``IN`` of a list, by a table of hashes that passes over nearly all that are not.

Arrow's ``is_in`` makes a hash table anew for each block, and takes 13 ns a value. Of integers (times and dates are
integers, too) a multiplication and a look into a table of bits decide nearly all, at 3 ns a value; what is left is
searched for among the sorted values. Knows no predicate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as is_

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
"""Odd, and its bits look random: the upper bits of a product with it depend on all bits of the factor."""
_MIN_TABLE_BITS, _MAX_TABLE_BITS = 12, 20
_TABLE_SLOTS_PER_VALUE = 64
"""So that one of 64 values that are not listed is searched for."""

MAX_INTEGER_SET = 4_096
"""Needles up to which the table passes over enough; Arrow's hash table is as fast from 10,000 on."""
_CACHED_VALUES = 1 << 13
"""Values at a time, so that what is computed of them stays in the processor's cache: twice as fast as all at once."""


def has_integer_values(data_type: pa.DataType) -> bool:
    """Whether Arrow keeps values of this type as signed integers of a machine's widths."""
    return bool(is_.is_signed_integer(data_type) or is_.is_date32(data_type) or is_.is_timestamp(data_type))


@dataclass(frozen=True)
class IntegerSet:
    """Integers to be looked for. ``needles``: int64, ascending, each once, at least one, of ``literal_count`` values.

    ``table``: bool, shape (2^b,), True in the slots that hashes of needles have. ``shift``: 64 - b.
    """

    needles: npt.NDArray[np.int64]
    table: npt.NDArray[np.bool_]
    shift: np.uint64
    literal_count: int

    @classmethod
    def of(cls, values: pa.Array) -> IntegerSet:
        """The values, at least one and none NULL, of a type that ``has_integer_values``."""
        needles = np.unique(_integers(values).astype(np.int64))
        bits = min(max((_TABLE_SLOTS_PER_VALUE * len(needles)).bit_length(), _MIN_TABLE_BITS), _MAX_TABLE_BITS)
        shift = np.uint64(64 - bits)
        table = np.zeros(1 << bits, np.bool_)
        table[_slots(needles, shift)] = True
        return cls(needles, table, shift, len(values))

    def contains(self, values: pa.Array) -> pa.BooleanArray:
        """Whether each value is a needle: bool, one per value, none NULL; undefined where the value is NULL.

        >>> IntegerSet.of(pa.array([7, 3])).contains(pa.array([1, 3, -7, 7])).to_pylist()
        [False, True, False, True]
        """
        numbers = _integers(values)
        found = np.zeros(len(numbers), np.bool_)
        for start in range(0, len(numbers), _CACHED_VALUES):
            part = numbers[start : start + _CACHED_VALUES].astype(np.int64, copy=False)
            possible = np.flatnonzero(self.table[_slots(part, self.shift)])
            if len(possible):
                candidates = part[possible]
                nearest = np.minimum(np.searchsorted(self.needles, candidates), len(self.needles) - 1)
                found[start + possible] = self.needles[nearest] == candidates
        return pa.array(found)


def _integers(values: pa.Array) -> npt.NDArray[Any]:
    """The numbers that stand in the array's buffer, one a value, whatever they are where the value is NULL."""
    width = values.type.bit_width // 8
    if not len(values):  # then there may be no buffer
        return np.empty(0, f"i{width}")
    return np.frombuffer(values.buffers()[1], f"i{width}", len(values), values.offset * width)


def _slots(numbers: npt.NDArray[np.int64], shift: np.uint64) -> npt.NDArray[np.int64]:
    products = numbers.view(np.uint64) * _MULTIPLIER
    return (products >> shift).view(np.int64)  # numpy takes signed places three times as fast
