"""What the engine owes an index author about NULL: from an author's ballot to a whole one.

An author votes on one leaf, and only on the rows whose inputs are not NULL. Before it asks, the engine takes the NULLs
out of the leaf (``strip_nulls_for_kind``), and keeps the leaves that null counts alone decide (``decided_by_engine``,
``engine_vote``). Afterwards it adds what the leaf is on the rows with a NULL input (``complete_ballot``):

==========================  ==================================================
leaf                        what it may be on a row with a NULL input
==========================  ==================================================
``a = 1``, ``a IN (1)``     NULL
``a IN (1, NULL)``          NULL; and where the author says FALSE, NULL
``a <=> 1``                 FALSE
``a IS NULL``               TRUE
``a = 1 AND b = 1``         FALSE or NULL: the other conjunct may be FALSE
``f(a)``, f NULL on NULL    NULL
``f(a) = 1``, such an f     NULL
``f(a)``, any other f       TRUE, FALSE or NULL
==========================  ==================================================

The planner, ``verify_index`` and ``IndexTests`` all go through here, so that a kind is judged as it will be used. Pure
functions over vectors of units; nothing here reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.expressions.calls import NULL_ON_NULL, NULL_OTHERWISE
from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.evaluate import evaluate_constant
from fuse_index.expressions.function import Function
from fuse_index.expressions.traversal import leaf_terms
from fuse_index.indexes.ballot import FALSE, NULL, TRUE, UNKNOWN, Ballot
from fuse_index.indexes.interface import Input, Probe
from fuse_index.predicate import Call, Cast, Column, Compare, In, IsNull, JsonPath, Leaf, Literal, Opaque, Term


@dataclass(frozen=True, slots=True)
class NullPresence:
    """Where the inputs of an index are NULL, for each of n units: two boolean arrays of shape (n,)."""

    may_be_null: npt.NDArray[np.bool_]
    """Some input may be NULL on some row."""
    always_null: npt.NDArray[np.bool_]
    """Some input is NULL on every row."""

    @classmethod
    def of_rows(cls, inputs: pa.Table, offsets: npt.NDArray[np.int64]) -> NullPresence:
        """From the values themselves.

        ``inputs``: a column per input; ``offsets``: int64, shape (n + 1,), ascending, unit i has the rows
        ``offsets[i]:offsets[i + 1]``, at least one.
        """
        units = len(offsets) - 1
        may_be_null, always_null = np.zeros(units, np.bool_), np.zeros(units, np.bool_)
        for column in inputs.columns:
            null = column.is_null().to_numpy()
            may_be_null |= np.logical_or.reduceat(null, offsets[:-1])
            always_null |= np.logical_and.reduceat(null, offsets[:-1])
        return cls(may_be_null, always_null)

    def take(self, units: npt.NDArray[np.int64]) -> NullPresence:
        """The null counts of these units: int64, shape (k,), in any order."""
        return NullPresence(self.may_be_null[units], self.always_null[units])


# --- before an author is asked ------------------------------------------------------------------------------------


def is_null_test(leaf: Leaf | Conjunction) -> bool:
    """Whether the leaf is IS NULL, or ``<=> NULL``, which is the same."""
    return isinstance(leaf, IsNull) or (
        isinstance(leaf, Compare) and leaf.operator == "<=>" and _is_null_literal(leaf.right)
    )


def decided_by_engine(leaf: Leaf | Conjunction) -> bool:
    """Whether a leaf needs no index: null tests of plain columns, comparisons with NULL, comparisons of literals.

    Other terms without a column are those whose value only Spark knows, or a plugin: nobody votes on them.
    """
    match leaf:
        case Conjunction() | Call() | Opaque():
            return False
        case IsNull(Column()):
            return True
        case Compare(_, Column(), right) if _is_null_literal(right):
            return True
        case In(_, values) if all(value.value is None for value in values):
            return True
        case _:
            return not is_null_test(leaf) and not leaf_terms(leaf)


def engine_vote(leaf: Leaf, null_counts: npt.NDArray[np.float64] | None, row_counts: npt.NDArray[np.int64]) -> Ballot:
    """The engine's own vote on a leaf that is ``decided_by_engine``.

    ``null_counts``: how many rows of each unit are NULL in the leaf's column, float64, shape (n,), NaN where that is
    not known; None if it is known of none, or the leaf has no column. ``row_counts``: int64, shape (n,).
    """
    units = len(row_counts)
    if is_null_test(leaf):
        return null_test_votes(null_counts, row_counts)
    if not leaf_terms(leaf):
        outcome = evaluate_constant(leaf)
        return Ballot.constant(units, NULL if outcome is None else TRUE if outcome else FALSE)
    return Ballot.constant(units, NULL if not isinstance(leaf, In) or leaf.has_null else FALSE | NULL)


def null_test_votes(null_counts: npt.NDArray[np.float64] | None, row_counts: npt.NDArray[np.int64]) -> Ballot:
    """Votes on IS NULL, of n units.

    ``null_counts``: float64, shape (n,), NaN where not known; ``row_counts``: int64, shape (n,).

    >>> null_test_votes(np.array([0.0, 3.0, 1.0, np.nan]), np.array([3, 3, 3, 3])).bits.tolist() == [
    ...     FALSE, TRUE, TRUE | FALSE, TRUE | FALSE]
    True
    """
    if null_counts is None:
        return Ballot.constant(len(row_counts), TRUE | FALSE)
    some_null = ~(null_counts == 0)
    some_value = ~(null_counts == row_counts)
    return Ballot((some_null * TRUE + some_value * FALSE).astype(np.uint8))


def strip_nulls_for_kind(leaf: Leaf | Conjunction) -> Leaf | Conjunction:
    """The leaf as authors are promised it: no NULL among the values, and ``<=>`` as ``=``, which differs on NULLs only.

    >>> one, null, a = Literal(1, pa.int64()), Literal(None, pa.int64()), Column(("a",), pa.int64())
    >>> strip_nulls_for_kind(In(a, (one, null))) == In(a, (one,))
    True
    >>> strip_nulls_for_kind(Compare("<=>", a, one)) == Compare("=", a, one)
    True
    """
    if isinstance(leaf, In) and leaf.has_null:
        return replace(leaf, values=tuple(value for value in leaf.values if value.value is not None))
    if isinstance(leaf, Compare) and leaf.operator == "<=>":
        return IsNull(leaf.left) if _is_null_literal(leaf.right) else replace(leaf, operator="=")
    return leaf


# --- after an author has voted ------------------------------------------------------------------------------------


def complete_ballot(
    ballot: Ballot,
    leaf: Leaf | Conjunction,
    probe: Probe[Any],
    inputs: Sequence[Input],
    null_presence: NullPresence,
    strict_functions: frozenset[str],
) -> Ballot:
    """An author's ballot on a leaf, with the outcomes that NULLs in the inputs add: n units in, n units out.

    ``strict_functions``: those that are NULL wherever an argument is. For ``a = 1``, an author who says that no
    row is 1, all are, or some are; on blocks without NULLs, with some, and with nothing else:

    >>> a = Column(("a",), pa.int64())
    >>> author = Ballot(np.array([FALSE, TRUE, TRUE | FALSE], np.uint8))
    >>> nulls = NullPresence(np.array([False, True, True]), np.array([False, False, True]))
    >>> whole = complete_ballot(
    ...     author, Compare("=", a, Literal(1, pa.int64())), Probe(None), [Input(a, a.type)], nulls, frozenset())
    >>> whole.bits.tolist() == [FALSE, TRUE | NULL, NULL]
    True
    """
    terms = set(leaf_terms(leaf))
    on_inputs = terms <= {given.term for given in inputs}
    if isinstance(leaf, Call):
        on_inputs = on_inputs and leaf.name in strict_functions and leaf.name not in NULL_OTHERWISE
    answered = UNKNOWN if on_inputs or probe.judges_null else TRUE | FALSE
    spread = all(propagates_null(given.term, terms, strict_functions) for given in inputs)
    on_null = outcomes_on_null(leaf, strict_functions) if spread else UNKNOWN
    return add_null_outcomes(ballot, leaf, null_presence, answered, on_null)


def add_null_outcomes(
    ballot: Ballot,
    leaf: Leaf | Conjunction,
    null_presence: NullPresence,
    answered: int = TRUE | FALSE,
    on_null: int = UNKNOWN,
) -> Ballot:
    """The ballot with the outcomes on rows with a NULL input. A unit without any outcome tells nothing.

    ``answered``: the outcomes that the author answers for; others are possible anyway. ``on_null``: the outcomes on a
    row with a NULL input.
    """

    def add(bits: npt.NDArray[np.uint8], may_be_null: npt.NDArray[np.bool_] | np.bool_) -> npt.NDArray[np.uint8]:
        bits = bits & np.uint8(UNKNOWN) | (bits == 0).view(np.uint8) * np.uint8(UNKNOWN)
        if isinstance(leaf, In) and leaf.has_null:  # x IN (1, NULL) is NULL where x IN (1) is FALSE
            bits = np.where(bits & FALSE, (bits & ~np.uint8(FALSE)) | NULL, bits).astype(np.uint8)
        unanswered = UNKNOWN & ~answered & NULL
        return np.asarray(bits | unanswered | np.where(may_be_null, on_null, 0).astype(np.uint8), np.uint8)

    may_be_null, always_null = null_presence.may_be_null, null_presence.always_null
    bits = np.where(always_null, on_null, add(ballot.bits, may_be_null)).astype(np.uint8)
    rows = {unit: add(votes, may_be_null[unit]) for unit, votes in ballot.rows.items() if not always_null[unit]}
    return Ballot(bits, rows)


def outcomes_on_null(leaf: Leaf | Conjunction, strict_functions: frozenset[str] = frozenset()) -> int:
    """The outcomes that a leaf may have on a row where one of its inputs is NULL: the table above."""
    match leaf:
        case Conjunction():
            return FALSE | NULL  # another conjunct may be FALSE, which wins over NULL
        case _ if is_null_test(leaf):
            return TRUE
        case Compare(operator="<=>"):
            return FALSE
        case Call(name):
            return NULL if name in strict_functions else UNKNOWN
        case _:
            return NULL


def propagates_null(input_term: Term, terms: Iterable[Term], strict_functions: frozenset[str]) -> bool:
    """Whether a NULL in this input makes the whole leaf see NULL.

    The leaf is on it, or on a cast, a path or a strict function of it.
    """
    for term in terms:
        match term:
            case _ if term == input_term:
                return True
            case Cast(inner) | JsonPath(inner) if propagates_null(input_term, [inner], strict_functions):
                return True
            case Call(name, arguments) if name in strict_functions:
                if propagates_null(input_term, arguments, strict_functions):
                    return True
    return False


def strict_function_names(functions: Mapping[str, Function]) -> frozenset[str]:
    """The functions that are NULL wherever an argument is: plugins' own, and Spark's where no plugin has their name."""
    own = {name for name, function in functions.items() if function.null_on_null}
    return frozenset(own | (NULL_ON_NULL - functions.keys()))


def _is_null_literal(term: Term) -> bool:
    return isinstance(term, Literal) and term.value is None
