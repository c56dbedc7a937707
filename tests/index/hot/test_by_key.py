"""A table with a primary key has at most one row for each key, in every reader, in every state."""

from __future__ import annotations

import datetime
import inspect
import random
import uuid
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_index import InputError
from fuse_index.statements.keyed_rows import KeyedRows
from fuse_index.table.maintenance import Maintenance
from fuse_index.table.tier import start_tiering
from fuse_storage import Conflict, SchemaError, StoredTable, meter_requests, open_store
from fuse_storage.hot_commit import append as hot_append
from fuse_storage.primary_key import hidden_rows
from fuse_storage.testing import check_invariants
from tests.effort import effort

Row = dict[str, Any]
Model = dict[Any, Row]


@pytest.fixture
def url() -> str:
    return f"memory://{uuid.uuid4().hex}"


def make(url: str, partitions: Sequence[str] = (), **properties: Any) -> fuse.Table:
    columns, key = "id BIGINT, part STRING, name STRING, n INT", ["id", "part"]
    properties = {"block_rows": 40, "zone_rows": 10, **properties}
    return fuse.create_table(url, columns, primary_key=key, partition_by=list(partitions), properties=properties)


def key_of(row: Row) -> tuple[int, str]:
    return row["id"], row["part"]


def some_rows(chance: random.Random, count: int) -> list[Row]:
    draw = chance.randrange
    return [
        {"id": draw(60), "part": f"p{draw(3)}", "name": f"{draw(9)} apples" if draw(5) else None, "n": draw(10)}
        for _ in range(count)
    ]


def as_model(rows: pa.Table) -> Model:
    found = {key_of(row): row for row in rows.to_pylist()}
    assert len(found) == rows.num_rows, "a key has two rows"
    return found


def check_readers(table: fuse.Table, model: Model, chance: random.Random) -> None:
    """Every way of reading says what the model says."""
    few = [row for row in model.values() if row["n"] < 4]
    sought = [{"id": chance.randrange(70), "part": f"p{chance.randrange(3)}"} for _ in range(12)]
    there = [model[key_of(key)] for key in sought if key_of(key) in model]
    totals = table.aggregate([], ["count(*)", "sum(n)", "max(id)"]).to_pylist()[0]
    found = {
        "scan": as_model(table.scan().to_arrow()),
        "no indexes": as_model(table.scan(indexes=False).to_arrow()),
        "count": table.count(),
        "few": sorted(table.scan("n < 4", ["name"]).to_arrow().column("name").to_pylist(), key=str),
        "few counted": table.count("n < 4"),
        "name": as_model(table.scan("name = '3 apples'").to_arrow()),
        "limit": table.scan(limit=5).to_arrow().num_rows,
        "totals": (totals["count(*)"], totals["sum(n)"], totals["max(id)"]),
        "groups": {row["part"]: row["count(*)"] for row in table.aggregate(["part"], ["count(*)"]).to_pylist()},
        "search": {key_of(row) for row in table.search("name", "apples", limit=1000).to_pylist()},
        "lookup": table.lookup(sought).to_pylist(),
        "lookup names": table.lookup(sought, ["name"]).to_pylist(),
    }
    assert found == {
        "scan": model,
        "no indexes": model,
        "count": len(model),
        "few": sorted((row["name"] for row in few), key=str),
        "few counted": len(few),
        "name": {key: row for key, row in model.items() if row["name"] == "3 apples"},
        "limit": min(5, len(model)),
        "totals": (
            len(model),
            sum(row["n"] for row in model.values()) if model else None,
            max((row["id"] for row in model.values()), default=None),
        ),
        "groups": {part: n for part in ("p0", "p1", "p2") if (n := sum(key[1] == part for key in model))},
        "search": {key for key, row in model.items() if "apples" in str(row["name"])},
        "lookup": there,
        "lookup names": [{"name": row["name"]} for row in there],
    }


def check_changes(table: fuse.Table, states: list[tuple[int, Model]], chance: random.Random) -> None:
    """The changes between two states are what the model says: nothing of a put of an equal row, pairs by the key."""
    (since, before), (until, after) = sorted(chance.sample(states, 2), key=lambda state: state[0])
    told = table.changes(
        fuse.open_table(table.stored.store, version=since).snapshot.id,
        fuse.open_table(table.stored.store, version=until).snapshot.id,
    ).to_arrow()
    expected = []
    for key in before.keys() | after.keys():
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        pair = ("update_preimage", "update_postimage") if old and new else ("delete", "insert")
        expected += [(pair[0], old)] if old else []
        expected += [(pair[1], new)] if new else []
    names = ("id", "part", "name", "n")
    found = [(row["_change_type"], {name: row[name] for name in names}) for row in told.to_pylist()]
    assert sorted(found, key=str) == sorted(expected, key=str)


