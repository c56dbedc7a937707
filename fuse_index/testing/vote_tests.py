"""Votes are sound: no row is what a vote called impossible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice, product
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuse_index.expressions.conjunction import Conjunction
from fuse_index.indexes.ballot import FALSE, TRUE, UNKNOWN
from fuse_index.indexes.interface import Ballot, ColumnStatistics, Input, Probe, RollsUp
from fuse_index.predicate import Column, Leaf, Term
from fuse_index.testing import small_worlds, strategies
from fuse_index.testing.kind_tests import KindTests
from fuse_index.testing.memory_batch import Shelf, Subject
from fuse_index.testing.oracle_check import Trial

EXAMPLES = 40
"""Wide worlds that are drawn for each type."""


class VoteTests(KindTests):
    """The part of ``IndexTests`` for kinds that skip."""

    prunes = True
    """Whether the kind must rule out something in the small world: a kind that never does is sound, and useless."""

    def literals(self, term: Term) -> Sequence[Any]:
        """What a term is compared with in the small world."""
        return small_worlds.samples(term.type).literals

    def leaves(self, given: Input, literals: Sequence[Any]) -> Iterator[Leaf]:
        """Every leaf that is asked about one input."""
        return small_worlds.leaves(given.term, literals)

    def questions(self, subject: Subject) -> Iterator[Trial]:
        """Everything that is asked in the small world."""
        literals = [self.literals(given.term) for given in subject.inputs]
        for one, values in zip(subject.inputs, literals, strict=True):
            yield from (Trial(subject, leaf) for leaf in self.leaves(one, values))
        yield from (Trial(subject, box) for box in small_worlds.boxes([one.term for one in subject.inputs], literals))

    def small_world(self, subject: Subject) -> list[list[list[tuple[Any, ...]]]]:
        return small_worlds.blocks(list(product(*[(*self.rows(column), None) for column in self.columns(subject)])))

    # --- tests ------------------------------------------------------------------------------------------------------

    def test_no_vote_is_wrong_in_a_small_world(self) -> None:
        for subject in self.subjects():
            shelves = list(self.levels(Shelf.of(subject, self.zones(subject, self.small_world(subject)), packs=3)))
            ballots = [
                ballot
                for trial in self.questions(subject)
                for shelf in shelves
                if (ballot := trial.judge(shelf)) is not None
            ]

            assert ballots, (
                f"{subject.kind.name} refuses every question about {[str(one.type) for one in subject.inputs]}"
            )
            if self.prunes:
                assert any(rules_out(ballot) for ballot in ballots), f"{subject.kind.name} never rules anything out"

    def test_no_vote_is_wrong_in_a_wide_world(self) -> None:
        for subject in self.subjects():
            rows = st.tuples(*[st.none() | self.drawn(column) for column in self.columns(subject)])
            repeated = st.lists(rows, min_size=1, max_size=6).flatmap(
                lambda pool: strategies.blocks(st.sampled_from(pool))
            )
            many_times(self.drawn_check(subject), repeated)

    def drawn_check(self, subject: Subject) -> Callable[[Any, st.DataObject], None]:
        def check(blocks: Any, data: st.DataObject) -> None:
            shelf = Shelf.of(subject, self.zones(subject, blocks))
            trial = data.draw(self.drawn_trial(shelf), label="question")
            for level in self.levels(shelf):
                trial.judge(level)

        return check

    def test_no_vote_is_wrong_on_larger_blocks(self) -> None:
        for subject in self.subjects():
            blocks = [
                [self.many_rows(subject, 700 + zone, 10 * block + zone) for zone in range(3)] for block in range(2)
            ]
            shelf = Shelf.of(subject, blocks)
            for trial in self.about(shelf, 40):
                for level in self.levels(shelf):
                    trial.judge(level)

    def test_a_unit_is_judged_in_any_company(self) -> None:
        for subject in self.subjects():
            shelf = Shelf.of(subject, self.zones(subject, self.small_world(subject)[-12:]), packs=4)
            for trial in islice(self.questions(subject), 0, None, 7):
                for units in ([3], [9, 4, 0], list(range(len(shelf)))[::-1]):
                    trial.judge(shelf.take(units))

    def test_units_without_a_summary_do_not_disturb(self) -> None:
        for subject in self.subjects():
            shelf = Shelf.of(subject, self.zones(subject, self.small_world(subject)[-12:]), packs=4)
            if shelf.summaries is not None:
                for trial in islice(self.questions(subject), 0, None, 7):
                    trial.judge(shelf.forgetting([0, 5, 6]))
                    trial.judge(shelf.forgetting(range(len(shelf))))

    def test_statistics_that_are_not_known_are_not_relied_upon(self) -> None:
        for subject in self.subjects():
            shelf = Shelf.of(subject, self.zones(subject, self.small_world(subject)[-12:]))
            for trial in islice(self.questions(subject), 0, None, 7):
                probe = trial.compile()
                if isinstance(probe, Probe):
                    for batch in (Unknown(shelf), Missing(shelf)):
                        trial.verdict(shelf, trial.vote(probe, batch), probe)

    def test_a_damaged_payload_is_an_error_or_does_no_harm(self) -> None:
        for subject in self.subjects():
            shelf = Shelf.of(subject, [[self.many_rows(subject, 60, seed)] for seed in range(3)])
            damaged = [
                shelf.damaged(change)
                for change in damages(max((len(data) for data in shelf.files.data.values()), default=0))
            ]
            for trial in self.about(shelf, 6):
                for broken in [*damaged, shelf.without_files()] if shelf.files.data else []:
                    self.judge_damaged(trial, broken)

    def judge_damaged(self, trial: Trial, broken: Shelf) -> None:
        """Either the kind cannot vote, or its vote is right."""
        probe = trial.compile()
        if isinstance(probe, Probe):
            try:
                ballot = trial.subject.kind.probe(probe, broken)  # type: ignore[attr-defined]
            except Exception:  # whatever it raises, the engine goes on without this vote
                return
            trial.verdict(broken, ballot, probe)

    def test_a_roll_up_is_sound(self) -> None:
        for subject in self.subjects():
            if isinstance(subject.kind, RollsUp) and not subject.kind.implicit:
                shelf = Shelf.of(subject, self.zones(subject, self.small_world(subject)))
                for size in (1, 3):
                    segments = shelf.rolled_up(size)
                    for trial in self.questions(subject):
                        trial.judge(segments)

    # --- worlds -----------------------------------------------------------------------------------------------------

    def levels(self, shelf: Shelf) -> Iterator[Shelf]:
        """The units that the kind is asked about: blocks; and, where it lives on statistics alone, zones and segments
        too.
        """
        yield shelf
        if shelf.subject.kind.implicit:
            yield Shelf.of(shelf.subject, [[zone] for zones in shelf.blocks for zone in zones])
            yield Shelf.of(
                shelf.subject,
                [[zone for zones in shelf.blocks[i : i + 3] for zone in zones] for i in range(0, len(shelf), 3)],
            )

    def drawn_trial(self, shelf: Shelf) -> st.SearchStrategy[Trial]:
        """A leaf or a box about values that are in the rows, or near them."""
        subject = shelf.subject
        near = [
            st.lists(st.sampled_from(self.near(shelf, number)), min_size=2, max_size=3)
            for number in range(len(subject.inputs))
        ]

        def trials(literals: Sequence[Sequence[Any]]) -> list[Trial]:
            asked: list[Leaf | Conjunction] = [
                leaf for one, some in zip(subject.inputs, literals, strict=True) for leaf in self.leaves(one, some)
            ]
            asked += small_worlds.boxes([one.term for one in subject.inputs], literals)
            return [Trial(subject, leaf) for leaf in asked]

        return st.tuples(*near).flatmap(lambda literals: st.sampled_from(trials(literals)))

    def near(self, shelf: Shelf, number: int) -> list[Any]:
        """Literals for one input: what its values are, or are near to."""
        given = shelf.subject.inputs[number]
        if not isinstance(given.term, Column):
            return [*self.literals(given.term)]
        return strategies.near(shelf.input_rows.column(number).slice(0, 50).to_pylist(), given.type)

    def about(self, shelf: Shelf, count: int) -> Iterator[Trial]:
        """Some questions about the rows, spread over all that could be asked of them."""
        subject = shelf.subject
        for number, one in enumerate(subject.inputs):
            found = list(self.leaves(one, self.near(shelf, number)[:12]))
            yield from (Trial(subject, leaf) for leaf in found[:: max(1, len(found) // count)])


class Unknown:
    """The same units; nothing is known of their values."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf

    def __len__(self) -> int:
        return len(self.shelf)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.shelf, name)

    def statistics(self, number: int) -> ColumnStatistics | None:
        return ColumnStatistics.unknown(self.shelf.subject.inputs[number].type, len(self.shelf))


class Missing(Unknown):
    """The same units, without statistics."""

    def statistics(self, number: int) -> ColumnStatistics | None:
        return None


def rules_out(ballot: Ballot) -> bool:
    return bool(np.any((ballot.bits & TRUE) == 0) or np.any((ballot.bits & FALSE) == 0)) or any(
        np.any(rows != UNKNOWN) for rows in ballot.rows.values()
    )


def many_times(check: Callable[[Any, st.DataObject], None], worlds: st.SearchStrategy[Any]) -> None:
    """Run a check on drawn worlds; within a test, because a test that is inherited belongs to many classes."""
    quiet = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    quiet(given(worlds, st.data())(check))()


def damages(length: int) -> Iterator[Callable[[bytes], bytes]]:
    """Ways in which bytes go wrong."""
    yield lambda data: data[: len(data) // 2]
    yield lambda data: data[:-1]
    yield lambda data: b""
    yield lambda data: bytes(len(data))
    for position in np.unique(np.linspace(0, max(length - 1, 0), 24).astype(int)).tolist():
        yield partial(_flipped, position)


def _flipped(position: int, data: bytes) -> bytes:
    """The bytes with one bit flipped at ``position``; as they are if they are shorter."""
    if position >= len(data):
        return data
    return data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :]
