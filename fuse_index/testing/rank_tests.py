"""Ranks are right: the best rows of each block, best first, and no row above its bound."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.indexes.interface import Probe, Ranks
from fuse_index.predicate import Call
from fuse_index.testing.kind_tests import KindTests
from fuse_index.testing.memory_batch import KindUnderTest, MemoryBatch

_Scores = npt.NDArray[np.float64]
SCORE_TOLERANCE = 1e-5
"""Scores may be kept as 32-bit floats."""


class RankTests(KindTests):
    """The part of ``IndexTests`` for kinds that rank."""

    rankings: ClassVar[Sequence[Call]] = ()
    """What rows are ranked by."""

    def scores(self, ranking: Call, rows: pa.Table) -> _Scores:
        """The oracle: the scores of a table of these rows alone, float64, shape (n,), -inf where one does not match."""
        raise NotImplementedError(f"{type(self).__name__} must say what scores are right")

    # --- tests ------------------------------------------------------------------------------------------------------

    def test_the_best_rows_come_first(self) -> None:
        for trial in self.ranked():
            for k in (1, 3, 1000):
                for unit in range(len(trial.batch)):
                    trial.check(unit, k, None)

    def test_only_rows_that_are_asked_for_are_ranked(self) -> None:
        for trial in self.ranked():
            for unit in range(len(trial.batch)):
                rows = int(trial.batch.row_counts[unit])
                for among in (np.arange(rows) % 2 == 0, np.zeros(rows, np.bool_), np.ones(rows, np.bool_)):
                    trial.check(unit, 2, among)

    def test_no_row_is_above_its_bound(self) -> None:
        for trial in self.ranked():
            bounds = trial.kind.bound(trial.probe, trial.statistics, trial.batch)
            best = [scores.max() for scores in trial.expected]

            assert len(bounds) == len(trial.batch)
            assert all(bound >= score - SCORE_TOLERANCE for bound, score in zip(bounds, best, strict=True))

    def test_statistics_may_be_gathered_in_parts(self) -> None:
        for trial in self.ranked():
            parts = [trial.kind.gather(trial.probe, trial.batch.take([unit])) for unit in range(len(trial.batch))]
            parts = [pickle.loads(pickle.dumps(part)) for part in parts]
            for some in (parts, parts[::-1], [trial.kind.merge_statistics(parts[:2]), *parts[2:]]):
                joined = trial.kind.merge_statistics(some)
                for unit in range(len(trial.batch)):
                    trial.check(unit, 3, None, joined)

    # --- worlds -----------------------------------------------------------------------------------------------------

    def ranked(self) -> Iterator[_RankingCheck]:
        assert self.rankings, f"{type(self).__name__} must give rankings to test"
        for subject in self.subjects():
            blocks = [[self.many_rows(subject, 30, 10 * block + zone) for zone in range(2)] for block in range(3)]
            shelf = MemoryBatch.index_blocks(subject, blocks)
            for ranking in self.rankings:
                yield _RankingCheck(subject, shelf, ranking, self.scores(ranking, shelf.rows))


class _RankingCheck:
    """One ranking of the rows of a few blocks."""

    def __init__(self, subject: KindUnderTest, shelf: MemoryBatch, ranking: Call, scores: _Scores) -> None:
        kind: Any = subject.kind
        assert isinstance(kind, Ranks)
        probe = kind.compile_ranking(ranking, subject.inputs, subject.options, subject.context)
        assert isinstance(probe, Probe), f"{ranking} is refused: {probe}"
        self.kind, self.batch, self.probe = kind, shelf, pickle.loads(pickle.dumps(probe))
        self.statistics = kind.merge_statistics([kind.gather(self.probe, shelf)])
        self.expected = np.split(scores, np.cumsum(shelf.row_counts)[:-1])

    def check(self, unit: int, k: int, among: npt.NDArray[np.bool_] | None, statistics: Any = None) -> None:
        statistics = self.statistics if statistics is None else statistics
        rows, scores = self.kind.top(self.probe, statistics, self.batch, unit, k, among)
        right = self.expected[unit] if among is None else np.where(among, self.expected[unit], -np.inf)
        best = np.sort(right[right > -np.inf])[::-1][:k]

        assert len(rows) == len(scores) == len(best), f"{len(rows)} rows for the best {k} of {len(best)}"
        assert len(set(rows.tolist())) == len(rows), "a row came twice"
        np.testing.assert_allclose(scores, best, rtol=SCORE_TOLERANCE)
        np.testing.assert_allclose(right[rows], scores, rtol=SCORE_TOLERANCE)
