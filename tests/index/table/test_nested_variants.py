"""VARIANT within structs, arrays and maps, without Spark: rows in every form, text out, statements, votes, refusals."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import fuse_index as fuse
from fuse_index.errors import DefinitionError, InputError, OpaqueError, WhereError
from fuse_index.expressions.variant.columns import encode_texts
from fuse_storage import VARIANT, SchemaError
from fuse_storage.testing import check_invariants

COLUMNS = (
    "id BIGINT, s STRUCT<a: INT, v: VARIANT>, l ARRAY<VARIANT>, m MAP<STRING, VARIANT>, d ARRAY<STRUCT<w: VARIANT>>"
)
ROWS: list[dict[str, Any]] = [
    {
        "id": 1,
        "s": {"a": 1, "v": '{"a":1,"b":{"c":"x"}}'},
        "l": ["1", None],
        "m": {"k": '{"a":1}'},
        "d": [{"w": "[1]"}],
    },
    {"id": 2, "s": {"a": 2, "v": None}, "l": [], "m": {}, "d": [None]},
    {"id": 3, "s": None, "l": None, "m": None, "d": None},
    {
        "id": 4,
        "s": {"a": 4, "v": {"a": 4}},
        "l": ["null", {"a": 2}],
        "m": [("k", [9]), ("z", None)],
        "d": [{"w": None}],
    },
]
SHOWN = [
    {
        "id": 1,
        "s": {"a": 1, "v": '{"a":1,"b":{"c":"x"}}'},
        "l": ["1", None],
        "m": [("k", '{"a":1}')],
        "d": [{"w": "[1]"}],
    },
    {"id": 2, "s": {"a": 2, "v": None}, "l": [], "m": [], "d": [None]},
    {"id": 3, "s": None, "l": None, "m": None, "d": None},
    {
        "id": 4,
        "s": {"a": 4, "v": '{"a":4}'},
        "l": ["null", '{"a":2}'],
        "m": [("k", "[9]"), ("z", None)],
        "d": [{"w": None}],
    },
]


def empty(tmp_path: Path, **options: Any) -> fuse.Table:
    return fuse.create_table(str(tmp_path / "t"), COLUMNS, properties={"block_rows": 2}, **options)


@pytest.fixture
def table(tmp_path: Path) -> fuse.Table:
    made = empty(tmp_path)
    made.append(ROWS)
    return made


def shown(table: fuse.Table, where: str | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.scan(where).to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["id"])


def in_columns() -> dict[str, list[Any]]:
    return {name: [row[name] for row in ROWS] for name in ROWS[0]}


def in_arrow() -> pa.Table:
    """Rows with text where a table has VARIANT, nested as Arrow's other libraries nest it."""
    kinds = {
        "id": pa.int64(),
        "s": pa.struct([("v", pa.large_string()), ("a", pa.int32())]),
        "l": pa.large_list(pa.string()),
        "m": pa.map_(pa.string(), pa.string()),
        "d": pa.list_(pa.struct([("w", pa.string())])),
    }
    return pa.table({name: pa.array([row[name] for row in SHOWN], kind) for name, kind in kinds.items()})


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        iter(ROWS),
        in_columns(),
        pd.DataFrame(in_columns()),
        in_arrow(),
        in_arrow().slice(1),
        pl.DataFrame(in_arrow().drop_columns(["m"])),
    ],
    ids=["dicts", "iterator", "columns", "pandas", "arrow", "slice", "polars"],
)
def test_rows_come_in_any_form_and_are_read_as_json_text(tmp_path: Path, rows: Any) -> None:
    table = empty(tmp_path)
    table.append(rows)
    whole = SHOWN[-table.scan().count() :]
    if isinstance(rows, pl.DataFrame):
        whole = [{**row, "m": None} for row in whole]
    assert shown(table) == whole
    found = table.scan().to_arrow()
    assert found.schema.field("s").type == pa.struct([("a", pa.int32()), ("v", pa.string())])
    assert found.schema == table.scan().schema
    assert table.schema.field("s").type.field("v").type == VARIANT
    assert fuse.open_table(table.stored.store.url).snapshot.reader_features == ("nested-variant",)
    check_invariants(table.stored)


