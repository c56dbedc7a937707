"""Whether keys of a join could leave anything out is known before there are any."""

import time
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.registry import Host
from fuse_index.plugin import Ballot, IndexKind, Probe, Sidecar
from fuse_index.predicate import Cast, Column, JsonPath, Literal, Term
from fuse_index.pruning.calls import budget
from fuse_index.pruning.calls.budget import TimeoutMemory
from fuse_index.spark.native.join_keys import may_prune_by_keys
from fuse_plugins import min_max

BLOCKS, ROWS = 6, 200
RISING = np.arange(BLOCKS * ROWS)
SHUFFLED = np.random.default_rng(7).permutation(RISING)
FIRST = date(2020, 1, 1)


def judge(folder: Path, values: Any, term: Term | None = None, *indexes: tuple[str, dict[str, Any]]) -> bool:
    """The judgement on a table with one column ``v``, by default on the column itself."""
    rows = pa.table({"v": values})
    table = fuse.create_table(str(folder / "t"), rows.schema, properties={"block_rows": ROWS})
    table.append(rows)
    for kind, options in indexes:
        table.create_index(kind, kind, ["v"], **options)
    term = term or Column(("v",), rows.schema.field("v").type)
    (judged,) = may_prune_by_keys(table.stored, [term], Engine(table.host))
    return judged


ORDERED = {
    "integers": pa.array(RISING),
    "floats": pa.array(RISING / 3),
    "texts": pa.array([f"{number:06}" for number in RISING]),
    "bytes": pa.array([b"%06d" % number for number in RISING]),
    "days": pa.array([FIRST + timedelta(int(number)) for number in RISING]),
    "times": pa.array(RISING * 1_000_000, pa.timestamp("us", "UTC")),
    "decimals": pa.array([Decimal(int(number)) for number in RISING], pa.decimal128(10, 0)),
    "nulls among them": pa.array([None if number % 50 == 0 else int(number) for number in RISING]),
    "nothing but nulls": pa.nulls(len(RISING), pa.int64()),
    "values in one block alone": pa.array(
        [int(number) if number < ROWS else None for number in SHUFFLED[:ROWS].tolist() + RISING[ROWS:].tolist()]
    ),
    "nulls alone in one block": pa.array([None if number < ROWS else int(number) for number in RISING]),
}


@pytest.mark.parametrize("name", ORDERED)
def test_keys_of_a_column_whose_blocks_differ_may_prune(tmp_path: Path, name: str) -> None:
    assert judge(tmp_path, ORDERED[name])


UNORDERED = {
    "integers": pa.array(SHUFFLED),
    "texts": pa.array([f"{number:06}" for number in SHUFFLED]),
    "one value": pa.array(np.zeros(len(RISING), np.int64)),
    "booleans": pa.array(SHUFFLED % 2 == 0),
    "lists": pa.array([[int(number)] for number in RISING]),
}


@pytest.mark.parametrize("name", UNORDERED)
def test_keys_of_a_column_in_no_order_prune_nothing(tmp_path: Path, name: str) -> None:
    assert not judge(tmp_path, UNORDERED[name])


def test_lists_that_are_keys_beside_a_column_leave_that_one_its_index(tmp_path: Path) -> None:
    """A judgement on them failed where the table had any index, and the other keys of the join were not told either."""
    rows = pa.table({"v": SHUFFLED, "tags": UNORDERED["lists"]})
    table = fuse.create_table(tmp_path, rows.schema, properties={"block_rows": ROWS})
    table.append(rows)
    table.create_index("by_v", "bloom", ["v"])
    keys = [Column((name,), rows.schema.field(name).type) for name in ("tags", "v")]
    assert may_prune_by_keys(table.stored, keys, Engine(table.host)) == [False, True]


@pytest.mark.every_spark
@pytest.mark.parametrize("name", ["integers", "texts"])
def test_an_index_makes_them_prune(tmp_path: Path, name: str) -> None:
    assert judge(tmp_path, UNORDERED[name], None, ("bloom", {}))


@pytest.mark.every_spark
def test_terms_are_judged_by_who_understands_them(tmp_path: Path) -> None:
    number, text = Column(("v",), pa.int64()), Column(("v",), pa.string())
    documents = pa.array([f'{{"n": "x{key}"}}' for key in SHUFFLED])
    path, other = JsonPath(text, "$.n"), JsonPath(text, "$.m")
    by_path = ("json_path", {"paths": ["$.n"]})

    assert judge(tmp_path / "1", RISING.astype(np.int32), Cast(Column(("v",), pa.int32()), pa.int64()))
    assert judge(tmp_path / "2", documents, path, by_path)
    assert not judge(tmp_path / "3", documents, other, by_path)
    assert not judge(tmp_path / "4", documents, path)
    assert not judge(tmp_path / "5", RISING, Literal(1, pa.int64()))
    assert judge(tmp_path / "6", RISING, number)


@pytest.mark.every_spark
def test_one_zone_is_read_or_not_whatever_the_key(tmp_path: Path) -> None:
    assert not judge(tmp_path, pa.array([1, 2, 3]))


def test_an_empty_table_has_nothing_to_leave_out(tmp_path: Path) -> None:
    assert not judge(tmp_path, pa.array([], pa.int64()))


class Slow(IndexKind):
    """Takes a while to say that it understands a comparison, and counts how often it is asked."""

    name = "slow"
    asked = 0

    def build(self, rows, zones, options):
        return Sidecar(None, b"one")

    def compile(self, what, inputs, options, context):
        type(self).asked += 1
        time.sleep(0.3)
        return Probe(what, cost=1.0)

    def probe(self, probe, batch):
        return Ballot.unknown(len(batch))


@pytest.mark.parametrize(("seconds", "may"), [(0.05, False), (60, True)])
def test_indexes_have_as_long_as_the_table_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, may: bool
) -> None:
    monkeypatch.setattr(budget, "TIMEOUTS", TimeoutMemory())
    monkeypatch.setattr(Slow, "asked", 0)
    host = Host([min_max, Slow])
    properties = {"block_rows": ROWS, "index_seconds": seconds}
    rows = pa.table({"v": UNORDERED["integers"], "w": UNORDERED["integers"]})
    table = fuse.create_table(str(tmp_path / "t"), rows.schema, properties=properties, host=host)
    table.append(rows)
    table.create_index("slow", "slow", ["v"])
    table.create_index("slower", "slow", ["w"])
    terms = [Column(("v",), pa.int64()), None, Column(("w",), pa.int64())]

    assert may_prune_by_keys(table.stored, terms, Engine(host)) == [may, False, may]
    assert Slow.asked == 2 if may else Slow.asked < 2  # one budget for all keys of a join
