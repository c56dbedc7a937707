"""Votes on single rows, of kinds that vote by segment, by block and by zone, on blocks of several unequal zones."""

from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fuse_storage
from fuse_index.errors import IndexFault
from fuse_index.indexes.registry import Host
from fuse_index.plugin import ALL, NONE, SOME, Ballot, IndexKind, Probe, Refusal, Sidecar
from fuse_index.predicate import Compare
from fuse_index.reasons import Reason
from fuse_index.table.table import Table
from fuse_plugins import min_max
from fuse_storage import open_store

ROWS, BLOCK, ZONE = 100, 30, 8
"""Blocks of 30, 30, 30 and 10 rows in zones of 8, 8, 8 and 6, and of 8 and 2."""

SCHEMA = pa.schema([("id", pa.int64()), ("c", pa.int64())])


class Values(IndexKind):
    """Keeps the values of a block in its payload, and has one vote a block and one for each of its rows."""

    name = "rows"

    def build(self, rows, zones, options):
        return Sidecar(None, np.array(rows.column(0).fill_null(-1), np.int64).tobytes())

    def compile(self, what, inputs, options, context):
        if isinstance(what, Compare) and what.operator == "=":
            return Probe(what.right.value, cost=10.0)
        return Refusal(Reason.LEAF_UNSUPPORTED, "only =")

    def probe(self, probe, batch):
        return ballot_of([values == probe.what for values in self.values(batch)])

    def values(self, batch):
        for unit in range(len(batch)):
            payload = batch.payload(unit)
            yield np.frombuffer(payload.read([(0, payload.size)])[0], np.int64)


class ValuesByZone(Values):
    """The same values, with a vote for each zone."""

    def probe(self, probe, batch):
        rows = np.concatenate(list(self.values(batch))) == probe.what
        return ballot_of(np.split(rows, np.cumsum(batch.zone_rows)[:-1]))


class ValuesInSummary(Values):
    """The same values in the summary, which is asked before any payload, of blocks and, rolled up, of segments."""

    def summary_type(self, inputs, options):
        return pa.list_(pa.int64())

    def build(self, rows, zones, options):
        return Sidecar(rows.column(0).fill_null(-1).to_pylist(), None)

    def compile(self, what, inputs, options, context):
        made = super().compile(what, inputs, options, context)
        return Probe(made.what, cost=0.0) if isinstance(made, Probe) else made

    def roll_up(self, summaries):
        return pa.scalar(summaries.flatten().to_pylist(), pa.list_(pa.int64()))

    def values(self, batch):
        for unit in range(len(batch)):
            yield np.array(batch.summaries[unit].as_py(), np.int64)


def ballot_of(matches):
    """Votes of units whose every row is known. ``matches``: for each unit, bool, one per row."""
    rows = {unit: np.where(mask, np.uint8(ALL), np.uint8(NONE)) for unit, mask in enumerate(matches)}
    return Ballot(np.array([np.bitwise_or.reduce(votes) for votes in rows.values()], np.uint8), rows)


def content(seed=0) -> pa.Table:
    random = np.random.default_rng(seed)
    values = random.integers(0, 6, ROWS)
    values[57] = 99  # once, in the last zone but one of the second block
    return pa.table({"id": np.arange(ROWS), "c": pa.array(values, mask=random.random(ROWS) < 0.1)})


def table_of(kind, rows: pa.Table, **properties) -> Table:
    store = open_store(f"memory://rows-{uuid4().hex}")
    limits = {"block_rows": BLOCK, "zone_rows": ZONE} | properties
    table = Table(fuse_storage.StoredTable.create(store, SCHEMA, properties=limits), Host([min_max, kind]))
    table.create_index("mine", kind.name, ["c"])
    table.append(rows)
    return table


CONDITIONS = {
    "c = 3": lambda c: c == 3,
    "NOT (c = 3)": lambda c: c != 3,
    "c = 3 OR c = 2": lambda c: c in (2, 3),
    "c = 99": lambda c: c == 99,
    "NOT (c = 3 OR c = 99)": lambda c: c not in (3, 99),
    "c = 3 AND id >= 20 AND id < 60": None,
    "c <=> 3 OR id = 7": None,
    "c = 1000": lambda c: c == 1000,
}


