"""Minimum and maximum: votes on statistics that every unit has anyway, so there is nothing to build or to read.

A predicate becomes a set of ranges in Spark's order (``ValueSet``), a unit the range of its values. NONE: they do not
meet. ALL: one range holds the whole unit. Bounds that were cut bound all the same, so both hold for them too. One code
serves tables, segments, blocks and zones. Knows nothing of where statistics come from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_index.plugin import (
    ALL,
    NONE,
    SOME,
    Ballot,
    BlockBatch,
    Conjunction,
    IndexKind,
    Input,
    Probe,
    Reason,
    Refusal,
    ValueSet,
    hookimpl,
)
from fuse_index.predicate import Compare, Context, In, Leaf, Like, Literal, StartsWith, Term

_Keys = npt.NDArray[np.int64]
_Mask = npt.NDArray[np.bool_]

_MIN_KEY, _MAX_KEY = np.iinfo(np.int64).min, np.iinfo(np.int64).max
MAX_RANGES_ONE_BY_ONE = 8
"""Ranges of values without keys that are compared one by one; beyond, sorting pays."""


class MinMax(IndexKind):
    """Comparisons, IN, STARTS WITH and LIKE with a prefix, on every ordered type."""

    name = "min_max"
    implicit = True

    def accepts(self, inputs: Sequence[Input], options: Any) -> Refusal | None:
        return Refusal(Reason.NOT_NEEDED, "every column has min_max without a definition")

    def compile(
        self, what: Leaf | Conjunction, inputs: Sequence[Input], options: Any, context: Context
    ) -> Probe | Refusal:
        if len(inputs) != 1 or not is_ordered_type(inputs[0].type):
            return Refusal(
                Reason.LEAF_UNSUPPORTED, f"{[str(given.type) for given in inputs]} is not one column of an ordered type"
            )
        found = matching_value_set(what, inputs[0].term)
        if found is None:
            return Refusal(Reason.LEAF_UNSUPPORTED, "no range of values says the same")
        domain, exact = found
        return Probe(ValueRanges.from_value_set(domain, inputs[0].type, exact))

    def probe(self, probe: Probe, batch: BlockBatch) -> Ballot:
        statistics = batch.statistics(0)
        if statistics is None:
            return Ballot.constant(len(batch), SOME)
        meets, within = probe.what.compare(statistics.min, statistics.max)
        return Ballot(np.where(within, np.uint8(ALL), np.where(meets, np.uint8(SOME), np.uint8(NONE))))


@hookimpl
def fuse_index_kinds() -> list[type[IndexKind]]:
    return [MinMax]


def is_ordered_type(data_type: pa.DataType) -> bool:
    """Whether values of this type have an order that is Spark's and that statistics follow."""
    return has_integer_keys(data_type) or bool(
        is_.is_decimal(data_type) or is_.is_string(data_type) or is_.is_binary(data_type)
    )


def has_integer_keys(data_type: pa.DataType) -> bool:
    """Whether ``keys`` gives integers for this type."""
    plain = (
        is_.is_signed_integer(data_type)
        or is_.is_boolean(data_type)
        or is_.is_date32(data_type)
        or is_.is_timestamp(data_type)
    )
    return bool(plain or is_.is_float32(data_type) or is_.is_float64(data_type))


def integer_keys(values: pa.Array) -> _Keys:
    """An integer for each value, in the same order, without a gap between neighbours; of nulls, any."""
    if is_.is_boolean(values.type):
        return np.asarray(values.fill_null(False).to_numpy(zero_copy_only=False), np.int64)
    if is_.is_floating(values.type):
        return _float_keys(_raw(values.cast(pa.float64()), np.float64))
    return np.asarray(_raw(values, f"i{values.type.bit_width // 8}"), np.int64)


def _raw(values: pa.Array, dtype: Any) -> npt.NDArray[Any]:
    """The values as they lie in memory, nulls too."""
    return np.frombuffer(values.buffers()[1], dtype)[values.offset : values.offset + len(values)]


def _float_keys(values: npt.NDArray[np.float64]) -> _Keys:
    bits = (values + 0.0).view(np.int64)  # -0.0 + 0.0 is 0.0
    ordered = bits ^ ((bits >> 63) & _MAX_KEY)  # below zero, larger bits are smaller values
    return np.where(np.isnan(values), _MAX_KEY, ordered)


