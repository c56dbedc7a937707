"""What names cost: seconds and requests of a warehouse with thousands of tables.

``python -m benchmarks.catalog``: on a local disk, 10,000 names in 100 namespaces. Most of them are registered at places
where no table is, since a name costs the same; one is a table, which is loaded, against being opened by its place.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import fuse_index as fuse
import fuse_storage as storage

NAMESPACES, TABLES = 100, 100


def main() -> None:
    """Make the warehouse, and print what each thing costs."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "warehouse"
        catalog = fuse.catalog(place, create=True)
        begun = time.perf_counter()
        for number in range(NAMESPACES):
            name_tables(catalog, number)
        catalog.create_table("n5.orders", "id BIGINT")
        catalog.drop_table("n7.t7")
        print(f"{NAMESPACES * TABLES} names in {NAMESPACES + 2} changes: {time.perf_counter() - begun:.1f} s")
        for number in range(150):
            catalog.update_namespace_properties("n1", updates={"comment": str(number)})
        url = catalog.table_url("n5.orders")
        report("a change", lambda: catalog.update_namespace_properties("n1", updates={"comment": "x"}), place)
        report("load by name", lambda: catalog.load_table("n5.orders"), place)
        report("open by place", lambda: fuse.open_table(url), place)
        report("list a namespace", lambda: catalog.list_tables("n5"), place)
        report("open the warehouse cold", lambda: fuse.catalog(place, host=catalog.host).list_tables("n5"), place, True)


def name_tables(catalog: fuse.Catalog, number: int) -> None:
    """A namespace with its tables, in one change."""
    names = [(f"n{number}", f"t{each}") for each in range(TABLES)]
    actions = [storage.CreateTable(storage.new_id(), name, f"elsewhere/{'/'.join(name)}", False) for name in names]
    catalog.warehouse.commit(lambda _: [storage.CreateNamespace((f"n{number}",)), *actions])


def report(what: str, do: Callable[[], object], place: Path, cold: bool = False) -> None:
    """Print the median of 20 runs. ``cold``: nothing of the warehouse is remembered."""
    seconds = []
    do()
    for _ in range(20):
        if cold:
            storage.process_cache.clear()
        begun = time.perf_counter()
        do()
        seconds.append(time.perf_counter() - begun)
    print(f"{what}: {statistics.median(seconds) * 1000:.2f} ms")


if __name__ == "__main__":
    main()
