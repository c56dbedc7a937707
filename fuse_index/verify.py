"""Judging an index by the rows it is on: does a plan that trusts it alone keep every row that the oracle wants?"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.build import Builder
from fuse_index.definitions import Definition
from fuse_index.host import Host
from fuse_index.oracle import evaluate
from fuse_index.plan import Plan, plan
from fuse_index.predicate import Compare, Context, In, IsNull, Literal, Not, Predicate, StartsWith, Term
from fuse_index.render import sql
from fuse_storage import Blocks, StorageError, Table

VALUES = 6
"""Values of each input, drawn from the rows of a block, that leaves are made of."""


@dataclass(frozen=True)
class Verification:
    """What was looked at, and what is wrong. ``problems`` is empty for an index that may be trusted."""

    index: str
    blocks: int
    payloads: int
    leaves: int
    problems: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        return {
            "index": self.index, "sound": self.sound, "blocks": self.blocks, "payloads": self.payloads, "leaves": self.leaves,
            "problems": list(self.problems),
        }  # fmt: skip

    def __str__(self) -> str:
        looked = f"{self.leaves} predicates on {self.blocks} blocks, {self.payloads} payloads by checksum"
        if self.sound:
            return f"{self.index} is sound: {looked}"
        return "\n".join([f"{self.index} is not sound ({looked}); rebuild it:", *(f"  {problem}" for problem in self.problems)])


def verify(table: Table, definition: Definition, host: Host, blocks: int = 16, seed: int = 0) -> Verification:
    """Check all payloads by their checksums, and the votes on up to ``blocks`` indexed blocks by the oracle."""
    frame = table.blocks()
    sidecars = frame.sidecars(definition.key)
    if sidecars is None:
        return Verification(definition.name, 0, 0, 0)
    problems = [sidecars.error] if sidecars.error else []
    indexed = np.flatnonzero(sidecars.indexed)
    problems += [problem for number in indexed if (problem := _unreadable(sidecars.payload(int(number)), frame.ids[number])) is not None]
    pick = random.Random(seed)
    chosen = sorted(pick.sample(indexed.tolist(), min(blocks, len(indexed))))
    judge = _Judge(table, definition, host, frame)
    leaves = 0
    for number in chosen:
        for leaf in judge.leaves(number, pick):
            leaves += 1
            problems += judge.problems(number, leaf)
    return Verification(definition.name, len(chosen), len(indexed), leaves, tuple(problems))


def _unreadable(payload: Any, block: str) -> str | None:
    try:
        if payload is not None:
            payload.read([(0, payload.size)])
    except StorageError as error:
        return f"the payload of block {block}: {error}"
    return None


@dataclass(frozen=True)
class _Judge:
    table: Table
    definition: Definition
    host: Host
    frame: Blocks

    def leaves(self, block: int, pick: random.Random) -> Iterator[Predicate]:
        """Predicates on values that the block holds, and on their neighbours that it may not hold."""
        builder = Builder.of(self.definition, self.host)
        inputs = builder.inputs(self.table.read(self.frame, block, builder.columns, None))
        for given, column in zip(self.definition.inputs, inputs.columns, strict=True):
            found = sorted(set(pick.sample(range(len(column)), min(VALUES, len(column)))))
            literals = [Literal(column[row].as_py(), given.type) for row in found if column[row].is_valid]
            yield IsNull(given.term)
            for literal in literals:
                yield from _about(given.term, literal)
            if literals:
                yield In(given.term, tuple(literals))

    def problems(self, block: int, leaf: Predicate) -> Iterator[str]:
        for predicate in (leaf, Not(leaf)):
            made = plan(self.table, predicate, self.host, self._context, only=[self.definition])
            rows = self.table.read(self.frame, block, self._columns(), None)
            wanted = evaluate(predicate, rows, self._context, self.host.functions).fill_null(False).to_numpy(zero_copy_only=False)
            kept, certain = _rows_of(made, int(self.frame.ordinals[block]), len(rows))
            name = self.frame.ids[block]
            if lost := int((wanted & ~kept).sum()):
                yield f"{sql(predicate)} loses {lost} rows of block {name}"
            if wrong := int((certain & ~wanted).sum()):
                yield f"{sql(predicate)} takes {wrong} rows of block {name} that do not match"

    def _columns(self) -> list[str]:
        return Builder.of(self.definition, self.host).columns

    @property
    def _context(self) -> Context:
        return self.definition.context or Context()


def _rows_of(made: Plan, ordinal: int, rows: int) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Of one block: the rows that the plan reads, and those that it takes without looking."""
    kept, certain = np.zeros(rows, np.bool_), np.zeros(rows, np.bool_)
    at = 0
    for place in np.flatnonzero(made.blocks.ordinals == ordinal):
        for zone in range(int(made.blocks.zone_offsets[place]), int(made.blocks.zone_offsets[place + 1])):
            count = int(made.blocks.zone_rows[zone])
            mask = made.rows.get(zone, np.ones(count, np.bool_)) & made.zones[zone]
            kept[at : at + count] = mask
            certain[at : at + count] = mask & made.certain[zone]
            at += count
    return kept, certain


def _about(term: Term, literal: Literal) -> Iterator[Predicate]:
    for operator in ("=", "<", ">="):
        yield Compare(operator, term, literal)
    for near in _neighbours(literal):
        yield Compare("=", term, near)
    if pa.types.is_string(literal.type) and literal.value:
        yield StartsWith(term, Literal(literal.value[: (len(literal.value) + 1) // 2], literal.type))


def _neighbours(literal: Literal) -> list[Literal]:
    kind, value = literal.type, literal.value
    if pa.types.is_integer(kind):
        limit = 1 << (kind.bit_width - 1)
        return [Literal(near, kind) for near in (value - 1, value + 1) if -limit <= near < limit]
    return [Literal(value + "!", kind)] if pa.types.is_string(kind) else []
