"""Values of foreign files that are not what they seem: old days, times to be rounded, VARIANTs that lie in parts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_storage.errors import Corrupt, Unsupported
from fuse_storage.parquet.footer import ForeignLayout
from fuse_storage.schema.nested_arrays import child_arrays, holds_variant, map_variants
from fuse_storage.schema.variant import to_variants
from fuse_storage.schema.variant_bytes import MalformedVariant

_FIRST_DAY = date(1582, 10, 15)
_FIRST_TIME = datetime(1900, 1, 1)


def raise_if_old_calendar(stored: Mapping[str, pa.ChunkedArray], layout: ForeignLayout, where: str) -> None:
    """Raise Unsupported for days and times that Arrow would give otherwise than Spark, in a file that Spark 2 wrote."""
    if not (layout.old_dates or layout.old_int96):
        return
    for name, column in stored.items():
        for chunk in column.chunks:
            if any(_is_before_reform(leaf) for leaf in _leaf_arrays(chunk)):
                raise Unsupported(
                    f"{where}: column {name!r} has dates before 1582, or times before 1900, in the calendar that Spark "
                    f"had before 3.0: rewrite the file with a later Spark, and sync"
                )


def convert_values(
    stored: Mapping[str, pa.ChunkedArray], types: Mapping[str, pa.DataType], where: str
) -> dict[str, pa.ChunkedArray]:
    """Columns of a file, where wanted with nanoseconds as microseconds, whole numbers as doubles, and VARIANTs whole.

    ``types``: those wanted, by the names of columns. Raises Unsupported where it would lose anything, and Corrupt for
    parts of a VARIANT that contradict each other.
    """
    found = dict(stored)
    for name, column in stored.items():
        wanted = types[name]
        if holds_variant(wanted):
            found[name] = _whole_variants(column, wanted, name, where)
            continue
        is_finer = is_.is_timestamp(column.type) and column.type.unit == "ns"
        if is_finer or (is_.is_int64(column.type) and is_.is_float64(wanted)):
            try:
                found[name] = column.cast(pa.timestamp("us", column.type.tz) if is_finer else wanted)
            except pa.ArrowInvalid as problem:
                lost = "times finer than microseconds" if is_finer else "whole numbers beyond 2^53"
                raise Unsupported(
                    f"{where}: column {name!r} has {lost}, which would be lost: leave it out of what is read, or write "
                    f"it as {wanted} at the source"
                ) from problem
    return found


def _whole_variants(column: pa.ChunkedArray, wanted: pa.DataType, name: str, where: str) -> pa.ChunkedArray:
    try:
        chunks = [map_variants(chunk, wanted, _whole, name) for chunk in column.chunks]
    except MalformedVariant as problem:
        raise Corrupt(f"{where}: column {name!r} holds what is no VARIANT: {problem}; have it written anew") from None
    return pa.chunked_array(chunks, chunks[0].type if chunks else wanted)


def _whole(variants: pa.Array, where: str) -> pa.Array:
    from fuse_storage.parquet.foreign.shredded import put_together  # that few files need

    return to_variants(put_together(variants), where)


def _leaf_arrays(values: pa.Array) -> Iterator[pa.Array]:
    if is_.is_nested(values.type):
        for part in child_arrays(values):
            yield from _leaf_arrays(part)
    else:
        yield values


def _is_before_reform(values: pa.Array) -> bool:
    if not (is_.is_date(values.type) or is_.is_timestamp(values.type)):
        return False
    first: Any = _FIRST_DAY if is_.is_date(values.type) else _FIRST_TIME
    naive = values.cast(pa.timestamp(values.type.unit)) if is_.is_timestamp(values.type) else values
    return bool(pc.any(pc.less(naive, pa.scalar(first, naive.type)), min_count=0).as_py())
