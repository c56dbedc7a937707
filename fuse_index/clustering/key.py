"""Rows in the order of a clustering key: by its columns in turn, or along a curve through all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.clustering.curves import CURVES
from fuse_index.clustering.overlaps import RankArray
from fuse_storage import Field, Snapshot, cluster_column_ids, column_values


@dataclass(frozen=True, slots=True)
class ClusterKey:
    """The leaf columns that rows are kept together by, and the method: ``linear``, ``zorder`` or ``hilbert``."""

    paths: tuple[tuple[str, ...], ...]
    fields: tuple[Field, ...]
    method: str = "linear"

    @staticmethod
    def from_snapshot(snapshot: Snapshot) -> ClusterKey | None:
        """Take the clustering key of a snapshot; None if it has none."""
        return _cluster_key(snapshot, snapshot.cluster_ids, snapshot.cluster_method) if snapshot.cluster_ids else None

    @staticmethod
    def from_names(snapshot: Snapshot, names: Sequence[str], method: str) -> ClusterKey:
        """Make a key that a table might have, of names of columns. Raises SchemaError, InvalidArgument."""
        return _cluster_key(snapshot, cluster_column_ids(snapshot.schema, names, method), method)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(".".join(path) for path in self.paths)


def _cluster_key(snapshot: Snapshot, column_ids: Sequence[int], method: str) -> ClusterKey:
    leaves = {field.id: (path, field) for path, field in snapshot.schema.leaves()}
    chosen = [leaves[column_id] for column_id in column_ids]
    return ClusterKey(tuple(path for path, _ in chosen), tuple(field for _, field in chosen), method)


def sort_order(rows: pa.Table, key: ClusterKey) -> RankArray:
    """Sort rows by a key: int64 indices of rows, shape (rows,), in the order of the key. The sort is stable."""
    ranks = [value_ranks(column_values(rows, path)) for path in key.paths]
    if key.method == "linear" or len(ranks) < 2:
        return np.lexsort(ranks[::-1])
    return np.argsort(CURVES[key.method](ranks), kind="stable")


def value_ranks(values: pa.Array) -> RankArray:
    """Rank values among all different ones: NULL is 0, NaN the greatest, -0.0 is 0.0, text goes by bytes.

    Returns int64, shape (values,).
    """
    ranks = np.asarray(pc.rank(values, tiebreaker="dense"), np.int64)
    return np.where(np.asarray(values.is_valid(), np.bool_), ranks, 0)
