"""What is read and what is not, counted: segments, blocks, zones, requests. And why, in the explanation."""

import json
import time
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

import fuse_storage
from fuse_index.errors import IndexFault
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.registry import Host
from fuse_index.plugin import ALL, NONE, Ballot, IndexKind, Probe, Refusal, Sidecar
from fuse_index.predicate import Compare
from fuse_index.pruning.planner import plan_scan
from fuse_index.reasons import Reason
from fuse_index.sql.parse import parse_predicate
from fuse_index.table.table import Table
from fuse_plugins import bloom, min_max
from fuse_storage import MeteredStore, open_store

ROWS, BLOCK, ZONE = 240, 24, 6
SCHEMA = pa.schema([("id", pa.int64()), ("key", pa.string()), ("even", pa.bool_()), ("some", pa.int32())])


class Kind(IndexKind):
    """A kind of the tests' own: keeps the least id of a block in a payload, and votes as its subclass says."""

    name = "own"

    def build(self, rows, zones, options):
        return Sidecar(None, str(rows.column(0)[0].as_py()).encode())

    def compile(self, what, inputs, options, context):
        return Probe(what, cost=10.0) if isinstance(what, Compare) else Refusal(Reason.LEAF_UNSUPPORTED, "only =")

    def probe(self, probe, batch):
        raise NotImplementedError


class Exact(Kind):
    """Knows the rows: every 24th row of the table begins a block."""

    def probe(self, probe, batch):
        wanted = probe.what.right.value
        rows = {}
        bits = np.full(len(batch.zone_rows), NONE, np.uint8)
        for unit in range(len(batch)):
            first = int(batch.payload(unit).read([(0, batch.payload(unit).size)])[0])
            for zone in range(batch.zone_offsets[unit], batch.zone_offsets[unit + 1]):
                start = first + int(batch.zone_rows[batch.zone_offsets[unit] : zone].sum())
                here = np.arange(start, start + batch.zone_rows[zone]) == wanted
                if here.any():
                    bits[zone], rows[zone] = NONE | ALL, np.where(here, ALL, NONE).astype(np.uint8)
        return Ballot(bits, rows)


class Raising(Kind):
    def probe(self, probe, batch):
        raise RuntimeError("lost my notes")


class WrongLength(Kind):
    def probe(self, probe, batch):
        return Ballot.constant(len(batch.zone_rows) + 1, NONE)


class Lying(Kind):
    def probe(self, probe, batch):
        return Ballot.constant(len(batch), ALL)


class Counting(Kind):
    asked = 0

    def probe(self, probe, batch):
        type(self).asked += len(batch)
        return Ballot.unknown(len(batch))


class Slow(Kind):
    def probe(self, probe, batch):
        time.sleep(30)


def rows() -> pa.Table:
    ids = np.arange(ROWS)
    keys = [f"k{i}" for i in np.random.default_rng(1).permutation(ROWS)]
    some = [None if i < BLOCK else i % 5 for i in range(ROWS)]
    return pa.table({"id": ids, "key": keys, "even": ids % 2 == 0, "some": pa.array(some, pa.int32())})


def table_of(*kinds, **properties) -> Table:
    host = Host([min_max, bloom, *kinds])
    store = MeteredStore(open_store(f"memory://plan-{uuid4().hex}"))
    limits = {"block_rows": BLOCK, "zone_rows": ZONE} | properties
    return Table(fuse_storage.StoredTable.create(store, SCHEMA, properties=limits), host)


@pytest.fixture
def table() -> Table:
    """Ten blocks of four zones, a bloom on the key."""
    made = table_of()
    made.create_index("by_key", "bloom", ["key"])
    made.append(rows())
    return made


def kept(table: Table, where: str) -> tuple[int, int]:
    found = table.explain(where).to_dict()
    return found["blocks"]["kept"], found["zones"]["kept"]


def reason(table: Table, where: str, index: str) -> Reason:
    return next(vote.reason for vote in table.explain(where).votes if vote.index == index)


@pytest.mark.parametrize(
    ("where", "blocks", "zones"),
    [
        ("id = 30", 1, 1),
        ("id BETWEEN 20 AND 30", 2, 3),
        ("id > 500", 0, 0),
        ("NOT (id >= 24)", 1, 4),
        ("id IN (1, 100, 101, 1000)", 2, 2),
        ("id = 3 OR id = 200", 2, 2),
        ("some IS NULL", 1, 4),
        ("some IS NOT NULL AND id < 30", 1, 1),
        ("some = NULL", 0, 0),
        ("id < 10 AND id > 20", 0, 0),
        ("even = true", 10, 40),
    ],
)
def test_statistics_of_blocks_and_zones_skip(table, where, blocks, zones):
    assert kept(table, where) == (blocks, zones)


def test_a_needle_is_found_in_one_zone(table):
    found = table.explain("key = 'k17'").to_dict()

    assert found["blocks"] == {"total": 10, "kept": 1}
    assert found["zones"] == {"total": 40, "kept": 1}
    assert found["rows"] == {"total": ROWS, "kept": ZONE}


def test_a_needle_that_is_not_there_reads_no_row(table):
    assert table.scan("key = 'nobody'").count() == 0
    assert kept(table, "key = 'nobody'") == (0, 0)


def test_a_segment_that_cannot_match_is_never_opened():
    table = table_of(segment_blocks=2)
    table.append(rows())
    fuse_storage.process_cache.clear()
    reads = table.stored.store
    reads.reset()

    assert table.explain("id = 30").segments.to_dict() == {"total": 5, "kept": 1}
    assert sum(key.startswith("_sg/") and not key.endswith(".zones.parquet") for _, key, _ in reads.reads) == 1


