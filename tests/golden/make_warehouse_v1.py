"""Makes the golden warehouse of format version 1: run once, when the format was settled, and never again.

    python -m tests.golden.make_warehouse_v1

Another run gives other ids and times. A change that needs one is a new format version, with a script of its own.
"""

import json
import shutil
from datetime import timedelta
from pathlib import Path

import fuse_storage as storage
from fuse_storage import CreateNamespace, DropNamespace, UpdateNamespace, UpdateTable, Warehouse
from fuse_storage.catalog import checkpoint
from tests.storage.catalog.world import drop, find, make_table, register, rename, undrop

FOLDER = Path(__file__).parent / "warehouse_v1"


def main() -> None:
    shutil.rmtree(FOLDER, ignore_errors=True)
    warehouse = Warehouse.open(storage.open_store(FOLDER / "warehouse"), create=True)
    for name, properties in ((("Sales",), {"comment": "Größe"}), (("sales", "eu"), {}), (("gone",), {})):
        warehouse.commit(lambda _, name=name, properties=properties: [CreateNamespace(name, properties)])
    make_table(warehouse, "sales.purged")
    storage.purge_table(warehouse, ("sales", "purged"))
    make_table(warehouse, "gone.Dropped")
    warehouse.commit(lambda _: [DropNamespace(("gone",), cascade=True)])
    make_table(warehouse, "sales.long_ago")
    drop(warehouse, "sales.long_ago")
    undrop(warehouse, "sales.long_ago")
    state = warehouse.state()
    warehouse.store.create(checkpoint._key(state.sequence), checkpoint._encode(state))
    make_table(warehouse, "sales.eu.Orders")
    make_table(warehouse, "sales.eu.orders", replace=True)
    rename(warehouse, "sales.long_ago", "SALES.EU.Moved")
    register(warehouse, "registered", "a/place/within")
    register(warehouse, "elsewhere", "s3://bucket/table")
    warehouse.commit(lambda _: [UpdateNamespace(("sales",), {"owner": "ann"}, ("comment", "none"))])
    moved = find(warehouse, "sales.eu.moved")
    warehouse.commit(lambda _: [UpdateTable(moved.id, moved.identifier, {"comment": "a", "owner": "b"})])
    warehouse.commit(lambda _: [UpdateTable(moved.id, moved.identifier, {}, ("owner",))])
    storage.purge_dropped(warehouse, timedelta(days=1))
    shutil.rmtree(FOLDER / "warehouse" / "_tmp", ignore_errors=True)
    state = warehouse.state()
    said = {
        "namespaces": sorted([".".join(each.identifier), dict(each.properties)] for each in state.namespaces.values()),
        "tables": sorted([each.name, each.location, dict(each.properties)] for each in state.tables.values()),
        "dropped": sorted([each.table.name, each.table.location] for each in state.dropped.values()),
    }
    (FOLDER / "expected.json").write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
