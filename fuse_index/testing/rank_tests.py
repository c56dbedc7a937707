"""Ranks are right: the best rows of each block, best first, and no row above its bound."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.expressions.to_sql import term_sql
from fuse_index.indexes.interface import Probe, Ranks
from fuse_index.predicate import Call
from fuse_index.testing.kind_tests import KindTests
from fuse_index.testing.worlds.memory_batch import KindUnderTest, MemoryBatch

__tracebackhide__ = True  # authors look for nothing here: pytest shows frames of theirs

_Scores = npt.NDArray[np.float64]
SCORE_TOLERANCE = 1e-5
"""Scores may be kept as 32-bit floats."""
RANKED_ZONES = ((30, 31), (30, 30), (1,), (1,), (1500, 500))
"""Rows of the zones of blocks: few, one alone, whose bound is to be its score, and so many that a graph is a guess."""


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
            for k in (1, 3, 10, 10_000):
                for unit in range(len(trial.batch)):
                    trial.check(unit, k, None)

    def test_only_rows_that_are_asked_for_are_ranked(self) -> None:
        for trial in self.ranked():
            for unit in range(len(trial.batch)):
                number = np.arange(int(trial.batch.row_counts[unit]))
                last, worst = number >= len(number) - 3, np.isin(number, np.argsort(trial.expected[unit])[:3])
                for among in (number % 2 == 0, number < 0, number >= 0, last, worst):
                    trial.check(unit, 3, among)

    def test_no_row_is_above_its_bound(self) -> None:
        for trial in self.ranked():
            bounds = trial.kind.bound(trial.probe, trial.statistics, trial.batch)
            best = [scores.max() for scores in trial.expected]

            assert len(bounds) == len(trial.batch), f"{trial.about}: {len(bounds)} bounds for {len(trial.batch)} blocks"
            for block, (bound, score) in enumerate(zip(bounds, best, strict=True)):
                assert bound >= score - SCORE_TOLERANCE * max(1.0, abs(score)), (
                    f"{trial.about}: bound() gave {bound} for block {block}, in which a row scores {score}"
                )

    def test_statistics_may_be_gathered_in_parts(self) -> None:
        for trial in self.ranked():
            parts = [trial.kind.gather(trial.probe, trial.batch.take([unit])) for unit in range(len(trial.batch))]
            parts = [pickle.loads(pickle.dumps(part)) for part in parts]
            for some in (parts, parts[::-1], [trial.kind.merge_statistics(parts[:2]), *parts[2:]]):
                joined = trial.kind.merge_statistics(some)
                for unit in range(len(trial.batch)):
                    trial.check(unit, 3, None, joined)

    # --- worlds -----------------------------------------------------------------------------------------------------

    def ranked(self) -> Iterator[RankingCheck]:
        assert self.rankings, f"{type(self).__name__} must give rankings to test"
        for subject in self.subjects():
            blocks = [
                [self.many_rows(subject, count, 10 * block + zone) for zone, count in enumerate(counts)]
                for block, counts in enumerate(RANKED_ZONES)
            ]
            null = self.table(subject, [(None,) * len(self.columns(subject))])
            blocks += [[null], [pa.concat_tables([null, self.many_rows(subject, 5, 7)])]]
            shelf = MemoryBatch.index_blocks(subject, blocks)
            for ranking in self.rankings:
                yield RankingCheck(subject, shelf, ranking, self.scores(ranking, shelf.rows))


class RankingCheck:
    """One ranking of the rows of a few blocks."""

    def __init__(self, subject: KindUnderTest, shelf: MemoryBatch, ranking: Call, scores: _Scores) -> None:
        kind: Any = subject.kind
        assert isinstance(kind, Ranks)
        probe = kind.compile_ranking(ranking, subject.inputs, subject.options, subject.context)
        assert isinstance(probe, Probe), f"{subject}: {term_sql(ranking)} is refused: {probe}"
        assert probe.recall == 1.0, (
            f"{subject}: {term_sql(ranking)}: compile_ranking() is exact, and its probe says a recall of "
            f"{probe.recall}: say so by compile_approximation()"
        )
        self.about = f"{subject}: {term_sql(ranking)}"
        self.subject, self.ranking = subject, ranking
        self.kind, self.batch, self.probe = kind, shelf, pickle.loads(pickle.dumps(probe))
        self.statistics = kind.merge_statistics([kind.gather(self.probe, shelf)])
        self.expected = np.split(scores, np.cumsum(shelf.row_counts)[:-1])

    def check(self, unit: int, k: int, among: npt.NDArray[np.bool_] | None, statistics: Any = None) -> None:
        """Judge the best k rows of a unit. ``among``: bool, shape (rows,), the only rows to be ranked; None: all."""
        statistics = self.statistics if statistics is None else statistics
        rows, scores = self.kind.top(self.probe, statistics, self.batch, unit, k, among)
        right = self.expected[unit] if among is None else np.where(among, self.expected[unit], -np.inf)
        best = np.sort(right[right > -np.inf])[::-1][:k]

        where = f"{self.about}, the best {k} of block {unit}" + ("" if among is None else f" among {among.sum()} rows")
        assert len(rows) == len(scores) == len(best), f"{where}: top() gave {len(rows)} rows, and there are {len(best)}"
        assert len(set(rows.tolist())) == len(rows), f"{where}: a row came twice"
        for place, (row, score) in enumerate(zip(rows.tolist(), scores.tolist(), strict=True)):
            assert np.isclose([right[row], best[place]], score, SCORE_TOLERANCE).all(), (
                f"{where}: row {row} came at place {place} with {score}; its score is {right[row]}, and the best there "
                f"is {best[place]}"
            )