def test_counting_what_every_row_matches_reads_no_block(table):
    table.stored.store.reset()

    assert table.scan("id >= 24").count() == ROWS - BLOCK
    assert not [key for _, key, _ in table.stored.store.reads if key.startswith("_b/")]


def test_a_limit_opens_no_more_blocks_than_it_needs(table):
    table.stored.store.reset()

    assert table.scan(limit=5).to_arrow().num_rows == 5
    assert len({key for _, key, _ in table.stored.store.reads if key.startswith("_b/")}) == 1


def test_only_needed_columns_of_kept_zones_are_read(table):
    fuse_storage.process_cache.clear()
    narrow, wide = table.scan("id = 30", columns=["key"]), table.scan("id >= 0")
    store = table.stored.store
    store.reset()
    narrow.to_arrow()
    few = sum(size for _, key, size in store.reads if key.startswith("_b/"))
    store.reset()
    wide.to_arrow()

    assert few * 5 < sum(size for _, key, size in store.reads if key.startswith("_b/"))


def test_an_index_that_knows_rows_leaves_nothing_to_filter():
    table = table_of(Exact)
    table.create_index("rows", "own", ["id"])
    table.append(rows())
    plan = table.scan("id = 31").plan

    assert int(plan.explanation.rows.kept) == 1
    assert plan.always_matching_zones[plan.zones].all()
    assert table.scan("id = 31").to_arrow().column("id").to_pylist() == [31]
    assert table.scan("id = 31").count() == 1


WRONG = [(Raising, Reason.PLUGIN_ERROR), (WrongLength, Reason.PLUGIN_ERROR), (Lying, Reason.CORRUPT)]


@pytest.mark.parametrize(("kind", "expected"), WRONG)
def test_an_index_that_is_wrong_costs_time_and_says_why(kind, expected):
    table = table_of(kind)
    table.create_index("mine", "own", ["id"])
    table.append(rows())

    assert table.scan("id = 31 OR key = 'x'").to_arrow().column("id").to_pylist() == [31]
    assert table.scan("id = 31").to_arrow().column("id").to_pylist() == [31]
    assert reason(table, "id = 31", "mine") is expected
    with pytest.raises(IndexFault, match="mine"):
        table.scan("id = 31", strict=True)


def test_an_index_that_hangs_is_left_behind():
    table = table_of(Slow)
    table.create_index("slow", "own", ["id"])
    table.append(rows())

    predicate = parse_predicate("id = 31", table.snapshot.schema)

    made = plan_scan(table.stored, predicate, Engine(table.host), budget=0.3)

    assert next(vote.reason for vote in made.explanation.votes if vote.index == "slow") is Reason.TIMEOUT
    assert len(made.blocks) == 1


def test_payloads_are_asked_only_where_a_vote_could_still_skip():
    table = table_of(Counting)
    table.create_index("counted", "own", ["id"])
    table.append(rows())
    Counting.asked = 0

    assert reason(table, "id = 31 OR length(key) > 1", "counted") is Reason.NOT_NEEDED
    assert Counting.asked == 0
    assert reason(table, "id = 31", "counted") is Reason.USED_NO_GAIN
    assert Counting.asked == 1


@pytest.mark.parametrize(
    ("where", "index", "expected"),
    [
        ("key = 'k3'", "by_key", Reason.USED),
        ("key > 'k3'", "by_key", Reason.LEAF_UNSUPPORTED),
        ("soundex(key) = 'a'", "", Reason.LEAF_UNSUPPORTED),
        ("id = 30", "min_max", Reason.USED),
        ("some IS NULL", "null_counts", Reason.USED),
    ],
)
def test_every_leaf_says_who_was_asked_and_what_came_of_it(table, where, index, expected):
    assert reason(table, where, index) is expected


def test_blocks_that_are_not_indexed_are_read_and_named():
    table = table_of()
    table.append(rows())
    table.create_index("late", "bloom", ["key"], build=False)

    assert kept(table, "key = 'k17'")[0] == 10
    assert reason(table, "key = 'k17'", "late") is Reason.BLOCK_NOT_INDEXED


def test_without_indexes_everything_is_read(table):
    scan = table.scan("key = 'k17'", indexes=False)

    assert scan.explanation.blocks.to_dict() == {"total": 10, "kept": 10}
    assert scan.to_arrow().num_rows == 1
    assert {vote.reason for vote in scan.explanation.votes} == {Reason.DISABLED}


def test_an_explanation_is_one_value_for_every_reader(table):
    explanation = table.explain("key = 'k17' AND id > 3")
    found = explanation.to_dict()

    assert json.loads(json.dumps(found)) == found
    assert {"snapshot", "segments", "blocks", "zones", "rows", "bytes", "predicates"} <= found.keys()
    assert {"leaf", "index", "kind", "blocks_removed", "reason"} <= found["predicates"][0].keys()
    assert "by_key" in str(explanation)
    assert "<table>" in explanation._repr_html_()


def test_a_joint_range_skips_what_its_halves_cannot():
    table = table_of(block_rows=2, zone_rows=2)
    pairs = pa.table(
        {"id": [1, 100, 30, 31], "key": ["a"] * 4, "even": [True] * 4, "some": pa.array([1] * 4, pa.int32())}
    )
    table.append(pairs)

    assert kept(table, "id > 10 AND id < 50") == (2, 2)
    assert kept(table, "id > 200 AND id < 50") == (0, 0)


def test_an_empty_table_is_planned_and_read():
    table = table_of()

    assert table.scan("id = 1").to_arrow().num_rows == 0
    assert table.scan().count() == 0
