"""DataFrames over tables, and the sessions that read them natively: ``read`` and ``search``.

A classic session reads natively; where that is not possible, the Python data source does, with a warning that says why.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from fuse_index.errors import InputError
from fuse_index.indexes.registry import Host
from fuse_index.spark.foreign.source_indexes import SourceIndexes
from fuse_index.spark.native import relation
from fuse_index.spark.native.file_listing import has_told_variants, hidden_column, shredded_column
from fuse_index.spark.native.java_compiler import java_class, jvm_bridge
from fuse_index.spark.native.planner_callback import PlannerCallback
from fuse_index.spark.native.request_server import serve_requests
from fuse_index.spark.native.snapshot_planner import INDEXED_MODE, SnapshotPlanner, state_key
from fuse_index.spark.placement import is_connect, run_where_reachable
from fuse_index.spark.schemas import to_spark_schema
from fuse_index.spark.server.served_read import read_on_server
from fuse_index.spark.source import data_source
from fuse_index.spark.source.options import STORE_PREFIX, TableLocation
from fuse_index.spark.text_limits import text_limits
from fuse_index.table.arguments import check_arguments
from fuse_index.table.open import open_table
from fuse_storage import StoredTable

_HADOOP_SCHEMES = {"": ("file",), "file": ("file",), "s3": ("s3", "s3a"), "gs": ("gs",)}
"""By the scheme of a table's URL, what Hadoop may call it, the likeliest first."""


class FallbackWarning(UserWarning):
    """A table is read through the slower Python source; the message says why."""


@dataclass(frozen=True, slots=True)
class NativeSession:
    """A classic session whose JVM knows our endpoint, by the key under which it is registered there."""

    key: str
    planner: SnapshotPlanner
    callback: PlannerCallback
    source_indexes: SourceIndexes


_lock = Lock()
_sessions: dict[str, NativeSession] = {}
"""By key: the JVM asks for votes long after whoever made a DataFrame has forgotten it."""


@check_arguments
def read(
    spark: SparkSession,
    url: str | Path,
    branch: str = "main",
    at: str | int | datetime | None = None,
    *,
    version: int | None = None,
    tail: bool = True,
    indexes: bool = True,
    options: Mapping[str, str] | None = None,
) -> DataFrame:
    """Make a DataFrame over a table, of which each query reads only blocks that may hold an answer.

    It reads the head of ``branch`` as it is now; ``REFRESH TABLE`` on a view of it moves to the head of then.

    Args:
        spark: A session, classic or Connect.
        url: Where the table is.
        branch: Which branch.
        at: A snapshot id, a tag or a time: then it stays there.
        version: The number of a state of the branch: then it stays there.
        tail: False leaves rows out that are not tiered yet, and stays.
        indexes: False reads everything, to compare with.
        options: Of the object store for us; Spark has its own.

    Returns:
        The DataFrame; on Connect each query reads the head of then. Where Spark's own reader cannot read the table,
        or a Connect server lacks us, it is read through ``format("fuse")``, with a ``FallbackWarning`` that says why.

    Raises:
        NotFound: There is no table, branch, snapshot or tag.
        InputError: An argument is of a type that is not taken.
        VotesOnly: The table only votes on files of its source.
        StorageError: The store fails.

    Example:
        orders = fuse_spark.read(spark, "/data/orders")
        orders.where("email = 'ann@example.com'").show()
    """
    location = TableLocation(str(url), branch, _at_text(at), _option_pairs(options), version, tail)
    if is_connect(spark):
        served = read_on_server(spark, location) if indexes else "a server always asks indexes"
        return _through_source(spark, location, served) if isinstance(served, str) else served
    table = StoredTable.open(url, branch=branch, at=at, options=options, version=version)
    table.snapshot.check_rows()
    table, stays = table if tail else table.without_tail(), at is not None or version is not None or not tail
    mode = INDEXED_MODE if indexes else "everything"
    try:
        scan = native_scan(spark, table, "" if stays else branch, mode, options)
    except NotNative as reason:
        if table.snapshot.source is not None:
            table.block_files()  # a place that is not shared is said here, and not by a task with its trace
        pinned = replace(location, at=table.snapshot.id, version=None)
        return _through_source(spark, pinned, str(reason))
    return relation.snapshot_dataframe(spark, scan)


class NotNative(InputError):
    """Spark's own reader cannot read a table; the message says why."""

    code = "NOT_NATIVE"


def native_scan(
    spark: SparkSession, table: StoredTable, branch: str, mode: str, options: Mapping[str, str] | None
) -> relation.NativeScan:
    """The scan of an open table by a classic session, which is told of it. Raises NotNative.

    ``branch``: empty where a refresh must not move it. ``options`` are those of the object store.
    """
    scheme = _scheme(spark, table.store.url)
    if scheme is None:
        raise NotNative(f"Spark has no file system for {table.store.url}")
    older_schemas = relation.schemas_with_null_struct_bug(spark, table.snapshot.schemas.values())
    if reason := relation.unsupported_reason(table.snapshot.schema, older_schemas):
        raise NotNative(reason)
    if (name := hidden_column(table)) is not None:
        raise NotNative(
            f"column {name!r} is in some files as Spark does not read it, or a partition's where they hold it, too"
        )
    if (shredded := shredded_column(table)) is not None and not relation.reads_shredded_variants(spark):
        raise NotNative(
            f"files have shredded the VARIANT {shredded!r}, which this session reads natively only if "
            f"{relation.SHREDDING_SETTING} is true"
        )
    if has_told_variants(table) and not relation.knows_logical_variants(spark):
        raise NotNative(
            "this Spark's Parquet reader fails on files with the logical type VARIANT, as some of this table have it"
        )
    session = register_session(spark)
    return relation.NativeScan(
        session.key,
        table.store.url,
        branch,
        mode,
        state_key(table),
        session.planner.register_table(table, scheme, dict(options or {})),
        table.snapshot.schema,
        older_schemas,
        frozenset(column_id for each in table.blocks().foreign.constants for column_id in each),
        bool(table.snapshot.source and table.snapshot.source["format"] == "iceberg"),
        bool(table.blocks().foreign.mask.any()),
        text_limits(table.snapshot),
        frozenset(table.snapshot.source["unread"]) if table.snapshot.source else (),
    )


