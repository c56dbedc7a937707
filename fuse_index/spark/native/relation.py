"""A snapshot as Spark's DataSource V2 scans it: votes choose its blocks, Spark's vectorised reader reads their rows.

Files hold physical names, which are never reused; so Spark is told both names of each column, and the scan's rows have
the logical ones. Knows Spark and the storage schema; what votes are made of, it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType

from fuse_index.spark.native.file_listing import sql_constant
from fuse_index.spark.native.java_compiler import jvm_bridge
from fuse_index.spark.protocol.replies import ScanDescription
from fuse_index.spark.schemas import to_spark_schema
from fuse_index.spark.text_limits import with_text_limits
from fuse_storage import Field, Schema

_FIELD_ID = "parquet.field.id"
"""Under this name Spark's reader finds a field id in a column's metadata."""
SHREDDING_SETTING = "spark.sql.variant.allowReadingShredded"
_NULL_STRUCT_SETTING = "spark.sql.legacy.parquet.returnNullStructIfAllFieldsMissing"
"""Before 4.1 Spark has no such setting, and takes a struct for NULL where a file has none of the fields asked for."""


@dataclass(frozen=True, slots=True)
class NativeScan:
    """A snapshot as Spark scans it.

    ``callback_key``: the session's endpoint is registered under it. ``branch``: empty where a refresh must not move the
    DataFrame. ``file_listing``: what ``pack_file_listing`` gives. ``older_schemas``: what
    ``schemas_with_null_struct_bug`` gives. ``constant_ids``: of columns of which some files have one value.
    ``by_field_id``: files may call columns otherwise than the table does.
    ``has_foreign_files``: of which no schema tells what they lack.
    ``text_limits``: of VARCHAR, by the ids of what has them. ``unread``: dotted paths of what files have and the table
    does not ask for.
    """

    callback_key: str
    url: str
    branch: str
    mode: str
    snapshot_id: str
    file_listing: bytes
    schema: Schema
    older_schemas: Sequence[Schema] = ()
    constant_ids: Container[int] = ()
    by_field_id: bool = False
    has_foreign_files: bool = False
    text_limits: Mapping[int, int] | None = None
    unread: Container[str] = ()

    def describe(self) -> ScanDescription:
        """All but the files, as ``TableSnapshot.java`` reads it."""
        fields = self.schema.fields
        whole = [
            field.name
            for field in fields
            if any(self.has_foreign_files or _gained_fields(field, older) for older in self.older_schemas)
        ]
        return ScanDescription(
            callback=self.callback_key,
            url=self.url,
            branch=self.branch,
            mode=self.mode,
            snapshot=self.snapshot_id,
            schema=StructType([_logical_field(field, {}) for field in fields]).jsonValue(),
            stored=StructType([_stored_field(field, self.by_field_id) for field in fields]).jsonValue(),
            unpushable=[*unpushable_paths(self.schema), *self._foreign_unpushable_paths()],
            whole=whole,
            by_id=self.by_field_id,
            declared=self._declared(),
        )

    def _declared(self) -> dict[str, Any] | msgspec.UnsetType:
        """The columns as statements made them, if that is otherwise: with VARCHAR."""
        if not self.text_limits:
            return msgspec.UNSET
        return StructType([_logical_field(field, self.text_limits) for field in self.schema.fields]).jsonValue()

    def _foreign_unpushable_paths(self) -> list[tuple[str, ...]]:
        """Columns that files do not hold, or not under the name by which a filter would go.

        Parquet takes a column with a dot in its name and a part of a struct for each other where a file has both.
        """
        fields = self.schema.fields
        dotted = {each.physical_name for each in fields if "." in each.physical_name}
        alike = [
            path
            for top in fields
            for path in _struct_paths(top, ())
            if ".".join(path) in dotted or ".".join(path) in self.unread
        ]
        return alike + [
            (each.physical_name,)
            for each in fields
            if self.by_field_id or each.id in self.constant_ids or each.physical_name in dotted
        ]


def snapshot_dataframe(spark: SparkSession, scan: NativeScan) -> DataFrame:
    """A DataFrame over one snapshot, in its logical names and types."""
    description = scan.describe().encode().decode()
    return DataFrame(jvm_bridge(spark).dataset(spark._jsparkSession, description, scan.file_listing), spark)


def schemas_with_null_struct_bug(spark: SparkSession, schemas: Iterable[Schema]) -> tuple[Schema, ...]:
    """The schemas of blocks that may hold structs which this Spark takes for NULL: none from 4.1 on.

    It does so where a block has none of the fields that it is asked for.
    """
    try:
        fixed = spark.conf.get(_NULL_STRUCT_SETTING) == "false"
    except PySparkException:
        fixed = False
    return () if fixed else tuple(schemas)


def reads_shredded_variants(spark: SparkSession) -> bool:
    """Whether this session puts a VARIANT together that lies in parts: from 4.1 on it does unless it is told not to."""
    try:
        return bool(spark.conf.get(SHREDDING_SETTING) == "true")
    except PySparkException:
        return False


def knows_logical_variants(spark: SparkSession) -> bool:
    """Whether Spark's Parquet reader knows the logical type VARIANT, as it does from 4.1 on; before, it fails on it."""
    return tuple(map(int, spark.version.split(".")[:2])) >= (4, 1)


