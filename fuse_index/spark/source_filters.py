"""Filters that Spark pushes into a Python data source, as predicates.

Spark pushes only conjuncts of the form (column, simple comparison, constant), and only where the constant has the
column's own type; the value travels through a VARIANT and comes back as a plain Python object. Whatever does not
fit the column's type exactly becomes Opaque, which never prunes: Spark evaluates every filter again after the scan, so
nothing here may raise, and nothing here may be more selective than the filter. Spark has these classes from 4.1 on, so
this module is imported only where filters are pushed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import datasource as spark

from fuse_index.predicate import (
    And,
    Column,
    Compare,
    Contains,
    EndsWith,
    In,
    IsNull,
    Leaf,
    Literal,
    Not,
    Opaque,
    Operator,
    Predicate,
    StartsWith,
)
from fuse_index.reasons import Reason
from fuse_storage import Schema, StorageError

OPERATORS: dict[type[spark.Filter], Operator] = {
    spark.EqualTo: "=",
    spark.EqualNullSafe: "<=>",
    spark.GreaterThan: ">",
    spark.GreaterThanOrEqual: ">=",
    spark.LessThan: "<",
    spark.LessThanOrEqual: "<=",
}
MATCHERS: dict[type[spark.Filter], type[StartsWith] | type[EndsWith] | type[Contains]] = {
    spark.StringStartsWith: StartsWith,
    spark.StringEndsWith: EndsWith,
    spark.StringContains: Contains,
}


def translate(filters: Iterable[spark.Filter], schema: Schema) -> And:
    """The conjunction of ``filters`` over a table's ``schema``; never raises."""
    return And(tuple(_predicate(one, schema) for one in filters))


def _predicate(one: spark.Filter, schema: Schema) -> Predicate:
    if isinstance(one, spark.Not):
        return Not(_predicate(one.child, schema))
    if isinstance(one, spark.IsNotNull):
        return Not(_leaf(spark.IsNull(one.attribute), schema))
    return _leaf(one, schema)


def _leaf(one: spark.Filter, schema: Schema) -> Leaf:
    try:
        column = _column(one.attribute, schema)  # type: ignore[attr-defined]  # every filter but Not has one
    except (AttributeError, StorageError):
        return Opaque(repr(one))
    try:
        return _on_column(one, column)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return Opaque(repr(one), Reason.TYPE_MISMATCH)


def _on_column(one: spark.Filter, column: Column) -> Leaf:
    match one:
        case spark.IsNull():
            return IsNull(column)
        case spark.In(value=values):
            return In(column, tuple(_literal(value, column.type) for value in values))
        case _ if type(one) in OPERATORS:
            return Compare(OPERATORS[type(one)], column, _literal(one.value, column.type))  # type: ignore[attr-defined]
        case _ if type(one) in MATCHERS and _is_text(column.type):
            return MATCHERS[type(one)](column, _literal(one.value, column.type))  # type: ignore[attr-defined]
        case _:  # a later Spark's new filter
            return Opaque(repr(one))


def _column(path: Sequence[str], schema: Schema) -> Column:
    """Spark names columns in the spelling of the schema that the source gave it, so case matters here."""
    return Column(tuple(path), schema.find(tuple(path), case_sensitive=True).type)


def _literal(value: Any, type: pa.DataType) -> Literal:
    """Raises where ``value`` is not exactly a value of ``type``."""
    if pa.types.is_nested(type):
        raise TypeError(f"{type} values are not compared")
    scalar = pa.scalar(value, type)
    back = scalar.as_py()
    if value is not None and back != value and not (back != back and value != value):  # NaN is itself
        raise ValueError(f"{value!r} is not exactly a value of {type}")
    return Literal(back, type)


def _is_text(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type))
