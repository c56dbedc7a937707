"""Small tables with indexes, and what tests look at in them."""

from pathlib import Path
from uuid import uuid4

import pyarrow as pa

import fuse_index as fuse
from fuse_index.indexes.registry import Host
from fuse_plugins import bloom, min_max
from fuse_storage import MeteredStore, StoredTable, meter_requests, process_cache
from tests.index.kinds import Values

SMALL = {"block_rows": 10, "zone_rows": 5}


def numbers(start: int = 0, count: int = 40) -> pa.Table:
    """Values that min_max cannot tell apart."""
    return pa.table({"n": [(n * 7) % count + start for n in range(count)], "text": [f"t{n}" for n in range(count)]})


def created(url: str | None = None, *kinds: object) -> fuse.Table:
    host = Host([min_max, bloom, *(kinds or (Values,))])
    return fuse.create_table(
        url or f"memory://life-{uuid4().hex}", "n BIGINT, text STRING", properties=SMALL, host=host
    )


def coverage(table: fuse.Table, name: str = "x") -> tuple[int, int]:
    (row,) = (row for row in table.inspect.indexes().to_pylist() if row["name"] == name)
    return row["blocks_indexed"], row["blocks"]


def read_blocks(store: MeteredStore) -> set[str]:
    return {key for _, key, _ in store.reads if key.startswith("_b/")}


def counted(table: fuse.Table) -> tuple[fuse.Table, MeteredStore]:
    """The same table, its reads counted from now on."""
    store = meter_requests(table.stored.store)
    process_cache.clear()
    return fuse.Table(StoredTable.open(store), table.host), store


def files(table: fuse.Table, folder: str) -> list[Path]:
    return sorted(
        path for path in Path(table.stored.store.url.removeprefix("file://"), folder).rglob("*") if path.is_file()
    )


def damaged(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    if how == "gone":
        path.unlink()
        return
    if how == "flipped":
        data[len(data) // 2] ^= 1
    path.write_bytes(data[: len(data) // 2] if how == "cut" else data)


def reopened(table: fuse.Table) -> fuse.Table:
    process_cache.clear()
    return fuse.open_table(table.stored.store.url, host=table.host)
