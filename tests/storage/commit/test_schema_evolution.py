"""Columns come, go, and change their names, order and types; blocks do not."""

from datetime import date, datetime
from decimal import Decimal
from functools import partial
from itertools import combinations
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pytest

from fuse_storage import Conflict, InvalidArgument, SchemaError, StoredTable, create_branch, diff_snapshots
from fuse_storage.commit import schema_evolution, table_keys
from fuse_storage.parquet import projection
from fuse_storage.testing import check_invariants
from tests.storage.small import COLUMNS, append, staged

Step = schema_evolution.SchemaChange
RENAMING = schema_evolution.rename_column


def evolve(table: StoredTable, step: Any, **how: Any) -> StoredTable:
    return table.transaction().evolve_schema(partial(step, **how)).commit()


def add(rows: pa.Table, table: StoredTable) -> StoredTable:
    with table.writer() as writer:
        writer.write(rows)
        return table.transaction().append(writer.finish()).commit()


def read(table: StoredTable) -> list[dict[str, Any]]:
    blocks = table.blocks()
    names = table.snapshot.schema.names
    return [row for block in range(len(blocks)) for row in table.read_block(blocks, block, names).to_pylist()]


@pytest.fixture
def table(url: str) -> StoredTable:
    return append(StoredTable.create(url, COLUMNS, cluster_by=["id"], properties={"block_rows": 2}), 1, 2, 3)


def test_a_new_column_holds_its_default_in_old_rows_and_its_statistics_say_so(table: StoredTable) -> None:
    wider = evolve(
        table, schema_evolution.add_column, path="city", data_type=pa.string(), default="Bonn", nullable=False
    )
    wider = add(pa.table({"id": [4], "name": ["n4"], "city": ["Oslo"]}), wider)

    assert [row["city"] for row in read(wider)] == ["Bonn", "Bonn", "Bonn", "Oslo"]
    row_id = wider.snapshot.schema.find("city").id
    for units in (wider.blocks(), wider.zones(wider.blocks()), wider.segments()):
        found = units.statistics(row_id)
        assert found is not None
        assert (found.min.to_pylist()[0], found.max.to_pylist()[-1]) == ("Bonn", "Oslo")
        assert found.null_count.to_pylist() == [0] * len(units)
    assert read(table) == read(wider.at(table.snapshot.id))
    assert table.snapshot.schema.names == ["id", "name"]
    assert diff_snapshots(table, wider).columns == ("added 'city' string",)
    check_invariants(wider)


def test_no_file_of_rows_is_written(table: StoredTable) -> None:
    def rows() -> set[str]:
        return {found.key for folder in ("_b", "_sg") for found in table.store.list(folder)}

    before = rows()
    evolved = evolve(table, schema_evolution.add_column, path="x", data_type=pa.int32())
    evolved = evolve(evolved, schema_evolution.change_type, path="x", data_type=pa.int64())
    evolved = evolve(evolved, schema_evolution.rename_column, path="x", to="y")
    evolved = evolve(evolved, schema_evolution.move_column, path="y", after="")
    evolved = evolve(evolved, schema_evolution.drop_column, path="name")

    assert rows() == before
    assert evolved.snapshot.schema.names == ["y", "id"]
    assert read(evolved) == [{"y": None, "id": row_id} for row_id in (1, 2, 3)]
    check_invariants(evolved)


def test_a_name_that_was_used_does_not_bring_back_its_values(table: StoredTable) -> None:
    evolved = evolve(table, schema_evolution.drop_column, path="name")
    evolved = evolve(evolved, schema_evolution.add_column, path="Name", data_type=pa.string())
    assert {row["Name"] for row in read(evolved)} == {None}
    swapped = evolve(create_branch(table, "side"), schema_evolution.rename_column, path="name", to="old")
    swapped = evolve(swapped, schema_evolution.add_column, path="name", data_type=pa.string(), default="new")
    assert [(row["old"], row["name"]) for row in read(swapped)] == [("n1", "new"), ("n2", "new"), ("n3", "new")]
    physical = [field.physical_name for field in swapped.snapshot.schema.fields]
    assert len({name.lower() for name in physical}) == 3
    check_invariants(add(pa.table({"id": [4], "old": ["a"], "name": ["b"]}), swapped))


