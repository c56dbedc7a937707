"""Columns, keys and properties as statements of Spark define them, in the words of a table's own.

In: parts of requests, as ``CatalogClient.java`` writes them. Out: Arrow schemas, values, names.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.types as is_
from pyspark.sql.types import StructField, StructType

from fuse_index.errors import InputError
from fuse_index.expressions.errors import UnsupportedExpression
from fuse_index.expressions.types import is_compound
from fuse_index.spark.protocol.changes import ColumnDefinition, Transform, TypedColumn, UpdateColumnDefaultValue
from fuse_index.spark.protocol.requests import DefineTableRequest
from fuse_index.spark.schemas import to_arrow_schema
from fuse_index.spark.text_limits import find_text_limits
from fuse_index.sql.catalyst_terms import decode_catalyst_value
from fuse_storage import KNOWN_PROPERTIES, Field, Schema, is_variant

_PROVIDERS = ("fuse", "parquet")
"""What may come as the format: ``saveAsTable`` says Parquet without being asked. A statement may not
(``CatalogTableRule.java``).
"""
_CLUSTER_TRANSFORMS, _PARTITION_TRANSFORM = ("cluster_by", "temp_cluster_by"), "identity"
"""The second is what Delta's parser makes of CLUSTER BY, where a session has it, in statements of all catalogues."""
COLLATION_PROPERTY_NAME = "collation"
_RESERVED = (
    *("provider", "location", "owner", "comment", "external", "is_managed_location", "table_type"),
    COLLATION_PROPERTY_NAME,
)
"""Properties by which Spark tells what its grammar has clauses for."""
_PLAIN_COLLATION = "UTF8_BINARY"

KEY_PROPERTY_NAME = "key"
PRIMARY_KEY_PROPERTY_NAME = "primary_key"
NOT_NULL_PROPERTY_NAME = "not_null"
CLUSTER_PROPERTY_NAME = "cluster_by"
"""Properties by which Spark shows the key of a table, or its primary key, what is NOT NULL, and by what a partitioned
table is clustered, for which it has no other place: names with commas between them, of what is within a column a path
(``home.city``, ``tags.element``, ``prices.value``).
"""


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """What CREATE TABLE says.

    ``text_limits``: of VARCHAR, by the paths of what has them; ``defaults``: by the names of columns;
    ``location``: None unless it says where.
    """

    schema: pa.Schema
    text_limits: Mapping[tuple[str, ...], int]
    defaults: Mapping[str, Any]
    key: tuple[str, ...]
    primary_key: tuple[str, ...]
    cluster_by: tuple[str, ...]
    partition_by: tuple[str, ...]
    properties: Mapping[str, Any]
    about: Mapping[str, str]
    location: str | None


def parse_definition(request: DefineTableRequest) -> TableDefinition:
    """The definition of a request. Raises InputError, SchemaError for what a table cannot have."""
    columns, given = request.columns, request.properties
    provider = given.get("provider", "fuse")
    if provider.lower() not in _PROVIDERS:
        raise InputError(f"a table of this catalogue is of format fuse, and not {provider!r}: leave USING out")
    check_collation(given)
    about = {name: given[name] for name in ("comment", "owner") if name in given}
    defaults = {column.path[0]: parse_default(column) for column in columns if column.has_default}
    keys = (KEY_PROPERTY_NAME, PRIMARY_KEY_PROPERTY_NAME)
    if all(name in given for name in keys):
        raise InputError("a table has a key or a primary_key: the rows of a key may be several, of a primary_key one")
    primary_key = split_column_names(given.get(PRIMARY_KEY_PROPERTY_NAME, ""))
    if PRIMARY_KEY_PROPERTY_NAME in given and not primary_key:
        raise InputError(f"{PRIMARY_KEY_PROPERTY_NAME} = '' names no column: name those of the key, or leave it out")
    elsewhere = (*_RESERVED, *keys, NOT_NULL_PROPERTY_NAME, CLUSTER_PROPERTY_NAME)
    partition_by, cluster_by = _parse_partitioning(request.partitioning)
    return TableDefinition(
        _parse_columns(columns, split_column_names(given.get(NOT_NULL_PROPERTY_NAME, ""))),
        {path: limit for column in columns for path, limit in parse_text_limits(column).items()},
        defaults,
        split_column_names(given.get(KEY_PROPERTY_NAME, "")),
        primary_key,
        cluster_by or split_column_names(given.get(CLUSTER_PROPERTY_NAME, "")),
        partition_by,
        parse_properties({name: value for name, value in given.items() if name not in elsewhere}),
        about,
        _parse_location(given.get("location")),
    )


def check_collation(properties: Mapping[str, str]) -> None:
    """Raise InputError for a DEFAULT COLLATION by which texts would not be compared as they are."""
    collation = properties.get(COLLATION_PROPERTY_NAME, _PLAIN_COLLATION)
    if collation.upper() != _PLAIN_COLLATION:
        raise InputError(
            f"DEFAULT COLLATION {collation} cannot be: tables keep no collations, so leave it out, or say "
            f"{_PLAIN_COLLATION}"
        )


def split_column_names(text: str) -> tuple[str, ...]:
    """The names in the value of a property."""
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _parse_columns(columns: Sequence[ColumnDefinition], not_null: Sequence[str]) -> pa.Schema:
    fields = [parse_field(column) for column in columns]
    names, found = [field.name for field in fields], set[str]()
    within = frozenset(not_null).difference(names)  # a whole name comes before a path
    required = [
        _with_not_null(field.with_nullable(field.nullable and field.name not in not_null), field.name, within, found)
        for field in fields
    ]
    if fields and (unknown := [path for path in not_null if path not in found.union(names)]):
        raise InputError(f"{NOT_NULL_PROPERTY_NAME} names the column {unknown[0]!r}, and there are {', '.join(names)}")
    return pa.schema(required)


