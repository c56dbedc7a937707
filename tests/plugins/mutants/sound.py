"""Small sound kinds, which mutants are made of, and the suites that judge them.

Each does one thing by plain methods that a mutant overrides. A mutant names the test that is to kill it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fuse_index.expressions.conjunction import Conjunction
from fuse_index.plugin import (
    ALL,
    NONE,
    SOME,
    Ballot,
    IndexKind,
    Input,
    LikePattern,
    Probe,
    Reason,
    Refusal,
    Sidecar,
    ValueSet,
)
from fuse_index.predicate import Column, Contains, EndsWith, Like, Literal, StartsWith
from fuse_index.testing import IndexTests

NO = Refusal(Reason.LEAF_UNSUPPORTED, "not this")
NUMBER, TEXT = Column(("n",), pa.int64()), Column(("t",), pa.string())

TESTS = {
    "small": "test_no_vote_is_wrong_in_a_small_world",
    "wide": "test_no_vote_is_wrong_in_a_wide_world",
    "larger": "test_no_vote_is_wrong_on_larger_blocks",
    "company": "test_a_unit_is_judged_in_any_company",
    "unindexed": "test_units_without_a_summary_do_not_disturb",
    "statistics": "test_statistics_that_are_not_known_are_not_relied_upon",
    "damage": "test_a_damaged_payload_is_an_error_or_does_no_harm",
    "roll-up": "test_a_roll_up_is_sound",
    "16 bits": "test_no_vote_is_wrong_on_a_block_of_more_rows_than_16_bits_count",
    "8 bits": "test_no_vote_is_wrong_on_more_units_and_zones_than_8_bits_count",
    "together": "test_questions_that_are_compiled_together_are_answered_apart",
    "threads": "test_votes_at_the_same_time_do_not_disturb_each_other",
    "process": "test_what_another_process_built_is_understood",
    "options": "test_no_vote_is_wrong_with_other_options",
    "else": "test_a_leaf_on_something_else_is_refused_or_judged_right",
    "versions": "test_payloads_of_each_version_that_is_read_are_understood",
    "table": "test_a_table_of_unequal_zones_gives_the_rows_that_it_gives_without_the_index",
    "tail": "test_a_table_with_deleted_rows_and_a_tail_gives_the_rows_that_it_gives_without_the_index",
    "attached": "test_attached_files_give_the_rows_that_they_give_without_the_index",
    "named": "test_the_kind_is_named_versioned_and_pickled_by_reference",
    "json options": "test_options_are_frozen_and_json",
    "refused": "test_what_is_refused_is_refused_with_a_reason",
    "size": "test_summaries_and_payloads_are_of_bounded_size",
    "inspected": "test_what_is_inspected_is_json",
    "best": "test_the_best_rows_come_first",
    "scores": "test_rows_score_without_an_index_as_they_do_with_one",
    "values": "test_scores_are_the_values_of_the_function",
    "recall": "test_an_approximate_ranking_finds_what_it_says",
    "among": "test_only_rows_that_are_asked_for_are_ranked",
    "bound": "test_no_row_is_above_its_bound",
    "parts": "test_statistics_may_be_gathered_in_parts",
    "answer": "test_stored_states_and_rows_give_one_answer",
    "order": "test_the_order_of_states_does_not_matter",
    "each function": "test_each_function_of_each_input_is_refused_or_answered_right",
    "not answered": "test_what_cannot_be_answered_is_refused",
    "row": "test_each_row_is_judged_by_itself",
    "null": "test_null_is_where_an_argument_is_null",
    "implied": "test_what_is_implied_is_true_wherever_the_function_is",
    "native": "test_what_spark_runs_instead_is_the_same",
    "narrows": "test_what_narrows_is_true_wherever_the_function_is",
}


@dataclass(frozen=True)
class Mutant:
    """A kind that is wrong in one way.

    ``killed_by``: the test that finds it; ``says``: what the failure says; ``given``: what else the suite has;
    ``raises``: what the kind raises by itself, where it does.
    """

    kind: type[IndexKind]
    suite: type[IndexTests]
    killed_by: str
    says: str = "a wrong vote"
    given: dict[str, Any] = field(default_factory=dict)
    raises: type[BaseException] = pytest.fail.Exception

    def tests(self) -> IndexTests:
        return type(f"Suite{self.kind.__name__}", (self.suite,), {"index": self.kind, **self.given})()


def mutants(suite: type[IndexTests], *kinds: tuple[Any, ...]) -> list[Mutant]:
    return [Mutant(kind, suite, *rest) for kind, *rest in kinds]


@dataclass(frozen=True)
class Most:
    most: int = 40
    fold: bool = False


class ZoneValues(IndexKind):
    """The distinct values of each zone, in the summary, as long as they are few."""

    name = "zone_values"
    Options = Most
    cost = 1.0

    def accepts(self, inputs, options):
        plain = len(inputs) == 1 and inputs[0].type in (pa.int64(), pa.string())
        return None if plain else Refusal(Reason.TYPE_MISMATCH, "on one bigint or string")

    def summary_type(self, inputs, options):
        return pa.list_(pa.list_(inputs[0].type))

    def build(self, rows, zones, options):
        return Sidecar(self.zone_values(rows.column(0), zones, options))

    def zone_values(self, column, zones, options):
        parts = [column.slice(start, end - start) for start, end in pairwise(zones.tolist())]
        return [self.kept(part.drop_null().unique().to_pylist(), options) for part in parts]

    def kept(self, values, options):
        return values if len(values) <= options.most else None

    def compile(self, what, inputs, options, context):
        wanted = self.wanted(what, inputs)
        return NO if wanted is None else Probe(wanted, self.cost)

    def wanted(self, what, inputs):
        if isinstance(what, Conjunction):
            return what.domain(inputs[0].term)
        term = getattr(what, "left", getattr(what, "term", None))
        return ValueSet.of(what) if term == inputs[0].term else None

    def probe(self, probe, batch):
        zones = self.zones_of(batch)
        return Ballot(np.array([self.judge(probe.what, values) for values in zones], np.uint8))

    def zones_of(self, batch):
        counts = np.diff(batch.zone_offsets).tolist()
        found = []
        for zones, count in zip(batch.summaries.to_pylist(), counts, strict=True):
            found += [None] * count if zones is None else zones
        return found

    def judge(self, wanted, values):
        if values is None:
            return SOME
        held = [wanted.contains(value) for value in values]
        return ALL if all(held) else SOME if any(held) else NONE


class RowValues(ZoneValues):
    """The values of each row, as payload, with a vote for each of them."""

    name = "row_values"
    cost = 10.0

    def accepts(self, inputs, options):
        return None if [given.type for given in inputs] == [pa.int64()] else Refusal(Reason.TYPE_MISMATCH, "bigint")

    def summary_type(self, inputs, options):
        return pa.int64()

    def build(self, rows, zones, options):
        values = np.array(rows.column(0).fill_null(-7).to_numpy())
        return Sidecar(len(values), self.encode(values))

    def encode(self, values):
        return values.tobytes()

    def decode(self, data):
        return np.frombuffer(data, np.int64)

    def probe(self, probe, batch):
        bits, rows = np.full(len(batch), SOME, np.uint8), {}
        for unit in range(len(batch)):
            if (payload := batch.payload(unit)) is not None:
                rows[unit] = self.row_votes(probe.what, self.decode(payload.read([(0, payload.size)])[0]))
                bits[unit] = np.bitwise_or.reduce(rows[unit])
        return Ballot(bits, rows)

    def row_votes(self, wanted, values):
        known = {value: ALL if wanted.contains(value) else NONE for value in set(values.tolist())}
        return np.array([known[value] for value in values.tolist()], np.uint8)


class Pairs(IndexKind):
    """The pairs of two letters next to each other in the texts of a block: LIKE, contains, starts and ends."""

    name = "pairs"

    def accepts(self, inputs, options):
        return None if [given.type for given in inputs] == [pa.string()] else Refusal(Reason.TYPE_MISMATCH, "text")

    def summary_type(self, inputs, options):
        return pa.list_(pa.string())

    def build(self, rows, zones, options):
        return Sidecar(sorted({pair for text in rows.column(0).drop_null().to_pylist() for pair in self.pairs(text)}))

    def pairs(self, text):
        return {text[start : start + 2] for start in range(len(text) - 1)}

    def compile(self, what, inputs, options, context):
        texts = self.texts(what, inputs[0].term)
        return NO if texts is None else Probe(frozenset().union(*(self.pairs(text) for text in texts)))

    def texts(self, what, own):
        match what:
            case Contains(term, Literal(text)) | StartsWith(term, Literal(text)) | EndsWith(term, Literal(text)):
                return [text] if term == own else None
            case Like(term, Literal(pattern), escape) if term == own:
                return self.like_texts(pattern, escape)
        return None

    def like_texts(self, pattern, escape):
        return LikePattern.parse(pattern, escape).texts

    def probe(self, probe, batch):
        held = batch.summaries.to_pylist()
        return Ballot(np.array([self.judge(probe.what, pairs) for pairs in held], np.uint8))

    def judge(self, wanted, pairs):
        return SOME if pairs is None or wanted <= set(pairs) else NONE

    def roll_up(self, summaries):
        return pa.scalar(sorted({pair for pairs in summaries.to_pylist() for pair in pairs}), summaries.type)


class OnNumbers(IndexTests):
    index = ZoneValues
    inputs = (Input(NUMBER, pa.int64()),)
    summary_bytes = 1 << 17

    def rows(self, column) -> Sequence[Any]:
        return (-1, 0, 1, 3)

    def literals(self, term):
        return (-2, -1, 0, 1, 2, 3)


class OnManyNumbers(IndexTests):
    index = ZoneValues
    inputs = (Input(NUMBER, pa.int64()),)
    summary_bytes = 1 << 17


class OnLongTexts(IndexTests):
    index = Pairs
    inputs = (Input(TEXT, pa.string()),)
    summary_bytes = 1 << 17


class OnTexts(IndexTests):
    index = Pairs
    inputs = (Input(TEXT, pa.string()),)
    summary_bytes = 1 << 17

    def rows(self, column):
        return ("", "a", "ab", "axb", "a%b", "a_b", "AB", "ba", "bcab")

    def literals(self, term):
        return ("a", "ab", "a%b", "axb", "AB", "ba", "!%")
