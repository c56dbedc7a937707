"""What a scan offers after a dot, and what is said for the names that results have in other libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fuse_storage import Shown, missing_names

_ROWS = "a scan is read by to_arrow(), to_pandas(), to_polars(), to_duckdb() or to_batches()"
_ASKED = "conditions, columns and a limit are given to table.scan(where, columns, limit)"


class ScanNames(Shown):
    """The names of a scan."""

    _offered = (
        "columns count explanation limit schema to_arrow to_batches to_dataset to_duckdb to_lazy_frame to_pandas "
        "to_polars to_reader"
    )
    if not TYPE_CHECKING:  # so that mypy knows what is not there
        __getattr__ = missing_names(
            dict.fromkeys(("collect", "show", "toPandas", "fetchall", "rows", "head", "to_list", "to_pylist"), _ROWS)
            | dict.fromkeys(("filter", "where", "select", "order_by", "sort"), _ASKED)
            | {"to_spark": "Spark reads tables by name, or by spark.read.format('fuse').load(path)"}
        )
