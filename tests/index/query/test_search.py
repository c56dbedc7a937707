"""Ranked search: the best rows of a table, whatever its blocks are indexed with, touching only blocks that can hold
them.
"""

from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.indexes.registry import Host
from fuse_index.plugin import IndexKind, Probe, Sidecar
from fuse_index.query.checked_answers import total_bounds
from tests.plugins.full_text.judge import Judge

TEXTS = [
    "late refund",
    "refund",
    "the refund of an order that was late",
    "fine",
    None,
    "late late late",
    "a refund for a late refund",
    "",
    "order",
    "the order is late again",
    "unrelated words that only make it long",
    "refunds",
]


@pytest.fixture
def table(tmp_path):
    table = fuse.create_table(str(tmp_path / "t"), "n BIGINT, body STRING, title STRING", properties={"block_rows": 3})
    table.create_index("words", "full_text", ["body"])
    table.append(
        pa.table({"n": range(len(TEXTS)), "body": TEXTS, "title": [f"title {n % 2} refund" for n in range(len(TEXTS))]})
    )
    return table


def expected(query, rows=TEXTS):
    from fuse_plugins.full_text.match_function import parse_match

    found = Judge(rows, fuse_plugin_options().analyzer).scores(parse_match(query)[0])
    return sorted(found.items(), key=lambda pair: (-pair[1], pair[0]))


def fuse_plugin_options():
    from fuse_plugins.full_text import FullTextOptions

    return FullTextOptions()


@pytest.mark.parametrize("query", ["refund", "late refund", "+late order", '"late refund"', "ref*", "refund -late"])
@pytest.mark.parametrize("limit", [1, 3, 100])
def test_rows_and_scores_are_those_of_one_tantivy_index_on_all_rows(table, query, limit):
    found = table.search("body", query, limit)
    right = expected(query)

    scores = found.column("_score").to_pylist()
    assert scores == pytest.approx([score for _, score in right[:limit]], rel=1e-4)
    by_row = dict(right)
    assert [by_row[row] for row in found.column("n").to_pylist()] == pytest.approx(scores, rel=1e-4)


def test_where_leaves_rows_out_and_changes_no_score(table):
    all_rows = dict(
        zip(*[table.search("body", "refund", 100).column(name).to_pylist() for name in ("n", "_score")], strict=True)
    )
    some = table.search("body", "refund", 2, where="n > 1 AND n <> 6", select=["n"])

    assert some.column_names == ["n", "_score"]
    assert some.column("n").to_pylist() == [2]
    assert some.column("_score").to_pylist() == [all_rows[2]]


@pytest.mark.parametrize(
    ("where", "rows"), [("1 = 1", 4), ("1 = 0", 0), ("CAST(NULL AS BOOLEAN)", 0), ("length('') = 0", 4)]
)
def test_a_condition_that_names_no_column_is_a_condition_all_the_same(table, where, rows):
    assert len(table.search("body", "refund", 100, where=where)) == rows


def test_a_condition_that_only_spark_knows_is_refused_not_left_out(table):
    with pytest.raises(fuse.OpaqueError, match="rand"):
        table.search("body", "refund", where="rand() > 0.5")


def test_blocks_without_an_index_are_searched_all_the_same(tmp_path, table):
    fresh = fuse.create_table(str(tmp_path / "u"), "n BIGINT, body STRING", properties={"block_rows": 3})
    fresh.append(pa.table({"n": range(6), "body": TEXTS[:6]}))
    fresh.create_index("words", "full_text", ["body"], build=False)
    fresh.append(pa.table({"n": range(6, len(TEXTS)), "body": TEXTS[6:]}))

    for query in ("late refund", "order"):
        assert fresh.search("body", query, select=["n"]) == table.search("body", query, select=["n"])


def test_a_damaged_index_is_made_anew_for_the_search(tmp_path, table):
    right = table.search("body", "late refund")
    for pack in (tmp_path / "t" / "_i").rglob("*"):
        if pack.is_file():
            pack.chmod(0o644)
            data = pack.read_bytes()
            pack.unlink()
            pack.write_bytes(data[:20] + bytes(len(data) - 20))

    assert fuse.open_table(str(tmp_path / "t")).search("body", "late refund") == right


def test_highlights(table):
    found = table.search("body", '"late refund" ord*', 2, select=["n"], highlight=("[", "]"))

    assert found.column("_highlight").to_pylist() == ["[late] [refund]", "a [refund] for a [late] [refund]"]


