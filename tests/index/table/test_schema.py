"""Columns change under queries and indexes, and every answer stays what it was, with or without them."""

from uuid import uuid4

import pyarrow as pa
import pytest

import fuse_index as fuse

SCHEMA = pa.schema([("id", pa.int32()), ("name", pa.string()), ("s", pa.struct([("a", pa.int32())]))])


def rows(*ids: int, **more: list) -> pa.Table:
    structs = pa.array([{"a": row_id} for row_id in ids], SCHEMA.field("s").type)
    return pa.table({"id": pa.array(ids, pa.int32()), "name": [f"n{row_id}" for row_id in ids], "s": structs} | more)


def found(table: fuse.Table, where: str) -> list[int]:
    """The ids of the rows, the same with indexes and without."""
    with_indexes, without = (
        table.scan(where, columns=[table.schema.names[0]], indexes=use).to_arrow() for use in (True, False)
    )
    assert with_indexes.equals(without)
    return with_indexes.column(0).to_pylist()


def kept(table: fuse.Table, where: str) -> int:
    return table.explain(where).to_dict()["blocks"]["kept"]


@pytest.fixture
def table() -> fuse.Table:
    made = fuse.create_table(f"memory://columns-{uuid4().hex}", SCHEMA, properties={"block_rows": 2})
    made.append(rows(1, 2, 3, 4))
    return made


def test_old_blocks_are_skipped_by_a_new_columns_default(table):
    table.add_column("city", "string", default="Bonn")
    table.append(rows(5, 6, city=["Oslo", "Oslo"]))

    assert found(table, "city = 'Oslo'") == [5, 6]
    assert kept(table, "city = 'Oslo'") == 1
    assert found(table, "city = 'Bonn' AND id > 2") == [3, 4]
    assert kept(table, "city = 'Rome'") == 0
    table.create_index("by_city", "bloom", ["city"])
    assert found(table, "city IN ('Bonn', 'Rome')") == [1, 2, 3, 4]


def test_an_index_survives_renames_and_follows_new_rows(table):
    table.create_index("by_name", "bloom", ["lower(name)"])
    table.create_index("by_a", "bloom", ["s.a"])
    table.rename_column("name", "called")
    table.rename_column("s.a", "b")
    table.append(
        pa.table(
            {
                "id": pa.array([5], pa.int32()),
                "called": ["N5"],
                "s": pa.array([{"b": 5}], pa.struct([("b", pa.int32())])),
            }
        )
    )

    assert found(table, "lower(called) = 'n5'") == [5]
    assert found(table, "lower(called) = 'n3'") == [3]
    assert kept(table, "lower(called) = 'n3'") == 1
    assert found(table, "s.b = 2") == [2]
    assert kept(table, "s.b = 2") == 1
    assert table.inspect.indexes().column("columns").to_pylist() == [["lower(called)"], ["s.b"]]
    table.move_column("called", first=True)
    assert table.schema.names == ["called", "id", "s"]
    with pytest.raises(fuse.InputError, match="where is 'called' to go"):
        table.move_column("called")


def test_a_column_with_an_index_is_dropped_only_with_it(table):
    table.create_index("by_a", "bloom", ["s.a"])
    then = table.snapshot.id

    with pytest.raises(
        fuse.DefinitionError, match="column 's' has index 'by_a' on it: drop it first, or say indexes='drop'"
    ):
        table.drop_column("s")
    table.drop_column("s", indexes="drop")
    assert table.schema.names == ["id", "name"]
    assert table.inspect.indexes().num_rows == 0
    old = fuse.open_table(table.stored.store, at=then)
    assert found(old, "s.a = 3") == [3]
    assert kept(old, "s.a = 3") == 1


def test_a_widened_columns_index_is_refused_dropped_or_rebuilt(table):
    table.create_index("by_id", "bloom", ["id"])

    with pytest.raises(fuse.DefinitionError, match="say indexes='drop' or 'rebuild'"):
        table.change_type("id", "bigint")
    table.change_type("id", "bigint", indexes="rebuild")
    table.append(pa.table({"id": [1 << 40], "name": ["big"], "s": pa.array([None], SCHEMA.field("s").type)}))
    assert found(table, "id = 3") == [3]
    assert kept(table, "id = 3") == 1
    assert found(table, f"id = {1 << 40}") == [1 << 40]
    assert table.inspect.indexes().select(["blocks_indexed", "problem"]).to_pylist() == [
        {"blocks_indexed": 3, "problem": None}
    ]


def test_appending_takes_new_columns_if_told_to(table):
    with pytest.raises(fuse.SchemaError, match="a column 'city' that the table lacks"):
        table.append(rows(5, city=["Oslo"]))
    before = table.snapshot.sequence
    table.append(rows(5, city=["Oslo"]), merge_schema=True)

    assert table.snapshot.sequence == before + 1
    assert found(table, "city IS NULL") == [1, 2, 3, 4]
    assert found(table, "city = 'Oslo'") == [5]
    assert kept(table, "city = 'Oslo'") == 1
    with pytest.raises(fuse.SchemaError, match="'city', from which 'City' differs only in case"):
        table.append(rows(6, City=["Rome"]), merge_schema=True)
    same = table.snapshot
    table.append(rows(city=[]).slice(0, 0), merge_schema=True)
    assert table.snapshot is same