def search(
    spark: SparkSession,
    url: str,
    columns: str | Sequence[str],
    query: Any,
    limit: int = 10,
    where: str | None = None,
    select: Sequence[str] | None = None,
    options: str | None = None,
    highlight: tuple[str, str] | None = None,
    branch: str = "main",
    at: str | int | datetime | None = None,
    recall: float = 1.0,
) -> DataFrame:
    """Find the best rows for a query, best first, as ``Table.search`` does.

    Args:
        spark: A session, classic or Connect.
        url: Where the table is.
        columns: A column, or several, whose scores are added.
        query: What to look for: a text in the language of the index, or a value of the column's type (a vector).
        limit: How many rows at most.
        where: A condition that leaves rows out and changes no score.
        select: The columns wanted; by default all.
        options: Of the index's function.
        highlight: Signs before and after what matches, in a column ``_highlight``.
        branch: Which branch.
        at: A snapshot id, a tag or a time.
        recall: Which share of the best rows is enough; below 1, an index may guess.

    Returns:
        A DataFrame of the rows with their ``_score``.

    Raises:
        FuseIndexError: As ``Table.search`` raises.
        StorageError: The store fails.

    Example:
        fuse_spark.search(spark, "/data/posts", "text", "red fox", limit=5).show()
    """

    def best_rows() -> pa.Table:
        table = open_table(url, branch=branch, at=at)
        return table.search(columns, query, limit, where, select, options, highlight, recall)

    rows = run_where_reachable(spark, best_rows).combine_chunks()  # PySpark loses rows after batches without any
    return spark.createDataFrame(rows, to_spark_schema(rows.schema))


def find_native_session(key: str) -> NativeSession | None:
    """The session of this process that is registered under ``key``; None if another process made it."""
    return _sessions.get(key)


def register_session(spark: SparkSession, host: Host | None = None) -> NativeSession:
    """Register an endpoint for a classic session, once or for another host, and our rules with its optimizer."""
    bridge = jvm_bridge(spark)
    key = f"{spark._jsparkSession.sessionUUID()}/{os.getpid()}"
    with _lock:
        if host is not None or key not in _sessions:
            former = _sessions.get(key)
            host = host or Host.discover()
            planner = former.planner.with_host(host) if former is not None else SnapshotPlanner(host)
            indexes = SourceIndexes(key, planner) if former is None else former.source_indexes.with_planner(planner)
            _sessions[key] = NativeSession(key, planner, PlannerCallback(planner, indexes), indexes)
            serve_requests(spark, key, _sessions[key].callback.apply)
    bridge.optimize(spark._jsparkSession)
    return _sessions[key]


def forget_session(session_id: str) -> None:
    """Let go of what is kept for a classic session of this process that is over."""
    _sessions.pop(f"{session_id}/{os.getpid()}", None)


def _scheme(spark: SparkSession, url: str) -> str | None:
    """The scheme by which Spark knows ``url``; None if it has no file system for it."""
    jvm = spark.sparkContext._jvm
    file_system, path = java_class(jvm, "org.apache.hadoop.fs.FileSystem"), java_class(jvm, "org.apache.hadoop.fs.Path")
    configuration = spark._jsparkSession.sessionState().newHadoopConf()
    own_scheme, rest = url.split(":", 1) if "://" in url else ("", url)
    for scheme in _HADOOP_SCHEMES.get(own_scheme, (own_scheme,)):
        try:
            file_system.get(path(f"{scheme}:{rest}").toUri(), configuration)
        except Py4JJavaError:
            continue
        return scheme
    return None


def _through_source(spark: SparkSession, location: TableLocation, reason: str) -> DataFrame:
    data_source.register_source(spark)
    warnings.warn(
        f"{location.url} is read through format('fuse'), which skips less and copies more: {reason}",
        FallbackWarning,
        stacklevel=3,
    )
    chosen = {"branch": location.branch, "at": location.at, "version": location.version}
    reader = spark.read.format("fuse").options(
        **{name: value for name, value in chosen.items() if value is not None},
        **{f"{STORE_PREFIX}{key}": value for key, value in location.store_options},
    )
    return (reader if location.tail else reader.option("tail", "false")).load(location.url)


def _at_text(at: str | int | datetime | None) -> str | None:
    return at.isoformat() if isinstance(at, datetime) else None if at is None else str(at)


def _option_pairs(options: Mapping[str, str] | None) -> tuple[tuple[str, str], ...]:
    return tuple((options or {}).items())