class Walk:
    """A table, and what it should be."""

    def __init__(self, url: str, seed: int) -> None:
        self.chance, self.model = random.Random(seed), Model()
        self.partitions = self.chance.choice([[], ["part"]])
        self.table = make(url, self.partitions, delete_mode=self.chance.choice(["copy-on-write", "merge-on-read"]))
        self.table.create_index("names", "bloom", ["name"])
        self.table.create_index("words", "full_text", ["name"])
        self.table.create_index("sums", "aggregate", ["part"], aggregates=["count(*)", "sum(n)", "max(id)"])
        self.states: list[tuple[int, Model]] = []

    def upsert(self) -> None:
        rows = some_rows(self.chance, self.chance.randrange(1, 70))
        (self.table.upsert if self.chance.random() < 0.7 else self.table.append)(rows)
        self.model |= {key_of(row): row for row in rows}

    def upsert_in_part(self) -> None:
        rows = {key_of(row): row for row in some_rows(self.chance, self.chance.randrange(1, 40))}
        self.table.upsert([{name: value for name, value in row.items() if name != "name"} for row in rows.values()])
        self.model |= {key: row | {"name": self.model.get(key, {}).get("name")} for key, row in rows.items()}

    def delete_keys(self) -> None:
        gone = [key_of(row) for row in some_rows(self.chance, self.chance.randrange(1, 40))]
        self.table.delete_keys([dict(zip(("id", "part"), key, strict=True)) for key in gone])
        self.model = {key: row for key, row in self.model.items() if key not in gone}

    def delete(self) -> None:
        number = self.chance.randrange(10)
        self.table.delete(f"n = {number} AND id > 20")
        self.model = {key: row for key, row in self.model.items() if row["n"] != number or row["id"] <= 20}

    def delete_whole_blocks(self) -> None:
        """Delete rows of which blocks may hold no other: of a part, of a range of keys, or all."""
        first = self.chance.randrange(60)
        wheres: dict[str, Callable[[Row], bool]] = {
            "part = 'p1'": lambda row: row["part"] == "p1",
            "part <> 'p1' AND n < 9": lambda row: row["part"] != "p1" and row["n"] < 9,
            f"id BETWEEN {first} AND {first + 30}": lambda row: first <= row["id"] <= first + 30,
            "true": lambda row: True,
        }
        where = self.chance.choices(list(wheres), [4, 2, 4, 1])[0]
        before, version = len(self.model), self.table.version
        after = self.table.delete(where)
        self.model = {key: row for key, row in self.model.items() if not wheres[where](row)}
        if after.operation == "delete" and after.version > version:
            assert after.summary["deleted_rows"] == before - len(self.model)

    def update(self) -> None:
        number = self.chance.randrange(10)
        self.table.update(f"n = {number}", {"n": "n + 1", "name": "'new'"})
        self.model |= {
            key: row | {"n": number + 1, "name": "new"} for key, row in self.model.items() if row["n"] == number
        }

    def tier(self) -> None:
        self.table.maintenance.tier()
        assert self.table.tail.blocks == 0

    def tier_from_an_older_plan(self) -> None:
        job = start_tiering(self.table)
        outcomes = [job.run(task) for task in job.plan_tasks()]
        self.upsert()
        while job.commit(outcomes):
            outcomes = [job.run(task) for task in job.plan_tasks()]
        self.table.refresh()

    def compact(self) -> None:
        self.table.maintenance.compact()

    def recluster(self) -> None:
        self.table.maintenance.recluster(depth=1)

    def index(self) -> None:
        self.table.maintenance.refresh_index("names")

    def tag(self) -> None:
        self.table.tag(f"tag-{len(self.states)}-{uuid.uuid4().hex[:6]}")

    def restore(self) -> None:
        version, model = self.chance.choice(self.states)
        self.table.restore(fuse.open_table(self.table.stored.store, version=version).snapshot.id)
        self.model = dict(model)

    def merge(self) -> None:
        rows = {key_of(row): row for row in some_rows(self.chance, self.chance.randrange(1, 30))}
        least, others = self.chance.randrange(10), self.chance.choice([None, {"delete": "target.id < 5"}])
        matched = {"delete": f"source.n < {least}", "update": "source.n > target.n"}
        self.table.merge(list(rows.values()), ["part", "id"], matched, "insert", others)
        for key, row in list(self.model.items()):
            if key in rows and rows[key]["n"] >= least and rows[key]["n"] > row["n"]:
                self.model[key] = rows[key]
            elif (key in rows and rows[key]["n"] < least) or (key not in rows and others and key[0] < 5):
                del self.model[key]
            rows.pop(key, None)
        self.model |= rows

    def overwrite(self) -> None:
        self.model = {key_of(row): row for row in some_rows(self.chance, 100)}
        self.table.overwrite(list(self.model.values()))
        assert self.table.tail.blocks == 0


