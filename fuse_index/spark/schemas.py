"""Spark's schemas of whole tables as Arrow's, and back; and rows of one as the other takes them.

In: a schema, or rows, of either. Out: of the other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as is_
from pyspark.sql import types as spark
from pyspark.sql.functions import coalesce, col, lit, parse_json, struct, transform, transform_values

from fuse_storage import (
    SPARK_TYPES_BY_NAME,
    VARIANT_STORAGE,
    SchemaError,
    child_arrays,
    chunked_to_array,
    holds_variant,
    of_child_arrays,
    type_without_variants,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

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
        if holds_variant(field.type):
            kind = type_without_variants(field.type, VARIANT_STORAGE)
            rows = rows.set_column(number, field.with_type(kind), rows.column(number).cast(kind))
    return rows


def collect_arrow(rows: DataFrame) -> pa.Table:
    """All rows of a DataFrame, whose columns are called as they may be in paths.

    Spark gives none of a VARIANT that is NULL, as parts of it would be NULL that may not be; so those are told apart.
    """
    held = [field for field in rows.schema if _holds_variant(field.dataType)]
    if not held:
        return rows.toArrow()
    kinds = {field.name: field.dataType for field in held}
    told = [_told(col(name), kinds[name]).alias(name) if name in kinds else col(name) for name in rows.columns]
    found = rows.select(*told).toArrow()
    for number, name in enumerate(found.column_names):
        if name in kinds:
            column = chunked_to_array(found.column(number))
            whole = _whole(column, kinds[name])
            found = found.set_column(number, pa.field(name, whole.type), whole)
    return found


def _holds_variant(kind: spark.DataType) -> bool:
    match kind:
        case spark.StructType():
            return any(_holds_variant(field.dataType) for field in kind)
        case spark.ArrayType():
            return _holds_variant(kind.elementType)
        case spark.MapType():
            return _holds_variant(kind.valueType)
    return isinstance(kind, spark.VariantType)


def _told(values: Column, kind: spark.DataType) -> Column:
    """Values with no VARIANT that is NULL: such, and structs around one, are a struct of whether they are, and that."""
    if not _holds_variant(kind):
        return values
    match kind:
        case spark.StructType():
            parts = [_told(values.getField(field.name), field.dataType).alias(field.name) for field in kind]
            return struct(values.isNull(), struct(*parts))
        case spark.ArrayType():
            return transform(values, lambda element: _told(element, kind.elementType))
        case spark.MapType():
            return transform_values(values, lambda _, value: _told(value, kind.valueType))
    return struct(values.isNull(), coalesce(values, parse_json(lit("null"))))


def _whole(told: pa.Array, kind: spark.DataType) -> pa.Array:
    """The values, as Spark has them in Arrow, of what ``_told`` made of them."""
    if not _holds_variant(kind):
        return told
    match kind:
        case spark.StructType():
            is_null, inner = told.field(0), told.field(1)
            parts = [_whole(inner.field(number), field.dataType) for number, field in enumerate(kind)]
            fields = [pa.field(field.name, part.type) for field, part in zip(kind, parts, strict=True)]
            return pa.StructArray.from_arrays(parts, fields=fields, mask=is_null)
        case spark.ArrayType():
            elements = _whole(child_arrays(told)[0], kind.elementType)
            return of_child_arrays(told, [elements], pa.list_(elements.type))
        case spark.MapType():
            keys, values = child_arrays(told)
            values = _whole(values, kind.valueType)
            return of_child_arrays(told, [keys, values], pa.map_(keys.type, values.type))
    parts = [told.field(1).field(number) for number in range(2)]
    return pa.StructArray.from_arrays(parts, fields=list(told.field(1).type), mask=told.field(0))


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
