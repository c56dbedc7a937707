"""Spark's own Thrift server, which speaks the protocol of HiveServer2 to JDBC drivers."""

from __future__ import annotations

import secrets
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from fuse_index.errors import InputError
from fuse_index.spark.native.java_compiler import java_class, jvm_bridge, load_named_class
from fuse_index.spark.server.address import Address, Certificate, Endpoints
from fuse_index.spark.server.connect import server_object

_SERVICE = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
_PASSWORD_CHECK = "hive.server2.custom.authentication.class"
"""Hive looks for it among the JVM's properties, and not where it has all other settings of its server."""


class ThriftServer:
    """The Thrift server of a JVM, from its start to its end. Raises InputError where it cannot be started."""

    def __init__(self, spark: SparkSession, address: Address, endpoints: Endpoints) -> None:
        service = server_object(spark.sparkContext._jvm, _SERVICE, "spark-hive-thriftserver")
        configuration: Any = spark.sparkContext._jsc.hadoopConfiguration()
        settings = {"thrift.bind.host": address.host, "thrift.port": str(address.port)}
        with TemporaryDirectory() as folder:
            if endpoints.certificate is not None:
                settings |= _key_store(spark, endpoints.certificate, Path(folder, "server.p12"))
            if endpoints.token is not None and configuration.get("hive.server2.authentication", "NONE") == "NONE":
                settings |= _token_as_password(spark, endpoints.token)
            for name, value in settings.items():
                configuration.set(f"hive.server2.{name}", value)
            try:
                self._server: Any = service.startWithSparkSession(spark._jsparkSession, False)
            except Py4JJavaError as failure:
                raise InputError(
                    f"Spark's Thrift server did not start: {failure.java_exception.getMessage()}"
                ) from failure
            finally:
                for name in settings:  # or another server of this process would have them
                    configuration.unset(f"hive.server2.{name}")
        self.address = address
        self.url = f"jdbc:{address.url('hive2')}" + ("" if endpoints.certificate is None else "/;ssl=true")

    def stop(self) -> None:
        self._server.stop()


def _key_store(spark: SparkSession, certificate: Certificate, file: Path) -> dict[str, str]:
    """Settings of a server that has this certificate, once it has read the file."""
    password = secrets.token_urlsafe()
    chain, private_key = Path(certificate.chain).absolute(), Path(certificate.private_key).absolute()
    try:
        jvm_bridge(spark).keyStore(str(chain), str(private_key), str(file), password)
    except Py4JJavaError as refusal:
        raise InputError(f"JDBC cannot have this certificate: {refusal.java_exception.getMessage()}") from refusal
    return {"use.SSL": "true", "keystore.path": str(file), "keystore.password": password}


def _token_as_password(spark: SparkSession, token: str) -> dict[str, str]:
    """Settings of a server that takes the token for a password, whatever the user's name."""
    jvm: Any = spark.sparkContext._jvm
    name = load_named_class(jvm, "TokenAsPassword")
    if name is None:
        raise InputError(
            "JDBC can ask for no token here, as Spark's class loader takes no classes: leave jdbc out, or the token"
        )
    java_class(jvm, name).expect(token)
    java_class(jvm, "java.lang.System").setProperty(_PASSWORD_CHECK, name)
    return {"authentication": "CUSTOM"}
