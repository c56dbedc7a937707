"""Small kinds, each for one protocol: what the interface allows is proven by IndexTests, and what is wrong is found."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.plugin import (
    ALL,
    NONE,
    SOME,
    Aggregate,
    Aggregation,
    Ballot,
    Conjunction,
    Function,
    IndexKind,
    Input,
    Probe,
    Reason,
    Refusal,
    Sidecar,
)
from fuse_index.predicate import Call, Column, Compare, In, JsonPath, Literal
from fuse_index.testing import IndexTests

NUMBER = Column(("n",), pa.int64())
OTHER = Column(("m",), pa.int64())
TEXT = Column(("t",), pa.string())
NO = Refusal(Reason.LEAF_UNSUPPORTED, "not this")


def voted(within, meets):
    return np.where(within, np.uint8(ALL), np.where(meets, np.uint8(SOME), np.uint8(NONE)))


class Values(IndexKind):
    """The distinct values of each block, in its summary; of a segment, all of them."""

    name = "values"

    def summary_type(self, inputs, options):
        return pa.list_(inputs[0].type)

    def build(self, rows, zones, options):
        return Sidecar(rows.column(0).unique().drop_null().to_pylist())

    def compile(self, what, inputs, options, context):
        match what:
            case Compare("=", term, Literal(value)) if term == inputs[0].term:
                return Probe({value})
            case In(term, values) if term == inputs[0].term:
                return Probe({value.value for value in values})
            case _:
                return NO

    def probe(self, probe, batch):
        held = [set(values or ()) for values in batch.summaries.to_pylist()]
        return Ballot(voted([values <= probe.what for values in held], [bool(values & probe.what) for values in held]))

    def roll_up(self, summaries):
        return pa.scalar(sorted({value for values in summaries.to_pylist() for value in values or ()}), summaries.type)


class TestValues(IndexTests):
    index = Values
    inputs = (Input(NUMBER, pa.int64()),)
    summary_bytes = 1 << 17


class Rows(Values):
    """The values themselves, as payload: it knows each row."""

    name = "rows"

    def summary_type(self, inputs, options):
        return pa.int64()

    def build(self, rows, zones, options):
        return Sidecar(rows.num_rows, np.array(rows.column(0).fill_null(-7).to_numpy()).tobytes())

    def probe(self, probe, batch):
        bits, rows = np.full(len(batch), SOME, np.uint8), {}
        for unit in range(len(batch)):
            if (payload := batch.payload(unit)) is not None:
                values = np.frombuffer(payload.read([(0, payload.size)])[0], np.int64)
                rows[unit] = np.where(np.isin(values, list(probe.what)), np.uint8(ALL), np.uint8(NONE))
                bits[unit] = np.bitwise_or.reduce(rows[unit])
        return Ballot(bits, rows)

    roll_up = None


class TestRows(IndexTests):
    index = Rows
    inputs = (Input(NUMBER, pa.int64()),)


class Corners(IndexKind):
    """A rectangle around two numbers; the functions on them imply it."""

    name = "corners"

    def summary_type(self, inputs, options):
        return pa.list_(pa.int64())

    def accepts(self, inputs, options):
        return (
            None
            if [given.type for given in inputs] == [pa.int64()] * 2
            else Refusal(Reason.TYPE_MISMATCH, "needs two bigints")
        )

    def build(self, rows, zones, options):
        bounds = [pc.min_max(column).as_py() for column in rows.columns]
        return Sidecar([bound[end] for bound in bounds for end in ("min", "max")])

    def compile(self, what, inputs, options, context):
        match what:
            case Conjunction():
                return Probe([what.domain(given.term) for given in inputs])
            case Call("near", (x, y, *_)) if (x, y) == tuple(given.term for given in inputs):
                return Probe(what)
            case _:
                return NO

    def probe(self, probe, batch):
        return Ballot(np.array([self._judge(probe.what, corners) for corners in batch.summaries.to_pylist()], np.uint8))

    def _judge(self, what, corners):
        if corners is None:
            return SOME
        if None in corners:
            return NONE  # no row has both
        low_x, high_x, low_y, high_y = corners
        if isinstance(what, Call):
            x, y = (literal.value for literal in what.arguments[2:])
            return NONE if x + 1 < low_x or x - 1 > high_x or y + 1 < low_y or y - 1 > high_y else SOME
        meets = what[0].overlaps(low_x, high_x) and what[1].overlaps(low_y, high_y)
        within = what[0].covers(low_x, high_x) and what[1].covers(low_y, high_y)
        return ALL if within else SOME if meets else NONE


def near(*columns):
    """Both numbers within one of where they should be; NULL where either is."""
    count = len(columns[0])
    rows = zip(
        *[[one.as_py()] * count if isinstance(one, pa.Scalar) else one.to_pylist() for one in columns], strict=True
    )
    found = [None if x is None or y is None else abs(x - to_x) <= 1 and abs(y - to_y) <= 1 for x, y, to_x, to_y in rows]
    return pa.array(found, pa.bool_())


class TestCorners(IndexTests):
    index = Corners
    inputs = (Input(NUMBER, pa.int64()), Input(OTHER, pa.int64()))
    functions = {"near": Function("near", (pa.int64(),) * 4, near)}  # noqa: RUF012

    def rows(self, column):
        return (-1, 0, 3) if column == NUMBER else (0, 2)

    def literals(self, term):
        return (-2, 0, 2, 3)

    def leaves(self, given, literals):
        for x in literals:
            for y in literals:
                yield Call("near", (NUMBER, OTHER, Literal(x, pa.int64()), Literal(y, pa.int64())))


class Paths(Values):
    """The values at one path of JSON documents: it may be NULL where the document is not."""

    name = "paths"

    def compile(self, what, inputs, options, context):
        match what:
            case Compare("=", JsonPath(term, "$.a"), Literal(value)) if term == inputs[0].term:
                return Probe({value})
            case _:
                return NO

    def build(self, rows, zones, options):
        found = pc.extract_regex(rows.column(0), r'"a":"(?P<a>[^"]*)"')
        return Sidecar(pc.struct_field(found, "a").unique().drop_null().to_pylist())


class TestPaths(IndexTests):
    index = Paths
    inputs = (Input(TEXT, pa.string()),)

    def rows(self, column):
        return ('{"a":"x"}', '{"a":"y"}', '{"b":"x"}', "not json")

    def leaves(self, given, literals):
        for value in ("x", "y", "z"):
            yield Compare("=", JsonPath(given.term, "$.a"), Literal(value, pa.string()))


class Closest(IndexKind):
    """Ranks rows by how close they are to a number, in units of the whole table's spread."""

    name = "closest"

    def summary_type(self, inputs, options):
        return pa.struct([("low", pa.int64()), ("high", pa.int64())])

    def build(self, rows, zones, options):
        bounds = pc.min_max(rows.column(0)).as_py()
        values = np.array([np.nan if value is None else value for value in rows.column(0).to_pylist()], np.float64)
        return Sidecar({"low": bounds["min"], "high": bounds["max"]}, values.tobytes())

    searches = "closest"

    def compile_ranking(self, what, inputs, options, context):
        return Probe(what.arguments[1].value) if what.name == "closest" else NO

    def gather(self, probe, batch):
        ends = [
            end
            for summary in batch.summaries.to_pylist()
            for end in (summary["low"], summary["high"])
            if end is not None
        ]
        return (min(ends), max(ends)) if ends else None

    def merge_statistics(self, parts):
        known = [part for part in parts if part is not None]
        return (min(low for low, _ in known), max(high for _, high in known)) if known else None

    def bound(self, probe, statistics, batch):
        bounds = batch.summaries.to_pylist()
        nearest = [
            np.nan if one["low"] is None else float(np.clip(probe.what, one["low"], one["high"])) for one in bounds
        ]
        return score(np.array(nearest), probe.what, statistics)

    def top(self, probe, statistics, batch, unit, k, among):
        payload = batch.payload(unit)
        scores = score(np.frombuffer(payload.read([(0, payload.size)])[0]), probe.what, statistics)
        if among is not None:
            scores = np.where(among, scores, -np.inf)
        best = np.argsort(-scores, kind="stable")[:k]
        best = best[scores[best] > -np.inf]
        return best, scores[best]


