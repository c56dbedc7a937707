"""Votes hang on the question and the blocks alone: not on other questions, threads, processes, options or versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from threading import Thread
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from fuse_index.errors import OpaqueError
from fuse_index.expressions.evaluate import evaluate_term
from fuse_index.indexes.ballot import Ballot
from fuse_index.indexes.interface import IndexKind, Probe
from fuse_index.predicate import Call, Cast, Column, Compare, Leaf, Literal, Term
from fuse_index.testing.oracle_check import OracleCheck
from fuse_index.testing.vote_tests import VoteTests
from fuse_index.testing.worlds import small_worlds
from fuse_index.testing.worlds.memory_batch import KindUnderTest, MemoryBatch
from fuse_index.testing.worlds.other_process import build_elsewhere
from fuse_storage import Pack

__tracebackhide__ = True  # authors look for nothing here: pytest shows frames of theirs

_QUESTIONS = 12
_OTHER_COLUMN = "another_column"
_WAIT_SECONDS = 0.5
"""How long a vote waits for another at most: a kind may hold a lock."""
_ASKED_FOR = ("summaries", "statistics", "payload", "packs", "row_counts", "zone_rows", "read_payloads")
_INTERRUPTIONS = 8
"""How often at most, by what is asked for."""
_TIME_ZONES = ("UTC", "Asia/Kathmandu")
"""Time zones of sessions; the second is 5:45 hours ahead."""
_CAST_VALUES = 4


class IsolationTests(VoteTests):
    """The part of ``IndexTests`` for what a vote must not hang on."""

    former: ClassVar[Mapping[int, type[IndexKind]]] = {}
    """By payload version that the kind reads and no longer writes, a kind that builds it."""

    # --- tests ------------------------------------------------------------------------------------------------------

    def test_questions_that_are_compiled_together_are_answered_apart(self) -> None:
        for shelf, trials in self.blocks_with_questions():
            state = _state_of(shelf.kind_under_test.kind)
            compiled = [(trial, probe) for trial in trials if isinstance(probe := trial.compile(), Probe)]
            for trial, probe in [*compiled, *compiled[::-1]]:
                trial.check_ballot(shelf, trial.probe(probe, shelf), probe)
            assert _state_of(shelf.kind_under_test.kind) == state, (
                f"{shelf.kind_under_test}: a kind keeps nothing in itself, and a question changed {state} to "
                f"{_state_of(shelf.kind_under_test.kind)}"
            )

    def test_votes_at_the_same_time_do_not_disturb_each_other(self) -> None:
        for shelf, trials in self.blocks_with_questions():
            compiled = [(trial, probe) for trial in trials if isinstance(probe := trial.compile(), Probe)]
            for (trial, probe), (other, meanwhile) in zip(compiled, compiled[1:] + compiled[:1], strict=True):
                interrupted = _InterruptedBatch(shelf, partial(other.probe, meanwhile, shelf))
                trial.check_ballot(shelf, trial.probe(probe, interrupted), probe)

    def test_what_another_process_built_is_understood(self) -> None:
        for shelf, trials in self.blocks_with_questions():
            if shelf.summaries is not None:
                elsewhere = shelf.with_pack(build_elsewhere)
                for trial in trials:
                    trial.check_leaf(elsewhere)

    def test_no_vote_is_wrong_with_other_options(self) -> None:
        for options in self.option_sets():
            for subject in self.subjects_with(options)[::2]:
                shelf = MemoryBatch.index_blocks(subject, self._blocks_of(subject))
                for trial in self._some_questions(shelf):
                    trial.check_leaf(shelf)

    def test_a_leaf_on_something_else_is_refused_or_judged_right(self) -> None:
        for subject in self.subjects():
            blocks = [*self.zones(subject, self.small_world(subject)[-40:]), *self._blocks_of_numerals(subject)]
            shelf = MemoryBatch.index_blocks(
                subject, [[_with_another_column(zone) for zone in zones] for zones in blocks]
            )
            for time_zone in _TIME_ZONES:
                there = replace(subject, context=replace(subject.context, time_zone=time_zone))
                for leaf in self._leaves_on_something_else(there, shelf.rows):
                    OracleCheck(there, leaf).check_leaf(shelf)

    def test_payloads_of_each_version_that_is_read_are_understood(self) -> None:
        for shelf, trials in self.blocks_with_questions():
            kind = shelf.kind_under_test.kind
            assert shelf.summaries is not None or kind.reads == {kind.writes}, f"{kind.name} writes no payloads"
            for version in sorted(kind.reads - {kind.writes}):
                assert version in self.former, (
                    f"{kind.name} reads version {version} and writes {kind.writes}: give the suite the kind that wrote "
                    f"it, former = {{{version}: …}}, or take it out of reads"
                )
                known = shelf.with_pack(partial(_build_as, self.former[version]()))
                for trial in trials:
                    trial.check_leaf(known)

    # --- worlds -----------------------------------------------------------------------------------------------------

    def blocks_with_questions(self) -> Iterator[tuple[MemoryBatch, Sequence[OracleCheck]]]:
        """For each input type some blocks, and some questions about them."""
        for subject in self.subjects():
            shelf = MemoryBatch.index_blocks(subject, self._blocks_of(subject))
            yield shelf, self._some_questions(shelf)

    def _blocks_of(self, subject: KindUnderTest) -> list[list[pa.Table]]:
        small = self.zones(subject, self.small_world(subject)[-6:])
        return [*map(list, small), [self.many_rows(subject, 40, 3), self.many_rows(subject, 25, 4)]]

    def _blocks_of_numerals(self, subject: KindUnderTest) -> Iterator[list[pa.Table]]:
        """Blocks of texts that can be cast."""
        for number, column in enumerate(columns := self.columns(subject)):
            if column.type == pa.string():
                rows = [self.rows(other)[0] for other in columns]
                yield [
                    self.table(subject, [(*rows[:number], text, *rows[number + 1 :])]) for text in ("1", "0", "true")
                ]

    def _some_questions(self, shelf: MemoryBatch) -> list[OracleCheck]:
        subject = shelf.kind_under_test
        whole = list(self.questions(subject))
        return [*whole[:: max(1, len(whole) // _QUESTIONS)], *islice(self.about(shelf, _QUESTIONS), _QUESTIONS)]

    def _leaves_on_something_else(self, subject: KindUnderTest, rows: pa.Table) -> Iterator[Leaf]:
        """Leaves that name the columns of the inputs, but are on casts, on other columns, or on swapped arguments."""
        for given in subject.inputs:
            literals = self.literals(given.term)
            for term in _terms_around(given.term):
                values = small_worlds.samples_of_type(term.type).literals
                for value in (*values[:6], *_cast_values(subject, term, rows)):
                    yield Compare("=", term, Literal(value, term.type))
                    yield Compare("<", term, Literal(value, term.type))
            yield Compare("<", given.term, Column((_OTHER_COLUMN,), given.type))
            yield Compare("=", given.term, Column((_OTHER_COLUMN,), given.type))
            for leaf in self.leaves(given, literals):
                if isinstance(leaf, Call):
                    yield from _swapped(leaf)


def _terms_around(term: Term) -> Iterator[Term]:
    days = (pa.date32(),) if pa.types.is_timestamp(term.type) else ()
    for data_type in (pa.string(), pa.int8(), pa.bool_(), *days):
        if data_type != term.type and not pa.types.is_nested(term.type):
            yield Cast(term, data_type)


def _cast_values(subject: KindUnderTest, term: Term, rows: pa.Table) -> list[Any]:
    """Some values that the term has on these rows, where that can be said without Spark."""
    try:
        found = evaluate_term(term, rows, subject.context, subject.functions)
    except OpaqueError:
        return []
    known = found.unique().drop_null()
    places = np.linspace(0, len(known) - 1, min(_CAST_VALUES, len(known))).astype(int)
    return [*known.take(pa.array(places)).to_pylist()]


def _swapped(call: Call) -> Iterator[Call]:
    for number in range(len(call.arguments) - 1):
        one, other = call.arguments[number : number + 2]
        if one.type == other.type and not isinstance(one, Literal) and not isinstance(other, Literal):
            yield replace(call, arguments=(*call.arguments[:number], other, one, *call.arguments[number + 2 :]))


def _with_another_column(zone: pa.Table) -> pa.Table:
    """The rows, and a column of the first one's values, the other way round."""
    return zone.append_column(_OTHER_COLUMN, zone.column(0).take(pa.array(np.arange(len(zone))[::-1])))


