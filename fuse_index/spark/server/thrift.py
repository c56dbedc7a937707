"""Spark's own Thrift server, which speaks the protocol of HiveServer2 to JDBC drivers."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from fuse_index.errors import InputError
from fuse_index.spark.server.address import Address
from fuse_index.spark.server.connect import server_object

_SERVICE = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


class ThriftServer:
    """The Thrift server of a JVM, from its start to its end. Raises InputError where it cannot be started."""

    def __init__(self, spark: SparkSession, address: Address) -> None:
        service = server_object(spark.sparkContext._jvm, _SERVICE, "spark-hive-thriftserver")
        settings: Any = spark.sparkContext._jsc.hadoopConfiguration()
        settings.set("hive.server2.thrift.bind.host", address.host)
        settings.set("hive.server2.thrift.port", str(address.port))
        try:
            self._server: Any = service.startWithSparkSession(spark._jsparkSession, False)
        except Py4JJavaError as failure:
            raise InputError(f"Spark's Thrift server did not start: {failure.java_exception.getMessage()}") from failure
        self.address = address
        self.url = f"jdbc:{address.url('hive2')}"

    def stop(self) -> None:
        self._server.stop()
