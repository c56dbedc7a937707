"""Rankings by queries of any type: exact unless less is allowed, of rows with and without an index, and by ORDER BY."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.registry import Host
from fuse_index.plugin import Reason, hookimpl
from fuse_index.predicate import Call, Cast, Column, Compare, Context, Literal, Opaque
from fuse_index.pruning.planner import plan_scan
from fuse_index.query.ranking import first_rows
from fuse_index.query.ranking.first_rows import RankedOrder, keep_first_rows
from tests.plugins.mutants.of_scores import GAP, Near

N = Column(("n",), pa.int64())
GAP_OF_THREE = replace(GAP, argument_types=(pa.int64(), pa.int64(), pa.float64()), optional=1, recall=2)


class OfNears:
    @hookimpl
    def fuse_index_kinds(self):
        return [Near]

    @hookimpl
    def fuse_index_functions(self):
        return [GAP_OF_THREE]


HOST = Host([OfNears()])


def table_of(values, name, **create):
    table = fuse.create_table(f"memory://{name}", "n BIGINT", properties={"block_rows": 10, "zone_rows": 5}, host=HOST)
    table.create_index("by_gap", "near", ["n"], **create)
    table.append([{"n": value} for value in values])
    return table


@pytest.fixture
def table(request):
    return table_of([*range(39), None], f"rankings-{abs(hash(request.node.name))}")


def order(limit=2, to=17, recall=None, **changes):
    arguments = (N, Literal(to, pa.int64()), *([] if recall is None else [Literal(recall, pa.float64())]))
    made = RankedOrder(Call("gap", arguments, pa.float64()), limit, False, False, True, "ORDER BY gap(n, …) LIMIT 2")
    return replace(made, **changes)


def narrowed(table, asked, where=None):
    plan = plan_scan(table.stored, table._predicate(where), Engine(HOST, Context()))
    return keep_first_rows(plan, asked, Engine(HOST, Context()))


def last_vote(plan):
    return plan.explanation.votes[-1]


def test_a_number_is_searched_for_as_a_number(table):
    assert table.search("n", 17, limit=3).column("n").to_pylist() == [17, 16, 18]
    assert table.search("n", np.int64(17), limit=3, where="n <> 17").column("n").to_pylist() == [16, 18, 15]


@pytest.mark.parametrize("recall", [0, -1.0, 1.5, float("nan")])
def test_a_recall_is_a_share(table, recall):
    with pytest.raises(fuse.InputError, match="recall="):
        table.search("n", 17, recall=recall)


def test_a_query_of_another_type_is_no_value_of_the_column(table):
    with pytest.raises(fuse.InputError, match="the query is no value of column 'n', which is bigint"):
        table.search("n", [1, 2])


@pytest.mark.parametrize(("recall", "says"), [(1.0, "exact"), (0.9, "approximate: recall 0.9, as the search allows")])
def test_the_explanation_says_whether_all_of_the_best_are_found(table, recall, says):
    told = table.explain.search("n", 17, limit=2, where="n > 3", recall=recall)

    assert told.votes[0].detail == f"it ranks by gap, {says}"
    assert told.votes[0].index == "by_gap"


def test_an_index_that_guesses_is_exact_where_it_is_not_allowed_to(table):
    class Lying(Near):
        def compile_ranking(self, what, inputs, options, context):
            return replace(super().compile_ranking(what, inputs, options, context), recall=0.5)

    class Plugin(OfNears):
        @hookimpl
        def fuse_index_kinds(self):
            return [Lying]

    opened = fuse.open_table(table.stored.store.url, host=Host([Plugin()]))
    with pytest.raises(fuse.DefinitionError, match=r"recall 0\.5 was given where 1 is asked for"):
        opened.search("n", 17)


def test_rows_without_an_index_are_scored_and_nothing_is_built(monkeypatch):
    table = fuse.create_table("memory://scored", "n BIGINT", host=HOST)
    table.append([{"n": value} for value in range(20)])
    table.create_index("by_gap", "near", ["n"], build=False)
    monkeypatch.setattr(Near, "build", None)
    found = table.search("n", 7, limit=3)

    assert found.column("n").to_pylist() == [7, 6, 8]


def test_an_order_by_the_function_reads_the_zones_of_its_first_rows(table):
    plan = narrowed(table, order())

    assert (len(plan.blocks), int(plan.zones.sum())) == (1, 1)
    assert (last_vote(plan).reason, last_vote(plan).detail) == (Reason.USED, "exact")
    assert len(narrowed(table, order(to=20)).blocks) == 2


def test_an_order_keeps_to_the_condition(table):
    plan = narrowed(table, order(limit=1), "n < 5 OR n > 30")

    assert plan.blocks.ordinals.tolist() == [0]


def test_recall_is_an_argument_of_the_function(table):
    assert "approximate: recall 0.9" in last_vote(narrowed(table, order(recall=0.9))).detail
    assert last_vote(narrowed(table, order(recall=1.0))).detail == "exact"


@pytest.mark.parametrize(
    ("asked", "where", "why"),
    [
        (order(nulls_first=True), None, "NULL comes first"),
        (order(alone=False), None, "a second column"),
        (order(limit=40), None, "fewer rows than the limit"),
        (order(limit=3), "n < 2", "fewer rows than the limit"),
        (replace(order(), call=Call("gap", (N, N), pa.float64())), None, "a column and a constant"),
    ],
)
def test_an_order_that_the_ranking_is_not_reads_all(table, asked, where, why):
    plan = narrowed(table, asked, where)

    assert why in last_vote(plan).detail
    assert len(plan.blocks) == 4


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        (Opaque("acme(n)"), "only Spark can evaluate acme(n)"),
        (Compare("=", Cast(Cast(N, pa.string()), pa.int32(), "ansi"), Literal(1, pa.int32())), "Spark may raise"),
    ],
)
def test_an_order_over_a_condition_that_is_not_sure_here_reads_all(table, condition, why):
    plan = plan_scan(table.stored, condition, Engine(HOST, Context()))

    assert why in last_vote(keep_first_rows(plan, order(), Engine(HOST, Context()))).detail


def test_null_that_comes_first_does_not_where_the_condition_leaves_it_out(table):
    assert len(narrowed(table, order(nulls_first=True), "n IS NOT NULL").blocks) == 1


def test_an_order_by_what_nobody_ranks_is_left_alone(table):
    assert narrowed(table, order(descending=True)).explanation.votes == ()
    assert narrowed(table, replace(order(), call=Call("gasp", order().call.arguments))).explanation.votes == ()


def test_an_order_that_takes_too_long_reads_all(table, monkeypatch):
    monkeypatch.setattr(first_rows, "MAX_SECONDS", -1.0)
    plan = narrowed(table, order())

    assert (last_vote(plan).reason, len(plan.blocks)) == (Reason.TIMEOUT, 4)
