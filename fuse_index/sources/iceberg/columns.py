"""The columns of an Iceberg table, and what they hold in files that lack them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any
from uuid import UUID

import pyarrow as pa

from fuse_index.sources.source import ChosenColumns, columns_of_log
from fuse_storage import VARIANT, SourceColumn, Unsupported, encode_default, scalar_of_type

_FIELD_ID = b"PARQUET:field_id"
_KNOWN_TYPES = (
    *("Boolean", "Integer", "Long", "Float", "Double", "Decimal", "String", "Binary"),
    *("Date", "Timestamp", "Timestamptz"),
)
_CONVERTED_TYPES = ("UUID", "Fixed", "TimestampNano", "TimestamptzNano", "Unknown")
"""Types that are read as others here, so that votes on them would be on other values than their readers have."""
_ONLY_AT_TOP = ("TimestampNano", "TimestamptzNano", "Unknown")
"""Types that columns may have, and no part of one: times are read in microseconds, and all of the last is NULL."""


class AbsentValues:
    """What columns hold in files that lack them, where it is not NULL: by which a file is partitioned, or a default."""

    def __init__(self, table: Any, schema: Any, columns: Sequence[SourceColumn]) -> None:
        self._specs = table.specs()
        types = {column.id: column.type for column in columns if not column.children}
        self._types = {number: _stored_type(kind) for number, kind in types.items()}
        defaults = {each.field_id: each.initial_default for each in schema.fields}
        self._defaults = {
            number: _constant(value, self._types[number], "its default")
            for number, value in defaults.items()
            if value is not None and number in self._types
        }

    def of(self, file: Any) -> Mapping[str | int, Any]:
        """By field id, the values in a file, as JSON has defaults."""
        from pyiceberg.transforms import IdentityTransform

        return self._defaults | {
            part.source_id: _constant(file.partition[position], self._types[part.source_id], str(file.file_path))
            for position, part in enumerate(self._specs[file.spec_id].fields)
            if isinstance(part.transform, IdentityTransform) and part.source_id in self._types
        }


def columns_of_schema(
    schema: Any, where: str, votes_only: bool, unknown: Mapping[str, Mapping[str, Any]] = MappingProxyType({})
) -> ChosenColumns:
    """The columns of a schema of PyIceberg, and variants that it left out, in their order.

    ``unknown``: all that it left out, as metadata has them, by name, in their order.
    """
    converted = () if votes_only else _CONVERTED_TYPES
    found = columns_of_log(schema.fields, partial(_column, where=where, converted=converted, votes_only=votes_only))
    variants = () if votes_only else tuple(_variant(each) for each in unknown.values() if _is_variant(each))
    read = {each.name for each in variants}
    reasons = {
        name: f"{where}: column {name!r} is of Iceberg's type {_type_name(each['type'])}, not known here"
        for name, each in unknown.items()
        if name not in read
    }
    order = [each.name for each in schema.fields]
    for name, each in unknown.items():
        order.insert(each["place"], name)
    columns = sorted(found.columns + variants, key=lambda column: order.index(column.name))
    return replace(found, columns=tuple(columns), left_out={**found.left_out, **reasons})


def _is_variant(described: Mapping[str, Any]) -> bool:
    return described["type"] == "variant" and described.get("initial-default") is None


def _variant(described: Mapping[str, Any]) -> SourceColumn:
    binaries = tuple(SourceColumn(name, name, pa.binary()) for name in ("value", "metadata"))
    name = described["name"]
    return SourceColumn(name, name, VARIANT, int(described["id"]), described.get("doc"), binaries)


def _type_name(kind: Any) -> str:
    return kind if isinstance(kind, str) else f"{kind.get('type')}, or of one that it has"


def _constant(value: Any, kind: pa.DataType, where: str) -> Any:
    """A value as JSON has defaults; days and times may be numbers, as Avro has them. Raises Unsupported."""
    try:
        found = scalar_of_type(value.bytes if isinstance(value, UUID) else value, kind)
        is_nano = pa.types.is_timestamp(kind) and kind.unit == "ns"
        return encode_default((found.cast(pa.timestamp("us", kind.tz)) if is_nano else found).as_py())
    except (pa.ArrowException, TypeError, ValueError) as problem:
        raise Unsupported(f"{where} has a value that is none of type {kind}: {value!r}") from problem


def _column(field: Any, where: str, converted: Sequence[str], votes_only: bool) -> SourceColumn:
    from pyiceberg.io.pyarrow import schema_to_pyarrow
    from pyiceberg.schema import Schema
    from pyiceberg.types import PrimitiveType

    if field.initial_default is not None and not isinstance(field.field_type, PrimitiveType):
        raise Unsupported(f"{where}: column {field.name!r} has a default of its own in files that lack it")
    known = (*_KNOWN_TYPES, *(each for each in converted if each not in _ONLY_AT_TOP))
    if type(field.field_type).__name__.removesuffix("Type") not in converted:
        _raise_if_unknown(field.field_type, field.name, where, known)
    (found,) = schema_to_pyarrow(Schema(field))
    if pa.types.is_null(found.type):
        found = found.with_type(pa.string())
    where = f"{where}: column {field.name!r}"
    if field.initial_default is not None:
        _constant(field.initial_default, _stored_type(found.type), where)
    column = _arrow_column(found)
    if votes_only or field.write_default is None or not isinstance(field.field_type, PrimitiveType):
        return column  # nobody writes, or there is none of a whole column
    return replace(column, write_default=_constant(field.write_default, _stored_type(found.type), where))


def _stored_type(kind: pa.DataType) -> pa.DataType:
    """The type in which the values of a column are, which is not nested, where its own is read as another."""
    return pa.binary() if isinstance(kind, pa.BaseExtensionType) or pa.types.is_fixed_size_binary(kind) else kind


def _raise_if_unknown(kind: Any, path: str, where: str, known: Sequence[str]) -> None:
    """Raise Unsupported for a type that no column here has, or a type that is made of one."""
    from pyiceberg.types import PrimitiveType, StructType

    if isinstance(kind, PrimitiveType) and type(kind).__name__.removesuffix("Type") not in known:
        raise Unsupported(f"{where}: column {path!r} is of Iceberg's type {kind}, not known here")
    for part in (getattr(kind, name, None) for name in ("element_field", "key_field", "value_field")):
        if part is not None:
            _raise_if_unknown(part.field_type, f"{path}.{part.name}", where, known)
    for part in kind.fields if isinstance(kind, StructType) else ():
        if part.initial_default is not None:
            raise Unsupported(f"{where}: column {path!r} has a default in {part.name!r} of files that lack it")
        _raise_if_unknown(part.field_type, f"{path}.{part.name}", where, known)


def _arrow_column(column: pa.Field) -> SourceColumn:
    kind = column.type
    parts: list[pa.Field] = []
    if pa.types.is_struct(kind):
        parts = list(kind)
    elif pa.types.is_map(kind):
        parts = [kind.key_field.with_name("key"), kind.item_field.with_name("value")]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        parts = [kind.value_field.with_name("element")]
    number = int(column.metadata[_FIELD_ID])
    return SourceColumn(column.name, column.name, kind, number, None, tuple(map(_arrow_column, parts)))
