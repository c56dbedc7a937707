"""What NULLs add to an author's votes."""

import numpy as np
import pyarrow as pa
import pytest

from fuse_index.indexes.ballot import ALL, FALSE, NONE, NULL, SOME, TRUE, UNKNOWN, Ballot
from fuse_index.indexes.interface import Input, Probe
from fuse_index.predicate import Call, Column, Compare, In, IsNull, Literal
from fuse_index.pruning.nulls import (
    NullPresence,
    add_null_outcomes,
    complete_ballot,
    null_test_votes,
    outcomes_on_null,
    strict_function_names,
)

COLUMN = Column(("a",), pa.int64())
LEAF = Compare("=", COLUMN, Literal(1, pa.int64()))


def nulls(possible: bool, everywhere: bool) -> NullPresence:
    return NullPresence(np.array([possible]), np.array([everywhere]))


@pytest.mark.parametrize(
    ("vote", "possible", "everywhere", "expected"),
    [
        (NONE, False, False, FALSE),
        (NONE, True, False, FALSE | NULL),
        (ALL, True, False, TRUE | NULL),
        (SOME, False, False, TRUE | FALSE),
        (ALL, True, True, NULL),
        (0, False, False, UNKNOWN),
    ],
)
def test_nulls_are_added_to_what_an_author_said(vote, possible, everywhere, expected):
    settled = add_null_outcomes(
        Ballot(np.array([vote], np.uint8)), LEAF, nulls(possible, everywhere), UNKNOWN, outcomes_on_null(LEAF)
    )

    assert settled.bits.tolist() == [expected]


def test_a_null_safe_comparison_is_false_on_null():
    assert outcomes_on_null(Compare("<=>", COLUMN, Literal(1, pa.int64()))) == FALSE


def test_a_null_in_a_list_turns_false_into_null():
    leaf = In(COLUMN, (Literal(1, pa.int64()), Literal(None, pa.int64())))

    settled = add_null_outcomes(
        Ballot(np.array([NONE, ALL, SOME], np.uint8)),
        leaf,
        NullPresence(np.zeros(3, bool), np.zeros(3, bool)),
        UNKNOWN,
        NULL,
    )

    assert settled.bits.tolist() == [NULL, TRUE, TRUE | NULL]


def test_a_leaf_on_a_function_of_the_input_may_be_null_where_the_author_does_not_say():
    settled = add_null_outcomes(Ballot(np.array([NONE], np.uint8)), LEAF, nulls(False, False), TRUE | FALSE, NULL)

    assert settled.bits.tolist() == [FALSE | NULL]


def test_a_null_test_is_decided_by_null_counts():
    ballot = null_test_votes(np.array([0.0, 3.0, 1.0, np.nan]), np.array([3, 3, 3, 3]))

    assert ballot.bits.tolist() == [FALSE, TRUE, TRUE | FALSE, TRUE | FALSE]


def test_a_function_that_is_not_null_on_null_may_be_anything_there():
    call = Call("never_null", (COLUMN,))

    assert outcomes_on_null(call) == UNKNOWN
    assert outcomes_on_null(call, frozenset({"never_null"})) == NULL
    assert outcomes_on_null(IsNull(COLUMN)) == TRUE


LIST, TEXT = Column(("l",), pa.list_(pa.string())), Column(("t",), pa.string())
WORD, FOUR = Literal("x", pa.string()), Literal(4, pa.int64())


@pytest.mark.parametrize(
    ("leaf", "given", "without_null", "with_null"),
    [
        (Call("rlike", (TEXT, WORD)), TEXT, FALSE, FALSE | NULL),
        (Call("array_contains", (LIST, WORD)), LIST, FALSE | NULL, FALSE | NULL),
        (Compare("=", Call("+", (COLUMN, FOUR), pa.int64()), FOUR), COLUMN, FALSE | NULL, FALSE | NULL),
        (Compare("=", Call("size", (LIST,), pa.int64()), FOUR), LIST, FALSE | NULL, UNKNOWN),
        (Call("of_nobody", (TEXT,)), TEXT, FALSE | NULL, UNKNOWN),
    ],
    ids=str,
)
def test_a_call_of_spark_s_is_null_where_its_function_says(leaf, given, without_null, with_null):
    presence = NullPresence(np.array([False, True]), np.zeros(2, bool))

    whole = complete_ballot(
        Ballot(np.array([NONE, NONE], np.uint8)),
        leaf,
        Probe(None),
        [Input(given, given.type)],
        presence,
        strict_function_names({}),
    )

    assert whole.bits.tolist() == [without_null, with_null]
