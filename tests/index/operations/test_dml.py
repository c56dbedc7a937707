"""Rows are deleted, updated, merged and overwritten as a list of dicts would be, and no block is opened that need not
be.
"""

import random
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fuse_index as fuse
from fuse_storage import meter_requests, open_store
from fuse_storage.testing import check_invariants

SCHEMA = pa.schema([("id", pa.int64()), ("city", pa.string()), ("n", pa.int32())])
CITIES = ["Bonn", "Oslo", "Rome", None]


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": row_id, "city": CITIES[row_id % 4], "n": row_id % 3} for row_id in ids]


def read(table: fuse.Table, where: str | None = None) -> list[dict[str, Any]]:
    """Matching rows, the same with indexes as without."""
    found = table.scan(where).to_arrow()
    assert found.equals(table.scan(where, indexes=False).to_arrow())
    return found.to_pylist()


@pytest.fixture
def table() -> fuse.Table:
    """Ten blocks of four rows, clustered by id."""
    made = fuse.create_table(f"memory://mutation-{uuid4().hex}", SCHEMA, properties={"block_rows": 4})
    made.create_index("by_city", "bloom", ["city"])
    made.append(pa.Table.from_pylist(rows(*range(40)), SCHEMA))
    return made


def sound(table: fuse.Table) -> None:
    assert table.inspect.indexes().column("blocks_indexed").to_pylist() == [table.snapshot.block_count]
    check_invariants(table.stored)


def test_a_delete_drops_full_blocks_unread_and_rewrites_what_is_left(table):
    before = table.stored.blocks().ids
    store = meter_requests(open_store(table.stored.store.url))
    same = fuse.open_table(store)
    same.scan("id = -1").count()
    store.reset()
    same.delete("id BETWEEN 6 AND 17")
    opened = {key for _, key, _ in store.reads if key.startswith("_b/")}

    assert read(same) == [row for row in rows(*range(40)) if not 6 <= row["id"] <= 17]
    after = same.stored.blocks().ids
    assert (before[0], before[5:]) == (after[0], after[3:])
    assert opened == {f"_b/{before[1]}.parquet", f"_b/{before[4]}.parquet"}
    assert same.snapshot.summary["deleted_rows"] == 12
    assert same.snapshot.operation == "delete"
    sound(same)


def test_rows_on_which_the_condition_is_null_stay(table):
    table.delete("city <> 'Rome'")

    assert {row["city"] for row in read(table)} == {"Rome", None}
    assert len(read(table)) == 20
    sound(table)


def test_what_matches_nothing_commits_nothing(table):
    same = table.snapshot
    assert table.delete("id = 400 OR city = 'Lima'") is same
    assert table.update("id = 400", {"n": 1}) is same
    assert table.merge([], ["id"]) is same


def test_all_rows_go_and_the_table_lives_on(table):
    table.delete("id >= 0")
    assert read(table) == []
    table.append(rows(7))
    assert read(table) == rows(7)
    sound(table)


def test_an_update_keeps_order_and_touches_its_blocks_alone(table):
    before = table.stored.blocks().ids
    table.update("id IN (5, 6, 30)", {"city": "'Kyiv'", "n": 9})

    expected = [row | ({"city": "Kyiv", "n": 9} if row["id"] in (5, 6, 30) else {}) for row in rows(*range(40))]
    assert read(table) == expected
    assert [row["id"] for row in read(table, "city = 'Kyiv'")] == [5, 6, 30]
    assert [n for n, (old, new) in enumerate(zip(before, table.stored.blocks().ids, strict=True)) if old != new] == [
        1,
        7,
    ]
    assert table.snapshot.summary["updated_rows"] == 3
    sound(table)


def test_an_update_reckons_and_raises_where_spark_does(table):
    table.update("id IN (2, 5)", {"n": "n * 10 + id", "city": "CAST(id - 1 AS STRING)"})
    before = table.snapshot

    changed = [{"id": 2, "city": "1", "n": 22}, {"id": 5, "city": "4", "n": 25}]
    assert read(table, "id IN (1, 2, 5)") == [*rows(1), *changed]
    refused = {
        "n / (id - id)": "a division by zero",
        "CAST(city AS INT)": "of 'Bonn'",
        f"id + {2**63 - 1}L": "bigint overflows",
        "city + 1": r"CAST\(city AS BIGINT\) of 'Bonn'",
    }
    for text, why in refused.items():
        with pytest.raises(fuse.OpaqueError, match=f"Spark raises on .*{why}"):
            table.update(None, {"n": text})
    with pytest.raises(fuse.WhereError, match="void \\+ void is not known here"):
        table.update(None, {"city": "NULL + NULL"})
    assert table.refresh().snapshot.id == before.id
    sound(table)


