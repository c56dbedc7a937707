"""Whether a vote is right: what the oracle says each row is, against what the kind called possible.

The NULLs are added by the engine's own code, so that a kind is judged as it will be used.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.errors import OpaqueError
from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.evaluate import evaluate
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.indexes.ballot import FALSE, NULL, TRUE, UNKNOWN, Ballot
from fuse_index.indexes.block_batch import BlockBatch
from fuse_index.indexes.interface import Probe, Refusal, Votes
from fuse_index.predicate import And, Leaf, Predicate
from fuse_index.pruning.nulls import (
    NullPresence,
    complete_ballot,
    decided_by_engine,
    strict_function_names,
    strip_nulls_for_kind,
)
from fuse_index.testing.worlds.memory_batch import KindUnderTest, MemoryBatch

__tracebackhide__ = True  # authors look for nothing here: pytest shows frames of theirs

_Bits = npt.NDArray[np.uint8]
_OUTCOME_NAMES = {TRUE: "TRUE", FALSE: "FALSE", NULL: "NULL"}


@dataclass(frozen=True)
class OracleCheck:
    """One leaf, put to a kind."""

    kind_under_test: KindUnderTest
    leaf: Leaf | Conjunction

    def compile(self) -> Probe[Any] | Refusal | None:
        """None where the engine judges the leaf by itself."""
        if decided_by_engine(self.leaf):
            return None
        kind, subject = self.kind_under_test.kind, self.kind_under_test
        assert isinstance(kind, Votes), f"{kind.name!r} has no compile() and probe()"
        found = kind.compile(strip_nulls_for_kind(self.leaf), subject.inputs, subject.options, subject.context)
        assert isinstance(found, Probe | Refusal), f"compile() gave {type(found).__name__}, not a Probe or a Refusal"
        if isinstance(found, Probe):
            assert found.cost >= 0, f"{predicate_sql(self.leaf)}: the probe's cost is {found.cost}"
            found = pickle.loads(pickle.dumps(found))
        return found

    def probe(self, probe: Probe[Any], batch: BlockBatch) -> Ballot:
        """What the kind says, in a form that the engine takes."""
        kind = self.kind_under_test.kind
        assert isinstance(kind, Votes)
        ballot = kind.probe(probe, batch)
        assert isinstance(ballot, Ballot), f"probe() gave {type(ballot).__name__}, not a Ballot"
        self._check_votes(ballot.bits, "the votes")
        sizes = (len(batch), len(batch.zone_rows))
        assert len(ballot) in sizes, f"{len(ballot)} votes for {sizes[0]} units with {sizes[1]} zones"
        assert len(ballot) == sizes[0] or probe.cost > 0, (
            f"{self._about}: votes on zones need a cost above 0, since what costs nothing is asked about blocks alone"
        )
        expected = batch.zone_rows if len(ballot) == sizes[1] else batch.row_counts
        for unit, rows in ballot.rows.items():
            assert len(rows) == expected[unit], f"{len(rows)} row votes for unit {unit} with {expected[unit]} rows"
            self._check_votes(rows, f"the votes on rows of unit {unit}")
            union = int(np.bitwise_or.reduce(rows, initial=0))
            assert not union & ~int(ballot.bits[unit]), (
                f"{self._about}: unit {unit} has the vote {ballot.bits[unit]}, and its rows more: {union} together"
            )
        return Ballot(ballot.bits.copy(), {unit: rows.copy() for unit, rows in ballot.rows.items()})

    def _check_votes(self, votes: _Bits, what: str) -> None:
        assert votes.dtype == np.uint8, f"{self._about}: {what} are {votes.dtype}, not uint8"
        # 0 says that there are NULLs alone, which the engine adds.
        assert not len(votes) or votes.max() <= UNKNOWN, (
            f"{self._about}: {what} are up to {votes.max()}, and a vote is TRUE | FALSE | NULL, at most {UNKNOWN}"
        )

    @property
    def _about(self) -> str:
        return f"{self.kind_under_test}: {predicate_sql(self.leaf)}"

    def check_leaf(self, shelf: MemoryBatch) -> Ballot | None:
        """Put the leaf to the kind; AssertionError if any row is what the vote called impossible.

        None if it did not vote.
        """
        probe = self.compile()
        return self.check_ballot(shelf, self.probe(probe, shelf), probe) if isinstance(probe, Probe) else None

    def check_ballot(self, shelf: MemoryBatch, ballot: Ballot, probe: Probe[Any]) -> Ballot:
        """The ballot with its NULLs, or AssertionError."""
        by_zone = len(ballot) == len(shelf.zone_rows)
        sizes = shelf.zone_rows if by_zone else shelf.row_counts
        offsets = np.append(0, np.cumsum(sizes))
        nulls = NullPresence.of_rows(shelf.input_rows, offsets)
        strict_functions = strict_function_names(self.kind_under_test.functions)
        whole = complete_ballot(ballot, self.leaf, probe, self.kind_under_test.inputs, nulls, strict_functions)
        possible = np.repeat(whole.bits, sizes)
        for unit, rows in whole.rows.items():
            possible[offsets[unit] : offsets[unit + 1]] = rows
        if shelf.summaries is not None:
            known = shelf.summaries.is_valid().to_numpy(zero_copy_only=False)
            possible[~np.repeat(known, shelf.row_counts)] = UNKNOWN
        wrong = np.flatnonzero(self.expected_outcomes(shelf) & ~possible)
        assert not len(wrong), self._mismatch_message(shelf, ballot, offsets, int(wrong[0]))
        return whole

    def expected_outcomes(self, shelf: MemoryBatch) -> _Bits:
        """The leaf on n rows, uint8, shape (n,): TRUE, FALSE or NULL; 0 on a row of which only Spark can say."""
        return self._evaluate(And(self.leaf.leaves) if isinstance(self.leaf, Conjunction) else self.leaf, shelf.rows)

    def _evaluate(self, predicate: Predicate, rows: pa.Table) -> _Bits:
        try:
            found = evaluate(predicate, rows, self.kind_under_test.context, self.kind_under_test.functions)
        except OpaqueError:
            if (half := len(rows) // 2) == 0:
                return np.zeros(len(rows), np.uint8)
            return np.concatenate([self._evaluate(predicate, rows[:half]), self._evaluate(predicate, rows[half:])])
        true = found.fill_null(False).to_numpy(zero_copy_only=False)
        null = found.is_null().to_numpy(zero_copy_only=False)
        return np.where(null, NULL, np.where(true, TRUE, FALSE)).astype(np.uint8)

    def _mismatch_message(self, shelf: MemoryBatch, ballot: Ballot, offsets: npt.NDArray[np.int64], row: int) -> str:
        unit = int(np.searchsorted(offsets, row, side="right")) - 1
        start, end = int(offsets[unit]), int(offsets[unit + 1])
        outcome = _OUTCOME_NAMES[int(self.expected_outcomes(shelf)[row])]
        vote = int(ballot.rows[unit][row - start] if unit in ballot.rows else ballot.bits[unit])
        block, zone = unit, ""
        if len(ballot) != len(shelf):
            block = int(np.searchsorted(shelf.zone_offsets, unit, side="right")) - 1
            zone = f", zone {unit - int(shelf.zone_offsets[block])}"
        sizes = [part.num_rows for part in shelf.blocks[block]]
        first = _rows_text(shelf.rows, start, min(end - start, 10))
        return "\n".join(
            [
                f"{self.kind_under_test}: a wrong vote",
                f"  leaf   {predicate_sql(self.leaf)}",
                f"  row    {_rows_text(shelf.rows, row, 1)} is {outcome}: number {row - start} of block {block}{zone}",
                f"  vote   {_vote_name(vote)}{' on this row' if unit in ballot.rows else ''}",
                f"  block  {sum(sizes)} rows in zones of {sizes}: {first}",
            ]
        )


def _vote_name(vote: int) -> str:
    return {FALSE: "NONE", TRUE: "ALL", TRUE | FALSE: "SOME"}.get(vote, str(vote))


def _rows_text(rows: pa.Table, start: int, count: int) -> str:
    return str(rows.slice(start, count).to_pylist())
