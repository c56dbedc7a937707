"""A snapshot as Spark's own Parquet relation: votes choose its files, Spark's vectorised reader reads its rows.

Files hold physical names, which are never reused, so the relation has those, and a projection puts the logical ones on
top. Knows Spark and the storage schema; what votes are made of, it does not.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from fuse_index.spark.native.file_listing import sql_default
from fuse_index.spark.native.java_compiler import jvm_bridge
from fuse_index.spark.schemas import to_spark_schema
from fuse_storage import Field, Schema

_NULL_STRUCT_SETTING = "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing"
"""Before 4.1 Spark has no such setting, and takes a struct for NULL where a file has none of the fields asked for."""


@dataclass(frozen=True, slots=True)
class NativeScan:
    """A snapshot as Spark's file source scans it.

    ``callback_key``: the session's endpoint is registered under it. ``branch``: empty where a refresh must not move the
    DataFrame. ``file_listing``: what ``pack_file_listing`` gives. ``older_schemas``: what
    ``schemas_with_null_struct_bug`` gives.
    """

    callback_key: str
    url: str
    branch: str
    mode: str
    snapshot_id: str
    file_listing: bytes
    schema: Schema
    older_schemas: Sequence[Schema] = ()


def snapshot_dataframe(spark: SparkSession, scan: NativeScan) -> DataFrame:
    """A DataFrame over one snapshot, in its logical names and types."""
    fields = scan.schema.fields
    relation = jvm_bridge(spark).relation(
        spark._jsparkSession,
        scan.callback_key,
        scan.url,
        scan.branch,
        scan.mode,
        scan.snapshot_id,
        scan.file_listing,
        StructType([_stored_field(field) for field in fields]).json(),
        [list(path) for path in unpushable_paths(scan.schema)],
    )
    stored = DataFrame(spark._jsparkSession.baseRelationToDataFrame(relation), spark)
    read_whole = {field.id for field in fields for older in scan.older_schemas if _gained_fields(field, older)}
    if all(_has_stored_names(field) and field.id not in read_whole for field in fields):
        return stored
    return stored.select([_logical_column(field, field.id in read_whole) for field in fields])


def schemas_with_null_struct_bug(spark: SparkSession, schemas: Iterable[Schema]) -> tuple[Schema, ...]:
    """The schemas of blocks that may hold structs which this Spark takes for NULL: none from 4.1 on.

    It does so where a block has none of the fields that it is asked for.
    """
    try:
        fixed = spark.conf.get(_NULL_STRUCT_SETTING) == "false"
    except PySparkException:
        fixed = False
    return () if fixed else tuple(schemas)


def unsupported_reason(schema: Schema, older_schemas: Sequence[Schema] = ()) -> str | None:
    """Why Spark's reader cannot read such a table, if it cannot. ``older_schemas``: as in ``NativeScan``."""
    for field in schema.fields:
        if any(_lacks_all_fields(field, older) for older in older_schemas):
            return (
                f"this Spark's Parquet reader takes structs of column {field.name!r} for NULL in blocks that "
                f"have none of their fields"
            )
        if pa.types.is_binary(field.type) and field.default is not None:
            return f"Spark's Parquet reader cannot fill in the default of column {field.name!r}, which is binary"
    return None


def unpushable_paths(schema: Schema) -> list[tuple[str, ...]]:
    """Physical paths of columns on which Parquet must not filter: it would lose rows, or fail."""
    return [path for field in schema.fields for path in _unpushable_paths(field, ())]


def _unpushable_paths(field: Field, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    path = (*above, field.physical_name)
    if field.type_changed or pa.types.is_floating(field.type):
        yield path
    elif pa.types.is_struct(field.type):
        for child in field.children:
            yield from _unpushable_paths(child, path)


def _stored_field(field: Field) -> StructField:
    """The column as Spark's reader needs it: with the value that rows of files older than the column have."""
    metadata: dict[str, Any] = {}
    if field.comment is not None:
        metadata["comment"] = field.comment
    if field.default is not None:
        metadata["EXISTS_DEFAULT"] = sql_default(field)
    return StructField(
        field.physical_name, to_spark_schema(pa.schema([field.parquet_field]))[0].dataType, True, metadata
    )


def _gained_fields(field: Field, older: Schema) -> bool:
    """Whether blocks of this schema have the column, and not all that is in it now."""
    older_ids = _ids(older)
    return field.id in older_ids and any(part.id not in older_ids for part in field.walk())


def _lacks_all_fields(field: Field, older: Schema) -> bool:
    """Whether blocks of this schema have a struct in this column, and none of its present fields."""
    older_ids = _ids(older)
    return any(part.id in older_ids and part.children and not _any_leaf(part, older_ids) for part in field.walk())


def _any_leaf(field: Field, ids: Container[int]) -> bool:
    return any(part.is_leaf and part.id in ids for part in field.walk())


def _ids(schema: Schema) -> set[int]:
    return {part.id for field in schema.fields for part in field.walk()}


def _has_stored_names(field: Field) -> bool:
    return all(part.name == part.physical_name for part in field.walk())


def _logical_column(field: Field, whole: bool) -> Column:
    """The column by its logical name; ``whole``: Spark must read all of it, whatever the query uses."""
    column = col(quote_path([field.physical_name]))
    if whole or not all(_has_stored_names(child) for child in field.children):
        logical_type = to_spark_schema(pa.schema([field.arrow]))[0].dataType
        column = column.cast(
            _marked_type(logical_type) if whole else logical_type
        )  # by position, so that only names change
    return column.alias(field.name)


def _marked_type(kind: DataType) -> DataType:
    """An equal type that Spark does not know for one: it keeps a cast to it, and reads all that is cast."""
    match kind:
        case StructType():
            fields = [
                StructField(field.name, _marked_type(field.dataType), field.nullable, {"fuse": "whole"})
                for field in kind
            ]
            return StructType(fields)
        case ArrayType():
            return ArrayType(_marked_type(kind.elementType), kind.containsNull)
        case MapType():
            return MapType(_marked_type(kind.keyType), _marked_type(kind.valueType), kind.valueContainsNull)
    return kind


def quote_path(path: Sequence[str]) -> str:
    """A path as Spark parses it, whatever its names hold."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)
