"""The endpoint behind a session's SQL catalogue: statements are requests, and what one raises is its error."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock
from typing import Any

from pyspark.sql import SparkSession

from fuse_index.errors import DefinitionError
from fuse_index.indexes.registry import Host
from fuse_index.spark.catalog.habits.translate import HabitRequests
from fuse_index.spark.catalog.indexes import IndexRequests
from fuse_index.spark.catalog.namespaces import NamespaceRequests
from fuse_index.spark.catalog.procedures import ProcedureRequests
from fuse_index.spark.catalog.requests import CatalogRequests
from fuse_index.spark.catalog.statements import run_statement
from fuse_index.spark.catalog.system_procedures import SYSTEM_PROCEDURES
from fuse_index.spark.catalog.table_names import TableNames
from fuse_index.spark.failures import NO_TABLE, add_conditions, encode_failure
from fuse_index.spark.native.java_compiler import jvm_bridge
from fuse_index.spark.native.request_server import serve_requests
from fuse_index.spark.protocol import requests
from fuse_index.spark.sql_words import SqlWords
from fuse_index.warehouse.catalog import Catalog
from fuse_storage import AlreadyExists, CodedError, NotFound

_SPARKS_CONDITIONS: Mapping[tuple[type[requests.CatalogRequest], str], str] = {
    (requests.LoadTableRequest, NotFound.code): NO_TABLE,
    (requests.TypedStatementRequest, NotFound.code): NO_TABLE,
    **{
        (each, AlreadyExists.code): "TABLE_OR_VIEW_ALREADY_EXISTS"
        for each in (
            requests.CreateTableRequest,
            requests.StageTableRequest,
            requests.CommitStagedRequest,
            requests.RenameTableRequest,
        )
    },
    (requests.LoadNamespaceRequest, NotFound.code): "SCHEMA_NOT_FOUND",
    (requests.CreateNamespaceRequest, AlreadyExists.code): "SCHEMA_ALREADY_EXISTS",
    **{
        (each, AlreadyExists.code): "INDEX_ALREADY_EXISTS"
        for each in (requests.CreateIndexRequest, requests.CreateSourceIndexRequest)
    },
    **{
        (each, DefinitionError.code): "INDEX_NOT_FOUND"
        for each in (requests.DropIndexRequest, requests.DropSourceIndexRequest)
    },
}
"""Conditions that Spark has of its own, by a request and the code of an error: IF EXISTS goes by these."""
_logger = logging.getLogger("fuse_index.spark")
_lock = Lock()
_installed: dict[str, TableNames] = {}
"""By the key under which the JVM asks: a session that is installed again keeps the warehouse that it has."""


def install_catalog(
    spark: SparkSession,
    name: str,
    warehouse: Catalog | None = None,
    options: Mapping[str, str] | None = None,
    host: Host | None = None,
) -> None:
    """Make a classic session know a catalogue ``name``: the tables of a warehouse, and any by its URL, quoted.

    Safe to call twice: what is not given stays as it was, and another warehouse is told of in the log. ``options``: of
    the object store.
    """
    key = f"{spark._jsparkSession.sessionUUID()}/{name}"
    with _lock:
        former = _installed.get(key)
        if former is not None and warehouse is None and options is None and host is None:
            return
        if former is not None and warehouse is not None:
            _tell_of_another(name, former.warehouse, warehouse)
        names = TableNames(
            name,
            warehouse or (former.warehouse if former else None),
            options if options is not None else former.options if former else {},
            host or (former.host if former else Host.discover()),
        )
        _installed[key] = names
        endpoint = CatalogEndpoint(spark, names)
        serve_requests(spark, key, endpoint.answer, endpoint.encode_failure)
        bridge = jvm_bridge(spark)
        add_conditions(bridge)
        bridge.catalog(spark._jsparkSession, name, key)


def catalogs_of(spark: SparkSession) -> Mapping[str, TableNames]:
    """The catalogues of ours that a classic session has, by name."""
    prefix = f"{spark._jsparkSession.sessionUUID()}/"
    with _lock:
        return {key.removeprefix(prefix): names for key, names in _installed.items() if key.startswith(prefix)}


def forget_catalogs(session_id: str) -> None:
    """Let go of the catalogues of a session that is over."""
    with _lock:
        for key in [each for each in _installed if each.startswith(f"{session_id}/")]:
            del _installed[key]


def _tell_of_another(name: str, former: Catalog | None, warehouse: Catalog) -> None:
    if former is not None and former.url != warehouse.url:
        _logger.warning(
            "catalogue %r has the tables of %s from now on, and those of %s no more: to have both, give one another "
            "name, install(spark, catalog='…')",
            name,
            warehouse.url,
            former.url,
        )


class CatalogEndpoint:
    """What a catalogue answers to its session. Requests come on threads of their own, several at once."""

    def __init__(self, spark: SparkSession, names: TableNames) -> None:
        self._names = names
        self._words = SqlWords(names.catalog, SYSTEM_PROCEDURES, names.shown_by_url)
        tables, namespaces = CatalogRequests(spark, names), NamespaceRequests(names)
        indexes, procedures = IndexRequests(spark, names), ProcedureRequests(spark, names, SYSTEM_PROCEDURES)
        self._operations: Mapping[type[requests.Request], Callable[[Any], bytes]] = {
            requests.LoadTableRequest: tables.load,
            requests.ReadMetadataRequest: tables.rows,
            requests.TableExistsRequest: tables.exists,
            requests.ListTablesRequest: tables.list_tables,
            requests.CreateTableRequest: tables.create_table,
            requests.StageTableRequest: tables.stage_table,
            requests.CommitStagedRequest: tables.commit_staged,
            requests.AbortStagedRequest: tables.abort_staged,
            requests.AlterTableRequest: tables.alter_table,
            requests.WidensColumnRequest: tables.widens_column,
            requests.DropTableRequest: tables.drop_table,
            requests.RenameTableRequest: tables.rename_table,
            requests.ListNamespacesRequest: namespaces.children,
            requests.NamespaceExistsRequest: namespaces.exists,
            requests.LoadNamespaceRequest: namespaces.properties,
            requests.CreateNamespaceRequest: namespaces.create,
            requests.AlterNamespaceRequest: namespaces.alter,
            requests.DropNamespaceRequest: namespaces.drop,
            requests.CreateIndexRequest: indexes.create,
            requests.DropIndexRequest: indexes.drop,
            requests.CreateSourceIndexRequest: indexes.create_of_source,
            requests.DropSourceIndexRequest: indexes.drop_of_source,
            requests.DescribeProcedureRequest: procedures.describe,
            requests.ListProceduresRequest: procedures.list,
            requests.CallProcedureRequest: procedures.call,
            requests.ChangeRowsRequest: partial(run_statement, spark),
            requests.TypedStatementRequest: lambda request: HabitRequests(spark, catalogs_of(spark)).translate(request),
        }

    def answer(self, body: str) -> bytes:
        """The reply to a request, as ``decode_request`` takes it. Raises what the statement is to raise."""
        request = requests.decode_request(body)
        return self._operations[type(request)](request)

    def encode_failure(self, body: str, raised: BaseException) -> str:
        """What such a request raised, in the words of SQL, for the JVM."""
        code = raised.code if isinstance(raised, CodedError) else ""
        return encode_failure(raised, self._words, _SPARKS_CONDITIONS.get((requests.request_type(body), code)))
