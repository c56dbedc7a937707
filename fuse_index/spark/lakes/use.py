"""Have queries of a source ask the indexes of a table that is attached to it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import SparkSession

from fuse_index.errors import InputError
from fuse_index.spark.native.java_compiler import jvm_bridge
from fuse_index.spark.placement import is_connect
from fuse_index.spark.session import register_session
from fuse_index.table.arguments import check_arguments
from fuse_storage import StoredTable


@check_arguments
def use(spark: SparkSession, url: str | Path, *, options: Mapping[str, str] | None = None) -> None:
    """Have queries of a source, by its own name and connector, ask the indexes of a table that is attached to it.

    A query of the Parquet folder, Delta or Iceberg table leaves out files on which votes say that no row can match; it
    stays as it is, and so do its rows. Files that the table does not know are read as ever.

    Args:
        spark: A classic session.
        url: Where the attached table is.
        options: Of the object store for us.

    Raises:
        InvalidArgument: The table was attached to nothing.
        InputError: A session of Spark Connect.
        NotFound: There is no table.
        StorageError: The store fails.

    Example:
        fuse_index.attach("/lake/events", "/data/events-index").create_index("by_user", "bloom", ["user_id"])
        fuse_spark.use(spark, "/data/events-index")
        spark.read.parquet("/lake/events").where("user_id = 'u7'").show()
    """
    if is_connect(spark):
        raise InputError("a Spark Connect session has no JVM here that could ask indexes: do so where its server runs")
    table = StoredTable.open(str(url), options=options)
    register_session(spark).source_indexes.use(table, dict(options or {}))
    renew(spark)


def renew(spark: SparkSession) -> None:
    """Have the next query of each source ask which table votes on its files."""
    jvm_bridge(spark).renewSourceIndexes(spark._jsparkSession, register_session(spark).key)
