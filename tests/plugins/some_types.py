"""Suites of kinds that accept many types: what does not hang on the type runs on some of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuse_index.testing import IndexTests
from tests.effort import effort, some_of

ON_SOME_TYPES = {
    "test_a_damaged_payload_is_an_error_or_does_no_harm",
    "test_a_unit_is_judged_in_any_company",
    "test_questions_that_are_compiled_together_are_answered_apart",
    "test_statistics_that_are_not_known_are_not_relied_upon",
    "test_units_without_a_summary_do_not_disturb",
    "test_votes_at_the_same_time_do_not_disturb_each_other",
}
"""Tests of units in company, of questions side by side, and of what is missing or damaged."""


assert all(callable(getattr(IndexTests, name)) for name in ON_SOME_TYPES)


class SuiteOfManyTypes(IndexTests):
    """Base of such suites; EFFORT=2 runs every test on every type."""

    wide_worlds = effort(15)
    _on_some = False

    def setup_method(self, method: Any) -> None:
        self._on_some = method.__name__ in ON_SOME_TYPES

    def subjects(self) -> Sequence[Any]:
        return some_of(super().subjects()) if self._on_some else super().subjects()
