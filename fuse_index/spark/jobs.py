"""Whole jobs: a clustered write, and indexes built by all executors. They run on classic sessions and on Connect.

Nothing here knows how a block or an index is made: tasks call what a local build calls.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from pyspark.sql.functions import col

from fuse_index.spark.near import near_table
from fuse_index.spark.options import STORE, WRITING, Place, place
from fuse_storage import NotFound

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

BLOCK_ROWS = 1_000_000
FILL = 0.85
"""Of a block, so much is planned for: ranges are sampled, and one that came out larger would leave a crumb of a block."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a table wants its rows: paths of the columns to sort by, and rows to a block."""

    cluster_by: tuple[tuple[str, ...], ...] = ()
    block_rows: int = BLOCK_ROWS


def write(df: DataFrame, url: str, mode: str = "append", *, branch: str = "main", rows: int | None = None, **store: str) -> None:
    """Write like ``df.write.format("fuse").mode(mode).save(url)``, with rows kept together and blocks filled.

    With a cluster key, rows are partitioned by ranges of it and sorted within; without one, partitions are only merged
    until they fill blocks. ``rows`` spares counting them first. ``store`` are options of the object store. Raises as
    ``save`` does; ``install`` must have been called for this session.
    """
    options = {f"{STORE}{key}": value for key, value in store.items()} | ({"branch": branch} if branch != "main" else {})
    layout = near_table(df.sparkSession, partial(layout_of, place({"path": url, **options}, WRITING)))
    count = df.count() if rows is None else rows
    arranged = _arranged(df, layout, count)
    arranged.write.format("fuse").mode(mode).options(**options).save(url)


def layout_of(place: Place) -> Layout:
    """What the table says; a default where there is none yet. Raises StorageError."""
    try:
        snapshot = place.open().snapshot
    except NotFound:
        return Layout()
    paths = {".".join(path): path for path, _ in snapshot.schema.leaves()}
    return Layout(tuple(paths[name] for name in snapshot.cluster_by), int(snapshot.properties.get("block_rows", BLOCK_ROWS)))


def _arranged(df: DataFrame, layout: Layout, rows: int) -> DataFrame:
    if not layout.cluster_by:
        return df.coalesce(max(1, math.ceil(rows / layout.block_rows)))
    keys = [_column(path) for path in layout.cluster_by]
    return df.repartitionByRange(max(1, math.ceil(rows / (FILL * layout.block_rows))), *keys).sortWithinPartitions(*keys)


def _column(path: tuple[str, ...]) -> Column:
    return col(".".join("`" + name.replace("`", "``") + "`" for name in path))
