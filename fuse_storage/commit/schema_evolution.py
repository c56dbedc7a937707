"""Columns are changed without rewriting blocks: each step gives a snapshot with other columns, or says why not.

No block is rewritten: a block keeps the schema it was written with, and readers fit its rows to the present one. So
only what they can do is allowed: names and order at will, new columns with one value in all old rows, and types that
hold every value of the old one, in the reading of Spark too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.types as is_

from fuse_storage.commit.table_keys import is_exact_type
from fuse_storage.errors import SchemaError
from fuse_storage.metadata.snapshot import Snapshot
from fuse_storage.primary_key.row_rules import row_rules
from fuse_storage.schema import types
from fuse_storage.schema.defaults import encode_column_default
from fuse_storage.schema.names import check_names
from fuse_storage.schema.nested import nested_type_like
from fuse_storage.schema.schema import Field, Schema, assign_field_ids

SchemaChange = Callable[[Snapshot], Snapshot]
"""From a snapshot to one with other columns. Raises SchemaError."""
_Siblings = tuple[Field, ...]

_DECIMAL_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
"""Decimal digits of integers that Spark's reader widens to decimals."""
_WIDER_TYPES: Mapping[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.int8(): (pa.int16(), pa.int32(), pa.int64(), pa.float64()),
    pa.int16(): (pa.int32(), pa.int64(), pa.float64()),
    pa.int32(): (pa.int64(), pa.float64()),
    pa.float32(): (pa.float64(),),
    pa.date32(): (pa.timestamp("us"),),
}
"""What a type is widened to, besides decimals: what Arrow and Spark's vectorised reader both widen without loss."""


def add_column(
    snapshot: Snapshot,
    path: str | tuple[str, ...],
    data_type: pa.DataType,
    default: Any = None,
    nullable: bool = True,
    after: str | None = None,
) -> Snapshot:
    """Add a column, or with dots in ``path`` a field of a struct; last, or ``after`` a sibling ("" is first).

    As for all steps, structs may be within arrays and maps: ``items.element.price``, ``prices.value.net``; names with
    dots are given as a tuple. ``default``: what rows that are there already hold, and such as come without it. Raises
    SchemaError.
    """
    above, name = _split_path(snapshot.schema, path)
    path = path if isinstance(path, str) else ".".join(path)
    if above and default is not None:
        raise SchemaError(
            f"field {path!r} cannot have a default: Spark's reader fills only whole columns; leave it NULL"
        )
    if not nullable and (default is None or above):
        raise SchemaError(
            f"column {path!r} cannot be NOT NULL: the rows that are there have no value of it; give a default"
        )
    ids = iter(range(snapshot.last_column_id + 1, 1 << 31))
    (added,) = assign_field_ids([pa.field(name, data_type, nullable)], ids, _names_used(snapshot))
    default = encode_column_default(default, added)
    added = replace(added, initial_default=default, write_default=default)
    check_names([added])

    def edit(siblings: _Siblings) -> _Siblings:
        _raise_if_taken(name, siblings, path)
        return _insert_after(siblings, added, after, path)

    last = max(part.id for part in added.walk())
    names = {**snapshot.names, **{part.id: (part.name,) for part in added.walk()}}
    return replace(_edit_fields(snapshot, above, edit), last_column_id=last, names=names)


def drop_column(snapshot: Snapshot, path: str) -> Snapshot:
    """Drop a column or field; blocks keep what they hold of it. Raises SchemaError."""
    field, (above, name) = snapshot.schema.find(path, into_collections=True), _split_path(snapshot.schema, path)
    dropped_ids = {part.id for part in field.walk()}
    if field.id in snapshot.key_ids:
        why = row_rules(snapshot).why_key_stays
        raise SchemaError(f"column {path!r} cannot be dropped: it is of the {why}")
    if keys := [column_id for column_id in snapshot.cluster_ids if column_id in dropped_ids]:
        raise SchemaError(
            f"column {path!r} cannot be dropped: the table is clustered by {snapshot.schema.by_id(keys[0]).name!r}"
        )
    if any(
        name == "key" and is_.is_map(snapshot.schema.find(above[:depth], into_collections=True).type)
        for depth, name in enumerate(above)
        if depth
    ):
        raise SchemaError(f"{path!r} cannot be dropped: keys of a map that differ in it alone would become equal")

    def edit(siblings: _Siblings) -> _Siblings:
        if len(siblings) == 1:
            raise SchemaError(
                f"{path!r} cannot be dropped: it is the last "
                f"{'field of its struct' if above else 'column of the table'}"
            )
        return tuple(field for field in siblings if field.name != name)

    return _edit_fields(snapshot, above, edit)