def test_an_update_takes_terms_values_and_functions(table):
    table.update("id < 2", {"city": "upper(city)"})
    table.update("id < 2", {"n": lambda found: pc.multiply(found.column("n"), 10)})
    table.update(None, {"n": "CAST(n AS INT)"})
    table.update("id = 3", {"city": None, "n": "2"})

    assert [(row["city"], row["n"]) for row in read(table, "id < 4")] == [
        ("BONN", 0),
        ("OSLO", 10),
        ("Rome", 2),
        (None, 2),
    ]


@pytest.mark.parametrize(
    ("assignments", "error", "says"),
    [
        ({"nn": 1}, fuse.SchemaError, "did you mean"),
        ({"n": "city"}, fuse.SchemaError, "column 'n' is int32, and the rows have string"),
        ({"n": [1]}, fuse.InputError, "is no value of column 'n'"),
        ({}, fuse.InputError, "set={}: give a value for one column at least"),
        ({"n": 1 << 40}, fuse.InputError, "is no value of column 'n'"),
        ({"n": "n +"}, fuse.WhereError, "n \\+"),
    ],
)
def test_values_that_do_not_fit_are_refused_and_change_nothing(table, assignments, error, says):
    same = table.snapshot
    with pytest.raises(error, match=says):
        table.update("id = 1", assignments)
    assert table.refresh().snapshot is same


def test_what_only_spark_can_evaluate_is_refused(table):
    with pytest.raises(fuse.OpaqueError, match="only Spark"):
        table.delete("rand() < 0.5")


def test_an_overwrite_replaces_what_the_condition_is_true_on_in_one_commit(table):
    before = table.snapshot.sequence
    table.overwrite(rows(100, 104), "city = 'Bonn'")

    assert sorted(row["id"] for row in read(table, "city = 'Bonn'")) == [100, 104]
    assert len(read(table)) == 32
    assert table.snapshot.sequence == before + 1
    sound(table)
    with pytest.raises(fuse.InputError, match=r"not true on 1 of the rows to be written, such as .*'Oslo'"):
        table.overwrite(rows(101), "city = 'Bonn'")
    table.overwrite(rows(1, 2))
    assert read(table) == rows(1, 2)
    sound(table)


def test_a_merge_updates_and_inserts_by_key(table):
    table.merge([{"id": 39, "city": "Lima"}, {"id": 40, "city": "Lima"}, {"id": None, "city": "Lima"}], ["id"])

    expected = [*rows(*range(39)), {"id": 39, "city": "Lima", "n": 0}, {"id": 40, "city": "Lima", "n": None}]
    assert read(table) == [*expected, {"id": None, "city": "Lima", "n": None}]
    assert {name: table.snapshot.summary[name] for name in ("updated_rows", "inserted_rows")} == {
        "updated_rows": 1,
        "inserted_rows": 2,
    }
    assert table.snapshot.block_count == 11
    sound(table)


def test_a_merge_deletes_what_matches_or_what_the_source_lacks(table):
    table.merge([{"id": n} for n in range(30)], ["id"], matched="delete", not_matched=None)
    assert [row["id"] for row in read(table)] == list(range(30, 40))
    table.merge(rows(31, 33, 50), ["id"], not_matched_by_source="delete")
    assert read(table) == rows(31, 33, 50)
    sound(table)


def test_a_merge_by_several_keys_of_which_null_matches_nothing(table):
    table.merge([{"id": 3, "city": None, "n": 8}, {"id": 4, "city": "Bonn", "n": 8}], ["id", "city"])

    assert [(row["id"], row["city"], row["n"]) for row in read(table) if row["n"] == 8] == [
        (4, "Bonn", 8),
        (3, None, 8),
    ]


@pytest.mark.parametrize(
    ("source", "on", "error", "says"),
    [
        ([{"id": 1}, {"id": 1}], ["id"], fuse.InputError, r"several rows of the source match \{'id': 1\}"),
        ([{"id": 1}], "id", fuse.InputError, "give a list"),
        ([{"id": 1}], ["id", "id"], fuse.InputError, r"\['id', 'id'\] has 'id' twice"),
        ([{"city": "x"}], ["id"], fuse.InputError, "the source lacks column 'id'"),
        ([{"id": 1, "x": 1}], ["id"], fuse.SchemaError, "a column 'x' that the table lacks"),
        ([{"id": 1}], ["idd"], fuse.SchemaError, "did you mean"),
    ],
)
def test_a_merge_that_cannot_be_is_refused(table, source, on, error, says):
    same = table.snapshot
    with pytest.raises(error, match=says):
        table.merge(source, on)
    assert table.refresh().snapshot is same


