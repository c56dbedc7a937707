"""A warehouse of every format version that was ever written is read, by this library and by docs/format.md alone."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import fuse_storage as storage
from fuse_storage import StoredTable, Warehouse
from tests.storage.catalog.world import drop, make_table

GOLDEN = Path(__file__).parents[2] / "golden" / "warehouse_v1"
EXPECTED = json.loads((GOLDEN / "expected.json").read_text("utf-8"))


def said(state: storage.CatalogState) -> dict[str, Any]:
    return {
        "namespaces": sorted([".".join(each.identifier), dict(each.properties)] for each in state.namespaces.values()),
        "tables": sorted([each.name, each.location, dict(each.properties)] for each in state.tables.values()),
        "dropped": sorted([each.table.name, each.table.location] for each in state.dropped.values()),
    }


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    shutil.copytree(GOLDEN / "warehouse", tmp_path / "warehouse")
    return tmp_path / "warehouse"


@pytest.mark.parametrize("checkpoints", [True, False])
def test_all_names_are_read(copied: Path, checkpoints: bool) -> None:
    if not checkpoints:
        shutil.rmtree(copied / "_catalog" / "checkpoint")

    warehouse = Warehouse.open(storage.open_store(copied))

    assert said(warehouse.state()) == EXPECTED
    for table in warehouse.state().tables.values():
        if table.managed:
            assert StoredTable.open(storage.open_table_store(warehouse.store, table.location)).snapshot.sequence == 1


def test_it_is_written_as_one_of_today(copied: Path) -> None:
    warehouse = Warehouse.open(storage.open_store(copied))

    make_table(warehouse, "sales.new")
    drop(warehouse, "sales.NEW")

    assert "sales.new" in {"".join(each.table.name.lower()) for each in warehouse.state().dropped.values()}


def test_the_format_s_description_is_enough(copied: Path) -> None:
    assert by_the_book(copied) == EXPECTED


def by_the_book(folder: Path) -> dict[str, Any]:
    """The names, read by nothing but what docs/format.md says in its part 12."""
    spaces: dict[str, Any] = {}
    tables: dict[str, Any] = {}
    dropped: dict[str, Any] = {}
    for path in sorted((folder / "_catalog" / "log").glob("*.json")):
        for action in json.loads(path.read_text("utf-8"))["actions"]:
            table_id, name = action.get("id"), ".".join(action.get("identifier", action.get("namespace", ())))
            match action["action"]:
                case "create_namespace":
                    spaces[name.lower()] = [spelled(spaces, name), action.get("properties", {})]
                case "update_namespace":
                    update(spaces[name.lower()][1], action)
                case "drop_namespace":
                    within = [key for key in tables if key.startswith(f"{name.lower()}.")]
                    dropped |= {tables[key][3]: tables.pop(key) for key in within}
                    spaces = {key: each for key, each in spaces.items() if f"{key}."[: len(name) + 1] != f"{name}."}
                case "create_table":
                    said = [spelled(spaces, name), action["location"], action.get("properties", {}), table_id]
                    tables[name.lower()] = said
                case "update_table":
                    update(tables[name.lower()][2], action)
                case "rename_table":
                    target = ".".join(action["target"])
                    moved = tables.pop(".".join(action["source"]).lower())
                    tables[target.lower()] = [spelled(spaces, target), *moved[1:]]
                case "drop_table":
                    gone = tables.pop(name.lower())
                    dropped |= {} if action.get("purge") else {table_id: gone}
                case "undrop_table":
                    tables[name.lower()] = [spelled(spaces, name), *dropped.pop(table_id)[1:]]
                case "purge_tables":
                    dropped = {key: each for key, each in dropped.items() if key not in action["ids"]}
    return {
        "namespaces": sorted(spaces.values()),
        "tables": sorted(each[:3] for each in tables.values()),
        "dropped": sorted(each[:2] for each in dropped.values()),
    }


def spelled(spaces: dict[str, Any], name: str) -> str:
    around, dot, last = name.rpartition(".")
    return f"{spaces[around.lower()][0]}.{last}" if dot else last


def update(properties: dict[str, str], action: dict[str, Any]) -> None:
    for name in action.get("removals", ()):
        properties.pop(name, None)
    properties |= action.get("updates", {})
