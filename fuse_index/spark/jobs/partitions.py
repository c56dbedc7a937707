"""Partitions as a condition, by which those that rows come for are replaced."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from fuse_index.predicate import And, Column, Compare, IsNull, Literal, Or, Predicate
from fuse_storage import PartitionSpec


def partition_condition(spec: PartitionSpec, partitions: Sequence[Sequence[pa.Scalar]]) -> Predicate:
    """The condition that is true on the rows of these partitions, at least one, and on no others."""
    columns = [Column((field.name,), field.type) for field in spec.fields]

    def is_value(column: Column, value: pa.Scalar) -> Predicate:
        return Compare("=", column, Literal(value.as_py(), column.type)) if value.is_valid else IsNull(column)

    terms = [
        And(tuple(is_value(column, value) for column, value in zip(columns, values, strict=True)))
        if len(columns) > 1
        else is_value(columns[0], values[0])
        for values in partitions
    ]
    return Or(tuple(terms)) if len(terms) > 1 else terms[0]