def test_fields_of_structs_come_and_go_as_columns_do(url: str) -> None:
    kind = pa.struct([("a", pa.int32()), ("b", pa.string())])
    empty = StoredTable.create(url, pa.schema([("id", pa.int64()), ("s", kind)]))
    table = add(pa.table({"id": [1], "s": pa.array([{"a": 1, "b": "x"}], kind)}), empty)
    evolved = evolve(table, schema_evolution.add_column, path="s.c", data_type=pa.float64(), after="a")
    evolved = evolve(evolved, schema_evolution.rename_column, path="s.b", to="text")
    evolved = evolve(evolved, schema_evolution.change_type, path="s.a", data_type=pa.int64())

    assert read(evolved) == [{"id": 1, "s": {"a": 1, "c": None, "text": "x"}}]
    wide = pa.struct([("a", pa.int64()), ("c", pa.float64()), ("text", pa.string())])
    evolved = add(pa.table({"id": [2], "s": pa.array([{"a": 1 << 40, "c": 0.5, "text": "y"}], wide)}), evolved)
    evolved = evolve(evolved, schema_evolution.drop_column, path="s.text")
    assert [row["s"] for row in read(evolved)] == [{"a": 1, "c": None}, {"a": 1 << 40, "c": 0.5}]
    assert diff_snapshots(table, evolved).columns == (
        "changed 's.a' from int to bigint",
        "added 's.c' double",
        "dropped 's.b'",
    )
    check_invariants(evolved)


@pytest.mark.parametrize(
    ("old", "value", "new", "widened"),
    [
        (pa.int8(), -7, pa.int16(), -7),
        (pa.int16(), -7, pa.int32(), -7),
        (pa.int32(), 1 << 30, pa.int64(), 1 << 30),
        (pa.int32(), 7, pa.float64(), 7.0),
        (pa.int32(), 7, pa.decimal128(12, 2), Decimal("7.00")),
        (pa.int64(), -(1 << 63), pa.decimal128(21, 1), Decimal(-(1 << 63))),
        (pa.float32(), 0.5, pa.float64(), 0.5),
        (pa.decimal128(10, 2), Decimal("1.25"), pa.decimal128(20, 4), Decimal("1.2500")),
        (pa.date32(), date(2026, 1, 2), pa.timestamp("us"), datetime(2026, 1, 2)),
    ],
)
def test_old_values_are_widened_with_their_statistics_and_defaults(
    url: str, old: Any, value: Any, new: Any, widened: Any
) -> None:
    table = add(
        pa.table({"id": [1], "v": pa.array([value], old)}),
        StoredTable.create(url, pa.schema([("id", pa.int64()), ("v", old)])),
    )
    table = evolve(table, schema_evolution.add_column, path="d", data_type=old, default=value)
    for path in ("v", "d"):
        table = evolve(table, schema_evolution.change_type, path=path, data_type=new)

    assert read(table) == [{"id": 1, "v": widened, "d": widened}]
    for name in ("v", "d"):
        found = table.blocks().statistics(table.snapshot.schema.find(name).id)
        assert found is not None
        assert found.min.to_pylist() == found.max.to_pylist() == [widened]
    check_invariants(table)


