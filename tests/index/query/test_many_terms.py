"""Conditions of very many terms cost what their terms cost, and mean what they mean one by one.

Times are of the processor, of n terms beside 4 n: a quadratic one takes 16 times as long.
"""

import math
import time
from collections.abc import Callable, Iterator
from itertools import product

import pyarrow as pa
import pytest

import fuse_index as fuse
from benchmarks.conditions import CONDITIONS, created
from fuse_index.errors import OpaqueError
from fuse_index.expressions.depth import MAX_DEPTH
from fuse_index.expressions.evaluate import evaluate
from fuse_index.expressions.normalize import normalize
from fuse_index.predicate import And, Cast, Column, Compare, In, Literal, LongTuple, Not, Or
from fuse_index.pruning.choose_leaves import MAX_ASKED_LEAVES
from fuse_index.reasons import Reason
from fuse_index.sql.parse import parse_predicate

ROWS = [{f"c{number}": row for number in range(10)} for row in range(100)]
TERMS, VALUES = 400, 20_000


@pytest.fixture(scope="module")
def table() -> fuse.Table:
    return created()


def processor_seconds(work: Callable[[], object]) -> Iterator[float]:
    """Three times: what else a busy machine does only adds, so that the least counts."""
    for _ in range(3):
        start = time.process_time()
        work()
        yield time.process_time() - start


@pytest.mark.parametrize("name", CONDITIONS)
def test_four_times_the_terms_cost_less_than_twelve_times_the_time(table, name):
    """What is quadratic costs sixteen times as much."""
    sizes = [VALUES, 4 * VALUES] if name.startswith("IN") else [TERMS, 4 * TERMS]

    def work(size: int) -> None:
        text = CONDITIONS[name](size)
        str(table.explain(text))
        table.scan(text).count()

    work(100)
    small = min(processor_seconds(lambda: work(sizes[0])))
    assert any(large < 12 * small for large in processor_seconds(lambda: work(sizes[1])))


@pytest.mark.parametrize("name", [name for name in CONDITIONS if not name.startswith("IN")])
@pytest.mark.parametrize("terms", [20, MAX_ASKED_LEAVES + 50])
def test_a_condition_of_many_terms_finds_what_python_finds(table, name, terms):
    text = CONDITIONS[name](terms)
    code = text.replace(" = ", " == ").replace("<>", "!=").replace("OR", "or").replace("AND", "and")
    expected = [row["c0"] for row in ROWS if eval(code, {}, row)]

    assert table.scan(text, ["c0"]).to_arrow().column("c0").to_pylist() == expected
    assert table.scan(text, ["c0"], indexes=False).count() == len(expected)


def test_many_terms_on_one_column_are_asked_about_together_and_still_skip(table):
    text = " OR ".join(f"c0 = {1000 + number} OR c1 < {-number}" for number in range(MAX_ASKED_LEAVES))
    explained = table.explain(text)

    assert explained.blocks.kept == 0
    assert Reason.TOO_MANY_TERMS in {vote.reason for vote in explained.votes}
    mixed = " OR ".join(f"(c0 = {1000 + number} AND c1 < {number})" for number in range(MAX_ASKED_LEAVES))
    assert table.explain(mixed).blocks.kept == 4  # nothing is said of them together
    windows = " OR ".join(f"(c0 >= {1000 + 9 * n} AND c0 < {1003 + 9 * n})" for n in range(MAX_ASKED_LEAVES))
    assert table.explain(f"c1 >= 0 AND ({windows})").blocks.kept == 0


@pytest.mark.parametrize(
    "values",
    [
        ["1", "-2", "3"],
        ["2147483647", "-2147483648"],
        ["2147483648", "1"],
        ["'a'", "''", "'ä)'"],
        ["'a''b'", "'c'"],
        ["1", "NULL"],
        ["1.5", "2"],
    ],
)
def test_a_long_list_is_read_as_its_values_are_one_by_one(values):
    column = "s" if values[0].startswith("'") else "c0"
    schema = created().snapshot.schema
    listed = [*values, *(["'x'"] if column == "s" else ["7"]) * 100]
    at_once = parse_predicate(f"{column} IN ( {' , '.join(listed)})", schema)
    one_by_one = parse_predicate(f"{column} IN ({', '.join([*values, listed[-1]])})", schema)

    assert at_once == one_by_one
    assert parse_predicate(f"NOT {column} not in ({','.join(listed)})", schema) == parse_predicate(
        f"NOT {column} NOT IN ({', '.join(listed[: len(values) + 1])})", schema
    )


@pytest.mark.parametrize("column", ["c0", "s"])
def test_a_long_chain_of_equalities_is_a_list(table, column):
    values = [str(value) if column == "c0" else f"'{value}'" for value in range(50)]
    schema = table.snapshot.schema

    chain = " OR ".join(f"{column} = {value}" for value in values)
    assert parse_predicate(chain, schema) == parse_predicate(f"{column} IN ({', '.join(values)})", schema)
    inverse = " AND ".join(f"{column} <> {value}" for value in values)
    assert parse_predicate(inverse, schema) == Not(parse_predicate(chain, schema))
    mixed = parse_predicate(f"{chain} OR c1 < 3 OR {column} IN ({values[0]}, {values[1]})", schema)
    assert mixed == Or((parse_predicate(chain, schema), parse_predicate("c1 < 3", schema)))


