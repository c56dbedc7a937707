"""Mutants of kinds that keep values: of a zone, of a row, and what they take conditions for."""

import numpy as np
import pyarrow as pa

from fuse_index.plugin import ALL, NONE, SOME, Ballot, Conjunction, Interval, Probe, ValueSet
from fuse_index.predicate import Cast, Compare, In
from tests.plugins.mutants.sound import (
    OnManyNumbers,
    OnNumbers,
    RowValues,
    ZoneValues,
    mutants,
)

# --- zones ----------------------------------------------------------------------------------------------------------


class FourthZone(ZoneValues):
    """Three zones are enough: what lies in a fourth holds nothing."""

    def zone_values(self, column, zones, options):
        found = super().zone_values(column, zones, options)
        return [values if number < 3 else [] for number, values in enumerate(found)]


class EqualZones(ZoneValues):
    """All zones have as many rows."""

    def zone_values(self, column, zones, options):
        equal = np.linspace(0, zones[-1], len(zones)).astype(int)
        return super().zone_values(column, equal, options)


class LastZoneShort(ZoneValues):
    """Forgets the last row of the last zone."""

    def zone_values(self, column, zones, options):
        return super().zone_values(column, np.append(zones[:-1], max(zones[-1] - 1, zones[-2])), options)


class FirstZoneForAll(ZoneValues):
    """Judges all zones by the first."""

    def zone_values(self, column, zones, options):
        found = super().zone_values(column, zones, options)
        return found[:1] * len(found)


class ZonesReversed(ZoneValues):
    def zone_values(self, column, zones, options):
        return super().zone_values(column, zones, options)[::-1]


class TooManyIsNothing(ZoneValues):
    """A zone of too many values holds none."""

    def kept(self, values, options):
        return super().kept(values, options) or []


class CutsItsList(ZoneValues):
    """Keeps the first values only."""

    def kept(self, values, options):
        return values[: options.most]


class ForgetsTheGreatest(ZoneValues):
    def kept(self, values, options):
        return super().kept(sorted(values)[:-1] if len(values) > 2 else values, options)


class EmptyIsAll(ZoneValues):
    """A zone of NULLs alone is TRUE on all rows; which is no mistake, as NULLs are the engine's."""

    def judge(self, wanted, values):
        return NONE if values == [] else super().judge(wanted, values)


class SomeIsAll(ZoneValues):
    def judge(self, wanted, values):
        found = super().judge(wanted, values)
        return ALL if found == SOME and values is not None else found


class AllIsNone(ZoneValues):
    def judge(self, wanted, values):
        found = super().judge(wanted, values)
        return NONE if found == ALL and len(values) > 1 else found


class UnknownIsNone(ZoneValues):
    def judge(self, wanted, values):
        return NONE if values is None else super().judge(wanted, values)


# --- conditions -----------------------------------------------------------------------------------------------------


class BoxComplement(ZoneValues):
    def wanted(self, what, inputs):
        found = super().wanted(what, inputs)
        return found.complement() if isinstance(what, Conjunction) else found


class BoxPointsOnly(ZoneValues):
    """Of a box of several intervals only those that are points."""

    def wanted(self, what, inputs):
        found = super().wanted(what, inputs)
        if not isinstance(what, Conjunction) or len(found.intervals) < 3:
            return found
        return ValueSet(tuple(each for each in found.intervals if each.is_point))


class BoxFirstInterval(ZoneValues):
    def wanted(self, what, inputs):
        found = super().wanted(what, inputs)
        return ValueSet(found.intervals[:1]) if isinstance(what, Conjunction) else found


class BoxHull(ZoneValues):
    """ALL where values lie between the ends of a box with holes."""

    def wanted(self, what, inputs):
        found = super().wanted(what, inputs)
        if not isinstance(what, Conjunction) or len(found.intervals) < 2:
            return found
        first, last = found.intervals[0], found.intervals[-1]
        return ValueSet((Interval(first.low, last.high, first.low_closed, last.high_closed),))


class InFirstThree(ZoneValues):
    def wanted(self, what, inputs):
        return super().wanted(In(what.term, what.values[:3]) if isinstance(what, In) else what, inputs)


class NotEqualIsEqual(ZoneValues):
    def wanted(self, what, inputs):
        found = super().wanted(what, inputs)
        return found.complement() if isinstance(what, Compare) and what.operator == "<>" else found


class GreaterIncludes(ZoneValues):
    def wanted(self, what, inputs):
        if isinstance(what, Compare) and what.operator == ">":
            what = Compare(">=", what.left, what.right)
        return super().wanted(what, inputs)


class TakesTheOperatorForEqual(ZoneValues):
    def wanted(self, what, inputs):
        if isinstance(what, Compare) and what.operator in ("<", "<="):
            what = Compare("=", what.left, what.right)
        return super().wanted(what, inputs)


class IgnoresTheTerm(ZoneValues):
    """Takes each condition for one on its column: on casts of it, too."""

    def wanted(self, what, inputs):
        if isinstance(what, Conjunction):
            return super().wanted(what, inputs)
        if isinstance(what, Compare) and what.right.type == pa.string():
            return ValueSet.points_at([int(what.right.value)]) if what.right.value.isdigit() else ValueSet.nothing()
        return ValueSet.of(what)