@dataclass(frozen=True, eq=False)
class ValueRanges:
    """Ranges of values, sorted and apart; picklable.

    ``lows`` and ``highs`` are closed keys where the type has keys. Else they are None, and ``bounds`` holds Arrow
    arrays with null for unbounded, and which bounds are closed. ``exact``: a value within is one on which the leaf is
    TRUE.
    """

    exact: bool
    lows: _Keys | None = None
    highs: _Keys | None = None
    bounds: tuple[RangeEnds, ...] = field(default=())

    @classmethod
    def from_value_set(cls, value_set: ValueSet, data_type: pa.DataType, exact: bool) -> ValueRanges:
        lows = [interval.low for interval in value_set.intervals]
        highs = [interval.high for interval in value_set.intervals]
        low_closed = np.array([i.low_closed for i in value_set.intervals], np.bool_)
        high_closed = np.array([i.high_closed for i in value_set.intervals], np.bool_)
        low, high = pa.array(lows, data_type), pa.array(highs, data_type)
        if not has_integer_keys(data_type):
            return cls(exact, bounds=(RangeEnds(low, low_closed), RangeEnds(high, high_closed)))
        return cls(exact, *_closed_key_ranges(low, high, low_closed, high_closed))

    def compare(self, least: pa.Array, greatest: pa.Array) -> tuple[_Mask, _Mask]:
        """Of units with these bounds (null: not known), which may hold a value that is wanted, and which hold no
        other.
        """
        if self.lows is None or self.highs is None:
            meets, within = _compare_values(self.bounds[0], self.bounds[1], least, greatest)
        else:
            meets, within = _compare_keys(self.lows, self.highs, *_unit_keys(least, greatest))
        return meets, within if self.exact else np.zeros_like(within)


@dataclass(frozen=True, eq=False)
class RangeEnds:
    """One end of each of some ranges."""

    values: pa.Array
    closed: _Mask


def matching_value_set(what: Leaf | Conjunction, term: Term) -> tuple[ValueSet, bool] | None:
    """The values of the term on which the leaf may be TRUE, and whether it is TRUE on all of them."""
    match what:
        case Conjunction():
            return (what.domain(term), True) if any(named == term for named, _ in what.domains) else None
        case Compare(_, left, _) | In(left, _) | StartsWith(left, _) | Like(left, _, _) if left == term:
            domain = ValueSet.of(what)
            return _prefix_value_set(what) if domain is None else (domain, True)
        case _:
            return None


def _prefix_value_set(leaf: Leaf) -> tuple[ValueSet, bool] | None:
    """``LIKE 'ab%c'`` is TRUE only on what starts with ``ab``."""
    match leaf:
        case Like(term, Literal(str() as pattern, type), escape):
            plain = pattern[
                : min((pattern.index(letter) for letter in ("%", "_", escape) if letter in pattern), default=0)
            ]
            domain = ValueSet.of(StartsWith(term, Literal(plain, type))) if plain else None
            return None if domain is None else (domain, False)
        case _:
            return None


def _closed_key_ranges(low: pa.Array, high: pa.Array, low_closed: _Mask, high_closed: _Mask) -> tuple[_Keys, _Keys]:
    """The ranges as closed ranges of keys: a neighbour is one away, ranges that touch are joined, empty ones left
    out.
    """
    open_low, open_high = low.is_null().to_numpy(zero_copy_only=False), high.is_null().to_numpy(zero_copy_only=False)
    low_keys, high_keys = integer_keys(low), integer_keys(high)
    excluded_low, excluded_high = ~low_closed & ~open_low, ~high_closed & ~open_high
    possible = ~(excluded_low & (low_keys == _MAX_KEY)) & ~(excluded_high & (high_keys == _MIN_KEY))
    lows = np.where(open_low, _MIN_KEY, low_keys + (excluded_low & possible))
    highs = np.where(open_high, _MAX_KEY, high_keys - (excluded_high & possible))
    possible &= lows <= highs
    lows, highs = lows[possible], highs[possible]
    apart = highs[:-1] + 1 < lows[1:]  # no high but the last is the greatest key: ranges are apart
    return lows[np.append(True, apart)[: len(lows)]], highs[np.append(apart, True)[: len(highs)]]


def _unit_keys(least: pa.Array, greatest: pa.Array) -> tuple[_Keys, _Keys]:
    low, high = integer_keys(least), integer_keys(greatest)
    if least.null_count:
        low = np.where(least.is_null().to_numpy(zero_copy_only=False), _MIN_KEY, low)
    if greatest.null_count:
        high = np.where(greatest.is_null().to_numpy(zero_copy_only=False), _MAX_KEY, high)
    return low, high


def _compare_keys(lows: _Keys, highs: _Keys, least: _Keys, greatest: _Keys) -> tuple[_Mask, _Mask]:
    if len(lows) == 0:
        nowhere = np.zeros(len(least), np.bool_)
        return nowhere, nowhere
    if len(lows) == 1:
        return (lows[0] <= greatest) & (least <= highs[0]), (lows[0] <= least) & (greatest <= highs[0])
    first = np.searchsorted(highs, least)  # the first range that does not end below the unit
    low = np.append(lows, _MAX_KEY)[first]
    high = np.append(highs, _MIN_KEY)[first]
    found = first < len(lows)
    return found & (low <= greatest), found & (low <= least) & (greatest <= high)


