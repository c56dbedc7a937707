"""Columns as statements of Spark define and change them.

Changes are named as Spark's own classes are, which ``CatalogClient.java`` writes (``TableChange.AddColumn`` and so on).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import msgspec


class Member(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a request, which has no other members than it declares."""


class TypedColumn(Member, frozen=True, kw_only=True):
    """A column, or a field within one. ``path``: the names on the way to it. ``type``: Spark's JSON of its type."""

    path: tuple[str, ...]
    type: str | dict[str, Any]


class ColumnDefinition(TypedColumn, frozen=True, kw_only=True):
    """A column that is to be.

    ``has_default``: a DEFAULT is given. ``default``: its value in Spark's internal form, as text; None for NULL; unset
    where no constant of a plain type was given.
    """

    nullable: bool
    comment: str | None = None
    has_default: bool = False
    default: str | msgspec.UnsetType | None = msgspec.UNSET


class AddColumn(ColumnDefinition, tag_field="change", tag=True, frozen=True, kw_only=True):
    """ADD COLUMN: behind another, before all or, without either, at the end."""

    after: str | None = None
    first: bool = False


class ColumnChange(Member, tag_field="change", tag=True, frozen=True, kw_only=True):
    """A change of a column that is there."""

    path: tuple[str, ...]


class DeleteColumn(ColumnChange, frozen=True, kw_only=True):
    """DROP COLUMN."""

    if_exists: bool


class RenameColumn(ColumnChange, frozen=True, kw_only=True):
    """RENAME COLUMN."""

    to: str


class UpdateColumnType(TypedColumn, tag_field="change", tag=True, frozen=True, kw_only=True):
    """ALTER COLUMN … TYPE."""


class UpdateColumnPosition(ColumnChange, frozen=True, kw_only=True):
    """ALTER COLUMN … FIRST, or AFTER another."""

    after: str | None = None
    first: bool = False


class UpdateColumnComment(ColumnChange, frozen=True, kw_only=True):
    """ALTER COLUMN … COMMENT; None removes it."""

    comment: str | None = None


class UpdateColumnDefaultValue(ColumnChange, frozen=True, kw_only=True):
    """ALTER COLUMN … SET DEFAULT, as ``ColumnDefinition`` says it; DROP DEFAULT has none."""

    has_default: bool = False
    default: str | msgspec.UnsetType | None = msgspec.UNSET


class UpdateColumnNullability(ColumnChange, frozen=True, kw_only=True):
    """ALTER COLUMN … SET NOT NULL, or DROP NOT NULL."""

    nullable: bool


class PropertyChange(Member, tag_field="change", tag=True, frozen=True, kw_only=True):
    """A change of a property of a table."""

    name: str


class SetProperty(PropertyChange, frozen=True, kw_only=True):
    """SET TBLPROPERTIES."""

    value: str


class RemoveProperty(PropertyChange, frozen=True, kw_only=True):
    """UNSET TBLPROPERTIES."""


class ClusterBy(Member, tag_field="change", tag=True, frozen=True, kw_only=True):
    """CLUSTER BY, by the paths of the columns; none for NONE."""

    columns: tuple[tuple[str, ...], ...]


TableChange = (
    AddColumn
    | DeleteColumn
    | RenameColumn
    | UpdateColumnType
    | UpdateColumnPosition
    | UpdateColumnComment
    | UpdateColumnDefaultValue
    | UpdateColumnNullability
    | SetProperty
    | RemoveProperty
    | ClusterBy
)
KNOWN_CHANGES = frozenset(each.__name__ for each in get_args(TableChange))
"""Names of the changes that a table takes. Spark has others, and newer ones have more: of constraints, for one."""


class Transform(Member, frozen=True, kw_only=True):
    """A part of PARTITIONED BY or CLUSTER BY, by the name of Spark's transform and the paths of its columns."""

    transform: str
    columns: tuple[tuple[str, ...], ...]


class IndexedColumn(Member, frozen=True, kw_only=True):
    """A column of CREATE INDEX, with its own OPTIONS."""

    path: tuple[str, ...]
    options: Mapping[str, str] = {}
