"""A column's default changes: rows that come afterwards have the new one, and nothing that is there changes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest

import fuse_index as fuse
from fuse_storage.validation import features

VALUES = {
    "STRING": ("old", "new"),
    "INT": (5, 7),
    "BOOLEAN": (True, False),
    "DOUBLE": (float("nan"), 0.5),
    "BINARY": (b"\x00", b"\xff"),
}


def cities(table: fuse.Table) -> list[tuple[int, Any]]:
    rows = table.scan(columns=["id", "city"]).to_arrow().sort_by("id").to_pylist()
    return [(row["id"], row["city"]) for row in rows]


def made(primary_key: bool = False) -> fuse.Table:
    """A table with a row that is older than the column ``city``, and one whose file has it."""
    key = {"primary_key": ["id"]} if primary_key else {}
    table = fuse.create_table(f"memory://defaults-{uuid4().hex}", "id BIGINT NOT NULL, n INT", **key)
    put = table.upsert if primary_key else table.append
    put([{"id": 1, "n": 1}])
    table.add_column("city", "STRING", default="Bonn")
    put([{"id": 2, "n": 2}])
    return table


def test_rows_that_come_have_the_new_default_and_those_that_are_there_keep_theirs() -> None:
    table = made()
    before = table.snapshot.id
    table.set_default("city", "Rome")
    table.append([{"id": 3, "n": 3}])
    table.set_default("city", None)
    table.append([{"id": 4, "n": 4}])

    assert cities(table) == [(1, "Bonn"), (2, "Bonn"), (3, "Rome"), (4, None)]
    assert table.explain("city = 'Rome'").blocks.kept == 1
    assert table.explain("city IS NULL").blocks.kept == 1
    table.maintenance.compact()
    assert cities(table) == [(1, "Bonn"), (2, "Bonn"), (3, "Rome"), (4, None)]
    table.create_index("by_city", "bloom", ["city"])
    assert table.count("city = 'Bonn'") == 2
    table.restore(before)
    table.append([{"id": 5, "n": 5}])
    assert cities(table) == [(1, "Bonn"), (2, "Bonn"), (5, "Bonn")]


@pytest.mark.parametrize("type_", VALUES)
def test_both_defaults_are_values_of_the_columns_type(type_: str) -> None:
    table = made()
    first, second = VALUES[type_]
    table.add_column("c", type_, default=first)
    table.set_default("c", second)
    table.append([{"id": 3}])
    again = fuse.open_table(table.stored.store)

    assert str(again.to_arrow().column("c").to_pylist()) == str([first, first, second])
    with pytest.raises(fuse.SchemaError, match="cannot be the default of column 'c'"):
        table.set_default("c", ["x"])


@pytest.mark.parametrize(
    ("type_", "value", "said"),
    [
        ("int", 1.5, "1.5 cannot be the default of column 'c', which is int: give whole numbers"),
        ("int", Decimal("-1.9"), "Decimal('-1.9') cannot be the default of column 'c', which is int: give whole"),
        ("date", datetime(2026, 1, 31, 12), "column 'c', which is date: give dates, such as datetime.date("),
        ("date", "2024-13-01", "'2024-13-01' cannot be the default of column 'c', which is date: give dates"),
        ("timestamp_ntz", datetime(2026, 1, 31, tzinfo=UTC), "which is timestamp_ntz: give times without a zone"),
    ],
)
def test_a_default_of_which_a_part_would_be_lost_is_refused(type_: str, value: Any, said: str) -> None:
    table = made()
    with pytest.raises(fuse.SchemaError, match=re.escape(said)):
        table.add_column("c", type_, default=value)
    table.add_column("c", type_)
    with pytest.raises(fuse.SchemaError, match=re.escape(said)):
        table.set_default("c", value)


WRITES: dict[str, Callable[[fuse.Table], Any]] = {
    "append": lambda table: table.append([{"id": 3, "n": 3}]),
    "append of hot rows": lambda table: table.append([{"id": 3, "n": 3}], hot=True),
    "a stream": lambda table: table.append([{"id": 3, "n": 3}], application=("job", 1)),
    "merge": lambda table: table.merge([{"id": 2, "n": 9}, {"id": 3, "n": 3}], on=["id"]),
    "merge with schema": lambda table: table.merge(
        [{"id": 2, "n": 9}, {"id": 3, "n": 3, "m": 1}], on=["id"], merge_schema=True
    ),
    "append with schema": lambda table: table.append([{"id": 3, "n": 3, "m": 1}], merge_schema=True),
}


@pytest.mark.parametrize("how", WRITES)
def test_every_write_stores_the_write_default(how: str) -> None:
    table = made()
    table.set_default("city", "Rome")
    WRITES[how](table)

    assert cities(table) == [(1, "Bonn"), (2, "Bonn"), (3, "Rome")]
    table.update("id = 1", {"n": "n + 1"})
    table.delete("id = 2")
    table.maintenance.tier()
    assert cities(table) == [(1, "Bonn"), (3, "Rome")]


def test_puts_by_key_store_it_in_new_rows_alone() -> None:
    table = made(primary_key=True)
    table.set_default("city", "Rome")
    table.upsert([{"id": 1, "n": 9}, {"id": 2, "n": 9}, {"id": 3, "n": 3}])
    assert cities(table) == [(1, "Bonn"), (2, "Bonn"), (3, "Rome")]
    table.maintenance.tier()
    table.apply([{"id": 1, "n": 8, "_change_type": "insert"}, {"id": 4, "n": 4, "_change_type": "insert"}])
    table.merge([{"id": 2, "n": 7}, {"id": 5, "n": 5}], on=["id"])
    assert cities(table) == [(1, "Bonn"), (2, "Bonn"), (3, "Rome"), (4, "Rome"), (5, "Rome")]


def test_a_rename_and_a_wider_type_keep_both() -> None:
    table = made()
    table.add_column("f", "INT", default=5)
    table.set_default("f", 7)
    table.change_type("f", "BIGINT")
    table.rename_column("f", "g")
    table.append([{"id": 3}])

    assert table.to_arrow().column("g").to_pylist() == [5, 5, 7]
    table.change_type("g", "DECIMAL(25,2)")
    table.append([{"id": 4}])
    assert [str(value) for value in table.to_arrow().column("g").to_pylist()] == ["5.00", "5.00", "7.00", "7.00"]


def test_branches_clones_and_old_states_keep_their_own() -> None:
    table = made()
    table.tag("before")
    table.branch("try")
    table.set_default("city", "Rome")
    branch = fuse.open_table(table.stored.store, branch="try")
    branch.append([{"id": 3}])
    branch.set_default("city", "Oslo")
    branch.append([{"id": 4}])
    table.append([{"id": 5}])
    clone = table.clone(f"memory://defaults-{uuid4().hex}")
    clone.append([{"id": 6}])

    assert cities(branch)[2:] == [(3, "Bonn"), (4, "Oslo")]
    assert cities(table)[2:] == [(5, "Rome")]
    assert cities(clone)[2:] == [(5, "Rome"), (6, "Rome")]
    assert fuse.open_table(table.stored.store, at="before").snapshot.schema.find("city").write_default == "Bonn"


def test_not_null_asks_for_a_value_where_the_default_was_dropped() -> None:
    table = made()
    table.set_nullable("city", False)
    table.set_default("city", None)
    with pytest.raises(fuse.SchemaError, match="lack column 'city', which is NOT NULL and has no default"):
        table.append([{"id": 3}])
    table.append([{"id": 3, "city": "Oslo"}])
    assert cities(table) == [(1, "Bonn"), (2, "Bonn"), (3, "Oslo")]


def stored_columns(folder: Path) -> dict[str, dict[str, Any]]:
    newest = max((folder / "_ss").glob("*.json"))
    described = json.loads(newest.read_text())
    (schema,) = (each for each in described["schemas"] if each["id"] == described["schema"])
    return {field["name"]: field for field in schema["fields"]} | {"features": described["writer_features"]}


def test_older_versions_read_such_a_table_and_do_not_write_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = fuse.create_table(tmp_path / "t", "id BIGINT, name STRING")
    table.set_default("name", "nobody")
    assert stored_columns(tmp_path / "t")["features"] == []  # there are no rows: both are one
    table.append([{"id": 1}])
    table.add_column("n", "INT", default=5)
    assert stored_columns(tmp_path / "t")["features"] == []
    table.set_default("n", 7)
    table.append([{"id": 2}])
    table.set_default("name", None)
    told = stored_columns(tmp_path / "t")
    assert (told["n"]["default"], told["n"]["write_default"], told["features"]) == (5, 7, ["write-defaults"])
    assert (told["name"]["default"], told["name"]["write_default"]) == ("nobody", None)

    table.drop_column("n")
    table.drop_column("name", indexes="drop")
    assert stored_columns(tmp_path / "t")["features"] == ["write-defaults"]  # older schemas have them still
    older = features.WRITER_FEATURES - {features.WRITE_DEFAULTS_FEATURE}
    monkeypatch.setattr(features, "WRITER_FEATURES", older)
    with pytest.raises(fuse.Unsupported, match="writing to this table needs feature 'write-defaults'"):
        fuse.open_table(tmp_path / "t").append([{"id": 3}])
    assert fuse.open_table(tmp_path / "t").count() == 2


@pytest.mark.parametrize("damage", [{"write_default": "x"}, {"default": "x"}, {"write_default": [1]}])
def test_a_default_of_another_type_is_no_snapshot(tmp_path: Path, damage: dict[str, Any]) -> None:
    table = fuse.create_table(tmp_path / "t", "id BIGINT")
    described = json.loads(table.snapshot.encode())
    described["schemas"][0]["fields"][0] |= damage

    with pytest.raises(fuse.FormatError, match="is no snapshot"):
        type(table.snapshot).decode(json.dumps(described).encode(), "a table")


def test_a_handle_writes_by_the_columns_that_it_knows() -> None:
    table = made()
    behind = fuse.open_table(table.stored.store)
    table.set_default("city", "Rome")
    behind.append(pa.table({"id": [3]}))
    behind.append(pa.table({"id": [4]}))

    assert cities(behind) == [(1, "Bonn"), (2, "Bonn"), (3, "Bonn"), (4, "Rome")]


def test_a_table_in_the_place_of_another_has_none_of_its_defaults(tmp_path: Path) -> None:
    catalog = fuse.catalog(tmp_path / "warehouse", create=True)
    table = catalog.create_table("t", "id BIGINT")
    table.append([{"id": 1}])
    table.add_column("city", "STRING", default="Bonn")
    table.set_default("city", "Rome")
    before = table.snapshot.id
    replaced = catalog.create_table("t", "id BIGINT, city STRING", replace=True)
    replaced.append([{"id": 2}])

    assert cities(catalog.load_table("t")) == [(2, None)]
    assert cities(catalog.load_table("t", at=before)) == [(1, "Bonn")]
