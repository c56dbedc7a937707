"""Tables are created, opened, and recovered where their refs are lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Any

import fuse_storage as storage
from fuse_index.errors import InputError
from fuse_index.indexes.registry import Host
from fuse_index.ingest import arrow_input
from fuse_index.predicate import Context
from fuse_index.sources.formats import open_source
from fuse_index.sources.sync import attach_source
from fuse_index.table.arguments import check_arguments, table_key
from fuse_index.table.table import Table
from fuse_storage import Recovery


@check_arguments
def create_table(
    url: Any,
    schema: Any,
    cluster_by: Sequence[str] = (),
    properties: Mapping[str, Any] | None = None,
    *,
    key: Sequence[str] = (),
    partition_by: Sequence[str] = (),
    primary_key: Sequence[str] = (),
    options: Mapping[str, str] | None = None,
    host: Host | None = None,
    context: Context | None = None,
) -> Table:
    """Create an empty table at a path or URL (``s3://…``, ``memory://…``).

    ``schema``: pa.Schema, Spark's StructType or DDL text. ``cluster_by``: columns by which writers sort (see
    ``Table.cluster_by``), with the property ``cluster_method`` along a curve. ``properties``: such as ``block_rows``.
    ``key``: columns that identify a row (see ``Table.key_by``). ``primary_key``: the same, and there is at most one row
    for each key, always (see ``Table.upsert``); rows are kept together by it unless ``cluster_by`` names other columns.
    ``partition_by``: columns, of exact and plain types, of which no block mixes values, so that a condition on them
    deletes whole blocks; for good, and with a primary key columns of it. ``options``: of the object store. Raises
    AlreadyExists, InputError, SchemaError, InvalidArgument.
    """
    stored = storage.StoredTable.create(
        check_url(url),
        arrow_input.resolve_arrow_schema(schema),
        tuple(cluster_by),
        dict(properties or {}),
        options,
        table_key(key, primary_key),
        tuple(partition_by),
    )
    return Table(stored, host or Host.discover(), context or Context())


@check_arguments
def attach(
    source: str | Path,
    url: Any,
    format: str = "parquet",  # noqa: A002  # promised
    properties: Mapping[str, Any] | None = None,
    *,
    options: Mapping[str, str] | None = None,
    host: Host | None = None,
) -> Table:
    """Make a table at ``url`` over the files of another: a Parquet folder, a Delta or an Iceberg table.

    No row is read or copied, and nothing is written at the source. ``Table.sync`` follows it, ``Table.convert`` makes
    the table one of its own. ``format``: ``"parquet"``, ``"delta"`` or ``"iceberg"``. ``options``: of the object store,
    for both places; where they are on two stores, ``shared_places`` names the source's. Raises AlreadyExists for a
    place that is taken; InputError, SchemaError and Unsupported, naming the file, for what cannot be read exactly;
    StorageError.
    """
    store = storage.open_store(check_url(url), options)
    place = open_source(format, str(source), options or {})
    return Table(attach_source(store, place, properties or {}), host or Host.discover())


@check_arguments
def recover_table(
    url: Any, heads: Mapping[str, str] | None = None, *, dry_run: bool = False, options: Mapping[str, str] | None = None
) -> Recovery:
    """Make the lost refs of a table anew from its snapshots: whole branches, and what is missing within one.

    ``heads``: the id of the newest snapshot of a branch by its name, where the files leave a doubt. Tags, and that
    branches were dropped, stay lost. ``dry_run`` writes nothing. Raises InvalidArgument for a doubt, naming the ids;
    NotFound, StorageError.
    """
    return storage.recover_branches(storage.open_store(check_url(url), options), heads, dry_run)


@check_arguments
def open_table(
    url: Any,
    branch: str = "main",
    at: str | datetime | None = None,
    *,
    version: int | None = None,
    tail: bool = True,
    read_only: bool = False,
    options: Mapping[str, str] | None = None,
    host: Host | None = None,
    context: Context | None = None,
) -> Table:
    """Open the table at a path or URL, as it is now or as it was ``at`` a snapshot id, tag or time. Raises NotFound.

    ``version``: the state of the branch by its number. ``tail=False`` leaves out rows that are not tiered yet; such a
    handle only reads. ``read_only``: whatever would write or delete anything through this handle, a tag too, raises
    ReadOnly.
    """
    source = storage.ReadOnlyStore(storage.open_store(check_url(url), options)) if read_only else check_url(url)
    stored = storage.StoredTable.open(source, branch=branch, at=at, options=options, version=version)
    pinned = at is not None or version is not None or not tail
    shown = stored if tail else stored.without_tail()
    return Table(shown, host or Host.discover(), context or Context(), pinned, with_tail=tail)


def check_url(url: Any) -> Any:
    """Return a path, a URL or an open store as it is. Raises InputError for anything else."""
    if not isinstance(url, str | PathLike) and not hasattr(url, "read_ranges"):
        raise InputError(f"url={url!r}: give the path or URL of a table, such as '/data/t' or 's3://bucket/t'")
    return url