@pytest.mark.parametrize(
    ("step", "says"),
    [
        (partial(schema_evolution.add_column, path="name", data_type=pa.int64()), "there is a column 'name' already"),
        (
            partial(schema_evolution.add_column, path="x", data_type=pa.int64(), nullable=False),
            "cannot be NOT NULL: .* give a default",
        ),
        (
            partial(schema_evolution.add_column, path="x", data_type=pa.int64(), default="seven"),
            "'seven' cannot be the default of column 'x'",
        ),
        (
            partial(schema_evolution.add_column, path="x", data_type=pa.list_(pa.int64()), default=[1]),
            "is array and cannot have a default",
        ),
        (partial(schema_evolution.add_column, path="id.x", data_type=pa.int64()), "'id' is bigint, not a struct"),
        (
            partial(schema_evolution.add_column, path="x", data_type=pa.int64(), after="y"),
            "cannot come after 'y': beside it there are",
        ),
        (partial(schema_evolution.drop_column, path="id"), "clustered by 'id'"),
        (partial(schema_evolution.drop_column, path="nam"), r"did you mean \['name'\]"),
        (partial(schema_evolution.rename_column, path="name", to="id"), "there is a column 'id' already"),
        (
            partial(schema_evolution.add_column, path="NAME", data_type=pa.int64()),
            "'name', from which 'NAME' differs only in case, already",
        ),
        (
            partial(schema_evolution.add_column, path="x", data_type=pa.struct([("a", pa.int8()), ("A", pa.int8())])),
            "'x' would have columns 'a' and 'A', which differ only in case",
        ),
        (partial(schema_evolution.rename_column, path="name", to="Id"), "'id', from which 'Id' differs only in case"),
        (
            partial(schema_evolution.change_type, path="id", data_type=pa.int32()),
            "bigint and cannot become int .* a decimal with 20 digits or more before the point",
        ),
        (partial(schema_evolution.change_type, path="name", data_type=pa.binary()), "string and cannot become binary"),
    ],
)
def test_what_would_lose_data_or_cannot_be_read_is_refused(table: StoredTable, step: Step, says: str) -> None:
    with pytest.raises(SchemaError, match=says):
        table.transaction().evolve_schema(step).commit()
    assert table.refresh() is table


def test_the_last_column_stays(url: str) -> None:
    table = StoredTable.create(url, pa.schema([("id", pa.int64())]))

    with pytest.raises(SchemaError, match="the last column of the table"):
        evolve(table, schema_evolution.drop_column, path="id")


# --- two at once ---

ADD = partial(schema_evolution.add_column, path="x", data_type=pa.int64())
DROP = partial(schema_evolution.drop_column, path="name")
RENAME = partial(schema_evolution.rename_column, path="name", to="called")


@pytest.mark.parametrize(
    "step",
    [DROP, RENAME, partial(schema_evolution.add_column, path="x", data_type=pa.int64(), default=1, nullable=False)],
)
def test_rows_written_before_a_column_changed_are_not_appended_if_they_would_be_wrong(
    table: StoredTable, step: Step
) -> None:
    waiting = table.transaction().append(staged(table, [4]))
    evolved = table.transaction().evolve_schema(step).commit()

    if step in (DROP, RENAME):
        with pytest.raises(Conflict, match="column 'name' was changed by evolve"):
            waiting.commit()
    else:
        assert read(waiting.commit())[-1]["x"] == 1
    check_invariants(evolved.refresh())


def test_rows_appended_meanwhile_get_the_new_column_too(table: StoredTable) -> None:
    waiting = table.transaction().evolve_schema(ADD)
    append(table, 4)

    assert [row["x"] for row in read(waiting.commit())] == [None] * 4


@pytest.mark.parametrize("first", [ADD, DROP, RENAME])
@pytest.mark.parametrize("second", [ADD, DROP, RENAME])
def test_of_two_who_change_columns_one_wins(table: StoredTable, first: Step, second: Step) -> None:
    waiting = table.transaction().evolve_schema(second)
    table.transaction().evolve_schema(first).commit()

    with pytest.raises(Conflict, match="columns or indexes were changed by evolve"):
        waiting.commit()


def test_an_index_defined_meanwhile_matters_to_those_who_say_so(table: StoredTable) -> None:
    drop, add = table.transaction().evolve_schema(DROP, depends_on_indexes=True), table.transaction().evolve_schema(ADD)
    table.transaction().add_index("one", {"key": "1"}).commit()

    with pytest.raises(Conflict, match="changed by define"):
        drop.commit()
    add.commit()


def test_a_restore_brings_back_columns_and_no_id_is_given_twice(table: StoredTable) -> None:
    evolved = evolve(table, schema_evolution.add_column, path="x", data_type=pa.int64(), default=1)
    restored = evolved.transaction().restore(table.snapshot).commit()
    assert restored.snapshot.schema == table.snapshot.schema
    again = evolve(restored, schema_evolution.add_column, path="x", data_type=pa.string(), default="s")

    assert [row["x"] for row in read(again)] == ["s"] * 3
    ids = [t.snapshot.schema.find("x").id for t in (evolved, again)]
    assert ids[0] < ids[1]
    assert evolved.snapshot.schema_id < again.snapshot.schema_id
    assert diff_snapshots(evolved, again).columns == ("added 'x' string", "dropped 'x'")
    check_invariants(again)


