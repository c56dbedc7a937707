"""Files of other tables: a key that names another table's folder is read there, and nothing is ever written there.

A clone refers to the blocks and packs of the table that it was made from by their whole URL. Everything else of a table
lies in its own store. Whoever wrote a table wrote these URLs, too, so they are followed only as far as the table
declares them, and to no other kind of store and no other bucket than the table's own, unless the user says so. Knows no
table.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import lru_cache
from urllib.parse import unquote

from fuse_storage.errors import Corrupt, StorageError, TableUrl
from fuse_storage.source_options import options_of_source
from fuse_storage.store.cache import cache_of, process_cache
from fuse_storage.store.ranges import validate_key
from fuse_storage.store.store import SHARED_PLACES_OPTION, Store, open_store, parse_url
from fuse_storage.store.wrappers import CachedStore

SHARED_FILES_FEATURE = "shared-files"
"""The reader feature of tables with files elsewhere."""
SHARED_PLACES_VARIABLE = "FUSE_INDEX_SHARED_PLACES"
"""The environment variable that says what the option ``shared_places`` says, of all tables of this process."""
_SHARED_FILE_URL = re.compile(r"(?P<table>(?:[a-z0-9]+:/)?/.*)/(?P<key>_[bdhi]/.+)", re.DOTALL)
"""The URL or absolute path of a table, and the key of a block or pack in it."""
_CREDENTIALS = re.compile("access_key|account_key|sas_|token|secret|service_account|skip_signature", re.IGNORECASE)
"""What is in the names of options by which a store knows who asks."""


def absolute_key(store: Store, key: str) -> str:
    """The whole URL or path of a key, as other tables refer to it."""
    return key if is_absolute_key(key) else f"{store.url}/{key}"


def is_absolute_key(key: str) -> bool:
    """Tell whether a key names the file of another table, as ``absolute_key`` wrote it."""
    return key.startswith("/") or "://" in key


def resolve_store(store: Store, key: str, shares_files: bool) -> tuple[Store, str]:
    """The store in which a file of a table lies, and its key there. ``shares_files``: the table declares the feature.

    Another table's store is asked with the options of this one, the same credentials among them; what is read of it is
    kept where this one keeps it. Raises StorageError for what is neither the key nor the URL of a table's file, and for
    a URL that is not to be followed.
    """
    if not is_absolute_key(key):
        return store, validate_key(key)
    if not shares_files:
        raise Corrupt(
            TableUrl(store.url)
            + f" refers to {key!r} in another table without the feature {SHARED_FILES_FEATURE!r}: it is "
            f"damaged, or was made to look elsewhere"
        )
    if (match := _SHARED_FILE_URL.fullmatch(key)) is None:
        raise StorageError(TableUrl(store.url) + f" refers to {key!r}, which is no file of a table")
    raise_if_elsewhere(store, match["table"])
    other, cache = _open_cached(match["table"], tuple(sorted(_options(store).items()))), cache_of(store)
    return other if cache is process_cache else CachedStore(other, cache), validate_key(match["key"])


def resolve_foreign_store(store: Store, location: str, source: str | None) -> tuple[Store, str]:
    """The store in which a file lies that somebody else wrote, and its key there, below ``source`` if it is there.

    It is asked with the options of ``store``, and where these have no credentials, with those that the source's
    catalogue gives. Raises StorageError for a place that is not to be asked.
    """
    root = source.rstrip("/") if source is not None and location.startswith(source.rstrip("/") + "/") else None
    root = root or location.rpartition("/")[0] or "/"
    raise_if_elsewhere(store, root, "has files of")
    options = _options(store)
    if not (root.startswith("/") or any(_CREDENTIALS.search(name) for name in options)):
        options |= options_of_source(source)
    other, cache = _open_cached(root, tuple(sorted(options.items()))), cache_of(store)
    key = validate_key(location[len(root) :].lstrip("/"))
    return other if cache is process_cache else CachedStore(other, cache), key


def raise_if_elsewhere(store: Store, url: str, verb: str = "shares files of") -> None:
    """Raise StorageError if files of the table at ``url`` are not to be read for the one at ``store``.

    They are on the same kind of store, and in the same bucket if there are any; elsewhere if the user names the place.
    ``verb``: what the one does with the other, for the message.
    """
    named = f"{_options(store).get(SHARED_PLACES_OPTION, '')} {os.environ.get(SHARED_PLACES_VARIABLE, '')}"
    if (problem := _refusal(store.url, url, named, verb)) is not None:
        raise StorageError(problem)


@lru_cache(maxsize=1024)
def _refusal(own: str, url: str, named: str, verb: str) -> str | None:
    place, path = parse_url(url)
    if "\0" in path or "\\" in path or any(part in (".", "..") for part in unquote(path).split("/")):
        return f"{own} refers to a table at {url!r}: such a path could lead anywhere"
    if parse_url(own)[0] == place or f"{place}{path}/".startswith(tuple(_folders(named))):
        return None
    return (
        f"{own} {verb} {url}, which is on another store. If you trust both tables, name that place: "
        f"options={{'{SHARED_PLACES_OPTION}': {url!r}}}, or {SHARED_PLACES_VARIABLE}={url} in the environment"
    )


def _folders(named: str) -> Iterator[str]:
    """The places that a text names, each with a slash at its end, so that one is no beginning of another's name."""
    for url in re.split(r"[\s,]+", named.strip()):
        place, path = parse_url(url)
        if url:
            yield f"{place}{path.rstrip('/')}/"


def _options(store: Store) -> dict[str, str]:
    return dict(getattr(store, "options", None) or {})


@lru_cache(maxsize=256)
def _open_cached(url: str, options: tuple[tuple[str, str], ...]) -> Store:
    return open_store(url, dict(options))