STEPS = (
    [Walk.upsert] * 5
    + [
        Walk.merge,
        Walk.merge,
        Walk.overwrite,
        Walk.upsert_in_part,
        Walk.delete_keys,
        Walk.delete,
        Walk.delete_whole_blocks,
        Walk.delete_whole_blocks,
        Walk.update,
        Walk.tag,
        Walk.restore,
        Walk.recluster,
    ]
    + [Walk.tier, Walk.tier, Walk.tier_from_an_older_plan, Walk.compact, Walk.index, Walk.delete_keys]
)


@pytest.mark.parametrize("seed", range(effort(2)))
def test_each_reader_sees_one_row_for_each_key_whatever_happened(url: str, seed: int) -> None:
    walk = Walk(url, seed)
    for number in range(12):
        step = walk.upsert if number < 2 else walk.chance.choice(STEPS).__get__(walk)
        step()
        check_readers(walk.table, walk.model, walk.chance)
        walk.states.append((walk.table.version, dict(walk.model)))
        if number % 3 == 2:
            check_changes(walk.table, walk.states, walk.chance)
    check_invariants(walk.table.stored)
    for version, model in walk.states:
        assert as_model(fuse.open_table(url, version=version).scan().to_arrow()) == model
    again = StoredTable.open(walk.table.stored.store)
    base = fuse.open_table(url, tail=False)
    assert len(as_model(base.scan().to_arrow())) == base.count()
    features = {"primary-key", "partitions"} if walk.partitions else {"primary-key"}
    assert set(again.snapshot.writer_features) == features
    copy = walk.table.clone(f"{url}-copy")
    assert as_model(copy.scan().to_arrow()) == walk.model
    copy.upsert([{"id": 0, "part": "p0", "name": "mine", "n": 1}])
    copy.maintenance.tier()
    assert as_model(copy.scan().to_arrow()) == walk.model | {(0, "p0"): {"id": 0, "part": "p0", "name": "mine", "n": 1}}


# --- every way of writing is right, or refused

