"""Mutants of the built-in kinds that live on statistics and on filters, each wrong as some engine was."""

from dataclasses import replace

import numpy as np
import pyarrow as pa

from fuse_index.plugin import ALL, NONE, SOME, Ballot, Conjunction, Input, Probe, Sidecar, ValueSet
from fuse_index.predicate import Column, Compare, In, Like, Literal, StartsWith
from fuse_index.testing import IndexTests
from fuse_plugins.bloom import Bloom
from fuse_plugins.bloom.zone_index import ProbeValues
from fuse_plugins.min_max import MinMax
from fuse_plugins.min_max.integer_keys import integer_keys
from fuse_plugins.min_max.value_ranges import RangeEnds, ValueRanges
from tests.plugins.mutants.sound import Mutant


class ExcludesItsBound(MinMax):
    """Reads <= as <."""

    def compile(self, what, inputs, options, context):
        if isinstance(what, Compare) and what.operator == "<=":
            what = replace(what, operator="<")
        return super().compile(what, inputs, options, context)


class IncludesItsBound(MinMax):
    """Reads < as <=: ALL where a row is not."""

    def compile(self, what, inputs, options, context):
        if isinstance(what, Compare) and what.operator == "<":
            what = replace(what, operator="<=")
        return super().compile(what, inputs, options, context)


class UnequalMeansOutside(MinMax):
    """``<> v`` only where the unit's range does not hold v."""

    def probe(self, probe, batch):
        ballot = super().probe(probe, batch)
        return Ballot(np.where(ballot.bits == SOME, np.uint8(NONE), ballot.bits)) if probe.what == "<>" else ballot

    def compile(self, what, inputs, options, context):
        made = super().compile(what, inputs, options, context)
        return Probe(_Unequal(made.what)) if isinstance(what, Compare) and what.operator == "<>" else made


class _Unequal:
    def __init__(self, wanted):
        self.wanted = wanted

    def compare(self, least, greatest):
        _, within = self.wanted.compare(least, greatest)
        return within, within


class ForgetsNaN(MinMax):
    """Takes Arrow's maximum, which passes over NaN."""

    def probe(self, probe, batch):
        known = batch.statistics(0)
        if known is None:
            return super().probe(probe, batch)
        greatest = pa.compute.if_else(pa.compute.is_nan(known.max), known.min, known.max)
        return _voted(probe.what.compare(known.min, greatest))


class KnowsMinusZero(MinMax):
    """Orders -0.0 below 0.0."""

    def compile(self, what, inputs, options, context):
        made = super().compile(what, inputs, options, context)
        zero = _is_value(what) and what.right.value == 0.0 and np.signbit(what.right.value) and what.operator == "="
        below = integer_keys(pa.array([-5e-324]))
        return Probe(ValueRanges(True, below, below)) if zero else made


class CutsWithoutRounding(MinMax):
    """A long maximum cut to its prefix, which is below it."""

    def probe(self, probe, batch):
        known = batch.statistics(0)
        if known is None:
            return super().probe(probe, batch)
        cut = pa.compute.and_kleene(known.max_cut, known.min.is_valid())
        greatest = pa.compute.if_else(cut, pa.scalar("x" * 32), known.max)
        return _voted(probe.what.compare(known.min, greatest))


class OrdersByUtf16(MinMax):
    """Text in the order of Java's strings."""

    def probe(self, probe, batch):
        known = batch.statistics(0)
        if known is None or not probe.what.bounds:
            return super().probe(probe, batch)
        low, high = probe.what.bounds
        wanted = ValueRanges(
            probe.what.exact, bounds=tuple(RangeEnds(_as_utf16(bound.values), bound.closed) for bound in (low, high))
        )
        return _voted(wanted.compare(_as_utf16(known.min), _as_utf16(known.max)))


class TrustsAnyLeafOfABox(MinMax):
    """ALL for a conjunction where one conjunct is ALL."""

    def compile(self, what, inputs, options, context):
        if isinstance(what, Conjunction) and isinstance(what.leaves[0], Compare):
            return super().compile(what.leaves[0], inputs, options, context)
        return super().compile(what, inputs, options, context)


class PrefixIsThePattern(MinMax):
    """``LIKE 'a%b'`` is TRUE on all that starts with a."""

    def compile(self, what, inputs, options, context):
        made = super().compile(what, inputs, options, context)
        return Probe(replace(made.what, exact=True)) if isinstance(what, Like) and isinstance(made, Probe) else made


class UnknownMeansEmpty(MinMax):
    """Bounds that are not known hold no value."""

    def probe(self, probe, batch):
        known = batch.statistics(0)
        ballot = super().probe(probe, batch)
        if known is None:
            return ballot
        return Ballot(np.where(known.min.is_null().to_numpy(zero_copy_only=False), np.uint8(NONE), ballot.bits))


class PrefixEndsAtItself(MinMax):
    """STARTS WITH as equality."""

    def compile(self, what, inputs, options, context):
        if isinstance(what, StartsWith):
            what = Compare("=", what.term, what.text)
        return super().compile(what, inputs, options, context)


