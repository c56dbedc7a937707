"""Nested values, taken apart into those within and made of them again; and VARIANTs, wherever they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_storage.schema.nested import child_fields, nested_type_like
from fuse_storage.schema.types import is_list_type
from fuse_storage.schema.variant import is_variant


def child_arrays(values: pa.Array) -> list[pa.Array]:
    """The arrays right below a nested one, those of a struct or of its elements, keys and values."""
    if is_variant(values.type):
        values = values.storage
    if is_.is_struct(values.type):
        return list(values.flatten())
    if is_.is_map(values.type):
        # keys and items of a slice are those of the whole, so they are cut by the slice's offsets
        return [_elements(pa.ListArray.from_arrays(values.offsets, part)) for part in (values.keys, values.items)]
    return [_elements(values)]


def _elements(lists: pa.Array) -> pa.Array:
    """All elements of lists. Of lists that are all NULL Arrow has none where a VARIANT is in them."""
    return pa.nulls(0, lists.type.value_type) if lists.null_count == len(lists) else lists.flatten()


def of_child_arrays(
    values: pa.Array, parts: Sequence[pa.Array], data_type: pa.DataType, nullable: bool = True
) -> pa.Array:
    """A nested array like ``values``, of this type, with other arrays in the place of what ``child_arrays`` gave.

    ``nullable``: whether it is NULL where ``values`` are.
    """
    mask = values.is_null() if nullable and values.null_count else None
    if is_.is_struct(data_type):
        return pa.StructArray.from_arrays(list(parts), fields=list(data_type), mask=mask)
    if is_.is_map(data_type):
        return pa.MapArray.from_arrays(_offsets(values), *parts, data_type, mask=mask)
    return pa.ListArray.from_arrays(_offsets(values), parts[0], data_type, mask=mask)


def _offsets(values: pa.Array) -> pa.Array:
    """Where what each list or map has within begins among what ``child_arrays`` gives: int32, of length rows + 1."""
    if is_.is_map(values.type):
        lengths = np.diff(np.asarray(values.offsets))
    else:
        lengths = np.asarray(pc.fill_null(pc.list_value_length(values), 0))
    return pa.array(np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]), pa.int32())


def repeat_scalar(value: pa.Scalar, count: int) -> pa.Array:
    """An array of one value; Arrow repeats none of a struct or list that has a VARIANT in it, not even NULL."""
    return pa.repeat(value, count) if value.is_valid else pa.nulls(count, value.type)


def empty_table(schema: pa.Schema) -> pa.Table:
    """A table without a row; Arrow's own method makes none where a column has a VARIANT in it."""
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


class _Column(Protocol):
    """A column of a table, or of a source."""

    @property
    def type(self) -> pa.DataType: ...

    @property
    def physical_name(self) -> str: ...

    @property
    def children(self) -> Sequence[_Column]: ...


def file_type(column: _Column) -> pa.DataType:
    """The type of a column with the names of files throughout, in which VARIANT is itself."""
    if is_variant(column.type):
        return column.type
    return nested_type_like(column.type, [pa.field(child.physical_name, file_type(child)) for child in column.children])


def holds_variant(data_type: pa.DataType) -> bool:
    """Whether a type is VARIANT, or has one in it at any depth."""
    if not data_type.num_fields:  # as most columns: to ask what lists they are takes ten times as long
        return is_variant(data_type)
    return is_variant(data_type) or any(holds_variant(part.type) for part in child_fields(data_type))


def type_without_variants(data_type: pa.DataType, instead: pa.DataType) -> pa.DataType:
    """The type with another one in the place of each VARIANT, at any depth."""
    if is_variant(data_type):
        return instead
    if not holds_variant(data_type):
        return data_type
    parts = [part.with_type(type_without_variants(part.type, instead)) for part in child_fields(data_type)]
    return nested_type_like(data_type, parts)


def map_variants(
    values: pa.Array, wanted: pa.DataType, make: Callable[[pa.Array, str], pa.Array], where: str
) -> pa.Array:
    """The values with what ``make`` makes of those parts, at any depth, that are VARIANT in the type ``wanted``.

    Where values are nested otherwise than that, they stay as they are. ``make`` is told the path of each, which begins
    with ``where``.

    >>> rows = pa.array([{"v": "1"}, None])
    >>> map_variants(rows, pa.struct([("v", pa.string())]), lambda texts, path: texts, "s") is rows
    True
    """
    if is_variant(wanted):
        return make(values, where)
    if not holds_variant(wanted) or not _is_nested_alike(values.type, wanted):
        return values
    found, known = child_fields(values.type), child_fields(wanted)
    if is_.is_struct(wanted):
        by_name = {part.name: part for part in known}
        known = [by_name.get(part.name, part) for part in found]
    parts = [
        map_variants(part, field.type, make, f"{where}.{field.name}")
        for field, part in zip(known, child_arrays(values), strict=True)
    ]
    fields = [field.with_type(part.type) for field, part in zip(found, parts, strict=True)]
    return of_child_arrays(values, parts, nested_type_like(values.type, fields))


def _is_nested_alike(one: pa.DataType, other: pa.DataType) -> bool:
    return any(test(one) and test(other) for test in (is_.is_struct, is_.is_map, is_list_type))
