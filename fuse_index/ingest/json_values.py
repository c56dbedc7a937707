"""Values of JSON that Arrow's reader does not know: objects as maps, and days as texts.

Arrow reads such columns in types that it knows, days as texts and maps as lists of their entries, and what it read is
then put into the types that the columns have.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.types as is_

_ENTRY = ("key", "value")


def has_maps(data_type: pa.DataType) -> bool:
    """Whether a type is a map, or has one in it."""
    return is_.is_map(data_type) or any(has_maps(field.type) for field in _parts(data_type))


def type_in_json(data_type: pa.DataType) -> pa.DataType:
    """The type in which Arrow reads such a column of JSON; the same, where it reads it as it is."""
    if is_.is_date32(data_type):
        return pa.string()
    if is_.is_map(data_type):
        types = (pa.string(), type_in_json(data_type.item_type))  # names of members are texts
        return pa.list_(pa.struct(list(zip(_ENTRY, types, strict=True))))
    if is_.is_list(data_type) or is_.is_large_list(data_type):
        return pa.list_(data_type.value_field.with_type(type_in_json(data_type.value_type)))
    if is_.is_struct(data_type):
        return pa.struct([field.with_type(type_in_json(field.type)) for field in data_type])
    return data_type


def from_json(values: pa.Array, data_type: pa.DataType) -> pa.Array:
    """What Arrow read, in the column's type; fields that this lacks stay. Raises ArrowException for other values."""
    if is_.is_map(data_type):
        keys, items = (values.flatten().field(number) for number in range(2))
        keys, items = from_json(keys, data_type.key_type), from_json(items, data_type.item_type)
        found = pa.map_(data_type.key_type, data_type.item_field.with_type(items.type))
        return pa.MapArray.from_arrays(_offsets(values), keys, items, found)
    if is_.is_list(values.type):
        inner = from_json(values.flatten(), data_type.value_type)
        return pa.ListArray.from_arrays(_offsets(values), inner, pa.list_(data_type.value_field.with_type(inner.type)))
    if is_.is_struct(values.type):
        known = {field.name: field.type for field in data_type}
        fields = list(values.type)
        columns = [
            from_json(each, known.get(field.name, field.type))
            for each, field in zip(values.flatten(), fields, strict=True)
        ]
        fields = [field.with_type(column.type) for field, column in zip(fields, columns, strict=True)]
        return pa.StructArray.from_arrays(columns, fields=fields, mask=values.is_null())
    return values if values.type == data_type else values.cast(data_type)


def _offsets(values: pa.ListArray) -> pa.Array:
    """Where each list begins in what ``flatten`` gives; NULL for one that is NULL."""
    ends = pa.compute.cumulative_sum(pa.compute.fill_null(values.value_lengths(), 0))
    starts = pa.concat_arrays([pa.array([0], pa.int32()), ends.cast(pa.int32())])
    nulls = pa.concat_arrays([values.is_null(), pa.array([False])])
    return pa.compute.if_else(nulls, pa.scalar(None, pa.int32()), starts)


class MapLines(io.RawIOBase):
    """Lines of JSON in which objects that are maps are lists of their entries. Raises ValueError for what is no JSON.

    ``types``: those of the columns, as far as they have maps. Numbers keep their digits as they are written.
    """

    def __init__(self, lines: BinaryIO, types: pa.Schema) -> None:
        self._lines, self._data = enumerate(lines, 1), b""
        self._type = pa.struct(list(types))
        self._decoder = json.JSONDecoder(
            object_pairs_hook=_Members, parse_float=_Written, parse_int=_Written, parse_constant=_Written
        )

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._data:
            number, line = next(self._lines, (0, None))
            if line is None:
                return 0
            try:
                self._data = self._with_entries(line.decode("utf-8-sig").strip())
            except ValueError as problem:
                place = f" at character {problem.pos + 1}" if isinstance(problem, json.JSONDecodeError) else ""
                raise ValueError(f"line {number}: {getattr(problem, 'msg', problem)}{place}") from problem
        data, self._data = self._data[: len(buffer)], self._data[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def _with_entries(self, text: str) -> bytes:
        return (_written(self._decoder.decode(text), self._type) + "\n").encode() if text else b""


class _Written(str):
    """A number as it is written."""


class _Members(list[tuple[str, Any]]):
    """An object, with its members in order."""


def _written(value: Any, data_type: pa.DataType | None) -> str:
    """A value as JSON, where it is to be of such a type; None where that is not known."""
    if isinstance(value, _Written):
        return value
    if isinstance(value, _Members) and data_type is not None and is_.is_map(data_type):
        if len({name for name, _ in value}) < len(value):
            raise ValueError(f"an object has a name twice, and is to be a map: {[name for name, _ in value]}")
        return _joined(
            "[]",
            (f'{{"key":{json.dumps(name)},"value":{_written(each, data_type.item_type)}}}' for name, each in value),
        )
    if isinstance(value, _Members):
        known = {field.name: field.type for field in _parts(data_type)}
        return _joined("{}", (f"{json.dumps(name)}:{_written(each, known.get(name))}" for name, each in value))
    if isinstance(value, list):
        element = next((field.type for field in _parts(data_type)), None)
        if data_type is not None and is_.is_map(data_type):  # entries, as Arrow writes them
            element = None
        return _joined("[]", (_written(each, element) for each in value))
    return json.dumps(value)


def _joined(brackets: str, parts: Iterable[str]) -> str:
    return brackets[0] + ",".join(parts) + brackets[1]


def _parts(data_type: pa.DataType | None) -> Iterator[pa.Field]:
    if data_type is not None and is_.is_nested(data_type):
        yield from (data_type.field(number) for number in range(data_type.num_fields))
