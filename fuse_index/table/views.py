"""Views of a table's metadata, by name: the same names in Python, in Spark and on the command line.

In: the name of a view and a table. Out: an Arrow table of one row per commit, segment, block, partition, column,
index or ref.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict

import pyarrow as pa

from fuse_index.clustering.report import CLUSTERING_SCHEMA
from fuse_index.table.table import Table
from fuse_index.table.tier import TAIL_VIEW_SCHEMA


def _clustering_table(table: Table) -> pa.Table:
    return table.inspect.clustering().to_arrow() if table.snapshot.cluster_ids else CLUSTERING_SCHEMA.empty_table()


METADATA_VIEWS: Mapping[str, Callable[[Table], pa.Table]] = {
    "snapshots": lambda table: table.inspect.snapshots(),
    "segments": lambda table: table.inspect.segments(),
    "blocks": lambda table: table.inspect.blocks(),
    "partitions": lambda table: table.inspect.partitions(),
    "columns": lambda table: table.inspect.columns(),
    "statistics": lambda table: table.inspect.statistics(),
    "indexes": lambda table: table.inspect.indexes(),
    "clustering": _clustering_table,
    "refs": lambda table: table.inspect.refs(),
    "due": lambda table: table.inspect.due(),
    "maintenance": lambda table: table.inspect.maintenance(),
    "plans": lambda table: table.inspect.plans(),
    "tail": lambda table: pa.Table.from_pylist([asdict(table.tail)], TAIL_VIEW_SCHEMA),
}
"""All views of a table's metadata, by name."""
