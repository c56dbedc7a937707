"""The algebra of votes, against a world small enough to be tried whole.

A unit is a set of rows; a predicate is an outcome per row. Whatever the outcomes, a ballot that over-approximates them
must still do so after NOT, AND, OR, meeting and implying; and where it knew everything, nothing may be lost that a set
of outcomes can hold.
"""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from fuse_index.indexes.ballot import ALL, FALSE, NONE, NULL, SOME, TRUE, UNKNOWN, Ballot

OUTCOMES = (True, False, None)
BITS = {True: TRUE, False: FALSE, None: NULL}
SETS = range(1, 8)
"""Every non-empty set of outcomes, as bits."""


def kleene_not(a):
    return None if a is None else not a


def kleene_and(a, b):
    return False if a is False or b is False else None if a is None or b is None else True


def kleene_or(a, b):
    return kleene_not(kleene_and(kleene_not(a), kleene_not(b)))


def bits_of(rows):
    return int(np.bitwise_or.reduce([BITS[row] for row in rows], initial=0))


def members(bits):
    return [outcome for outcome in OUTCOMES if BITS[outcome] & bits]


def ballot(*bits):
    return Ballot(np.array(bits, np.uint8))


def within(bits):
    """All sets of outcomes that a vote may stand for: those it covers."""
    return [cover for cover in range(8) if cover & bits == bits]


@pytest.mark.parametrize("rows", [rows for size in (1, 2, 3) for rows in combinations_with_replacement(OUTCOMES, size)])
def test_not_covers_every_row_whatever_was_left_unknown(rows):
    truth = bits_of([kleene_not(row) for row in rows])

    for vote in within(bits_of(rows)):
        assert (~ballot(vote)).bits[0] & truth == truth


@pytest.mark.parametrize(("operator", "kleene"), [("and", kleene_and), ("or", kleene_or)])
def test_and_or_cover_every_pair_of_rows_whatever_was_left_unknown(operator, kleene):
    for size in (1, 2):
        for left, right in product(product(OUTCOMES, repeat=size), repeat=2):
            truth = bits_of([kleene(a, b) for a, b in zip(left, right, strict=True)])
            for a, b in product(within(bits_of(left)), within(bits_of(right))):
                combined = ballot(a) & ballot(b) if operator == "and" else ballot(a) | ballot(b)

                assert combined.bits[0] & truth == truth, (left, right, a, b)


@pytest.mark.parametrize(("operator", "kleene"), [("and", kleene_and), ("or", kleene_or)])
def test_and_or_call_nothing_possible_that_no_pair_of_rows_makes(operator, kleene):
    for a, b in product(SETS, repeat=2):
        reachable = bits_of([kleene(x, y) for x, y in product(members(a), members(b))])
        combined = ballot(a) & ballot(b) if operator == "and" else ballot(a) | ballot(b)

        assert combined.bits[0] == reachable, (a, b)


def test_not_is_its_own_inverse_and_none_is_not_the_opposite_of_all():
    every = ballot(*range(8))

    assert (~~every).bits.tolist() == every.bits.tolist()
    assert (~ballot(NONE)).bits[0] == ALL
    assert (~ballot(NONE | NULL)).bits[0] != ALL


def test_and_or_follow_de_morgan_on_every_pair():
    left, right = (ballot(*bits) for bits in zip(*product(range(8), repeat=2), strict=True))

    assert (~(left & right)).bits.tolist() == (~left | ~right).bits.tolist()
    assert (~(left | right)).bits.tolist() == (~left & ~right).bits.tolist()


def test_two_opinions_leave_what_both_hold_possible():
    for a, b in product(range(8), repeat=2):
        assert ballot(a).intersect(ballot(b)).bits[0] == a & b


def test_what_implies_the_impossible_is_impossible_and_else_nothing_changes():
    for a, b in product(SETS, repeat=2):
        implied = int(ballot(a).constrain_by(ballot(b)).bits[0])

        if b & TRUE:
            assert implied == a
        elif a == TRUE:
            assert implied == UNKNOWN  # one of the two is wrong
        else:
            assert implied == a & ~TRUE