def _build_as(older: IndexKind, kind: IndexKind, blocks: list[tuple[pa.Table, Any]], options: Any) -> Pack:
    """What an older kind would have built in the place of this one."""
    return older.pack([older.build(rows, zones, options) for rows, zones in blocks])


def _state_of(kind: IndexKind) -> dict[str, Any]:
    """What could change in a kind: its own attributes, and those of its class that are plain values."""
    shared = {
        name: len(value) if isinstance(value, list | dict | set) else value
        for name, value in vars(type(kind)).items()
        if isinstance(value, bool | int | float | str | list | dict | set | None)
    }
    return {**shared, **vars(kind)}


class _InterruptedBatch:
    """Units in whose midst another vote is made: on another thread, when they are asked for something."""

    def __init__(self, batch: MemoryBatch, meanwhile: Callable[[], Ballot]) -> None:
        self._batch, self._meanwhile, self._left = batch, meanwhile, dict.fromkeys(_ASKED_FOR, _INTERRUPTIONS)

    def __len__(self) -> int:
        return len(self._batch)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._batch, name)
        if self._left.get(name, 0):
            self._left[name] -= 1
            other = Thread(target=partial(_ignoring_errors, self._meanwhile), daemon=True)
            other.start()
            other.join(_WAIT_SECONDS)
            if other.is_alive():  # the kind lets one vote in at a time
                self._left.clear()
        return found


def _ignoring_errors(vote: Callable[[], Ballot]) -> None:
    with suppress(Exception):  # it is judged where it is made alone
        vote()
