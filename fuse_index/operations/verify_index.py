"""Judging an index by its rows: is each what its vote called possible, and is every byte as it was written?

Votes are asked for and made whole as the planner does it, but only of the blocks that are judged.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.aggregates.finalize import comparable_answer
from fuse_index.aggregates.state import Aggregation, state_of
from fuse_index.errors import OpaqueError
from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.evaluate import evaluate, evaluate_term
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.indexes.ballot import FALSE, NULL, TRUE
from fuse_index.indexes.block_batch import FrameBatch, ZoneMap
from fuse_index.indexes.builder import IndexBuilder
from fuse_index.indexes.definition import IndexDefinition
from fuse_index.indexes.interface import Answers, Probe, Refusal, RollsUp, Votes
from fuse_index.indexes.registry import Host
from fuse_index.indexes.sandbox import PluginFailure, check_probe, sandboxed_call
from fuse_index.operations.sample_predicates import generate_predicates
from fuse_index.operations.unindexed import build_problems
from fuse_index.predicate import And, Column, Context, Leaf
from fuse_index.pruning.calls.call_probe import call_probe
from fuse_index.pruning.nulls import (
    NullPresence,
    complete_ballot,
    decided_by_engine,
    strict_function_names,
    strip_nulls_for_kind,
)
from fuse_index.pruning.readable import null_where_unusable, readable_blocks, usable_roll_ups
from fuse_storage import BlockFrame, CachedStore, PackSlice, Shown, SidecarRows, StorageError, StoredTable, unpack_mask

_KIND_TIMEOUT_SECONDS, _READ_CHUNK_BYTES = 30.0, 8 << 20
"""How long a kind may take for one vote, and how many bytes of a pack are read at once."""

_TruthBits = npt.NDArray[np.uint8]
_Offsets = npt.NDArray[np.int64]
_KIND_FAILS = "its kind fails in "
_TRUTH_NAMES = {TRUE: "TRUE", FALSE: "FALSE", NULL: "NULL"}


@dataclass(frozen=True, repr=False)
class Verification(Shown):
    """What was looked at, and what is wrong. ``problems`` is empty for an index that may be trusted."""

    _shown = "index sound blocks payloads leaves problems"

    index: str
    blocks: int
    """Blocks whose rows were read again."""
    payloads: int
    """Blocks whose payloads were read, every byte of them."""
    leaves: int
    """Predicates that the index voted on."""
    problems: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        counts = {name: getattr(self, name) for name in ("blocks", "payloads", "leaves")}
        return {"index": self.index, "sound": self.sound, **counts, "problems": list(self.problems)}

    def __str__(self) -> str:
        looked = f"{self.leaves} predicates on {self.blocks} blocks, {self.payloads} payloads by checksum"
        if self.sound and not self.blocks:
            return f"{self.index} was not verified: no block is indexed; refresh it"
        if self.sound and not self.leaves:
            return f"{self.index} has whole payloads, and voted on nothing that was drawn: {looked}"
        if self.sound:
            return f"{self.index} is sound: {looked}"
        only_kind = all(problem.startswith(_KIND_FAILS) for problem in self.problems)
        advice = "its kind has to be repaired" if only_kind else "rebuild it"
        return "\n".join([f"{self.index} is not sound ({looked}); {advice}:", *(f"  {each}" for each in self.problems)])


def check_index(
    table: StoredTable, definition: IndexDefinition, host: Host, max_blocks: int = 16, seed: int = 0
) -> Verification:
    """Check all payloads by their checksums, and the votes on up to ``max_blocks`` indexed blocks by the oracle.

    Raises StorageError if the table itself cannot be read.
    """
    # what is kept in memory says nothing of the files
    frame = (table := StoredTable(CachedStore(table.store), table.branch, table.entry, table.snapshot)).blocks()
    sidecars = frame.sidecars(definition.key)
    if sidecars is None:
        return Verification(definition.name, 0, 0, 0, build_problems(table, definition, host, _KIND_FAILS))
    problems, payloads = [sidecars.error] if sidecars.error else [], 0
    problems += build_problems(table, definition, host, _KIND_FAILS)
    for pack, members in sidecars.packs():
        payloads += len(members)
        if (problem := _read_error(pack)) is not None:
            names = ", ".join(frame.ids[member] for member in members[:3].tolist())
            problems.append(
                f"the payload of {len(members)} blocks ({names}{', …' if len(members) > 3 else ''}): {problem}"
            )
    usable = np.flatnonzero(readable_blocks(sidecars, definition.kind_in(host)))
    pick = random.Random(seed)
    chosen = np.array(sorted(pick.sample(usable.tolist(), min(max_blocks, len(usable)))), np.int64)
    judge = _VoteChecker(table, definition, host, frame, sidecars, chosen)
    for place in range(len(chosen)):
        problems += judge.check_block(place, pick)
    return Verification(definition.name, len(chosen), payloads, judge.leaf_count, tuple(dict.fromkeys(problems)))


def _read_error(pack: PackSlice) -> str | None:
    try:
        for start in range(0, pack.size, _READ_CHUNK_BYTES):
            pack.read([(start, min(_READ_CHUNK_BYTES, pack.size - start))])
    except StorageError as error:
        return str(error)
    return None


@dataclass(frozen=True, slots=True)
class _JudgedUnit:
    """A block or a segment whose votes are judged: its number in a batch, and its zones there."""

    batch: FrameBatch
    number: int
    zones: slice
    name: str


@dataclass
class _VoteChecker:
    """Asks the kind about the ``chosen`` blocks together, and judges its votes on one of them after the other."""

    table: StoredTable
    definition: IndexDefinition
    host: Host
    frame: BlockFrame
    sidecars: SidecarRows
    sample: _Offsets
    leaf_count: int = 0
    strict_functions: frozenset[str] = field(init=False)
    failures: dict[tuple[str, str], str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.strict_functions = strict_function_names(self.host.functions)
        self.kind, self.context = self.definition.kind_in(self.host), self.definition.context or Context()

    def check_block(self, place: int, rng: random.Random) -> Iterator[str]:
        """What is wrong with votes on the block that is number ``place`` of the chosen ones."""
        builder, number = IndexBuilder.for_definition(self.definition, self.host), int(self.sample[place])
        try:
            rows = self.table.read_block(self.frame, number, builder.columns)
        except StorageError as damage:
            yield f"block {self.frame.ids[number]} cannot be read: {damage}"
            return
        if isinstance(self.kind, Answers):
            yield from self._check_state(place, self.kind, rows)
        inputs = builder.input_values(rows)
        for leaf in generate_predicates(self.definition.inputs, inputs, self.host.functions, rng):
            if (truth := self._evaluate_leaf(leaf, rows)) is None or decided_by_engine(leaf):
                continue
            probe = self._compile(leaf)
            if isinstance(probe, str):
                yield probe
            elif probe is not None:
                self.leaf_count += 1
                yield from self._check_leaf(place, leaf, probe, truth, inputs)

    def _check_state(self, place: int, kind: Answers, rows: pa.Table) -> Iterator[str]:
        """Compare what is kept of a block with what its rows come to."""
        groups = tuple(given.term for given in self.definition.inputs if not given.function)
        kept = tuple(given.aggregate for given in self.definition.inputs if given.function)
        asked = Aggregation(groups, kept)
        probe = sandboxed_call(
            lambda: check_probe(
                kind.match(asked, self.definition.inputs, self.definition.options, self.context), "match"
            ),
            _KIND_TIMEOUT_SECONDS,
        )
        found = (
            sandboxed_call(lambda: kind.state(probe, self._batch, place), _KIND_TIMEOUT_SECONDS)
            if isinstance(probe, Probe)
            else probe
        )
        name = self.frame.ids[int(self.sample[place])]
        if isinstance(found, PluginFailure | Refusal):
            yield f"block {name}: {found.detail}"
        if not isinstance(found, pa.Table):
            return
        self.leaf_count += 1
        if self.definition.where is not None:
            rows = rows.filter(evaluate(self.definition.where, rows, self.context, self.host.functions))
        right = state_of(
            asked, lambda term: evaluate_term(term, rows, self.context, self.host.functions), rows.num_rows
        )
        if comparable_answer(asked, found) != comparable_answer(asked, right):
            yield f"block {name}: its rows come to other aggregates than are kept of it"

    def _compile(self, leaf: Leaf | Conjunction) -> Probe[Any] | str | None:
        """The compiled leaf, or what is wrong with the kind; None if it says that it has nothing to say."""
        kind, inputs, options = self.kind, self.definition.inputs, self.definition.options
        if not isinstance(kind, Votes):
            return None
        probe = sandboxed_call(
            lambda: check_probe(kind.compile(strip_nulls_for_kind(leaf), inputs, options, self.context), "compile"),
            _KIND_TIMEOUT_SECONDS,
        )
        if isinstance(probe, PluginFailure):
            return self._failure("compile", leaf, probe.detail)
        return probe if isinstance(probe, Probe) else None

    def _failure(self, method: str, leaf: Leaf | Conjunction, detail: str) -> str:
        """Say how the kind fails: in the words of the first predicate, whatever others it fails on alike."""
        first = self.failures.setdefault((method, detail), predicate_sql(leaf))
        return f"{_KIND_FAILS}{method}(), such as on {first}: {detail}"

    def _check_leaf(
        self, place: int, leaf: Leaf | Conjunction, probe: Probe[Any], truth: _TruthBits, inputs: pa.Table
    ) -> Iterator[str]:
        number = int(self.sample[place])
        zones = slice(int(self._batch.zone_offsets[place]), int(self._batch.zone_offsets[place + 1]))
        block = _JudgedUnit(self._batch, place, zones, f"block {self.frame.ids[number]}")
        yield from self._check_unit(probe, leaf, block, truth, inputs)
        if (segments := self._segments) is not None and probe.cost == 0:
            starts = self.table.segments().block_offsets
            owner = int(np.searchsorted(starts, self.frame.ordinals[number], side="right")) - 1
            if segments.summaries is not None and segments.summaries[owner].is_valid:
                name = f"segment {self.table.segments().ids[owner]}"
                segment = _JudgedUnit(segments, owner, slice(owner, owner + 1), name)
                yield from self._check_unit(probe, leaf, segment, truth, inputs)

    def _check_unit(
        self, probe: Probe[Any], leaf: Leaf | Conjunction, unit: _JudgedUnit, truth: _TruthBits, inputs: pa.Table
    ) -> Iterator[str]:
        """Compare the votes on a unit with the truth about rows that are in it."""
        kind: Any = self.kind
        answer = call_probe(kind, probe, unit.batch, _KIND_TIMEOUT_SECONDS)
        if isinstance(answer, PluginFailure):
            yield self._failure("probe", leaf, answer.detail)
            return
        zone_rows, zones = unit.batch.zone_rows, unit.zones
        by_zone = len(answer) == len(zone_rows)
        own = answer.take(np.arange(zones.start, zones.stop) if by_zone else np.array([unit.number], np.int64))
        zones_are_known = by_zone and int(zone_rows[zones].sum()) == len(truth)
        sizes = zone_rows[zones] if zones_are_known else np.array([len(truth)])
        offsets = np.append(0, np.cumsum(sizes))
        nulls = NullPresence.of_rows(inputs, offsets)
        ballot = complete_ballot(own, leaf, probe, self.definition.inputs, nulls, self.strict_functions)
        possible = np.repeat(ballot.bits, sizes)
        for zone, bits in ballot.rows.items():
            possible[offsets[zone] : offsets[zone + 1]] = bits
        wrong = np.flatnonzero(truth & ~possible)
        if len(wrong):
            outcomes = ", ".join(sorted({_TRUTH_NAMES[int(truth[row])] for row in wrong}))
            yield (
                f"{predicate_sql(leaf)} is {outcomes} on {len(wrong)} rows of {unit.name}, such as row "
                f"{int(wrong[0])}, and the vote rules that out"
            )

    @cached_property
    def _fields(self) -> list[int | None]:
        schema = self.table.snapshot.schema
        return [
            schema.find(given.term.path).id if isinstance(given.term, Column) else None
            for given in self.definition.inputs
        ]

    @cached_property
    def _batch(self) -> FrameBatch:
        zones = ZoneMap.of(self.frame)
        return FrameBatch.from_sidecars(self.frame, self._fields, zones, self.sidecars, self.sample)

    @cached_property
    def _segments(self) -> FrameBatch | None:
        """The segments with what was rolled up of them."""
        if not isinstance(self.kind, RollsUp):
            return None
        segments = self.table.segments()
        found = usable_roll_ups(segments, self.definition.key, self.kind, lambda reason, detail: None)
        return None if found is None else FrameBatch.from_units(segments, self._fields, null_where_unusable(*found))

    def _evaluate_leaf(self, leaf: Leaf | Conjunction, rows: pa.Table) -> _TruthBits | None:
        """What the leaf is on each row, as one of TRUE, FALSE and NULL; None where only Spark knows."""
        predicate = And(leaf.leaves) if isinstance(leaf, Conjunction) else leaf
        try:
            found = evaluate(predicate, rows, self.context, self.host.functions)
        except OpaqueError:
            return None
        true, null = (unpack_mask(bits) for bits in (found, found.is_null()))
        return np.where(null, NULL, np.where(true, TRUE, FALSE)).astype(np.uint8)
