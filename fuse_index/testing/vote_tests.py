"""Votes are sound: no row is what a vote called impossible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice, product
from time import perf_counter
from typing import Any, ClassVar
from zlib import crc32

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.indexes.ballot import FALSE, TRUE, UNKNOWN, Ballot
from fuse_index.indexes.interface import Input, Probe, RollsUp
from fuse_index.predicate import And, Column, Leaf, Term
from fuse_index.testing.kind_tests import KindTests
from fuse_index.testing.oracle_check import OracleCheck
from fuse_index.testing.worlds import small_worlds, strategies
from fuse_index.testing.worlds.corruptions import byte_corruptions
from fuse_index.testing.worlds.memory_batch import KindUnderTest, MemoryBatch
from fuse_storage import ColumnStatistics

__tracebackhide__ = True  # authors look for nothing here: pytest shows frames of theirs

LARGER_ZONES = ((700, 701, 702), (411, 1, 90, 3, 260))
"""Rows of the zones of larger blocks: of about equal ones, and of five that are not."""
ROWS_BEYOND_16_BITS = 66_000
BEYOND_8_BITS = 300
"""Units that are asked about at once, and zones of one."""
TIMED_UNITS = 1000


class VoteTests(KindTests):
    """The part of ``IndexTests`` for kinds that skip."""

    prunes = True
    """Whether the kind must rule out something in the small world: a kind that never does is sound, and useless."""
    wide_worlds: ClassVar[int] = 40
    """How many wide worlds are drawn for each type."""

    def literals(self, term: Term) -> Sequence[Any]:
        """What a term is compared with in the small world."""
        return small_worlds.samples_of_type(term.type).literals

    def leaves(self, given: Input, literals: Sequence[Any]) -> Iterator[Leaf]:
        """Every leaf that is asked about one input."""
        return small_worlds.enumerate_leaves(given.term, literals)

    def questions(self, subject: KindUnderTest) -> Iterator[OracleCheck]:
        """Everything that is asked in the small world."""
        literals = [self.literals(given.term) for given in subject.inputs]
        for one, values in zip(subject.inputs, literals, strict=True):
            yield from (OracleCheck(subject, leaf) for leaf in self.leaves(one, values))
        yield from (
            OracleCheck(subject, box)
            for box in small_worlds.enumerate_conjunctions([one.term for one in subject.inputs], literals)
        )

    def small_world(self, subject: KindUnderTest) -> list[list[list[tuple[Any, ...]]]]:
        return small_worlds.enumerate_blocks(
            list(product(*[(*self.rows(column), None) for column in self.columns(subject)]))
        )

    # --- tests ------------------------------------------------------------------------------------------------------

    def test_no_vote_is_wrong_in_a_small_world(self) -> None:
        for subject in self.subjects():
            shelves = list(
                self.levels(MemoryBatch.index_blocks(subject, self.zones(subject, self.small_world(subject)), packs=3))
            )
            asked = useful = False
            for trial in self.questions(subject):
                if isinstance(probe := trial.compile(), Probe):
                    for shelf in shelves:
                        ballot = trial.probe(probe, shelf)
                        trial.check_ballot(shelf, ballot, probe)
                        useful = useful or rules_out_an_outcome(ballot)
                    asked = True

            assert asked, f"{subject} refuses every question"
            assert useful or not self.prunes, f"{subject} never rules anything out: set prunes = False if it is not to"

    def test_no_vote_is_wrong_in_a_wide_world(self) -> None:
        for subject in self.subjects():
            rows = st.tuples(*[st.none() | self.drawn(column) for column in self.columns(subject)])
            repeated = st.lists(rows, min_size=1, max_size=6).flatmap(
                lambda pool: strategies.block_lists(st.sampled_from(pool))
            )
            check_random_examples(self.drawn_check(subject), repeated, str(subject), self.wide_worlds)

    def drawn_check(self, subject: KindUnderTest) -> Callable[[Any, st.DataObject], None]:
        def check(blocks: Any, data: st.DataObject) -> None:
            shelf = MemoryBatch.index_blocks(subject, self.zones(subject, blocks))
            trial = data.draw(self.drawn_trial(shelf), label="question")
            for level in self.levels(shelf):
                trial.check_leaf(level)

        return check

    def test_no_vote_is_wrong_on_larger_blocks(self) -> None:
        for subject in self.subjects():
            blocks = [
                [self.many_rows(subject, count, 10 * block + zone) for zone, count in enumerate(sizes)]
                for block, sizes in enumerate(LARGER_ZONES)
            ]
            shelf = MemoryBatch.index_blocks(subject, blocks)
            for trial in self.about(shelf, 40):
                for level in self.levels(shelf):
                    trial.check_leaf(level)

    def test_a_unit_is_judged_in_any_company(self) -> None:
        for subject in self.subjects():
            shelf = MemoryBatch.index_blocks(subject, self.zones(subject, self.small_world(subject)[-12:]), packs=4)
            for trial in islice(self.questions(subject), 0, None, 7):
                for units in ([3], [9, 4, 0], list(range(len(shelf)))[::-1]):
                    trial.check_leaf(shelf.take(units))

    def test_units_without_a_summary_do_not_disturb(self) -> None:
        for subject in self.subjects():
            shelf = MemoryBatch.index_blocks(subject, self.zones(subject, self.small_world(subject)[-12:]), packs=4)
            if shelf.summaries is not None:
                for trial in islice(self.questions(subject), 0, None, 7):
                    trial.check_leaf(shelf.without_summaries([0, 5, 6]))
                    trial.check_leaf(shelf.without_summaries(range(len(shelf))))

    def test_statistics_that_are_not_known_are_not_relied_upon(self) -> None:
        for subject in self.subjects():
            shelf = MemoryBatch.index_blocks(subject, self.zones(subject, self.small_world(subject)[-12:]))
            for trial in islice(self.questions(subject), 0, None, 7):
                probe = trial.compile()
                if isinstance(probe, Probe):
                    for batch in (UnknownStatisticsBatch(shelf), NoStatisticsBatch(shelf)):
                        trial.check_ballot(shelf, trial.probe(probe, batch), probe)

    def test_a_damaged_payload_is_an_error_or_does_no_harm(self) -> None:
        for subject in self.subjects():
            shelf = MemoryBatch.index_blocks(subject, [[self.many_rows(subject, 60, seed)] for seed in range(3)])
            damaged = [
                shelf.with_changed_packs(change)
                for change in byte_corruptions(max((len(data) for data in shelf.files.data.values()), default=0))
            ]
            for trial in self.about(shelf, 6):
                for broken in [*damaged, shelf.without_files()] if shelf.files.data else []:
                    self.judge_damaged(trial, broken)

    def judge_damaged(self, trial: OracleCheck, broken: MemoryBatch) -> None:
        """Either the kind cannot vote, or its vote is right."""
        probe = trial.compile()
        if isinstance(probe, Probe):
            try:
                ballot = trial.kind_under_test.kind.probe(probe, broken)  # type: ignore[attr-defined]
            except Exception:  # whatever it raises, the engine goes on without this vote
                return
            trial.check_ballot(broken, ballot, probe)

    def test_a_roll_up_is_sound(self) -> None:
        for subject in self.subjects():
            if isinstance(subject.kind, RollsUp) and not subject.kind.implicit:
                shelf = MemoryBatch.index_blocks(subject, self.zones(subject, self.small_world(subject)))
                for size in (1, 3, 11):
                    segments = shelf.as_segments(size)
                    for trial in self.questions(subject):
                        trial.check_leaf(segments)

    def test_no_vote_is_wrong_on_a_block_of_more_rows_than_16_bits_count(self) -> None:
        for subject in self.subjects():
            common, rare = self.many_rows(subject, 9, 1).drop_null().slice(0, 1), self.many_rows(subject, 3, 2)
            repeated = common.take(pa.array(np.zeros(ROWS_BEYOND_16_BITS, np.int64)))
            shelf = MemoryBatch.index_blocks(subject, [[repeated.slice(0, 40_000), repeated.slice(40_000), rare]])
            for trial in self.about(shelf, 4, shelf.rows.slice(shelf.rows.num_rows - 5)):
                trial.check_leaf(shelf)

    def test_no_vote_is_wrong_on_more_units_and_zones_than_8_bits_count(self) -> None:
        for subject in self.few_subjects():
            common, rare = self.many_rows(subject, 9, 1).drop_null().slice(0, 1), self.many_rows(subject, 3, 2)
            many = MemoryBatch.index_blocks(subject, [[common], [rare]]).take([0] * (BEYOND_8_BITS - 1) + [1])
            for shelf in (many, MemoryBatch.index_blocks(subject, [[common] * (BEYOND_8_BITS - 1) + [rare]])):
                for trial in self.about(shelf, 4, rare):
                    trial.check_leaf(shelf)

    def test_how_long_votes_take_is_told(self) -> None:
        """See it by ``pytest -rP -k how_long``: of each type, the slowest of a few questions."""
        for subject in self.few_subjects():
            blocks = [[self.many_rows(subject, 300, seed)] for seed in range(4)]
            shelf = MemoryBatch.index_blocks(subject, blocks).take([0, 1, 2, 3] * (TIMED_UNITS // 4))
            told = []
            for trial in self.about(shelf, 4):
                if isinstance(probe := trial.compile(), Probe):
                    started = perf_counter()
                    ballot = trial.probe(probe, shelf)
                    told.append((perf_counter() - started, predicate_sql(trial.leaf)))
                    assert len(ballot) in (len(shelf), len(shelf.zone_rows))
            for seconds, leaf in sorted(told)[-1:]:
                print(f"{subject}: {seconds * 1000:.1f} ms for a vote on {len(shelf):,} blocks, on {leaf}")

    # --- worlds -----------------------------------------------------------------------------------------------------

    def levels(self, shelf: MemoryBatch) -> Iterator[MemoryBatch]:
        """The units that the kind is asked about.

        They are blocks; where the kind lives on statistics alone, zones and segments too.
        """
        yield shelf
        if shelf.kind_under_test.kind.implicit:
            yield MemoryBatch.index_blocks(shelf.kind_under_test, [[zone] for zones in shelf.blocks for zone in zones])
            yield MemoryBatch.index_blocks(
                shelf.kind_under_test,
                [[zone for zones in shelf.blocks[i : i + 3] for zone in zones] for i in range(0, len(shelf), 3)],
            )

    def drawn_trial(self, shelf: MemoryBatch) -> st.SearchStrategy[OracleCheck]:
        """A leaf or a box about values that are in the rows, or near them."""
        subject = shelf.kind_under_test
        near = [
            st.lists(st.sampled_from(self.near(shelf, number)), min_size=2, max_size=3)
            for number in range(len(subject.inputs))
        ]

        def questions(literals: Sequence[Sequence[Any]]) -> list[Leaf | And]:
            asked: list[Leaf | And] = [
                leaf for one, some in zip(subject.inputs, literals, strict=True) for leaf in self.leaves(one, some)
            ]
            return [*asked, *small_worlds.enumerate_groups([one.term for one in subject.inputs], literals)]

        def trial(asked: Leaf | And) -> OracleCheck | None:  # of one that is drawn: sets of values cost more than rows
            leaf = Conjunction.of(asked) if isinstance(asked, And) else asked
            return None if leaf is None else OracleCheck(subject, leaf)

        drawn = st.tuples(*near).flatmap(lambda literals: st.sampled_from(questions(literals))).map(trial)
        return drawn.filter(lambda check: check is not None)  # type: ignore[return-value]

    def near(self, shelf: MemoryBatch, number: int, rows: pa.Table | None = None) -> list[Any]:
        """Literals for one input: what its values are, or are near to; of some of these rows, by default of all."""
        given = shelf.kind_under_test.inputs[number]
        if not isinstance(given.term, Column):
            return [*self.literals(given.term)]
        inputs = shelf.input_rows if rows is None else shelf.kind_under_test.input_rows(rows)
        last = len(inputs) - 1
        places = dict.fromkeys(
            [last, 0, last // 2, last // 3, *range(min(last, 46))]
        )  # what comes late is asked for, too
        return strategies.values_near(inputs.column(number).take(pa.array(places)).to_pylist(), given.type)

    def about(self, shelf: MemoryBatch, count: int, rows: pa.Table | None = None) -> Iterator[OracleCheck]:
        """Some questions about the rows, spread over all that could be asked of them."""
        subject = shelf.kind_under_test
        for number, one in enumerate(subject.inputs):
            found = list(self.leaves(one, self.near(shelf, number, rows)[:12]))
            yield from (OracleCheck(subject, leaf) for leaf in found[:: max(1, len(found) // count)])


class UnknownStatisticsBatch:
    """Units of whose values nothing is known."""

    def __init__(self, shelf: MemoryBatch) -> None:
        self.batch = shelf

    def __len__(self) -> int:
        return len(self.batch)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.batch, name)

    def statistics(self, number: int) -> ColumnStatistics | None:
        return ColumnStatistics.unknown(self.batch.kind_under_test.inputs[number].type, len(self.batch))


class NoStatisticsBatch(UnknownStatisticsBatch):
    """Units without statistics."""

    def statistics(self, number: int) -> ColumnStatistics | None:
        return None


def rules_out_an_outcome(ballot: Ballot) -> bool:
    return bool(np.any((ballot.bits & TRUE) == 0) or np.any((ballot.bits & FALSE) == 0)) or any(
        np.any(rows != UNKNOWN) for rows in ballot.rows.values()
    )


def check_random_examples(
    check: Callable[[Any, st.DataObject], None], worlds: st.SearchStrategy[Any], subject: str, count: int
) -> None:
    """Run a check on ``count`` drawn worlds; within a test, because a test that is inherited belongs to many classes.

    The worlds of a ``subject`` are the same each time: what is found today was wrong yesterday.
    """
    quiet = settings(max_examples=count, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    seed(crc32(subject.encode()))(quiet(given(worlds, st.data())(check)))()
