"""Conditions on functions of constants, through every door of a table."""

from uuid import uuid4

import pyarrow as pa
import pytest

import fuse_index as fuse

SCHEMA = pa.schema([("id", pa.int64()), ("s", pa.string())])
ROWS = pa.table({"id": [1, 2, 3, 4], "s": ["a", "b", None, "a"]}, SCHEMA)
TRUE = ["length('') = 0", "lower('A') IN ('a', 'b')", """get_json_object('{"a":1}', '$.a') = '1'"""]
ONE_ROW = [text for true in TRUE for text in (f"{true} AND id = 2", f"NOT ({true}) OR id = 2")]


@pytest.fixture
def table() -> fuse.Table:
    table = fuse.create_table(f"memory://constants-{uuid4().hex}", SCHEMA)
    for start in (0, 2):
        table.append(ROWS.slice(start, 2))
    return table


def ids(table: fuse.Table, where: str | None = None) -> list[int]:
    return sorted(table.scan(where, ["id"]).to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("true", TRUE)
def test_a_true_constant_is_every_row(table, true):
    assert ids(table, true) == ids(table, f"id = 7 OR {true}") == [1, 2, 3, 4]
    assert ids(table, f"NOT ({true})") == []
    assert table.scan(true).count() == table.aggregate([], ["count(*)"], true)["count(*)"][0].as_py() == 4


@pytest.mark.parametrize("where", ONE_ROW)
def test_one_row_is_found_counted_changed_and_deleted(table, where):
    assert ids(table, where) == [2]
    assert table.scan(where).count() == 1

    table.update(where, {"s": "'new'"})
    assert ids(table, "s = 'new'") == [2]
    table.overwrite(ROWS.slice(1, 1), where)
    assert table.scan("id = 2").to_arrow()["s"].to_pylist() == ["b"]
    table.delete(where)
    assert ids(table) == [1, 3, 4]


def test_a_merge_knows_constants(table):
    source = ROWS.slice(1, 1).append_column("gone", pa.array([True]))
    table.merge(source, on=["id"], matched={"delete": "lower('A') = 'a' AND source.gone"}, not_matched=None)

    assert ids(table) == [1, 3, 4]


def test_a_false_constant_reads_no_block(table):
    assert table.explain("length('') = 1").blocks.kept == 0


@pytest.mark.parametrize("where", ["rand() > 2", "CAST(id AS DOUBLE) = 1 AND CAST(CAST(id AS DOUBLE) AS STRING) = '1'"])
def test_what_only_spark_knows_is_refused_though_every_block_were_skipped(table, where):
    where = f"id = 99 AND {where}"

    for read in (
        lambda: table.scan(where),
        lambda: table.aggregate([], ["count(*)"], where),
        lambda: table.delete(where),
        lambda: table.update(where, {"s": "'x'"}),
        lambda: table.changes(since=table.snapshot.id, where=where),
    ):
        with pytest.raises(fuse.OpaqueError, match="only Spark can evaluate"):
            read()
    assert table.explain(where).blocks.kept == 0
