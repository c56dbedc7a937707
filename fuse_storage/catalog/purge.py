"""The files of dropped tables are deleted, and what was left by tables that never got a name.

First an entry says that a table cannot come back, then its files go, then another entry says that they are gone. Who
dies in between leaves files that the next purge deletes; no table ever comes back without some of its files.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from fuse_storage.catalog.actions import FOLDER_PATTERN, DropTable, ForgetTables, PurgeTables
from fuse_storage.catalog.log import LOG_FOLDER
from fuse_storage.catalog.names import Identifier
from fuse_storage.catalog.new_table import MAX_STAGED_TIME, STAGED_FOLDER, staged_key
from fuse_storage.catalog.state import CatalogState, CatalogTable, DroppedTable
from fuse_storage.catalog.table_places import open_table_store, remove_folder
from fuse_storage.catalog.warehouse import Warehouse
from fuse_storage.errors import Conflict, InvalidArgument, NotFound, Operation, StorageError
from fuse_storage.metadata.encoding import encode_checksummed_json, utc_now
from fuse_storage.metadata.file_ref import new_id
from fuse_storage.metadata.refs import CLOCK_TOLERANCE
from fuse_storage.metadata.tags import list_tags

_CLOCK_FOLDER = "_catalog/clock"
_BATCH = 1000
"""Tables that one entry purges."""


@dataclass(frozen=True, slots=True)
class PurgedTable:
    """A table whose files went, or would go. ``reason``: why they stay; None where they do not.

    ``name``: the one under which it was dropped, or the folder of one that an earlier purge left.
    """

    name: str
    table_id: str
    reason: str | None = None


def purge_table(warehouse: Warehouse, identifier: Identifier) -> CatalogTable:
    """Drop a table and delete its files at once; whoever reads it loses them.

    Raises NotFound, InvalidArgument for a table that the warehouse did not make, Conflict for one whose files a clone
    shares, or that is another one by now.
    """
    table = warehouse.state().find_table(identifier)
    if not table.managed:
        raise InvalidArgument(
            f"table {table.name!r} was registered, and the warehouse deletes only what it made: drop it without "
            + Operation.argument("drop_table", purge=True)
            + f", and delete {table.location} yourself"
        )
    if (reason := _shared(warehouse, table.location)) is not None:
        raise Conflict(f"table {table.name!r} cannot be purged: {reason}")
    warehouse.commit(lambda state: (DropTable(same_table(state, table).id, table.identifier, purge=True),))
    _delete_purged(warehouse, [table.id])
    return table


def same_table(state: CatalogState, table: CatalogTable) -> CatalogTable:
    """The table of this name, as it is now. Raises NotFound, and Conflict if the name is another table's by now."""
    found = state.find_table(table.identifier)
    if found.id != table.id:
        raise Conflict(f"somebody else just gave the name {table.name!r} to another table: look what it is now")
    return found


def purge_dropped(warehouse: Warehouse, older_than: timedelta, dry_run: bool = False) -> list[PurgedTable]:
    """Delete the files of all tables that were dropped so long ago, by the clocks of who dropped and of the store.

    Registered tables lose nothing but their place in the list of dropped ones. Also deletes what purges and creations
    left that died. Raises StorageError.
    """
    if older_than < timedelta(0):
        raise InvalidArgument(f"older_than={older_than}: give a time of 0 or more")
    now = min(utc_now(), _store_clock(warehouse))
    state = warehouse.state()
    made = {found.key: found.modified for found in warehouse.store.list(LOG_FOLDER)} if state.dropped else {}
    due = [
        each.table
        for each in state.dropped.values()
        if _dropped_at(each, made.get(warehouse.log.key(each.sequence), now), now) <= now - older_than
    ]
    results = [
        *(PurgedTable(folder, table_id, _shared(warehouse, folder)) for table_id, folder in state.purging.items()),
        *(PurgedTable(each.name, each.id, _shared(warehouse, each.location) if each.managed else None) for each in due),
    ]
    if not dry_run:
        ids = [result.table_id for result in results if result.reason is None and result.table_id in state.dropped]
        for start in range(0, len(ids), _BATCH):
            _purge(warehouse, ids[start : start + _BATCH])
        _delete_purged(warehouse, warehouse.state().purging)
        _remove_unnamed(warehouse, now)
    return results


def _dropped_at(dropped: DroppedTable, made: datetime, now: datetime) -> datetime:
    """When a table was dropped: by the later of two clocks, and by the store's where the other one was ahead."""
    return made if dropped.timestamp > now + CLOCK_TOLERANCE else max(dropped.timestamp, made)


def _purge(warehouse: Warehouse, ids: Sequence[str]) -> None:
    def decide(state: CatalogState) -> tuple[PurgeTables, ...]:
        kept = tuple(each for each in ids if each in state.dropped)  # not undropped meanwhile
        return (PurgeTables(kept),) if kept else ()

    warehouse.commit(decide)


def _delete_purged(warehouse: Warehouse, ids: Iterable[str]) -> None:
    """Delete the files of tables that were purged; those stay that a clone came to share meanwhile."""
    purging, gone = warehouse.state().purging, []
    for each in ids:
        if (folder := purging.get(each)) is not None and _shared(warehouse, folder) is None:
            remove_folder(warehouse.store, folder)
            gone.append(each)

    def decide(state: CatalogState) -> tuple[ForgetTables, ...]:
        left = tuple(each for each in gone if each in state.purging)
        return (ForgetTables(left),) if left else ()

    warehouse.commit(decide)


def _shared(warehouse: Warehouse, folder: str) -> str | None:
    """Why the files of a table must stay; None where nobody else needs them."""
    try:
        tags = list_tags(open_table_store(warehouse.store, folder))
    except StorageError as problem:
        return f"whether a clone shares its files cannot be told: {problem}"
    held = [tag for tag in tags if tag.holder is not None and not tag.expired()]
    if not held:
        return None
    return f"{held[0].holder} shares its files; when that table is gone, untag {held[0].name!r}"


def _remove_unnamed(warehouse: Warehouse, now: datetime) -> None:
    """Remove folders whose tables never got a name, and the notices of those that did."""
    places = warehouse.state().places
    for notice in list(warehouse.store.list(STAGED_FOLDER)):
        folder = notice.key.removeprefix(f"{STAGED_FOLDER}/").removesuffix(".json")
        if FOLDER_PATTERN.fullmatch(folder) is not None and notice.modified <= now - 2 * MAX_STAGED_TIME:
            if folder not in places:
                remove_folder(warehouse.store, folder)
            warehouse.store.delete([staged_key(folder)])
    clocks = [found.key for found in warehouse.store.list(_CLOCK_FOLDER) if found.modified <= now - MAX_STAGED_TIME]
    warehouse.store.delete(clocks)


def _store_clock(warehouse: Warehouse) -> datetime:
    """The time by the store's clock: that of a file that was just written."""
    store, key = warehouse.store, f"{_CLOCK_FOLDER}/{new_id()}.json"
    store.create(key, encode_checksummed_json({"kind": "clock"}))
    try:
        found = [listed.modified for listed in store.list(_CLOCK_FOLDER) if listed.key == key]
        if not found:
            raise NotFound(f"{store.url}/{key} was just written, and is not listed: try again")
        return found[0]
    finally:
        with suppress(StorageError):
            store.delete([key])