def rename_column(snapshot: Snapshot, path: str, to: str) -> Snapshot:
    """Rename a column or field; ``to`` is a name, not a path. Raises SchemaError."""
    field, (above, _) = snapshot.schema.find(path, into_collections=True), _split_path(snapshot.schema, path)
    check_names([replace(field, name=to, children=())])

    def edit(siblings: _Siblings) -> _Siblings:
        _raise_if_taken(to, [sibling for sibling in siblings if sibling.id != field.id], to)
        return tuple(replace(sibling, name=to) if sibling.id == field.id else sibling for sibling in siblings)

    names = {**snapshot.names, field.id: tuple(dict.fromkeys([*snapshot.names.get(field.id, ()), to]))}
    return replace(_edit_fields(snapshot, above, edit), names=names)


def move_column(snapshot: Snapshot, path: str, after: str) -> Snapshot:
    """Move a column or field right after a sibling, or first where ``after`` is empty. Raises SchemaError."""
    field, (above, _) = snapshot.schema.find(path, into_collections=True), _split_path(snapshot.schema, path)

    def edit(siblings: _Siblings) -> _Siblings:
        return _insert_after(tuple(sibling for sibling in siblings if sibling.id != field.id), field, after, path)

    return _edit_fields(snapshot, above, edit)


def change_type(snapshot: Snapshot, path: str | tuple[str, ...], data_type: pa.DataType) -> Snapshot:
    """Change a column to a type that holds all of its values. Raises SchemaError, saying to which it can be changed."""
    field, place = snapshot.schema.find(path, into_collections=True), path
    path = path if isinstance(path, str) else ".".join(path)
    new_type = types.to_storage_type(data_type, path)
    if new_type == field.type:
        return snapshot
    if not can_widen(field.type, new_type):
        others = [types.storage_type_name(wider) for wider in _WIDER_TYPES.get(field.type, ())]
        others += _decimal_hints(field.type)
        known = f"it can become {', '.join(others)}" if others else "types like it cannot be widened"
        raise SchemaError(
            f"column {path!r} is {types.storage_type_name(field.type)} and cannot become "
            f"{types.storage_type_name(new_type)} without rewriting it: {known}"
        )
    if field.id in snapshot.key_ids and not is_exact_type(new_type):
        raise SchemaError(
            f"column {path!r} is of the table's key, and cannot become {types.storage_type_name(new_type)}: "
            f"choose a type of exact values"
        )
    initial, write = (
        encode_column_default(each.cast(new_type).as_py(), field, new_type)
        for each in (field.initial_scalar, field.write_scalar)
    )
    changed = replace(field, type=new_type, type_changed=True, initial_default=initial, write_default=write)
    return _replace_field(snapshot, place, changed)


def set_comment(snapshot: Snapshot, path: str | tuple[str, ...], comment: str | None) -> Snapshot:
    """Say what a column or field is for; None takes the comment away. Raises SchemaError."""
    field = snapshot.schema.find(path, into_collections=True)
    return _replace_field(snapshot, path, replace(field, comment=comment))


def set_nullable(snapshot: Snapshot, path: str, nullable: bool) -> Snapshot:
    """Let a column or field be NULL, or a column no more: the caller has seen that it never is. Raises SchemaError."""
    field, above = snapshot.schema.find(path, into_collections=True), _parent_path(snapshot.schema, path)
    if above and not nullable:
        raise SchemaError(f"field {path!r} cannot be made NOT NULL: only whole columns can, once there are blocks")
    return _replace_field(snapshot, path, replace(field, nullable=nullable))


def set_default(snapshot: Snapshot, name: str, value: Any) -> Snapshot:
    """Choose what a column holds in rows that come without it; None is NULL. Raises SchemaError.

    Rows that are there keep what they hold: files that lack the column have its initial default, which changes only as
    long as there are none.
    """
    field = snapshot.schema.find([name])
    encoded = encode_column_default(value, field)
    initial = field.initial_default if snapshot.row_count else encoded
    changed = replace(field, initial_default=initial, write_default=encoded)
    return _edit_fields(snapshot, (), lambda fields: tuple(changed if each is field else each for each in fields))


