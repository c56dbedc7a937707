"""Answers are right: from stored states, from rows, and from any mixture, in any order."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from fuse_index.aggregates.finalize import comparable_answer
from fuse_index.aggregates.state import Aggregation, merge_states, state_of
from fuse_index.expressions.evaluate import evaluate_term
from fuse_index.indexes.interface import Answers, Probe, Refusal
from fuse_index.testing.kind_tests import KindTests
from fuse_index.testing.memory_batch import KindUnderTest, MemoryBatch


class AnswerTests(KindTests):
    """The part of ``IndexTests`` for kinds that answer."""

    requests: ClassVar[Sequence[Aggregation]] = ()
    """What is asked for, on the columns of the inputs."""
    refused: ClassVar[Sequence[Aggregation]] = ()
    """What the kind must not claim to answer."""

    # --- tests ------------------------------------------------------------------------------------------------------

    def test_stored_states_and_rows_give_one_answer(self) -> None:
        for trial in self.asked():
            for stored in product((True, False), repeat=len(trial.batch)):
                trial.check([trial.state(unit, one) for unit, one in enumerate(stored)])

    def test_the_order_of_states_does_not_matter(self) -> None:
        for trial in self.asked():
            states = [trial.state(unit, unit % 2 == 0) for unit in range(len(trial.batch))]
            for some in (states[::-1], states[1:] + states[:1]):
                trial.check(some)

    def test_a_state_that_was_damaged_is_not_taken_for_one(self) -> None:
        for trial in self.asked():
            for shelf in (trial.batch.with_changed_packs(lambda data: data[:-1]), trial.batch.without_files()):
                for unit in range(len(shelf)):
                    if shelf.payload(unit) is not None:
                        with pytest.raises(Exception):  # noqa: B017
                            trial.kind.state(trial.probe, shelf, unit)

    def test_what_cannot_be_answered_is_refused(self) -> None:
        for subject in self.subjects():
            kind: Any = subject.kind
            for request in self.refused:
                assert isinstance(kind.match(request, subject.inputs, subject.options, subject.context), Refusal)

    # --- worlds -----------------------------------------------------------------------------------------------------

    def asked(self) -> Iterator[_AggregateCheck]:
        assert self.requests, f"{type(self).__name__} must give requests to test"
        for subject in self.subjects():
            small = (
                [(row,) for row in (*self.rows(self.columns(subject)[0]), None)]
                if len(self.columns(subject)) == 1
                else []
            )
            blocks = [[self.many_rows(subject, 30, 10 * block + zone) for zone in range(2)] for block in range(3)]
            if small:
                blocks.append([self.table(subject, small)])
            shelf = MemoryBatch.index_blocks(subject, blocks)
            for request in self.requests:
                yield _AggregateCheck(subject, shelf, request)


class _AggregateCheck:
    """One request for an aggregate of the rows of a few blocks."""

    def __init__(self, subject: KindUnderTest, shelf: MemoryBatch, request: Aggregation) -> None:
        kind: Any = subject.kind
        assert isinstance(kind, Answers)
        probe = kind.match(request, subject.inputs, subject.options, subject.context)
        assert isinstance(probe, Probe), f"{request} is refused: {probe}"
        self.kind, self.batch, self.request, self.probe = kind, shelf, request, pickle.loads(pickle.dumps(probe))
        self.expected = self.rows_state(shelf.rows)

    def state(self, unit: int, stored: bool) -> pa.Table:
        """The state of one block, as it was stored, or made from its rows."""
        if stored:
            found = self.kind.state(self.probe, self.batch, unit)
            assert isinstance(found, pa.Table), f"state() gave {type(found).__name__} of a block that is indexed"
            assert found.schema == self.request.schema, f"state() gave {found.schema}, not {self.request.schema}"
            return found
        return self.rows_state(pa.concat_tables(self.batch.blocks[unit]))

    def rows_state(self, rows: pa.Table) -> pa.Table:
        subject = self.batch.kind_under_test
        return state_of(
            self.request, lambda term: evaluate_term(term, rows, subject.context, subject.functions), rows.num_rows
        )

    def check(self, states: Sequence[pa.Table]) -> None:
        assert comparable_answer(self.request, merge_states(self.request, states)) == comparable_answer(
            self.request, self.expected
        )
