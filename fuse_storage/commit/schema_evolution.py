"""Other columns for the same blocks: each step is a snapshot's columns as they would be, or a refusal that says why.

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

from fuse_storage.errors import InvalidArgument, SchemaError
from fuse_storage.metadata.snapshot import CLUSTER_METHODS, KEY_PROPERTY, Snapshot
from fuse_storage.schema import types
from fuse_storage.schema.schema import Field, Schema, assemble, number

Step = Callable[[Snapshot], Snapshot]
"""From a snapshot to one with other columns. Raises SchemaError."""
Siblings = tuple[Field, ...]

DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10}
"""Decimal digits of integers that Spark's reader widens to decimals."""
WIDER: Mapping[pa.DataType, tuple[pa.DataType, ...]] = {
    pa.int8(): (pa.int16(), pa.int32(), pa.int64(), pa.float64()),
    pa.int16(): (pa.int32(), pa.int64(), pa.float64()),
    pa.int32(): (pa.int64(), pa.float64()),
    pa.float32(): (pa.float64(),),
    pa.date32(): (pa.timestamp("us"),),
}
"""What a type is widened to, besides decimals: what Arrow and Spark's vectorised reader both widen without loss."""

MOST_ON_CURVE = 8
"""Columns of a space-filling curve: with more, each decides too little to be worth it."""


def add_column(
    shape: Snapshot, path: str, type: pa.DataType, default: Any = None, nullable: bool = True, after: str | None = None
) -> Snapshot:
    """A new column, or with dots in ``path`` a new field of a struct; last, or ``after`` a sibling ("" is first).

    As for all steps, structs may be within arrays and maps: ``items.element.price``, ``prices.value.net``.

    ``default``: what rows that are there already hold. Raises SchemaError.
    """
    above, name = _split(shape.schema, path)
    if above and default is not None:
        raise SchemaError(
            f"field {path!r} cannot have a default: Spark's reader fills only whole columns; leave it NULL"
        )
    if not nullable and (default is None or above):
        raise SchemaError(
            f"column {path!r} cannot be NOT NULL: the rows that are there have no value of it; give a default"
        )
    ids = iter(range(shape.last_column_id + 1, 1 << 31))
    (made,) = number([pa.field(name, type, nullable)], ids, _names_used(shape))
    if default is not None:
        made = replace(made, default=_default(default, made))

    def edit(siblings: Siblings) -> Siblings:
        if any(field.name == name for field in siblings):
            raise SchemaError(f"there is a column {path!r} already: choose another name, or rename that one")
        return _placed(siblings, made, after, path)

    last = max(part.id for part in made.walk())
    names = {**shape.names, **{part.id: (part.name,) for part in made.walk()}}
    return replace(_edited(shape, above, edit), last_column_id=last, names=names)


def drop_column(shape: Snapshot, path: str) -> Snapshot:
    """Without this column or field; blocks keep what they hold of it. Raises SchemaError."""
    field, (above, name) = shape.schema.find(path, inside=True), _split(shape.schema, path)
    if keys := [id for id in shape.cluster_ids if id in {part.id for part in field.walk()}]:
        raise SchemaError(
            f"column {path!r} cannot be dropped: the table is clustered by {shape.schema.by_id(keys[0]).name!r}"
        )
    if any(
        name == "key" and is_.is_map(shape.schema.find(above[:at], inside=True).type)
        for at, name in enumerate(above)
        if at
    ):
        raise SchemaError(f"{path!r} cannot be dropped: keys of a map that differ in it alone would become equal")
    if field.id in shape.key_ids:
        raise SchemaError(
            f"column {path!r} cannot be dropped: it is of the table's key {list(shape.key)}; choose another key first"
        )

    def edit(siblings: Siblings) -> Siblings:
        if len(siblings) == 1:
            raise SchemaError(
                f"{path!r} cannot be dropped: it is the last "
                f"{'field of its struct' if above else 'column of the table'}"
            )
        return tuple(field for field in siblings if field.name != name)

    return _edited(shape, above, edit)


def rename_column(shape: Snapshot, path: str, to: str) -> Snapshot:
    """Under another name; ``to`` is a name, not a path. Raises SchemaError."""
    field, (above, name) = shape.schema.find(path, inside=True), _split(shape.schema, path)

    def edit(siblings: Siblings) -> Siblings:
        if to != name and any(sibling.name == to for sibling in siblings):
            raise SchemaError(f"there is a column {to!r} already: choose another name, or rename that one")
        return tuple(replace(sibling, name=to) if sibling.id == field.id else sibling for sibling in siblings)

    names = {**shape.names, field.id: tuple(dict.fromkeys([*shape.names.get(field.id, ()), to]))}
    return replace(_edited(shape, above, edit), names=names)