@pytest.mark.parametrize("where", CONDITIONS)
@pytest.mark.parametrize("kind", [Values, ValuesByZone, ValuesInSummary])
def test_votes_on_rows_give_the_rows_of_a_full_scan(kind, where):
    table = table_of(kind, content())

    expected = table.scan(where, indexes=False).to_arrow()
    scan = table.scan(where, strict=True)

    assert scan.to_arrow().equals(expected)
    assert table.count(where) == expected.num_rows
    assert scan.explanation.rows.kept <= scan.explanation.rows.total == ROWS
    assert {vote.reason for vote in scan.explanation.votes} <= {
        Reason.USED,
        Reason.USED_NO_GAIN,
        Reason.NOT_NEEDED,
        Reason.LEAF_UNSUPPORTED,
    }
    if CONDITIONS[where] is not None:
        known = content().column("c").to_pylist()
        assert expected.num_rows == sum(c is not None and CONDITIONS[where](c) for c in known)


@pytest.mark.parametrize("kind", [Values, ValuesByZone, ValuesInSummary])
def test_only_the_rows_that_were_voted_for_are_read(kind):
    rows = content()
    rows = rows.set_column(1, "c", pc.fill_null(rows.column("c"), 0))
    table = table_of(kind, rows)

    explanation = table.explain("c = 3")

    assert explanation.rows.kept == pc.sum(pc.equal(rows.column("c"), 3)).as_py()


@pytest.mark.parametrize("kind", [Values, ValuesByZone, ValuesInSummary])
def test_an_explanation_counts_the_rows_that_an_index_removed_of_zones_that_are_read(kind):
    values = [row % 5 for row in range(ROWS)]  # each value in every zone
    table = table_of(kind, pa.table({"id": np.arange(ROWS), "c": values}))

    explanation = table.explain("c = 3")

    vote = next(vote for vote in explanation.votes if vote.index == "mine")
    assert explanation.rows.kept == ROWS // 5
    assert vote.reason is Reason.USED
    assert (vote.blocks_removed, vote.zones_removed, vote.rows_removed) == (0, 0, ROWS - ROWS // 5)
    assert vote.to_dict()["rows_removed"] == 80
    assert str(explanation).splitlines()[-1].endswith("80 rows removed")


@pytest.mark.parametrize("kind", [Values, ValuesByZone, ValuesInSummary])
def test_deleted_rows_stay_deleted_where_single_rows_are_voted_on(kind):
    table = table_of(kind, content(), **{"delete_mode": "merge-on-read"})
    table.delete("id >= 50 AND id < 55 OR id = 3")

    for where in CONDITIONS:
        expected = table.scan(where, indexes=False).to_arrow()

        assert table.scan(where, strict=True).to_arrow().equals(expected)
        assert table.count(where) == expected.num_rows


class TooFewRows(Values):
    def probe(self, probe, batch):
        ballot = super().probe(probe, batch)
        return Ballot(ballot.bits, {unit: votes[:-1] for unit, votes in ballot.rows.items()})


class DeniesItsRows(Values):
    """Its votes on blocks rule out what its votes on their rows leave possible."""

    def probe(self, probe, batch):
        return Ballot(np.full(len(batch), NONE, np.uint8), super().probe(probe, batch).rows)


class NoVote(Values):
    """Votes of 99, which are none."""

    def probe(self, probe, batch):
        return Ballot(np.full(len(batch), 99, np.uint8))


@pytest.mark.parametrize(
    ("kind", "message"),
    [(TooFewRows, "29 row votes for unit 0"), (DeniesItsRows, "unit 0 the vote 2"), (NoVote, "with a 99")],
)
def test_votes_of_a_wrong_form_are_a_failure_of_the_kind(kind, message):
    table = table_of(kind, content())
    expected = table.scan("c = 3", indexes=False).to_arrow()

    found = table.scan("c = 3")

    assert found.to_arrow().equals(expected)
    vote = next(vote for vote in found.explanation.votes if vote.index == "mine")
    assert vote.reason is Reason.PLUGIN_ERROR
    assert message in vote.detail
    with pytest.raises(IndexFault, match="mine"):
        table.scan("c = 3", strict=True)


def test_a_vote_on_a_block_may_be_wider_than_those_on_its_rows():
    class Lazy(Values):
        def probe(self, probe, batch):
            return Ballot(np.full(len(batch), SOME, np.uint8), super().probe(probe, batch).rows)

    rows = content()
    table = table_of(Lazy, rows)

    assert table.scan("c = 99", strict=True).explanation.zones.kept == 1
