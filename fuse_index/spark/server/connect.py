"""Spark's own Connect server, which is in PySpark's package, started in the JVM of a classic session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from py4j.java_gateway import JavaPackage
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from fuse_index.errors import InputError
from fuse_index.spark.native.java_compiler import java_class
from fuse_index.spark.server.address import Address, Certificate, Endpoints

_ROOM = "org.apache.spark.sql.connect.service"
_SERVICE = f"{_ROOM}.SparkConnectService"
_KEEP_ALIVE_SECONDS = 10
"""Clients that ask so often whether the server is there are not taken for strangers."""


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

    def __init__(self, spark: SparkSession, address: Address, endpoints: Endpoints) -> None:
        jvm: Any = spark.sparkContext._jvm
        self._jvm, self._service = jvm, server_object(jvm, _SERVICE, "spark-connect")
        if self._service.started() and not self._service.stopped():
            raise InputError("a Connect server runs in this process already: stop it first")
        context, token, certificate = spark.sparkContext._jsc.sc(), endpoints.token, endpoints.certificate
        plain = address if certificate is None else Address("127.0.0.1", 0)
        settings = {
            "grpc.binding.address": plain.host,
            "grpc.binding.port": plain.port,
            "authenticate.token": token,
        }
        for name, value in settings.items():  # where the server reads them, whenever it starts
            if value is not None:
                context.conf().set(f"spark.connect.{name}", str(value))
        try:
            self._service.start(context)
            if certificate is not None:
                self._encrypt(context.conf(), address, token, certificate)
        except Py4JJavaError as failure:
            if self._service.started() and not self._service.stopped():
                self.stop(0)
            raise InputError(
                f"Spark's Connect server did not start: {failure.java_exception.getMessage()}"
            ) from failure
        self.address = Address(address.host, int(self._service.server().getPort()))
        if certificate is not None:
            self.url = f"{self.address.url('sc')}/;use_ssl=true"
        else:  # PySpark sends a token without TLS to no other name than this.
            self.url = self.address.replace_host("localhost").url("sc") if token else self.address.url("sc")

    def _encrypt(self, settings: Any, address: Address, token: str | None, certificate: Certificate) -> None:
        """Put a server with TLS in the place of Spark's own, which has none: of the same service and interceptors."""
        jvm, file = self._jvm, java_class(self._jvm, "java.io.File")
        place = java_class(jvm, "java.net.InetSocketAddress")(address.host, address.port)
        builder = java_class(jvm, "org.sparkproject.connect.grpc.netty.NettyServerBuilder").forAddress(place)
        chain, private_key = (str(Path(each).absolute()) for each in (certificate.chain, certificate.private_key))
        builder.useTransportSecurity(file(chain), file(private_key))
        entries = server_object(jvm, "org.apache.spark.sql.connect.config.Connect", "spark-connect")
        builder.maxInboundMessageSize(int(settings.get(entries.CONNECT_GRPC_MAX_INBOUND_MESSAGE_SIZE())))
        builder.permitKeepAliveTime(_KEEP_ALIVE_SECONDS, java_class(jvm, "java.util.concurrent.TimeUnit").SECONDS)
        builder.permitKeepAliveWithoutCalls(True)
        builder.addService(java_class(jvm, _SERVICE)(False))
        if token is not None:
            builder.intercept(java_class(jvm, f"{_ROOM}.PreSharedKeyAuthenticationInterceptor")(token))
        registry = server_object(jvm, f"{_ROOM}.SparkConnectInterceptorRegistry", "spark-connect")
        registry.chainInterceptors(builder, registry.createConfiguredInterceptors())
        server = builder.build()
        self._service.server().shutdownNow()
        getattr(self._service, "server_$eq")(server.start())

    def stop(self, seconds: int) -> None:
        """Take no more statements, wait so long for those that run, and end."""
        server = self._service.server()
        server.shutdown()
        server.awaitTermination(seconds, java_class(self._jvm, "java.util.concurrent.TimeUnit").SECONDS)
        none = java_class(self._jvm, "scala.Option").empty()
        self._service.stop(none, none)
