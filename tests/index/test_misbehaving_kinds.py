"""A kind may give anything for anything: a query gives its rows, and says what was wrong; a definition says so at once.

Each method that the engine calls is answered in every wrong form of a list.
"""

import itertools
from collections.abc import Mapping
from typing import ClassVar
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.indexes.registry import Host, PluginWarning
from fuse_index.plugin import (
    NONE,
    Ballot,
    Function,
    IndexKind,
    Pack,
    Probe,
    Reason,
    Refusal,
    Sidecar,
    hookimpl,
)
from fuse_index.predicate import Column, Compare, In, Literal

ROWS = pa.table({"n": range(6)})
N = Column(("n",), pa.int64())


class _Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("not even this")


class _Beyond(BaseException):
    """No Exception, and nobody's to catch but the engine's."""


def raising(error):
    def raise_it(*_):
        raise error

    return raise_it


RAISED = {
    "raises AttributeError": raising(AttributeError("x")),
    "raises an error that cannot be shown": raising(_Unspeakable()),
    "raises SystemExit": raising(SystemExit("leaving")),
    "raises GeneratorExit": raising(GeneratorExit()),
    "raises a BaseException": raising(_Beyond()),
    "raises StopIteration": raising(StopIteration()),
}
NONSENSE = {
    "gives None": lambda *_: None,
    "gives text": lambda *_: "yes",
    "gives a generator": lambda *_: (one for one in (1, 2)),
    "gives an object": lambda *_: object(),
    "gives a class": lambda *_: Ballot,
    "gives a huge array": lambda *_: np.zeros(1 << 22, np.uint8),
}


class _BadRows(Mapping):
    def __len__(self):
        return 1

    def __iter__(self):
        raise KeyError("rows")

    def __getitem__(self, unit):
        raise KeyError(unit)


class _BadBallot(Ballot):
    def __and__(self, other):
        raise RuntimeError("never")

    intersect = take = __and__


def none_of(batch, **more):
    return np.full(len(batch), NONE, np.uint8)


BALLOTS = {
    **RAISED,
    **NONSENSE,
    "bits are a list": lambda batch: Ballot([NONE] * len(batch)),
    "bits are None": lambda batch: Ballot(None),
    "bits are int64": lambda batch: Ballot(none_of(batch).astype(np.int64)),
    "bits are bool": lambda batch: Ballot(none_of(batch).astype(np.bool_)),
    "bits are objects": lambda batch: Ballot(none_of(batch).astype(object)),
    "bits are two-dimensional": lambda batch: Ballot(none_of(batch).reshape(-1, 1)),
    "bits are a scalar": lambda batch: Ballot(np.uint8(NONE)),
    "bits are too many": lambda batch: Ballot(np.full(len(batch) + 7, NONE, np.uint8)),
    "bits are none": lambda batch: Ballot(np.zeros(0, np.uint8)),
    "bits are huge": lambda batch: Ballot(np.full(1 << 22, NONE, np.uint8)),
    "rows are None": lambda batch: Ballot(none_of(batch), None),
    "rows are a list": lambda batch: Ballot(none_of(batch), [none_of(batch)]),
    "rows cannot be listed": lambda batch: Ballot(none_of(batch), _BadRows()),
    "rows of a unit beyond all": lambda batch: Ballot(none_of(batch), {10**6: np.zeros(2, np.uint8)}),
    "rows of a unit below none": lambda batch: Ballot(none_of(batch), {-1: np.zeros(2, np.uint8)}),
    "rows of a unit named by text": lambda batch: Ballot(none_of(batch), {"0": np.zeros(2, np.uint8)}),
    "rows of half a unit": lambda batch: Ballot(none_of(batch), {0.5: np.zeros(2, np.uint8)}),
    "rows too few": lambda batch: Ballot(none_of(batch), {0: np.zeros(1, np.uint8)}),
    "rows without a length": lambda batch: Ballot(none_of(batch), {0: 1}),
    "rows of int64": lambda batch: Ballot(none_of(batch), {0: np.zeros(2)}),
}
PROBES = {
    **RAISED,
    **NONSENSE,
    "cost is None": lambda *_: Probe(1, cost=None),
    "cost is text": lambda *_: Probe(1, cost="cheap"),
    "cost is NaN": lambda *_: Probe(1, cost=float("nan")),
    "cost is endless": lambda *_: Probe(1, cost=float("inf")),
    "cost is below 0": lambda *_: Probe(1, cost=-1.0),
    "cost is an array": lambda *_: Probe(1, cost=np.zeros(3)),
    "judges_null is an array": lambda *_: Probe(1, judges_null=np.zeros(3)),
    "a refusal without a reason": lambda *_: Refusal(None, "no"),
    "a refusal with another reason": lambda *_: Refusal("BECAUSE", "no"),
    "a refusal without text": lambda *_: Refusal(Reason.LEAF_UNSUPPORTED, None),
}
IMPLIED = {
    **RAISED,
    **NONSENSE,
    "a column of another table": lambda *_: [Compare("=", Column(("gone",), pa.int64()), Literal(1, pa.int64()))],
    "a column of another type": lambda *_: [Compare("=", Column(("n",), pa.string()), Literal("1", pa.string()))],
    "no column": lambda *_: [Compare("=", Literal(1, pa.int64()), Literal(2, pa.int64()))],
    "values that are none": lambda *_: [In(N, (1, 2))],
    "values that are no list": lambda *_: [In(N, None)],
    "a comparison with nothing": lambda *_: [Compare("=", N, None)],
    "a condition in another": lambda *_: [[Compare("=", N, Literal(1, pa.int64()))]],
}


