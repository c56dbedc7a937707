"""Mutants that hang on what surrounds them: modules, locales, time zones, chunks of arrays, numbers of units."""

import struct

import numpy as np
import pyarrow as pa

from fuse_index.plugin import ALL, NONE, SOME, Ballot, Input, Probe, Reason, Refusal, Sidecar, ValueSet
from fuse_index.predicate import Cast, Column, Compare
from fuse_index.testing import IndexTests
from tests.plugins.mutants.sound import OnNumbers, RowValues, ZoneValues, mutants

LAST, BUILT, DECODED = {}, {}, {}
SCRATCH = np.zeros(1 << 17, np.uint8)


class CachesByBlock(RowValues):
    """Keeps what it decoded by the number and the rows of a block: of another batch it is another block."""

    def probe(self, probe, batch):
        bits, rows = np.full(len(batch), SOME, np.uint8), {}
        for unit in range(len(batch)):
            if (payload := batch.payload(unit)) is not None:
                known = DECODED.setdefault((unit, int(batch.row_counts[unit])), payload.read([(0, payload.size)])[0])
                rows[unit] = self.row_votes(probe.what, self.decode(known))
                bits[unit] = np.bitwise_or.reduce(rows[unit])
        return Ballot(bits, rows)


class NarrowsByTheQuestionBefore(ZoneValues):
    """Asked twice in a row about a term, it takes both for one AND."""

    def probe(self, probe, batch):
        both = probe.what.intersect(LAST.get("wanted", ValueSet.everything()))
        LAST["wanted"] = probe.what
        return super().probe(Probe(both), batch)


class KeepsWhatItBuilt(RowValues):
    """Keeps values in its module, and a number of them in its payload."""

    def encode(self, values):
        BUILT[len(BUILT)] = values
        return struct.pack("<q", len(BUILT) - 1)

    def decode(self, data):
        return BUILT[struct.unpack("<q", data)[0]]


class SharesItsScratch(RowValues):
    """Votes into an array of its module, over what it reads meanwhile."""

    def probe(self, probe, batch):
        bits, rows = np.full(len(batch), SOME, np.uint8), {}
        for unit in range(len(batch)):
            count = int(batch.row_counts[unit])
            SCRATCH[:count] = ALL if probe.what.contains(1) else NONE
            if (payload := batch.payload(unit)) is not None:
                values = self.decode(payload.read([(0, payload.size)])[0])
                SCRATCH[:count][values != 1] = self.row_votes(probe.what, values[values != 1])
                rows[unit] = SCRATCH[:count].copy()
                bits[unit] = np.bitwise_or.reduce(rows[unit])
        return Ballot(bits, rows)


class EatsItsQuestion(ZoneValues):
    """Takes values out of its question as it finds them."""

    def compile(self, what, inputs, options, context):
        made = super().compile(what, inputs, options, context)
        if isinstance(made, Probe) and made.what.points() is not None:
            return Probe([*made.what.points()], 1.0)
        return Refusal(Reason.LEAF_UNSUPPORTED, "points only")

    def judge(self, wanted, values):
        if values is None:
            return SOME
        found = [value for value in values if value in wanted]
        for value in found:
            wanted.remove(value)
        return SOME if found else NONE


class FirstChunk(ZoneValues):
    """Reads the first chunk of a column."""

    def zone_values(self, column, zones, options):
        return super().zone_values(pa.chunked_array([column.chunk(0)]), zones, options)


class ReadsBuffers(RowValues):
    """Reads the buffer of a column from its beginning, wherever the column begins."""

    def build(self, rows, zones, options):
        chunk = rows.column(0).chunk(0)
        null = chunk.is_null().to_numpy(zero_copy_only=False)
        values = np.where(null, -7, np.frombuffer(chunk.buffers()[1], np.int64)[: len(chunk)])
        return Sidecar(len(values), self.encode(values))


class UnitsIn8Bits(RowValues):
    """Counts units in 8 bits."""

    def probe(self, probe, batch):
        ballot = super().probe(probe, batch)
        bits = ballot.bits.copy()
        numbers = np.arange(len(batch)).astype(np.uint8)
        return Ballot(bits[numbers])


