"""Where a table may be made, and with which properties; and why there is none where one was looked for."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fuse_storage.commit.segment_writer import WriteOptions
from fuse_storage.errors import AlreadyExists, InvalidArgument, NotFound, StorageError
from fuse_storage.metadata.refs import Branch
from fuse_storage.metadata.snapshot import KEY_PROPERTY
from fuse_storage.metadata.tags import did_you_mean
from fuse_storage.store.store import Store

TABLE_PREFIXES = ("_refs/", "_ss/", "_sg/", "_x/", "_b/", "_i/")
"""Where the files of a table are; what else is in a folder is not a table's."""

KNOWN_PROPERTIES = (*WriteOptions.__dataclass_fields__, "max_write_seconds", "cluster_method")
"""Properties that mean something here; any other is kept for whoever set it."""


def validate_properties(properties: Mapping[str, Any]) -> dict[str, Any]:
    """Properties as a snapshot can hold them. Raises InvalidArgument for one that cannot be."""
    for name in properties:
        if name not in KNOWN_PROPERTIES and (near := difflib.get_close_matches(name, KNOWN_PROPERTIES, 1, 0.8)):
            raise InvalidArgument(f"no property {name!r} means anything: did you mean {near[0]!r}?")
    if KEY_PROPERTY in properties:
        raise InvalidArgument(
            f"the property {KEY_PROPERTY} holds ids that the table gives: name the columns of "
            f"its key instead, key=[...]"
        )
    WriteOptions.from_properties(properties)
    limit = properties.get("max_write_seconds", 1)
    if not isinstance(limit, int | float) or not limit > 0:
        raise InvalidArgument(f"max_write_seconds = {limit!r}: it must be a number above 0")
    try:
        return dict(json.loads(json.dumps(dict(properties), allow_nan=False)))
    except (TypeError, ValueError) as problem:
        raise InvalidArgument(f"properties must be what JSON can hold: {problem}") from problem


def raise_if_occupied(branch: Branch) -> None:
    """Raises AlreadyExists where there is a table, what is left of one, or anything else."""
    store = branch.store
    if branch.find(1) is not None:
        raise AlreadyExists(f"{store.url} already is a table: open it, or choose another place")
    for found in store.list():
        if not found.key.startswith(TABLE_PREFIXES):
            raise AlreadyExists(
                f"{store.url} holds other files, such as {found.key!r}: choose an empty place for a table"
            )
        if found.key.startswith(("_sg/", "_b/")):
            raise AlreadyExists(
                f"{store.url} holds rows of a table whose refs are lost, such as {found.key!r}: recover it"
            )
    _raise_if_file(store)


def _raise_if_file(store: Store) -> None:
    path = store.path("_refs")
    if path is not None and Path(path).parent.is_file():
        raise StorageError(f"{store.url} is a file, and a table is a folder")


def missing_table_error(chain: Branch, missing: NotFound) -> StorageError:
    """Why nothing can be opened there, and what to do."""
    store = chain.store
    _raise_if_file(store)
    branches = sorted({found.key.split("/")[2] for found in store.list("_refs/branch")})
    if branches:
        return NotFound(f"{store.url} has no branch {chain.name!r}{did_you_mean(chain.name, branches)}")
    other = next((found.key for found in store.list() if not found.key.startswith(TABLE_PREFIXES)), None)
    if other is not None:
        return NotFound(f"{store.url} is no table of this kind: it holds other files, such as {other!r}")
    if next(iter(store.list("_ss")), None) is not None:
        return NotFound(
            f"{store.url} is a table whose refs are lost: recover it from its snapshots (fuse-index recover)"
        )
    return NotFound(f"{store.url} is no table: there is nothing; create it first")
