"""Lines in Spark's log for the statements of clients, where an operator asks for them."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from fuse_index.spark.native.java_compiler import java_class

_LOGGER = "fuse_index.statements"
"""The logger of ``SessionHook.java``, which says nothing unless its level is INFO."""


def log_statements(spark: SparkSession) -> None:
    """Have the JVM of a classic session log each text of SQL that a client's session parses, with the session's id."""
    jvm: Any = spark.sparkContext._jvm
    level = java_class(jvm, "org.apache.logging.log4j.Level").INFO
    java_class(jvm, "org.apache.logging.log4j.core.config.Configurator").setLevel(_LOGGER, level)
