"""Spark's own Connect server, which is in PySpark's package, started in the JVM of a classic session."""

from __future__ import annotations

from typing import Any

from py4j.java_gateway import JavaPackage
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from fuse_index.errors import InputError
from fuse_index.spark.native.java_compiler import java_class
from fuse_index.spark.server.address import Address

_SERVICE = "org.apache.spark.sql.connect.service.SparkConnectService"


def server_object(jvm: Any, name: str, jar: str) -> Any:
    """The object of Scala that is a server. Raises InputError where this Spark lacks its jar."""
    found = java_class(jvm, f"{name}$")
    if isinstance(found, JavaPackage):
        raise InputError(
            f"this Spark has no {jar} among its jars: take the PySpark package as it is published, or add the jar of "
            f"its version to spark.jars"
        )
    return getattr(found, "MODULE$")


class ConnectServer:
    """The one Connect server of a JVM, from its start to its end. Raises InputError where it cannot be started."""

    def __init__(self, spark: SparkSession, address: Address, token: str | None) -> None:
        jvm: Any = spark.sparkContext._jvm
        self._jvm, self._service = jvm, server_object(jvm, _SERVICE, "spark-connect")
        if self._service.started() and not self._service.stopped():
            raise InputError("a Connect server runs in this process already: stop it first")
        context = spark.sparkContext._jsc.sc()
        settings = {
            "grpc.binding.address": address.host,
            "grpc.binding.port": address.port,
            "authenticate.token": token,
        }
        for name, value in settings.items():  # where the server reads them, whenever it starts
            if value is not None:
                context.conf().set(f"spark.connect.{name}", str(value))
        try:
            self._service.start(context)
        except Py4JJavaError as failure:
            raise InputError(
                f"Spark's Connect server did not start: {failure.java_exception.getMessage()}"
            ) from failure
        self.address = Address(address.host, int(self._service.localPort()))
        # PySpark sends a token without TLS to no other name than this.
        self.url = self.address.replace_host("localhost").url("sc") if token else self.address.url("sc")

    def stop(self, seconds: int) -> None:
        """Take no more statements, wait so long for those that run, and end."""
        server = self._service.server()
        server.shutdown()
        server.awaitTermination(seconds, java_class(self._jvm, "java.util.concurrent.TimeUnit").SECONDS)
        none = java_class(self._jvm, "scala.Option").empty()
        self._service.stop(none, none)