def test_several_columns_add_their_scores(table):
    table.create_index("titles", "full_text", ["title"])
    found = table.search(["body", "title"], "order", select=["n"])
    alone = table.search("body", "order", select=["n"])
    assert found == alone

    both = table.search(["body", "title"], "refund", 1, select=["n"]).column("_score")[0].as_py()
    assert both > table.search("body", "refund", 1).column("_score")[0].as_py()


@pytest.mark.parametrize(
    ("column", "query", "options", "told"),
    [
        ("title", "x", None, "there is no index on it that ranks"),
        ("body", "x", "tokenizer=raw", "match\\(\\) is with tokenizer=raw"),
        ("body", "(x", None, "a '\\)' is missing"),
    ],
)
def test_what_cannot_be_searched_says_why(table, column, query, options, told):
    with pytest.raises(fuse.DefinitionError, match=told):
        table.search(column, query, options=options)
    with pytest.raises(fuse.SchemaError, match="nosuch"):
        table.search("nosuch", "x")
    with pytest.raises(fuse.InputError, match="limit=-1"):
        table.search("body", "x", -1)


def test_an_empty_table_and_a_query_that_nothing_matches(tmp_path, table):
    empty = fuse.create_table(str(tmp_path / "e"), "body STRING")
    empty.create_index("words", "full_text", ["body"])

    assert empty.search("body", "x").column_names == ["body", "_score"]
    assert table.search("body", "nowhere").num_rows == 0


class Below(IndexKind):
    """Scores a row by minus the distance of its number from 5; blocks whose numbers are all odd match nothing."""

    name, searches = "below", "below"

    def summary_type(self, inputs, options):
        return pa.list_(pa.int64())

    def build(self, rows, zones, options):
        return Sidecar(rows.column(0).to_pylist())

    def compile_ranking(self, what, inputs, options, context):
        return Probe(None)

    def gather(self, probe, batch):
        return None

    def merge_statistics(self, parts):
        return None

    def bound(self, probe, statistics, batch):
        return np.array([max(self.scores(unit)) for unit in batch.summaries.to_pylist()])

    def top(self, probe, statistics, batch, unit, k, among):
        scores = np.where(True if among is None else among, self.scores(batch.summaries[unit].as_py()), -np.inf)
        best = [row for row in np.argsort(-scores, kind="stable")[:k] if scores[row] > -np.inf]
        return np.array(best, np.int64), scores[best]

    def scores(self, numbers):
        return np.array([-np.inf if number % 2 else -abs(number - 5.0) for number in numbers])


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_rows_are_found_whose_scores_are_zero_or_negative(limit):
    numbers = [0, 1, 2, 3, 7, 9, 12, 4, 5, 6, 6, 8]
    table = fuse.create_table(
        f"memory://below-{uuid4().hex}", "n BIGINT, m BIGINT", properties={"block_rows": 2}, host=Host([Below])
    )
    for column in ("n", "m"):
        table.create_index(column, "below", [column])
    table.append(pa.table({"n": numbers, "m": numbers[::-1]}))

    def expected(*columns):
        of_rows = [[-abs(value - 5.0) for value in row if value % 2 == 0] for row in zip(*columns, strict=True)]
        scores = [(sum(some), -row) for row, some in enumerate(of_rows) if some]
        return [(score, -row) for score, row in sorted(scores, reverse=True)[:limit]]

    for names, columns in ((["n"], [numbers]), (["n", "m"], [numbers, numbers[::-1]])):
        found = table.search(names, "any", limit).to_pylist()
        assert [(row["_score"], row["n"]) for row in found] == [
            (score, numbers[row]) for score, row in expected(*columns)
        ]


@pytest.mark.parametrize(
    ("bounds", "total"),
    [((2.0, 1.0), 3.0), ((2.0, -1.0), 2.0), ((-2.0, -1.0), -1.0), ((-1.0, -np.inf), -1.0), ((0.0, -np.inf), 0.0)],
)
def test_no_row_scores_above_the_total_of_its_bounds(bounds, total):
    # a row may match in any of the rankings, or several: each of these sums is a score that it may have
    sums = [sum(some) for some in ((bounds[0],), (bounds[1],), bounds)]

    assert total_bounds([np.array([bound]) for bound in bounds]).tolist() == [total]
    assert total >= max(sums)
