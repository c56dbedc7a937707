"""The columns that a table is partitioned by, and the values of a partition as metadata holds them.

A partition is known by a text, a JSON list of one value for each column, in the form of defaults: two partitions are
the same if their texts are. Knows no blocks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as is_

from fuse_storage.bounds import is_text_or_binary
from fuse_storage.errors import Corrupt, InvalidArgument, SchemaError
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.parquet.writer import BlockLayout
from fuse_storage.primary_key.row_rules import row_rules
from fuse_storage.schema import types
from fuse_storage.schema.schema import Field, Schema
from fuse_storage.schema.variant import is_variant
from fuse_storage.statistics import ColumnStatistics, chunked_to_array
from fuse_storage.validation.features import PARTITIONS_FEATURE

PARTITION_PROPERTY = "partition_ids"
"""The property that holds the ids of the columns that a table is partitioned by."""
MAX_PARTITION_VALUE_BYTES = 256
"""Bytes of a text or binary value of a partition: its bounds are kept whole, and votes have room for so many."""

_Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """The columns that a table is partitioned by: at the top, of exact and plain types."""

    fields: tuple[Field, ...]

    @staticmethod
    def from_snapshot(snapshot: Snapshot, schema: Schema | None = None) -> PartitionSpec | None:
        """Take it from a snapshot; None if that is not partitioned. ``schema``: other columns that it is to have.

        Raises Corrupt for columns that are not there.
        """
        if PARTITIONS_FEATURE not in snapshot.writer_features:
            return None
        chosen, column_ids = schema or snapshot.schema, snapshot.properties.get(PARTITION_PROPERTY)
        known = {field.id: field for field in chosen.fields}
        is_known = isinstance(column_ids, list) and all(type(each) is int and each in known for each in column_ids)
        if not is_known or not column_ids:
            raise Corrupt(f"snapshot {snapshot.id} is partitioned by {column_ids!r}, which names what is no column")
        return PartitionSpec(tuple(known[column_id] for column_id in column_ids))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    def split(self, rows: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """Rows by partition, each with its text; rows of one keep their order. Raises SchemaError for a bad value."""
        if not rows.num_rows:
            return
        codes = self._codes(rows)
        if codes.min() == codes.max():
            yield self.encode(rows), rows
            return
        order = np.argsort(codes, kind="stable")
        for part in np.split(order, np.flatnonzero(np.diff(codes[order])) + 1):
            taken = rows.take(pa.array(part))  # a slice would keep all of the rows in memory
            yield self.encode(taken), taken

    def _codes(self, rows: pa.Table) -> _Codes:
        """A number for each row, alike where the rows are of one partition: int64, shape (rows,)."""
        codes = np.zeros(rows.num_rows, np.int64)
        for field in self.fields:
            values = chunked_to_array(rows.column(field.name)).dictionary_encode(null_encoding="encode")
            own = np.asarray(values.indices.to_numpy(zero_copy_only=False), np.int64)
            _, codes = np.unique(codes * len(values.dictionary) + own, return_inverse=True)
        return np.asarray(codes, np.int64).reshape(-1)

    def encode(self, rows: pa.Table) -> str:
        """The text of the partition that the first row is of. Raises SchemaError for a value that cannot be one."""
        values = [_encode_value(rows.column(field.name)[0], field) for field in self.fields]
        return json.dumps(values, ensure_ascii=False, separators=(",", ":"))

    def decode(self, text: str) -> list[pa.Scalar]:
        """The values of a partition, one for each column. Raises Corrupt for a text that no writer wrote."""
        try:
            values = json.loads(text)
            if isinstance(values, list) and len(values) == len(self.fields):
                return [
                    types.decode_constant(value, field.type) for value, field in zip(values, self.fields, strict=True)
                ]
        except (ValueError, TypeError, ArithmeticError, RecursionError, pa.ArrowException):
            pass
        raise Corrupt(f"{text[:100]!r} is no partition by {', '.join(self.names)}: the block is damaged")

    def with_whole_bounds(self, layout: BlockLayout, rows: pa.Table) -> BlockLayout:
        """The layout of a block with these rows, all of one partition, with bounds of its columns that are not cut."""
        whole = {field.id: rows.column(field.name)[0] for field in self.fields if is_text_or_binary(field.type)}

        def without_cuts(units: Mapping[int, ColumnStatistics]) -> dict[int, ColumnStatistics]:
            return {
                **units,
                **{column_id: _whole_bounds(units[column_id], value) for column_id, value in whole.items()},
            }

        zones, block = without_cuts(layout.zone_statistics), without_cuts(layout.block_statistics)
        return replace(layout, zone_statistics=zones, block_statistics=block) if whole else layout


def _whole_bounds(statistics: ColumnStatistics, value: pa.Scalar) -> ColumnStatistics:
    if not value.is_valid:
        return statistics
    bound, flags = pa.repeat(value, len(statistics)), pa.array(np.zeros(len(statistics), np.bool_))
    return replace(statistics, min=bound, max=bound, min_cut=flags, max_cut=flags)


def _encode_value(value: pa.Scalar, field: Field) -> Any:
    try:
        found = value.as_py()
    except (ValueError, OverflowError, pa.ArrowException) as problem:
        raise SchemaError(
            f"column {field.name!r} holds a value that is no partition: {problem}; the table is partitioned by it"
        ) from problem
    size = len(found.encode() if isinstance(found, str) else found) if isinstance(found, str | bytes) else 0
    if size > MAX_PARTITION_VALUE_BYTES:
        raise SchemaError(
            f"column {field.name!r} holds a value of {size} bytes, {found[:40]!r}…, and the table is partitioned by "
            f"it: a partition takes {MAX_PARTITION_VALUE_BYTES} at most; cluster by such a column instead"
        )
    return types.encode_default(found)


def partition_by(snapshot: Snapshot, names: Sequence[str]) -> Snapshot:
    """Give the first snapshot of a table that is to be partitioned by these columns. Raises SchemaError."""
    if not names:
        return snapshot
    for name in names:
        if name.endswith(")") and "(" in name:
            raise InvalidArgument(
                f"partition_by: {name!r} is no column: partition by columns as they are; cluster_by keeps days and "
                "months of a time together"
            )
    fields, rules = [snapshot.schema.find([name]) for name in names], row_rules(snapshot)
    for position, field in enumerate(fields):
        if is_.is_floating(field.type) or is_.is_nested(field.type) or is_variant(field.type):
            raise SchemaError(
                f"column {field.name!r} is {types.storage_type_name(field.type)}, and no table is partitioned by such: "
                f"choose whole numbers, decimals, text, days or times, or cluster by it"
            )
        if field in fields[:position]:
            raise SchemaError(f"a table cannot be partitioned by {field.name!r} twice: name it once")
        rules.check_partition_column(field)
    return replace(
        snapshot,
        properties={**snapshot.properties, PARTITION_PROPERTY: [field.id for field in fields]},
        writer_features=tuple(sorted({*snapshot.writer_features, PARTITIONS_FEATURE})),
    )


def check_partition_values(snapshot: Snapshot, rows: pa.Table) -> None:
    """Raise SchemaError for rows, in columns of the snapshot, that could not be tiered: a value is no partition's."""
    if (spec := PartitionSpec.from_snapshot(snapshot)) is not None:
        for field in spec.fields:
            for value in rows.column(field.name).unique():
                _encode_value(value, field)


def check_partition_columns(before: Snapshot, after: Snapshot) -> None:
    """Raise SchemaError where a change of columns drops one that the table is partitioned by, or gives it a type."""
    spec = PartitionSpec.from_snapshot(before)
    for field in () if spec is None or before.schema_id == after.schema_id else spec.fields:
        kept = next((each for each in after.schema.fields if each.id == field.id), None)
        if kept is None or kept.type != field.type:
            what = "dropped" if kept is None else f"made {types.storage_type_name(kept.type)}"
            raise SchemaError(
                f"column {field.name!r} cannot be {what}: the table is partitioned by it, and stays so; "
                f"it can be renamed"
            )
