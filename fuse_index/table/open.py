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
from fuse_index.table.arguments import check_arguments, table_key
from fuse_index.table.sources import follow_source
from fuse_index.table.table import Table
from fuse_storage import NotFound, Recovery


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

    Args:
        url: Where the table is to be, a path, a URL or an open store; nothing may be there.
        schema: Its columns: a pa.Schema, Spark's StructType, or DDL text such as ``"id BIGINT NOT NULL, name STRING"``.
        cluster_by: Columns by which writers sort (see ``Table.cluster_by``), with the property ``cluster_method`` along
            a curve.
        properties: Such as ``{"block_rows": 100_000}``.
        key: Columns that identify a row (see ``Table.key_by``).
        partition_by: Columns, of exact and plain types, of which no block mixes values, so that a condition on them
            deletes whole blocks. They stay for good, and with a primary key must be columns of it.
        primary_key: As ``key``, and there is at most one row for each key, always (see ``Table.upsert``). Rows are kept
            together by it unless ``cluster_by`` names other columns.
        options: Of the object store.
        host: Index kinds and functions; by default those that are installed.
        context: How conditions are meant: time zone, ANSI mode, case of names; by default as in a new Spark session.

    Returns:
        The table, open at its first snapshot.

    Raises:
        AlreadyExists: There is a table, or anything else.
        InputError: An argument is of a type that is not taken, or ``key`` and ``primary_key`` are both given.
        WhereError: The DDL text is none, showing the place.
        SchemaError: The schema, a key or a partition column cannot be.
        InvalidArgument: A property cannot be.
        StorageError: The store fails.

    Example:
        >>> table = fuse.create_table("memory://create", "id BIGINT, name STRING", ["id"], {"block_rows": 100_000})
        >>> table.schema.names, table.snapshot.cluster_by
        (['id', 'name'], ('id',))
    """
    stored = storage.StoredTable.create(
        _store_at(url, options),
        arrow_input.resolve_arrow_schema(schema),
        tuple(cluster_by),
        dict(properties or {}),
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
    columns: Sequence[str] | None = None,
    widen: bool = False,
    max_age: str | None = None,
    votes_only: bool = False,
    options: Mapping[str, str] | None = None,
    host: Host | None = None,
) -> Table:
    """Make a table over the files of another: a Parquet folder, a Delta or an Iceberg table.

    No row is read or copied, and nothing is written at the source. ``Table.sync`` follows it, ``Table.convert`` makes
    the table one of its own.

    Args:
        source: The folder, or the path or URL of the Delta or Iceberg table.
        url: Where the new table's metadata is to be; nothing may be there.
        format: ``"parquet"``, ``"delta"`` or ``"iceberg"``.
        properties: Of the new table.
        columns: The names of the columns that the table is to have; by default all that can be read.
        widen: Columns that are whole numbers in some files of a folder, and doubles in others, are doubles.
        max_age: How old the table may be, such as ``"1m"``: who opens it later has it synced, if the source moved.
        votes_only: No row will be read through the table: its indexes say of files that the source's own readers are
            about to read which can hold no row of an answer. So it takes deleted rows, mapped columns and types that
            are refused otherwise.
        options: Of the object store, for both places; where they are on two stores, ``shared_places`` names the
            source's.
        host: Index kinds and functions; by default those that are installed.

    Returns:
        The table, open at the present state of the source.

    Raises:
        AlreadyExists: The place is taken.
        NotFound: There is no source.
        InputError: There is no such format, or the source is none of it.
        SchemaError: A file has columns that do not fit; it is named.
        Unsupported: What cannot be read exactly, naming the file.
        StorageError: A store fails.

    Example:
        >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> pq.write_table(pa.table({"id": [1, 2]}), f"{folder}/part.parquet")
        >>> fuse.attach(folder, "memory://attach", options={"shared_places": folder}).count("id > 1")
        1
    """
    from fuse_index.sources.formats import open_source
    from fuse_index.sources.sync import attach_source

    store = _store_at(url, options)
    place = open_source(format, str(source), options or {})
    if max_age is not None:
        properties = dict(properties or {}) | {"max_age_seconds": _seconds(max_age)}
    choice = storage.SourceChoice(None if columns is None else tuple(columns), widen)
    stored = attach_source(store, place, properties or {}, votes_only=votes_only, choice=choice)
    return Table(stored, host or Host.discover())


@check_arguments
def recover_table(
    url: Any, heads: Mapping[str, str] | None = None, *, dry_run: bool = False, options: Mapping[str, str] | None = None
) -> Recovery:
    """Make the lost refs of a table anew from its snapshots: whole branches, and what is missing within one.

    Tags, and that branches were dropped, stay lost.

    Args:
        url: Where the table is.
        heads: The id of the newest snapshot of a branch by its name, where the files leave a doubt.
        dry_run: Write nothing.
        options: Of the object store.

    Returns:
        Its ``entries`` by branch, newest first, that were written or would be; what is ``later`` and left open; what is
        ``unreadable``.

    Raises:
        InvalidArgument: There is a doubt; the ids are named.
        NotFound: There are no snapshots.
        StorageError: The store fails.

    Example:
        >>> table = fuse.create_table("memory://recover", "id BIGINT")
        >>> fuse.recover_table("memory://recover", dry_run=True).done
        False
    """
    return storage.recover_branches(_store_at(url, options), heads, dry_run)


@check_arguments
def open_table(
    url: Any,
    branch: str = "main",
    at: str | int | datetime | None = None,
    *,
    version: int | None = None,
    tail: bool = True,
    read_only: bool = False,
    options: Mapping[str, str] | None = None,
    host: Host | None = None,
    context: Context | None = None,
) -> Table:
    """Open the table at a path or URL, as it is now or as it was.

    Args:
        url: Where the table is: a path, a URL or an open store.
        branch: Which branch.
        at: A snapshot id, a tag, a version or a time; such a handle only reads.
        version: The state of the branch by its number, which may also be said as ``at=3``.
        tail: False leaves out rows that are not tiered yet; such a handle only reads.
        read_only: Whatever would write or delete anything through this handle, a tag too, raises ReadOnly.
        options: Of the object store.
        host: Index kinds and functions; by default those that are installed.
        context: How conditions are meant: time zone, ANSI mode, case of names; by default as in a new Spark session.

    Returns:
        A handle of the table, which stays at this snapshot until ``refresh`` or a commit of its own.

    Raises:
        NotFound: There is no table, branch, snapshot or tag, or it was vacuumed; near names are said.
        InputError: An argument is of a type that is not taken.
        StorageError: The store fails.

    Example:
        >>> table = fuse.create_table("memory://open", "id BIGINT")
        >>> tag = table.tag("empty")
        >>> snapshot = table.append([{"id": 1}])
        >>> fuse.open_table("memory://open").count(), fuse.open_table("memory://open", at="empty").count()
        (1, 0)
    """
    source = storage.ReadOnlyStore(storage.open_store(check_url(url), options)) if read_only else check_url(url)
    try:
        stored = storage.StoredTable.open(source, branch=branch, at=at, options=options, version=version)
    except NotFound as missing:
        place, sign, name = url.rpartition("#") if isinstance(url, str) else ("", "", "")
        if not sign:
            raise
        told = f"{missing}; a table of a warehouse is opened by catalog({place!r}).load_table({name!r})"
        raise NotFound(told) from missing
    pinned = at is not None or version is not None or not tail
    shown = stored if tail else stored.without_tail()
    table = Table(shown, host or Host.discover(), context or Context(), pinned, with_tail=tail)
    follow_source(table)
    return table


def _seconds(max_age: str) -> float:
    try:
        return storage.parse_duration_text(max_age).total_seconds()
    except ValueError as problem:
        raise InputError(f"max_age={max_age!r} {problem}") from problem


def _store_at(url: Any, options: Mapping[str, str] | None) -> storage.Store:
    """The store at a path or URL, or one that is open. Raises InputError for anything else."""
    return storage.open_store(url, options) if isinstance(check_url(url), str | PathLike) else url


def check_url(url: Any) -> Any:
    """Return a path, a URL or an open store as it is. Raises InputError for anything else."""
    if not isinstance(url, str | PathLike) and not hasattr(url, "read_ranges"):
        raise InputError(f"url={url!r}: give the path or URL of a table, such as '/data/t' or 's3://bucket/t'")
    return url
