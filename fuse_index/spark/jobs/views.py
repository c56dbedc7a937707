"""The metadata of a table as temporary views: the same words as in Python and on the command line."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from datetime import datetime

import pyarrow as pa
from pyspark.sql import SparkSession

from fuse_index.errors import InputError
from fuse_index.spark.placement import run_where_reachable
from fuse_index.spark.schemas import to_spark_schema
from fuse_index.table.open import open_table
from fuse_index.table.views import METADATA_VIEWS


def introspect(
    spark: SparkSession,
    url: str,
    prefix: str,
    views: Sequence[str] | None = None,
    branch: str = "main",
    at: str | datetime | None = None,
    *,
    options: Mapping[str, str] | None = None,
) -> list[str]:
    """Make temporary views ``<prefix>_snapshots``, ``<prefix>_blocks`` and so on, as ``table.inspect`` has them.

    They hold what there is to see of the table now, or ``at`` an older state, and stay so: call this again to see what
    came since.

    Args:
        spark: A session, classic or Connect.
        url: Where the table is.
        prefix: A word that the names of the views begin with.
        views: Which of them; by default all. ``statistics`` has a row for each column of each block.
        branch: Which branch.
        at: A snapshot id, a tag or a time.
        options: Of the object store.

    Returns:
        The names of the views.

    Raises:
        InputError: There is no such view, or the prefix is no word.
        StorageError: The store fails.

    Example:
        fuse_spark.introspect(spark, "/data/orders", "orders")
        spark.table("orders_blocks").show()
    """
    view_names = list(METADATA_VIEWS) if views is None else list(views)
    for name in view_names:
        if name not in METADATA_VIEWS:
            near = difflib.get_close_matches(name, METADATA_VIEWS, 1)
            raise InputError(
                f"there is no view {name!r}: "
                f"{f'did you mean {near[0]!r}?' if near else 'there are ' + ', '.join(METADATA_VIEWS)}"
            )
    if not prefix.isidentifier():
        raise InputError(
            f"prefix={prefix!r}: give a word of letters, digits and underscores, which names of views can begin with"
        )

    def list_views() -> list[pa.Table]:
        table = open_table(url, branch=branch, at=at, options=options)
        return [METADATA_VIEWS[name](table) for name in view_names]

    for name, rows in zip(view_names, run_where_reachable(spark, list_views), strict=True):
        whole = rows.combine_chunks()  # PySpark loses rows that come after batches without any
        spark.createDataFrame(whole, to_spark_schema(rows.schema)).createOrReplaceTempView(f"{prefix}_{name}")
    return [f"{prefix}_{name}" for name in view_names]