WRITES: dict[str, Callable[[fuse.Table], Any]] = {
    "append": lambda table: table.append(ROWS),
    "upsert": lambda table: table.upsert(ROWS),
    "apply": lambda table: table.apply([row | {"_change_type": "insert"} for row in ROWS]),
    "delete_keys": lambda table: table.delete_keys([5, 500]),
    "delete": lambda table: table.delete("n = 1"),
    "merge": lambda table: table.merge(ROWS, matched={"delete": "target.n = 1", "update": None}),
    "overwrite": lambda table: table.overwrite([*ROWS, {"id": 7, "name": "seven", "n": 1}]),
    "update": lambda table: table.update("n = 1", {"n": "7"}),
    "tier": lambda table: table.maintenance.tier(),
    "compact": lambda table: table.maintenance.compact(),
    "recluster": lambda table: table.maintenance.recluster(),
    "restore": lambda table: table.restore(table.history().column("snapshot")[3].as_py()),
    "producer": lambda table: send(table),
    "set_properties": lambda table: table.set_properties({"hot_rows": 7}),
    "add_column": lambda table: table.add_column("more", "int"),
    "create_index": lambda table: table.create_index("by_n", "bloom", ["n"]),
}
REFUSED: dict[str, tuple[Callable[[fuse.Table], Any], str]] = {
    "overwrite in part": (lambda table: table.overwrite(ROWS[:1], "n = 1"), "delete what is to go, and upsert"),
    "overwrite with a key twice": (lambda table: table.overwrite([*ROWS, *ROWS]), "the key {'id': 5.*} comes twice"),
    "overwrite of columns": (lambda table: table.overwrite(ROWS, merge_schema=True), "added by add_column"),
    "overwrite with NULL": (lambda table: table.overwrite([{"id": None, "name": "x", "n": 1}]), "'id' is NOT NULL"),
    "merge by another column": (lambda table: table.merge(ROWS, ["name"]), "merged by it, .*'id'"),
    "merge by more columns": (lambda table: table.merge(ROWS, ["id", "name"]), "merged by it, .*'id'"),
    "merge of columns": (lambda table: table.merge([ROWS[0] | {"x": 1}], merge_schema=True), "added by add_column"),
    "merge of two new rows": (lambda table: table.merge([ROWS[1], ROWS[1]]), "comes twice in one commit"),
    "merge of two rows": (lambda table: table.merge([ROWS[0], ROWS[0]]), "several rows of the source match"),
    "merge of NULL": (lambda table: table.merge([{"id": None, "name": "x", "n": 1}]), "'id' is NOT NULL"),
    "rewriting behind the key": (
        lambda table: table.stored.transaction().overwrite(staged_rows(table)).commit("overwrite"),
        "'overwrite' adds or changes rows without regard",
    ),
    "update of the key": (lambda table: table.update("n = 1", {"id": "7"}), "'id' is of the primary key"),
    "append that is not hot": (lambda table: table.append(ROWS, hot=False), "no hot=False"),
    "append of columns": (lambda table: table.append([ROWS[0] | {"x": 1}], merge_schema=True), "no .*merge_schema"),
    "key_by": (lambda table: table.key_by(["name"]), "stays that of its table"),
    "no key": (lambda table: table.key_by(None), "stays that of its table"),
    "nullable": (lambda table: table.set_nullable("id", True), "it is never NULL"),
    "another type": (lambda table: table.change_type("id", "bigint"), "its type stays"),
    "drop": (lambda table: table.drop_column("id"), "of the primary key .'id'., which stays"),
    "property": (lambda table: table.set_properties({"key_ids": None}), "key_ids"),
    "NULL": (lambda table: table.upsert([{"id": None, "name": "x", "n": 1}]), "'id' is NOT NULL"),
    "no such key": (lambda table: table.delete_keys([{"id": 1, "name": "x"}]), "the primary key is"),
    "rows without a key": (lambda table: table.upsert([{"name": "x"}]), "the rows lack column 'id'"),
    "dicts of other columns": (lambda table: table.upsert([ROWS[0], {"id": 6, "n": 2}]), "lacks 'name', which other"),
    "dicts of other columns, one by one": (
        lambda table: table.upsert(iter([ROWS[0], {"id": 6}])),
        "lacks 'name', which",
    ),
    "lists of such": (lambda table: table.append([ROWS[:1], [ROWS[1], {"id": 6}]]), "lacks 'name', which other"),
    "such by a producer": (lambda table: send(table, [ROWS[0], {"id": 6, "n": 2}]), "lacks 'name', which other"),
    "changes of other columns": (
        lambda table: table.apply([{**ROWS[0], "_change_type": "insert"}, {"id": 6, "_change_type": "insert"}]),
        "lacks 'name', which other",
    ),
    "versions of another type": (
        lambda table: table.apply([{"id": 1, "_change_type": "insert", "_commit_version": "late"}]),
        "'_commit_version' is to be int64.*late",
    ),
    "kinds of another type": (lambda table: table.apply([{"id": 1, "_change_type": {"a": 1}}]), "is to be string"),
    "a key that is a list": (
        lambda table: table.apply({"id": pa.array([[1]]), "_change_type": ["delete"]}),
        "'id' is int32",
    ),
    "unknown columns": (lambda table: table.upsert([{"id": 1, "nam": "x"}]), "nam"),
    "unknown changes": (lambda table: table.apply([{"id": 1, "_change_type": "gone"}]), "_change_type 'gone'"),
    "no changes": (lambda table: table.apply([{"id": 1}]), "_change_type"),
    "append behind the key": (
        lambda table: hot_append.append_hot(table.stored, pa.table({"id": [1], "name": ["x"], "n": [1]})),
        "put and deleted by their keys",
    ),
    "columns of one name": (
        lambda table: table.upsert(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["id", "id"])),
        "more than one column called 'id'",
    ),
    "a fraction of a key": (lambda table: table.delete_keys([5.5]), "'id' holds values that are no int32"),
    "primary_key as a property": (lambda table: table.set_properties({"primary_key": "n"}), r"primary_key=\[...\]"),
    "almost so": (lambda table: table.set_properties({"primarykey": "n"}), "did you mean 'primary_key'"),
    "key twice": (
        lambda table: fuse.hot.append.commit_by_key(  # type: ignore[attr-defined]
            table.stored, table.host, table.to_arrow().slice(0, 1), table.to_arrow(columns=["id"]).slice(0, 1)
        ),
        "comes twice in one commit",
    ),
}
ROWS = [{"id": 5, "name": "five", "n": 1}, {"id": 500, "name": "more", "n": 2}]
OTHERS = (
    "aggregate branch change_type changes changing clone cluster_by convert count deleting diff drop_branch "
    "drop_column drop_index export_delta export_iceberg fast_forward head history key_by lookup merge_spec "
    "merging move_column overwriting producer refresh rename_column report scan search set_comment set_default "
    "set_nullable sync tag to_arrow to_pandas to_polars untag updating"
)


def staged_rows(table: fuse.Table) -> list[Any]:
    with table.stored.writer() as writer:
        writer.write(pa.table({"id": [5], "name": ["x"], "n": [1]}, table.schema))
        return writer.finish()


def send(table: fuse.Table, rows: list[Row] | None = None) -> None:
    with table.producer(linger=0.01) as producer:
        producer.send(rows or ROWS).result()


def made(url: str) -> fuse.Table:
    """A table with a base, a vector, and a tail of puts and deletes."""
    properties = {"block_rows": 40, "zone_rows": 10}
    table = fuse.create_table(url, "id INT, name STRING, n INT", primary_key=["id"], properties=properties)
    table.upsert([{"id": n, "name": f"old {n}", "n": n % 5} for n in range(100)])
    table.maintenance.tier()
    table.delete_keys([3])
    table.maintenance.tier()
    table.upsert([{"id": n, "name": f"new {n}", "n": n % 7} for n in range(50, 150, 3)])
    table.delete_keys([1, 2, 53])
    return table


