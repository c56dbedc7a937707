"""The two keys of a table: columns by which rows are kept together, and columns that identify a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.types as is_

from fuse_storage.errors import InvalidArgument, SchemaError
from fuse_storage.metadata.snapshot import CLUSTER_METHODS, KEY_PROPERTY, Snapshot
from fuse_storage.primary_key.row_rules import row_rules
from fuse_storage.schema import types
from fuse_storage.schema.schema import Schema
from fuse_storage.schema.variant import is_variant
from fuse_storage.validation.features import PRIMARY_KEY_FEATURE

_MAX_CURVE_COLUMNS = 8
"""Columns of a space-filling curve: with more, each decides too little to be worth it."""


def cluster_by(snapshot: Snapshot, names: Sequence[str], method: str = "linear") -> Snapshot:
    """Give the snapshot with another clustering key, or without one; what is written already stays as it is.

    Raises SchemaError and InvalidArgument as ``cluster_column_ids``.
    """
    ids = cluster_column_ids(snapshot.schema, names, method)
    chosen = {"cluster_method": method} if ids and method != CLUSTER_METHODS[0] else {}
    properties = {name: value for name, value in snapshot.properties.items() if name != "cluster_method"} | chosen
    if (ids, properties) == (snapshot.cluster_ids, dict(snapshot.properties)):
        return snapshot
    return replace(snapshot, cluster_ids=ids, properties=properties)


def cluster_column_ids(schema: Schema, names: Sequence[str], method: str = "linear") -> tuple[int, ...]:
    """Look up the ids of the columns of a clustering key.

    Raises SchemaError for a column that cannot be in one, InvalidArgument for a method that there is not, or that takes
    another number of columns.
    """
    if method not in CLUSTER_METHODS:
        raise InvalidArgument(f"rows cannot be clustered by method {method!r}: there are {', '.join(CLUSTER_METHODS)}")
    leaves = {leaf.id for _, leaf in schema.leaves()}
    fields = [schema.find(name) for name in names]
    for position, (name, field) in enumerate(zip(names, fields, strict=True)):
        if field.id not in leaves:
            raise SchemaError(
                f"a table cannot be clustered by {name!r}, which is {field.type}: choose columns of plain types"
            )
        if field in fields[:position]:
            raise SchemaError(f"a table cannot be clustered by {name!r} twice: name it once")
    if method != CLUSTER_METHODS[0] and names and not 2 <= len(names) <= _MAX_CURVE_COLUMNS:
        raise InvalidArgument(
            f"a {method} curve goes through 2 to {_MAX_CURVE_COLUMNS} columns, and there are "
            f"{len(names)}: choose linear"
        )
    return tuple(field.id for field in fields)


class PrimaryKey(tuple[str, ...]):
    """Names of columns of a new table that has at most one row for each combination of their values, always."""


def key_by(snapshot: Snapshot, names: Sequence[str]) -> Snapshot:
    """Give the snapshot with another key, the columns that identify a row, or without one. Raises SchemaError.

    ``names``: of a ``PrimaryKey`` the columns become NOT NULL, rows are clustered by them unless by others, and the
    table keeps it for ever.
    """
    ids = key_column_ids(snapshot.schema, names)
    if isinstance(names, PrimaryKey):
        snapshot = _with_primary_key(snapshot, ids)
    else:
        row_rules(snapshot).check_key(ids)
    if ids == snapshot.key_ids:
        return snapshot
    properties = {name: value for name, value in snapshot.properties.items() if name != KEY_PROPERTY}
    return replace(snapshot, properties=properties | ({KEY_PROPERTY: list(ids)} if ids else {}))


def _with_primary_key(snapshot: Snapshot, ids: tuple[int, ...]) -> Snapshot:
    if not ids:
        raise InvalidArgument("a primary key has at least one column: name it, or leave primary_key out")
    schema = snapshot.schema
    fields = tuple(replace(field, nullable=field.nullable and field.id not in ids) for field in schema.fields)
    return replace(
        snapshot,
        schemas={**snapshot.schemas, schema.id: Schema(schema.id, fields)},
        cluster_ids=snapshot.cluster_ids or ids,
        writer_features=(*snapshot.writer_features, PRIMARY_KEY_FEATURE),
    )


def key_column_ids(schema: Schema, names: Sequence[str]) -> tuple[int, ...]:
    """Look up the ids of the columns of a key. Raises SchemaError for a column that cannot be in one."""
    fields = [schema.find([name]) for name in names]
    for position, field in enumerate(fields):
        if not is_exact_type(field.type):
            raise SchemaError(
                f"column {field.name!r} is {types.storage_type_name(field.type)}, which cannot be in a "
                f"key: choose whole numbers, decimals, text, days or times"
            )
        if field in fields[:position]:
            raise SchemaError(f"a key cannot have column {field.name!r} twice: name it once")
    return tuple(field.id for field in fields)


def is_exact_type(data_type: pa.DataType) -> bool:
    """Whether values of this type are equal or not, beyond doubt, and can be a key."""
    return not (is_.is_floating(data_type) or is_.is_nested(data_type) or is_variant(data_type))
