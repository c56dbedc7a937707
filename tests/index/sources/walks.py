"""What a source's own reader gives, compared with a table that was attached to it."""

from collections.abc import Iterable

import pyarrow as pa

import fuse_index as fuse
from fuse_storage.maintenance.check import check_invariants


def sorted_rows(rows: pa.Table, names: Iterable[str]) -> list[str]:
    """Rows as texts, in which NaN equals itself."""
    return sorted(str(row) for row in rows.select(list(names)).to_pylist())


def assert_same_rows(table: fuse.Table, expected: pa.Table, conditions: Iterable[str] = ()) -> None:
    """The table holds these rows, and gives the same with and without indexes on each condition."""
    names = table.schema.names
    check_invariants(table.stored)

    assert sorted_rows(expected, names) == sorted_rows(table.to_arrow(), names)
    for condition in conditions:
        with_indexes, without = (table.scan(condition, indexes=used).to_arrow() for used in (True, False))
        assert sorted_rows(without, names) == sorted_rows(with_indexes, names), condition
