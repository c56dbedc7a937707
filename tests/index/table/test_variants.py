"""VARIANT columns without Spark: rows in every form, JSON text out, statements, refusals, votes that keep answers."""

from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fuse_index as fuse
from fuse_index.errors import DefinitionError, FuseIndexError, InputError, OpaqueError, WhereError
from fuse_index.expressions.variant.columns import encode_texts
from fuse_storage import VARIANT, SchemaError
from fuse_storage.testing import check_invariants


@pytest.fixture
def table(tmp_path: Path) -> fuse.Table:
    made = fuse.create_table(str(tmp_path / "t"), "id BIGINT, v VARIANT", properties={"block_rows": 2})
    made.append(
        [{"id": number, "v": f'{{"a":{number},"b":{{"c":"x{number}"}},"l":[{number}]}}'} for number in range(8)]
    )
    made.append(
        [{"id": 8, "v": None}, {"id": 9, "v": "null"}, {"id": 10, "v": '{"a":"3"}'}, {"id": 11, "v": '{"a":[1]}'}]
    )
    return made


def texts(table: fuse.Table, where: str | None = None) -> list[Any]:
    found: list[Any] = table.scan(where).to_arrow().column("v").to_pylist()
    return found


def test_rows_come_in_any_form_and_are_read_as_json_text(tmp_path: Path) -> None:
    table = fuse.create_table(str(tmp_path / "t"), "id BIGINT, v VARIANT")
    tree = {"d": Decimal("1.50"), "day": date(2024, 1, 2), "at": datetime(2024, 1, 2, 3, 4, 5), "n": None, "f": 1.5}
    table.append(
        [{"id": 1, "v": '{"b": 1, "a": [true]}'}, {"id": 2, "v": tree}, {"id": 3, "v": None}, {"id": 4, "v": 5}]
    )
    table.append({"id": [5], "v": [[1, "x"]]})
    table.append(pd.DataFrame({"id": [6, 7], "v": [{"a": 1}, None]}))
    table.append(pa.table({"id": [8], "v": ['"text"']}))
    table.append(pa.table({"id": [9], "v": encode_texts(pa.array(["1.0"]), "v")}))
    rows = table.scan().to_arrow()
    assert rows.schema.field("v").type == pa.string()
    assert rows.column("v").to_pylist() == [
        '{"a":[true],"b":1}',
        '{"at":"2024-01-02 03:04:05","d":1.5,"day":"2024-01-02","f":1.5,"n":null}',
        None,
        "5",
        '[1,"x"]',
        '{"a":1}',
        None,
        '"text"',
        "1",
    ]
    assert table.scan().to_pandas()["v"][0] == '{"a":[true],"b":1}'
    assert table.schema.field("v").type == VARIANT
    assert fuse.open_table(table.stored.store.url).snapshot.reader_features == ("variant",)
    check_invariants(table.stored)


def test_statements_keep_values_as_they_are_encoded(table: fuse.Table) -> None:
    table.append([{"id": 20, "v": {"day": date(2024, 1, 2)}}])
    table.update("id = 0", {"v": "NULL"})
    table.merge([{"id": 1, "v": '{"m":1}'}, {"id": 30, "v": "[2]"}], on=["id"])
    table.delete("variant_get(v, '$.a', 'int') = 2")
    table.maintenance.compact()
    table.rename_column("v", "w")
    table.add_column("u", "VARIANT")
    rows = {row["id"]: row for row in table.scan().to_arrow().to_pylist()}
    assert rows[0] == {"id": 0, "w": None, "u": None}
    assert rows[1]["w"] == '{"m":1}'
    assert rows[30]["w"] == "[2]"
    assert 2 not in rows
    assert table.scan("id = 20 AND w:day::date = DATE'2024-01-02'").count() == 1
    assert "2024-01-02" in str(table.changes(1).to_arrow().to_pylist())


def test_keyed_rows_are_put_and_looked_up(tmp_path: Path) -> None:
    table = fuse.create_table(str(tmp_path / "t"), "id BIGINT NOT NULL, v VARIANT", primary_key=["id"])
    table.upsert([{"id": 1, "v": '{"a":1}'}, {"id": 2, "v": None}])
    table.upsert([{"id": 1, "v": '{"a":2}'}])
    assert table.lookup([1, 2]).to_pylist() == [{"id": 1, "v": '{"a":2}'}, {"id": 2, "v": None}]
    table.maintenance.tier()
    assert texts(table) == ['{"a":2}', None]


CONDITIONS = {
    "variant_get(v, '$.a', 'int') = 3": [3, 10],
    "try_variant_get(v, '$.a', 'int') > 5": [6, 7],
    "v:a::int = 3": [3, 10],
    "v:b.c::string = 'x4'": [4],
    "v:b.c::string LIKE 'x%' AND v:a::int < 2": [0, 1],
    "CAST(v:a AS INT) IN (1, 2)": [1, 2],
    "v:['b'].c::string = 'x7'": [7],
    "v:l[0]::double = 2.0D": [2],
    "v:a::string = '[1]'": [11],
    "v IS NULL": [8],
    "v:a IS NULL": [8, 9],
    "v:a::int IS NULL": [8, 9, 11],
    'CAST(v AS STRING) = \'{"a":"3"}\'': [10],
    "v:A::int = 1": [],
    "NOT v:a::int = 3 AND id < 5": [0, 1, 2, 4],
}


