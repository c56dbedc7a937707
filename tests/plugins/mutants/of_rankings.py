"""Mutants of kinds that rank, answer aggregates, and judge two columns at once."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from fuse_index.plugin import ALL, Ballot, Probe, Sidecar
from fuse_index.predicate import Call
from tests.plugins.mutants.sound import mutants
from tests.plugins.test_small_kinds import (
    NO,
    Closest,
    Corners,
    Paths,
    RankingOfNumbers,
    Sums,
    SumsOfNumbers,
    TestCorners,
    TestPaths,
    total,
)

# --- rankings -------------------------------------------------------------------------------------------------------


class FarthestFirst(Closest):
    def top(self, *asked):
        rows, scores = super().top(*asked)
        return rows[::-1], scores[::-1]


class RanksAllRows(Closest):
    def top(self, probe, statistics, batch, unit, k, among):
        return super().top(probe, statistics, batch, unit, k, None)


class AmongShort(Closest):
    """Looks among the best ten only for rows that are asked for."""

    def top(self, probe, statistics, batch, unit, k, among):
        rows, scores = super().top(probe, statistics, batch, unit, max(k, 10), None)
        wanted = np.ones(len(rows), bool) if among is None else among[rows]
        return rows[wanted][:k], scores[wanted][:k]


class Approximate(Closest):
    """Looks at every other row of blocks of many: a graph that is a guess where there is much."""

    def top(self, probe, statistics, batch, unit, k, among):
        many = batch.row_counts[unit] > 1000
        known = np.arange(batch.row_counts[unit]) % 2 == 0 if many else np.ones(batch.row_counts[unit], bool)
        return super().top(probe, statistics, batch, unit, k, known if among is None else known & among)


class OneTooFew(Closest):
    def top(self, probe, statistics, batch, unit, k, among):
        return super().top(probe, statistics, batch, unit, max(k - 1, 1), among)


class ScoresOfOthers(Closest):
    """Gives the scores of the block's first rows."""

    def top(self, probe, statistics, batch, unit, k, among):
        rows, scores = super().top(probe, statistics, batch, unit, k, among)
        return rows, scores * 0.9


class NullFirst(Closest):
    """NULL is as close as can be."""

    def top(self, probe, statistics, batch, unit, k, among):
        rows, scores = super().top(probe, statistics, batch, unit, k, among)
        return np.append(np.zeros(1, np.int64), rows)[:k], np.append(np.ones(1), scores)[:k]


class SameRowTwice(Closest):
    def top(self, probe, statistics, batch, unit, k, among):
        rows, scores = super().top(probe, statistics, batch, unit, k, among)
        return np.where(np.arange(len(rows)) == 1, rows[:1], rows), scores


class BoundsByTheMiddle(Closest):
    def bound(self, probe, statistics, batch):
        ends = [(one["low"] or 0, one["high"] or 0) for one in batch.summaries.to_pylist()]
        return score_of(ends, probe, statistics)


def score_of(ends, probe, statistics):
    low, high = statistics or (0, 0)
    return np.array([1 / (1 + abs((one + other) / 2 - probe.what) / (1 + high - low)) for one, other in ends])


class BoundTenthLow(Closest):
    def bound(self, probe, statistics, batch):
        return super().bound(probe, statistics, batch) * 0.9


class BoundNullFirst(Closest):
    """The bound of a block with a NULL is as low as NULL's."""

    def build(self, rows, zones, options):
        made = super().build(rows, zones, options)
        return Sidecar({**made.summary, "low": None}, made.payload) if rows.column(0).null_count else made

    def gather(self, probe, batch):
        ends = [one["high"] for one in batch.summaries.to_pylist() if one["high"] is not None]
        return (min(ends), max(ends)) if ends else None


class OneBound(Closest):
    def bound(self, probe, statistics, batch):
        return super().bound(probe, statistics, batch)[:1]


class MergesTheFirst(Closest):
    def merge_statistics(self, parts):
        return parts[0]


class MergesInOrder(Closest):
    """Takes the first part's least and the last part's greatest."""

    def merge_statistics(self, parts):
        known = [part for part in parts if part is not None]
        return (known[0][0], known[-1][1]) if known else None


class RefusesToRank(Closest):
    def compile_ranking(self, what, inputs, options, context):
        return NO


# --- answers --------------------------------------------------------------------------------------------------------


class CountsNulls(Sums):
    def build(self, rows, zones, options):
        return Sidecar({**super().build(rows, zones, options).summary, "count": rows.num_rows})


class ForgetsOne(Sums):
    def build(self, rows, zones, options):
        return super().build(rows.slice(1), zones, options)


class ClaimsAll(Sums):
    def match(self, request, inputs, options, context):
        return Probe(request)


class StarIsCount(Sums):
    """Takes ``count(*)`` for the count of its column."""

    def match(self, request, inputs, options, context):
        star = all(part.function == "count" for part in request.parts)
        return Probe(request) if star and not request.groups else super().match(request, inputs, options, context)


class MinIsSum(Sums):
    """Answers ``min`` by what it keeps of ``sum``."""

    def match(self, request, inputs, options, context):
        known = all(
            part.argument == inputs[0].term and part.function in ("sum", "count", "min") for part in request.parts
        )
        return Probe(request) if known and not request.groups else NO

    def state(self, probe, batch, unit):
        kept = batch.summaries[unit].as_py()
        return pa.table([[kept.get(part.function, kept["sum"])] for part in probe.what.parts], schema=probe.what.schema)