def unsupported_reason(schema: Schema, older_schemas: Sequence[Schema] = ()) -> str | None:
    """Why Spark's reader cannot read such a table, if it cannot. ``older_schemas``: as in ``NativeScan``."""
    for field in schema.fields:
        if any(_lacks_all_fields(field, older) for older in older_schemas):
            return (
                f"this Spark's Parquet reader takes structs of column {field.name!r} for NULL in blocks that "
                f"have none of their fields"
            )
        if pa.types.is_binary(field.type) and field.initial_default is not None:
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


def _struct_paths(field: Field, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The physical paths of what is in a struct."""
    path = (*above, field.physical_name)
    if above:
        yield path
    for child in field.children if pa.types.is_struct(field.type) else ():
        yield from _struct_paths(child, path)


def _logical_field(field: Field, limits: Mapping[int, int]) -> StructField:
    """The column as queries know it, and statements, which ask for the value of a column that they leave out."""
    kind = with_text_limits(to_spark_schema(pa.schema([field.arrow]))[0].dataType, field, limits)
    kind, metadata = _annotated(kind, field, _comment), _comment(field)
    if field.write_default is not None:  # Spark wants both, or takes the column to have none
        metadata |= {"CURRENT_DEFAULT": sql_constant(field.write_scalar)}
        metadata |= {"EXISTS_DEFAULT": sql_constant(field.initial_scalar)}
    return StructField(field.name, kind, True, metadata)


def _stored_field(field: Field, by_id: bool) -> StructField:
    """The column as Spark's reader needs it: with the value that rows of files older than the column have.

    ``by_id``: with the field ids by which it is found.
    """
    metadata: dict[str, Any] = {}
    if field.initial_default is not None:
        metadata["EXISTS_DEFAULT"] = sql_constant(field.initial_scalar)
    kind = to_spark_schema(pa.schema([field.parquet_field]))[0].dataType
    if by_id:
        metadata[_FIELD_ID] = field.id
        kind = _annotated(kind, field, lambda part: {_FIELD_ID: part.id})
    return StructField(field.physical_name, kind, True, metadata)


def _annotated(kind: DataType, field: Field, metadata: Callable[[Field], dict[str, Any]]) -> DataType:
    """The type of a column, with ``metadata`` of the fields within it; elements, keys and values have none."""
    if isinstance(kind, StructType):
        parts = zip(kind.fields, field.children, strict=True)
        return StructType(
            [
                StructField(part.name, _annotated(part.dataType, child, metadata), True, metadata(child))
                for part, child in parts
            ]
        )
    if isinstance(kind, ArrayType):
        return ArrayType(_annotated(kind.elementType, field.children[0], metadata), True)
    if isinstance(kind, MapType):
        key, value = (
            _annotated(part, child, metadata)
            for part, child in zip((kind.keyType, kind.valueType), field.children, strict=True)
        )
        return MapType(key, value, True)
    return kind


def _comment(field: Field) -> dict[str, Any]:
    return {} if field.comment is None else {"comment": field.comment}


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


def quote_path(path: Sequence[str]) -> str:
    """A path as Spark parses it, whatever its names hold."""
    return ".".join("`" + name.replace("`", "``") + "`" for name in path)
