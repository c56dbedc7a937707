"""Votes on a path probe, from what summaries and filters say of blocks. Knows no predicate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.plugin import ALL, NONE, SOME, Ballot, BlockBatch, Payload, Probe
from fuse_plugins.bloom import Bloom
from fuse_plugins.json_path.known_names import NAMES_ENTRY, Names, lacks_names
from fuse_plugins.json_path.path_statistics import ALL_KINDS
from fuse_plugins.json_path.question import PathProbe

_Mask = npt.NDArray[np.bool_]

_NULL = 4
"""The outcome of a ballot beside ALL (TRUE) and NONE (FALSE): a probe that judges NULL itself votes on it too."""
_UNKNOWN = SOME | _NULL
BLOOM = Bloom()
_BOUND_FIELDS = {"text": ("low", "high"), "number": ("least", "greatest"), "day": ("first", "last")}


def vote_on_path(path_probe: PathProbe, batch: BlockBatch) -> Ballot:
    """Vote on each unit by its summary, or on each zone where bloom filters are asked too."""
    units = len(batch)
    if path_probe.reading == "nothing":
        return Ballot.constant(units, NONE | _NULL)
    if batch.summaries is None or not units:
        return Ballot.unknown(units)
    summaries = _PathSummaries.of(batch.summaries, path_probe)
    bits = summaries.bits(path_probe)
    probed = summaries.usable & ((bits & ALL) != 0) & ((summaries.kinds & path_probe.unless_kinds) == 0)
    if path_probe.probe_values is None or not probed.any():
        return Ballot(bits)
    ballot = BLOOM.probe(Probe(path_probe.probe_values), BloomView(batch, probed))
    if len(ballot) != len(batch.zone_rows):
        return Ballot(bits)
    owners = np.repeat(np.arange(units), np.diff(batch.zone_offsets))
    absent = (ballot.bits == NONE) & probed[owners]
    zone_bits = bits[owners]
    return Ballot(np.where(absent, (zone_bits & ~np.uint8(ALL)) | np.uint8(NONE), zone_bits).astype(np.uint8))


@dataclass(frozen=True, eq=False)
class _PathSummaries:
    """The summaries of a batch of n units, as columns for one path; all arrays have shape (n,)."""

    usable: _Mask
    """Units whose summary can be trusted with the probe; of others nothing is known."""
    kinds: npt.NDArray[np.int64]
    present: npt.NDArray[np.int64]
    documents: npt.NDArray[np.int64]
    low: pa.Array | None
    """The bounds of values as the probe reads them, if it compares any: n values, as in ``high``."""
    high: pa.Array | None
    absent: _Mask
    """Units in which no document has anything at the path."""

    @classmethod
    def of(cls, summaries: pa.Array, path_probe: PathProbe) -> _PathSummaries:
        paths = pc.struct_field(summaries, "paths")
        path_summaries, units = pc.list_flatten(paths), pc.list_parent_indices(paths)
        at_path = pc.equal(pc.struct_field(path_summaries, "path"), path_probe.path).fill_null(False)
        positions = _positions(units, at_path, len(summaries))
        rows = pa.array(positions, mask=positions < 0)

        def numbers(name: str) -> npt.NDArray[np.int64]:
            return np.asarray(
                pc.struct_field(path_summaries, name).take(rows).fill_null(0).to_numpy(zero_copy_only=False), np.int64
            )

        def counts(name: str) -> npt.NDArray[np.int64]:
            return np.asarray(pc.struct_field(summaries, name).fill_null(0).to_numpy(zero_copy_only=False), np.int64)

        is_sure = counts("doubtful") == 0 if path_probe.reading != "member" else np.ones(len(summaries), np.bool_)
        kinds = numbers("kinds")
        if path_probe.usual_documents_only:
            is_sure &= counts("unusual") == 0
        usable = (positions >= 0) & is_sure & ((kinds & path_probe.unreadable_kinds) == 0)
        low, high = _BOUND_FIELDS.get("text" if path_probe.reading == "member" else path_probe.reading, (None, None))
        low, high = (name and pc.struct_field(path_summaries, name).take(rows) for name in (low, high))
        absent = is_sure & _lacks_names(path_summaries, units, len(summaries), path_probe.names)
        return cls(usable, kinds, numbers("present"), counts("documents"), low, high, absent & ~usable)

    def bits(self, path_probe: PathProbe) -> npt.NDArray[np.uint8]:
        """Say what the leaf may be on documents that are not NULL: bits of a ballot, uint8 of shape (n,).

        Where it may be NULL it may be FALSE: it may be a ``<=>``.
        """
        absent = self.present < self.documents
        if path_probe.reading == "null":
            true, false, null = absent, self.present > 0, np.zeros_like(absent)
        elif path_probe.reading == "boolean":
            true = (self.kinds & path_probe.boolean_kinds) != 0
            false = null = np.ones_like(absent)
        else:
            assert path_probe.value_ranges is not None
            meets, within = path_probe.value_ranges.compare(self.low, self.high)
            has_values = (self.kinds & ALL_KINDS) != 0
            if path_probe.reading in ("number", "day"):
                has_values = self.low.is_valid().to_numpy(zero_copy_only=False)  # type: ignore[union-attr]
            true = has_values & meets
            null_is_exact = path_probe.reading == "text" and not path_probe.usual_documents_only
            null = absent if null_is_exact else np.full_like(absent, path_probe.reading != "member")
            false = (has_values & ~within) | (null if path_probe.reading != "member" else np.ones_like(null))
        bits = true * ALL | (false | null) * NONE | null * _NULL
        nowhere = {"null": ALL, "member": NONE}.get(path_probe.reading, NONE | _NULL)
        return np.where(self.usable, bits, np.where(self.absent, nowhere, _UNKNOWN)).astype(np.uint8)


def _positions(units: pa.Array, chosen: pa.Array, count: int) -> npt.NDArray[np.int64]:
    """Where each of so many units has its chosen entry, -1 where it has none: int64 of shape (count,)."""
    positions = np.full(count, -1, np.int64)
    positions[units.filter(chosen).to_numpy()] = np.flatnonzero(chosen.to_numpy(zero_copy_only=False))
    return positions


def _lacks_names(entries: pa.Array, units: pa.Array, count: int, wanted: Names) -> _Mask:
    """Say of so many units whether no document has these names within each other: bool of shape (count,)."""
    lacks = np.zeros(count, np.bool_)
    if not wanted:
        return lacks
    is_list = pc.equal(pc.struct_field(entries, "path"), NAMES_ENTRY).fill_null(False)
    found = entries.filter(is_list)
    pairs = list(
        zip(pc.struct_field(found, "low").to_pylist(), pc.struct_field(found, "present").to_pylist(), strict=True)
    )
    answers = {pair: lacks_names(pair[0], pair[1] or 0, wanted) for pair in set(pairs)}
    lacks[units.filter(is_list).to_numpy()] = [answers[pair] for pair in pairs]
    return lacks


@dataclass(frozen=True, eq=False)
class BloomView:
    """The units of a batch as bloom sees them: its own part of each summary, null where ``probed`` is False.

    ``probed``: bool, one value per unit.
    """

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
        """Rows of each of n units: int64, shape (n,)."""
        return self.batch.row_counts

    @property
    def zone_offsets(self) -> npt.NDArray[np.int64]:
        """Offsets of each unit's zones: int64, shape (n + 1,)."""
        return self.batch.zone_offsets

    @property
    def zone_rows(self) -> npt.NDArray[np.int64]:
        """Rows of each zone: int64, shape (zones,)."""
        return self.batch.zone_rows

    def statistics(self, number: int) -> None:
        """None: statistics of documents say nothing of the values in them."""

    def payload(self, unit: int) -> Payload | None:
        return self.batch.payload(unit)

    def read_payloads(self) -> list[bytes | None]:
        return self.batch.read_payloads()

    def packs(self) -> Sequence[tuple[Payload, npt.NDArray[np.int64]]]:
        """Each pack, with the units in it: int64 indices, shape (m,)."""
        return self.batch.packs()
