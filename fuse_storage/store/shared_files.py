"""Files of other tables: a key that names another table's folder is read there, and nothing is ever written there.

A clone refers to the blocks and packs of the table that it was made from by their whole URL. Everything else of a table
lies in its own store. Knows no table.
"""

from __future__ import annotations

import re
from functools import lru_cache

from fuse_storage.errors import StorageError
from fuse_storage.store.cache import cache_of, process_cache
from fuse_storage.store.store import Store, open_store
from fuse_storage.store.wrappers import CachedStore

SHARED_FILES_FEATURE = "shared-files"
"""The reader feature of tables with files elsewhere."""
_SHARED_FILE_URL = re.compile(r"(?P<table>(?:[a-z0-9]+:/)?/.*)/(?P<key>_[bi]/.+)", re.DOTALL)
"""The URL or absolute path of a table, and the key of a block or pack in it."""


def absolute_key(store: Store, key: str) -> str:
    """The whole URL or path of a key, as other tables refer to it."""
    return key if is_absolute_key(key) else f"{store.url}/{key}"


def is_absolute_key(key: str) -> bool:
    """Tell whether a key names the file of another table, as ``absolute_key`` wrote it."""
    return key.startswith("/") or "://" in key


def resolve_store(store: Store, key: str) -> tuple[Store, str]:
    """The store in which a file of a table lies, and its key there.

    Another table's store is asked with the options of this one, the same credentials among them; what is read of it is
    kept where this one keeps it. Raises StorageError for what is neither the key nor the URL of a table's file.
    """
    if not is_absolute_key(key):
        return store, key
    if (match := _SHARED_FILE_URL.fullmatch(key)) is None:
        raise StorageError(f"{store.url} refers to {key!r}, which is no file of a table")
    options = getattr(store, "options", None) or {}
    other, cache = _open_cached(match["table"], tuple(sorted(options.items()))), cache_of(store)
    return other if cache is process_cache else CachedStore(other, cache), match["key"]


@lru_cache(maxsize=256)
def _open_cached(url: str, options: tuple[tuple[str, str], ...]) -> Store:
    return open_store(url, dict(options))
