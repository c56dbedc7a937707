"""The aggregate kind: states are right, readable, and refused where they would not be."""

import io
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fuse_index as fuse
from fuse_index.aggregates import sketches
from fuse_index.errors import DefinitionError, InputError, WhereError
from fuse_index.indexes.definition import load_definitions
from fuse_index.indexes.registry import Host
from fuse_index.plugin import Aggregation, Input
from fuse_index.predicate import Column, Literal
from fuse_index.testing import IndexTests
from fuse_plugins import aggregate, min_max
from fuse_plugins.aggregate import AggregateIndex, AggregateOptions
from tests.sketches import HAVE_SKETCHES, computable, needs_sketches

CITY, AMOUNT, COUNT = Column(("city",), pa.string()), Column(("amount",), pa.float64()), Column(("n",), pa.int32())
ROW = Literal(1, pa.int32())
KEPT = (
    "count(*)",
    "sum(amount)",
    "min(amount)",
    "max(amount)",
    "avg(amount)",
    "avg(n)",
    "count(n)",
    "max(city)",
    *computable(["hll_sketch_agg(n)", "hll_sketch_agg(city, 4)"]),
)
TEXTS = {"amount": AMOUNT, "n": COUNT, "city": CITY, "*": ROW}


def kept(text):
    function, _, argument = text.partition("(")
    name, _, size = argument[:-1].partition(", ")
    return Input(TEXTS[name], TEXTS[name].type, function, int(size or 12) if function == "hll_sketch_agg" else 0)


def asked(groups, *texts):
    return Aggregation(groups, tuple(kept(text).aggregate for text in texts))


class TestAggregates(IndexTests):
    index = AggregateIndex
    inputs = (Input(CITY, pa.string()), Input(AMOUNT, pa.float64()), *map(kept, KEPT))
    options = AggregateOptions(KEPT)
    payload_bytes = 200.0
    requests = (
        asked((CITY,), *KEPT),
        asked((CITY, AMOUNT), "count(*)", "avg(n)"),
        asked((AMOUNT,), "max(amount)", "min(amount)", "count(*)"),
        asked((), "sum(amount)", "count(n)", "max(city)"),
        asked((CITY,)),
        *([asked((), "hll_sketch_agg(n)", "hll_sketch_agg(city, 4)")] if HAVE_SKETCHES else []),
    )
    refused = (
        asked((COUNT,), "count(*)"),
        asked((CITY,), "sum(n)"),
        asked((), "min(city)"),
        asked((CITY,), "hll_sketch_agg(city)"),
        asked((CITY,), "hll_sketch_agg(n, 4)"),
    )

    def rows(self, column):
        samples = {"city": ("a", "b", ""), "amount": (math.nan, -0.0, 0.0, 1.5, -math.inf), "n": (1, -7, 2**31 - 1)}
        return samples[column.path[0]]


TYPES = {
    "city": pa.string(),
    "amount": pa.float64(),
    "n": pa.int32(),
    "at": pa.timestamp("us", "UTC"),
    "tags": pa.list_(pa.int32()),
    "sketch": pa.binary(),
}


@pytest.fixture
def sales(tmp_path):
    return fuse.create_table(str(tmp_path / "t"), pa.schema(TYPES), host=Host([min_max, AggregateIndex]))


def rows(**given):
    count = len(next(iter(given.values())))
    return pa.table({name: pa.array(given.get(name, [None] * count), kind) for name, kind in TYPES.items()})


@pytest.mark.parametrize(
    ("columns", "aggregates", "error", "says"),
    [
        (["city"], ["sum(nothing)"], WhereError, "nothing"),
        (["city"], ["sum(city)"], WhereError, "no sum of string"),
        (["city"], ["sum(DISTINCT n)"], WhereError, "DISTINCT"),
        (["city"], ["count(DISTINCT n)"], WhereError, "DISTINCT"),
        (["city"], ["sum(n) OVER (PARTITION BY city)"], WhereError, "OVER"),
        (["city"], ["sum(n) FILTER (WHERE n > 1)"], WhereError, "a FILTER are known to Spark alone"),
        (["city"], ["(SELECT 1)"], WhereError, "subqueries are known to Spark alone"),
        (
            ["city"],
            ["count(*) AS c"],
            WhereError,
            "an aggregate is one expression, as it stands after SELECT, without a name",
        ),
        (["city"], [""], WhereError, "an empty text is not an aggregate"),
        (["city"], "count(*)", DefinitionError, "is to be a list of texts"),
        (["row_number() OVER (ORDER BY n)"], ["count(*)"], WhereError, "windows are known to Spark alone"),
        (["date_trunc(city, at)"], ["count(*)"], WhereError, "the unit of date_trunc is a string, not city"),
        (["city", None], ["count(*)"], InputError, "give a list of texts"),
        (["city"], ["first(n)"], WhereError, "first"),
        (["city"], ["approx_count_distinct(n)"], WhereError, "approx_count_distinct"),
        (["city"], ["hll_sketch_agg(amount)"], WhereError, "hll_sketch_agg of double"),
        (["city"], ["hll_sketch_agg(n, 22)"], WhereError, "from 4 to 21, not 22"),
        (["city"], ["hll_sketch_agg(n, 12, 12)"], WhereError, "from 4 to 21, or left out"),
        (["city"], ["hll_sketch_agg(n, 12L)"], WhereError, "from 4 to 21, or left out"),
        (["city"], ["hll_union_agg(city)"], WhereError, "hll_union_agg of string is not known here, only of binary"),
        (["city"], ["hll_union_agg(sketch, true)"], WhereError, "no aggregate that is known here"),
        pytest.param(
            ["city"],
            ["hll_sketch_agg(n, /* registers */ 14)"],
            DefinitionError,
            "without comments",
            marks=needs_sketches,
        ),
        (["city"], ["max((SELECT 1))"], WhereError, "no aggregate"),
        (["city"], ["sum(rand())"], WhereError, "rand"),
        (["city"], ["max(tags)"], WhereError, "array"),
        (["rand()"], ["count(*)"], WhereError, "rand"),
        (["tags"], ["count(*)"], DefinitionError, "array"),
        (["date_trunc('fortnight', at)"], ["count(*)"], WhereError, "fortnight"),
        (["city"], [], DefinitionError, "aggregates is empty"),
        (["city", "city"], ["count(*)"], DefinitionError, "twice"),
    ],
)
def test_a_bad_definition_is_refused_with_the_reason(sales, columns, aggregates, error, says):
    with pytest.raises(error, match=says.replace("(", r"\(")):
        sales.create_index("x", "aggregate", columns, aggregates=aggregates)


