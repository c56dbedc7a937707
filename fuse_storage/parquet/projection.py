"""Columns as a file has them, fitted to the present schema: renamed, widened, what is missing filled with defaults."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_storage.schema.conform import renamed_array
from fuse_storage.schema.schema import Field


def column(found: pa.ChunkedArray | None, field: Field, rows: int) -> pa.ChunkedArray:
    """The field's values, fitted to its present name and type; the default where the file has none."""
    if found is None:
        return pa.chunked_array([pa.repeat(field.default_scalar, rows)], field.type)
    return pa.chunked_array([_fitted(chunk, field) for chunk in found.chunks], field.type)


def _fitted(values: pa.Array, field: Field) -> pa.Array:
    """Values of a file's type as values of the field's: parts by physical name, those it lacks NULL, narrower ones
    widened.
    """
    if field.is_leaf:
        return values if values.type == field.type else pc.cast(values, field.type)
    if values.type == field.stored.type:
        return renamed_array(values, field.type)
    if not is_.is_struct(field.type):
        return _refitted(values, field)
    parts = [_part(values, child) for child in field.children]
    fields = [child.arrow.with_nullable(True) for child in field.children]
    mask = pc.is_null(values) if values.null_count else None
    return renamed_array(pa.StructArray.from_arrays(parts, fields=fields, mask=mask), field.type)


def _part(values: pa.StructArray, child: Field) -> pa.Array:
    place = values.type.get_field_index(child.physical)
    return pa.nulls(len(values), child.type) if place < 0 else _fitted(values.field(place), child)


def _refitted(values: Any, field: Field) -> pa.Array:
    """A list or map whose parts are to be fitted."""
    if values.offset and values.null_count:
        values = pa.concat_arrays([values])  # Arrow makes none with NULLs of offsets that begin further on
    mask = pc.is_null(values) if values.null_count else None
    if is_.is_map(field.type):
        key, item = field.children
        parts = _fitted(values.keys, key), _fitted(values.items, item)
        return pa.MapArray.from_arrays(values.offsets, *parts, type=field.type, mask=mask)
    element = _fitted(values.values, field.children[0])
    return pa.ListArray.from_arrays(values.offsets, element, type=field.type, mask=mask)
