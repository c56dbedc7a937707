"""A snapshot as Spark's own Parquet relation: its files are chosen by votes, its rows read by Spark's vectorised reader.

Files hold physical names, which are never reused, so the relation has those, and a projection puts the logical ones on
top. Knows Spark and the storage schema; what votes are made of, it does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.types import StructField, StructType

from fuse_index.spark.compile import bridge
from fuse_index.spark.defaults import sql_default
from fuse_index.spark.schemas import to_spark
from fuse_storage import Field, Schema


def frame(
    spark: SparkSession, voter: str, url: str, branch: str, mode: str, snapshot: str, files: bytes, schema: Schema
) -> DataFrame:  # fmt: skip
    """A DataFrame over one snapshot of the table at ``url``.

    ``voter`` is the key under which the session's voter is registered; ``branch`` is empty where a refresh must not move
    the DataFrame; ``files`` is what ``listing.packed`` gives.
    """
    described = StructType([_stored(field) for field in schema.fields]).json()
    session = spark._jsparkSession
    kept = [list(path) for path in unpushed(schema)]
    relation = bridge(spark).relation(session, voter, url, branch, mode, snapshot, files, described, kept)
    plain = DataFrame(session.baseRelationToDataFrame(relation), spark)
    if all(_as_stored(field) for field in schema.fields):
        return plain
    return plain.select([_renamed(field) for field in schema.fields])


def obstacle(schema: Schema) -> str | None:
    """Why Spark's reader cannot read such a table, if it cannot."""
    for field in schema.fields:
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


def _as_stored(field: Field) -> bool:
    return all(part.name == part.physical for part in field.walk())


def _renamed(field: Field) -> Column:
    column = col(quoted([field.physical]))
    if not all(_as_stored(child) for child in field.children):
        column = column.cast(to_spark(pa.schema([field.arrow]))[0].dataType)  # by position, so that only names change
    return column.alias(field.name)


def quoted(path: Sequence[str]) -> str:
    """A path as Spark parses it, whatever its names hold."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)
