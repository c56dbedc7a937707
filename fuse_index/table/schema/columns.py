"""Columns of a table are added, changed and dropped, with the indexes on them. No row is rewritten."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

import fuse_storage as storage
from fuse_index.errors import DefinitionError, InputError, TermError
from fuse_index.export.keep_up import check_exports
from fuse_index.expressions.serialize import decode_term
from fuse_index.ingest.schema_merge import indexes_on_columns
from fuse_index.table.indexes import IndexesMixin, rebuild_index
from fuse_index.table.read import ReadMixin
from fuse_index.table.schema.types import parse_type
from fuse_storage import Advice, Schema, SchemaChange, Snapshot

_FIRST = ""


class ColumnsMixin(ReadMixin, IndexesMixin):
    """The part of ``fuse_index.Table`` that changes columns.

    A path with dots names a field of a struct, also of one within arrays and maps: ``items.element.price``,
    ``prices.value.net``.
    """

    def add_column(
        self,
        path: str,
        type: Any,  # noqa: A002  # promised
        default: Any = None,
        nullable: bool = True,
        *,
        first: bool = False,
        after: str | None = None,
    ) -> Snapshot:
        """Add a column, last unless told otherwise. No row is rewritten.

        Args:
            path: Its name; with dots a field of a struct, also of one within arrays and maps, such as
                ``items.element.price``.
            type: Spark SQL's name of its type, or a pa.DataType.
            default: What rows hold that are there already, and such as come without the column until ``set_default``
                chooses otherwise; blocks full of it are skipped like any other.
            nullable: Whether it may be NULL.
            first: Put it first.
            after: Put it after this column.

        Returns:
            The new snapshot.

        Raises:
            SchemaError: There is such a column, or the default does not fit.
            WhereError: ``type`` is none.
            InputError: ``first`` and ``after`` are both given.
            Conflict: Somebody else changed the columns.
            ReadOnly: The handle only reads.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://add-column", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}])
            >>> snapshot = table.add_column("land", "STRING", default="no")
            >>> table.to_arrow().to_pylist()
            [{'id': 1, 'land': 'no'}]
        """
        data_type, position = parse_type(type), _column_position(first, after)
        step = partial(
            storage.add_column, path=path, data_type=data_type, default=default, nullable=nullable, after=position
        )
        return self._evolve(step, "add column", path)

    def drop_column(self, path: str, indexes: Literal["refuse", "drop"] = "refuse") -> Snapshot:
        """Forget a column; older snapshots keep it.

        Args:
            path: Its name; with dots a field of a struct.
            indexes: What becomes of indexes on it: ``"refuse"`` or ``"drop"``.

        Returns:
            The new snapshot.

        Raises:
            DefinitionError: There are indexes on it, which are not to be dropped.
            SchemaError: Rows are clustered by it, it is of a key, or it is the last one.
            Conflict: Somebody else changed the columns.
            ReadOnly: The handle only reads.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://drop-column", "id BIGINT, name STRING")
            >>> snapshot = table.drop_column("name")
            >>> table.schema.names
            ['id']
        """
        return self._evolve(partial(storage.drop_column, path=path), "drop column", path, indexes)

    def rename_column(self, path: str, to: str) -> Snapshot:
        """Give a column, or a field of a struct, another name; indexes on it stay.

        Args:
            path: The name that it has; with dots a field of a struct.
            to: The new name, without dots before it.

        Returns:
            The new snapshot.

        Raises:
            SchemaError: There is no such column, or another has the name.
            Conflict: Somebody else changed the columns.
            ReadOnly: The handle only reads.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://rename-column", "id BIGINT")
            >>> snapshot = table.rename_column("id", "number")
            >>> table.schema.names
            ['number']
        """
        return self._evolve(partial(storage.rename_column, path=path, to=to), "rename column", path)

    def move_column(self, path: str, *, first: bool = False, after: str | None = None) -> Snapshot:
        """Put a column first, or after another.

        Args:
            path: Its name; with dots a field of a struct.
            first: Put it first.
            after: Put it after this column.

        Returns:
            The new snapshot.

        Raises:
            InputError: Neither ``first`` nor ``after`` is given, or both.
            SchemaError: There is no such column.
            Conflict: Somebody else changed the columns.
            ReadOnly: The handle only reads.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://move-column", "id BIGINT, name STRING")
            >>> snapshot = table.move_column("name", first=True)
            >>> table.schema.names
            ['name', 'id']
        """
        position = _column_position(first, after)
        if position is None:
            raise InputError(
                f"where is {path!r} to go? "
                + Advice.say("move_column", first=True)
                + ", or "
                + Advice.argument("move_column", after=...)
                + ", naming the column"
            )
        return self._evolve(partial(storage.move_column, path=path, after=position), "move column", path)

    def change_type(
        self,
        path: str,
        type: Any,  # noqa: A002  # promised
        indexes: Literal["refuse", "drop", "rebuild"] = "refuse",
    ) -> Snapshot:
        """Widen a column's type; old blocks are widened as they are read.

        Args:
            path: Its name; with dots a field of a struct.
            type: Spark SQL's name of the new type, or a pa.DataType.
            indexes: What becomes of indexes on it, as what they know of the old type is of no use: ``"refuse"``,
                ``"drop"`` or ``"rebuild"``.

        Returns:
            The new snapshot.

        Raises:
            SchemaError: The column cannot be widened so; the types to which it can are named.
            DefinitionError: There are indexes on it, which are refused, or cannot be rebuilt.
            WhereError: ``type`` is none.
            Conflict: Somebody else changed the columns.
            ReadOnly: The handle only reads.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://change-type", "id INT")
            >>> snapshot = table.change_type("id", "BIGINT")
            >>> str(table.schema.field("id").type)
            'int64'
        """
        step = partial(storage.change_type, path=path, data_type=parse_type(type))
        return self._evolve(step, "change type", path, indexes)

    def _evolve(self, step: SchemaChange, operation: str, path: str, indexes: str | None = None) -> Snapshot:
        """Commit a step. ``indexes``: what becomes of the indexes on this column; None if the step leaves them be."""
        self._check_writable()
        if step(self.snapshot) is self.snapshot:
            return self.snapshot
        transaction = self.stored.transaction()
        affected = [] if indexes is None else self._indexes_on(path)
        if affected and indexes not in ("drop", "rebuild"):
            advice = "drop it first, or " + Advice.say("drop_column", indexes="drop")
            if operation == "change type":
                advice += " or 'rebuild'"
            raise DefinitionError(f"column {path!r} has index {affected[0]!r} on it: " + advice)
        for name in affected if indexes == "rebuild" else ():
            _check_definable(name, self.snapshot.definitions[name], step(self.snapshot).schema)
        for name in affected if indexes == "drop" else ():
            transaction.drop_index(name)
        check_exports(self.stored, step)
        transaction.evolve_schema(step, depends_on_indexes=indexes is not None)
        self._move_to(transaction.commit(operation, summary={"column": path}))
        for name in affected if indexes == "rebuild" else ():
            rebuild_index(self, name)
        return self.snapshot

    def _indexes_on(self, path: str) -> list[str]:
        """Name the indexes on this column or any part of it, even where their kind is not installed."""
        column = self.snapshot.schema.find(path, into_collections=True)
        return indexes_on_columns(self.snapshot, {part.id for part in column.walk()})


def _column_position(first: bool, after: str | None) -> str | None:
    if first and after is not None:
        raise InputError(f"first=True and after={after!r} are two places: say one")
    return _FIRST if first else after


def _check_definable(name: str, content: Mapping[str, Any], schema: Schema) -> None:
    """Raise DefinitionError if what an index is on makes no sense with the columns of this schema."""
    try:
        for encoded in content.get("inputs", ()):
            decode_term(encoded, schema)
    except TermError as mismatch:
        raise DefinitionError(f"index {name!r} cannot be rebuilt after that: {mismatch}") from mismatch
