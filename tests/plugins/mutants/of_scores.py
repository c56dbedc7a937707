"""Mutants of kinds that rank by a function, score rows without an index, and may miss some of the best."""

from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.plugin import Function, IndexKind, Input, Probe, Sidecar
from fuse_index.predicate import Call, Literal
from fuse_index.testing import FunctionTests, IndexTests
from tests.plugins.mutants.sound import NUMBER, mutants


def gap(one, other):
    return pc.abs(pc.subtract(pc.cast(one, pa.float64(), safe=False), pc.cast(other, pa.float64(), safe=False)))


GAP = Function("gap", (pa.int64(), pa.int64()), gap, returns=pa.float64())


class Near(IndexKind):
    """Ranks by how far a number is from another, exactly, or by looking at a share of the rows."""

    name = "near"
    searches = "gap"
    best = "least"
    spare = 0.08

    def build(self, rows, zones, options):
        return Sidecar(None, numbers(rows.column(0)).tobytes())

    def compile_ranking(self, what, inputs, options, context):
        return Probe((what.arguments[1].value, 1.0))

    def compile_approximation(self, what, inputs, options, context, recall):
        return Probe((what.arguments[1].value, min(1.0, recall + self.spare)), recall=recall)

    def gather(self, probe, batch):
        return None

    def merge_statistics(self, parts):
        return None

    def bound(self, probe, statistics, batch):
        return np.zeros(len(batch))

    def top(self, probe, statistics, batch, unit, k, among):
        payload, (to, share) = batch.payload(unit), probe.what
        scores = self.scores(np.frombuffer(payload.read([(0, payload.size)])[0]), to)
        known = np.ones(len(scores), bool) if among is None else among.copy()
        if len(scores) > 1000:
            known &= np.arange(len(scores)) % 1000 < share * 1000
        scores = np.where(known, scores, -np.inf)
        best = np.argsort(-scores, kind="stable")[:k]
        best = best[scores[best] > -np.inf]
        return best, scores[best]

    def score(self, probe, rows):
        return self.scores(numbers(rows.column(0)), probe.what[0])

    def scores(self, values, to):
        return np.where(np.isnan(values), -np.inf, -np.abs(values - to))


def numbers(column):
    return column.cast(pa.float64()).fill_null(np.nan).to_numpy()


class NearNumbers(IndexTests):
    inputs = (Input(NUMBER, pa.int64()),)
    functions: ClassVar = {"gap": GAP}
    rankings = tuple(Call("gap", (NUMBER, Literal(to, pa.int64())), pa.float64()) for to in (0, 10**7))

    def scores(self, ranking, rows):
        values = numbers(rows.column("n"))
        return np.where(np.isnan(values), -np.inf, -np.abs(values - ranking.arguments[1].value))


class TestNear(NearNumbers):
    index = Near


class TestGap(FunctionTests):
    function = GAP


# --- scores of rows -----------------------------------------------------------------------------------------------


class ScoresNull(Near):
    def score(self, probe, rows):
        return np.nan_to_num(super().score(probe, rows), neginf=0.0)


class ScoresTurned(Near):
    def score(self, probe, rows):
        return -super().score(probe, rows)


class ScoresAllButOne(Near):
    def score(self, probe, rows):
        return super().score(probe, rows)[1:]


class ScoresByPlace(Near):
    """Sorts what it is given: right for rows that come in order."""

    def score(self, probe, rows):
        return np.sort(super().score(probe, rows))


class ScoresAmongOthers(Near):
    """Scores by the greatest gap around."""

    def score(self, probe, rows):
        scores = super().score(probe, rows)
        return scores / np.abs(scores[np.isfinite(scores)]).max(initial=1)


class GreatestFirst(Near):
    best = "greatest"


class SquaredGap(Near):
    """Ranks by the square, which is the same order and another score."""


class SquaredNumbers(NearNumbers):
    index = SquaredGap

    def scores(self, ranking, rows):
        return -np.square(super().scores(ranking, rows))


class OfNoFunction(Near):
    searches = "distance"


# --- approximations -----------------------------------------------------------------------------------------------


class SaysLessAsExact(Near):
    def compile_ranking(self, what, inputs, options, context):
        return Probe((what.arguments[1].value, 0.9), recall=0.9)


class GuessesAsExact(Near):
    def compile_ranking(self, what, inputs, options, context):
        return Probe((what.arguments[1].value, 0.9))


class FindsHalf(Near):
    def compile_approximation(self, what, inputs, options, context, recall):
        return Probe((what.arguments[1].value, recall / 2), recall=recall)


class SaysLess(Near):
    def compile_approximation(self, what, inputs, options, context, recall):
        return Probe((what.arguments[1].value, recall), recall=recall / 2)


class ApproximatesAll(Near):
    """Forgets which rows are asked for, where it may guess."""

    def top(self, probe, statistics, batch, unit, k, among):
        return super().top(probe, statistics, batch, unit, k, None if probe.recall < 1 else among)


class ApproximatesAmongFew(Near):
    """Looks for rows that are asked for among the best k alone, where it may guess."""

    def top(self, probe, statistics, batch, unit, k, among):
        if probe.recall == 1 or among is None:
            return super().top(probe, statistics, batch, unit, k, among)
        rows, scores = super().top(probe, statistics, batch, unit, k, None)
        return rows[among[rows]], scores[among[rows]]


class RoughScores(Near):
    def top(self, probe, statistics, batch, unit, k, among):
        rows, scores = super().top(probe, statistics, batch, unit, k, among)
        return rows, scores * (0.99 if probe.recall < 1 else 1)


class GuessedTwice(Near):
    def top(self, probe, statistics, batch, unit, k, among):
        rows, scores = super().top(probe, statistics, batch, unit, k, among)
        return (rows, scores) if probe.recall == 1 else (np.repeat(rows, 2)[:k], np.repeat(scores, 2)[:k])


MUTANTS = [
    *mutants(
        NearNumbers,
        (ScoresNull, "scores", "score() of all rows"),
        (ScoresTurned, "scores", "score() of all rows"),
        (ScoresAllButOne, "scores", "gave shape"),
        (ScoresByPlace, "scores", "score() of"),
        (ScoresAmongOthers, "scores", "score() of all rows"),
        (GreatestFirst, "values", "greatest of the function"),
        (OfNoFunction, "values", "give the suite that function"),
        (SaysLessAsExact, "best", "compile_ranking() is exact"),
        (GuessesAsExact, "best", "came at place"),
        (FindsHalf, "recall", "were found over"),
        (SaysLess, "recall", "was asked for a recall of"),
        (ApproximatesAll, "recall", "was not asked for"),
        (ApproximatesAmongFew, "recall", "among every other row"),
        (RoughScores, "recall", "came with a score of"),
        (GuessedTwice, "recall", "a row came twice"),
    ),
    *mutants(SquaredNumbers, (SquaredGap, "values", "least of the function")),
]
RIGHT = [(Near, NearNumbers), (GAP, TestGap)]
