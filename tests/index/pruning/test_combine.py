"""The engine's part of voting, against brute force over units of a few rows."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuse_index.indexes.ballot import ALL, FALSE, NONE, NULL, SOME, TRUE, UNKNOWN, Ballot
from fuse_index.predicate import And, Call, Column, Compare, In, IsNull, Literal, Not, Or, Predicate
from fuse_index.pruning.combine import (
    NullPresence,
    add_null_outcomes,
    best_case_outcomes,
    combine_votes,
    null_test_votes,
    outcomes_on_null,
)

COLUMNS = [Column((name,), pa.int64()) for name in "abc"]
LEAVES = [Compare("=", column, Literal(1, pa.int64())) for column in COLUMNS]
ROWS = 3

outcomes = st.sampled_from([TRUE, FALSE, NULL])
trees = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(lambda terms: And(tuple(terms)), st.lists(inner, min_size=2, max_size=3)),
        st.builds(lambda terms: Or(tuple(terms)), st.lists(inner, min_size=2, max_size=3)),
    ),
    max_leaves=6,
)


def truth(predicate: Predicate, row: dict[Predicate, int]) -> int:
    """Three-valued logic, a row at a time: too simple to be wrong."""
    match predicate:
        case And(terms):
            found = {truth(term, row) for term in terms}
            return FALSE if FALSE in found else NULL if NULL in found else TRUE
        case Or(terms):
            found = {truth(term, row) for term in terms}
            return TRUE if TRUE in found else NULL if NULL in found else FALSE
        case Not(term):
            return {TRUE: FALSE, FALSE: TRUE, NULL: NULL}[truth(term, row)]
        case leaf:
            return row[leaf]


units_of_rows = st.lists(st.tuples(outcomes, outcomes, outcomes), min_size=ROWS, max_size=ROWS)


@given(trees, units_of_rows, st.lists(st.integers(0, 7), min_size=3, max_size=3))
def test_what_a_row_is_was_called_possible(tree, rows, noise):
    units = [dict(zip(LEAVES, row, strict=True)) for row in rows]
    ballots = {
        leaf: Ballot(np.array([np.bitwise_or.reduce([unit[leaf] for unit in units]) | extra], np.uint8))
        for leaf, extra in zip(LEAVES, noise, strict=True)
    }

    possible = int(combine_votes(tree, ballots, {}, {}).bits[0])

    assert all(truth(tree, unit) & possible for unit in units)


@given(trees, units_of_rows)
def test_votes_on_single_rows_decide_each_row(tree, rows):
    units = [dict(zip(LEAVES, row, strict=True)) for row in rows]
    ballots = {}
    for leaf in LEAVES:
        votes = np.array([unit[leaf] for unit in units], np.uint8)
        ballots[leaf] = Ballot(np.array([np.bitwise_or.reduce(votes)], np.uint8), {0: votes})

    decided = combine_votes(tree, ballots, {}, {})

    assert [truth(tree, unit) for unit in units] == list(decided.rows[0])


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
    leaf = LEAVES[0]

    settled = add_null_outcomes(
        Ballot(np.array([vote], np.uint8)), leaf, nulls(possible, everywhere), UNKNOWN, outcomes_on_null(leaf)
    )

    assert settled.bits.tolist() == [expected]


def test_a_null_safe_comparison_is_false_on_null():
    assert outcomes_on_null(Compare("<=>", COLUMNS[0], Literal(1, pa.int64()))) == FALSE


def test_a_null_in_a_list_turns_false_into_null():
    leaf = In(COLUMNS[0], (Literal(1, pa.int64()), Literal(None, pa.int64())))

    settled = add_null_outcomes(
        Ballot(np.array([NONE, ALL, SOME], np.uint8)),
        leaf,
        NullPresence(np.zeros(3, bool), np.zeros(3, bool)),
        UNKNOWN,
        NULL,
    )

    assert settled.bits.tolist() == [NULL, TRUE, TRUE | NULL]


def test_a_leaf_on_a_function_of_the_input_may_be_null_where_the_author_does_not_say():
    settled = add_null_outcomes(Ballot(np.array([NONE], np.uint8)), LEAVES[0], nulls(False, False), TRUE | FALSE, NULL)

    assert settled.bits.tolist() == [FALSE | NULL]


def test_a_null_test_is_decided_by_null_counts():
    ballot = null_test_votes(np.array([0.0, 3.0, 1.0, np.nan]), np.array([3, 3, 3, 3]))

    assert ballot.bits.tolist() == [FALSE, TRUE, TRUE | FALSE, TRUE | FALSE]


def test_a_function_that_is_not_null_on_null_may_be_anything_there():
    call = Call("never_null", (COLUMNS[0],))

    assert outcomes_on_null(call) == UNKNOWN
    assert outcomes_on_null(call, frozenset({"never_null"})) == NULL
    assert outcomes_on_null(IsNull(COLUMNS[0])) == TRUE


def test_an_optimist_wishes_for_false_above_and_true_below_a_not():
    a, b, _ = LEAVES

    assert best_case_outcomes(And((a, Not(b)))) == {a: FALSE, b: TRUE}
    assert best_case_outcomes(Or((a, Not(a)))) == {a: 0}


def test_a_leaf_is_true_only_where_what_it_implies_may_be():
    a, b, _ = LEAVES
    ballots = {a: Ballot.unknown(2), b: Ballot(np.array([NONE, SOME], np.uint8))}

    assert combine_votes(a, ballots, {}, {a: [b]}).may_match.tolist() == [False, True]
    assert combine_votes(Not(a), ballots, {}, {a: [b]}).may_match.tolist() == [True, True]