def _with_not_null(field: pa.Field, path: str, not_null: Set[str], found: set[str]) -> pa.Field:
    """The column at a path, with NOT NULL where it is said of what is within; ``found``: gains those paths."""

    def part(inner: pa.Field, name: str) -> pa.Field:
        inner_path = f"{path}.{name}"
        if inner_path in not_null:
            found.add(inner_path)
            inner = inner.with_nullable(False)
        return _with_not_null(inner.with_name(name), inner_path, not_null, found)

    kind = field.type
    if is_.is_struct(kind):
        kind = pa.struct([part(inner, inner.name) for inner in kind])
    elif is_.is_map(kind):
        kind = pa.map_(part(kind.key_field, "key"), part(kind.item_field, "value"))
    elif is_.is_list(kind):
        kind = pa.list_(part(kind.value_field, "element"))
    return field.with_type(kind)


def describe_not_null(schema: Schema) -> str:
    """What ``parse_definition`` takes for the columns of a schema that are NOT NULL, and the parts of columns."""
    return ", ".join(path for field in schema.fields for path in _not_null_paths(field, field.name))


def _not_null_paths(field: Field, path: str) -> Iterator[str]:
    if not field.nullable:
        yield path
    for child in () if is_variant(field.type) else field.children:
        paths = _not_null_paths(child, f"{path}.{child.name}")
        yield from (each for each in paths if not (is_.is_map(field.type) and each == f"{path}.key"))


def parse_field(column: ColumnDefinition) -> pa.Field:
    """A column, or the field at the end of a path, with its comment. Raises SchemaError."""
    field = _arrow_field(column).with_nullable(column.nullable)
    return field if column.comment is None else field.with_metadata({"comment": column.comment})


def parse_column_type(column: TypedColumn) -> pa.DataType:
    """The type of a column, or of the field at the end of a path. Raises SchemaError."""
    return _arrow_field(column).type


def parse_text_limits(column: TypedColumn) -> dict[tuple[str, ...], int]:
    """The limits of a column, or of the field at the end of a path, by the paths of what has them.

    Raises SchemaError for CHAR.
    """
    return dict(find_text_limits(_spark_field(column).dataType, column.path))


def _arrow_field(column: TypedColumn) -> pa.Field:
    return to_arrow_schema(StructType([_spark_field(column)])).field(0)


def _spark_field(column: TypedColumn) -> StructField:
    return StructField.fromJson({"name": column.path[-1], "type": column.type, "nullable": True, "metadata": {}})


def parse_default(column: ColumnDefinition) -> Any:
    """The value of a column's DEFAULT, which must be one value for all rows. Raises InputError."""
    return parse_default_of(column, parse_column_type(column))


def parse_default_of(change: ColumnDefinition | UpdateColumnDefaultValue, data_type: pa.DataType) -> Any:
    """The value of a DEFAULT of a column of this type. Raises InputError."""
    if change.default is None:
        return None
    if is_variant(data_type):
        raise InputError(f"column {change.path[-1]!r} is VARIANT and cannot have a DEFAULT: leave it NULL")
    if change.default is not msgspec.UNSET and not is_compound(data_type):
        try:
            return decode_catalyst_value(change.default, data_type)
        except UnsupportedExpression:
            raise InputError(
                f"column {change.path[-1]!r} cannot have this DEFAULT: days and times of the years 1 to 9999 can be"
            ) from None
    raise InputError(
        f"column {change.path[-1]!r} cannot have this DEFAULT: one constant of a plain type, and not of binary, can be"
    )


def parse_properties(texts: Mapping[str, str]) -> dict[str, Any]:
    """Properties of a table, of which those that mean something are numbers where they look like ones."""
    return {name: _parse_value(value) if name in KNOWN_PROPERTIES else value for name, value in texts.items()}


def parse_index_options(texts: Mapping[str, str]) -> dict[str, Any]:
    """Options of an index kind: JSON where they are that, else texts."""
    return {name: _parse_value(value) for name, value in texts.items()}


def join_path(path: Sequence[str]) -> str:
    """A path as a table's own methods take it."""
    return ".".join(path)


def _parse_value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def _parse_location(location: str | None) -> str | None:
    """A place as our stores know it: Hadoop writes ``file:/path``, which would be a folder called ``file:``."""
    if location is not None and location.startswith("file:/") and not location.startswith("file://"):
        return location.removeprefix("file:")
    return location


def _parse_partitioning(transforms: Sequence[Transform]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of PARTITIONED BY, and those of CLUSTER BY."""
    partition_by: list[str] = []
    cluster_by: list[str] = []
    for transform in transforms:
        names = [join_path(path) for path in transform.columns]
        if transform.transform in _CLUSTER_TRANSFORMS:
            cluster_by += names
        elif transform.transform == _PARTITION_TRANSFORM:
            partition_by += names
        else:
            raise InputError(
                f"PARTITIONED BY {transform.transform}({', '.join(names)}) cannot be: partition by a column as it "
                f"is, such as one of type DATE, or say CLUSTER BY ({', '.join(names)})"
            )
    return tuple(partition_by), tuple(cluster_by)