class LooksThroughCasts(ZoneValues):
    """A cast to a smaller type holds the same values."""

    def wanted(self, what, inputs):
        if isinstance(what, Compare) and isinstance(what.left, Cast):
            return ValueSet.of(what) if what.right.type != pa.string() else None
        return super().wanted(what, inputs)


class OtherColumnIsNothing(ZoneValues):
    """A comparison with another column is with no value."""

    def wanted(self, what, inputs):
        if isinstance(what, Compare) and not hasattr(what.right, "value"):
            return ValueSet.nothing()
        return super().wanted(what, inputs)


class JudgesNull(ZoneValues):
    """Says that it knows of NULLs, which are nowhere but in its column, where the engine knows of them itself."""

    def compile(self, what, inputs, options, context):
        made = super().compile(what, inputs, options, context)
        return Probe(made.what, made.cost, judges_null=True) if isinstance(made, Probe) else made


# --- rows -----------------------------------------------------------------------------------------------------------


class RowsOffByOne(RowValues):
    def row_votes(self, wanted, values):
        return np.roll(super().row_votes(wanted, values), 1)


class RowsLastDropped(RowValues):
    def row_votes(self, wanted, values):
        return super().row_votes(wanted, values)[:-1] if len(values) > 1 else super().row_votes(wanted, values)


class RowsReversed(RowValues):
    def row_votes(self, wanted, values):
        return super().row_votes(wanted, values)[::-1]


class Rows16Bits(RowValues):
    """Keeps positions of matches in 16 bits: they wrap."""

    def row_votes(self, wanted, values):
        votes = super().row_votes(wanted, values)
        found = np.full(len(votes), NONE, np.uint8)
        found[np.flatnonzero(votes == ALL).astype(np.uint16)] = ALL
        return found


class Values32Bits(RowValues):
    """Keeps the lower half of each number."""

    def encode(self, values):
        return values.astype(np.int32).tobytes()

    def decode(self, data):
        return np.frombuffer(data, np.int32).astype(np.int64)


class RowsOfTheUnitBefore(RowValues):
    """Hands the votes on rows of each block to the next that has as many."""

    def probe(self, probe, batch):
        ballot = super().probe(probe, batch)
        rows = dict(ballot.rows)
        for unit in sorted(rows)[1:]:
            if len(ballot.rows.get(unit - 1, ())) == len(rows[unit]):
                rows[unit] = ballot.rows[unit - 1]
        return Ballot(np.full(len(batch), SOME, np.uint8), rows)


class RowsBeyondTheirUnit(RowValues):
    """Its votes on rows leave possible what its vote on their block rules out."""

    def probe(self, probe, batch):
        return Ballot(np.full(len(batch), NONE, np.uint8), super().probe(probe, batch).rows)


class RowsByTheFirstZone(RowValues):
    """Knows the rows of the first 15 only, and calls others impossible."""

    def row_votes(self, wanted, values):
        votes = super().row_votes(wanted, values)
        votes[15:] = NONE
        return votes


class WritesToItsVotes(RowValues):
    """Changes the numbers of rows that it is shown."""

    def probe(self, probe, batch):
        batch.row_counts[:] = 1
        return super().probe(probe, batch)


MUTANTS = [
    *mutants(
        OnNumbers,
        (FourthZone, "larger"),
        (EqualZones, "small"),
        (LastZoneShort, "small"),
        (FirstZoneForAll, "small"),
        (ZonesReversed, "small"),
        (ForgetsTheGreatest, "larger"),
        (SomeIsAll, "small"),
        (AllIsNone, "small"),
        (BoxComplement, "small"),
        (BoxPointsOnly, "small"),
        (BoxFirstInterval, "small"),
        (BoxHull, "small"),
        (InFirstThree, "small"),
        (NotEqualIsEqual, "small"),
        (GreaterIncludes, "small"),
        (TakesTheOperatorForEqual, "small"),
        (IgnoresTheTerm, "else"),
        (LooksThroughCasts, "else"),
        (OtherColumnIsNothing, "else"),
    ),
    *mutants(
        OnManyNumbers,
        (TooManyIsNothing, "larger"),
        (CutsItsList, "larger"),
        (UnknownIsNone, "larger"),
    ),
    *mutants(
        OnNumbers,
        (RowsOffByOne, "small"),
        (RowsLastDropped, "small", "row votes for unit"),
        (RowsReversed, "small"),
        (Rows16Bits, "16 bits"),
        (RowsOfTheUnitBefore, "small"),
        (RowsBeyondTheirUnit, "small", "and its rows more"),
        (RowsByTheFirstZone, "larger"),
        (WritesToItsVotes, "small", "read-only", {}, ValueError),
    ),
    *mutants(OnManyNumbers, (Values32Bits, "small")),
]
RIGHT = [
    *((ZoneValues, OnNumbers), (RowValues, OnNumbers), (ZoneValues, OnManyNumbers)),
    *((EmptyIsAll, OnNumbers), (JudgesNull, OnNumbers)),  # the engine makes these two harmless
]