def test_each_way_of_writing_keeps_one_row_for_each_key(url: str) -> None:
    table = made(url)
    for name, write in WRITES.items():
        write(table)
        for each in (table.refresh(), fuse.open_table(url)):
            ids = each.scan().to_arrow().column("id").to_pylist()
            assert len(ids) == len(set(ids)) == each.count(), name
    assert table.schema.field("id").nullable is False


@pytest.fixture(scope="module")
def keyed() -> fuse.Table:
    return made(f"memory://{uuid.uuid4().hex}")


@pytest.mark.parametrize("name", REFUSED)
def test_what_could_make_two_rows_of_one_key_is_refused_and_changes_nothing(keyed: fuse.Table, name: str) -> None:
    write, said = REFUSED[name]
    version, before = keyed.version, keyed.to_arrow()

    with pytest.raises((fuse.FuseIndexError, fuse.StorageError), match=said):
        write(keyed)

    after = fuse.open_table(keyed.stored.store)
    assert (after.version, after.to_arrow().equals(before)) == (version, True)


def test_no_public_method_was_forgotten() -> None:
    public = [
        {name for name, _ in inspect.getmembers(owner, inspect.isfunction) if not name.startswith("_")}
        for owner in (fuse.Table, Maintenance)
    ]

    assert public[0] - set(WRITES) - set(OTHERS.split()) == set()
    assert public[1] - set(WRITES) == {"rebuild_index", "refresh_index", "run", "vacuum", "verify_index"}


def test_a_restore_in_the_same_transaction_is_no_leave_to_add_rows_behind_the_key(url: str) -> None:
    table = made(url)
    earlier, stored = StoredTable.open(table.stored.store, version=2), table.stored
    rows = pa.table({"id": [5], "name": ["again"], "n": [1]})
    with stored.writer() as writer:
        writer.write(rows)
        staged = writer.finish()

    with pytest.raises(fuse.StorageError, match="without regard to the primary key"):
        stored.transaction().restore(earlier.snapshot).append(staged).commit()

    assert fuse.open_table(url).version == table.version


def test_a_full_tail_refuses_no_put_that_an_application_has_committed(url: str) -> None:
    table = make(url, tail_commits=1, tiering="job")
    row = {"id": 1, "part": "p", "name": "x", "n": 1}
    for version in (1, 2, 3):
        table.upsert([row], application=("job", version))

    assert table.upsert([row], application=("job", 3)).id == table.snapshot.id
    with pytest.raises(fuse.TailFull):
        table.upsert([row], application=("job", 4))


# --- keys


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("STRING", ["", "a", "ä" * 40, "ä" * 40 + "b", "z"]),
        ("BINARY", [b"", b"\x00", b"\xff" * 40, b"\xff" * 41, b"a"]),
        ("DECIMAL(20,2)", [Decimal("-1.50"), Decimal("0.00"), Decimal("1.00"), Decimal("9.99"), Decimal("123.45")]),
        ("DATE", [datetime.date(1, 1, 1), datetime.date(1970, 1, 1), datetime.date(2026, 11, 23)]),
        (
            "TIMESTAMP",
            [datetime.datetime(1969, 12, 31, tzinfo=datetime.UTC), datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)],
        ),
        ("TIMESTAMP_NTZ", [datetime.datetime(1969, 12, 31, 1, 2, 3), datetime.datetime(2026, 1, 1)]),
        ("BOOLEAN", [False, True]),
        ("TINYINT", [-128, 0, 127]),
        ("BIGINT", [-(1 << 63), 0, (1 << 63) - 1]),
    ],
)
def test_keys_are_of_any_exact_type(url: str, kind: str, values: list[Any]) -> None:
    table = fuse.create_table(url, f"k {kind}, n INT", primary_key=["k"])
    for number in range(2):
        table.upsert([{"k": value, "n": number} for value in values])
        table.maintenance.tier()
        table.upsert([{"k": value, "n": 7} for value in values[:1]])
        assert sorted(table.scan().to_arrow().column("n").to_pylist()) == [*[number] * (len(values) - 1), 7]
    found = table.lookup([*values[::-1], *values[:1]])
    table.delete_keys(values[1:])

    assert found.column("k").to_pylist() == [*values[::-1], *values[:1]]
    assert found.column("n").to_pylist() == [*[1] * (len(values) - 1), 7, 7]
    assert table.scan().to_arrow().column("k").to_pylist() == values[:1]


@pytest.mark.parametrize("kind", ["DOUBLE", "FLOAT", "ARRAY<INT>", "STRUCT<a: INT>"])
def test_what_is_not_exact_is_no_key(url: str, kind: str) -> None:
    with pytest.raises(SchemaError, match="choose whole numbers, decimals, text"):
        fuse.create_table(url, f"k {kind}, n INT", primary_key=["k"])