def test_nothing_to_change_is_no_commit_and_a_pinned_handle_changes_nothing(table):
    same = table.snapshot
    assert table.change_type("id", "int") is same
    assert table.move_column("id", first=True) is same
    old = fuse.open_table(table.stored.store, at=same.id)
    with pytest.raises(fuse.ReadOnly):
        old.add_column("x", "int")
    with pytest.raises(fuse.InputError, match="type=3"):
        table.add_column("x", 3)
    for text in ("int NOT NULL", "int, y int"):
        with pytest.raises(fuse.InputError, match="give the type alone"):
            table.add_column("x", text)
    with pytest.raises(fuse.InputError, match="two places"):
        table.add_column("x", "int", first=True, after="id")


def test_columns_have_comments_and_fields_of_structs_too(table):
    table.set_comment("name", "who it is")
    table.set_comment("s.a", "a number")

    reopened = fuse.open_table(table.stored.store)
    assert reopened.snapshot.schema.find("name").comment == "who it is"
    assert reopened.snapshot.schema.find("s.a").comment == "a number"
    assert found(table, "s.a > 2") == [3, 4]
    table.set_comment("name", None)
    assert table.snapshot.schema.find("name").comment is None


def test_a_column_becomes_not_null_where_no_row_has_null_and_nullable_again(table):
    table.append([{"id": 5, "name": None}])
    with pytest.raises(fuse.SchemaError, match="column 'name' cannot be made NOT NULL: 1 rows have NULL in it"):
        table.set_nullable("name", False)
    table.update("id = 5", {"name": "'n5'"})
    seen = fuse.open_table(table.stored.store)
    table.set_nullable("name", False)
    same = table.snapshot

    assert not table.schema.field("name").nullable
    assert table.set_nullable("name", False) is same
    with pytest.raises(fuse.SchemaError, match="column 'name' is NOT NULL"):
        table.append([{"id": 6, "name": None}])
    with pytest.raises(fuse.Conflict, match="'name'"):
        seen.append([{"id": 6, "name": None}])
    table.set_nullable("name", True)
    table.append([{"id": 6, "name": None}])
    assert found(table, "name IS NULL") == [6]
    assert found(table, "name = 'n1'") == [1]
    with pytest.raises(fuse.SchemaError, match="only whole columns"):
        table.set_nullable("s.a", False)


def test_null_counts_alone_tell_that_a_column_has_no_null(table, monkeypatch):
    for reader in ("read_block", "read_rows"):
        monkeypatch.setattr(f"fuse_storage.StoredTable.{reader}", None)
    table.set_nullable("id", False)
    assert not table.schema.field("id").nullable


@pytest.mark.parametrize("hot", [False, True])
def test_rows_that_come_while_a_column_becomes_not_null_are_a_conflict(table, hot):
    other = fuse.open_table(table.stored.store)
    other.append([{"id": 5, "name": None}], hot=hot)

    with pytest.raises(fuse.Conflict, match="rows, columns or indexes were changed"):
        table.set_nullable("name", False)
    with pytest.raises(fuse.SchemaError, match="1 rows have NULL"):
        other.set_nullable("name", False)
    other.delete("id = 5")
    behind = fuse.open_table(table.stored.store)
    other.set_nullable("name", False)
    with pytest.raises((fuse.Conflict, fuse.SchemaError), match="'name'"):
        behind.append([{"id": 6, "name": None}], hot=hot)


def test_fields_of_structs_and_elements_may_become_nullable():
    made = fuse.create_table(
        f"memory://columns-{uuid4().hex}", "id INT, s STRUCT<a: INT NOT NULL>, items ARRAY<STRUCT<p: INT NOT NULL>>"
    )
    made.append([{"id": 1, "s": {"a": 1}, "items": [{"p": 1}]}, {"id": 2, "s": None, "items": None}])
    made.set_nullable("s.a", True)
    made.set_nullable("items.element.p", True)
    made.append([{"id": 3, "s": {"a": None}, "items": [{"p": None}, None]}])

    assert made.to_arrow().column("s").to_pylist() == [{"a": 1}, None, {"a": None}]
    assert made.to_arrow().column("items").to_pylist() == [[{"p": 1}], None, [{"p": None}, None]]
    assert found(made, "s.a = 1") == [1]


def test_a_default_that_does_not_fit_is_refused(table):
    empty = fuse.create_table(f"memory://columns-{uuid4().hex}", SCHEMA)
    empty.set_default("name", "nobody")
    empty.append(rows(1).select(["id", "s"]))

    assert empty.scan().to_arrow().column("name").to_pylist() == ["nobody"]
    with pytest.raises(fuse.SchemaError, match="'x' cannot be the default of column 'id'"):
        fuse.create_table(f"memory://columns-{uuid4().hex}", SCHEMA).set_default("id", "x")


def test_properties_are_set_and_removed(table):
    before = table.snapshot.id
    table.set_properties({"block_rows": 1, "team": "a"})
    table.append(rows(5, 6))

    assert [block["rows"] for block in table.inspect.blocks().to_pylist()] == [2, 2, 1, 1]
    table.set_properties({"team": "b"}, ["block_rows"])
    assert dict(fuse.open_table(table.stored.store).snapshot.properties) == {"team": "b"}
    assert dict(fuse.open_table(table.stored.store, at=before).snapshot.properties) == {"block_rows": 2}
    with pytest.raises(ValueError, match="did you mean 'block_rows'"):
        table.set_properties({"block_row": 1})
    with pytest.raises(ValueError, match="cluster_by"):
        table.set_properties({"cluster_method": "zorder"})
    head = table.snapshot.id
    assert table.set_properties({"team": "b"}).id == head
