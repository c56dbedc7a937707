"""Mutants by form, options, state, process and version: whatever they keep, they break what a kind promises."""

import os
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fuse_index.plugin import Ballot, Pack, Probe, Sidecar, ValueSet
from tests.plugins.mutants.sound import OnManyNumbers, OnNumbers, RowValues, ZoneValues, mutants

# --- forms ----------------------------------------------------------------------------------------------------------


class NothingBesidesNull(ZoneValues):
    def judge(self, wanted, values):
        return super().judge(wanted, values) if values else 0


class VotesOf99(ZoneValues):
    def judge(self, wanted, values):
        return 99 if values is None else super().judge(wanted, values)


class WideVotes(ZoneValues):
    def probe(self, probe, batch):
        return Ballot(super().probe(probe, batch).bits.astype(np.int64))


class OneVoteTooFew(ZoneValues):
    def probe(self, probe, batch):
        return Ballot(super().probe(probe, batch).bits[1:])


class NoBallot(ZoneValues):
    def probe(self, probe, batch):
        return super().probe(probe, batch).bits


class CostsLessThanNothing(ZoneValues):
    cost = -1.0


class NoProbe(ZoneValues):
    def compile(self, what, inputs, options, context):
        return None


class NoSidecar(ZoneValues):
    def build(self, rows, zones, options):
        return None


class TextPayload(RowValues):
    def encode(self, values):
        return "text"


class ShortPack(RowValues):
    def pack(self, sidecars):
        whole = Pack.concatenate(sidecars)
        return Pack(whole.data, whole.chunk, whole.summaries[1:], whole.spans)


class SwappedPack(RowValues):
    """Lays payloads into the file the other way round."""

    def pack(self, sidecars):
        whole = Pack.concatenate(sidecars)
        return Pack(whole.data, whole.chunk, whole.summaries, whole.spans[::-1])


# --- options --------------------------------------------------------------------------------------------------------


class HalfIsTooFew(ZoneValues):
    """Right with the most that it is tried with, and wrong with less."""

    def kept(self, values, options):
        return values[:1] if options.most < 30 else super().kept(values, options)


class FoldsNumbers(ZoneValues):
    """With ``fold`` it keeps them without their sign, and asks for them with it."""

    def kept(self, values, options):
        return super().kept([abs(value) for value in values] if options.fold else values, options)


@dataclass
class Thawed:
    """Options that may change, and so are no key of anything."""

    most: int = 40


class ThawedOptions(ZoneValues):
    Options = Thawed


@dataclass(frozen=True)
class Taken:
    columns: int = 1


class TakenOptions(ZoneValues):
    Options = Taken

    def kept(self, values, options):
        return values


# --- state ----------------------------------------------------------------------------------------------------------


class CompileRemembers(ZoneValues):
    """Keeps what it is asked in itself, and looks there when it votes."""

    def compile(self, what, inputs, options, context):
        made = super().compile(what, inputs, options, context)
        if isinstance(made, Probe):
            self.last = made.what
        return made

    def probe(self, probe, batch):
        return super().probe(Probe(self.last), batch)


class CompileRemembersInItsClass(CompileRemembers):
    """The same, and an instance is as empty as it was."""

    def compile(self, what, inputs, options, context):
        made = ZoneValues.compile(self, what, inputs, options, context)
        if isinstance(made, Probe):
            type(self).last = made.what
        return made


class CountsItsVotes(ZoneValues):
    """After some votes it rules everything out."""

    votes = 0

    def probe(self, probe, batch):
        type(self).votes += 1
        return super().probe(probe, batch)


class FirstAnswerStays(ZoneValues):
    """Gives its first answer about as many zones again."""

    def probe(self, probe, batch):
        known = self.__dict__.setdefault("known", {})
        return known.setdefault(len(batch.zone_rows), super().probe(probe, batch))


class VotesThroughItself(RowValues):
    """Keeps what is wanted in its class while it reads."""

    wanted_now = None

    def probe(self, probe, batch):
        type(self).wanted_now = probe.what
        ballot = super().probe(probe, batch)
        type(self).wanted_now = None
        return ballot

    def row_votes(self, wanted, values):
        wanted = type(self).wanted_now
        return super().row_votes(ValueSet.nothing() if wanted is None else wanted, values)


class HashesByProcess(ZoneValues):
    """Keeps Python's hash of each text, which each process has its own of."""

    def summary_type(self, inputs, options):
        return pa.list_(pa.list_(pa.int64()))

    def kept(self, values, options):
        return super().kept([hash(str(value)) for value in values], options)

    def wanted(self, what, inputs):
        found = super().wanted(what, inputs)
        points = None if found is None else found.points()
        return None if points is None else ValueSet.points_at([hash(str(point)) for point in points])


class KnowsItsProcess(ZoneValues):
    """What another process built holds nothing."""

    def build(self, rows, zones, options):
        made = super().build(rows, zones, options)
        self.__class__.builder = os.getpid()
        return Sidecar([[os.getpid()], *made.summary])

    def zones_of(self, batch):
        found = []
        for zones in batch.summaries.to_pylist():
            found += [[]] * (len(zones) - 1) if zones[0] != [os.getpid()] else zones[1:]
        return found


class ReadsWhatItCannot(RowValues):
    """Says that it reads a version of which it knows nothing."""

    reads = frozenset({1, 2})


class Former(RowValues):
    """Wrote numbers the other way round."""

    def encode(self, values):
        return values.astype(">i8").tobytes()


class ReadsFormerAsNew(RowValues):
    writes = 2
    reads = frozenset({1, 2})


class WritesWhatItDoesNotRead(RowValues):
    writes = 2


MUTANTS = [
    *mutants(
        OnNumbers,
        (WideVotes, "small", "not uint8"),
        (OneVoteTooFew, "small", "votes for"),
        (NoBallot, "small", "not a Ballot"),
        (CostsLessThanNothing, "small", "the probe's cost is -1"),
        (NoProbe, "small", "not a Probe or a Refusal"),
        (NoSidecar, "small", "not a Sidecar"),
        (HalfIsTooFew, "options"),
        (FoldsNumbers, "options"),
        (ThawedOptions, "json options", "frozen=True"),
        (TakenOptions, "json options", "create_index"),
        (CompileRemembers, "together"),
        (CompileRemembersInItsClass, "together"),
        (CountsItsVotes, "together", "keeps nothing in itself"),
        (FirstAnswerStays, "together"),
        (HashesByProcess, "process"),
        (KnowsItsProcess, "process"),
    ),
    *mutants(
        OnManyNumbers,
        (VotesOf99, "larger", "to 99"),
    ),
    *mutants(
        OnNumbers,
        (TextPayload, "small", "not bytes"),
        (ShortPack, "small", "one summary and one span"),
        (SwappedPack, "small", "row votes for unit"),
        (VotesThroughItself, "threads"),
        (ReadsWhatItCannot, "versions", "give the suite the kind that wrote"),
        (WritesWhatItDoesNotRead, "named", "writes version 2"),
        (ReadsFormerAsNew, "versions", "a wrong vote", {"former": {1: Former}}),
    ),
]

RIGHT = [(NothingBesidesNull, OnNumbers)]  # of units whose rows are all NULL, which the engine adds