def test_a_table_without_a_primary_key_has_no_keys_to_change(url: str) -> None:
    table = fuse.create_table(url, "id BIGINT, n INT", key=["id"])

    for change in (table.upsert, table.delete_keys, table.apply, table.lookup):
        with pytest.raises(InputError, match="is for tables with a primary key"):
            change([{"id": 1}])
    with pytest.raises(InputError, match="a table has one of them"):
        fuse.create_table(f"{url}-2", "id BIGINT, n INT", key=["id"], primary_key=["id"])


def test_tiering_keeps_to_partitions_of_columns_of_the_key(url: str) -> None:
    properties = {"max_partitions": 3}
    table = fuse.create_table(
        url, "id INT, day INT, n INT", primary_key=["id", "day"], partition_by=["day"], properties=properties
    )
    for first in (0, 3):
        table.upsert([{"id": n, "day": n % 6, "n": n} for n in range(60) if n % 6 - first in (0, 1, 2)])
    table.maintenance.tier()  # of more partitions than a write may have
    table.upsert([{"id": 6, "day": 0, "n": 7}, {"id": 6, "day": 1, "n": 7}])
    table.maintenance.tier()

    partitions = table.inspect.partitions().to_pylist()
    assert [(each["partition"]["day"], each["rows"]) for each in partitions] == [
        (0, 10),
        (1, 11),
        *((n, 10) for n in range(2, 6)),
    ]
    assert table.explain("day = 3").to_dict()["blocks"]["kept"] == 1
    check_invariants(table.stored)
    with pytest.raises(SchemaError, match="'n', which is not of its primary key"):
        fuse.create_table(f"{url}-2", "id INT, n INT", primary_key=["id"], partition_by=["n"])


def test_keys_may_be_renamed(url: str) -> None:
    table = made(url)
    table.rename_column("id", "key")
    table.upsert([{"key": 5, "name": "x", "n": 0}])
    table.maintenance.tier()

    assert table.lookup([5, 6]).column("name").to_pylist() == ["x", "old 6"]
    assert table.count("key = 5") == 1


def test_keys_of_several_columns_are_looked_up_together_from_base_and_tail(url: str) -> None:
    """What is asked of the base is true on (1, b) and (2, a), too, whose rows there do not count any more."""
    table = fuse.create_table(url, "id INT, part STRING, n INT", primary_key=["id", "part"])
    table.upsert([{"id": n, "part": part, "n": 0} for n in (1, 2) for part in "ab"])
    table.maintenance.tier()
    table.upsert([{"id": 1, "part": "b", "n": 1}])
    table.delete_keys([{"id": 2, "part": "a"}])
    keys = [{"id": n, "part": part} for n in (1, 2) for part in "ab"]

    assert table.lookup(keys).column("n").to_pylist() == [0, 1, 0]
    assert table.lookup(keys[::-1] * 2).column("n").to_pylist() == [0, 1, 0] * 2
    with pytest.raises(InputError, match=r"the primary key is \['id', 'part'\]: give rows of these columns"):
        table.lookup([(1, "a")])


@pytest.mark.parametrize("keys", [[7, 3], np.array([7, 3]), pa.array([7, 3]), pa.chunked_array([[7], [3]])])
def test_keys_may_be_values_in_any_form(url: str, keys: Any) -> None:
    table = made(url)

    assert table.lookup(keys, ["name"]).column("name").to_pylist() == ["old 7"]
    table.delete_keys(keys)
    assert table.count("id = 7") == 0


def test_files_set_the_columns_that_they_have(url: str, tmp_path: Path) -> None:
    table = made(url)
    (tmp_path / "part.jsonl").write_text('{"id": 7, "n": 1}\n{"id": 6}\n')
    (tmp_path / "part.csv").write_text("id,n\n5,9\n")
    (tmp_path / "keys.jsonl").write_text('{"id": 7}\n')

    table.upsert(tmp_path / "part.jsonl")
    table.upsert([str(tmp_path / "part.csv")])
    assert table.lookup([5, 6, 7]).to_pylist() == [
        {"id": 5, "name": "old 5", "n": 9},
        {"id": 6, "name": "old 6", "n": None},
        {"id": 7, "name": "old 7", "n": 1},
    ]
    table.delete_keys(tmp_path / "keys.jsonl")
    assert table.count("id = 7") == 0
    (tmp_path / "whole.csv").write_text("id,n,name\n5,9,x\n")
    with pytest.raises(InputError, match=r"whole.csv has the columns .*: put the rows of each by themselves"):
        table.upsert([tmp_path / "part.csv", tmp_path / "whole.csv"])


def test_a_key_beyond_the_calendar_of_python_is_named_too(url: str) -> None:
    table = fuse.create_table(url, "day DATE", primary_key=["day"])
    days = pa.array([10**7, 10**7], pa.int32()).cast(pa.date32())

    with pytest.raises(fuse.StorageError, match=r"{'day': '\+?29349-.*'} comes twice"):
        table.overwrite(pa.table({"day": days}))


# --- several writers


