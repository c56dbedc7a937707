"""VARCHAR(n): Spark checks the length of what statements write by name, and a table keeps text.

What a statement says of lengths is a property of the table, by the ids of columns and parts of columns: it stays when
these are renamed, and no other writer needs to know of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow.types as is_
import pyspark
from pyspark.sql.types import ArrayType, CharType, DataType, MapType, StructField, StructType, VarcharType

from fuse_storage import Field, SchemaError, Snapshot

_SPARK_VERSION = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
_FIRST_WITH_LIMITS = (4, 1)
TEXT_LIMITS_PROPERTY = "text_limits"
"""How many characters columns may have, by the ids of these, as texts."""


def find_text_limits(kind: DataType, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    """The limits of a column of this type, by the paths of what has them.

    Raises SchemaError for CHAR, and for all limits on a Spark that does not see to them in every statement.
    """
    if isinstance(kind, VarcharType) and _SPARK_VERSION < _FIRST_WITH_LIMITS:
        raise SchemaError(
            f"column {'.'.join(path)!r} is {kind.simpleString()}, and before Spark 4.1 a MERGE fails on such "
            f"columns: say STRING"
        )
    match kind:
        case CharType():
            raise SchemaError(
                f"column {'.'.join(path)!r} is {kind.simpleString()}, and nothing here is padded, as Spark has it: say "
                f"VARCHAR({kind.length}), or cast it to STRING"
            )
        case VarcharType():
            yield path, kind.length
        case StructType():
            for field in kind.fields:
                yield from find_text_limits(field.dataType, (*path, field.name))
        case ArrayType():
            yield from find_text_limits(kind.elementType, (*path, "element"))
        case MapType():
            yield from find_text_limits(kind.keyType, (*path, "key"))
            yield from find_text_limits(kind.valueType, (*path, "value"))


def set_text_limits(snapshot: Snapshot, path: Sequence[str], limits: Mapping[tuple[str, ...], int]) -> Snapshot:
    """A snapshot in which these are the limits of the column or field at ``path``, and it has no others."""
    find, before = snapshot.schema.find, _stored_limits(snapshot)
    column = find(path, into_collections=True)
    replaced = {part.id for part in column.walk()}
    kept = {column_id: limit for column_id, limit in before.items() if column_id not in replaced}
    kept |= {find(each, into_collections=True).id: limit for each, limit in limits.items()}
    if kept == before:
        return snapshot
    others = {name: value for name, value in snapshot.properties.items() if name != TEXT_LIMITS_PROPERTY}
    stored = {str(column_id): limit for column_id, limit in kept.items()}
    return replace(snapshot, properties=others | ({TEXT_LIMITS_PROPERTY: stored} if stored else {}))


def text_limits(snapshot: Snapshot) -> dict[int, int]:
    """How many characters columns may have, by their ids, where Spark sees to that; none where it does not."""
    return _stored_limits(snapshot) if _SPARK_VERSION >= _FIRST_WITH_LIMITS else {}


def _stored_limits(snapshot: Snapshot) -> dict[int, int]:
    """What the property says, as far as it means something."""
    stored = snapshot.properties.get(TEXT_LIMITS_PROPERTY)
    if not isinstance(stored, dict):
        return {}
    return {int(key): limit for key, limit in stored.items() if key.isdecimal() and type(limit) is int and limit > 0}


def with_text_limits(kind: DataType, field: Field, limits: Mapping[int, int]) -> DataType:
    """The type of a column as statements made it: with the limits of its texts."""
    if is_.is_string(field.type):
        return VarcharType(limits[field.id]) if field.id in limits else kind
    match kind:
        case StructType():
            parts = zip(kind.fields, field.children, strict=True)
            return StructType(
                [
                    StructField(part.name, with_text_limits(part.dataType, child, limits), part.nullable)
                    for part, child in parts
                ]
            )
        case ArrayType():
            return ArrayType(with_text_limits(kind.elementType, field.children[0], limits), kind.containsNull)
        case MapType():
            key, value = (
                with_text_limits(part, child, limits)
                for part, child in zip((kind.keyType, kind.valueType), field.children, strict=True)
            )
            return MapType(key, value, kind.valueContainsNull)
    return kind
