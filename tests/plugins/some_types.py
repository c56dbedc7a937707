"""Suites of kinds that accept many types, or several options: what hangs on neither runs on some of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from fuse_index.expressions.conjunction import Conjunction
from fuse_index.testing import IndexTests
from fuse_index.testing.oracle_check import OracleCheck
from fuse_index.testing.worlds.memory_batch import KindUnderTest
from tests.effort import effort, everything, in_turn, some_of

Suite = TypeVar("Suite", bound=type[IndexTests])

ON_SOME_TYPES = {
    "test_a_damaged_payload_is_an_error_or_does_no_harm",
    "test_a_unit_is_judged_in_any_company",
    "test_questions_that_are_compiled_together_are_answered_apart",
    "test_statistics_that_are_not_known_are_not_relied_upon",
    "test_units_without_a_summary_do_not_disturb",
    "test_votes_at_the_same_time_do_not_disturb_each_other",
}
"""Tests of units in company, of questions side by side, and of what is missing or damaged."""
OF_USUAL_OPTIONS = {
    "test_a_table_with_deleted_rows_and_a_tail_gives_the_rows_that_it_gives_without_the_index",
    "test_attached_files_give_the_rows_that_they_give_without_the_index",
    "test_how_long_votes_take_is_told",
    "test_questions_that_are_compiled_together_are_answered_apart",
    "test_votes_at_the_same_time_do_not_disturb_each_other",
    "test_what_another_process_built_is_understood",
}
"""Tests of what a kind does with its options once they are read, which the suite of the usual ones asks."""

assert all(callable(getattr(IndexTests, name)) for name in ON_SOME_TYPES | OF_USUAL_OPTIONS)


def of_other_options(suite: Suite) -> Suite:
    """A further suite of a kind: of options or inputs beside those that another suite of it has."""
    suite.wide_worlds = effort(20)
    for name in () if everything() else OF_USUAL_OPTIONS:
        setattr(suite, name, None)  # pytest collects what can be called
    return suite


class SuiteOfManyTypes(IndexTests):
    """Base of such suites; EFFORT=2 runs every test on every type."""

    wide_worlds = effort(8)
    _on_some = False

    def setup_method(self, method: Any) -> None:
        self._on_some = method.__name__ in ON_SOME_TYPES

    def subjects(self) -> Sequence[Any]:
        return some_of(super().subjects()) if self._on_some else super().subjects()

    def questions(self, subject: KindUnderTest) -> Iterator[OracleCheck]:
        """Every leaf, and of its boxes, which are hundreds for each type, a third."""
        asked = list(super().questions(subject))
        boxes = [each for each in asked if isinstance(each.leaf, Conjunction)]
        yield from (each for each in asked if not isinstance(each.leaf, Conjunction))
        yield from in_turn(boxes, 0, 3)
