"""Values as Python has them, checked before Arrow makes others of them: it cuts parts off in silence.

It takes 1.5 for the whole number 1, noon for the day, and leaves the zone of a time away.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, time
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

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
_WITHOUT_ZONE = "times without a zone, such as datetime.datetime(2026, 1, 31, 12)"


def describe_given(data_type: pa.DataType) -> str:
    """What a column of a type is given in Python, in words that follow "give"."""
    if is_.is_list(data_type):
        return f"lists of {describe_given(data_type.value_type)}"
    if is_.is_map(data_type):
        return f"dicts of {describe_given(data_type.item_type)}"
    if is_.is_timestamp(data_type) and data_type.tz is None:
        return _WITHOUT_ZONE
    return next((words for test, words in _GIVEN.items() if test(data_type)), "others")


def scalar_of_type(value: Any, data_type: pa.DataType) -> pa.Scalar:
    """A value of Python as one of a type. Raises what Arrow raises if it is none, and as ``check_uncut``."""
    check_uncut([value], data_type)
    return pa.scalar(value, data_type)


def check_uncut(values: Iterable[Any], data_type: pa.DataType) -> None:
    """Raise ArrowInvalid for a value, or one within it, of which a part would be lost in the type.

    >>> check_uncut([1.0, None, 2], pa.int32())
    >>> check_uncut([{"days": [1.5]}], pa.struct({"days": pa.list_(pa.int32())}))
    Traceback (most recent call last):
        ...
    pyarrow.lib.ArrowInvalid: 1.5 would lose a part as int32
    """
    for leaves, leaf_type in _leaves(values, data_type):
        kinds = {kind for kind in set(map(type, leaves)) if _may_be_cut(kind)}
        if kinds:
            for value in leaves:
                if type(value) in kinds and _is_cut(value, leaf_type):
                    raise pa.ArrowInvalid(f"{value!r} would lose a part as {leaf_type}")


def _leaves(values: Iterable[Any], data_type: pa.DataType) -> Iterator[tuple[Sequence[Any], pa.DataType]]:
    """All values, or those within nested ones, that are to be of a plain type of which Arrow cuts something off."""
    if is_.is_struct(data_type):
        rows = [row for value in values if (row := _as_dict(value)) is not None]
        for part in data_type:
            yield from _leaves([row.get(part.name) for row in rows], part.type)
    elif is_.is_map(data_type):
        rows = [row for value in values if (row := _as_dict(value)) is not None]
        yield from _leaves([key for row in rows for key in row], data_type.key_type)
        yield from _leaves([item for row in rows for item in row.values()], data_type.item_type)
    elif is_.is_list(data_type):
        if _may_cut(data_type.value_type):  # an embedding of a thousand numbers need not be looked at
            lists = [value for value in values if isinstance(value, Iterable) and not isinstance(value, str | bytes)]
            yield from _leaves([item for value in lists for item in value], data_type.value_type)
    elif _may_cut(data_type):
        yield list(values), data_type


def _may_cut(data_type: pa.DataType) -> bool:
    """Whether Arrow may cut something off to make values fit, in the type or in one within it."""
    if is_.is_nested(data_type):
        return any(_may_cut(data_type.field(number).type) for number in range(data_type.num_fields))
    return bool(is_.is_integer(data_type) or is_.is_date(data_type) or is_.is_timestamp(data_type))


def _as_dict(value: Any) -> Mapping[Any, Any] | None:
    """A struct or map as a dict, also where it is given as a list of pairs; None for what is neither."""
    if isinstance(value, Mapping):
        return value
    try:
        return dict(value) if isinstance(value, list | tuple) else None
    except (TypeError, ValueError):  # no pairs, or no keys that can be: Arrow says so
        return None


def _may_be_cut(kind: type) -> bool:
    return issubclass(kind, datetime | Real | Decimal) and not issubclass(kind, Integral)


def _is_cut(value: Any, data_type: pa.DataType) -> bool:
    if not isinstance(value, datetime):
        return math.isfinite(value) and (not is_.is_integer(data_type) or value != int(value))
    if value != value:  # pandas' NaT, of which Arrow makes the first day of the year 1
        return bool(is_.is_date(data_type))
    if is_.is_date(data_type):
        return value.tzinfo is not None or value.time() != time.min
    has_zone_too_much = is_.is_timestamp(data_type) and data_type.tz is None and value.tzinfo is not None
    return has_zone_too_much or bool(getattr(value, "nanosecond", 0))  # pandas' times have these