def test_a_short_chain_of_equalities_stays_as_it_is_written(table):
    predicate = parse_predicate("c0 = 1 OR c0 = 2 OR c1 = 3", table.snapshot.schema)

    assert [type(part) for part in predicate.terms] == [Compare] * 3


@pytest.mark.parametrize("connective", [And, Or])
def test_what_raises_does_so_whatever_else_decides_the_row(connective):
    rows = pa.table({"c0": pa.array([1, 2]), "s": pa.array(["x", "٣"])})
    decided = Compare("<" if connective is And else ">", Column(("c0",), pa.int64()), Literal(0, pa.int64()))
    cast = Cast(Column(("s",), pa.string()), pa.timestamp("us", "UTC"))
    raising = Compare("=", cast, Literal(None, cast.type))
    zone = fuse.Context("Mars/Olympus")
    with pytest.raises(OpaqueError):
        evaluate(connective((decided, raising)), rows, zone)


@pytest.mark.parametrize("connective", [And, Or])
def test_every_chain_of_three_truths_is_what_spark_has(connective):
    truths = {"t": True, "f": False, "n": None}
    columns = {name: Column((name,), pa.bool_()) for name in truths}
    rows = pa.table({name: pa.array([truth], pa.bool_()) for name, truth in truths.items()})
    decisive = connective is Or
    for names in product(truths, repeat=4):
        parts = tuple(Compare("=", columns[name], Literal(True, pa.bool_())) for name in names)
        found = [truths[name] for name in names]
        expected = decisive if decisive in found else None if None in found else not decisive
        assert evaluate(connective(parts), rows).to_pylist() == [expected]


@pytest.mark.parametrize("operator", ["=", "<>"])
@pytest.mark.parametrize("extra", [[], [math.nan], [None], [-0.0, 0.0, math.nan, None]])
def test_a_long_chain_of_equalities_answers_as_one_by_one(operator, extra):
    column = Column(("f",), pa.float64())
    rows = pa.table({"f": pa.array([0.0, -0.0, 1.0, 99.5, math.nan, None, math.inf])})
    values = [float(value) for value in range(1, 40)] + extra
    parts = tuple(Compare(operator, column, Literal(value, pa.float64())) for value in values)
    connective = Or if operator == "=" else And
    written = connective(parts)
    listed = normalize(written, fuse.Context())

    leaves = listed.terms if isinstance(listed, connective) else (listed,)
    assert len(leaves) <= 2
    assert evaluate(listed, rows).equals(evaluate(written, rows))


def test_a_long_list_where_no_list_belongs_is_not_read_as_one_value(table):
    listed = ", ".join(map(str, range(100)))
    with pytest.raises((fuse.WhereError, fuse.OpaqueError)):
        table.scan(f"c0.in ({listed}) = 1").count()
    with pytest.raises((fuse.WhereError, fuse.OpaqueError)):
        table.scan(f"c0 = 1 AND in ({listed})").count()


def test_long_lists_are_equal_and_hashed_alike_wherever_they_were_made():
    column = Column(("c0",), pa.int64())
    one, other = (In(column, tuple(Literal(value, pa.int64()) for value in range(100))) for _ in range(2))

    assert one == other
    assert hash(one) == hash(other)
    assert isinstance(one.values, LongTuple)
    assert one != In(column, tuple(Literal(value, pa.int64()) for value in range(1, 101)))


NESTED = {
    "parentheses": lambda n: "(" * n + "c0 = 1" + ")" * n,
    "NOT": lambda n: "NOT " * n + "c0 = 1",
    "NOT in parentheses": lambda n: "NOT (" * (n // 2) + "c0 = 1" + ")" * (n // 2),
    "functions": lambda n: "lower(" * n + "s" + ")" * n + " = 'x'",
    "AND in OR": lambda n: "".join(f"(c0 = {i} {'OR' if i % 2 else 'AND'} " for i in range(n)) + "c0 = 1" + ")" * n,
}


@pytest.mark.parametrize("name", NESTED)
def test_a_text_that_is_nested_too_deep_is_refused_with_the_depth_and_the_bound(table, name):
    table.explain(NESTED[name](MAX_DEPTH - 1))
    for depth in (MAX_DEPTH + 2, 10_000):
        with pytest.raises(fuse.WhereError, match=rf"nested {depth:,} levels deep, and {MAX_DEPTH} are the bound"):
            table.explain(NESTED[name](depth))


def test_objects_that_are_nested_too_deep_are_refused_and_chains_are_no_depth(table):
    one = Compare("=", Column(("c0",), pa.int64()), Literal(1, pa.int64()))
    deep, chain = one, one
    for number in range(10_000):
        deep = Not(deep)
        chain = Or((chain, Compare("=", one.left, Literal(number % 7, pa.int64()))))
    with pytest.raises(fuse.WhereError, match="nested 10,002 levels deep"):
        table.scan(deep)
    assert table.scan(chain).count() == 7
    assert table.scan(And((chain, Not(one)))).count() == 6