def test_implying_covers_every_pair_of_rows_of_which_one_implies_the_other():
    for size in (1, 2):
        for left, right in product(product(OUTCOMES, repeat=size), repeat=2):
            if any(a is True and b is not True for a, b in zip(left, right, strict=True)):
                continue
            truth = bits_of(left)
            for a, b in product(within(truth), within(bits_of(right))):
                assert int(ballot(a).constrain_by(ballot(b)).bits[0]) & truth == truth, (left, right, a, b)


def test_rows_are_combined_one_by_one_and_units_are_their_union():
    rows = np.array([outcome for outcome in (TRUE, FALSE, NULL) for _ in range(3)], np.uint8)
    others = np.array([TRUE, FALSE, NULL] * 3, np.uint8)
    left, right = Ballot(np.array([UNKNOWN], np.uint8), {0: rows}), Ballot(np.array([UNKNOWN], np.uint8), {0: others})

    both, either = left & right, left | right

    assert both.rows[0].tolist() == [TRUE, FALSE, NULL, FALSE, FALSE, FALSE, NULL, FALSE, NULL]
    assert either.rows[0].tolist() == [TRUE, TRUE, TRUE, TRUE, FALSE, NULL, TRUE, NULL, NULL]
    assert both.bits[0] == either.bits[0] == UNKNOWN


def test_rows_meet_a_vote_on_the_whole_unit():
    left = Ballot(np.array([SOME, SOME], np.uint8), {1: np.array([TRUE, FALSE], np.uint8)})
    right = ballot(TRUE, FALSE)

    combined = left & right

    assert combined.bits.tolist() == [SOME, FALSE]
    assert combined.rows[1].tolist() == [FALSE, FALSE]


def test_a_unit_without_rows_left_cannot_be_true():
    left = Ballot(np.array([SOME], np.uint8), {0: np.array([TRUE, FALSE], np.uint8)})
    right = Ballot(np.array([SOME], np.uint8), {0: np.array([FALSE, TRUE], np.uint8)})

    assert not (left & right).may_match[0]
    assert (left | right).always_matches[0]


def test_kept_and_certain_read_the_bits():
    every = ballot(*range(8))

    assert every.may_match.tolist() == [bool(bits & TRUE) for bits in range(8)]
    assert every.always_matches.tolist() == [bits == TRUE for bits in range(8)]


def test_a_unit_may_be_taken_many_times_with_its_rows():
    given = Ballot(np.array([TRUE, SOME], np.uint8), {1: np.array([TRUE, FALSE], np.uint8)})

    taken = given.take(np.array([1, 0, 1]))

    assert taken.bits.tolist() == [SOME, TRUE, SOME]
    assert {unit: rows.tolist() for unit, rows in taken.rows.items()} == {0: [TRUE, FALSE], 2: [TRUE, FALSE]}


def test_rows_are_cut_where_their_unit_is():
    votes = Ballot(
        np.array([NONE, SOME, SOME, ALL], np.uint8),
        {1: np.array([NONE, NONE, ALL], np.uint8), 2: np.array([ALL, NONE], np.uint8)},
    )

    parts = votes.cut(np.array([1, 1, 3, 3]), np.array([2, 1, 4, 4]))

    assert parts.bits.tolist() == [NONE, ALL, ALL, ALL]
    assert {part: rows.tolist() for part, rows in parts.rows.items()} == {0: [NONE, NONE], 1: [ALL]}


def test_rows_that_do_not_fill_the_parts_of_their_unit_are_not_cut():
    with pytest.raises(ValueError, match="3 votes on rows of unit 0, whose parts have 4 rows"):
        Ballot(np.array([NONE], np.uint8), {0: np.full(3, NONE, np.uint8)}).cut(np.array([0, 0]), np.array([2, 2]))
