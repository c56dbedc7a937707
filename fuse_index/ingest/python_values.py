"""Values of Python and pandas become arrays of a column's type, or it is said which of them cannot, and what can."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from fuse_storage import check_uncut, describe_given

REFUSALS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, UnicodeError)
"""What Arrow raises for values that are none of a type."""
_LOOKED_AT = 100_000
"""Values among which the one that was refused is looked for."""


def array_of_type(values: Any, data_type: pa.DataType | None, make: Callable[..., pa.Array]) -> pa.Array:
    """Values as an array. Raises what Arrow raises for those that are none of the type, or would lose a part in it."""
    if data_type is None:
        return make(values, type=None)
    if _holds(is_.is_list, data_type) and _has_text_for_list(values, data_type):
        raise pa.ArrowTypeError("a text is no list")  # Arrow would make a list of its characters
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        data_type = with_new_fields(values, data_type)
    if hasattr(values, "dtype") and values.dtype != object:
        return _array_of_dtype(values, data_type, make)
    if is_.is_date(data_type):  # pandas' NaT is NULL, as it is among times
        values = [None if isinstance(value, datetime) and value != value else value for value in values]
    check_uncut(values, data_type)
    try:
        return make(values, type=data_type)
    except (TypeError, ValueError) as problem:  # Python's own, such as of NaN as a day
        raise pa.ArrowInvalid(str(problem)) from problem


def with_new_fields(values: Iterable[Any], data_type: pa.DataType) -> pa.DataType:
    """The type with all fields that dicts among the values have: Arrow would leave out those that the type lacks.

    Whoever writes the values then refuses these fields by name, or adds them. Raises what Arrow raises.

    >>> with_new_fields([{"a": 1}, {"a": 2, "b": "x"}], pa.struct({"a": pa.int64()}))
    StructType(struct<a: int64, b: string>)
    """
    if not _holds(is_.is_struct, data_type):
        return data_type
    if is_.is_list(data_type):
        inner = [each for value in values if isinstance(value, list | tuple) for each in value]
        return pa.list_(data_type.value_field.with_type(with_new_fields(inner, data_type.value_type)))
    if is_.is_map(data_type):
        items = [item for value in values if isinstance(value, Mapping) for item in value.values()]
        item_field = data_type.item_field.with_type(with_new_fields(items, data_type.item_type))
        return pa.map_(data_type.key_field, item_field, data_type.keys_sorted)
    rows = [value for value in values if isinstance(value, Mapping)]
    known = [part.with_type(with_new_fields([row.get(part.name) for row in rows], part.type)) for part in data_type]
    names = dict.fromkeys(name for row in rows for name in row)
    if other_names := [name for name in names if not isinstance(name, str)]:
        raise pa.ArrowTypeError(f"a dict has the key {other_names[0]!r}, which names no field: keys are texts")
    new = [name for name in names if data_type.get_field_index(name) < 0]
    fields = [pa.field(name, pa.infer_type([row.get(name) for row in rows])) for name in new]
    return pa.struct([*known, *(field for field in fields if not is_.is_null(field.type))])


def describe_refused(values: Any, data_type: pa.DataType, make: Callable[..., pa.Array]) -> str:
    """The value that cannot be of the type, where it is, and what can; empty if each alone can be."""
    for number, value in enumerate(islice(values, _LOOKED_AT)):
        try:
            array_of_type([value], data_type, make)
        except REFUSALS:
            shown = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}…"
            return f"{shown} in row {number}: give {describe_given(data_type)}"
    return ""


def _holds(test: Callable[[pa.DataType], bool], data_type: pa.DataType) -> bool:
    """Whether the type, or one that values are given in within it, is as the test says."""
    if test(data_type):
        return True
    if is_.is_map(data_type):
        return _holds(test, data_type.item_type)
    if is_.is_list(data_type):
        return _holds(test, data_type.value_type)
    return bool(is_.is_struct(data_type)) and any(_holds(test, part.type) for part in data_type)


def _has_text_for_list(values: Iterable[Any], data_type: pa.DataType) -> bool:
    if is_.is_list(data_type):
        inner = data_type.value_type
        return any(isinstance(value, str | bytes) for value in values) or (
            _holds(is_.is_list, inner)
            and any(_has_text_for_list(value, inner) for value in values if isinstance(value, list | tuple))
        )
    if is_.is_map(data_type):
        pairs = [list(value.items()) if isinstance(value, Mapping) else value for value in values]
        listed = [pair for value in pairs if isinstance(value, list | tuple) for pair in value]
        items = [pair[1] for pair in listed if isinstance(pair, list | tuple) and len(pair) == 2]
        return _has_text_for_list(items, data_type.item_type)
    rows = [value for value in values if isinstance(value, Mapping)]
    return any(
        _has_text_for_list([row.get(part.name) for row in rows], part.type)
        for part in data_type
        if _holds(is_.is_list, part.type)
    )


def _array_of_dtype(values: Any, data_type: pa.DataType, make: Callable[..., pa.Array]) -> pa.Array:
    """Values of NumPy or pandas, which are of one type. Raises what Arrow raises, also for what it cuts in silence."""
    made = make(values, type=data_type)
    if is_.is_date(data_type) or is_.is_boolean(data_type) or is_.is_timestamp(data_type):
        found = make(values, type=None)
        if is_.is_timestamp(found.type):
            loses_zone = found.type.tz is not None and getattr(data_type, "tz", None) is None
            if loses_zone or (is_.is_date(data_type) and not made.cast(found.type).equals(found)):
                raise pa.ArrowInvalid(f"some {found.type} would lose a part as {data_type}")
        elif is_.is_floating(found.type) and not made.cast(found.type).equals(found):
            raise pa.ArrowInvalid(f"some {found.type} would lose a part as {data_type}")
    return made