def _replace_field(snapshot: Snapshot, path: str | tuple[str, ...], changed: Field) -> Snapshot:
    def edit(siblings: _Siblings) -> _Siblings:
        return tuple(changed if sibling.id == changed.id else sibling for sibling in siblings)

    return _edit_fields(snapshot, _parent_path(snapshot.schema, path), edit)


def _edit_fields(snapshot: Snapshot, above: Sequence[str], edit: Callable[[_Siblings], _Siblings]) -> Snapshot:
    """Give the snapshot a new schema, in which the columns, or the fields of the struct at ``above``, are edited."""
    fields = _edit_fields_at(snapshot.schema.fields, above, edit)
    if fields == snapshot.schema.fields:
        return snapshot
    schema = Schema(max(snapshot.schemas) + 1, fields)
    return replace(snapshot, schema_id=schema.id, schemas={**snapshot.schemas, schema.id: schema})


def _edit_fields_at(fields: _Siblings, above: Sequence[str], edit: Callable[[_Siblings], _Siblings]) -> _Siblings:
    if not above:
        return edit(fields)
    return tuple(
        _with_children(field, _edit_fields_at(field.children, above[1:], edit)) if field.name == above[0] else field
        for field in fields
    )


def _with_children(field: Field, children: _Siblings) -> Field:
    return replace(field, children=children, type=nested_type_like(field.type, [child.arrow for child in children]))


def _raise_if_taken(name: str, siblings: Sequence[Field], path: str) -> None:
    """Raise SchemaError if a sibling has this name but for case, which Spark passes over; ``path`` is said of it."""
    for sibling in siblings:
        if sibling.name.lower() == name.lower():
            there = (
                repr(path) if sibling.name == name else f"{sibling.name!r}, from which {path!r} differs only in case,"
            )
            raise SchemaError(f"there is a column {there} already: choose another name, or rename that one")


def _split_path(schema: Schema, path: str | tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    """Split a path into that of the struct that the field is in, empty for a column, and its name.

    Raises SchemaError if what it is in is no struct.
    """
    above = _parent_path(schema, path)
    name = path[-1] if isinstance(path, tuple) else path.rpartition(".")[2] if above else path
    if above and not is_.is_struct((parent := schema.find(above, into_collections=True)).type):
        parts = [".".join((*above, part.name)) for part in parent.children]
        hint = f"; what it holds is at {' and '.join(map(repr, parts))}" if parts else ""
        within, kind = ".".join(above), types.storage_type_name(parent.type)
        raise SchemaError(f"{f'{within}.{name}'!r} is no field: {within!r} is {kind}, not a struct{hint}")
    return above, name


def _parent_path(schema: Schema, path: str | tuple[str, ...]) -> tuple[str, ...]:
    """Give the path of what a field is in; empty for a column, also for one with dots in its name."""
    if isinstance(path, tuple):
        return path[:-1]
    above, dot, _ = path.rpartition(".")
    if not dot or path in schema.names:
        return ()
    return (above,) if above in schema.names else tuple(above.split("."))


def _insert_after(siblings: _Siblings, field: Field, after: str | None, path: str) -> _Siblings:
    if after is None:
        return (*siblings, field)
    names = [sibling.name for sibling in siblings]
    if after and after not in names:
        raise SchemaError(f"{path!r} cannot come after {after!r}: beside it there are {names}")
    position = names.index(after) + 1 if after else 0
    return (*siblings[:position], field, *siblings[position:])


def _names_used(snapshot: Snapshot) -> set[str]:
    """Collect every name that a column ever had here, and every name in files: none is used for another column's."""
    parts = [part for schema in snapshot.schemas.values() for top in schema.fields for part in top.walk()]
    return {name for names in snapshot.names.values() for name in names} | {part.physical_name for part in parts}


def can_widen(old: pa.DataType, new: pa.DataType) -> bool:
    """Tell whether every value of the old type is one of the new type, for all readers.

    A type does not widen itself.
    """
    if is_.is_decimal(new) and is_.is_decimal(old):
        return bool(new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale)
    if is_.is_decimal(new):
        return old in _DECIMAL_DIGITS and new.precision - new.scale >= _DECIMAL_DIGITS[old]
    return new in _WIDER_TYPES.get(old, ())


def _decimal_hints(data_type: pa.DataType) -> list[str]:
    """Say which decimals a type can become."""
    if is_.is_decimal(data_type):
        return ["a decimal with no fewer digits on either side of the point"]
    digits = _DECIMAL_DIGITS.get(data_type)
    return [] if digits is None else [f"a decimal with {digits} digits or more before the point"]
