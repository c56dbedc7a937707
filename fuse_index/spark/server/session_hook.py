"""Catalogues, functions, rules and native scans in each session that Spark's own servers begin.

A server makes the sessions of its clients of one that it was started with. The JVM tells of each before its first
statement is parsed (``SessionHook.java``), and waits until we are installed there.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Any

from pyspark.sql import SparkSession

from fuse_index.errors import InputError
from fuse_index.indexes.registry import Host
from fuse_index.spark.catalog.endpoint import forget_catalogs
from fuse_index.spark.installation import NamedWarehouse, check_catalog_name, install_catalogs
from fuse_index.spark.native.java_compiler import jvm_bridge, load_named_class
from fuse_index.spark.native.request_server import forget_requests, serve_requests
from fuse_index.spark.placement import is_connect
from fuse_index.spark.server.served_read import SERVER_CATALOG_SETTING
from fuse_index.spark.server.served_session import ServedSession
from fuse_index.spark.session import forget_session
from fuse_index.table.arguments import check_arguments
from fuse_index.warehouse.catalog import catalog as open_catalog

_logger = logging.getLogger("fuse_index.spark")


class SessionHook:
    """What is installed in sessions that are made of one session, and which of them are not over.

    ``spark``: the classic session that the server makes others of. ``catalogs``: the first has tables by their places.
    """

    def __init__(self, spark: SparkSession, host: Host, catalogs: Sequence[NamedWarehouse]) -> None:
        self._spark, self._host, self._catalogs = spark, host, tuple(catalogs)
        self._bridge = jvm_bridge(spark)
        self._lock = Lock()
        self._sessions: set[str] = set()

    def put(self) -> None:
        """Begin, for all sessions that are made from now on."""
        key = f"{self._spark._jsparkSession.sessionUUID()}/{os.getpid()}/sessions"
        serve_requests(self._spark, key, self._install)
        self._bridge.hook(self._spark._jsparkSession, key)
        self._announce_catalogs()

    def _announce_catalogs(self) -> None:
        """Have Spark know the catalogues' names in sessions that are asked for one before anything is named there."""
        awaited = load_named_class(self._spark.sparkContext._jvm, "AwaitedCatalog")
        settings: Any = self._spark.sparkContext._jsc.sc().conf()
        for each in self._catalogs if awaited else ():
            settings.set(f"spark.sql.catalog.{each.name}", awaited)

    @property
    def sessions(self) -> frozenset[str]:
        """The ids of the sessions that we are installed in, and that Spark still keeps as far as is known."""
        with self._lock:
            return frozenset(self._sessions)

    def forget_ended(self) -> None:
        """Let go of all that was kept for sessions which Spark has let go of."""
        for session_id in self._bridge.takeEnded().split():
            forget_session(session_id)
            forget_catalogs(session_id)
            forget_requests(self._spark, f"{session_id}/")
            with self._lock:
                self._sessions.discard(session_id)
            _logger.info("session %s is over", session_id)

    def _install(self, session_id: str) -> bool:
        self.forget_ended()
        session = ServedSession(self._spark.sparkContext, self._bridge, session_id)
        with self._lock:
            self._sessions.add(session_id)
        install_catalogs(session, self._host, self._catalogs)
        session.conf.set(SERVER_CATALOG_SETTING, self._catalogs[0].name)
        _logger.info("installed in session %s", session_id)
        return True


@check_arguments
def install_in_new_sessions(
    spark: SparkSession,
    warehouse: str | Path | None = None,
    *,
    catalogs: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
    host: Host | None = None,
) -> SessionHook:
    """Install us in a session, and in each that is made of it from now on, before its first statement.

    So clients of a Connect server, or of the Thrift server, that this process starts have our catalogues, whatever they
    have installed. Sessions that are over are let go of.

    Args:
        spark: A classic session, of which the server makes those of its clients.
        warehouse: A path or URL of a warehouse, whose catalogue is ``fuse``; without one, tables are named by their
            places.
        catalogs: Warehouses by the names of their catalogues.
        options: Of the object store.
        host: The index kinds and functions to use; by default those that are installed.

    Returns:
        What tells which sessions there are.

    Raises:
        InputError: A session of Spark Connect, or a name that Spark has a catalogue of.
        NotFound: There is no warehouse.
        StorageError: The store fails.

    Example:
        fuse_spark.install_in_new_sessions(spark, warehouse="/data/warehouse")
    """
    if is_connect(spark):
        raise InputError("a client of Spark Connect makes no sessions for others: call this in the server's process")
    host = host or Host.discover()
    places = {} if warehouse is None else {"fuse": warehouse}
    if repeated := sorted(places.keys() & (catalogs or {}).keys()):
        raise InputError(f"catalogs={repeated}: the warehouse {warehouse} has this name; give the other one another")
    named = []
    for name, place in {**places, **(catalogs or {})}.items():
        check_catalog_name(name)
        named.append(NamedWarehouse(name, open_catalog(place, options, host=host), options))
    named = named or [NamedWarehouse("fuse", None, options)]
    install_catalogs(spark, host, named)  # all is compiled now, and not by the first client
    hook = SessionHook(spark, host, named)
    hook.put()
    return hook