class Odd(IndexKind):
    """Answers each method with what the test put into ``answers``, or else as it should."""

    name = "odd"
    answers: ClassVar[dict] = {}

    def _answer(self, method, given, *arguments):
        return self.answers[method](*arguments) if method in self.answers else given()

    def accepts(self, inputs, options):
        return self._answer("accepts", lambda: None)

    def aggregates(self, options):
        return self._answer("aggregates", tuple)

    def condition(self, options):
        return self._answer("condition", lambda: None)

    def summary_type(self, inputs, options):
        return self._answer("summary_type", pa.int64)

    def build(self, rows, zones, options):
        return self._answer("build", lambda: Sidecar(1, b"one"), rows)

    def pack(self, sidecars):
        return self._answer("pack", lambda: Pack.concatenate(sidecars), sidecars)

    def roll_up(self, summaries):
        return self._answer("roll_up", lambda: summaries[0], summaries)

    def compile(self, what, inputs, options, context):
        return self._answer("compile", lambda: Probe(what))

    def probe(self, probe, batch):
        return self._answer("probe", lambda: Ballot.unknown(len(batch)), batch)


def is_small(numbers):
    return pa.compute.less(numbers, 3)


class Functions:
    @hookimpl
    def fuse_index_functions(self):
        return [Function("is_small", (pa.int64(),), is_small, implies=lambda call: Odd.answers["implies"](call))]


@pytest.fixture(autouse=True)
def _sound():
    Odd.answers = {}


def empty_table(kind=Odd):
    # without min_max, which would rule out all that votes could
    host = Host([kind, Functions()])
    return fuse.create_table(f"memory://odd-{uuid4().hex}", ROWS.schema, properties={"block_rows": 2}, host=host)


@pytest.fixture(scope="module")
def table():
    table = empty_table()
    table.create_index("x", "odd", ["n"])
    table.append(ROWS)
    return table


def rows_and_reasons(table, where):
    found = table.scan(where)
    json = found.explanation.to_dict()
    return found.to_arrow().column("n").to_pylist(), [
        vote["reason"] for vote in json["predicates"] if vote["index"] == "x"
    ]


@pytest.mark.parametrize("cost", [0.0, 10.0])
@pytest.mark.parametrize("form", BALLOTS)
def test_a_ballot_of_any_form_fails_no_query(table, form, cost):
    Odd.answers = {"compile": lambda: Probe(1, cost=cost), "probe": BALLOTS[form]}

    assert rows_and_reasons(table, "n >= 4") == ([4, 5], ["PLUGIN_ERROR"])
    assert rows_and_reasons(table, "NOT (n < 4 OR n = 4)")[0] == [5]


def test_a_ballot_is_copied_and_of_the_engines_own_class(table):
    kept = []

    def probe(batch):
        kept.append(np.full(len(batch), 3, np.uint8))
        return _BadBallot(kept[-1])

    Odd.answers = {"probe": probe}

    assert rows_and_reasons(table, "n >= 4 AND n >= 0")[0] == [4, 5]
    assert kept