def test_the_later_commit_counts_whichever_handle_it_came_from(url: str) -> None:
    one = made(url)
    two = fuse.open_table(url)
    one.upsert([{"id": 7, "name": "one", "n": 1}])
    two.upsert([{"id": 7, "name": "two", "n": 1}])
    assert one.refresh().lookup([7]).column("name").to_pylist() == ["two"]
    assert two.lookup([7]).column("name").to_pylist() == ["two"]


def test_rows_in_part_are_completed_from_what_others_put_meanwhile(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table, other = made(url), fuse.open_table(url)
    real, calls = KeyedRows._completed, list[int]()

    def completed(self: KeyedRows, *given: Any) -> pa.Table:
        rows = real(self, *given)
        calls.append(1)
        if len(calls) == 1:
            other.refresh().upsert([{"id": 7, "name": "between", "n": 1}])
        return rows

    monkeypatch.setattr(KeyedRows, "_completed", completed)
    table.upsert([{"id": 7, "n": 3}, {"id": 900, "n": 4}])

    assert table.lookup([7, 900]).to_pylist() == [
        {"id": 7, "name": "between", "n": 3},
        {"id": 900, "name": None, "n": 4},
    ]
    assert len(calls) == 2


def test_a_statement_whose_rows_were_changed_meanwhile_is_a_conflict(url: str) -> None:
    table, other = made(url), fuse.open_table(url)
    other.upsert([{"id": 900, "name": "elsewhere", "n": 4}])
    table.delete("id = 7")  # which nobody changed
    other.refresh().upsert([{"id": 8, "name": "changed", "n": 4}])

    with pytest.raises(Conflict, match="rows that this update read were changed"):
        table.update("id = 8", {"n": "n + 1"})

    assert fuse.open_table(url).lookup([7, 8]).to_pylist() == [{"id": 8, "name": "changed", "n": 4}]


def test_rows_with_nan_that_nobody_changed_are_no_conflict(url: str) -> None:
    table = fuse.create_table(url, "id INT, x DOUBLE", primary_key=["id"])
    table.upsert([{"id": 1, "x": float("nan")}])
    fuse.open_table(url).upsert([{"id": 2, "x": 1.0}])
    table.update("isnan(x)", {"x": -1.0})

    assert table.lookup([1, 2]).column("x").to_pylist() == [-1.0, 1.0]


def test_a_merge_depends_on_the_rows_that_it_matches_alone(url: str) -> None:
    table, other = made(url), fuse.open_table(url)
    other.upsert([{"id": 8, "name": "elsewhere", "n": 4}, {"id": 901, "name": "elsewhere", "n": 4}])
    table.merge([{"id": 7, "name": "merged", "n": 1}, {"id": 900, "name": "merged", "n": 1}])
    other.refresh().upsert([{"id": 902, "name": "first", "n": 4}])

    with pytest.raises(Conflict, match="rows that this merge read were changed"):
        table.merge([{"id": 902, "name": "second", "n": 1}])  # which was not there when it was read
    with pytest.raises(Conflict, match="this overwrite has not seen were added"):
        table.overwrite(ROWS)

    found = fuse.open_table(url).lookup([7, 8, 900, 901, 902])
    assert found.column("name").to_pylist() == ["merged", "elsewhere", "merged", "elsewhere", "first"]


def test_an_application_puts_each_version_once(url: str) -> None:
    table = made(url)
    table.upsert([{"id": 1, "name": "a", "n": 1}], ("job", 1))
    table.delete_keys([1])
    version = table.version
    table.upsert([{"id": 1, "name": "a", "n": 1}], ("job", 1))

    assert (table.refresh().version, table.count("id = 1")) == (version, 0)


def test_one_table_s_changes_write_the_next(url: str) -> None:
    table = made(url)
    copy = fuse.create_table(f"{url}-copy", "id INT, name STRING, n INT", primary_key=["id"])
    copy.upsert(table.to_arrow())
    since = table.snapshot.id
    table.upsert([{"id": 7, "name": "x", "n": 1}, {"id": 901, "name": "y", "n": 1}])
    table.upsert([{"id": 7, "name": "z", "n": 2}, {"id": 8, "name": "old 8", "n": 3}])
    table.delete_keys([9, 10, 902])
    table.maintenance.tier()
    told = table.changes(since).to_arrow()
    copy.apply(told)

    assert sorted(told.column("_change_type").to_pylist()) == [
        "delete",
        "delete",
        "insert",
        "update_postimage",
        "update_preimage",
    ]
    assert copy.to_arrow().sort_by("id").equals(table.to_arrow().sort_by("id"))


def test_of_several_changes_of_a_key_the_last_counts(url: str) -> None:
    table = made(url)
    table.apply(
        [
            {"id": 5, "name": "late", "n": 1, "_change_type": "insert", "_commit_version": 9},
            {"id": 5, "name": None, "n": None, "_change_type": "delete", "_commit_version": 8},
            {"id": 6, "name": "early", "n": 1, "_change_type": None, "_commit_version": 1},
            {"id": 6, "name": None, "n": None, "_change_type": "delete", "_commit_version": 2},
            {"id": 7, "name": "was", "n": 1, "_change_type": "update_preimage", "_commit_version": 3},
            {"id": 8, "name": "of a version", "n": 1, "_change_type": "insert", "_commit_version": 2**53},
            {"id": 8, "name": "of none", "n": 1, "_change_type": "insert", "_commit_version": None},
        ]
    )
    assert table.lookup([5, 6, 7, 8]).column("name").to_pylist() == ["late", "old 7", "of a version"]


# --- costs


def test_a_put_is_two_creates_and_no_read(url: str) -> None:
    made(url)
    store = meter_requests(open_store(url))
    table = fuse.open_table(store)
    mixed = [{"id": 1, "name": "x", "n": 1, "_change_type": "insert"}, {"id": 2, "_change_type": "delete"}]
    for change, count in (
        (lambda: table.upsert(ROWS), 2),
        (lambda: table.delete_keys([7]), 2),
        (lambda: table.apply(mixed), 3),
    ):
        store.reset()
        change()
        assert [verb for verb, key, _ in store.writes if not key.endswith("_hint")] == ["create"] * count
        assert store.reads == []


def test_tiering_rewrites_no_block_of_the_base(url: str) -> None:
    table = made(url)
    before = table.inspect.files()[: table.stored.segments().base_block_count]
    table.upsert([{"id": n, "name": "x", "n": 1} for n in range(0, 100, 10)])
    table.maintenance.tier()

    assert set(before) <= set(table.inspect.files())
    assert table.scan().to_arrow().num_rows == table.snapshot.row_count == table.count()


def test_blocks_that_have_no_key_of_the_tail_are_not_read_for_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = fuse.create_table(url, "id INT, n INT", primary_key=["id"], properties={"block_rows": 10})
    table.upsert(pa.table({"id": np.arange(100, dtype="i4"), "n": np.zeros(100, "i4")}))
    table.maintenance.tier()
    real, read = hidden_rows._KeyReader.find, list[str]()

    def find(self: Any, file: Any, keys: pa.Table) -> Any:
        read.append(file.key)
        return real(self, file, keys)

    monkeypatch.setattr(hidden_rows._KeyReader, "find", find)
    table.upsert([{"id": 7, "n": 1}, {"id": 73, "n": 1}, {"id": 1000, "n": 1}])
    assert (table.count("n = 1"), len(read)) == (3, 2)
    table.upsert([{"id": 31, "n": 1}])
    assert (table.count("n = 1"), len(read)) == (4, 3), "what was found for the state before serves the next one"
    assert table.stored.blocks().has_all_rows.tolist().count(False) == 3


def test_an_explanation_tells_how_many_keys_the_tail_has_and_what_they_hide(url: str) -> None:
    table = fuse.create_table(url, "id INT, n INT", primary_key=["id"], properties={"block_rows": 10})
    table.upsert(pa.table({"id": np.arange(100, dtype="i4"), "n": np.zeros(100, "i4")}))
    table.maintenance.tier()
    table.delete_keys([33])
    table.maintenance.tier()
    table.upsert([{"id": 7, "n": 1}, {"id": 73, "n": 1}, {"id": 1000, "n": 1}])
    table.upsert([{"id": 7, "n": 2}, {"id": 33, "n": 2}])  # the base has no row of 33 that counts
    table.delete_keys([70, 2000])

    for told in (table.explain(), table.explain("n = 2"), table.explain(None, [], ["count(*)"])):
        tail = told.to_dict()["tail"]
        assert (tail["commits"], tail["blocks"], tail["keys"], tail["touched"]) == (3, 3, 6, 2)
        assert "3 hot commits to read; 6 keys, which hide rows of 2 tiered blocks" in str(told)
        assert "6 keys" in told._repr_html_()
    table.maintenance.tier()
    assert "tail" not in table.explain().to_dict()


def test_a_tail_that_fills_up_is_tiered_by_its_writer(url: str) -> None:
    table = fuse.create_table(url, "id INT, n INT", primary_key=["id"], properties={"tail_commits": 3})
    for number in range(5):
        table.upsert([{"id": n, "n": number} for n in range(4)])

    assert "tier" in table.refresh().history().column("operation").to_pylist()
    assert table.scan().to_arrow().sort_by("id").to_pylist() == [{"id": n, "n": 4} for n in range(4)]


def test_a_snapshot_may_carry_deleted_keys_alone(url: str) -> None:
    table = made(url)
    table.maintenance.tier()
    rows = table.count()
    table.delete_keys([5, 6])
    table.create_index("names", "bloom", ["name"])

    head = fuse.open_table(url)
    assert (head.tail.blocks, head.tail.rows, head.count()) == (1, 0, rows - 2)
    head.maintenance.tier()
    assert (head.tail.blocks, head.count(), head.snapshot.row_count) == (0, rows - 2, rows - 2)
    check_invariants(head.stored)
