"""The columns of a source as those of a table: known again across states, by their ids or by their names in files."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from fuse_storage.commit.schema_evolution import can_widen
from fuse_storage.errors import SchemaError
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.schema import types
from fuse_storage.schema.names import check_names
from fuse_storage.schema.nested import child_fields, nested_type_like
from fuse_storage.schema.nested_arrays import file_type, holds_variant
from fuse_storage.schema.schema import Field, Schema
from fuse_storage.schema.variant import is_variant

_MAX_COLUMN_ID = (1 << 31) - 1


@dataclass(frozen=True, slots=True)
class SourceColumn:
    """A column of a source, or a part of one. ``type`` says which parts there are; their names are in ``children``.

    ``physical_name``: in files. ``id``: Parquet's field id, where files are read by it; else None. ``write_default``:
    what the source's writers store in rows that come without a column, as JSON has defaults; None is NULL.
    """

    name: str
    physical_name: str
    type: pa.DataType
    id: int | None = None
    comment: str | None = None
    children: tuple[SourceColumn, ...] = ()
    write_default: Any | None = None


def plain_source_columns(schema: Iterable[pa.Field]) -> tuple[SourceColumn, ...]:
    """Columns that are called in files what they are called."""
    return tuple(
        SourceColumn(each.name, each.name, each.type, children=plain_source_columns(_parts(each.type)))
        for each in schema
    )


def _parts(kind: pa.DataType) -> list[pa.Field]:
    if is_.is_map(kind):
        return [kind.key_field.with_name("key"), kind.item_field.with_name("value")]
    if is_.is_struct(kind) or is_variant(kind):
        return child_fields(kind)
    return [kind.value_field.with_name("element")] if types.is_list_type(kind) else []


def variant_types(columns: Iterable[SourceColumn | Field]) -> dict[str, pa.DataType]:
    """The types of columns that are VARIANT or have one in them, with the names of files throughout, by these."""
    return {each.physical_name: file_type(each) for each in columns if holds_variant(each.type)}


@dataclass
class ColumnMatch:
    """The columns of a source's state, matched with those of a table's snapshot.

    ``fields``: with ids. ``reread``: what blocks that are there say of columns may not hold for these: a name that
    files had comes back, or a type became another one.
    """

    snapshot: Snapshot
    unread: frozenset[str]
    reread: bool = False
    fields: tuple[Field, ...] = ()
    _ids: Iterator[int] = field(init=False)

    @classmethod
    def of(cls, snapshot: Snapshot, columns: Sequence[SourceColumn]) -> ColumnMatch:
        """Raises SchemaError for columns that no table can have."""
        unread = () if snapshot.source is None else snapshot.source["unread"]
        match = cls(snapshot, frozenset(unread))
        match._ids = iter(range(max([snapshot.last_column_id, *_ids_of(columns)]) + 1, _MAX_COLUMN_ID))
        match.fields = match._match(columns, snapshot.schema.fields, "")
        check_names(match.fields)
        return match

    def _match(self, columns: Sequence[SourceColumn], known: Sequence[Field], above: str) -> tuple[Field, ...]:
        by_id = {each.id: each for each in known}
        by_name = {each.physical_name: each for each in known}
        taken = {each.physical_name.lower() for each in known}
        return tuple(
            self._matched(
                each, by_name.get(each.physical_name) if each.id is None else by_id.get(each.id), above, taken
            )
            for each in columns
        )

    def _matched(self, column: SourceColumn, before: Field | None, above: str, taken: set[str]) -> Field:
        path = above + column.physical_name
        if above and "." in column.physical_name and column.id is None:
            raise SchemaError(f"part {path!r} of a column has a dot in its name, which could be a path: rename it")
        if before is not None and _kind(before.type) != _kind(column.type):
            self.reread, before = True, None
        if before is None:
            return self._new(column, path, taken)
        before = replace(before, write_default=column.write_default)
        children = self._match(column.children, before.children, f"{path}.")
        if column.children:
            kind = nested_type_like(before.type, [child.arrow for child in children])
            return replace(before, name=column.name, type=kind, children=children, comment=column.comment)
        kind = types.to_storage_type(column.type, path)
        if kind == before.type:
            return replace(before, name=column.name, comment=column.comment)
        self.reread = self.reread or not can_widen(before.type, kind)
        return replace(before, name=column.name, type=kind, comment=column.comment, type_changed=True)

    def _new(self, column: SourceColumn, path: str, taken: set[str]) -> Field:
        """Make the field of a column the table lacks, with a physical name never used before. Mutates ``taken``."""
        if column.id is not None:
            field_id, physical = column.id, column.physical_name.replace(".", "_").replace("#", "_")
            was_there = field_id in self.snapshot.names or any(
                name.rpartition(".")[2] == f"#{field_id}" for name in self.unread
            )
            physical = f"{physical}_{field_id}" if was_there else physical
            while physical.lower() in taken or self._is_used(physical):
                physical = f"{physical}_{field_id}"
        else:
            field_id, physical = next(self._ids), column.physical_name
            was_there = path in self.unread or self._is_used(column.physical_name)
        taken.add(physical.lower())
        self.reread = self.reread or was_there
        below = set[str]()
        children = tuple(self._new(child, f"{path}.{child.physical_name}", below) for child in column.children)
        kind = types.to_storage_type(column.type, path)
        kind = nested_type_like(kind, [child.arrow for child in children])
        made = Field(field_id, column.name, physical, kind, True, None, children, False, column.comment)
        return replace(made, write_default=column.write_default)

    def _is_used(self, physical: str) -> bool:
        lower = physical.lower()
        if self.snapshot.source is None or self.snapshot.source["version"] is None:
            return False
        return any(lower == name.lower() for names in self.snapshot.names.values() for name in names)


def _ids_of(columns: Sequence[SourceColumn]) -> Iterator[int]:
    for each in columns:
        yield from [] if each.id is None else [each.id]
        yield from _ids_of(each.children)


def _kind(kind: pa.DataType) -> str:
    """The nested type's name, or VARIANT's; '' for any scalar, since scalars may widen into each other."""
    return types.storage_type_name(kind) if is_.is_nested(kind) or is_variant(kind) else ""


def mark_narrower(fields: Sequence[Field], ids: Container[int]) -> tuple[Field, ...]:
    """The columns, those of these ids marked as narrower in some files: Spark's reader must not filter by them."""
    return tuple(
        replace(
            each,
            type_changed=each.type_changed or each.id in ids,
            children=mark_narrower(each.children, ids),
        )
        for each in fields
    )


def evolve_to(snapshot: Snapshot, fields: tuple[Field, ...]) -> Snapshot:
    """The snapshot with these columns, under another schema id if they are others than it has."""
    if fields == snapshot.schema.fields:
        return snapshot
    schema = Schema(max(snapshot.schemas) + 1, fields)
    parts = [part for top in fields for part in top.walk()]
    names = {
        part.id: tuple(dict.fromkeys([*snapshot.names.get(part.id, ()), part.physical_name, part.name]))
        for part in parts
    }
    leaves = {leaf.id for _, leaf in schema.leaves()}
    return replace(
        snapshot,
        schema_id=schema.id,
        schemas={**snapshot.schemas, schema.id: schema},
        names={**snapshot.names, **names},
        last_column_id=max([snapshot.last_column_id, *(part.id for part in parts)]),
        cluster_ids=tuple(each for each in snapshot.cluster_ids if each in leaves),
    )