def model_of_a_merge(table, source, on, matched, not_matched, by_source):
    """Row by row, as MERGE has it; each clause is (action, condition of (source, target))."""

    def chosen(clauses, *rows):
        return next((action for action, true in clauses if true(*rows)), None)

    keys = {tuple(row[name] for name in on): row for row in source if all(row[name] is not None for name in on)}
    kept, seen = [], set()
    for row in table:
        key = tuple(row[name] for name in on)
        if key in keys:
            seen.add(key)
            action = chosen(matched, keys[key], row)
            own = {name: value for name, value in keys[key].items() if name in row}
            kept += [] if action == "delete" else [row | own] if action == "update" else [row]
        elif chosen(by_source, row) is None:
            kept.append(row)
    new = [row for row in source if tuple(row[name] for name in on) not in seen and chosen(not_matched, row)]
    return kept + [{"id": row["id"], "city": row.get("city"), "n": row.get("n")} for row in new]


def mark_where_possible(table: fuse.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows go by deletion vectors wherever one of their block is left, and updated ones come in blocks of their own."""
    monkeypatch.setattr("fuse_storage.is_worn", lambda rows, live: live == 0)
    table.set_properties({"delete_mode": "merge-on-read"})


def by_id(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(found, key=lambda row: row["id"])


@pytest.mark.parametrize("seed", range(8))
def test_clauses_of_a_merge_do_what_they_say(table, seed, monkeypatch):
    draw = random.Random(seed)
    if marks := seed % 2 == 1:
        mark_where_possible(table, monkeypatch)
    made = [
        {"id": row_id, "n": draw.choice([0, 1, 2, None]), "op": draw.choice("UDX")}
        for row_id in draw.sample(range(-5, 50), 30)
    ]
    source = pa.Table.from_pylist(made, pa.schema([("id", pa.int64()), ("n", pa.int32()), ("op", pa.string())]))

    def more(one, two):
        return one is not None and two is not None and one > two

    matched = {
        "delete": ("source.op = 'D'", lambda source, target: source["op"] == "D"),
        "update": ("source.n > target.n", lambda source, target: more(source["n"], target["n"])),
    }
    chosen = draw.sample(sorted(matched), draw.choice([1, 2]))
    some, all_ = ("source.op <> 'X'", lambda source: source["op"] != "X"), (None, lambda source: True)
    inserts = draw.choice([{}, {"insert": some}, {"insert": all_}])
    others = draw.choice([{}, {"delete": ("target.city = 'Bonn'", lambda target: target["city"] == "Bonn")}])
    clauses = [{action: matched[action] for action in chosen}, inserts, others]
    expected = model_of_a_merge(
        read(table), made, ["id"], *([(action, true) for action, (_, true) in one.items()] for one in clauses)
    )

    if "delete" not in chosen and some not in inserts.values():
        source = source.drop_columns("op")
    table.merge(source, ["id"], *({action: sql for action, (sql, _) in one.items()} or None for one in clauses))
    assert by_id(read(table)) == by_id(expected) if marks else read(table) == expected
    sound(table)


def test_what_a_clause_leaves_alone_is_not_rewritten(table):
    same = table.snapshot
    table.merge(rows(3, 4, 99), ["id"], {"update": "source.n > target.n"}, {"insert": "source.n > 100"})
    assert table.snapshot is same
    before = table.stored.blocks().ids
    table.merge(rows(0), ["id"], None, None, {"delete": "target.id = 39"})
    assert table.stored.blocks().ids[:-1] == before[:-1]
    assert [row["id"] for row in read(table)] == list(range(39))


@pytest.mark.parametrize(
    ("clauses", "error", "says"),
    [
        ({"matched": "updat"}, fuse.InputError, "matched='updat': give 'update' or 'delete'"),
        (
            {"matched": {"insert": None}},
            fuse.InputError,
            "give 'update' or 'delete', a dict that says on which condition",
        ),
        ({"matched": ["update"]}, fuse.InputError, "a dict that says"),
        ({"matched": {"update": 3}}, fuse.InputError, "the condition of 'update' is Spark SQL text"),
        ({"matched": {"update": "n > 1"}}, fuse.WhereError, r"it has \['source', 'target'\]"),
        ({"matched": {"update": "source.x > 1"}}, fuse.WhereError, "struct 'source' has no 'x'"),
        ({"matched": {"update": "soundex(source.n) > 'a'"}}, fuse.OpaqueError, "only Spark can evaluate"),
        ({"not_matched": {"insert": "target.n > 1"}}, fuse.WhereError, "no column 'target'"),
        ({"not_matched_by_source": {"delete": "source.n > 1"}}, fuse.WhereError, "no column 'source'"),
    ],
)
def test_clauses_that_cannot_be_are_refused(table, clauses, error, says):
    same = table.snapshot
    with pytest.raises(error, match=says):
        table.merge(rows(1), ["id"], **clauses)
    with pytest.raises(fuse.InputError, match="several rows of the source match"):
        table.merge(rows(1, 1), ["id"], {"update": "source.n > 100"})
    assert table.refresh().snapshot is same


def test_a_merge_of_many_keys_is_judged_by_bounds(table, monkeypatch):
    monkeypatch.setattr("fuse_index.operations.merge_match.MAX_KEYS_IN_PREDICATE", 3)
    before = table.stored.blocks().ids
    table.merge([{"id": n, "n": 7} for n in range(4, 9)], ["id"])

    assert [row["id"] for row in read(table, "n = 7")] == [4, 5, 6, 7, 8]
    assert [n for n, (old, new) in enumerate(zip(before, table.stored.blocks().ids, strict=True)) if old != new] == [
        1,
        2,
    ]


# --- two at once ---


def test_rows_that_came_meanwhile_matter_only_if_they_match(table, monkeypatch):
    """Somebody appends after the rows were read and before the change commits."""
    url = table.stored.store

    def interrupted(other: list[dict[str, Any]]) -> fuse.Table:
        mine = fuse.open_table(url)
        stage = type(mine.stored).writer
        done = []

        def writer(self, *arguments, **more):
            if not done:
                done.append(True)
                fuse.open_table(url).append(other)
            return stage(self, *arguments, **more)

        monkeypatch.setattr(type(mine.stored), "writer", writer)
        return mine

    interrupted(rows(47)).delete("city = 'Oslo'")
    assert sorted(row["id"] for row in read(table.refresh())) == [n for n in [*range(40), 47] if n % 4 != 1]
    monkeypatch.undo()
    with pytest.raises(fuse.Conflict, match="rows that this delete has not seen were added by append"):
        interrupted(rows(42)).delete("city = 'Rome'")


# --- against a list ---


@pytest.mark.alike
@pytest.mark.parametrize("seed", range(6))
def test_whatever_is_done_a_list_would_be_the_same(seed, monkeypatch):
    draw, marks = random.Random(seed), seed % 2 == 1
    table = fuse.create_table(
        f"memory://model-{uuid4().hex}", SCHEMA, properties={"block_rows": draw.choice([1, 3, 8])}
    )
    table.create_index("by_city", "bloom", ["city"])
    if marks:
        mark_where_possible(table, monkeypatch)
    model: list[dict[str, Any]] = []
    conditions = {
        "n = 1": lambda row: row["n"] == 1,
        "city = 'Oslo'": lambda row: row["city"] == "Oslo",
        "city IS NULL": lambda row: row["city"] is None,
        "id < 6": lambda row: row["id"] < 6,
        "NOT (city = 'Rome')": lambda row: row["city"] not in ("Rome", None),
    }
    for step in range(12):
        where, true = draw.choice(list(conditions.items()))
        ids = draw.sample(range(20), draw.randint(1, 8))
        match draw.choice(["append", "delete", "update", "merge", "overwrite"]) if step else "append":
            case "append":
                fresh = [row_id for row_id in ids if row_id not in {row["id"] for row in model}]
                table.append(pa.Table.from_pylist(rows(*fresh), SCHEMA))
                model += rows(*fresh)
            case "delete":
                table.delete(where)
                model = [row for row in model if not true(row)]
            case "update":
                table.update(where, {"n": step + 10})
                model = [row | {"n": step + 10} if true(row) else row for row in model]
            case "merge":
                source = [{"id": row_id, "n": step + 50} for row_id in ids]
                table.merge(source, ["id"])
                known = {row["id"] for row in model}
                model = [row | {"n": step + 50} if row["id"] in ids else row for row in model]
                model += [{"id": row_id, "city": None, "n": step + 50} for row_id in ids if row_id not in known]
            case "overwrite":
                fitting = [row for row in rows(*ids) if true(row)]
                table.overwrite(pa.Table.from_pylist(fitting, SCHEMA), where)
                model = [row for row in model if not true(row)] + fitting
        in_order = by_id if marks else list
        assert in_order(read(table)) == in_order(model)
        for condition, holds in conditions.items():
            assert in_order(read(table, condition)) == in_order([row for row in model if holds(row)])
    sound(table)
