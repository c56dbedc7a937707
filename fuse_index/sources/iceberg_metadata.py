"""Where the newest metadata of an Iceberg table lies."""

from __future__ import annotations

import re
from collections.abc import Iterable

from fuse_index.sources.source import StoreOptions
from fuse_storage import NotFound, ObjectMeta, open_store

_HINT = "metadata/version-hint.text"
_METADATA = re.compile(r"(?:.*/)?v?(\d+)[^/]*\.metadata\.json")
"""A file of metadata by its number, as Iceberg's catalogues (``00012-….metadata.json``) or Hadoop's folders name it."""


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
    found = [(int(match[1]), meta.key) for meta in listed if (match := _METADATA.fullmatch(meta.key))]
    return max(found, default=(0, None))[1]
