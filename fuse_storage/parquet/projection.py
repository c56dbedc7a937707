"""Columns as a file has them, fitted to the present schema: renamed, widened, what is missing filled with defaults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_storage.bitmaps import pack_mask
from fuse_storage.parquet.pages import RowMask
from fuse_storage.schema import types
from fuse_storage.schema.conform import rename_array_fields
from fuse_storage.schema.nested_arrays import repeat_scalar
from fuse_storage.schema.schema import Field
from fuse_storage.schema.variant import is_variant, to_variants

_MIN_ROWS_PER_SLICE = 2048
"""Rows below which a column is copied: to copy so many values takes as long as to make a slice of it."""


def project_column(stored_values: pa.ChunkedArray | None, field: Field, row_count: int) -> pa.ChunkedArray:
    """The field's values, fitted to its present name and type; the initial default where the file has none."""
    if stored_values is None:
        return pa.chunked_array([repeat_scalar(field.initial_scalar, row_count)], field.type)
    return pa.chunked_array([_fit_array(chunk, field) for chunk in stored_values.chunks], field.type)


def repeat_constant(value: Any, field: Field, row_count: int) -> pa.ChunkedArray:
    """A column every row of which holds ``value``, in the form in which JSON has defaults."""
    return pa.chunked_array([repeat_scalar(types.decode_constant(value, field.type), row_count)], field.type)


def _fit_array(values: pa.Array, field: Field) -> pa.Array:
    """Values of a file's type as values of the field's type.

    Parts are found by physical name; those that the file lacks are NULL, narrower ones are widened.
    """
    if field.is_leaf:
        return values if values.type == field.type else pc.cast(values, field.type)
    if values.type == field.parquet_field.type:
        return rename_array_fields(values, field.type)
    if is_variant(field.type):
        return to_variants(values, field.name)
    if not is_.is_struct(field.type):
        return _fit_list_or_map(values, field)
    parts = [_fit_child(values, child) for child in field.children]
    fields = [child.arrow.with_nullable(True) for child in field.children]
    mask = pc.is_null(values) if values.null_count else None
    return rename_array_fields(pa.StructArray.from_arrays(parts, fields=fields, mask=mask), field.type)


def _fit_child(values: pa.StructArray, child: Field) -> pa.Array:
    index = values.type.get_field_index(child.physical_name)
    return pa.nulls(len(values), child.type) if index < 0 else _fit_array(values.field(index), child)


def _fit_list_or_map(values: Any, field: Field) -> pa.Array:
    """A list or map whose parts are to be fitted."""
    if values.offset and values.null_count:
        values = pa.concat_arrays([values])  # Arrow makes none with NULLs of offsets that begin further on
    mask = pc.is_null(values) if values.null_count else None
    if is_.is_map(field.type):
        key, item = field.children
        parts = _fit_array(values.keys, key), _fit_array(values.items, item)
        return pa.MapArray.from_arrays(values.offsets, *parts, type=field.type, mask=mask)
    element = _fit_array(values.values, field.children[0])
    return pa.ListArray.from_arrays(values.offsets, element, type=field.type, mask=mask)


def keep_rows(columns: Mapping[str, pa.ChunkedArray], mask: RowMask) -> dict[str, pa.ChunkedArray]:
    """The rows of a mask, bool, shape (rows,), of each of these columns.

    Where few are left out these are the parts of a column between them, which copies nothing.
    """
    row_count = int(np.count_nonzero(mask))
    if row_count == len(mask):
        return dict(columns)
    if row_count * 2 < len(mask):  # parts would keep the others, which are more, in memory
        return _filter_columns(columns, mask)
    changes = np.flatnonzero(mask[1:] != mask[:-1]) + 1
    if len(changes) * _MIN_ROWS_PER_SLICE > len(mask):
        return _filter_columns(columns, mask)
    bounds = list(pairwise([0, *changes.tolist(), len(mask)]))[int(not mask[0]) :: 2]
    kept = _filter_columns({name: each for name, each in columns.items() if is_.is_nested(each.type)}, mask)
    for name, column in columns.items():
        if name not in kept:
            parts = [chunk for start, end in bounds for chunk in column.slice(start, end - start).chunks]
            kept[name] = pa.chunked_array(parts, column.type)
    return kept


def _filter_columns(columns: Mapping[str, pa.ChunkedArray], mask: RowMask) -> dict[str, pa.ChunkedArray]:
    keep = pack_mask(mask) if columns else None
    return {name: column.filter(keep) for name, column in columns.items()}


def leaf_columns(field: Field, name: str, paths: Sequence[str]) -> list[int]:
    """The numbers of the Parquet columns of a field, which has this name in the file.

    Of a struct none of whose fields the file has, one column of it, which knows where the struct is NULL.
    """
    below = [number for number, path in enumerate(paths) if path == name or path.startswith(name + ".")]
    if field.is_leaf or not is_.is_struct(field.type):
        return below
    chosen = [number for child in field.children for number in _columns_below(child, f"{name}.", below, paths)]
    return chosen or below[:1]


def _columns_below(field: Field, above: str, among: Sequence[int], paths: Sequence[str]) -> list[int]:
    path = above + field.physical_name
    return [number for number in among if paths[number] == path or paths[number].startswith(path + ".")]