def test_a_key_is_of_columns_whatever_they_are_called(table: StoredTable) -> None:
    keyed = table.transaction().key_by(["name", "id"]).commit()
    assert (keyed.snapshot.key, keyed.snapshot.operation, table.snapshot.key) == (("name", "id"), "key by", ())

    renamed = evolve(evolve(keyed, RENAMING, path="name", to="x"), RENAMING, path="id", to="name")
    assert renamed.snapshot.key == ("x", "name")
    assert StoredTable.open(table.store).snapshot.key == ("x", "name")
    assert renamed.transaction().restore(table.snapshot).commit().snapshot.key == ()
    again = renamed.refresh().transaction().restore(keyed.snapshot).commit()
    assert again.snapshot.key == ("name", "id")
    assert again.transaction().key_by(["name", "id"]).commit() is again
    none = again.transaction().key_by([]).commit()
    assert (none.snapshot.key, dict(none.snapshot.properties)) == ((), dict(table.snapshot.properties))
    check_invariants(none)


def test_what_stands_in_the_way_of_a_key_is_told() -> None:
    kinds = pa.schema(
        [
            ("id", pa.int32()),
            ("ratio", pa.float64()),
            ("tags", pa.list_(pa.int32())),
            ("s", pa.struct([("a", pa.int32())])),
        ]
    )
    table = StoredTable.create(f"memory://key-{uuid4().hex}", kinds, key=["id"])
    assert table.snapshot.key == ("id",)
    for columns, said in (
        (["ratio"], "'ratio' is double, which cannot be in a key"),
        (["tags"], "'tags' is array, which cannot be in a key"),
        (["s.a"], "no column 's.a'"),
        (["id", "id"], "'id' twice"),
        (["Id"], "no column 'Id'"),
    ):
        with pytest.raises(SchemaError, match=said):
            table.transaction().key_by(columns).commit()
    with pytest.raises(
        SchemaError, match=r"column 'id' cannot be dropped: it is of the table's key \['id'\]; choose another key first"
    ):
        evolve(table, schema_evolution.drop_column, path="id")
    with pytest.raises(SchemaError, match="'id' is of the table's key, and cannot become double"):
        evolve(table, schema_evolution.change_type, path="id", data_type=pa.float64())
    assert evolve(table, schema_evolution.change_type, path="id", data_type=pa.int64()).snapshot.key == ("id",)
    with pytest.raises(InvalidArgument, match=r"name the columns of its key instead"):
        StoredTable.create(f"memory://key-{uuid4().hex}", kinds, properties={"key_ids": [1]})


def test_a_key_and_a_drop_of_its_column_at_once(table: StoredTable) -> None:
    key, other = table.transaction().key_by(["name"]), table.transaction().key_by(["id"])
    drop = table.transaction().evolve_schema(partial(schema_evolution.drop_column, path="name"))
    key.commit()

    with pytest.raises(Conflict, match="columns or the key were changed by key by"):
        other.commit()
    with pytest.raises(SchemaError, match="it is of the table's key"):
        drop.commit()


INNER = pa.struct([("a", pa.int32()), ("b", pa.string())])
NESTED = pa.schema(
    [
        ("l", pa.list_(INNER)),
        ("m", pa.map_(INNER, INNER)),
        ("ll", pa.list_(pa.list_(INNER))),
        ("n", pa.list_(pa.int32())),
    ]
)