@pytest.mark.parametrize(("condition", "paths"), list(product(CONDITIONS, ["auto", "$.a;$.b.c;$.l[0]"])))
def test_rows_are_the_same_with_votes_and_without(table: fuse.Table, condition: str, paths: str) -> None:
    table.create_index("by_path", "json_path", ["v"], paths=paths)
    for indexes in (True, False):
        found = table.scan(condition, ["id"], indexes=indexes, strict=False).to_arrow().column("id").to_pylist()
        assert found == CONDITIONS[condition], indexes


def test_blocks_without_the_value_are_not_read(table: fuse.Table) -> None:
    table.create_index("by_path", "json_path", ["v"], paths=["$.a", "$.b.c"])
    assert table.explain("v:a::int = 3").to_dict()["blocks"] == {"total": 6, "kept": 2}
    assert table.explain("v:b.c::string = 'x3'").to_dict()["blocks"] == {"total": 6, "kept": 1}


def test_a_block_of_what_json_lacks_is_read(table: fuse.Table) -> None:
    table.append([{"id": 50, "v": {"a": date(2024, 1, 2)}}])
    table.create_index("by_path", "json_path", ["v"], paths=["$.a"])
    kept = table.explain("v:a::date = DATE'2024-01-02'").to_dict()["blocks"]["kept"]
    assert 1 <= kept < 7
    assert table.scan("v:a::timestamp = TIMESTAMP'2024-01-02 00:00:00'").count() == 1
    table.append([{"id": 51, "v": {"a": datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)}}])
    assert table.scan("v:a::string = '2024-01-02 03:04:05'").count() == 1  # its JSON text has an offset, too


@pytest.mark.parametrize(
    ("condition", "error", "message"),
    [
        ("v = v", WhereError, "Spark compares no VARIANT"),
        ("v:a = 3", WhereError, "say the type, as in v:a::INT = 1"),
        ("v IN ('a')", WhereError, "Spark compares no VARIANT"),
        ("v > 1", WhereError, "Spark compares no VARIANT"),
        ("id:a::int = 1", WhereError, "bigint is no VARIANT"),
        ("variant_get(v, 'a', 'int') = 1", OpaqueError, "of other than names and places"),
        ("v:a[*]::int = 1", OpaqueError, "only names and places"),
    ],
)
def test_what_spark_does_not_do_is_refused(table: fuse.Table, condition: str, error: type[Any], message: str) -> None:
    with pytest.raises(error, match=message.replace("(", "\\(")):
        table.scan(condition).count()


@pytest.mark.parametrize(
    ("kind", "message"),
    [("bloom", "cannot hash"), ("full_text", "on text"), ("aggregate", "cannot be grouped"), ("min_max", "min_max")],
)
def test_other_kinds_are_refused_with_a_sentence(table: fuse.Table, kind: str, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        table.create_index("other", kind, ["v"])


def test_groups_keys_and_parts_are_refused(table: fuse.Table, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="grouped here by values of type variant"):
        table.aggregate(["v"], ["count(*)"])
    with pytest.raises(WhereError, match="min of variant"):
        table.aggregate([], ["min(v)"])
    assert table.aggregate([], ["count(v)"]).to_pylist() == [{"count(v)": 11}]
    place = str(tmp_path / "other")
    for schema, options in (
        ("v VARIANT", {"cluster_by": ["v"]}),
        ("v VARIANT NOT NULL", {"primary_key": ["v"]}),
        ("v VARIANT, i INT", {"partition_by": ["v"]}),
    ):
        with pytest.raises((FuseIndexError, SchemaError), match=r"variant|VARIANT"):
            fuse.create_table(place, schema, **options)
    with pytest.raises(SchemaError, match="cannot have a default"):
        table.set_default("v", "1")


def test_what_is_no_variant_is_named_by_its_row(table: fuse.Table) -> None:
    for value, message in (
        ("{bad", "row 0 has '{bad': no JSON"),
        ('{"a":1,"a":2}', "comes twice"),
        ({1: 2}, "is no text"),
    ):
        with pytest.raises(InputError, match=message):
            table.append([{"id": 1, "v": value}])
    with pytest.raises(SchemaError, match="give JSON text"):
        table.append(pa.table({"id": [1], "v": [1]}))


def test_others_ask_for_the_text_that_they_see(table: fuse.Table) -> None:
    shown = table  # noqa: F841  # DuckDB finds it by its name
    seen = '{"a":3,"b":{"c":"x3"},"l":[3]}'
    for rows in (
        table.scan().to_duckdb().filter(f"v = '{seen}'").to_arrow_table(),
        table.scan().to_dataset().to_table(filter=pc.field("v") == seen),
        table.scan().to_lazy_frame().filter(pl.col("v").str.starts_with(seen[:6])).collect().to_arrow(),
        duckdb.sql(f"SELECT * FROM shown WHERE v = '{seen}'").to_arrow_table(),
    ):
        assert rows.column("id").to_pylist() == [3]


def test_an_index_is_verified_by_what_lies_in_the_values(table: fuse.Table) -> None:
    table.create_index("by_path", "json_path", ["v"], paths=["$.a", "$.b"])
    found = table.maintenance.verify_index("by_path")
    assert found.leaves > 10
    assert not found.problems
