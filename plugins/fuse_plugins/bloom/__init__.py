"""Bloom filters: which zones may hold a value, for =, <=> and IN of any length.

One filter a zone, as large as the zone's distinct values ask for; zones of one value or none need no filter. The
filters of all blocks that one task writes are stored bit-sliced, so that a value costs a few short reads, however many
zones are asked for it. From the inside out: ``hashing`` (values to 64 bits), ``filters`` (one filter), ``bit_matrix``
(many filters of one size), ``zone_filter`` (a zone's filter as it is written), ``zone_index`` (zones as they are read).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.plugin import (
    ALL,
    NONE,
    SOME,
    Ballot,
    BlockBatch,
    Conjunction,
    IndexKind,
    Input,
    Pack,
    Probe,
    Reason,
    Refusal,
    Sidecar,
    hookimpl,
    map_concurrently,
)
from fuse_index.predicate import Compare, Context, In, Leaf, Literal, Term
from fuse_plugins.bloom.bit_matrix import transpose_filters
from fuse_plugins.bloom.filters import filter_shape
from fuse_plugins.bloom.hashing import hash_family
from fuse_plugins.bloom.zone_filter import (
    MAX_AVERAGE_TEXT_BYTES,
    checksum_chunk_bytes,
    is_long_text,
    sidecar_filters,
    summarize_zone,
)
from fuse_plugins.bloom.zone_index import BLOOM_SUMMARY_TYPE, ProbeValues, ZoneSummaries


@dataclass(frozen=True)
class BloomOptions:
    """Options of a bloom index.

    ``fpp``: the share of zones without a value that are read for it all the same. ``long_text``: also on text that is
    longer than 256 bytes on average.
    """

    fpp: float = 0.001
    long_text: bool = False

    def __post_init__(self) -> None:
        if not 0.0001 <= self.fpp <= 0.5:
            raise ValueError(f"fpp={self.fpp!r}: choose a share between 0.0001 and 0.5")


class Bloom(IndexKind):
    """One bloom filter for each zone of a column."""

    name = "bloom"
    Options = BloomOptions

    def accepts(self, inputs: Sequence[Input], options: BloomOptions) -> Refusal | None:
        if len(inputs) != 1:
            return Refusal(
                Reason.LEAF_UNSUPPORTED, f"bloom is on one column, not {len(inputs)}: make an index for each"
            )
        if hash_family(inputs[0].type) is None:
            return Refusal(Reason.TYPE_MISMATCH, f"cannot hash values of type {inputs[0].type}")
        return None

    def summary_type(self, inputs: Sequence[Input], options: BloomOptions) -> pa.DataType:
        return BLOOM_SUMMARY_TYPE

    def build(self, rows: pa.Table, zones: npt.NDArray[np.int64], options: BloomOptions) -> Sidecar:
        """Build a filter for each of n zones of the one column; ``zones``: row offsets, int64 of shape (n + 1,)."""
        values = rows.column(0).combine_chunks()
        bounds = list(zip(zones[:-1].tolist(), zones[1:].tolist(), strict=True))
        if not options.long_text and is_long_text(values):
            return Sidecar({"family": hash_family(values.type), "zones": [{} for _ in bounds]})
        summarized = [summarize_zone(values.slice(start, end - start), options.fpp) for start, end in bounds]
        filters = [filter_bytes for _, filter_bytes in summarized if filter_bytes is not None]
        return Sidecar(
            {"family": hash_family(values.type), "zones": [zone for zone, _ in summarized]},
            b"".join(filters) if filters else None,
            {"lengths": [len(filter_bytes) for filter_bytes in filters]},
        )

    def pack(self, sidecars: Sequence[Sidecar]) -> Pack:
        """Lay all filters of one size into one matrix, one matrix after the other.

        A sidecar's span is its share of the bytes, of which no single ones are its own.
        """
        sidecars = [replace(sidecar, summary=deepcopy(sidecar.summary)) for sidecar in sidecars]
        by_capacity: dict[int, list[tuple[dict[str, Any], npt.NDArray[np.uint8]]]] = {}
        for sidecar in sidecars:
            for zone, filter_bytes in sidecar_filters(sidecar):
                by_capacity.setdefault(zone["capacity"], []).append((zone, filter_bytes))
        matrices: list[bytes] = []
        start = 0
        for capacity in sorted(by_capacity):
            for column, (zone, _) in enumerate(by_capacity[capacity]):
                zone |= {"matrix": start, "columns": len(by_capacity[capacity]), "column": column}
            matrices.append(transpose_filters([filter_bytes for _, filter_bytes in by_capacity.pop(capacity)]))
            start += len(matrices[-1])
        return Pack(
            b"".join(matrices),
            checksum_chunk_bytes(start),
            [sidecar.summary for sidecar in sidecars],
            _payload_spans(sidecars),
        )

    def compile(
        self, what: Leaf | Conjunction, inputs: Sequence[Input], options: BloomOptions, context: Context
    ) -> Probe[ProbeValues] | Refusal:
        if len(inputs) != 1:
            return Refusal(Reason.LEAF_UNSUPPORTED, "bloom is on one column")
        values = _listed_values(what, inputs[0].term)
        if values is None:
            return Refusal(Reason.LEAF_UNSUPPORTED, "a bloom filter answers =, <=> and IN")
        probe_values = ProbeValues.from_values(values, inputs[0].type, options.fpp)
        return Probe(probe_values, cost=1.0 + 100.0 * len(probe_values.hashes))

    def probe(self, probe: Probe[ProbeValues], batch: BlockBatch) -> Ballot:
        probe_values = probe.what
        votes = np.full(len(batch.zone_rows), SOME, np.uint8)
        if batch.summaries is None or not len(batch):
            return Ballot(votes)
        zones = ZoneSummaries.from_batch(batch, probe_values.family)
        unfiltered = zones.capacity == 0
        constants = zones.constant.filter(pa.array(unfiltered))
        equal = pc.is_in(constants, probe_values.value_bytes, skip_nulls=True).to_numpy(zero_copy_only=False)
        votes[zones.batch_zone[unfiltered]] = np.where(equal, ALL, NONE)
        ranges = zones.repeat_per_zone(*probe_values.ranges_by_unit(batch.statistics(0), len(batch)))
        packs = [
            (payload, filtered) for payload, units in batch.packs() if len(filtered := zones.zones_with_filter(units))
        ]
        for absent in map_concurrently(lambda pack: zones.zones_without(probe_values, *pack, ranges), packs):
            votes[zones.batch_zone[absent]] = NONE
        return Ballot(votes)

    def inspect(self, sidecars: BlockBatch, options: BloomOptions) -> Mapping[str, Any]:
        if sidecars.summaries is None:
            return {}
        capacity = pc.struct_field(pc.list_flatten(pc.struct_field(sidecars.summaries, "zones")), "capacity")
        capacities = capacity.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        shapes = [filter_shape(size, options.fpp) for size in capacities[capacities > 0].tolist()]
        skipped = int((capacities < 0).sum())
        why = f"text is longer than {MAX_AVERAGE_TEXT_BYTES} bytes on average: long_text=True indexes it all the same"
        return {
            "hash": "xxh3-64",
            "fpp": options.fpp,
            "zones": len(capacities),
            "filters": len(shapes),
            "filter_bytes": sum(slices * bits for slices, bits in shapes) // 8,
            "constant_zones": int((capacities == 0).sum()),
            "skipped_zones": skipped,
            "skipped_because": why if skipped else None,
        }


@hookimpl
def fuse_index_kinds() -> list[type[IndexKind]]:
    return [Bloom]


def _payload_spans(sidecars: Sequence[Sidecar]) -> list[tuple[int, int] | None]:
    """Divide the pack among sidecars, each a span of as many bytes as its filters had.

    A block's bits lie all over the pack, so a span says how much is whose, not where.
    """
    lengths = [len(sidecar.payload or b"") for sidecar in sidecars]
    return [
        (end - length, length) if length else None for end, length in zip(accumulate(lengths), lengths, strict=True)
    ]


def _listed_values(what: Leaf | Conjunction, term: Term) -> list[Any] | None:
    """The only values of the term on which the leaf may be TRUE; None if they cannot be listed."""
    match what:
        case Compare("=" | "<=>", left, Literal(value)) if left == term and value is not None:
            return [value]
        case In(left) if left == term:
            return [value for value in what.plain_values if value is not None] if what.has_null else what.plain_values
        case Conjunction():
            points = what.domain(term).points()
            return None if points is None else list(points)
        case _:
            return None
