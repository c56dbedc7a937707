"""Checkpoints: all names of a warehouse in one file, so that whoever opens it reads only what was done since.

Advisory: one that is missing or damaged costs time, since the log holds everything. A checkpoint is believed only if
the entry with its number is the commit that it names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import msgspec

from fuse_storage.catalog.actions import FOLDER_PATTERN, check_location
from fuse_storage.catalog.log import CatalogLog
from fuse_storage.catalog.names import Identifier, check_identifier, fold_identifier
from fuse_storage.catalog.state import CatalogState, CatalogTable, DroppedTable, Namespace
from fuse_storage.errors import Corrupt, InvalidArgument, StorageError
from fuse_storage.metadata.encoding import decode_checksummed_json, encode_checksummed_json, format_timestamp
from fuse_storage.store.abilities import list_keys_after, read_at_most
from fuse_storage.store.store import Store
from fuse_storage.validation.json_members import MAX_SNAPSHOT_BYTES, Count, convert_members, parse_stored_time

_FOLDER = "_catalog/checkpoint"
_FILE = re.compile(rf"{_FOLDER}/([0-9]{{20}})\.json")
_MIN_ENTRIES, _NAMES_PER_ENTRY = 64, 64
"""A checkpoint follows so many entries after the one before; more in a large warehouse, where it has megabytes."""
_KEPT = 2
"""Checkpoints that stay: one, and the one before, which somebody may be about to read."""
_RESTORE_HINT = "restore it from a copy of the warehouse"


class _TableMembers(msgspec.Struct, omit_defaults=True):
    id: str
    identifier: Identifier
    location: str
    managed: bool
    created: str
    properties: dict[str, str] = {}
    dropped: str | None = None
    dropped_by: Count = 0


class _NamespaceMembers(msgspec.Struct, omit_defaults=True):
    namespace: Identifier
    properties: dict[str, str] = {}


class _CheckpointMembers(msgspec.Struct):
    kind: str
    sequence: Count
    commit: str
    timestamp: str
    namespaces: list[_NamespaceMembers]
    tables: list[_TableMembers]
    purging: dict[str, str]


def read_checkpoint(store: Store, log: CatalogLog, newest: int) -> CatalogState:
    """The newest state up to the entry with this number of which there is a file that can be believed, or else none.

    Raises Corrupt where there is a checkpoint of a later entry, and no such entry: then entries were lost.
    """
    for number in sorted(_numbers(store), reverse=True):
        if number > newest and log.find(number) is None:  # else it came since the log was looked at
            raise Corrupt(f"{store.url}/{log.key(number)} is missing, and there is a checkpoint of it: {_RESTORE_HINT}")
        if number <= newest:
            with suppress(StorageError):
                state = _decode(read_at_most(store, _key(number), MAX_SNAPSHOT_BYTES), f"{store.url}/{_key(number)}")
                if state.sequence == number and log.entry(number).commit_id == state.commit_id:
                    return state
    return CatalogState()


def write_checkpoint(store: Store, state: CatalogState) -> None:
    """Write one if it is due, and delete what is older than the one before. A failure is of no account."""
    if state.sequence % _MIN_ENTRIES:
        return
    with suppress(StorageError):
        older = sorted(number for number in _numbers(store) if number < state.sequence)
        due = (len(state.tables) + len(state.dropped)) // _NAMES_PER_ENTRY
        if state.sequence - (older[-1] if older else 0) < due:
            return
        data = _encode(state)
        if len(data) <= MAX_SNAPSHOT_BYTES:
            store.create(_key(state.sequence), data)
            store.delete([_key(number) for number in older[: 1 - _KEPT]])


def _numbers(store: Store) -> list[int]:
    found = map(_FILE.fullmatch, list_keys_after(store, f"{_FOLDER}/0"))
    return [int(match[1]) for match in found if match is not None]


def _key(number: int) -> str:
    return f"{_FOLDER}/{number:020}.json"


def _encode(state: CatalogState) -> bytes:
    assert state.timestamp is not None
    live = [_table_members(table) for table in state.tables.values()]
    dropped = [
        _table_members(each.table, format_timestamp(each.timestamp), each.sequence) for each in state.dropped.values()
    ]
    return encode_checksummed_json(
        {
            "kind": "catalog checkpoint",
            "sequence": state.sequence,
            "commit": state.commit_id,
            "timestamp": format_timestamp(state.timestamp),
            "namespaces": [
                msgspec.to_builtins(_NamespaceMembers(each.identifier, dict(each.properties)))
                for each in state.namespaces.values()
            ],
            "tables": [msgspec.to_builtins(each) for each in [*live, *dropped]],
            "purging": state.purging,
        }
    )


def _table_members(table: CatalogTable, dropped: str | None = None, dropped_by: int = 0) -> _TableMembers:
    return _TableMembers(
        table.id,
        table.identifier,
        table.location,
        table.managed,
        format_timestamp(table.created),
        dict(table.properties),
        dropped,
        dropped_by,
    )


def _decode(data: bytes, where: str) -> CatalogState:
    """Raises StorageError, ValueErrors among them, for what is no checkpoint."""
    try:
        found = convert_members(decode_checksummed_json(data, where, MAX_SNAPSHOT_BYTES), _CheckpointMembers)
        state = CatalogState(found.sequence, found.commit, parse_stored_time(found.timestamp))
        for each in found.namespaces:
            identifier = check_identifier(each.namespace)
            state.namespaces[fold_identifier(identifier)] = Namespace(identifier, each.properties)
        for table in found.tables:
            _add_table(state, table)
        _add_purging(state, found.purging)
        return state
    except ValueError as problem:
        raise InvalidArgument(f"{where} is no checkpoint: {problem}") from problem


def _add_table(state: CatalogState, members: _TableMembers) -> None:
    table = CatalogTable(
        members.id,
        check_identifier(members.identifier),
        members.location,
        members.managed,
        members.properties,
        parse_stored_time(members.created),
    )
    check_location(table.location, table.managed)
    if members.dropped is None:
        state.tables[fold_identifier(table.identifier)] = table
        state.ids.add(table.id)
    else:
        state.dropped[table.id] = DroppedTable(table, parse_stored_time(members.dropped), members.dropped_by)
    if members.dropped is None or table.managed:
        state.places[table.location] = table.id


def _add_purging(state: CatalogState, purging: Mapping[str, Any]) -> None:
    for table_id, location in purging.items():
        if FOLDER_PATTERN.fullmatch(location) is None:
            raise ValueError(f"{location!r} is no folder that a warehouse makes")
        state.purging[table_id] = location
        state.places[location] = table_id
