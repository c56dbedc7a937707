"""Where the tables of a warehouse are: folders that it makes for them, and places that its user registered.

A folder's name is a name that its table once had, for people, and the table's id, so that no two tables ever share one.
Files in such folders are deleted by the warehouse's own store, by keys, which leads over no link.
"""

from __future__ import annotations

import re

from fuse_storage.catalog.names import Identifier
from fuse_storage.errors import InvalidArgument
from fuse_storage.store.abilities import remove_empty_folders
from fuse_storage.store.ranges import validate_key
from fuse_storage.store.shared_files import is_absolute_key, raise_if_elsewhere
from fuse_storage.store.store import Store, open_store

_MAX_FOLDER_NAME = 40
_DELETE_BATCH_KEYS = 500


def folder_name(identifier: Identifier, table_id: str) -> str:
    """The folder of a new table.

    >>> folder_name(("sales", "Orders 2026"), "0" * 32)
    'Orders_2026-00000000000000000000000000000000'
    """
    return f"{re.sub('[^A-Za-z0-9_-]', '_', identifier[-1])[:_MAX_FOLDER_NAME]}-{table_id}"


def open_table_store(store: Store, location: str) -> Store:
    """The store of a table, asked with the options of the warehouse's. Raises StorageError for a place elsewhere.

    A place that a warehouse names is asked as a clone's source is: in the same kind of store and the same bucket, or
    where the user says so (``shared_places``).
    """
    options = dict(getattr(store, "options", None) or {})
    if is_absolute_key(location):
        raise_if_elsewhere(store, location, "has a table at")
        return open_store(location, options)
    return open_store(f"{store.url}/{validate_key(location)}", options)


def location_of(store: Store, url: str) -> str:
    """How a warehouse writes down the place of a table: by its key where it is within, so that both can be moved."""
    within = f"{store.url}/"
    if not is_absolute_key(url):
        raise InvalidArgument(f"{url!r} is no URL and no absolute path of a table")
    location = url.removeprefix(within).rstrip("/")
    if url.rstrip("/") == store.url or not location:
        raise InvalidArgument(f"{url} is the warehouse itself, and no table in it")
    return location


def remove_folder(store: Store, folder: str) -> None:
    """Delete all files of a folder of the warehouse: its refs last, so that what is left of it still can be told."""
    keys = sorted((found.key for found in store.list(folder)), key=lambda key: key.startswith(f"{folder}/_refs/"))
    for start in range(0, len(keys), _DELETE_BATCH_KEYS):
        store.delete(keys[start : start + _DELETE_BATCH_KEYS])
    remove_empty_folders(store, folder)
