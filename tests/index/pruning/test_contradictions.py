"""Votes that contradict each other: exact statistics are believed, and who contradicts them is not, on any block."""

from itertools import product
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.expressions.conjunction import Conjunction
from fuse_index.indexes.registry import Host
from fuse_index.plugin import ALL, NONE, SOME, Ballot, IndexKind, Probe, Reason, Refusal, Sidecar
from fuse_plugins import bloom, min_max

BLOCKS = [[5, 5], [5, 3], [3, 5], [7, 7], [1, 9]]
"""Statistics are sure of the first and the fourth block, and an index could only be found out there."""
ROWS = pa.table({"a": [value for block in BLOCKS for value in block], "b": [5] * 10})


class Says(IndexKind):
    """Votes the same on all, in the form of the test's choice, at the cost of its choice."""

    name = "says"
    vote, form, cost = NONE, "units", 0.0

    def summary_type(self, inputs, options):
        return pa.list_(pa.int64())

    def build(self, rows, zones, options):
        return Sidecar(rows.column(0).to_pylist(), b"one")

    def compile(self, what, inputs, options, context):
        if isinstance(what, Conjunction) != (len(inputs) > 1):
            return Refusal(Reason.LEAF_UNSUPPORTED, "not on this")
        return Probe(what, cost=self.cost)

    def probe(self, probe, batch):
        if self.form == "zones" and len(batch.zone_rows):
            return Ballot(np.full(len(batch.zone_rows), self.vote, np.uint8))
        rows = {}
        if self.form == "rows":
            rows = {unit: np.full(int(count), self.vote, np.uint8) for unit, count in enumerate(batch.row_counts)}
        return Ballot(np.full(len(batch), self.vote, np.uint8), rows)


class Knows(Says):
    """Knows the values, row by row."""

    name = "knows"

    def probe(self, probe, batch):
        rows = {}
        bits = np.full(len(batch), SOME, np.uint8)
        for unit, values in enumerate(batch.summaries.to_pylist()):
            if values is not None:
                rows[unit] = np.array([ALL if value == probe.what.right.value else NONE for value in values], np.uint8)
                bits[unit] = np.bitwise_or.reduce(rows[unit])
        return Ballot(bits, rows)


def table_of(*indexes, host):
    table = fuse.create_table(
        f"memory://contradictions-{uuid4().hex}", ROWS.schema, properties={"block_rows": 2}, host=Host(host)
    )
    for kind, *columns in indexes:
        table.create_index(f"by_{kind}", kind, columns)
    table.append(ROWS)
    return table


@pytest.fixture(scope="module")
def table():
    return table_of(("says", "a"), ("bloom", "a"), host=[min_max, bloom, Says])


def votes(table, where):
    return {vote.index: vote for vote in table.explain(where).votes}


FORMS = list(product((NONE, ALL), ("units", "zones", "rows"), (0.0, 10.0)))


@pytest.mark.parametrize(("vote", "form", "cost"), FORMS)
@pytest.mark.parametrize("value", [5, 7])
def test_who_contradicts_exact_statistics_is_not_believed_on_any_block(monkeypatch, table, vote, form, cost, value):
    for name, chosen in (("vote", vote), ("form", form), ("cost", cost)):
        monkeypatch.setattr(Says, name, chosen)
    where = f"a = {value}"

    found = table.scan(where)

    assert found.to_arrow().column("a").to_pylist() == [value] * ROWS.column("a").to_pylist().count(value)
    assert table.scan(where).count() == found.to_arrow().num_rows
    told = votes(table, where)
    assert told["by_says"].reason is Reason.CORRUPT
    assert told["by_says"].blocks_removed == 0
    assert told["min_max"].reason is Reason.USED
    if vote == NONE or not cost:  # else it is asked only where statistics leave it open, and contradicts the filters
        assert "what by_says said of a = " in told["by_says"].detail
        assert "contradicts exact statistics" in told["by_says"].detail
        assert told["by_bloom"].reason is not Reason.CORRUPT
    with pytest.raises(fuse.IndexFault, match=r"CORRUPT: contradicting votes: what .*by_says said"):
        table.scan(where, strict=True)


@pytest.mark.parametrize(("vote", "form"), list(product((NONE, ALL), ("units", "rows"))))
def test_of_two_indexes_that_contradict_each_other_neither_is_believed(monkeypatch, vote, form):
    table = table_of(("says", "a"), ("knows", "a"), host=[bloom, Says, Knows])
    monkeypatch.setattr(Says, "vote", vote)
    monkeypatch.setattr(Says, "form", form)

    assert table.scan("a = 5").to_arrow().column("a").to_pylist() == [5, 5, 5, 5]
    assert {vote.index: vote.reason for vote in table.explain("a = 5").votes} == {
        "by_says": Reason.CORRUPT,
        "by_knows": Reason.CORRUPT,
    }


def test_who_contradicts_what_is_known_of_the_parts_of_a_conjunction_is_not_believed():
    table = table_of(("says", "a", "b"), host=[min_max, bloom, Says])
    where = "a = 5 AND b = 5"

    assert table.scan(where).to_arrow().column("a").to_pylist() == [5, 5, 5, 5]
    assert votes(table, where)["by_says"].reason is Reason.CORRUPT


def test_who_agrees_is_believed():
    table = table_of(("knows", "a"), host=[min_max, bloom, Knows])
    found = votes(table, "a = 5")

    assert found["by_knows"].reason in (Reason.USED, Reason.USED_NO_GAIN)
    assert table.explain("a = 5").rows.kept == 4
