"""What kinds give as scores, as bounds of them and as states of aggregates, checked for its form.

Pure functions; nothing here reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.aggregates.state import Aggregation, sketch_damage
from fuse_index.indexes.interface import Probe, Refusal
from fuse_index.indexes.sandbox import PluginFailure, check_probe
from fuse_index.reasons import Reason

_Scores = npt.NDArray[np.float64]
_Numbers = npt.NDArray[np.int64]


def total_bounds(bounds: Sequence[_Scores]) -> _Scores:
    """The most that a row of each block may score over all rankings: float64, shape (n,), -inf where no row matches.

    ``bounds``: of each ranking, float64, shape (n,). A row need not match in every ranking, and scores may be negative:
    what is negative only counts where nothing else matches.

    >>> total_bounds([np.array([2.0, -3.0, -np.inf, 0.0]), np.array([1.0, -1.0, -np.inf, -np.inf])]).tolist()
    [3.0, -1.0, -inf, 0.0]
    """
    highest = np.max(bounds, axis=0)
    positive = np.sum(np.maximum(bounds, 0.0), axis=0)
    return np.asarray(np.where(highest > 0, positive, highest), np.float64)


def checked_ranking(compile_ranking: Callable[[], object], recall: float = 1.0) -> Probe[Any] | Refusal:
    """What a kind made of a query.

    Raises TypeError or ValueError for what is neither a probe nor a refusal, and for one that finds less than
    ``recall`` of the best rows.
    """
    answer = check_probe(compile_ranking(), "compile_ranking")
    if isinstance(answer, Probe) and not recall <= answer.recall <= 1.0:
        raise ValueError(f"a ranking of recall {answer.recall} was given where {recall:g} is asked for")
    return answer


def checked_scores(answer: Any, row_count: int) -> _Scores:
    """What ``score()`` gave of so many rows: float64, shape (row_count,). Raises ValueError for any other form."""
    scores = np.asarray(answer, np.float64)
    if scores.shape != (row_count,) or np.isnan(scores).any():
        raise ValueError(f"score() gave an array of shape {scores.shape} for {row_count} rows, or NaN in it")
    return scores


def best_of(scores: _Scores, limit: int, among: npt.NDArray[np.bool_] | None) -> tuple[_Numbers, _Scores]:
    """The best rows by scores of all of them, best first, and their scores; of equals, the first.

    ``among``: bool, one per row; the only rows to be ranked.
    """
    if among is not None:
        scores = np.where(among, scores, -np.inf)
    rows = np.argsort(-scores, kind="stable")[:limit]
    rows = rows[scores[rows] > -np.inf]
    return rows, scores[rows]


def checked_bound(answer: Any) -> float:
    """The bound of the one block of a batch. Raises TypeError or ValueError for anything else than one number."""
    if len(answer) != 1 or np.isnan(bound := float(answer[0])):
        raise ValueError(f"bound() gave {answer!r}, not a number for each block")
    return bound


def checked_top(
    answer: Any, row_count: int, limit: int, among: npt.NDArray[np.bool_] | None
) -> tuple[_Numbers, _Scores]:
    """The best rows of a block with ``row_count`` rows, and their scores: int64 and float64, shape (m,), m <= limit.

    ``among``: bool, one per row; the only rows to be ranked. Raises TypeError or ValueError for any other form.
    """
    rows, scores = (np.asarray(part) for part in answer)
    if rows.ndim != 1 or rows.shape != scores.shape or len(rows) > limit:
        raise ValueError(f"top() gave rows of shape {rows.shape} and scores of shape {scores.shape} for {limit} rows")
    if not len(rows):
        return np.zeros(0, np.int64), np.zeros(0, np.float64)
    if rows.dtype.kind not in "iu" or scores.dtype.kind not in "iuf" or np.isnan(scores).any():
        raise TypeError(f"top() gave rows as {rows.dtype} and scores as {scores.dtype}, or scores that are NaN")
    if rows.min() < 0 or rows.max() >= row_count or len(np.unique(rows)) < len(rows):
        raise ValueError(f"top() gave rows {rows[:10].tolist()}, and the block has {row_count}, each to be given once")
    if among is not None and not among[rows].all():
        raise ValueError("top() gave rows that were not asked for")
    return rows.astype(np.int64), scores.astype(np.float64)


def checked_state(state: object, request: Aggregation) -> pa.Table | Refusal:
    """The state of a block, if it is one of this request, or why it is not."""
    match state:
        case PluginFailure(reason, detail):
            return Refusal(reason, detail)
        case None:
            return Refusal(Reason.BLOCK_NOT_INDEXED, "of some blocks no state is kept")
        case Refusal(reason, detail) if isinstance(reason, Reason) and isinstance(detail, str):
            return state
        case pa.Table() if state.schema.equals(request.schema):
            problem = sketch_damage(request, state)
            return state if problem is None else Refusal(Reason.CORRUPT, f"a state is damaged: {problem}")
    got = state.schema.to_string() if isinstance(state, pa.Table) else type(state).__name__
    return Refusal(Reason.PLUGIN_ERROR, f"state() gave {got}, not {request.schema.to_string()}")