def _compare_values(low: RangeEnds, high: RangeEnds, least: pa.Array, greatest: pa.Array) -> tuple[_Mask, _Mask]:
    """The same for values without keys: a few ranges one by one, many as keys of bytes."""
    if len(low.values) > MAX_RANGES_ONE_BY_ONE:
        width = max(_width(least), _width(greatest))
        tags = (np.where(low.closed, _BELOW_VALUE, _ABOVE_VALUE), np.where(high.closed, _ABOVE_VALUE, _BELOW_VALUE))
        lows, highs = (
            _byte_keys(low.values, width, tags[0], _NULL_LOWEST),
            _byte_keys(high.values, width, tags[1], _NULL_HIGHEST),
        )
        return _compare_byte_keys(
            lows,
            highs,
            _byte_keys(least, width, _AT_VALUE, _NULL_LOWEST),
            _byte_keys(greatest, width, _AT_VALUE, _NULL_HIGHEST),
        )
    meets, within = np.zeros(len(least), np.bool_), np.zeros(len(least), np.bool_)
    for i in range(len(low.values)):
        starts, ends = low.values[i], high.values[i]
        above, below = (pc.less_equal if low.closed[i] else pc.less), (pc.less_equal if high.closed[i] else pc.less)
        meets |= _compare_or_unknown(above, starts, greatest, unknown=True) & _compare_or_unknown(
            below, least, ends, unknown=True
        )
        within |= _compare_or_unknown(above, starts, least, unknown=not starts.is_valid) & _compare_or_unknown(
            below, greatest, ends, unknown=not ends.is_valid
        )
    return meets, within


def _compare_or_unknown(compare: Any, left: Any, right: Any, unknown: bool) -> _Mask:
    held = compare(left, right)
    units = left if isinstance(left, pa.Array) else right
    if (isinstance(left, pa.Scalar) and not left.is_valid) or (isinstance(right, pa.Scalar) and not right.is_valid):
        return np.full(len(units), unknown)  # unbounded
    return np.asarray(held.fill_null(unknown).to_numpy(zero_copy_only=False), np.bool_)


# --- keys of bytes: numpy compares fixed-width bytes, but takes trailing zeros for padding
# ------------------------------

_BELOW_VALUE, _AT_VALUE, _ABOVE_VALUE = 1, 2, 3
_NULL_LOWEST, _NULL_HIGHEST = 0, 255
_Bytes = npt.NDArray[np.bytes_]


def _width(values: pa.Array) -> int:
    return 16 if is_.is_decimal(values.type) else int(pc.max(pc.binary_length(values)).as_py() or 0)


def _byte_keys(values: pa.Array, width: int, tag: Any, null: int) -> _Bytes:
    """Fixed-width bytes in the order of the values: all of a value that fits, then its length, then the tag.

    A value longer than ``width`` lies between all that fit, and it does not matter where among its like.
    """
    count = len(values)
    table = np.zeros((count, width + 3), np.uint8)
    if is_.is_decimal(values.type):
        table[:, :16] = _raw(values, "V16").view(np.uint8).reshape(count, 16)[:, ::-1]
        table[:, 0] ^= 0x80  # two's complement: the sign bit the other way round
    else:
        lengths = _fill(table, values, width)
        table[:, width], table[:, width + 1] = lengths >> 8, lengths & 0xFF
    table[:, width + 2] = tag
    if values.null_count:
        nulls = values.is_null().to_numpy(zero_copy_only=False)
        table[nulls] = null
        table[nulls, width + 2] = 1 if null == _NULL_LOWEST else 255
    return table.reshape(-1).view(f"S{width + 3}")


def _fill(table: npt.NDArray[np.uint8], values: pa.Array, width: int) -> npt.NDArray[np.int64]:
    """Each value's first bytes into its row; its length, or one more than the width if it is longer."""
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset : values.offset + len(values) + 1].astype(
        np.int64
    )
    data = np.frombuffer(values.buffers()[2] or b"", np.uint8)
    lengths = np.diff(offsets)
    for column in range(int(min(width, lengths.max(initial=0)))):
        rows = np.flatnonzero(lengths > column)
        table[rows, column] = data[offsets[rows] + column]
    return np.minimum(lengths, width + 1)


def _compare_byte_keys(lows: _Bytes, highs: _Bytes, least: _Bytes, greatest: _Bytes) -> tuple[_Mask, _Mask]:
    first = np.searchsorted(highs, least)
    found = first < len(lows)
    place = np.minimum(first, len(lows) - 1)
    low, high = lows[place], highs[place]
    return found & (low <= greatest), found & (low <= least) & (greatest <= high)