@pytest.mark.parametrize("form", PROBES)
def test_a_probe_of_any_form_fails_no_query(table, form):
    Odd.answers = {"compile": PROBES[form]}

    assert rows_and_reasons(table, "n >= 4") == ([4, 5], ["PLUGIN_ERROR"])


@pytest.mark.parametrize("form", IMPLIED)
def test_what_a_function_implies_fails_no_query(table, form):
    Odd.answers = {"implies": IMPLIED[form]}

    assert rows_and_reasons(table, "is_small(n)")[0] == [0, 1, 2]


WRONG_BUILDS = {
    ("build", form): answer
    for form, answer in {
        **RAISED,
        **NONSENSE,
        "a summary of another type": lambda *_: Sidecar("many"),
        "a payload of text": lambda *_: Sidecar(1, "text"),
    }.items()
}
WRONG_PACKS = {
    ("pack", form): answer
    for form, answer in {
        **RAISED,
        **NONSENSE,
        "text": lambda given: Pack("abc", 4, [1] * len(given), [None] * len(given)),
        "no chunk": lambda given: Pack(b"abc", 0, [1] * len(given), [(0, 1)] * len(given)),
        "half a chunk": lambda given: Pack(b"abc", 0.5, [1] * len(given), [(0, 1)] * len(given)),
        "spans in halves": lambda given: Pack(b"abc", 4, [1] * len(given), [(0.5, 1.5)] * len(given)),
        "spans of one": lambda given: Pack(b"abc", 4, [1] * len(given), [(1,)] * len(given)),
        "spans beyond": lambda given: Pack(b"abc", 4, [1] * len(given), [(1, 10**9)] * len(given)),
        "summaries of another type": lambda given: Pack(b"abc", 4, ["a"] * len(given), [None] * len(given)),
        "summaries without a length": lambda given: Pack(b"abc", 4, itertools.repeat(1), [None] * len(given)),
    }.items()
}
WRONG_ROLL_UPS = {
    ("roll_up", form): answer for form, answer in {**RAISED, "gives text": lambda *_: pa.scalar("all")}.items()
}


@pytest.mark.parametrize(("method", "form"), WRONG_BUILDS | WRONG_PACKS | WRONG_ROLL_UPS)
def test_what_a_build_gives_costs_no_row(method, form):
    table = empty_table()
    table.create_index("x", "odd", ["n"])
    Odd.answers = {method: (WRONG_BUILDS | WRONG_PACKS | WRONG_ROLL_UPS)[method, form]}

    with pytest.warns(PluginWarning, match=f"failed in {method}"):
        table.append(ROWS)

    Odd.answers = {}
    assert rows_and_reasons(table, "n >= 4")[0] == [4, 5]
    assert table.inspect.indexes().column("blocks_indexed").to_pylist() == [3 if method == "roll_up" else 0]


WRONG_DEFINITIONS = {
    (method, form): answer
    for method in ("accepts", "aggregates", "condition", "summary_type")
    for form, answer in (RAISED | NONSENSE).items()
    if (method, form) not in (("accepts", "gives None"), ("condition", "gives None"), ("condition", "gives text"))
}


@pytest.mark.parametrize(("method", "form"), WRONG_DEFINITIONS)
def test_what_a_kind_says_of_a_definition_is_refused_in_words(method, form):
    table = empty_table()
    Odd.answers = {method: WRONG_DEFINITIONS[method, form]}

    with pytest.raises((fuse.DefinitionError, fuse.WhereError)):
        table.create_index("x", "odd", ["n"])


