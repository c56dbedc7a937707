"""Spark's schemas of whole tables as Arrow's, and back; and rows of one as the other takes them.

In: a schema, or rows, of either. Out: of the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as is_
from pyspark.sql import types as spark
from pyspark.sql.functions import coalesce, col, lit, parse_json

from fuse_storage import SPARK_TYPES_BY_NAME, VARIANT_STORAGE, SchemaError, is_variant

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SCALAR_TYPES: tuple[tuple[pa.DataType, spark.DataType], ...] = tuple(
    (SPARK_TYPES_BY_NAME[spark_type.simpleString()], spark_type)
    for spark_type in (
        spark.BooleanType(),
        spark.ByteType(),
        spark.ShortType(),
        spark.IntegerType(),
        spark.LongType(),
        spark.FloatType(),
        spark.DoubleType(),
        spark.StringType(),
        spark.BinaryType(),
        spark.DateType(),
        spark.TimestampType(),
        spark.TimestampNTZType(),
        spark.VariantType(),
    )
)


def to_spark_schema(schema: pa.Schema) -> spark.StructType:
    """The Spark schema of a table's logical columns."""
    return spark.StructType([_spark_field(field) for field in schema])


def _spark_field(field: pa.Field) -> spark.StructField:
    return spark.StructField(field.name, to_spark_type(field.type), field.nullable)


def to_spark_type(arrow_type: pa.DataType) -> spark.DataType:
    if is_.is_decimal(arrow_type):
        return spark.DecimalType(arrow_type.precision, arrow_type.scale)
    if is_.is_struct(arrow_type):
        return spark.StructType([_spark_field(field) for field in arrow_type])
    if is_.is_map(arrow_type):
        return spark.MapType(
            to_spark_type(arrow_type.key_type), to_spark_type(arrow_type.item_type), arrow_type.item_field.nullable
        )
    if is_.is_list(arrow_type):
        return spark.ArrayType(to_spark_type(arrow_type.value_type), arrow_type.value_field.nullable)
    for arrow_scalar, spark_scalar in _SCALAR_TYPES:
        if arrow_scalar == arrow_type:
            return spark_scalar
    raise SchemaError(f"Spark has no equivalent of {arrow_type}")


def to_arrow_schema(schema: spark.StructType) -> pa.Schema:
    """The Arrow schema of a DataFrame's columns. Raises SchemaError naming a column that no table can hold.

    CHAR and VARCHAR are text here; a void column stays one.
    """
    return pa.schema(
        [pa.field(field.name, _arrow_type(field.dataType, field.name), field.nullable) for field in schema]
    )


def _comment(field: spark.StructField) -> dict[str, str] | None:
    return {"comment": field.metadata["comment"]} if "comment" in field.metadata else None


def _arrow_type(spark_type: spark.DataType, path: str) -> pa.DataType:
    match spark_type:
        case spark.DecimalType():
            return pa.decimal128(spark_type.precision, spark_type.scale)
        case spark.StructType():
            return pa.struct(
                [
                    pa.field(f.name, _arrow_type(f.dataType, f"{path}.{f.name}"), f.nullable, _comment(f))
                    for f in spark_type
                ]
            )
        case spark.MapType():
            value = pa.field("value", _arrow_type(spark_type.valueType, f"{path}.value"), spark_type.valueContainsNull)
            return pa.map_(_arrow_type(spark_type.keyType, f"{path}.key"), value)
        case spark.ArrayType():
            return pa.list_(
                pa.field("element", _arrow_type(spark_type.elementType, f"{path}.element"), spark_type.containsNull)
            )
        case spark.CharType() | spark.VarcharType():
            return pa.string()
        case spark.NullType():
            return pa.null()
        case spark.StringType() if not spark_type.isUTF8BinaryCollation():
            # Stored as plain text, it would compare by bytes when read back.
            raise SchemaError(
                f"column {path!r} is {spark_type.simpleString()}: cast it to string first, tables keep no collations"
            )
    for arrow_scalar, spark_scalar in _SCALAR_TYPES:
        if spark_scalar == spark_type:
            return arrow_scalar
    raise SchemaError(f"column {path!r} has type {spark_type.simpleString()}, which a table cannot hold: cast it first")


def as_spark_has_it(rows: pa.Table) -> pa.Table:
    """The rows with VARIANT as Spark takes it of a Python worker: a struct, under no name of ours."""
    for number, field in enumerate(rows.schema):
        if is_variant(field.type):
            rows = rows.set_column(number, field.with_type(VARIANT_STORAGE), rows.column(number).cast(VARIANT_STORAGE))
    return rows


def collect_arrow(rows: DataFrame) -> pa.Table:
    """All rows of a DataFrame, whose columns are called as they may be in paths.

    Spark gives none of a VARIANT that is NULL, as parts of it would be NULL that may not be; so those are told apart.
    """
    variants = [field.name for field in rows.schema if isinstance(field.dataType, spark.VariantType)]
    if not variants:
        return rows.toArrow()
    told = [
        coalesce(col(name), parse_json(lit("null"))).alias(name) if name in variants else col(name)
        for name in rows.columns
    ]
    found = rows.select(*told, *(col(name).isNull().alias(f"{name}__is_null") for name in variants)).toArrow()
    for name in variants:
        values, is_null = found.column(name).combine_chunks(), found.column(f"{name}__is_null").combine_chunks()
        values = values.chunk(0) if isinstance(values, pa.ChunkedArray) else values
        place = found.schema.get_field_index(name)
        masked = pa.StructArray.from_arrays(
            [values.field(number) for number in range(2)], fields=list(values.type), mask=is_null
        )
        found = found.set_column(place, pa.field(name, values.type), masked)
    return found.select(rows.columns)


def all_nullable(schema: pa.Schema) -> pa.Schema:
    """The schema with every field nullable, as Spark's own file sources create tables.

    That a column of one DataFrame has no NULLs binds no later one.
    """
    return pa.schema([pa.field(field.name, _nullable(field.type)) for field in schema])


def _nullable(arrow_type: pa.DataType) -> pa.DataType:
    if is_.is_struct(arrow_type):
        return pa.struct([pa.field(field.name, _nullable(field.type)) for field in arrow_type])
    if is_.is_map(arrow_type):
        return pa.map_(_nullable(arrow_type.key_type), pa.field("value", _nullable(arrow_type.item_type)))
    if is_.is_list(arrow_type):
        return pa.list_(pa.field("element", _nullable(arrow_type.value_type)))
    return arrow_type
