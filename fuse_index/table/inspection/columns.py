"""Columns of a table, over all blocks and in each, as Arrow tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_index.errors import InputError
from fuse_storage import ColumnStatistics, Field, StoredTable, UnitFrame

COLUMNS_SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("id", pa.int64()),
        ("type", pa.string()),
        ("nullable", pa.bool_()),
        ("default", pa.string()),
        ("initial_default", pa.string()),
        ("stored_as", pa.string()),
        ("nulls", pa.int64()),
        ("nans", pa.int64()),
        ("min", pa.string()),
        ("max", pa.string()),
        ("bounds_exact", pa.bool_()),
        ("bytes", pa.int64()),
    ]
)
"""``name``: with dots for fields of structs. ``default``: what rows hold that come without the column.
``initial_default``: what those hold that were written before the column was there. ``stored_as``: its name in files.
Statistics are null where they are unknown, as they are of nested columns as a whole. ``bounds_exact``: whether ``min``
and ``max`` are values, and not bounds that were cut. ``bytes``: as stored.
"""

STATISTICS_SCHEMA = pa.schema(
    [
        ("block", pa.string()),
        ("column", pa.string()),
        ("rows", pa.int64()),
        ("nulls", pa.int64()),
        ("nans", pa.int64()),
        ("distinct", pa.int64()),
        ("min", pa.string()),
        ("max", pa.string()),
        ("bounds_exact", pa.bool_()),
        ("bytes", pa.int64()),
    ]
)
"""One row per block and column that has statistics. Null where unknown."""


def columns_table(table: StoredTable) -> pa.Table:
    """List columns and fields of structs, with what is known of each over all blocks; see ``COLUMNS_SCHEMA``."""
    segments = table.segments()
    leaves = {field.id: path for path, field in table.snapshot.schema.leaves()}
    fields = [named for field in table.snapshot.schema.fields for named in _field_paths(field, "")]
    return pa.Table.from_pylist(
        [_column_row(name, field, segments if field.id in leaves else None) for name, field in fields],
        COLUMNS_SCHEMA,
    )


def statistics_table(table: StoredTable, columns: Sequence[str] | None) -> pa.Table:
    """List what is known of each column in each block, one row for both; see ``STATISTICS_SCHEMA``.

    ``columns``: by default all that have statistics. Raises SchemaError for unknown columns, InputError for such as
    have none.
    """
    leaves = {field.id: (".".join(path), field) for path, field in table.snapshot.schema.leaves()}
    chosen = (
        leaves
        if columns is None
        else {field.id: leaves.get(field.id) for field in map(table.snapshot.schema.find, columns)}
    )
    if columns is not None and (
        unknown := [name for name, leaf in zip(columns, chosen.values(), strict=False) if leaf is None]
    ):
        raise InputError(f"column {unknown[0]!r} has no statistics: it is nested; name a field of it")
    blocks = table.blocks(statistics=list(chosen))
    tables = []
    for name, field in (leaf for leaf in chosen.values() if leaf is not None):
        statistics = blocks.statistics(field.id) or ColumnStatistics.unknown(field.type, len(blocks))
        tables.append(_describe_statistics(blocks.ids, name, blocks.row_counts, statistics))
    rows = pa.concat_tables([STATISTICS_SCHEMA.empty_table(), *tables])
    order = np.arange(len(rows)).reshape(max(len(tables), 1), -1).T.reshape(-1)  # block after block
    return rows.take(pa.array(order))


def _field_paths(field: Field, prefix: str) -> list[tuple[str, Field]]:
    """List a column and, if it is a struct, all fields in it, with their paths."""
    name = prefix + field.name
    children = field.children if is_.is_struct(field.type) else ()
    return [(name, field), *(named for child in children for named in _field_paths(child, f"{name}."))]


def _column_row(name: str, field: Field, units: UnitFrame | None) -> dict[str, Any]:
    row = {
        "name": name,
        "id": field.id,
        "type": str(field.type),
        "nullable": field.nullable,
        "stored_as": field.physical_name,
        "default": _default_text(field.write_scalar),
        "initial_default": _default_text(field.initial_scalar),
    }
    statistics = None if units is None else units.statistics(field.id)
    if statistics is None or not len(statistics) or units is None:
        return row
    overall = statistics.reduced(np.array([0, len(statistics)]), units.row_counts)
    described = _describe_statistics([""], name, np.array([int(units.row_counts.sum())]), overall).to_pylist()[0]
    return row | {key: value for key, value in described.items() if key in COLUMNS_SCHEMA.names}


def _default_text(value: pa.Scalar) -> str | None:
    text: str | None = _display_texts(pa.array([value.as_py()], value.type))[0].as_py() if value.is_valid else None
    return text


def _describe_statistics(ids: Sequence[str], name: str, row_counts: Any, statistics: ColumnStatistics) -> pa.Table:
    are_known = pc.and_(statistics.min.is_valid(), statistics.max.is_valid())
    are_exact = pc.and_(are_known, pc.invert(pc.or_(statistics.min_cut, statistics.max_cut)))
    columns = [
        pa.array(ids, pa.string()),
        pa.repeat(name, len(ids)),
        pa.array(row_counts, pa.int64()),
        statistics.null_count,
        statistics.nan_count,
        statistics.distinct_count,
        _display_texts(statistics.min),
        _display_texts(statistics.max),
        are_exact,
        statistics.size,
    ]
    return pa.table(columns, schema=STATISTICS_SCHEMA)


def bounds_texts(statistics: ColumnStatistics) -> list[str]:
    """Least and greatest values as text, one for each unit; empty where they are unknown."""
    least, greatest = (_display_texts(values).to_pylist() for values in (statistics.min, statistics.max))
    return ["" if low is None else f"{low} – {high}" for low, high in zip(least, greatest, strict=True)]


def _display_texts(values: pa.Array) -> pa.Array:
    """Cast values to text that people read: binary in hex, times in ISO form."""
    if is_.is_binary(values.type):
        return pa.array([None if value is None else value.hex() for value in values.to_pylist()], pa.string())
    return values.cast(pa.string())