class Ranking(IndexKind):
    """Ranks rows by their place in the block, unless the test answers for it."""

    name, searches = "ranking", "rank"
    answers: ClassVar[dict] = {}

    def _answer(self, method, given, *arguments):
        return self.answers[method](*arguments) if method in self.answers else given()

    def build(self, rows, zones, options):
        return Sidecar(None, np.arange(rows.num_rows).tobytes())

    def compile_ranking(self, what, inputs, options, context):
        return self._answer("compile_ranking", lambda: Probe(what))

    def gather(self, probe, batch):
        return self._answer("gather", lambda: 1)

    def merge_statistics(self, parts):
        return self._answer("merge_statistics", lambda: sum(parts))

    def bound(self, probe, statistics, batch):
        return self._answer("bound", lambda: np.array([10.0]))

    def top(self, probe, statistics, batch, unit, k, among):
        def best():
            payload = batch.payload(unit)
            scores = np.frombuffer(payload.read([(0, payload.size)])[0], np.int64).astype(np.float64)
            rows = np.argsort(-scores, kind="stable")[:k]
            return rows, scores[rows]

        return self._answer("top", best, k)

    def highlight(self, probe, text):
        return self._answer("highlight", lambda: [(0, 1)])


TOPS = {
    "a row beyond all": lambda k: (np.array([10**6]), np.array([1.0])),
    "a row below none": lambda k: (np.array([-1]), np.array([1.0])),
    "a row twice": lambda k: (np.array([0, 0]), np.array([1.0, 1.0])),
    "more rows than scores": lambda k: (np.array([0, 1]), np.array([1.0])),
    "more rows than were asked for": lambda k: (np.arange(k + 1), np.zeros(k + 1)),
    "scores that are no numbers": lambda k: (np.array([0]), np.array(["a"])),
    "scores that are NaN": lambda k: (np.array([0]), np.array([np.nan])),
    "rows in halves": lambda k: (np.array([0.5]), np.array([1.0])),
}
WRONG_RANKINGS = {
    (method, form): answer
    for method in ("compile_ranking", "gather", "merge_statistics", "bound", "top", "highlight")
    for form, answer in {**RAISED, **(NONSENSE if method not in ("gather", "merge_statistics") else {})}.items()
} | {("top", form): answer for form, answer in TOPS.items()}


@pytest.fixture(scope="module")
def ranked():
    table = fuse.create_table(
        f"memory://ranked-{uuid4().hex}", "words STRING", properties={"block_rows": 2}, host=Host([Ranking])
    )
    table.create_index("x", "ranking", ["words"])
    table.append(pa.table({"words": ["a", "b", "c"]}))
    return table


@pytest.mark.parametrize(("method", "form"), WRONG_RANKINGS)
def test_a_search_by_a_kind_that_cannot_rank_is_an_error_of_ours(ranked, method, form):
    Ranking.answers = {}
    assert len(ranked.search("words", "b", 2, highlight=("<", ">"))) == 2
    Ranking.answers = {method: WRONG_RANKINGS[method, form]}

    with pytest.raises((fuse.IndexFault, fuse.DefinitionError)):
        ranked.search("words", "b", 2, highlight=("<", ">"))


class Adding(IndexKind):
    """Keeps the sum of a block, unless the test answers for it."""

    name = "adding"
    answers: ClassVar[dict] = {}

    def build(self, rows, zones, options):
        return Sidecar(None, str(sum(rows.column(0).to_pylist())).encode())

    def match(self, request, inputs, options, context):
        return self.answers["match"]() if "match" in self.answers else Probe(request)

    def state(self, probe, batch, unit):
        if "state" in self.answers:
            return self.answers["state"](probe.what)
        payload = batch.payload(unit)
        return pa.table([[int(payload.read([(0, payload.size)])[0])]], schema=probe.what.schema)


WRONG_ANSWERS = {("match", form): answer for form, answer in PROBES.items()} | {
    ("state", form): answer
    for form, answer in {
        **RAISED,
        **NONSENSE,
        "another schema": lambda request: pa.table({"x": [1]}),
        "a refusal without a reason": lambda request: Refusal(None, "no"),
    }.items()
}


@pytest.mark.parametrize(("method", "form"), WRONG_ANSWERS)
def test_a_state_of_any_form_fails_no_aggregate(counted, method, form):
    Adding.answers = {}
    assert counted.aggregate([], ["sum(n)"]).to_pylist() == [{"sum(n)": 15}]
    Adding.answers = {method: WRONG_ANSWERS[method, form]}

    assert counted.aggregate([], ["sum(n)"]).to_pylist() == [{"sum(n)": 15}]


@pytest.fixture(scope="module")
def counted():
    table = empty_table(Adding)
    table.create_index("x", "adding", ["n"])
    table.append(ROWS)
    return table