def test_structs_within_arrays_and_maps_change_like_others() -> None:
    one, two = {"a": 1, "b": "x"}, {"a": 2, "b": "y"}
    rows = [
        {"l": [one, None, two], "m": [(one, two), (two, None)], "ll": [[one], None, [], [two, None]], "n": [1, None]},
        {"l": None, "m": None, "ll": None, "n": None},
        {"l": [], "m": [], "ll": [], "n": []},
        {"l": [two], "m": [(two, one)], "ll": [[two]], "n": [2]},
    ]
    table = add(pa.Table.from_pylist(rows, NESTED), StoredTable.create(f"memory://nested-{uuid4().hex}", NESTED))
    for path in ("l.element", "m.key", "m.value", "ll.element.element"):
        table = evolve(table, schema_evolution.add_column, path=f"{path}.c", data_type=pa.float32())
        table = evolve(table, schema_evolution.change_type, path=f"{path}.a", data_type=pa.int64())
        table = evolve(table, RENAMING, path=f"{path}.b", to="text")
        table = evolve(table, schema_evolution.move_column, path=f"{path}.c", after="")
    table = evolve(table, schema_evolution.drop_column, path="m.value.text")
    table = evolve(table, schema_evolution.add_column, path="m.value.text", data_type=INNER)
    table = evolve(table, schema_evolution.change_type, path="n.element", data_type=pa.int64())

    def now(found: dict | None, text: bool = True) -> dict | None:
        return found and {"c": None, "a": found["a"], "text": found["b"] if text else None}

    def deep(lists: list | None) -> list | None:
        return None if lists is None else [None if part is None else [now(one) for one in part] for part in lists]

    def seen(row: dict) -> dict:
        of_map = None if row["m"] is None else [(now(key), now(value, False)) for key, value in row["m"]]
        return row | {
            "l": None if row["l"] is None else [now(one) for one in row["l"]],
            "m": of_map,
            "ll": deep(row["ll"]),
        }

    assert read(table) == [seen(row) for row in rows]
    blocks, names = table.blocks(), table.snapshot.schema.names
    for mask in ([False, True, False, True], [False, False, True, True], [False, True, True, False]):
        chosen = table.read_block(blocks, 0, names, row_mask=np.array(mask)).to_pylist()
        assert chosen == [seen(row) for row, wanted in zip(rows, mask, strict=True) if wanted]
    same = table.read_block(blocks, 0, names)
    assert read(add(same, table)) == [seen(row) for row in rows] * 2
    check_invariants(table)


def test_slices_of_nested_values_are_fitted_too() -> None:
    changed = evolve(
        StoredTable.create(f"memory://nested-{uuid4().hex}", NESTED),
        schema_evolution.add_column,
        path="l.element.c",
        data_type=pa.int32(),
    )
    changed = evolve(changed, schema_evolution.add_column, path="m.value.c", data_type=pa.int32())
    for name, rows in (
        ("l", [[{"a": 1}], None, [None], []]),
        ("m", [[({"a": 1}, {"a": 1})], None, [({"a": 2}, None)], []]),
    ):
        values, field = pa.array(rows, NESTED.field(name).type), changed.snapshot.schema.find(name)
        whole = projection.project_column(pa.chunked_array([values]), field, 4)
        for start, end in combinations(range(5), 2):
            assert projection.project_column(pa.chunked_array([values[start:end]]), field, end - start).equals(
                whole[start:end]
            )


def test_what_is_no_struct_within_arrays_and_maps_is_told() -> None:
    table = StoredTable.create(f"memory://nested-{uuid4().hex}", NESTED)
    for step, how, says in (
        (
            schema_evolution.add_column,
            {"path": "l.c", "data_type": pa.int32()},
            "'l' is array, not a struct; what it holds is at 'l.element'",
        ),
        (
            schema_evolution.add_column,
            {"path": "m.c", "data_type": pa.int32()},
            "what it holds is at 'm.key' and 'm.value'",
        ),
        (
            schema_evolution.add_column,
            {"path": "l.element.c", "data_type": pa.int32(), "default": 1},
            "cannot have a default",
        ),
        (
            schema_evolution.add_column,
            {"path": "l.element.a", "data_type": pa.int32()},
            "there is a column 'l.element.a' already",
        ),
        (RENAMING, {"path": "l.element", "to": "x"}, "'l.element' is no field"),
        (schema_evolution.drop_column, {"path": "n.element"}, "'n.element' is no field"),
        (schema_evolution.drop_column, {"path": "m.key.a"}, "keys of a map that differ in it alone would become equal"),
        (schema_evolution.drop_column, {"path": "l.element.z"}, "has no 'z'"),
        (schema_evolution.change_type, {"path": "n.element", "data_type": pa.int16()}, "cannot become smallint"),
        (table_keys.key_by, {"names": ["n.element"]}, "no column 'n.element'"),
        (table_keys.cluster_by, {"names": ["l.element.a"]}, "no column 'l.element.a'"),
    ):
        with pytest.raises(SchemaError, match=says):
            evolve(table, step, **how)
