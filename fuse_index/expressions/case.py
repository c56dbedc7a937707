"""The values of a CASE: each of its terms on the rows that come to it, as Spark evaluates it."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.errors import OpaqueError
from fuse_index.predicate import Case, Predicate, Term


class Evaluator(Protocol):
    """Some rows, of which it knows what terms and conditions are."""

    def predicate(self, predicate: Predicate) -> pa.BooleanArray: ...

    def term_array(self, term: Term) -> pa.Array: ...

    def at(self, places: npt.NDArray[np.int64]) -> Evaluator:
        """The rows at these places: int64, shape (n,)."""
        ...


def evaluate_case(case: Case, rows: Evaluator, row_count: int) -> pa.Array:
    """One value of ``case.type`` a row. Raises OpaqueError.

    All of it is evaluated on every row, which is quickest; where that cannot be done, since Spark would raise on rows
    that do not come to a term, each term on those that do.
    """
    try:
        result = rows.term_array(case.otherwise)
        for condition, value in reversed(case.branches):
            result = pc.if_else(pc.fill_null(rows.predicate(condition), False), rows.term_array(value), result)
        return result
    except OpaqueError:
        return _branch_by_branch(case, rows, row_count)


def _branch_by_branch(case: Case, rows: Evaluator, row_count: int) -> pa.Array:
    remaining = np.arange(row_count)
    places, pieces = [remaining[:0]], [pa.array([], case.type)]
    for condition, value in case.branches:
        is_true = np.asarray(pc.fill_null(rows.at(remaining).predicate(condition), False))
        if is_true.any():
            places.append(remaining[is_true])
            pieces.append(rows.at(places[-1]).term_array(value))
        remaining = remaining[~is_true]
    if len(remaining):
        places.append(remaining)
        pieces.append(rows.at(remaining).term_array(case.otherwise))
    return pa.concat_arrays(pieces).take(pa.array(np.argsort(np.concatenate(places))))
