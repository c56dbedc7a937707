"""ALTER TABLE: all that one statement changes is one commit, by the steps that a table's own methods take.

In: a table and changes, as ``CatalogClient.java`` writes them. Out: a commit, and what is left to say of its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import fuse_storage as storage
from fuse_index.after_commit import after_commit
from fuse_index.errors import DefinitionError, InputError
from fuse_index.export.keep_up import check_exports
from fuse_index.ingest.schema_merge import indexes_on_columns
from fuse_index.spark.catalog.definitions import (
    CLUSTER_PROPERTY_NAME,
    COLLATION_PROPERTY_NAME,
    KEY_PROPERTY_NAME,
    NOT_NULL_PROPERTY_NAME,
    PRIMARY_KEY_PROPERTY_NAME,
    check_collation,
    join_path,
    parse_column_type,
    parse_default,
    parse_default_of,
    parse_field,
    parse_properties,
    parse_text_limits,
    split_column_names,
)
from fuse_index.spark.protocol.changes import (
    AddColumn,
    ClusterBy,
    DeleteColumn,
    RemoveProperty,
    RenameColumn,
    SetProperty,
    TableChange,
    TypedColumn,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
)
from fuse_index.spark.text_limits import TEXT_LIMITS_PROPERTY, set_text_limits
from fuse_index.table.table import Table
from fuse_storage import SchemaChange, SchemaError, Snapshot

NAME_PROPERTIES = ("comment", "owner")
"""Properties that a warehouse keeps beside the name of a table."""
_REFUSED_PROPERTIES = {
    "location": "a table stays where it is: clone it to another place by CALL system.clone",
    NOT_NULL_PROPERTY_NAME: "which columns are NOT NULL is changed one by one: say ALTER COLUMN … DROP NOT NULL, or "
    "CALL system.set_not_null(table, column)",
    PRIMARY_KEY_PROPERTY_NAME: "a primary key is chosen by CREATE TABLE, and stays: make another table",
    TEXT_LIMITS_PROPERTY: "limits of texts are of their columns: say ALTER COLUMN … TYPE VARCHAR(n)",
}


@dataclass(slots=True)
class Alteration:
    """What a statement does. ``updates`` and ``removals``: of the properties that a warehouse keeps of the name."""

    table: Table
    steps: list[SchemaChange] = field(default_factory=list)
    touches_indexes: bool = False
    updates: dict[str, str] = field(default_factory=dict)
    removals: list[str] = field(default_factory=list)

    def add(self, change: TableChange) -> None:
        """Add one change. Raises SchemaError, InputError, DefinitionError for what cannot be."""
        _STEPS[type(change)](self, change)

    def commit(self) -> None:
        """Commit the steps, if there are any, in one. Raises Conflict and as they do."""
        snapshot = self.table.snapshot
        for step in self.steps:  # refused before anything is written
            snapshot = step(snapshot)
        if snapshot is self.table.snapshot:
            return
        check_exports(self.table.stored, partial(_take_steps, steps=tuple(self.steps)))
        transaction = self.table.stored.transaction()
        for step in self.steps:
            transaction.evolve_schema(step, depends_on_indexes=self.touches_indexes)
        after_commit(transaction.commit("alter table"))


def evolution(table: Table, changes: Sequence[TableChange]) -> SchemaChange:
    """The step to the columns that a statement's rows have, which it commits with them.

    Raises as ``Alteration.add``, and what cannot be added or widened as ``Table``'s own methods do.
    """
    steps = tuple(alteration(table, changes).steps)
    step = partial(_take_steps, steps=steps)
    check_exports(table.stored, step)
    return step


def widens_column(table: Table, change: UpdateColumnType) -> bool:
    """Whether the column's type becomes a wider one; values of any other are cast to the column's."""
    column = table.snapshot.schema.find(change.path, into_collections=True)
    return column.is_leaf and storage.can_widen(column.type, parse_column_type(change))


def _take_steps(snapshot: Snapshot, steps: Sequence[SchemaChange]) -> Snapshot:
    for step in steps:
        snapshot = step(snapshot)
    return snapshot


def alteration(table: Table, changes: Sequence[TableChange]) -> Alteration:
    """What these changes make of a table. Raises as ``Alteration.add``."""
    made = Alteration(table)
    dropped = {join_path(change.path) for change in changes if isinstance(change, DeleteColumn)}
    if dropped >= set(table.schema.names) and any(isinstance(change, AddColumn) for change in changes):
        raise SchemaError(
            "REPLACE COLUMNS drops all columns, with what rows have in them: add the new ones, then drop the others, "
            "or say CREATE OR REPLACE TABLE"
        )
    for change in changes:
        made.add(change)
    return made


def _add_column(to: Alteration, change: AddColumn) -> None:
    path, added = change.path, parse_field(change)
    default = parse_default(change) if change.has_default else None
    step = partial(storage.add_column, path=path, data_type=added.type, default=default, nullable=added.nullable)
    to.steps.append(partial(step, after=_predecessor(change)))
    _limit_texts(to, change)
    if change.comment is not None:
        to.steps.append(partial(storage.set_comment, path=path, comment=change.comment))


def _delete_column(to: Alteration, change: DeleteColumn) -> None:
    path = join_path(change.path)
    try:
        _raise_if_indexed(to, change.path, "drop it first")
    except SchemaError:
        if change.if_exists:
            return
        raise
    to.steps.append(partial(storage.drop_column, path=path))


def _rename_column(to: Alteration, change: RenameColumn) -> None:
    to.steps.append(partial(storage.rename_column, path=join_path(change.path), to=change.to))


def _change_type(to: Alteration, change: UpdateColumnType) -> None:
    _raise_if_indexed(to, change.path, "drop it first, and create it anew after the change")
    to.steps.append(partial(storage.change_type, path=change.path, data_type=parse_column_type(change)))
    _limit_texts(to, change)


def _limit_texts(to: Alteration, column: TypedColumn) -> None:
    to.steps.append(partial(set_text_limits, path=column.path, limits=parse_text_limits(column)))


def _move_column(to: Alteration, change: UpdateColumnPosition) -> None:
    to.steps.append(partial(storage.move_column, path=join_path(change.path), after=_predecessor(change) or ""))


def _set_comment(to: Alteration, change: UpdateColumnComment) -> None:
    to.steps.append(partial(storage.set_comment, path=change.path, comment=change.comment))


def _set_default(to: Alteration, change: UpdateColumnDefaultValue) -> None:
    name = join_path(change.path)
    column = to.table.snapshot.schema.find([name])
    value = parse_default_of(change, column.type) if change.has_default else None
    to.steps.append(partial(storage.set_default, name=name, value=value))


def _set_nullability(to: Alteration, change: UpdateColumnNullability) -> None:
    path = join_path(change.path)
    if not change.nullable:
        raise SchemaError(f"column {path!r} is made NOT NULL by CALL system.set_not_null, which sees to its rows")
    to.steps.append(partial(storage.set_nullable, path=path, nullable=True))


_KEY_STEPS = {KEY_PROPERTY_NAME: storage.key_by, CLUSTER_PROPERTY_NAME: storage.cluster_by}
"""What changes the keys of a table, by the properties that show them."""


def _set_property(to: Alteration, change: SetProperty) -> None:
    name, value = change.name, change.value
    if name in NAME_PROPERTIES:
        to.updates[name] = value
    elif name == COLLATION_PROPERTY_NAME:
        check_collation({name: value})
        to.steps.append(partial(storage.update_properties, updates={}, removals=(name,)))
    elif name in _REFUSED_PROPERTIES:
        raise InputError(_REFUSED_PROPERTIES[name])
    elif name in _KEY_STEPS:
        to.steps.append(partial(_KEY_STEPS[name], names=split_column_names(value)))
    else:
        to.steps.append(partial(storage.update_properties, updates=parse_properties({name: value})))


def _remove_property(to: Alteration, change: RemoveProperty) -> None:
    if change.name == PRIMARY_KEY_PROPERTY_NAME:
        raise InputError(_REFUSED_PROPERTIES[PRIMARY_KEY_PROPERTY_NAME])
    if change.name in NAME_PROPERTIES:
        to.removals.append(change.name)
    elif change.name in _KEY_STEPS:
        to.steps.append(partial(_KEY_STEPS[change.name], names=()))
    else:
        to.steps.append(partial(storage.update_properties, updates={}, removals=(change.name,)))


def _cluster_by(to: Alteration, change: ClusterBy) -> None:
    names = [join_path(path) for path in change.columns]
    to.steps.append(partial(storage.cluster_by, names=names))


_STEPS: Mapping[type[TableChange], Callable[[Alteration, Any], None]] = {
    AddColumn: _add_column,
    DeleteColumn: _delete_column,
    RenameColumn: _rename_column,
    UpdateColumnType: _change_type,
    UpdateColumnPosition: _move_column,
    UpdateColumnComment: _set_comment,
    UpdateColumnDefaultValue: _set_default,
    UpdateColumnNullability: _set_nullability,
    SetProperty: _set_property,
    RemoveProperty: _remove_property,
    ClusterBy: _cluster_by,
}


def _predecessor(change: AddColumn | UpdateColumnPosition) -> str | None:
    """The name of the column before it; empty for the first, None for the last."""
    return "" if change.first else change.after


def _raise_if_indexed(to: Alteration, path: tuple[str, ...], advice: str) -> None:
    """Raise DefinitionError for a column with an index on it, SchemaError where there is no such column."""
    snapshot = to.table.snapshot
    column = snapshot.schema.find(path, into_collections=True)
    to.touches_indexes = True
    if names := indexes_on_columns(snapshot, {part.id for part in column.walk()}):
        raise DefinitionError(f"column {join_path(path)!r} has index {names[0]!r} on it: {advice}")
