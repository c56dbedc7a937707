"""Columns with ids that are never reused.

A column is known by its id; its name may change. Its physical name, under which Parquet files hold it, is chosen once
and never reused, so that whoever matches by name can never take one column for another. Nested fields likewise.
Knows nothing of files or snapshots.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from fuse_storage.errors import SchemaError
from fuse_storage.lazy import cached_property
from fuse_storage.schema import types
from fuse_storage.schema.nested import child_fields, nested_type, nested_type_like
from fuse_storage.schema.nested_arrays import empty_table
from fuse_storage.schema.variant import is_variant

_PARQUET_FIELD_ID = b"PARQUET:field_id"


@dataclass(frozen=True)
class Field:
    """A column, or a part of a nested one: a struct's fields, a list's ``element``, a map's ``key`` and ``value``.

    A variant has the two binaries that files hold it as.

    ``type`` has logical names throughout. ``initial_default`` is what rows of files that lack the column hold, and
    ``write_default`` what is stored in rows that come without it (JSON-able, top level only; None is NULL).
    ``type_changed``: some files hold it in a narrower type.
    """

    id: int
    name: str
    physical_name: str
    type: pa.DataType
    nullable: bool = True
    initial_default: Any | None = None
    children: tuple[Field, ...] = ()
    type_changed: bool = False
    comment: str | None = None
    write_default: Any | None = None

    @property
    def arrow(self) -> pa.Field:
        """The Arrow form, as readers see it."""
        return pa.field(self.name, self.type, self.nullable)

    @property
    def parquet_field(self) -> pa.Field:
        """The Arrow form, as Parquet files hold it: physical names, and ids as documentation for other engines."""
        parts = [child.parquet_field for child in self.children]
        data_type = pa.struct(parts) if is_variant(self.type) else nested_type_like(self.type, parts)
        return pa.field(self.physical_name, data_type, self.nullable, {_PARQUET_FIELD_ID: str(self.id).encode()})

    @property
    def initial_scalar(self) -> pa.Scalar:
        """The initial default as a value of this type; null where there is none."""
        return types.decode_constant(self.initial_default, self.type)

    @property
    def write_scalar(self) -> pa.Scalar:
        """The write default as a value of this type; null where there is none."""
        return types.decode_constant(self.write_default, self.type)

    @property
    def may_be_missing(self) -> bool:
        """Whether rows may come without this column: they have its write default then, or NULL."""
        return self.nullable or self.write_default is not None

    @property
    def has_two_defaults(self) -> bool:
        """Whether rows that come without this column hold another value than files that lack it."""
        return bool(self.write_default != self.initial_default)

    @property
    def is_leaf(self) -> bool:
        return not self.children

    def walk(self) -> Iterator[Field]:
        """This field and all below it."""
        yield self
        for child in self.children:
            yield from child.walk()

    def to_json(self) -> dict[str, Any]:
        """The field as JSON, readable and stable; what is at its default is left out."""
        described: dict[str, Any] = {
            "id": self.id,
            "name": self.name,
            "type": types.storage_type_name(self.type),
            "nullable": self.nullable,
        }
        if self.physical_name != self.name:
            described["physical"] = self.physical_name
        if self.initial_default is not None:
            described["default"] = self.initial_default
        if self.has_two_defaults:
            described["write_default"] = self.write_default
        if self.type_changed:
            described["type_changed"] = True
        if self.comment is not None:
            described["comment"] = self.comment
        if self.children:
            described["fields"] = [child.to_json() for child in self.children]
        return described

    @staticmethod
    def from_json(described: Mapping[str, Any]) -> Field:
        """The field that ``to_json`` described. Raises Unsupported for a type of a newer version."""
        children = tuple(Field.from_json(child) for child in described.get("fields", ()))
        name = described["type"]
        data_type = (
            nested_type(name, [child.arrow for child in children]) if children else types.storage_type_from_name(name)
        )
        return Field(
            described["id"],
            described["name"],
            described.get("physical", described["name"]),
            data_type,
            described["nullable"],
            described.get("default"),
            children,
            described.get("type_changed", False),
            described.get("comment"),
            described.get("write_default", described.get("default")),
        )


@dataclass(frozen=True)
class Schema:
    """The columns of a table at one time. To other processes go these alone, and not what was worked out of them."""

    id: int
    fields: tuple[Field, ...]

    def __reduce__(self) -> tuple[type[Schema], tuple[Any, ...]]:
        return Schema, (self.id, self.fields)

    @staticmethod
    def create(schema: pa.Schema, schema_id: int = 0) -> Schema:
        """Number the columns, in order, from 1; types that Spark lacks are widened. Raises SchemaError."""
        _raise_if_duplicates(schema.names, "the table")
        return Schema(schema_id, tuple(assign_field_ids(schema, iter(range(1, 1 << 31)))))

    @cached_property
    def arrow(self) -> pa.Schema:
        """The Arrow form, as readers see it."""
        return pa.schema([field.arrow for field in self.fields])

    @cached_property
    def parquet_schema(self) -> pa.Schema:
        """The Arrow form, as Parquet files hold it."""
        return pa.schema([field.parquet_field for field in self.fields])

    @cached_property
    def required_parquet_schema(self) -> pa.Schema:
        """The Arrow form as files hold it in which no plain column has a NULL."""
        fields = self.parquet_schema
        return pa.schema([field if is_.is_nested(field.type) else field.with_nullable(False) for field in fields])

    @cached_property
    def allows_null(self) -> bool:
        """Whether NULL may be everywhere, at any depth."""
        return all(part.nullable for field in self.fields for part in field.walk())

    def empty_table(self) -> pa.Table:
        """A table of these columns without a row."""
        return empty_table(self.arrow)

    @property
    def names(self) -> list[str]:
        return [field.name for field in self.fields]

    def find(self, path: Sequence[str] | str, case_sensitive: bool = True, into_collections: bool = False) -> Field:
        """The field at a path; a text is a column's whole name or else a dotted path.

        ``into_collections``: paths may lead into arrays and maps, over ``element``, ``key`` and ``value``. Raises
        SchemaError naming near names.
        """
        if isinstance(path, str):
            path = [path] if _matching(self.fields, path, case_sensitive) else path.split(".")
        fields, field = self.fields, None
        for depth, name in enumerate(path):
            matching = _matching(fields, name, case_sensitive)
            if len(matching) != 1:
                from fuse_storage.schema.lookup import lookup_problem, no_fields_problem  # that few commands need

                if field is not None and not fields:
                    raise SchemaError(no_fields_problem(path, path[:depth], field.type))
                names = [each.name for each in fields]
                raise SchemaError(lookup_problem(".".join(path), name, path[:depth], names, len(matching)))
            field = matching[0]
            can_enter = is_.is_struct(field.type) or (into_collections and not is_variant(field.type))
            fields = field.children if can_enter else ()
        if field is None:
            raise SchemaError("an empty path names no column")
        return field

    @cached_property
    def _by_id(self) -> dict[int, Field]:
        return {field.id: field for top in self.fields for field in top.walk()}

    def by_id(self, field_id: int) -> Field:
        """The field with this id, nested ones too. Raises SchemaError."""
        if field_id not in self._by_id:
            raise SchemaError(f"no column has the id {field_id} in schema {self.id}")
        return self._by_id[field_id]

    @cached_property
    def _own_leaves(self) -> Sequence[tuple[tuple[str, ...], Field]]:
        return [leaf for field in self.fields for leaf in _leaves(field, ())]

    def leaves(self) -> Iterator[tuple[tuple[str, ...], Field]]:
        """The fields that have statistics, with their paths: plain ones, at the top or within structs."""
        return iter(self._own_leaves)

    @cached_property
    def _described_fields(self) -> Sequence[Mapping[str, Any]]:
        return [field.to_json() for field in self.fields]

    def to_json(self) -> dict[str, Any]:
        """The schema as JSON, as snapshots hold it."""
        return {"id": self.id, "fields": self._described_fields}

    @staticmethod
    def from_json(described: Mapping[str, Any]) -> Schema:
        """The schema that ``to_json`` described. Raises Unsupported for a type of a newer version."""
        return Schema(described["id"], tuple(Field.from_json(field) for field in described["fields"]))


def assign_field_ids(fields: Iterable[pa.Field], ids: Iterator[int], used_names: Iterable[str] = ()) -> list[Field]:
    """New fields, with the next ids, parents before children.

    ``used_names``: physical names that Parquet files already have at this level.
    """
    used = {name.lower() for name in used_names}
    numbered: list[Field] = []
    for field in fields:
        field_id = next(ids)
        # dots separate the parts of a Parquet path
        physical = _unused_name(field.name.replace(".", "_"), field_id, used)
        used.add(physical.lower())
        data_type = types.to_storage_type(field.type, field.name)
        parts = child_fields(data_type)
        if is_.is_struct(data_type):
            _raise_if_duplicates([part.name for part in parts], f"struct {field.name!r}")
        children = tuple(assign_field_ids(parts, ids))
        comment = (field.metadata or {}).get(b"comment")
        data_type = nested_type_like(data_type, [child.arrow for child in children])
        numbered.append(
            Field(
                field_id,
                field.name,
                physical,
                data_type,
                field.nullable,
                None,
                children,
                False,
                comment and comment.decode(),
            )
        )
    return numbered


def _unused_name(name: str, field_id: int, used: Container[str]) -> str:
    """Spark matches Parquet names without case by default, so names that differ only in case count as one."""
    while name.lower() in used:
        name = f"{name}_{field_id}"
    return name


def _leaves(field: Field, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Field]]:
    path = (*above, field.name)
    if field.is_leaf:
        yield path, field
    elif is_.is_struct(field.type):
        for child in field.children:
            yield from _leaves(child, path)


def _matching(fields: Sequence[Field], name: str, case_sensitive: bool) -> list[Field]:
    exact = [field for field in fields if field.name == name]
    return exact if case_sensitive else [field for field in fields if field.name.lower() == name.lower()]


def _raise_if_duplicates(names: Iterable[str], where: str) -> None:
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise SchemaError(f"{where} has more than one column called {twice[0]!r}: rename one")
