"""A table that is being made in a warehouse: it has a folder, and gets its name when it is committed.

A notice, written before the folder is, tells who purges that there may be a folder that nobody gave a name to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Generic, TypeVar

from fuse_storage.card import Shown
from fuse_storage.catalog.actions import CatalogAction, CreateTable, DropTable
from fuse_storage.catalog.log import CatalogEntry
from fuse_storage.catalog.names import Identifier, fold_identifier
from fuse_storage.catalog.state import CatalogState
from fuse_storage.catalog.table_places import folder_name, open_table_store, remove_folder
from fuse_storage.catalog.warehouse import Warehouse
from fuse_storage.errors import CommitUnknown, Expired, StorageError
from fuse_storage.metadata.encoding import encode_checksummed_json, format_timestamp, utc_now
from fuse_storage.metadata.file_ref import new_id
from fuse_storage.store.store import Store

STAGED_FOLDER = "_catalog/staged"
MAX_STAGED_TIME = timedelta(days=1)
"""How long a table may be without a name; twice as old folders are removed."""

TableT = TypeVar("TableT")


def stage_table(
    warehouse: Warehouse,
    identifier: Identifier,
    make: Callable[[Store], TableT],
    properties: Mapping[str, str] | None = None,
    replace: bool = False,
) -> NewTable[TableT]:
    """Make a table in a folder of its own, which nobody sees before it is committed.

    ``make``: makes it in the store of the folder. ``properties``: what the warehouse is to say of it. ``replace``: it
    takes the place of a table of its name, if there is one, which is dropped. Raises AlreadyExists and NotFound for a
    name that cannot be given, before anything is made; and what ``make`` raises.
    """
    table_id = new_id()
    folder = folder_name(identifier, table_id)
    action = CreateTable(table_id, identifier, folder, True, dict(properties or {}))
    now = utc_now()
    state = warehouse.state()
    state.after([CatalogEntry(state.sequence + 1, "", None, now, _naming(action, state, replace))])
    notice = {"kind": "staged", "folder": folder, "timestamp": format_timestamp(now)}
    warehouse.store.create(staged_key(folder), encode_checksummed_json(notice))
    try:
        table = make(open_table_store(warehouse.store, folder))
    except Exception:
        _remove(warehouse, folder)
        raise
    return NewTable(warehouse, action, table, replace, now)


@dataclass(frozen=True, repr=False)
class NewTable(Shown, Generic[TableT]):
    """A table without a name, in which rows can be written. It is there for others once it is committed."""

    _offered = "abort commit table"

    warehouse: Warehouse
    action: CreateTable
    table: TableT
    replace: bool = False
    begun: datetime = field(default_factory=utc_now)

    def _facts(self) -> Mapping[str, Any]:
        return {"name": ".".join(self.action.identifier), "location": self.action.location, "replace": self.replace}

    def commit(self) -> None:
        """Give it its name, and drop the table that it replaces, at once. If it cannot have it, it is removed.

        Raises AlreadyExists if somebody else took the name, NotFound if its namespace is gone, Expired after a day,
        CommitUnknown, StorageError.
        """
        try:
            if utc_now() - self.begun > MAX_STAGED_TIME:
                raise Expired(f"making table {'.'.join(self.action.identifier)!r} took more than {MAX_STAGED_TIME}")
            self.warehouse.commit(lambda state: _naming(self.action, state, self.replace))
        except CommitUnknown:
            raise
        except StorageError:
            self.abort()
            raise
        with suppress(StorageError):
            self.warehouse.store.delete([staged_key(self.action.location)])

    def abort(self) -> None:
        """Remove what was made. A failure is of no account: the next ``purge_dropped`` does it."""
        _remove(self.warehouse, self.action.location)


def staged_key(folder: str) -> str:
    """The key of the notice of a folder."""
    return f"{STAGED_FOLDER}/{folder}.json"


def _naming(action: CreateTable, state: CatalogState, replace: bool) -> tuple[CatalogAction, ...]:
    there = state.tables.get(fold_identifier(action.identifier)) if replace else None
    return (action,) if there is None else (DropTable(there.id, there.identifier), action)


def _remove(warehouse: Warehouse, folder: str) -> None:
    with suppress(StorageError):
        remove_folder(warehouse.store, folder)
        warehouse.store.delete([staged_key(folder)])