def move_column(shape: Snapshot, path: str, after: str) -> Snapshot:
    """Right after a sibling, or first where ``after`` is empty. Raises SchemaError."""
    field, (above, _) = shape.schema.find(path, inside=True), _split(shape.schema, path)

    def edit(siblings: Siblings) -> Siblings:
        return _placed(tuple(sibling for sibling in siblings if sibling.id != field.id), field, after, path)

    return _edited(shape, above, edit)


def change_type(shape: Snapshot, path: str, type: pa.DataType) -> Snapshot:
    """Of a type that holds every value of the present one. Raises SchemaError saying to which types it can be
    changed.
    """
    field, above = shape.schema.find(path, inside=True), _above(shape.schema, path)
    wanted = types.stored(type, path)
    if wanted == field.type:
        return shape
    if not widens(field.type, wanted):
        others = [types.name_of(one) for one in WIDER.get(field.type, ())] + _decimals(field.type)
        known = f"it can become {', '.join(others)}" if others else "types like it cannot be widened"
        raise SchemaError(
            f"column {path!r} is {_called(field.type)} and cannot become {_called(wanted)} "
            f"without rewriting it: {known}"
        )
    if field.id in shape.key_ids and not exact(wanted):
        raise SchemaError(
            f"column {path!r} is of the table's key, and cannot become {_called(wanted)}: choose a type of exact values"
        )
    default = None if field.default is None else _default(field.default_scalar.cast(wanted).as_py(), field, wanted)
    changed = replace(field, type=wanted, type_changed=True, default=default)
    return _edited(shape, above, lambda siblings: tuple(changed if one.id == field.id else one for one in siblings))


def cluster_by(shape: Snapshot, names: Sequence[str], method: str = "linear") -> Snapshot:
    """With another clustering key, or without one; what is written already stays as it is. Raises SchemaError,
    InvalidArgument.
    """
    ids = cluster_ids(shape.schema, names, method)
    told = {"cluster_method": method} if ids and method != CLUSTER_METHODS[0] else {}
    properties = {name: value for name, value in shape.properties.items() if name != "cluster_method"} | told
    if (ids, properties) == (shape.cluster_ids, dict(shape.properties)):
        return shape
    return replace(shape, cluster_ids=ids, properties=properties)


def cluster_ids(schema: Schema, names: Sequence[str], method: str = "linear") -> tuple[int, ...]:
    """The ids of the columns of a clustering key. Raises SchemaError for what cannot be in one, InvalidArgument for the
    method.
    """
    if method not in CLUSTER_METHODS:
        raise InvalidArgument(f"rows cannot be clustered by method {method!r}: there are {', '.join(CLUSTER_METHODS)}")
    leaves = {leaf.id for _, leaf in schema.leaves()}
    fields = [schema.find(name) for name in names]
    for place, (name, field) in enumerate(zip(names, fields, strict=True)):
        if field.id not in leaves:
            raise SchemaError(
                f"a table cannot be clustered by {name!r}, which is {field.type}: choose columns of plain types"
            )
        if field in fields[:place]:
            raise SchemaError(f"a table cannot be clustered by {name!r} twice: name it once")
    if method != CLUSTER_METHODS[0] and names and not 2 <= len(names) <= MOST_ON_CURVE:
        raise InvalidArgument(
            f"a {method} curve goes through 2 to {MOST_ON_CURVE} columns, and there are {len(names)}: choose linear"
        )
    return tuple(field.id for field in fields)


def key_by(shape: Snapshot, names: Sequence[str]) -> Snapshot:
    """With another key, the columns that identify a row, or without one. Raises SchemaError."""
    ids = key_ids(shape.schema, names)
    if ids == shape.key_ids:
        return shape
    properties = {name: value for name, value in shape.properties.items() if name != KEY_PROPERTY}
    return replace(shape, properties=properties | ({KEY_PROPERTY: list(ids)} if ids else {}))


