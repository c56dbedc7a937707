"""Values of Python and pandas become arrays of a column's type, or it is said which of them cannot, and what can."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

REFUSALS = (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError, UnicodeError)
"""What Arrow raises for values that are none of a type."""
_GIVEN: Mapping[Callable[[pa.DataType], bool], str] = {
    is_.is_boolean: "True or False",
    is_.is_integer: "whole numbers that fit",
    is_.is_floating: "numbers",
    is_.is_decimal: "values such as Decimal('1.5'), with as many digits",
    is_.is_string: "texts",
    is_.is_binary: "bytes",
    is_.is_date: "dates, such as datetime.date(2026, 1, 31)",
    is_.is_timestamp: "times, such as datetime.datetime(2026, 1, 31, 12, tzinfo=datetime.UTC)",
    is_.is_struct: "dicts with the names of fields",
}
"""What a column of a type is given in Python."""
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
    if _would_be_cut(values, data_type):
        return _fit_whole(pa.array(values, from_pandas=make is not pa.array), data_type)
    return make(values, type=data_type)


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
            return f"{shown} in row {number}: give {_given(data_type)}"
    return ""


def _given(data_type: pa.DataType) -> str:
    if is_.is_list(data_type):
        return f"lists of {_given(data_type.value_type)}"
    if is_.is_map(data_type):
        return f"dicts of {_given(data_type.item_type)}"
    return next((words for test, words in _GIVEN.items() if test(data_type)), "others")


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


def _fit_whole(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    """Values in another type, as long as nothing of them is lost. Raises ArrowInvalid."""
    fitted = values.cast(data_type)
    if not fitted.cast(values.type).equals(values):  # Arrow's cast of times to days loses the time in silence
        raise pa.ArrowInvalid(f"some {values.type} have a time of day")
    return fitted


def _would_be_cut(values: Any, data_type: pa.DataType) -> bool:
    """Whether Arrow would make Python values fit by cutting what is behind a point, or the time of a day."""
    is_pandas = hasattr(values, "dtype")
    if is_pandas and values.dtype != object:
        return False
    with suppress(pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):  # of several types: that is another question
        return _cuts(pa.infer_type(list(values) if is_pandas else values, from_pandas=is_pandas), data_type)
    return False


def _cuts(found: pa.DataType, data_type: pa.DataType) -> bool:
    """Whether values of the one type have parts that are lost in the other."""
    if is_.is_struct(data_type) and is_.is_struct(found):
        known = [part for part in found if data_type.get_field_index(part.name) >= 0]
        return any(_cuts(part.type, data_type.field(part.name).type) for part in known)
    if is_.is_list(data_type) and is_.is_list(found):
        return _cuts(found.value_type, data_type.value_type)
    if is_.is_date(data_type):
        return bool(is_.is_timestamp(found) or is_.is_floating(found))
    if is_.is_timestamp(data_type):
        return bool(is_.is_floating(found))
    return bool(is_.is_integer(data_type) and (is_.is_floating(found) or is_.is_decimal(found)))