def test_files_are_read_and_variants_are_given_as_they_are(tmp_path: Path) -> None:
    table, lines = (
        fuse.create_table(str(tmp_path / "t"), COLUMNS.replace(", m MAP<STRING, VARIANT>", "")),
        tmp_path / "rows.jsonl",
    )
    lines.write_text("\n".join(json.dumps({name: row[name] for name in ("id", "s", "l", "d")}) for row in SHOWN))
    table.append(str(lines))
    assert shown(table) == [{name: row[name] for name in ("id", "s", "l", "d")} for row in SHOWN]
    values = encode_texts(pa.array(['{"x":1}', None]), "v")
    struct = pa.StructArray.from_arrays([values.storage], ["v"])
    table.append(pa.table({"id": [10, 11], "s": struct, "l": pa.ListArray.from_arrays([0, 1, 2], values)}))
    assert [row["s"]["v"] for row in shown(table, "id >= 10")] == ['{"x":1}', None]
    assert [row["l"] for row in shown(table, "id >= 10")] == [['{"x":1}'], [None]]


def test_statements_keep_values_and_columns_change_around_them(table: fuse.Table) -> None:
    table.update("id = 1", {"s": {"a": 7, "v": '{"u":1}'}, "l": [{"x": 1}, None]})
    table.update("id = 2", {"m": "NULL"})
    table.merge(
        [{"id": 3, "s": {"v": "[3]"}}, {"id": 9, "s": {"a": 9, "v": "9"}, "l": ["9"]}], on=["id"], merge_schema=True
    )
    table.delete("variant_get(s.v, '$.a', 'int') = 4")
    table.rename_column("s.v", "renamed")
    table.add_column("s.later", "VARIANT")
    table.add_column("late", "STRUCT<v: VARIANT>")
    table.maintenance.compact()
    rows = {row["id"]: row for row in shown(table)}
    assert rows[1]["s"] == {"a": 7, "renamed": '{"u":1}', "later": None}
    assert rows[1]["l"] == ['{"x":1}', None]
    assert rows[2]["m"] is None
    assert rows[3]["s"] == {"a": None, "renamed": "[3]", "later": None}
    assert rows[9]["l"] == ["9"]
    assert 4 not in rows
    assert {row["late"] for row in rows.values()} == {None}
    table.append([{"id": 20, "late": {"v": "[1]"}, "s": {"later": "true"}}])
    assert table.scan("variant_get(late.v, '$[0]', 'int') = 1 AND s.later::boolean", ["id"]).to_arrow().column(
        "id"
    ).to_pylist() == [20]
    assert '{"a":4}' in str(table.changes(2).to_arrow().to_pylist())
    check_invariants(table.stored)


def test_keyed_rows_are_put_and_looked_up(tmp_path: Path) -> None:
    table = fuse.create_table(str(tmp_path / "t"), "id BIGINT NOT NULL, s STRUCT<v: VARIANT>", primary_key=["id"])
    table.upsert([{"id": 1, "s": {"v": '{"a":1}'}}, {"id": 2, "s": None}])
    table.upsert([{"id": 1, "s": {"v": '{"a":2}'}}])
    whole = [{"id": 1, "s": {"v": '{"a":2}'}}, {"id": 2, "s": None}]
    assert table.lookup([1, 2]).to_pylist() == whole
    table.maintenance.tier()
    assert shown(table) == whole


CONDITIONS = {
    "s.v:a::int = 1": [1],
    "variant_get(s.v, '$.a', 'int') > 1": [4],
    "try_variant_get(s.v, '$.b.c', 'string') = 'x'": [1],
    "s.v:a::int IS NULL": [2, 3],
    "s.v IS NULL": [2, 3],
    "s.v IS NULL AND s IS NOT NULL": [2],
    "CAST(s.v AS STRING) = '{\"a\":4}'": [4],
    "m['k']:a::int = 1": [1],
    "variant_get(m['k'], '$[0]', 'int') = 9": [4],
    "try_element_at(l, 2):a::int = 2": [4],
    "get(l, 0)::int = 1": [1],
    "size(l) = 2": [1, 4],
}


@pytest.mark.parametrize(("condition", "paths"), list(product(CONDITIONS, ["auto", "$;$.a;$.b.c"])))
def test_rows_are_the_same_with_votes_and_without(table: fuse.Table, condition: str, paths: str) -> None:
    table.create_index("by_path", "json_path", ["s.v"], paths=paths)
    for indexes in (True, False):
        found = table.scan(condition, ["id"], indexes=indexes, strict=False).to_arrow().column("id").to_pylist()
        assert found == CONDITIONS[condition], indexes


def test_blocks_without_the_value_are_not_read(tmp_path: Path) -> None:
    table = empty(tmp_path)
    table.append([{"id": number, "s": {"v": {"a": number, "b": {"c": f"x{number}"}}}} for number in range(12)])
    table.create_index("by_path", "json_path", ["s.v"], paths=["$.a", "$.b.c"])
    assert table.explain("s.v:a::int = 3").to_dict()["blocks"] == {"total": 6, "kept": 1}
    assert table.explain("s.v:b.c::string = 'x3'").to_dict()["blocks"] == {"total": 6, "kept": 1}
    assert not table.maintenance.verify_index("by_path").problems