def key_ids(schema: Schema, names: Sequence[str]) -> tuple[int, ...]:
    """The ids of the columns of a key. Raises SchemaError for what cannot be in one."""
    fields = [schema.find([name]) for name in names]
    for place, field in enumerate(fields):
        if not exact(field.type):
            raise SchemaError(
                f"column {field.name!r} is {_called(field.type)}, and no key: choose columns of exact, plain types"
            )
        if field in fields[:place]:
            raise SchemaError(f"a key cannot have column {field.name!r} twice: name it once")
    return tuple(field.id for field in fields)


def exact(type: pa.DataType) -> bool:
    """Whether values of this type are equal or not, beyond doubt, and can be a key."""
    return not (is_.is_floating(type) or is_.is_nested(type))


def _edited(shape: Snapshot, above: Sequence[str], edit: Callable[[Siblings], Siblings]) -> Snapshot:
    """With a new current schema, in which the columns, or the fields of the struct at ``above``, are edited."""
    fields = _within(shape.schema.fields, above, edit)
    if fields == shape.schema.fields:
        return shape
    made = Schema(max(shape.schemas) + 1, fields)
    return replace(shape, schema_id=made.id, schemas={**shape.schemas, made.id: made})


def _within(fields: Siblings, above: Sequence[str], edit: Callable[[Siblings], Siblings]) -> Siblings:
    if not above:
        return edit(fields)
    return tuple(
        _reassembled(one, _within(one.children, above[1:], edit)) if one.name == above[0] else one for one in fields
    )


def _reassembled(field: Field, children: Siblings) -> Field:
    return replace(field, children=children, type=assemble(field.type, [child.arrow for child in children]))


def _split(schema: Schema, path: str) -> tuple[tuple[str, ...], str]:
    """The path of the struct that a field is in, empty for a column; and its name. Raises SchemaError for what is no
    struct.
    """
    above = _above(schema, path)
    if above and not is_.is_struct((parent := schema.find(above, inside=True)).type):
        parts = [".".join((*above, part.name)) for part in parent.children]
        hint = f"; what it holds is at {' and '.join(map(repr, parts))}" if parts else ""
        raise SchemaError(f"{path!r} is no field: {'.'.join(above)!r} is {_called(parent.type)}, not a struct{hint}")
    return above, path.rpartition(".")[2] if above else path


def _above(schema: Schema, path: str) -> tuple[str, ...]:
    """The path of what a field is in; empty for a column, also for one with dots in its name."""
    above, dot, _ = path.rpartition(".")
    if not dot or path in schema.names:
        return ()
    return (above,) if above in schema.names else tuple(above.split("."))


def _placed(siblings: Siblings, field: Field, after: str | None, path: str) -> Siblings:
    if after is None:
        return (*siblings, field)
    names = [sibling.name for sibling in siblings]
    if after and after not in names:
        raise SchemaError(f"{path!r} cannot come after {after!r}: beside it there are {names}")
    at = names.index(after) + 1 if after else 0
    return (*siblings[:at], field, *siblings[at:])


def _names_used(shape: Snapshot) -> set[str]:
    """Every name that a column ever had here, and every name in its files: none is used for another column's."""
    parts = [part for schema in shape.schemas.values() for top in schema.fields for part in top.walk()]
    return {name for names in shape.names.values() for name in names} | {part.physical for part in parts}


def _default(value: Any, field: Field, type: pa.DataType | None = None) -> Any:
    kind = type or field.type
    if field.children:
        raise SchemaError(f"column {field.name!r} is {_called(kind)} and cannot have a default: leave it NULL")
    try:
        return types.encode_default(pa.scalar(value, kind).as_py())
    except (pa.ArrowException, ValueError, TypeError, OverflowError) as problem:
        raise SchemaError(
            f"{value!r} cannot be the default of column {field.name!r}, which is {_called(kind)}: {problem}"
        ) from problem


def widens(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether every value of the old type is one of the new type, for all readers; the same type does not widen
    itself.
    """
    if is_.is_decimal(new) and is_.is_decimal(old):
        return bool(new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale)
    if is_.is_decimal(new):
        return old in DIGITS and new.precision - new.scale >= DIGITS[old]
    return new in WIDER.get(old, ())


def _decimals(type: pa.DataType) -> list[str]:
    if is_.is_decimal(type):
        return ["a decimal with no fewer digits on either side of the point"]
    return [f"a decimal with {DIGITS[type]} digits or more before the point"] if type in DIGITS else []


def _called(type: pa.DataType) -> str:
    return types.name_of(type)