class DropsTheLastRow(Bloom):
    """Builds each zone without its last row."""

    def build(self, rows, zones, options):
        last = np.zeros(rows.num_rows, bool)
        last[zones[1:] - 1] = True
        values = pa.compute.if_else(pa.array(last), pa.scalar(None, rows.schema.types[0]), rows.column(0))
        return super().build(pa.table({"0": values}), zones, options)


class ShiftsColumns(Bloom):
    """Takes each filter for its neighbour's."""

    def pack(self, sidecars):
        pack = super().pack(sidecars)
        for summary in pack.summaries:
            for zone in summary["zones"]:
                if zone["capacity"]:
                    zone["column"] = (zone["column"] + 1) % zone["columns"]
        return pack


class LooksForTheFirst(Bloom):
    """Asks for one value of a list."""

    def compile(self, what, inputs, options, context):
        if isinstance(what, In):
            what = replace(what, values=what.values[:1])
        return super().compile(what, inputs, options, context)


class HashesTheSign(Bloom):
    """Keeps -0.0 apart from 0.0."""

    def compile(self, what, inputs, options, context):
        negative = _is_value(what) and what.right.value == 0.0 and np.signbit(what.right.value)
        if negative:
            what = replace(what, right=Literal(-5e-324, what.right.type))
        return super().compile(what, inputs, options, context)


class CertainOfItsFilters(Bloom):
    """ALL where the filter may hold the value."""

    def probe(self, probe, batch):
        bits = super().probe(probe, batch).bits
        return Ballot(np.where(bits == SOME, np.uint8(ALL), bits))


class ComparesTheFirstLetter(Bloom):
    """Keeps a short form of a constant zone's value."""

    def build(self, rows, zones, options):
        made = super().build(rows, zones, options)
        short = [
            {**zone, "constant": zone["constant"][:1]} if zone.get("constant") else zone
            for zone in made.summary["zones"]
        ]
        return Sidecar({**made.summary, "zones": short}, made.payload, made.details)

    def compile(self, what, inputs, options, context):
        made = super().compile(what, inputs, options, context)
        if not isinstance(made, Probe):
            return made
        return Probe(replace(made.what, value_bytes=pa.compute.binary_slice(made.what.value_bytes, 0, 1)), made.cost)


class AbsentWhenUnreadable(Bloom):
    """What cannot be read holds nothing."""

    def probe(self, probe, batch):
        try:
            return super().probe(probe, batch)
        except Exception:
            return Ballot(np.full(len(batch.zone_rows), NONE, np.uint8))


class LeavesOutTheBounds(Bloom):
    """Asks a block only for values that lie between its bounds, and not for those that equal them."""

    def compile(self, what, inputs, options, context):
        made = super().compile(what, inputs, options, context)
        return Probe(BetweenBounds(**vars(made.what)), made.cost) if isinstance(made, Probe) else made


class BetweenBounds(ProbeValues):
    def ranges_by_unit(self, known, units):
        firsts, lasts = super().ranges_by_unit(known, units)
        return firsts, np.where(lasts < len(self.values), lasts - 1, lasts)


class BoxOfAllPoints(Bloom):
    """Asks a Conjunction for the wrong values: those it excludes."""

    def compile(self, what, inputs, options, context):
        if isinstance(what, Conjunction) and what.domain(inputs[0].term).points() is None:
            points = what.domain(inputs[0].term).complement().points()
            if points:
                what = Conjunction(((inputs[0].term, ValueSet.points_at(points)),), what.leaves)
        return super().compile(what, inputs, options, context)


def _is_value(what):
    return isinstance(what, Compare) and isinstance(what.right, Literal)


def _voted(found):
    meets, within = found
    return Ballot(np.where(within, np.uint8(ALL), np.where(meets, np.uint8(SOME), np.uint8(NONE))))


def _as_utf16(values):
    return pa.array([None if value is None else value.encode("utf-16-be") for value in values.to_pylist()], pa.binary())


def on(kind, column, killed_by="small"):
    suite = type("OnColumn", (IndexTests,), {"index": kind, "inputs": (Input(Column(("c",), column), column),)})
    return Mutant(kind, suite, killed_by)


MUTANTS = [
    on(ExcludesItsBound, pa.int32()),
    on(IncludesItsBound, pa.decimal128(9, 2)),
    on(UnequalMeansOutside, pa.int64()),
    on(ForgetsNaN, pa.float64()),
    on(KnowsMinusZero, pa.float64()),
    on(CutsWithoutRounding, pa.string()),
    on(OrdersByUtf16, pa.string()),
    on(TrustsAnyLeafOfABox, pa.date32()),
    on(PrefixIsThePattern, pa.string()),
    on(PrefixEndsAtItself, pa.string()),
    on(UnknownMeansEmpty, pa.int64(), "statistics"),
    on(DropsTheLastRow, pa.int64()),
    on(ShiftsColumns, pa.int64()),
    on(LooksForTheFirst, pa.timestamp("us", "UTC")),
    on(HashesTheSign, pa.float64()),
    on(CertainOfItsFilters, pa.int64()),
    on(ComparesTheFirstLetter, pa.string()),
    on(AbsentWhenUnreadable, pa.int64(), "damage"),
    on(BoxOfAllPoints, pa.int64()),
    on(LeavesOutTheBounds, pa.int64()),
]