def test_others_ask_for_the_text_that_they_see(table: fuse.Table) -> None:
    seen = table.scan()
    text = '{"a":4}'
    for rows in (
        seen.to_dataset().to_table(filter=pc.field("s", "v") == text),
        seen.to_lazy_frame().filter(pl.col("s").struct.field("v") == text).collect().to_arrow(),
        seen.to_duckdb().filter(f"s.v = '{text}'").to_arrow_table(),
    ):
        assert rows.column("id").to_pylist() == [4]
    narrow = seen.to_dataset().to_table(filter=pc.field("s", "a") == 2)
    assert narrow.column("id").to_pylist() == [2]


@pytest.mark.parametrize("condition", ["s.v = s.v", "s.v:a = 3", "s.v > 1", "s.a:b::int = 1"])
def test_what_spark_does_not_do_is_refused(table: fuse.Table, condition: str) -> None:
    with pytest.raises(WhereError, match="VARIANT"):
        table.scan(condition).count()


@pytest.mark.parametrize(
    "condition",
    [
        "array_contains(l, l[0])",
        "map_values(m) IS NULL",
        "array(s.v) IS NULL",
        "coalesce(s.v, s.v) IS NULL",
        "greatest(s.v, s.v) IS NULL",
        "array_max(l) IS NULL",
    ],
)
def test_functions_of_other_values_leave_variants_to_spark(table: fuse.Table, condition: str) -> None:
    with pytest.raises(OpaqueError, match="only Spark can evaluate"):
        table.scan(condition).count()


def test_keys_defaults_and_other_kinds_are_refused(table: fuse.Table, tmp_path: Path) -> None:
    for columns in ("m MAP<VARIANT, INT>", "m MAP<STRUCT<v: VARIANT>, INT>", "s STRUCT<m: MAP<VARIANT, INT>>"):
        with pytest.raises(SchemaError, match="VARIANT in its keys"):
            fuse.create_table(str(tmp_path / "other"), columns)
    with pytest.raises(SchemaError, match="cannot have a default"):
        table.set_default("s", {"v": "1"})
    with pytest.raises(SchemaError, match=r"s\.v"):
        table.add_column("s.v.value", "INT")
    for kind, column in (("bloom", "s.v"), ("min_max", "s.v"), ("json_path", "s"), ("json_path", "l")):
        with pytest.raises(DefinitionError):
            table.create_index("other", kind, [column])
    with pytest.raises(InputError):
        table.aggregate(["s"], ["count(*)"])


@pytest.mark.parametrize(
    ("row", "error", "message"),
    [
        ({"s": {"v": "{bad"}}, InputError, "column 's.v' is VARIANT, and row 0 has '{bad': no JSON"),
        ({"l": ["1", '{"a":1,"a":2}']}, InputError, "'l.element' is VARIANT.*comes twice"),
        ({"m": {"k": {1: 2}}}, InputError, "'m.value' is VARIANT.*is no text"),
        ({"l": "[1]"}, InputError, "column 'l'"),
        ({"s": 5}, InputError, "column 's'"),
    ],
)
def test_what_is_no_variant_is_named_by_its_place(
    table: fuse.Table, row: dict[str, Any], error: type[Exception] | tuple[type[Exception], ...], message: str
) -> None:
    with pytest.raises(error, match=message):
        table.append([{"id": 1, **row}])


def test_rows_of_another_type_in_its_place_are_refused(table: fuse.Table) -> None:
    with pytest.raises(SchemaError, match=r"'s\.v' is variant, and the rows have int64: give JSON text"):
        table.append(pa.table({"id": [1], "s": [{"v": 5}]}))
    half = pa.array([{"v": {"value": b"\0", "metadata": None}}])
    with pytest.raises(SchemaError, match="one of its two binaries is NULL"):
        table.append(pa.table({"id": [1], "s": half.cast(pa.struct([("v", _BINARIES)]))}))


_BINARIES = pa.struct([("value", pa.binary()), ("metadata", pa.binary())])


def test_versions_that_know_no_nested_ones_do_not_read_them(table: fuse.Table) -> None:
    from fuse_storage.validation.features import READER_FEATURES

    assert set(table.snapshot.reader_features) <= READER_FEATURES
    table.add_column("top", "VARIANT")
    assert table.snapshot.reader_features == ("nested-variant", "variant")
