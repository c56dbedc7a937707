"""Where the newest metadata of an Iceberg table lies, and what it says, as far as PyIceberg knows its types."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

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
            described = json.loads(file.read())
        unknown = drop_unknown_columns(described)
        if not any(unknown.values()):
            raise
        name = ("static-table", location)
        return StaticTable(name, TableMetadataUtil.parse_obj(described), location, io, NoopCatalog(name[0])), unknown


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
