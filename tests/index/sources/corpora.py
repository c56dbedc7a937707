"""Files of others that are found by environment variables, and questions about them that have one right answer."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

import fuse_index as fuse
from fuse_index.expressions.variant.columns import with_texts
from fuse_index.predicate import Column, Compare, IsNull, Literal, Predicate
from fuse_storage import is_variant
from tests.effort import everything

COLUMNS, VALUES = 4, 3
"""How many columns of a table are asked about, and values of each."""


def folder_of(variable: str) -> Path | None:
    """The folder that an environment variable names, if it is there."""
    place = Path(os.environ.get(variable) or "/nowhere")
    return place if place.is_dir() else None


def texts(rows: pa.Table) -> list[str]:
    """Rows as texts, in which NaN equals itself; dates and times as numbers, since Python has not all of them."""
    numbers = [rows.column(number).cast(_with_numbers(field.type)) for number, field in enumerate(rows.schema)]
    return [str(row) for row in pa.table(numbers, rows.schema.names).to_pylist()]


def _with_numbers(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_date32(kind):
        return pa.int32()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_with_numbers(field.type)) for field in kind])
    return pa.list_(_with_numbers(kind.value_type)) if pa.types.is_list(kind) else kind


def fitted(rows: pa.Table, table: fuse.Table) -> pa.Table:
    """What another reader gave, in the columns and types of the table, and VARIANT as it is shown."""
    return with_texts(pa.table([rows.column(each.name).cast(each.type) for each in table.schema], schema=table.schema))


def assert_right(table: fuse.Table, expected: pa.Table) -> None:
    """The table has these rows, and finds them by their values, with an index on its first column and without.

    Without, its first column alone is asked about: of others each row that is not skipped is judged alike.
    """
    assert sorted(texts(expected)) == sorted(texts(table.to_arrow()))
    columns = 0
    for predicate, keep in questions(table, expected):
        right = sorted(texts(expected.filter(keep)))
        columns += isinstance(predicate, IsNull)  # the first question on each
        for indexes in (True, False) if columns == 1 or everything() else (True,):
            assert sorted(texts(table.scan(predicate, indexes=indexes).to_arrow())) == right, (predicate, indexes)


def questions(table: fuse.Table, expected: pa.Table, index: bool = True) -> Iterator[tuple[Predicate, pa.BooleanArray]]:
    """Conditions on plain columns, each with the rows for which it is true."""
    kinds = (pa.types.is_nested, pa.types.is_timestamp, is_variant)
    plain = [each for each in table.schema if not any(is_one(each.type) for is_one in kinds)]
    for number, field in enumerate(plain[:COLUMNS]):
        if index and number == 0 and not (pa.types.is_floating(field.type) or pa.types.is_boolean(field.type)):
            table.create_index("by_first", "bloom", [f"`{field.name}`"])
        column, values = Column((field.name,), field.type), expected.column(field.name).to_pylist()
        yield IsNull(column), pa.array([value is None for value in values], pa.bool_())
        for value in dict.fromkeys([*values[: VALUES - 1], *values[-1:]]):
            if value is not None and value == value:  # NaN apart
                yield from _comparisons(column, value, values)


def _comparisons(column: Column, value: Any, values: list[Any]) -> Iterator[tuple[Predicate, pa.BooleanArray]]:
    literal = Literal(value, column.type)
    yield Compare("=", column, literal), pa.array([each == value for each in values], pa.bool_())
    if not isinstance(value, float):  # Spark has NaN above all numbers, Python beside them
        yield (
            Compare("<", column, literal),
            pa.array([each is not None and each < value for each in values], pa.bool_()),
        )
