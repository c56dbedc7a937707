"""Servers for clients that never installed us: ``serve`` starts them, a ``Server`` tells how they are and ends them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from fuse_index.errors import InputError
from fuse_index.indexes.registry import Host
from fuse_index.spark.native.request_server import pending_requests
from fuse_index.spark.server.address import Address, Endpoints
from fuse_index.spark.server.connect import ConnectServer
from fuse_index.spark.server.session_hook import SessionHook, install_in_new_sessions
from fuse_index.spark.server.thrift import ThriftServer
from fuse_index.table.arguments import check_arguments

_STOP_SECONDS = 30


class Server:
    """Running servers of one session.

    ``connect`` and ``jdbc`` are the URLs for clients, None for what is not served.
    """

    def __init__(
        self, spark: SparkSession, hook: SessionHook, connect: ConnectServer | None, thrift: ThriftServer | None
    ) -> None:
        self._spark, self._hook, self._connect, self._thrift = spark, hook, connect, thrift
        self.connect = connect and connect.url
        self.jdbc = thrift and thrift.url

    def __enter__(self) -> Server:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def check(self) -> dict[str, Any]:
        """How the servers are: numbers of sessions and of requests that are being answered.

        Returns:
            ``sessions`` and ``requests``.

        Raises:
            InputError: Spark's JVM is gone, or does not answer.
        """
        try:
            self._hook.forget_ended()
        except (Py4JError, OSError) as gone:
            raise InputError("Spark's JVM is gone: start the server again") from gone
        return {"sessions": len(self._hook.sessions), "requests": pending_requests(self._spark)}

    @check_arguments
    def stop(self, seconds: int = _STOP_SECONDS) -> None:
        """Take no more statements, wait for those that run and for their commits, and end; the session stays.

        Args:
            seconds: How long to wait. A commit that is not done by then is done or not, and never in part.
        """
        deadline = time.monotonic() + seconds
        if self._connect is not None:
            self._connect.stop(seconds)
        while pending_requests(self._spark) and time.monotonic() < deadline:
            time.sleep(0.05)
        if self._thrift is not None:
            self._thrift.stop()


@check_arguments
def serve(
    spark: SparkSession,
    warehouse: str | Path | None = None,
    endpoints: Endpoints | None = None,
    *,
    catalogs: Mapping[str, str] | None = None,
    options: Mapping[str, str] | None = None,
    host: Host | None = None,
) -> Server:
    """Serve our catalogues to clients of Spark Connect and of JDBC, which need nothing of ours.

    Args:
        spark: A classic session; clients get sessions of their own, with its settings and its rights.
        warehouse: A path or URL of a warehouse, whose catalogue is ``fuse``; without one, tables are named by their
            places.
        endpoints: Ports, address, token and certificate; by default Spark Connect at port 15002 of this machine alone.
        catalogs: Warehouses by the names of their catalogues.
        options: Of the object store.
        host: The index kinds and functions to use; by default those that are installed.

    Returns:
        The running servers; ``stop`` ends them.

    Raises:
        InputError: A port that is taken, a Spark without these servers, a certificate without its key, or an address
            that would let strangers in.
        NotFound: There is no warehouse.
        StorageError: The store fails.

    Example:
        with fuse_spark.serve(spark, "/data/warehouse", Endpoints(jdbc=10000)) as server:
            print(server.connect, server.jdbc)
    """
    wanted = endpoints or Endpoints()
    wanted.check_reach()
    wanted.check_free()
    hook = install_in_new_sessions(spark, warehouse, catalogs=catalogs, options=options, host=host)
    thrift = None if wanted.jdbc is None else ThriftServer(spark, Address(wanted.address, wanted.jdbc), wanted)
    try:
        connect = None
        if wanted.connect is not None:
            connect = ConnectServer(spark, Address(wanted.address, wanted.connect), wanted)
    except InputError:
        if thrift is not None:
            thrift.stop()
        raise
    return Server(spark, hook, connect, thrift)
