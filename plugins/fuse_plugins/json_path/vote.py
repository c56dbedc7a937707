"""From a question about a path, and what summaries and filters say of blocks, to votes. Knows no predicate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.plugin import NONE, Ballot, BlockBatch, Payload, Probe
from fuse_plugins.bloom import Bloom
from fuse_plugins.json_path.path_statistics import ALL_KINDS
from fuse_plugins.json_path.question import PathProbe

_Mask = npt.NDArray[np.bool_]

_TRUE, _FALSE, _NULL = 1, 2, 4
_UNKNOWN = _TRUE | _FALSE | _NULL
BLOOM = Bloom()
_BOUND_FIELDS = {"text": ("low", "high"), "number": ("least", "greatest"), "day": ("first", "last")}


def vote_on_path(question: PathProbe, batch: BlockBatch) -> Ballot:
    units = len(batch)
    if question.reading == "nothing":
        return Ballot.constant(units, _FALSE | _NULL)
    if batch.summaries is None or not units:
        return Ballot.unknown(units)
    known = _PathSummaries.of(batch.summaries, question)
    bits = known.bits(question)
    asked = known.usable & ((bits & _TRUE) != 0) & ((known.kinds & question.unless_kinds) == 0)
    if question.probe_values is None or not asked.any():
        return Ballot(bits)
    found = BLOOM.probe(Probe(question.probe_values), BloomView(batch, asked))
    if len(found) != len(batch.zone_rows):
        return Ballot(bits)
    owners = np.repeat(np.arange(units), np.diff(batch.zone_offsets))
    absent = (found.bits == NONE) & asked[owners]
    fine = bits[owners]
    return Ballot(np.where(absent, (fine & ~np.uint8(_TRUE)) | np.uint8(_FALSE), fine).astype(np.uint8))


@dataclass(frozen=True, eq=False)
class _PathSummaries:
    """What the summaries of a batch say of one path, unit by unit."""

    usable: _Mask
    kinds: npt.NDArray[np.int64]
    present: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int64]
    low: pa.Array | None
    high: pa.Array | None

    @classmethod
    def of(cls, summaries: pa.Array, question: PathProbe) -> _PathSummaries:
        paths = pc.struct_field(summaries, "paths")
        facts, owners = pc.list_flatten(paths), pc.list_parent_indices(paths)
        ours = pc.equal(pc.struct_field(facts, "path"), question.path).fill_null(False)
        places = np.full(len(summaries), -1, np.int64)
        places[owners.filter(ours).to_numpy()] = np.flatnonzero(ours.to_numpy(zero_copy_only=False))
        rows = pa.array(places, mask=places < 0)

        def numbers(name: str) -> npt.NDArray[np.int64]:
            return np.asarray(
                pc.struct_field(facts, name).take(rows).fill_null(0).to_numpy(zero_copy_only=False), np.int64
            )

        def counts(name: str) -> npt.NDArray[np.int64]:
            return np.asarray(pc.struct_field(summaries, name).fill_null(0).to_numpy(zero_copy_only=False), np.int64)

        sure = counts("doubtful") == 0 if question.reading != "member" else np.ones(len(summaries), np.bool_)
        kinds = numbers("kinds")
        if question.usual_documents_only:
            sure &= counts("unusual") == 0
        usable = (places >= 0) & sure & ((kinds & question.unreadable_kinds) == 0)
        low, high = _BOUND_FIELDS.get("text" if question.reading == "member" else question.reading, (None, None))
        low, high = (name and pc.struct_field(facts, name).take(rows) for name in (low, high))
        return cls(usable, kinds, numbers("present"), counts("documents"), low, high)

    def bits(self, question: PathProbe) -> npt.NDArray[np.uint8]:
        """What the leaf may be, on documents that are not NULL. Where it may be NULL it may be FALSE: it may be a
        ``<=>``.
        """
        absent = self.present < self.documents
        if question.reading == "null":
            true, false, null = absent, self.present > 0, np.zeros_like(absent)
        elif question.reading == "truth":
            true = (self.kinds & question.truths) != 0
            false = null = np.ones_like(absent)
        else:
            assert question.value_ranges is not None
            meets, within = question.value_ranges.compare(self.low, self.high)
            holds = (self.kinds & ALL_KINDS) != 0
            if question.reading in ("number", "day"):
                holds = self.low.is_valid().to_numpy(zero_copy_only=False)  # type: ignore[union-attr]
            true = holds & meets
            exactly = question.reading == "text" and not question.usual_documents_only
            null = absent if exactly else np.full_like(absent, question.reading != "member")
            false = (holds & ~within) | (null if question.reading != "member" else np.ones_like(null))
        bits = true * _TRUE | (false | null) * _FALSE | null * _NULL
        return np.where(self.usable, bits, _UNKNOWN).astype(np.uint8)


@dataclass(frozen=True, eq=False)
class BloomView:
    """The same units as bloom sees them, those that are not asked about without a summary."""

    batch: BlockBatch
    probed: _Mask

    def __len__(self) -> int:
        return len(self.batch)

    @property
    def summaries(self) -> pa.Array:
        values = pc.struct_field(self.batch.summaries, "values")
        return values.take(pa.array(np.arange(len(values)), mask=~self.probed))

    @property
    def row_counts(self) -> npt.NDArray[np.int64]:
        return self.batch.row_counts

    @property
    def zone_offsets(self) -> npt.NDArray[np.int64]:
        return self.batch.zone_offsets

    @property
    def zone_rows(self) -> npt.NDArray[np.int64]:
        return self.batch.zone_rows

    def statistics(self, number: int) -> None:
        """None: statistics of documents say nothing of the values in them."""

    def payload(self, unit: int) -> Payload | None:
        return self.batch.payload(unit)

    def packs(self) -> Sequence[tuple[Payload, npt.NDArray[np.int64]]]:
        return self.batch.packs()
