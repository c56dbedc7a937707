"""Answers are right: from stored states, from rows, and from any mixture, in any order."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, ClassVar

import pyarrow as pa
import pytest

from fuse_index.aggregates.finalize import comparable_answer
from fuse_index.aggregates.state import COUNT_STAR_ARGUMENT, Aggregate, Aggregation, merge_states, state_of
from fuse_index.errors import OpaqueError
from fuse_index.expressions.errors import UnsupportedAggregate
from fuse_index.expressions.evaluate import evaluate_term
from fuse_index.expressions.to_sql import term_sql
from fuse_index.indexes.interface import Answers, Probe, Refusal
from fuse_index.testing.kind_tests import KindTests
from fuse_index.testing.worlds.memory_batch import KindUnderTest, MemoryBatch

__tracebackhide__ = True  # authors look for nothing here: pytest shows frames of theirs


class AnswerTests(KindTests):
    """The part of ``IndexTests`` for kinds that answer."""

    requests: ClassVar[Sequence[Aggregation]] = ()
    """What is asked for, on the columns of the inputs."""
    refused: ClassVar[Sequence[Aggregation]] = ()
    """What the kind must not claim to answer."""

    # --- tests ------------------------------------------------------------------------------------------------------

    def test_stored_states_and_rows_give_one_answer(self) -> None:
        for trial in self.asked():
            both = [(trial.state(unit, True), trial.state(unit, False)) for unit in range(len(trial.batch))]
            for states in product(*both):
                trial.check(states)
            for stored, of_rows in both:
                trial.check([stored], of_rows)

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

    def test_each_function_of_each_input_is_refused_or_answered_right(self) -> None:
        for subject in self.subjects():
            shelf = MemoryBatch.index_blocks(subject, self._blocks_of(subject))
            terms = list(dict.fromkeys([COUNT_STAR_ARGUMENT, *(given.term for given in subject.inputs)]))
            for function, term in product(("count", "sum", "min", "max", "avg"), terms):
                for groups in ((), tuple(terms[1:2])):
                    request = Aggregation(groups, (Aggregate(function, term),))  # type: ignore[arg-type]
                    if is_supported(request) and not isinstance(_match(subject, request), Refusal):
                        check = _AggregateCheck(subject, shelf, request)
                        states = [check.state(unit, True) for unit in range(len(shelf))]
                        check.check(states)
                        for unit, state in enumerate(states):
                            check.check([state], check.state(unit, False))

    def test_what_cannot_be_answered_is_refused(self) -> None:
        for subject in self.subjects():
            for request in self.refused:
                assert isinstance(_match(subject, request), Refusal), f"{subject} answers {_request_text(request)}"

    # --- worlds -----------------------------------------------------------------------------------------------------

    def asked(self) -> Iterator[_AggregateCheck]:
        assert self.requests, f"{type(self).__name__} must give requests to test"
        for subject in self.subjects():
            shelf = MemoryBatch.index_blocks(subject, self._blocks_of(subject))
            for request in self.requests:
                yield _AggregateCheck(subject, shelf, request)

    def _blocks_of(self, subject: KindUnderTest) -> list[list[pa.Table]]:
        """Three blocks of two zones, one of NULLs, and, where there is one column, one of all its values."""
        blocks = [[self.many_rows(subject, 30, 10 * block + zone) for zone in range(2)] for block in range(3)]
        blocks.append([self.table(subject, [(None,) * len(self.columns(subject))])])
        if len(columns := self.columns(subject)) == 1:
            blocks.append([self.table(subject, [(row,) for row in (*self.rows(columns[0]), None)])])
        return blocks


def is_supported(request: Aggregation) -> bool:
    """Whether there is such an aggregate at all: nobody sums up texts."""
    try:
        state_of(request, lambda term: pa.nulls(0, term.type), 0)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, UnsupportedAggregate, OpaqueError):
        return False
    return True


def _match(subject: KindUnderTest, request: Aggregation) -> Probe[Any] | Refusal:
    kind: Any = subject.kind
    found: Probe[Any] | Refusal = kind.match(request, subject.inputs, subject.options, subject.context)
    return found


def _request_text(request: Aggregation) -> str:
    asked = [f"{part.function}({term_sql(part.argument)})" for part in request.aggregates]
    groups = ", ".join(term_sql(term) for term in request.groups)
    return ", ".join(asked) + (f" by {groups}" if groups else "")


class _AggregateCheck:
    """One request for an aggregate of the rows of a few blocks."""

    def __init__(self, subject: KindUnderTest, shelf: MemoryBatch, request: Aggregation) -> None:
        kind: Any = subject.kind
        assert isinstance(kind, Answers)
        self.about = f"{subject}: {_request_text(request)}"
        probe = _match(subject, request)
        assert isinstance(probe, Probe), f"{self.about} is refused: {probe}"
        self.kind, self.batch, self.request, self.probe = kind, shelf, request, pickle.loads(pickle.dumps(probe))
        self.expected = self.rows_state(subject.wanted_rows(shelf.rows))

    def state(self, unit: int, stored: bool) -> pa.Table:
        """The state of one block, as it was stored, or made from its rows."""
        if stored:
            found = self.kind.state(self.probe, self.batch, unit)
            assert isinstance(found, pa.Table), (
                f"{self.about}: state() gave {type(found).__name__} of block {unit}, which is indexed"
            )
            assert found.schema == self.request.schema, (
                f"{self.about}: state() gave {found.schema.names} of {found.schema.types}, not "
                f"{self.request.schema.names} of {self.request.schema.types}"
            )
            return found
        return self.rows_state(self.batch.kind_under_test.wanted_rows(pa.concat_tables(self.batch.blocks[unit])))

    def rows_state(self, rows: pa.Table) -> pa.Table:
        subject = self.batch.kind_under_test
        return state_of(
            self.request, lambda term: evaluate_term(term, rows, subject.context, subject.functions), rows.num_rows
        )

    def check(self, states: Sequence[pa.Table], of_rows: pa.Table | None = None) -> None:
        """Compare what states give with what rows do; by default with those of all blocks."""
        found = comparable_answer(self.request, merge_states(self.request, states))
        expected = comparable_answer(self.request, self.expected if of_rows is None else of_rows)
        assert found == expected, (
            f"{self.about}: {str(found)[:300]} of {len(states)} blocks, and of their rows {str(expected)[:300]}"
        )
