"""Where the newest metadata of an Iceberg table lies, and what it says, as far as PyIceberg knows its types."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from fuse_index.sources.source import StoreOptions
from fuse_storage import NotFound, ObjectMeta, Store, object_meta, open_store

_GZIP = b"\x1f\x8b"
_HINT = "metadata/version-hint.text"
_SUFFIX = ".metadata.json"
_NUMBER = re.compile(r"v?([0-9]{1,18})")
"""How the name of a file of metadata begins, as Iceberg's catalogues (``00012-….metadata.json``) or folders have it."""
_ENDINGS = (_SUFFIX, ".gz.metadata.json")
"""Endings of metadata in tables of folders: the second where ``write.metadata.compression-codec`` is gzip."""


def metadata_location(url: str, options: StoreOptions, votes_only: bool) -> str:
    """Find the newest metadata of a table: what its hint names, or ``url`` itself, if that is a file of metadata.

    A hint may name a number that others have followed already: Iceberg writes it last, and may fail to. Tables of
    catalogues have no hint. For votes alone the file with the highest number will do: it may be of a commit that lost
    against another, but then only of files that no version has. Raises NotFound.
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
    return f"{url}/{_of_number(store, int(hint)) if hint.isdecimal() else f'metadata/{hint}'}"


def _of_number(store: Store, number: int) -> str:
    """The metadata of this number in a folder, or of the last one that follows it."""
    found = _numbered(store, number) or f"metadata/v{number}{_SUFFIX}"
    while (later := _numbered(store, number + 1)) is not None:
        found, number = later, number + 1
    return found


def _numbered(store: Store, number: int) -> str | None:
    for ending in _ENDINGS:
        key = f"metadata/v{number}{ending}"
        try:
            return object_meta(store, key).key
        except NotFound:
            continue
    return None


def _newest(listed: Iterable[ObjectMeta]) -> str | None:
    keys = [meta.key for meta in listed if meta.key.endswith(_SUFFIX)]
    found = [(int(match[1]), key) for key in keys if (match := _NUMBER.match(key.rpartition("/")[2]))]
    return max(found, default=(0, None))[1]


UnknownColumns = Mapping[int, Mapping[str, Mapping[str, Any]]]
"""Columns of types that PyIceberg does not know, as metadata has them, by schema id and name; with their ``place``."""


def load_metadata(location: str, properties: Mapping[str, str]) -> tuple[Any, UnknownColumns]:
    """A table of PyIceberg over a file of metadata, and the columns of types that it does not know.

    A schema with such a column, a variant for one, would be refused as a whole.
    """
    from pyiceberg.catalog.noop import NoopCatalog
    from pyiceberg.io import load_file_io
    from pyiceberg.table import StaticTable
    from pyiceberg.table.metadata import TableMetadataUtil

    try:
        return StaticTable.from_metadata(location, dict(properties)), {}
    except Exception:  # of pydantic, or of PyIceberg
        io = load_file_io(dict(properties), location)
        with io.new_input(location).open() as file:
            described = parse_metadata(file.read())
        unknown = drop_unknown_columns(described)
        if not any(unknown.values()):
            raise
        name = ("static-table", location)
        return StaticTable(name, TableMetadataUtil.parse_obj(described), location, io, NoopCatalog(name[0])), unknown


def parse_metadata(data: bytes) -> dict[str, Any]:
    """Metadata as JSON has it, be its file compressed or not."""
    found: dict[str, Any] = json.loads(gzip.decompress(data) if is_compressed(data) else data)
    return found


def is_compressed(data: bytes) -> bool:
    """Whether a file of metadata is compressed by gzip."""
    return data.startswith(_GZIP)


def drop_unknown_columns(described: dict[str, Any]) -> UnknownColumns:
    """Take columns of unknown types out of all schemas of metadata as JSON has them, and give these. Mutates it."""
    return {int(schema["schema-id"]): _drop_unknown(schema) for schema in described["schemas"]}


def _drop_unknown(schema: dict[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    """Take columns of unknown types out of a schema as JSON has it, and give these by name. Mutates it."""
    from pyiceberg.types import NestedField

    kept, unknown = [], dict[str, Mapping[str, Any]]()
    for place, field in enumerate(schema["fields"]):
        try:
            NestedField.model_validate(field)
            kept.append(field)
        except Exception:  # of pydantic, or of PyIceberg
            unknown[field["name"]] = {**field, "place": place}
    schema["fields"] = kept
    return unknown
