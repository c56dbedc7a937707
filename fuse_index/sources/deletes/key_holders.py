"""Files of a table that may hold a key, by its statistics and indexes: an equality delete reads no others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_index.indexes.engine import Engine
from fuse_index.predicate import And, Column, In, IsNull, Literal, Or, Predicate
from fuse_index.pruning.planner import plan_scan
from fuse_storage import StoredTable

_MAX_KEYS = 10_000
"""Keys of a delete that indexes are asked about: for more, most files hold one."""


def find_holders(table: StoredTable, engine: Engine, keys: Mapping[int, pa.ChunkedArray]) -> Mapping[str, bool] | None:
    """Tell which files of a table may hold one of these keys, by location; None where nothing can be asked of them.

    ``keys``: columns by their ids, one row for each key.
    """
    terms = tuple(_key_terms(table, keys))
    if not terms:
        return None
    mask = plan_scan(table, terms[0] if len(terms) == 1 else And(terms), engine).block_mask
    return dict(zip(table.blocks().locations, mask.tolist(), strict=True))


def _key_terms(table: StoredTable, keys: Mapping[int, pa.ChunkedArray]) -> Iterator[Predicate]:
    fields = {field.id: field for field in table.snapshot.schema.fields}
    for number, found in keys.items():
        if (field := fields.get(number)) is None or not _is_exact(field.type):
            continue
        try:
            values = pc.unique(found.cast(field.type))
        except pa.ArrowInvalid:
            continue
        if len(values) > _MAX_KEYS:
            continue
        column = Column((field.name,), field.type)
        known = tuple(Literal(value, field.type) for value in values.drop_null().to_pylist())
        terms: list[Predicate] = [In(column, known)] if known else []
        terms += [IsNull(column)] if values.null_count else []
        yield terms[0] if len(terms) == 1 else Or(tuple(terms))


def _is_exact(kind: pa.DataType) -> bool:
    """Whether values of a type are equal where Iceberg has them equal."""
    return bool(is_.is_integer(kind) or is_.is_string(kind) or is_.is_date32(kind))
