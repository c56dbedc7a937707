"""An index of a few blocks, in memory, made as the engine makes it.

It is built, packed and sealed, and read with every byte checked.
Sits where the planner's batches sit, between a kind and what it keeps. Judges nothing.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.expressions.evaluate import evaluate, evaluate_term
from fuse_index.expressions.function import Function
from fuse_index.expressions.traversal import columns_of
from fuse_index.indexes.block_batch import Payload, read_only
from fuse_index.indexes.interface import IndexKind, Input
from fuse_index.predicate import Column, Context, Predicate
from fuse_index.sql.parse import parse_predicate
from fuse_storage import (
    Cache,
    ColumnStatistics,
    Corrupt,
    NotFound,
    Pack,
    PackSlice,
    Schema,
    Sidecar,
    Store,
    add_checksums,
    compute_statistics,
)

__tracebackhide__ = True  # authors look for nothing here: pytest shows frames of theirs

_Numbers = npt.NDArray[np.int64]
BlockZones = Sequence[pa.Table]
"""A block, as the rows of each of its zones."""


@dataclass(frozen=True)
class KindUnderTest:
    """What is tested: a kind on some inputs, with options."""

    kind: IndexKind
    inputs: tuple[Input, ...]
    options: Any
    functions: Mapping[str, Function] = field(default_factory=dict)
    context: Context = field(default_factory=Context)

    def __str__(self) -> str:
        types = ", ".join(
            f"{given.function} of {given.type}" if given.function else str(given.type) for given in self.inputs
        )
        options = "" if self.options == type(self.options)() else f" with {self.options}"
        return f"{self.kind.name} on {types}{options}"

    @cached_property
    def condition(self) -> Predicate | None:
        """What rows must be for the kind to be shown them; None: whatever they are."""
        text = self.kind.condition(self.options)
        if text is None:
            return None
        columns = dict.fromkeys(column for given in self.inputs for column in columns_of(given.term))
        schema = Schema.create(pa.schema([(column.path[0], column.type) for column in columns]))
        return parse_predicate(text, schema, self.context)

    def wanted_rows(self, rows: pa.Table) -> pa.Table:
        """The rows that the kind is to know of."""
        if self.condition is None:
            return rows
        return rows.filter(evaluate(self.condition, rows, self.context, self.functions))

    def input_rows(self, rows: pa.Table) -> pa.Table:
        """The values of each input, as ``build`` gets them."""
        values = [evaluate_term(given.term, rows, self.context, self.functions) for given in self.inputs]
        return pa.table(values, [str(number) for number in range(len(values))])


@dataclass(frozen=True)
class MemoryFiles:
    """What was written, by key: all of a store that reading payloads needs."""

    data: Mapping[str, bytes]
    url: str = "memory:index-tests"

    def read_ranges(self, key: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        if key not in self.data:
            raise NotFound(f"{self.url}/{key} does not exist")
        if any(start + length > len(self.data[key]) for start, length in ranges):
            raise Corrupt(f"{self.url}/{key} ends before it should")
        return [self.data[key][start : start + length] for start, length in ranges]


@dataclass(frozen=True)
class PayloadLocation:
    """Where a payload lies: the file, its length when it was written, the bytes between checksums, and its part."""

    key: str
    length: int
    chunk: int
    span: tuple[int, int]


@dataclass(frozen=True)
class MemoryBatch:
    """Some units with all that an index knows of them: a ``BlockBatch``.

    ``whole``: the units are shown without their zones, as segments are.
    """

    kind_under_test: KindUnderTest
    blocks: tuple[BlockZones, ...]
    summaries: pa.Array | None
    locations: tuple[PayloadLocation | None, ...]
    files: MemoryFiles
    without_zones: bool = False
    cache: Cache = field(default_factory=lambda: Cache(1 << 24))

    @classmethod
    def index_blocks(cls, subject: KindUnderTest, blocks: Sequence[BlockZones], packs: int = 2) -> MemoryBatch:
        """Index these blocks, their payloads in so many packs."""
        if subject.kind.implicit:
            return cls(subject, tuple(blocks), None, (None,) * len(blocks), MemoryFiles({}))
        sidecars = [build_sidecar(subject, zones) for zones in blocks]
        bounds = np.linspace(0, len(blocks), min(packs, len(blocks)) + 1).astype(int).tolist()
        return cls._of_packs(
            subject, blocks, [subject.kind.pack(sidecars[start:end]) for start, end in pairwise(bounds)]
        )

    @classmethod
    def _of_packs(cls, subject: KindUnderTest, blocks: Sequence[BlockZones], packs: Sequence[Pack]) -> MemoryBatch:
        summaries: list[Any] = []
        places: list[PayloadLocation | None] = []
        files: dict[str, bytes] = {}
        for number, pack in enumerate(packs):
            key = f"pack-{number}"
            files[key] = add_checksums(pack.data, pack.chunk, key)
            places += [
                None if span is None else PayloadLocation(key, len(files[key]), pack.chunk, span) for span in pack.spans
            ]
            summaries += pack.summaries
        assert len(places) == len(summaries) == len(blocks), (
            f"{subject}: pack() must keep one summary and one span for each sidecar"
        )
        known = pa.array(summaries, subject.kind.summary_type(subject.inputs, subject.options))
        return cls(subject, tuple(blocks), known, tuple(places), MemoryFiles(files))

    def with_pack(self, build: Callable[[IndexKind, list[tuple[pa.Table, _Numbers]], Any], Pack]) -> MemoryBatch:
        """Index the blocks anew by ``build``, which gets the kind, the arguments for each block, and the options.

        Of these arguments the second says where zones begin: int64, shape (number of zones + 1,).
        """
        subject = self.kind_under_test
        arguments = [build_arguments(subject, zones) for zones in self.blocks]
        return self._of_packs(subject, self.blocks, [build(subject.kind, arguments, subject.options)])

    def __len__(self) -> int:
        return len(self.blocks)

    # --- what a kind sees -------------------------------------------------------------------------------------------

    @cached_property
    def zone_offsets(self) -> _Numbers:
        """int64, shape (n + 1,): unit i has the zones ``zone_offsets[i]:zone_offsets[i + 1]``."""
        counts = [1 if self.without_zones else len(zones) for zones in self.blocks]
        return read_only(np.append(0, np.cumsum(counts)).astype(np.int64))

    @cached_property
    def zone_rows(self) -> _Numbers:
        """int64, shape (number of zones,): the rows of each."""
        if self.without_zones:
            return self.row_counts
        return read_only(np.array([zone.num_rows for zones in self.blocks for zone in zones], np.int64))

    @cached_property
    def row_counts(self) -> _Numbers:
        """int64, shape (n,): the rows of each unit."""
        return read_only(np.array([sum(zone.num_rows for zone in zones) for zones in self.blocks], np.int64))

    def statistics(self, number: int) -> ColumnStatistics | None:
        return self._statistics[number]

    @cached_property
    def _statistics(self) -> list[ColumnStatistics | None]:
        offsets = np.append(0, np.cumsum(self.row_counts))
        return [
            compute_statistics(values, offsets) if isinstance(given.term, Column) else None
            for given, values in zip(self.kind_under_test.inputs, self.input_rows.columns, strict=True)
        ]

    def payload(self, unit: int) -> Payload | None:
        place = self.locations[unit]
        return None if place is None else self._open(place, place.span)

    def packs(self) -> list[tuple[Payload, _Numbers]]:
        """Each pack as one payload, with the units in it: int64, shape (k,)."""
        members: dict[str, list[int]] = {}
        for unit, place in enumerate(self.locations):
            if place is not None:
                members.setdefault(place.key, []).append(unit)
        places = [(cast(PayloadLocation, self.locations[units[0]]), units) for units in members.values()]
        return [(self._open(place, None), np.array(units, np.int64)) for place, units in places]

    def read_payloads(self) -> list[bytes | None]:
        payloads = map(self.payload, range(len(self)))
        return [None if each is None else each.read([(0, each.size)])[0] for each in payloads]

    def _open(self, place: PayloadLocation, span: tuple[int, int] | None) -> Payload:
        return PackSlice(cast(Store, self.files), place.key, place.chunk, place.length, span, self.cache)

    # --- what a test sees -------------------------------------------------------------------------------------------

    @cached_property
    def rows(self) -> pa.Table:
        """All rows, unit after unit, zone after zone."""
        return pa.concat_tables([zone for zones in self.blocks for zone in zones]).combine_chunks()

    @cached_property
    def input_rows(self) -> pa.Table:
        return self.kind_under_test.input_rows(self.rows).combine_chunks()

    def take(self, units: Sequence[int]) -> MemoryBatch:
        """Choose these units only, in this order."""
        return replace(
            self,
            blocks=tuple(self.blocks[unit] for unit in units),
            locations=tuple(self.locations[unit] for unit in units),
            summaries=None if self.summaries is None else self.summaries.take(pa.array(units, pa.int64())),
        )

    def without_summaries(self, units: Sequence[int]) -> MemoryBatch:
        """Make these units ones that have never been indexed."""
        assert self.summaries is not None
        known = [unit not in units for unit in range(len(self))]
        indices = pa.array([unit if keep else None for unit, keep in enumerate(known)], pa.int64())
        places = tuple(place if keep else None for place, keep in zip(self.locations, known, strict=True))
        return replace(self, summaries=self.summaries.take(indices), locations=places)

    def with_changed_packs(self, change: Callable[[bytes], bytes]) -> MemoryBatch:
        """Change the bytes of every pack, as damage after it was written would."""
        files = MemoryFiles({key: change(data) for key, data in self.files.data.items()})
        return replace(self, files=files, cache=Cache(1 << 24))

    def without_files(self) -> MemoryBatch:
        """Take every pack away."""
        return replace(self, files=MemoryFiles({}), cache=Cache(1 << 24))

    def as_segments(self, size: int) -> MemoryBatch:
        """Segments of so many units each, with the summary that the kind makes of theirs."""
        assert self.summaries is not None
        groups = [range(start, min(start + size, len(self))) for start in range(0, len(self), size)]
        kind: Any = self.kind_under_test.kind
        parts = [self.summaries.slice(group[0], len(group)) for group in groups]
        made = [None if part.null_count else kind.roll_up(part) for part in parts]
        values = [None if one is None else one.as_py() for one in made]
        data_type = (
            self.summaries.type
            if all(one is None for one in made)
            else next(one.type for one in made if one is not None)
        )
        blocks = tuple([zone for unit in group for zone in self.blocks[unit]] for group in groups)
        return replace(
            self,
            blocks=blocks,
            summaries=pa.array(values, data_type),
            locations=(None,) * len(groups),
            without_zones=True,
        )


def build_arguments(subject: KindUnderTest, zones: BlockZones) -> tuple[pa.Table, _Numbers]:
    """What ``build`` is given of one block: the values of the inputs, and where zones begin.

    The latter is int64, of shape (number of zones + 1,).
    """
    rows = pa.concat_tables(zones)  # in a chunk a zone, as a reader may give them
    offsets = np.append(0, np.cumsum([zone.num_rows for zone in zones])).astype(np.int64)
    if subject.condition is not None:
        rows = subject.wanted_rows(rows)
        offsets = np.array([0, rows.num_rows], np.int64)
    return subject.input_rows(rows), offsets


def build_sidecar(subject: KindUnderTest, zones: BlockZones) -> Sidecar:
    """What the kind keeps of one block."""
    sidecar = subject.kind.build(*build_arguments(subject, zones), subject.options)
    assert isinstance(sidecar, Sidecar), f"{subject}: build() gave {type(sidecar).__name__}, not a Sidecar"
    assert sidecar.payload is None or isinstance(sidecar.payload, bytes), (
        f"{subject}: the payload is {type(sidecar.payload).__name__}, not bytes"
    )
    return cast(Sidecar, pickle.loads(pickle.dumps(sidecar)))  # it may have been built in another process
