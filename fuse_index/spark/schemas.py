"""Spark's schemas and Arrow's, for whole tables: what a reader promises Spark, and what a writer may store."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.types as is_
from pyspark.sql import types as spark

from fuse_storage import SchemaError

PLAIN: tuple[tuple[pa.DataType, spark.DataType], ...] = (
    (pa.bool_(), spark.BooleanType()),
    (pa.int8(), spark.ByteType()),
    (pa.int16(), spark.ShortType()),
    (pa.int32(), spark.IntegerType()),
    (pa.int64(), spark.LongType()),
    (pa.float32(), spark.FloatType()),
    (pa.float64(), spark.DoubleType()),
    (pa.string(), spark.StringType()),
    (pa.binary(), spark.BinaryType()),
    (pa.date32(), spark.DateType()),
    (pa.timestamp("us", "UTC"), spark.TimestampType()),
    (pa.timestamp("us"), spark.TimestampNTZType()),
)


def to_spark(schema: pa.Schema) -> spark.StructType:
    """The Spark schema of a table's logical columns."""
    return spark.StructType([_spark_field(field) for field in schema])


def _spark_field(field: pa.Field) -> spark.StructField:
    return spark.StructField(field.name, _spark_type(field.type), field.nullable)


def _spark_type(type: pa.DataType) -> spark.DataType:
    if is_.is_decimal(type):
        return spark.DecimalType(type.precision, type.scale)
    if is_.is_struct(type):
        return spark.StructType([_spark_field(field) for field in type])
    if is_.is_map(type):
        return spark.MapType(_spark_type(type.key_type), _spark_type(type.item_type), type.item_field.nullable)
    if is_.is_list(type):
        return spark.ArrayType(_spark_type(type.value_type), type.value_field.nullable)
    for arrow, found in PLAIN:
        if arrow == type:
            return found
    raise SchemaError(f"Spark has no equivalent of {type}")


def to_arrow(schema: spark.StructType) -> pa.Schema:
    """The Arrow schema of a DataFrame's columns. Raises SchemaError naming a column that no table can hold.

    CHAR and VARCHAR are text here; a void column stays one.
    """
    return pa.schema(
        [pa.field(field.name, _arrow_type(field.dataType, field.name), field.nullable) for field in schema]
    )


def _arrow_type(type: spark.DataType, where: str) -> pa.DataType:
    match type:
        case spark.DecimalType():
            return pa.decimal128(type.precision, type.scale)
        case spark.StructType():
            return pa.struct([pa.field(f.name, _arrow_type(f.dataType, f"{where}.{f.name}"), f.nullable) for f in type])
        case spark.MapType():
            value = pa.field("value", _arrow_type(type.valueType, f"{where}.value"), type.valueContainsNull)
            return pa.map_(_arrow_type(type.keyType, f"{where}.key"), value)
        case spark.ArrayType():
            return pa.list_(pa.field("element", _arrow_type(type.elementType, f"{where}.element"), type.containsNull))
        case spark.CharType() | spark.VarcharType():
            return pa.string()
        case spark.NullType():
            return pa.null()
        case spark.StringType() if not type.isUTF8BinaryCollation():
            # Stored as plain text, it would compare by bytes when read back.
            raise SchemaError(
                f"column {where!r} is {type.simpleString()}: cast it to string first, tables keep no collations"
            )
    for arrow, found in PLAIN:
        if found == type:
            return arrow
    raise SchemaError(f"column {where!r} has type {type.simpleString()}, which a table cannot hold: cast it first")


def all_nullable(schema: pa.Schema) -> pa.Schema:
    """As Spark's own file sources create tables: that a column of one DataFrame has no NULLs binds no later one."""
    return pa.schema([pa.field(field.name, _nullable(field.type)) for field in schema])


def _nullable(type: pa.DataType) -> pa.DataType:
    if is_.is_struct(type):
        return pa.struct([pa.field(field.name, _nullable(field.type)) for field in type])
    if is_.is_map(type):
        return pa.map_(_nullable(type.key_type), pa.field("value", _nullable(type.item_type)))
    if is_.is_list(type):
        return pa.list_(pa.field("element", _nullable(type.value_type)))
    return type
