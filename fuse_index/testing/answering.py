"""Answers are right: from stored states, from rows, and from any mixture, in any order."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any, ClassVar

import pyarrow as pa

from fuse_index.plugin import Answers, Probe, Refusal
from fuse_index.testing.keeping import KindTests
from fuse_index.testing.shelf import Shelf, Subject


class AnswerTests(KindTests):
    """The part of ``IndexTests`` for kinds that answer."""

    requests: ClassVar[Sequence[Any]] = ()
    """What is asked for, in the form that the kind's ``match`` takes."""
    refused: ClassVar[Sequence[Any]] = ()
    """What the kind must not claim to answer."""

    def answer(self, request: Any, rows: pa.Table) -> pa.Table:
        """The oracle: the answer, from all rows."""
        raise NotImplementedError(f"{type(self).__name__} must say what answers are right")

    # --- tests ------------------------------------------------------------------------------------------------------

    def test_stored_states_and_rows_give_one_answer(self) -> None:
        for trial in self.asked():
            for stored in product((True, False), repeat=len(trial.shelf)):
                trial.check([trial.state(unit, one) for unit, one in enumerate(stored)])

    def test_the_order_of_states_does_not_matter(self) -> None:
        for trial in self.asked():
            states = [trial.state(unit, unit % 2 == 0) for unit in range(len(trial.shelf))]
            for some in (states[::-1], states[1:] + states[:1]):
                trial.check(some)

    def test_one_zone_is_as_good_as_a_block(self) -> None:
        for trial in self.asked():
            trial.check([trial.rows_state(zone) for zones in trial.shelf.blocks for zone in zones])

    def test_what_cannot_be_answered_is_refused(self) -> None:
        for subject in self.subjects():
            kind: Any = subject.kind
            for request in self.refused:
                assert isinstance(kind.match(request, subject.inputs, subject.options, subject.context), Refusal)

    # --- worlds -----------------------------------------------------------------------------------------------------

    def asked(self) -> Iterator[_Trial]:
        assert self.requests, f"{type(self).__name__} must give requests to test"
        for subject in self.subjects():
            small = [(row,) for row in (*self.rows(self.columns(subject)[0]), None)] if len(self.columns(subject)) == 1 else []
            blocks = [[self.many_rows(subject, 30, 10 * block + zone) for zone in range(2)] for block in range(3)]
            if small:
                blocks.append([self.table(subject, small)])
            shelf = Shelf.of(subject, blocks)
            for request in self.requests:
                yield _Trial(subject, shelf, request, self.answer(request, shelf.rows))


class _Trial:
    """One request for an aggregate of the rows of a few blocks."""

    def __init__(self, subject: Subject, shelf: Shelf, request: Any, expected: pa.Table) -> None:
        kind: Any = subject.kind
        assert isinstance(kind, Answers)
        probe = kind.match(request, subject.inputs, subject.options, subject.context)
        assert isinstance(probe, Probe), f"{request} is refused: {probe}"
        self.kind, self.shelf, self.probe, self.expected = kind, shelf, pickle.loads(pickle.dumps(probe)), expected

    def state(self, unit: int, stored: bool) -> Any:
        """The state of one block, as it was stored, or made from its rows."""
        if stored:
            return pickle.loads(pickle.dumps(self.kind.partial(self.probe, self.shelf, unit)))
        return self.rows_state(pa.concat_tables(self.shelf.blocks[unit]))

    def rows_state(self, rows: pa.Table) -> Any:
        return self.kind.state(self.probe, self.shelf.subject.input_rows(rows))

    def check(self, states: Sequence[Any]) -> None:
        found = self.kind.merge(self.probe, states)

        assert ordered(found) == ordered(self.expected)


def ordered(table: pa.Table) -> list[str]:
    """The rows, in an order that does not depend on theirs; floats to nine digits, since sums depend on it."""
    return sorted(repr([_rounded(value) for value in row.values()]) for row in table.to_pylist())


def _rounded(value: Any) -> Any:
    return float(f"{value:.9g}") + 0.0 if isinstance(value, float) else value
