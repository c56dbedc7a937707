"""Staged blocks are checked before they are committed: each says which partition it is, and its statistics agree.

It is the one gate that all rows of the base pass, whoever wrote them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_storage.errors import StorageError, TableUrl
from fuse_storage.metadata import metadata_table
from fuse_storage.metadata.segment import StagedSegment
from fuse_storage.metadata.segment_list import segment_files
from fuse_storage.partitions.spec import PartitionSpec
from fuse_storage.schema.schema import Field
from fuse_storage.statistics import decode_statistics, statistics_column_names
from fuse_storage.store.store import Store

_BLOCK_COLUMNS: metadata_table.ColumnGroup = ("id", "row_count", "partition")


def check_staged_partitions(store: Store, segment_rows: Sequence[pa.Table], spec: PartitionSpec) -> set[str]:
    """The partitions of staged segments, given by their rows of the list, by their texts.

    Raises StorageError for a block that says none, or of which statistics do not say that all its rows are of it.
    """
    found = set[str]()
    for row in segment_rows:
        (file,) = segment_files(row)
        groups = [tuple(statistics_column_names(field.id, field.type)) for field in spec.fields]
        blocks, *statistics = metadata_table.read_column_groups(store, file, [_BLOCK_COLUMNS, *groups])
        texts = blocks.column("partition").to_pylist() if "partition" in blocks.column_names else [None] * len(blocks)
        values = [None if text is None else spec.decode(text) for text in texts]
        mixed = np.array([value is None for value in values], np.bool_)
        for position, (field, units) in enumerate(zip(spec.fields, statistics, strict=True)):
            own = [None if value is None else value[position].as_py() for value in values]
            mixed |= ~_hold_one_value(units, field, pa.array(own, field.type), blocks.column("row_count"))
        if mixed.any():
            block_id = blocks.column("id")[int(mixed.argmax())].as_py()
            raise StorageError(
                f"block {block_id} is not of one partition by {', '.join(spec.names)}, and nothing was committed: "
                + "whoever wrote it does not keep to the partitions of "
                + TableUrl(store.url)
            )
        found.update(str(text) for text in texts)
    return found


def staged_partitions(store: Store, staged: Sequence[StagedSegment], spec: PartitionSpec) -> list[list[pa.Scalar]]:
    """The partitions of rows that are staged, each as its values. Raises as ``check_staged_partitions``."""
    found = check_staged_partitions(store, [segment.row for segment in staged], spec)
    return [spec.decode(text) for text in sorted(found)]


def _hold_one_value(
    units: pa.Table, field: Field, values: pa.Array, row_counts: pa.ChunkedArray
) -> npt.NDArray[np.bool_]:
    """Whether statistics say that all rows of a block hold this value: bool, shape (blocks,)."""
    statistics = decode_statistics(units, field.id, field.type)
    if statistics is None:
        return np.zeros(len(values), np.bool_)
    same = pc.and_(pc.equal(statistics.min, values), pc.equal(statistics.max, values))
    cut = pc.or_(statistics.min_cut, statistics.max_cut)
    is_value = pc.and_(pc.and_(pc.fill_null(same, False), pc.invert(cut)), pc.equal(statistics.null_count, 0))
    all_null = pc.and_(values.is_null(), pc.equal(statistics.null_count, row_counts.combine_chunks()))
    return np.asarray(pc.fill_null(pc.or_(is_value, all_null), False).to_numpy(zero_copy_only=False), np.bool_)