class ZonesIn8Bits(ZoneValues):
    """Keeps as many zones as 8 bits count."""

    def zone_values(self, column, zones, options):
        found = super().zone_values(column, zones, options)
        return [found[number % 256] for number in range(len(found))]


class OnFloats(ZoneValues):
    def accepts(self, inputs, options):
        return None if inputs[0].type == pa.float64() else Refusal(Reason.TYPE_MISMATCH, "on one double")


class NoNaNIsEqual(OnFloats):
    """Looks for values in a list, in which no NaN is equal to another."""

    def judge(self, wanted, values):
        points = wanted.points()
        if values is None or points is None:
            return SOME
        return SOME if any(value == point for value in values for point in points) else NONE


class BytesOfZero(OnFloats):
    """Compares the bytes of numbers."""

    def judge(self, wanted, values):
        points = wanted.points()
        if values is None or points is None:
            return SOME
        known = {struct.pack("<d", value) for value in values}
        return SOME if any(struct.pack("<d", point) in known for point in points) else NONE


class OrderOfAnAlphabet(ZoneValues):
    """Texts between the first and the last as a dictionary of words has them, small letters beside great ones."""

    def judge(self, wanted, values):
        if not values or any(each.low is None or each.high is None for each in wanted.intervals):
            return SOME
        first, last = min(values, key=str.casefold).casefold(), max(values, key=str.casefold).casefold()
        met = any(each.low.casefold() <= last and first <= each.high.casefold() for each in wanted.intervals)
        return SOME if met else NONE


class OnTimes(ZoneValues):
    def accepts(self, inputs, options):
        return (
            None if inputs[0].type == pa.timestamp("us", "UTC") else Refusal(Reason.TYPE_MISMATCH, "on one timestamp")
        )


class DaysHere(OnTimes):
    """Keeps days by the clock of the machine that builds."""

    def summary_type(self, inputs, options):
        return pa.list_(pa.list_(pa.string()))

    def kept(self, values, options):
        return super().kept([str(value.astimezone().replace(tzinfo=None)) for value in values], options)

    def judge(self, wanted, values):
        points = wanted.points()
        if values is None or points is None:
            return SOME
        return SOME if {str(point.replace(tzinfo=None)) for point in points} & set(values) else NONE


class TextsOfTimesInUtc(OnTimes):
    """Judges a cast to text as in UTC, whatever time zone the session has."""

    def wanted(self, what, inputs):
        if isinstance(what, Compare) and what.operator == "=" and isinstance(what.left, Cast):
            return what.right.value if what.left.type == pa.string() and what.left.term == inputs[0].term else None
        return super().wanted(what, inputs)

    def judge(self, wanted, values):
        if not isinstance(wanted, str):
            return super().judge(wanted, values)
        if values is None:
            return SOME
        return SOME if wanted in {str(value.replace(tzinfo=None)) for value in values} else NONE


class OnDoubles(IndexTests):
    index = OnFloats
    inputs = (Input(Column(("f",), pa.float64()), pa.float64()),)
    summary_bytes = 1 << 17


class OnMoments(IndexTests):
    index = OnTimes
    inputs = (Input(Column(("m",), pa.timestamp("us", "UTC")), pa.timestamp("us", "UTC")),)
    summary_bytes = 1 << 17


class OnWords(IndexTests):
    index = ZoneValues
    inputs = (Input(Column(("t",), pa.string()), pa.string()),)
    summary_bytes = 1 << 17


MUTANTS = [
    *mutants(
        OnNumbers,
        (CachesByBlock, "company"),
        (NarrowsByTheQuestionBefore, "small"),
        (KeepsWhatItBuilt, "process", "row votes for unit"),
        (SharesItsScratch, "threads"),
        (EatsItsQuestion, "small"),
        (FirstChunk, "small"),
        (ReadsBuffers, "table", "rows with the index"),
        (UnitsIn8Bits, "8 bits"),
        (ZonesIn8Bits, "8 bits"),
    ),
    *mutants(OnDoubles, (NoNaNIsEqual, "small"), (BytesOfZero, "small")),
    *mutants(OnMoments, (DaysHere, "process"), (TextsOfTimesInUtc, "else")),
    *mutants(OnWords, (OrderOfAnAlphabet, "small")),
]
RIGHT = [(OnFloats, OnDoubles), (OnTimes, OnMoments)]