def test_a_state_is_parquet_that_anybody_reads(sales):
    sales.create_index("x", "aggregate", ["city"], aggregates=["count(*)", "sum(amount)", "avg(amount)"])
    sales.append(rows(city=["a", None, "a"], amount=[1.0, 2.0, None]))
    [definition] = load_definitions(sales.snapshot, sales.host)
    payload = sales.stored.blocks().sidecars(definition.key).payload(0)
    state = pq.read_table(io.BytesIO(payload.read([(0, payload.size)])[0]))

    assert sorted(state.to_pylist(), key=str) == [
        {"group_0": "a", "count_1": 2, "sum_2": 1.0, "count_2": 1},
        {"group_0": None, "count_1": 1, "sum_2": 2.0, "count_2": 1},
    ]


def test_a_block_with_too_many_groups_keeps_no_state_and_is_scanned(sales):
    sales.create_index("x", "aggregate", ["n"], aggregates=["count(*)"], most_groups=5)
    sales.append(rows(n=range(10)))
    sales.append(rows(n=range(4)))

    explanation = sales.explain(None, ["n"], ["count(*)"])
    assert explanation.blocks.kept == 1
    assert any("10 groups, more than most_groups" in vote.detail for vote in explanation.votes)
    assert sales.aggregate(["n"], ["count(*)"]).num_rows == 10
    assert sales.inspect.index("x")["contents"]["blocks_with_too_many_groups"] == 1


@needs_sketches
def test_sketches_need_their_library(sales, monkeypatch):
    sales.create_index("x", "aggregate", ["city"], aggregates=["hll_sketch_agg(n)", "count(*)"])
    sales.append(rows(city=["a", "b"], n=[1, 2]))
    monkeypatch.setattr(sketches, "datasketches_module", lambda: None)

    with pytest.raises(WhereError, match=r"pip install datasketches"):
        sales.create_index("y", "aggregate", ["city"], aggregates=["hll_sketch_agg(n)"])
    with pytest.raises(WhereError, match="datasketches"):
        sales.aggregate(["city"], ["hll_sketch_agg(n)"])
    assert sales.explain(None, ["city"], ["count(*)"]).blocks.kept == 0


@needs_sketches
def test_of_a_block_whose_sketches_are_of_another_size_the_rows_are_read(sales, monkeypatch):
    sales.create_index("x", "aggregate", ["city"], aggregates=["hll_sketch_agg(n)"])
    monkeypatch.setattr(aggregate, "DEFAULT_LG_K", 11)  # as a faulty build would make them
    sales.append(rows(city=["a", "b"], n=[1, 2]))
    explanation = sales.explain(None, ["city"], ["hll_sketch_agg(n)"])

    assert explanation.blocks.kept == 1
    assert any(vote.reason == "CORRUPT" and "2^11 registers, not 2^12" in vote.detail for vote in explanation.votes)


@needs_sketches
def test_sketches_that_a_table_holds_are_united_and_those_of_other_sizes_refused(sales):
    sales.create_index("x", "aggregate", ["city"], aggregates=["hll_union_agg(sketch)"])
    for first in (0, 50):
        made = [sketches.build_sketch(range(first, first + 100), 10), None, sketches.build_sketch(range(300), 10), None]
        sales.append(rows(city=["a", "a", "b", "c"], sketch=made))

    assert sales.explain(None, ["city"], ["hll_union_agg(sketch)"]).blocks.kept == 0
    found = {
        row["city"]: row["hll_union_agg(sketch)"]
        for row in sales.aggregate(["city"], ["hll_union_agg(sketch)"]).to_pylist()
    }
    expected = {
        "a": sketches.build_sketch(range(150), 10),
        "b": sketches.build_sketch(range(300), 10),
        "c": sketches.build_sketch((), 12),
    }
    assert {city: sketches.sketch_registers(one) for city, one in found.items()} == {
        c: sketches.sketch_registers(one) for c, one in expected.items()
    }

    sales.append(rows(city=["a"], sketch=[sketches.build_sketch([1], 12)]))
    with pytest.raises(InputError, match=r"2\^12 registers, not 2\^10"):
        sales.aggregate(["city"], ["hll_union_agg(sketch)"])
    with pytest.warns(fuse.PluginWarning, match="3 bytes are no HLL sketch"):
        sales.append(rows(city=["a"], sketch=[b"abc"]))
