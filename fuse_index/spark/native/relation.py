"""A snapshot as Spark's own Parquet relation: its files are chosen by votes, its rows read by Spark's vectorised
reader.

Files hold physical names, which are never reused, so the relation has those, and a projection puts the logical ones on
top. Knows Spark and the storage schema; what votes are made of, it does not.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from fuse_index.spark.native.file_listing import sql_default
from fuse_index.spark.native.java_compiler import bridge
from fuse_index.spark.schemas import to_spark
from fuse_storage import Field, Schema

NULL_STRUCTS = "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing"
"""Before 4.1 Spark has no such setting, and its reader takes a struct for NULL where a file has none of the fields
asked for.
"""


def frame(
    spark: SparkSession,
    voter: str,
    url: str,
    branch: str,
    mode: str,
    snapshot: str,
    files: bytes,
    schema: Schema,
    older: Sequence[Schema] = (),
) -> DataFrame:
    """A DataFrame over one snapshot of the table at ``url``.

    ``voter`` is the key under which the session's voter is registered; ``branch`` is empty where a refresh must not
    move the DataFrame; ``files`` is what ``listing.packed`` gives. ``older``: what ``misread`` gives.
    """
    described = StructType([_stored(field) for field in schema.fields]).json()
    session = spark._jsparkSession
    kept = [list(path) for path in unpushed(schema)]
    relation = bridge(spark).relation(session, voter, url, branch, mode, snapshot, files, described, kept)
    plain = DataFrame(session.baseRelationToDataFrame(relation), spark)
    whole = {field.id for field in schema.fields for one in older if _grown(field, one)}
    if all(_as_stored(field) and field.id not in whole for field in schema.fields):
        return plain
    return plain.select([_renamed(field, field.id in whole) for field in schema.fields])


def misread(spark: SparkSession, schemas: Iterable[Schema]) -> tuple[Schema, ...]:
    """The schemas of blocks in which this Spark takes structs for NULL whose fields it is asked for they lack: none
    from 4.1 on.
    """
    try:
        fixed = spark.conf.get(NULL_STRUCTS) == "false"
    except PySparkException:
        fixed = False
    return () if fixed else tuple(schemas)


def obstacle(schema: Schema, older: Sequence[Schema] = ()) -> str | None:
    """Why Spark's reader cannot read such a table, if it cannot. ``older``: as in ``frame``."""
    for field in schema.fields:
        if any(_emptied(field, one) for one in older):
            return (
                f"this Spark's Parquet reader takes structs of column {field.name!r} for NULL in blocks that "
                f"have none of their fields"
            )
        if pa.types.is_binary(field.type) and field.default is not None:
            return f"Spark's Parquet reader cannot fill in the default of column {field.name!r}, which is binary"
    return None


def unpushed(schema: Schema) -> list[tuple[str, ...]]:
    """Physical paths of columns on which Parquet must not filter: it would lose rows, or fail."""
    return [path for field in schema.fields for path in _unpushed(field, ())]


def _unpushed(field: Field, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    path = (*above, field.physical)
    if field.type_changed or pa.types.is_floating(field.type):
        yield path
    elif pa.types.is_struct(field.type):
        for child in field.children:
            yield from _unpushed(child, path)


def _stored(field: Field) -> StructField:
    """With what the reader needs to know of files older than the column: the value that their rows have."""
    metadata: dict[str, Any] = {}
    if field.comment is not None:
        metadata["comment"] = field.comment
    if field.default is not None:
        metadata["EXISTS_DEFAULT"] = sql_default(field)
    return StructField(field.physical, to_spark(pa.schema([field.stored]))[0].dataType, True, metadata)


def _grown(field: Field, older: Schema) -> bool:
    """Whether blocks of this schema have the column, and not all that is in it now."""
    ids = _ids(older)
    return field.id in ids and any(part.id not in ids for part in field.walk())


def _emptied(field: Field, older: Schema) -> bool:
    """Whether blocks of this schema have a struct in this column, and none of its present fields."""
    ids = _ids(older)
    return any(part.id in ids and part.children and not _any_leaf(part, ids) for part in field.walk())


def _any_leaf(field: Field, ids: Container[int]) -> bool:
    return any(part.is_leaf and part.id in ids for part in field.walk())


def _ids(schema: Schema) -> set[int]:
    return {part.id for field in schema.fields for part in field.walk()}


def _as_stored(field: Field) -> bool:
    return all(part.name == part.physical for part in field.walk())


def _renamed(field: Field, whole: bool) -> Column:
    """``whole``: nothing within it is to be left out of what is read."""
    column = col(quoted([field.physical]))
    if whole or not all(_as_stored(child) for child in field.children):
        named = to_spark(pa.schema([field.arrow]))[0].dataType
        column = column.cast(_marked(named) if whole else named)  # by position, so that only names change
    return column.alias(field.name)


def _marked(kind: DataType) -> DataType:
    """An equal type that Spark does not know for one: it keeps a cast to it, and reads all that is cast."""
    match kind:
        case StructType():
            fields = [StructField(one.name, _marked(one.dataType), one.nullable, {"fuse": "whole"}) for one in kind]
            return StructType(fields)
        case ArrayType():
            return ArrayType(_marked(kind.elementType), kind.containsNull)
        case MapType():
            return MapType(_marked(kind.keyType), _marked(kind.valueType), kind.valueContainsNull)
    return kind


def quoted(path: Sequence[str]) -> str:
    """A path as Spark parses it, whatever its names hold."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)