def score(values, to, statistics):
    low, high = statistics or (0, 0)
    return np.where(np.isnan(values), -np.inf, 1 / (1 + np.abs(values - to) / (1 + high - low)))


class RankingOfNumbers(IndexTests):
    inputs = (Input(NUMBER, pa.int64()),)
    rankings = (
        Call("closest", (NUMBER, Literal(0, pa.int64()))),
        Call("closest", (NUMBER, Literal(10**7, pa.int64()))),
    )

    def scores(self, ranking, rows):
        values = rows.column("n").cast(pa.float64()).fill_null(np.nan).to_numpy()
        bounds = pc.min_max(rows.column("n")).as_py()
        return score(values, ranking.arguments[1].value, (bounds["min"], bounds["max"]))


class TestClosest(RankingOfNumbers):
    index = Closest


class Sums(IndexKind):
    """Keeps the sum and the count of each block, in its summary."""

    name = "sums"

    def summary_type(self, inputs, options):
        return pa.struct([("sum", pa.int64()), ("count", pa.int64())])

    def build(self, rows, zones, options):
        return Sidecar({"sum": pc.sum(rows.column(0)).as_py(), "count": pc.count(rows.column(0)).as_py()})

    def match(self, request, inputs, options, context):
        known = all(part.function in ("sum", "count") and part.argument == inputs[0].term for part in request.parts)
        return Probe(request) if known and not request.groups else NO

    def state(self, probe, batch, unit):
        kept = batch.summaries[unit].as_py()
        return pa.table([[kept[part.function]] for part in probe.what.parts], schema=probe.what.schema)


def total(function):
    return Aggregation((), (Aggregate(function, NUMBER),))


class SumsOfNumbers(IndexTests):
    inputs = (Input(NUMBER, pa.int64()),)
    requests = (total("sum"), total("count"))
    refused = (total("max"), Aggregation((NUMBER,), total("sum").aggregates))

    def rows(self, column):
        return (-5, 0, 7)


class TestSums(SumsOfNumbers):
    index = Sums


def test_only_protocols_that_a_kind_has_are_tested():
    collected = {name for name in dir(TestSums) if name.startswith("test_") and getattr(TestSums, name) is not None}

    assert "test_stored_states_and_rows_give_one_answer" in collected
    assert "test_options_are_frozen_and_json" in collected
    assert "test_no_vote_is_wrong_in_a_small_world" not in collected
    assert "test_the_best_rows_come_first" not in collected