class SumOfNothingIsZero(Sums):
    def build(self, rows, zones, options):
        made = super().build(rows, zones, options)
        return Sidecar({**made.summary, "sum": made.summary["sum"] or 0})


class WrongNames(Sums):
    def state(self, probe, batch, unit):
        return super().state(probe, batch, unit).rename_columns(["x"] * len(probe.what.schema))


class NoState(Sums):
    def state(self, probe, batch, unit):
        return None


class IgnoresGroups(Sums):
    """Gives the whole sum for each request, grouped or not."""

    def match(self, request, inputs, options, context):
        known = all(part.function in ("sum", "count") and part.argument == inputs[0].term for part in request.parts)
        return Probe(request) if known else NO

    def state(self, probe, batch, unit):
        kept = batch.summaries[unit].as_py()
        groups = [[0]] * len(probe.what.groups)
        return pa.table(groups + [[kept[part.function]] for part in probe.what.parts], schema=probe.what.schema)


@dataclass(frozen=True)
class Where:
    where: str = "n > 0"


class SumsWhere(Sums):
    """Sums of the rows on which a condition is TRUE."""

    Options = Where

    def condition(self, options):
        return options.where


class CountsRowsOfTheBlock(SumsWhere):
    """Counts the rows that a block has, and not those that it was shown."""

    def match(self, request, inputs, options, context):
        return Probe(request) if [part.function for part in request.parts] == ["count"] and not request.groups else NO

    def state(self, probe, batch, unit):
        return pa.table([[int(batch.row_counts[unit])]], schema=probe.what.schema)


# --- two columns, paths ---------------------------------------------------------------------------------------------


class KnowsThePath(Paths):
    """Claims to know where the path is NULL."""

    def compile(self, what, inputs, options, context):
        made = super().compile(what, inputs, options, context)
        return Probe(made.what, judges_null=True) if isinstance(made, Probe) else made


class EitherSide(Corners):
    def _judge(self, what, corners):
        found = super()._judge(what, corners)
        if corners is None or None in corners or isinstance(what, Call):
            return found
        return ALL if what[0].covers(*corners[:2]) or what[1].covers(*corners[2:]) else found


class SwapsArguments(Corners):
    """Does not look which argument is which."""

    def compile(self, what, inputs, options, context):
        if isinstance(what, Call) and {*what.arguments[:2]} == {given.term for given in inputs}:
            return Probe(what)
        return super().compile(what, inputs, options, context)


class SwapsColumns(Corners):
    def build(self, rows, zones, options):
        return super().build(rows.select([1, 0]).rename_columns(["0", "1"]), zones, options)


class RadiusTooSmall(Corners):
    """Takes what is near for what is equal."""

    def _judge(self, what, corners):
        if isinstance(what, Call) and corners and None not in corners:
            x, y = (literal.value for literal in what.arguments[2:])
            return 3 if corners[0] <= x <= corners[1] and corners[2] <= y <= corners[3] else 2
        return super()._judge(what, corners)


class OfTheFirstZone(Corners):
    def build(self, rows, zones, options):
        return super().build(rows.slice(0, int(zones[1])), zones, options)

    def probe(self, probe, batch):
        return Ballot(super().probe(probe, batch).bits)


COUNT = {"requests": (total("count"),), "refused": ()}
MUTANTS = [
    *mutants(
        RankingOfNumbers,
        (FarthestFirst, "best", "came at place"),
        (OneTooFew, "best", "top() gave"),
        (ScoresOfOthers, "best", "came at place"),
        (NullFirst, "best", ""),
        (SameRowTwice, "best", "a row came twice"),
        (Approximate, "best", "came at place"),
        (RanksAllRows, "among", ""),
        (AmongShort, "among", "top() gave"),
        (BoundsByTheMiddle, "bound", "in which a row scores"),
        (BoundTenthLow, "bound", "in which a row scores"),
        (BoundNullFirst, "bound", "in which a row scores"),
        (OneBound, "bound", "bounds for"),
        (MergesTheFirst, "parts", ""),
        (MergesInOrder, "parts", ""),
        (RefusesToRank, "best", "is refused"),
    ),
    *mutants(
        SumsOfNumbers,
        (CountsNulls, "answer", "and of their rows"),
        (ForgetsOne, "answer", "and of their rows"),
        (ClaimsAll, "not answered", "answers"),
        (StarIsCount, "each function", "and of their rows"),
        (MinIsSum, "each function", "and of their rows"),
        (SumOfNothingIsZero, "answer", "and of their rows"),
        (WrongNames, "answer", "state() gave"),
        (NoState, "answer", "state() gave NoneType"),
        (IgnoresGroups, "each function", "and of their rows"),
        (CountsRowsOfTheBlock, "answer", "and of their rows", COUNT),
    ),
    *mutants(TestPaths, (KnowsThePath, "small")),
    *mutants(
        TestCorners,
        (EitherSide, "small"),
        (SwapsColumns, "small"),
        (RadiusTooSmall, "small"),
        (OfTheFirstZone, "small"),
        (SwapsArguments, "else"),
    ),
]
RIGHT = [(SumsWhere, type("SumsOfSome", (SumsOfNumbers,), {"index": SumsWhere}))]
