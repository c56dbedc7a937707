"""What a kind that ranks may do beside: score rows without an index, order by a function, and miss some of the best."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.expressions.evaluate import evaluate_term
from fuse_index.indexes.interface import Approximates, Probe, Refusal, Scores
from fuse_index.testing.rank_tests import SCORE_TOLERANCE, RankingCheck, RankTests
from fuse_index.testing.worlds.memory_batch import MemoryBatch

__tracebackhide__ = True  # authors look for nothing here: pytest shows frames of theirs

_BEST = 100
"""So many of the best rows are looked for."""


class ScoreTests(RankTests):
    """The part of ``IndexTests`` for kinds that rank, and implement ``Scores`` or ``Approximates``, or say ``best``."""

    approximated_rows: ClassVar[int] = 12_000
    """Rows of the block in which an approximate ranking looks for the best."""
    recalls: ClassVar[tuple[float, ...]] = (0.5, 0.9, 0.99)
    """What is asked of it."""

    def test_rows_score_without_an_index_as_they_do_with_one(self) -> None:
        for trial in self.ranked():
            if not isinstance(trial.kind, Scores):
                return
            rows = trial.batch.input_rows
            whole = trial.kind.score(trial.probe, rows)
            self._check_scores(trial, whole, np.concatenate(trial.expected), "score() of all rows")
            turned = trial.kind.score(trial.probe, rows.take(pa.array(np.arange(rows.num_rows)[::-1])))
            self._check_scores(trial, turned, np.concatenate(trial.expected)[::-1], "score() of the rows backwards")
            self._check_scores(trial, trial.kind.score(trial.probe, rows.slice(0, 0)), np.zeros(0), "score() of no row")

    def test_scores_are_the_values_of_the_function(self) -> None:
        for trial in self.ranked():
            best = getattr(trial.kind, "best", "")
            if not best:
                return
            assert best in ("least", "greatest"), f"{trial.about}: best is 'least' or 'greatest', not {best!r}"
            assert trial.kind.searches in self.functions, (
                f"{trial.about}: rows are ordered by {trial.kind.searches}(): give the suite that function"
            )
            values = evaluate_term(trial.ranking, trial.batch.rows, functions=self.functions)
            known = values.to_numpy(zero_copy_only=False).astype(np.float64)
            scores = np.where(np.isnan(known), -np.inf, -known if best == "least" else known)
            self._check_scores(trial, scores, np.concatenate(trial.expected), f"{best} of the function")

    def test_an_approximate_ranking_finds_what_it_says(self) -> None:
        for subject in self.subjects():
            if not isinstance(subject.kind, Approximates):
                return
            block = [self.many_rows(subject, self.approximated_rows, 11)]
            shelf = MemoryBatch.index_blocks(subject, [block])
            for recall in self.recalls:
                checks = [
                    RankingCheck(subject, shelf, ranking, self.scores(ranking, shelf.rows)) for ranking in self.rankings
                ]
                asked = [check for check in checks if self._approximate(check, recall)]
                half = np.arange(self.approximated_rows) % 2 == 0
                for among in (None, half):
                    shares = [self._share_found(check, among, recall) for check in asked]
                    assert not shares or np.mean(shares) >= recall, (
                        f"{subject}: of the best {_BEST} rows {np.mean(shares):.3g} were found over {len(shares)} "
                        f"rankings{'' if among is None else ' among every other row'}, and {recall} is enough"
                    )

    def _approximate(self, check: RankingCheck, recall: float) -> bool:
        """Let the check rank with that recall; False if the kind refuses."""
        subject = check.subject
        kind: Any = subject.kind
        probe = kind.compile_approximation(check.ranking, subject.inputs, subject.options, subject.context, recall)
        if isinstance(probe, Refusal):
            return False
        assert isinstance(probe, Probe), f"{check.about}: compile_approximation() gave {type(probe).__name__}"
        assert recall <= probe.recall <= 1, (
            f"{check.about}: compile_approximation() was asked for a recall of {recall}, and says {probe.recall}"
        )
        check.probe = probe
        return True

    def _share_found(self, check: RankingCheck, among: npt.NDArray[np.bool_] | None, recall: float) -> float:
        rows, scores = check.kind.top(check.probe, check.statistics, check.batch, 0, _BEST, among)
        right = check.expected[0] if among is None else np.where(among, check.expected[0], -np.inf)
        best = np.sort(right[right > -np.inf])[::-1][:_BEST]
        about = f"{check.about}, approximate with a recall of {recall}"
        assert len(set(rows.tolist())) == len(rows) <= _BEST, f"{about}: a row came twice, or too many"
        for row, score in zip(rows.tolist(), scores.tolist(), strict=True):
            assert right[row] > -np.inf, f"{about}: row {row} came, which does not match or was not asked for"
            assert np.isclose(right[row], score, SCORE_TOLERANCE), (
                f"{about}: row {row} came with a score of {score}, and it is {right[row]}"
            )
        worst = best[-1] if len(best) else -np.inf
        found = sum(right[row] >= worst - SCORE_TOLERANCE * abs(worst) for row in rows.tolist())
        return min(found / len(best), 1.0) if len(best) else 1.0

    @staticmethod
    def _check_scores(trial: RankingCheck, found: Any, expected: npt.NDArray[np.float64], what: str) -> None:
        found = np.asarray(found)
        assert found.shape == expected.shape, f"{trial.about}: {what} gave shape {found.shape}, not {expected.shape}"
        wrong = np.flatnonzero(~np.isclose(found, expected, SCORE_TOLERANCE))
        for row in wrong[:1].tolist():
            raise AssertionError(f"{trial.about}: {what} gave {found[row]} for row {row}, which scores {expected[row]}")
