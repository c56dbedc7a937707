"""What was done to one name of a warehouse, told from its log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from fuse_storage.catalog.actions import (
    CatalogAction,
    CreateNamespace,
    CreateTable,
    DropNamespace,
    DropTable,
    ForgetTables,
    PurgeTables,
    RenameTable,
    UndropTable,
    UpdateNamespace,
    UpdateTable,
)
from fuse_storage.catalog.log import CatalogEntry
from fuse_storage.catalog.names import Identifier, fold_identifier, join_identifier


@dataclass(frozen=True, slots=True)
class NameEvent:
    """One thing that was done to a name. ``table_id``: of the table that had it then; None for a namespace.

    ``detail``: the other name of a rename, the place of a table that was registered, the properties that changed.
    """

    timestamp: datetime
    commit_id: str
    operation: str
    table_id: str | None = None
    detail: str | None = None


def name_history(entries: Iterable[CatalogEntry], identifier: Identifier) -> list[NameEvent]:
    """What happened to a name, oldest first. ``entries``: the whole log, oldest first."""
    events, folded = list[NameEvent](), fold_identifier(identifier)
    current: str | None = None
    own_ids = set[str]()
    for entry in entries:
        for action in entry.actions:
            told = _tell(action, folded, current, own_ids)
            if told is None:
                continue
            operation, table_id, detail = told
            if operation in ("create", "register", "undrop", "rename from"):
                current = table_id
            elif operation in ("drop", "drop and purge", "rename to", "drop with its namespace"):
                current = None
            if operation == "rename to" and table_id is not None:
                own_ids.discard(table_id)
            elif table_id is not None:
                own_ids.add(table_id)
            events.append(NameEvent(entry.timestamp, entry.commit_id, operation, table_id, detail))
    return events


def _tell(
    action: CatalogAction, name: Identifier, current: str | None, own_ids: set[str]
) -> tuple[str, str | None, str | None] | None:
    """Operation, table and detail of what an action does to a name; None if that is nothing."""
    match action:
        case CreateNamespace(namespace=namespace) | UpdateNamespace(namespace=namespace):
            done = "create namespace" if isinstance(action, CreateNamespace) else "update namespace"
            return (done, None, None) if fold_identifier(namespace) == name else None
        case DropNamespace(namespace=namespace):
            if (folded := fold_identifier(namespace)) == name:
                return "drop namespace", None, None
            return ("drop with its namespace", current, None) if current and name[: len(folded)] == folded else None
        case CreateTable(id=table_id, identifier=identifier):
            done, detail = ("create", None) if action.managed else ("register", action.location)
        case UpdateTable(id=table_id, identifier=identifier):
            done, detail = "update", ", ".join([*action.updates, *action.removals])
        case RenameTable(id=table_id, source=source, target=target):
            if fold_identifier(target) == name:
                return "rename from", table_id, join_identifier(source)
            return ("rename to", table_id, join_identifier(target)) if fold_identifier(source) == name else None
        case DropTable(id=table_id, identifier=identifier):
            done, detail = "drop and purge" if action.purge else "drop", None
        case UndropTable(id=table_id, identifier=identifier):
            done, detail = "undrop", None
        case PurgeTables(ids=ids):
            gone = next((each for each in ids if each in own_ids), None)
            return None if gone is None else ("purge", gone, None)
        case ForgetTables():
            return None
    return (done, table_id, detail) if fold_identifier(identifier) == name else None
