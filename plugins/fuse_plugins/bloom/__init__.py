"""Bloom filters: which zones may hold a value, for =, <=> and IN of any length.

One filter a zone, as large as the zone's distinct values ask for; zones of one value or none need no filter. The
filters of all blocks that one task writes are stored bit-sliced, so that a needle in many zones costs a few short
reads.
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
from fuse_plugins.bloom.hashing import hash_family
from fuse_plugins.bloom.zone_filter import (
    MAX_AVERAGE_TEXT_BYTES,
    checksum_chunk_bytes,
    is_long_text,
    sidecar_filters,
    summarize_zone,
)
from fuse_plugins.bloom.zone_index import BLOOM_SUMMARY_TYPE, ProbeValues, ZoneSummaries, filter_shape


@dataclass(frozen=True)
class BloomOptions:
    """``fpp``: the share of zones without a value that are read for it all the same. ``long_text``: also on text that
    is longer than 256 bytes on average.
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
        values = rows.column(0).combine_chunks()
        bounds = list(zip(zones[:-1].tolist(), zones[1:].tolist(), strict=True))
        if not options.long_text and is_long_text(values):
            return Sidecar({"family": hash_family(values.type), "zones": [{} for _ in bounds]})
        made = [summarize_zone(values.slice(start, end - start), options.fpp) for start, end in bounds]
        payloads = [found for _, found in made if found is not None]
        return Sidecar(
            {"family": hash_family(values.type), "zones": [zone for zone, _ in made]},
            b"".join(payloads) if payloads else None,
            {"lengths": [len(found) for found in payloads]},
        )

    def pack(self, sidecars: Sequence[Sidecar]) -> Pack:
        """All filters of one size as one matrix, one matrix after the other; a sidecar's span is its share of the
        bytes.
        """
        sidecars = [replace(sidecar, summary=deepcopy(sidecar.summary)) for sidecar in sidecars]
        sizes: dict[int, list[tuple[dict[str, Any], npt.NDArray[np.uint8]]]] = {}
        for sidecar in sidecars:
            for zone, found in sidecar_filters(sidecar):
                sizes.setdefault(zone["capacity"], []).append((zone, found))
        matrices: list[bytes] = []
        start = 0
        for capacity in sorted(sizes):
            for column, (zone, _) in enumerate(sizes[capacity]):
                zone |= {"matrix": start, "columns": len(sizes[capacity]), "column": column}
            matrices.append(transpose_filters([found for _, found in sizes.pop(capacity)]))
            start += len(matrices[-1])
        return Pack(
            b"".join(matrices),
            checksum_chunk_bytes(start),
            [sidecar.summary for sidecar in sidecars],
            _payload_spans(sidecars),
        )

    def compile(
        self, what: Leaf | Conjunction, inputs: Sequence[Input], options: BloomOptions, context: Context
    ) -> Probe | Refusal:
        if len(inputs) != 1:
            return Refusal(Reason.LEAF_UNSUPPORTED, "bloom is on one column")
        wanted = _values(what, inputs[0].term)
        if wanted is None:
            return Refusal(Reason.LEAF_UNSUPPORTED, "a bloom filter answers =, <=> and IN")
        needles = ProbeValues.from_values(wanted, inputs[0].type, options.fpp)
        return Probe(needles, cost=1.0 + 100.0 * len(needles.hashes))

    def probe(self, probe: Probe, batch: BlockBatch) -> Ballot:
        needles: ProbeValues = probe.what
        votes = np.full(len(batch.zone_rows), SOME, np.uint8)
        if batch.summaries is None or not len(batch):
            return Ballot(votes)
        zones = ZoneSummaries.from_batch(batch, needles.family)
        free = zones.capacity == 0
        equal = pc.is_in(zones.constant.filter(pa.array(free)), needles.value_bytes, skip_nulls=True).to_numpy(
            zero_copy_only=False
        )
        votes[zones.batch_zone[free]] = np.where(equal, ALL, NONE)
        wanted = zones.repeat_per_zone(*needles.ranges_by_unit(batch.statistics(0), len(batch)))
        packs = [(payload, chosen) for payload, units in batch.packs() if len(chosen := zones.zones_with_filter(units))]
        for absent in map_concurrently(lambda pack: zones.zones_without(needles, *pack, wanted), packs):
            votes[zones.batch_zone[absent]] = NONE
        return Ballot(votes)

    def inspect(self, sidecars: BlockBatch, options: BloomOptions) -> Mapping[str, Any]:
        if sidecars.summaries is None:
            return {}
        capacity = pc.struct_field(pc.list_flatten(pc.struct_field(sidecars.summaries, "zones")), "capacity")
        found = capacity.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        sizes = [filter_shape(one, options.fpp) for one in found[found > 0].tolist()]
        skipped = int((found < 0).sum())
        why = f"text is longer than {MAX_AVERAGE_TEXT_BYTES} bytes on average: long_text=True indexes it all the same"
        return {
            "hash": "xxh3-64",
            "fpp": options.fpp,
            "zones": len(found),
            "filters": len(sizes),
            "filter_bytes": sum(slices * bits for slices, bits in sizes) // 8,
            "constant_zones": int((found == 0).sum()),
            "skipped_zones": skipped,
            "skipped_because": why if skipped else None,
        }


@hookimpl
def fuse_index_kinds() -> list[type[IndexKind]]:
    return [Bloom]


def _payload_spans(sidecars: Sequence[Sidecar]) -> list[tuple[int, int] | None]:
    """Spans that say how much of the pack is whose. A block's bits lie all over it, so only the pack as a whole is
    read.
    """
    lengths = [len(sidecar.payload or b"") for sidecar in sidecars]
    return [
        (end - length, length) if length else None for end, length in zip(accumulate(lengths), lengths, strict=True)
    ]


def _values(what: Leaf | Conjunction, term: Term) -> list[Any] | None:
    """The only values of the term on which the leaf may be TRUE; None if they are not a list."""
    match what:
        case Compare("=" | "<=>", left, Literal(value)) if left == term and value is not None:
            return [value]
        case In(left, literals) if left == term:
            return [literal.value for literal in literals if literal.value is not None]
        case Conjunction():
            points = what.domain(term).points()
            return None if points is None else list(points)
        case _:
            return None
