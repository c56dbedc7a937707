"""A Spark session for the commands that can run as Spark jobs: begun for one of them, and ended with it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fuse_index.errors import FuseIndexError


class SparkNotInstalled(FuseIndexError):
    """A command was to run in Spark, which is not installed."""


@contextmanager
def open_spark_session(master: str) -> Iterator[tuple[Any, Any]]:
    """``fuse_index.spark``, and a session there. Raises FuseIndexErrors for a Spark that cannot be had."""
    if importlib.util.find_spec("pyspark") is None:
        raise SparkNotInstalled("--spark needs PySpark: pip install 'pyspark>=4.0.1' 'pandas<3'")
    from fuse_index import spark
    from fuse_index.spark.session import start_session

    running = start_session(master)
    try:
        yield spark, running
    finally:
        running.stop()
