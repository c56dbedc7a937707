"""The engine's part of voting, against brute force over units of a few rows."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fuse_index.indexes.ballot import FALSE, NONE, NULL, SOME, TRUE, Ballot
from fuse_index.predicate import And, Column, Compare, Literal, Not, Or, Predicate
from fuse_index.pruning.combine import VoteCount, VoteTree, best_case_outcomes

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


def combine_votes(predicate, ballots, implied=None):
    """The ballot of a tree, the same whether its leaves' ballots come at once or one after the other."""
    tree = VoteTree.of(predicate, ballots, {}, implied or {})
    units = len(next(iter(ballots.values())))
    at_once = VoteCount(tree, dict(ballots), units)
    in_turn = VoteCount(tree, {leaf: Ballot.unknown(units) for leaf in ballots}, units)
    for leaf, ballot in ballots.items():
        in_turn.update(leaf, ballot)
    assert in_turn.ballot.bits.tolist() == at_once.ballot.bits.tolist()
    assert {unit: rows.tolist() for unit, rows in in_turn.ballot.rows.items()} == {
        unit: rows.tolist() for unit, rows in at_once.ballot.rows.items()
    }
    return at_once.ballot


units_of_rows = st.lists(st.tuples(outcomes, outcomes, outcomes), min_size=ROWS, max_size=ROWS)


@given(trees, units_of_rows, st.lists(st.integers(0, 7), min_size=3, max_size=3))
def test_what_a_row_is_was_called_possible(tree, rows, noise):
    units = [dict(zip(LEAVES, row, strict=True)) for row in rows]
    ballots = {
        leaf: Ballot(np.array([np.bitwise_or.reduce([unit[leaf] for unit in units]) | extra], np.uint8))
        for leaf, extra in zip(LEAVES, noise, strict=True)
    }

    possible = int(combine_votes(tree, ballots).bits[0])

    assert all(truth(tree, unit) & possible for unit in units)


@given(trees, units_of_rows)
def test_votes_on_single_rows_decide_each_row(tree, rows):
    units = [dict(zip(LEAVES, row, strict=True)) for row in rows]
    ballots = {}
    for leaf in LEAVES:
        votes = np.array([unit[leaf] for unit in units], np.uint8)
        ballots[leaf] = Ballot(np.array([np.bitwise_or.reduce(votes)], np.uint8), {0: votes})

    decided = combine_votes(tree, ballots)

    assert [truth(tree, unit) for unit in units] == list(decided.rows[0])


def test_an_optimist_wishes_for_false_above_and_true_below_a_not():
    a, b, _ = LEAVES

    assert best_case_outcomes(And((a, Not(b)))) == {a: FALSE, b: TRUE}
    assert best_case_outcomes(Or((a, Not(a)))) == {a: 0}


def test_a_leaf_is_true_only_where_what_it_implies_may_be():
    a, b, _ = LEAVES
    ballots = {a: Ballot.unknown(2), b: Ballot(np.array([NONE, SOME], np.uint8))}

    assert combine_votes(a, ballots, {a: [b]}).may_match.tolist() == [False, True]
    assert combine_votes(Not(a), ballots, {a: [b]}).may_match.tolist() == [True, True]
