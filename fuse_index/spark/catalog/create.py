"""Tables are made and take the place of others: at once, or staged until their rows are there.

In: definitions and where they go. Out: tables without rows, and what gives them their names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

import fuse_storage as storage
from fuse_index.errors import InputError
from fuse_index.spark.catalog.definitions import TableDefinition
from fuse_index.spark.catalog.table_names import TableNames, is_place
from fuse_index.spark.text_limits import set_text_limits
from fuse_index.table.open import create_table, open_table
from fuse_index.table.table import Table
from fuse_storage import AlreadyExists, Identifier, NotFound, SchemaChange


@dataclass(frozen=True, slots=True)
class StagedCreation:
    """A table without a name, or at a place where it is new. ``abort`` removes what was made."""

    table: Table
    commit: Callable[[], None]
    abort: Callable[[], None]


def create(names: TableNames, parts: Identifier, definition: TableDefinition) -> None:
    """Make a table without rows. Raises AlreadyExists, NotFound for its namespace, and as ``Table``'s own creation."""
    stage(names, parts, definition, "create").commit()


def stage(names: TableNames, parts: Identifier, definition: TableDefinition, mode: str) -> StagedCreation:
    """Make a table that nobody finds by its name before it is committed.

    ``mode``: ``create``, ``replace`` or ``create or replace``. At a place of its own it is there at once, without rows.
    """
    if is_place(parts[0]):
        return _stage_at_place(names, parts, definition, mode)
    warehouse = names.require_warehouse()
    if definition.location is not None:
        return _stage_registered(names, parts, definition, mode)
    replace = mode != "create" and warehouse.table_exists(parts)
    properties = {**definition.properties, **definition.about}
    new = warehouse.stage_table(
        parts,
        definition.schema,
        definition.cluster_by,
        properties,
        partition_by=definition.partition_by,
        primary_key=definition.primary_key,
        replace=replace,
    )
    try:
        _set_defaults_and_key(new.table, definition)
    except Exception:
        new.abort()
        raise
    return StagedCreation(new.table, new.commit, new.abort)


def _stage_at_place(names: TableNames, parts: Identifier, definition: TableDefinition, mode: str) -> StagedCreation:
    if len(parts) > 1:
        raise InputError(f"a table at {parts[0]!r} cannot be made as {'.'.join(parts[1:])!r} of it: leave that out")
    url = parts[0]
    if definition.location not in (None, url):
        raise InputError(f"a table at {url!r} cannot have LOCATION {definition.location!r}: leave that out")
    if mode != "create" and _is_table(names, url):
        raise InputError(
            f"the table at {url} cannot be replaced, as a name can: replace its rows by "
            f"INSERT OVERWRITE, or make it in a warehouse"
        )
    table = _create_at(names, url, definition)
    return StagedCreation(table, lambda: None, partial(_remove, table))


def _stage_registered(names: TableNames, parts: Identifier, definition: TableDefinition, mode: str) -> StagedCreation:
    """A table at a place that the user chose, which may be there; nothing of it moves."""
    warehouse, url = names.require_warehouse(), str(definition.location)
    if mode != "create":
        raise InputError(f"a table at LOCATION {url!r} cannot take another's place: drop that first, then create it")
    if warehouse.table_exists(parts):
        raise AlreadyExists(f"there is a table {'.'.join(parts)!r} already: choose another name, or drop it first")
    if not _is_table(names, url):
        table = _create_at(names, url, definition)
        return StagedCreation(table, partial(_register, names, parts, definition), partial(_remove, table))
    table = open_table(url, options=names.options, host=names.host)
    if definition.schema.names and definition.schema != table.schema:
        raise AlreadyExists(f"{url} is a table with other columns, {', '.join(table.schema.names)}: leave columns out")
    return StagedCreation(table, partial(_register, names, parts, definition), lambda: None)


def _create_at(names: TableNames, url: str, definition: TableDefinition) -> Table:
    about = {name: value for name, value in definition.about.items() if name == "comment"}
    own = {**definition.properties, **(about if definition.location is None else {})}
    table = create_table(
        url,
        definition.schema,
        definition.cluster_by,
        own,
        partition_by=definition.partition_by,
        primary_key=definition.primary_key,
        options=names.options,
        host=names.host,
    )
    _set_defaults_and_key(table, definition)
    return table


def _register(names: TableNames, parts: Identifier, definition: TableDefinition) -> None:
    names.require_warehouse().register_table(parts, definition.location, definition.about)


def _set_defaults_and_key(table: Table, definition: TableDefinition) -> None:
    steps: list[SchemaChange] = [
        partial(storage.set_default, name=name, value=value)
        for name, value in definition.defaults.items()
        if value is not None
    ]
    if definition.text_limits:
        steps += [
            partial(set_text_limits, path=path, limits={path: limit}) for path, limit in definition.text_limits.items()
        ]
    if definition.key:
        steps.append(partial(storage.key_by, names=definition.key))
    if steps:
        transaction = table.stored.transaction()
        for step in steps:
            transaction.evolve_schema(step)
        table.stored = transaction.commit("set default" if definition.defaults else "key by")


def _is_table(names: TableNames, url: str) -> bool:
    try:
        open_table(url, options=names.options, host=names.host)
    except NotFound:
        return False
    return True


def _remove(table: Table) -> None:
    """Delete a table that was just made at a place of its own: its refs first, so that nobody takes it for one."""
    store = table.stored.store
    keys = sorted((found.key for found in store.list()), key=lambda key: not key.startswith("_refs/"))
    store.delete(keys)


def new_number() -> str:
    """What a staged table is known by until it is committed."""
    return uuid4().hex
