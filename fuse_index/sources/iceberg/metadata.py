"""Where the newest metadata of an Iceberg table lies."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fuse_index.sources.source import StoreOptions
from fuse_storage import NotFound, ObjectMeta, open_store

_HINT = "metadata/version-hint.text"
_SUFFIX = ".metadata.json"
_NUMBER = re.compile(r"v?([0-9]{1,18})")
"""How the name of a file of metadata begins, as Iceberg's catalogues (``00012-….metadata.json``) or folders have it."""


def metadata_location(url: str, options: StoreOptions, votes_only: bool) -> str:
    """Find the newest metadata of a table: what its hint names, or ``url`` itself, if that is a file of metadata.

    Tables of catalogues have no hint. For votes alone the file with the highest number will do: it may be of a commit
    that lost against another, but then only of files that no version has. Raises NotFound.
    """
    if url.endswith(".metadata.json"):
        return url
    store = open_store(url, options)
    try:
        hint = store.read(_HINT).decode().strip()
    except NotFound as missing:
        if votes_only and (newest := _newest(store.list("metadata"))):
            return f"{url}/{newest}"
        raise NotFound(
            f"{url} has no {_HINT}, so that nobody can tell which of its metadata is the newest: name the "
            f"metadata file (….metadata.json), or the table in its catalogue (iceberg://catalog/db.table)"
        ) from missing
    name = f"v{hint}.metadata.json" if hint.isdigit() else hint
    return f"{url}/metadata/{name}"


def _newest(listed: Iterable[ObjectMeta]) -> str | None:
    keys = [meta.key for meta in listed if meta.key.endswith(_SUFFIX)]
    found = [(int(match[1]), key) for key in keys if (match := _NUMBER.match(key.rpartition("/")[2]))]
    return max(found, default=(0, None))[1]
