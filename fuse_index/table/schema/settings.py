"""What a table and its columns are said to be: comments, defaults, whether NULL may be, properties and the key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import fuse_storage as storage
from fuse_index.export.keep_up import check_exports
from fuse_index.table.schema.columns import ColumnsMixin
from fuse_storage import Snapshot


class SchemaMixin(ColumnsMixin):
    """The part of ``fuse_index.Table`` that changes columns, and what is said of them and of the table."""

    def set_comment(self, path: str, comment: str | None) -> Snapshot:
        """Say what a column or field is for.

        Args:
            path: Its name; with dots a field of a struct.
            comment: The text; None takes it away.

        Returns:
            The new snapshot.

        Raises:
            SchemaError: There is no such column.
            Conflict: Somebody else changed the columns.
            ReadOnly: The handle only reads.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://set-comment", "id BIGINT")
            >>> table.set_comment("id", "as the shop counts").operation
            'set comment'
        """
        return self._evolve(partial(storage.set_comment, path=path, comment=comment), "set comment", path)

    def set_default(self, column: str, default: Any) -> Snapshot:
        """Choose what a column holds in rows that come without it from now on.

        Rows that are there keep what they hold.

        Args:
            column: Its name.
            default: The value; None for NULL.

        Returns:
            The new snapshot.

        Raises:
            SchemaError: There is no such column, or the value does not fit.
            Conflict: Somebody else changed the columns.
            ReadOnly: The handle only reads.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://set-default", "id BIGINT, land STRING")
            >>> snapshot = table.set_default("land", "no")
            >>> snapshot = table.append([{"id": 1}])
            >>> snapshot = table.set_default("land", "de")
            >>> snapshot = table.append([{"id": 2}])
            >>> table.to_arrow().column("land").to_pylist()
            ['no', 'de']
        """
        return self._evolve(partial(storage.set_default, name=column, value=default), "set default", column)

    def set_nullable(self, path: str, nullable: bool) -> Snapshot:
        """Let a column or field be NULL; or, with False, a column no more, if it is NULL in no row now.

        Blocks whose statistics know of no NULL are not read.

        Args:
            path: Its name; with dots a field of a struct.
            nullable: Whether it may be NULL.

        Returns:
            The new snapshot.

        Raises:
            SchemaError: There are NULLs.
            Conflict: Rows came meanwhile.
            ReadOnly: The rows of the table come from a source, or the handle only reads.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://set-nullable", "id BIGINT")
            >>> snapshot = table.set_nullable("id", False)
            >>> table.schema.field("id").nullable
            False
        """
        self._check_writable()
        step = partial(storage.set_nullable, path=path, nullable=nullable)
        if step(self.snapshot) is self.snapshot:
            return self.snapshot
        if not nullable:
            self._check_no_nulls(path)
        transaction = self.stored.transaction().evolve_schema(step, depends_on_rows=not nullable)
        return self._move_to(transaction.commit("set nullable", summary={"column": path, "nullable": nullable}))

    def _check_no_nulls(self, path: str) -> None:
        self.snapshot.check_own_rows()
        quoted = path.replace("`", "``")
        if found := self.scan(f"`{quoted}` IS NULL").count():
            raise storage.SchemaError(
                f"column {path!r} cannot be made NOT NULL: {found} rows have NULL in it; update or delete them first"
            )

    def set_properties(
        self, updates: Mapping[str, Any] | None = None, removals: Sequence[str] | None = None
    ) -> Snapshot:
        """Set and remove properties, such as ``block_rows``. What is written already stays as it is.

        Args:
            updates: Values by name; None removes a property.
            removals: Names of properties to remove.

        Returns:
            The new snapshot.

        Raises:
            InvalidArgument: There is no such property, or it cannot have this value.
            Conflict: Somebody else changed the properties.
            ReadOnly: The handle only reads.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://set-properties", "id BIGINT")
            >>> table.set_properties({"block_rows": 100_000}).properties["block_rows"]
            100000
        """
        self._check_writable()
        given = dict(updates or {})
        new = {name: value for name, value in given.items() if value is not None}
        old = (*(removals or ()), *(name for name in given if name not in new))
        step = partial(storage.update_properties, updates=new, removals=old)
        if step(self.snapshot) is self.snapshot:
            return self.snapshot
        check_exports(self.stored, step)
        transaction = self.stored.transaction().evolve_schema(step)
        return self._move_to(transaction.commit("set properties", summary={"properties": sorted([*new, *old])}))

    def key_by(self, columns: Sequence[str] | None) -> Snapshot:
        """Say which columns identify a row; nothing sees to it that they do. Only metadata changes.

        ``changes`` tells updates as pairs by them, and ``merge`` matches rows by them, unless told otherwise. They may
        be renamed, and are not dropped before another key is chosen.

        Args:
            columns: Their names; None for no key.

        Returns:
            The new snapshot.

        Raises:
            SchemaError: There is no such column, it cannot be of a key, or the table has a primary key, which stays.
            InputError: An argument is of a type that is not taken.
            Conflict: Somebody else changed the table's key.
            ReadOnly: The handle only reads.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://key-by", "id BIGINT")
            >>> table.key_by(["id"]).key
            ('id',)
        """
        chosen = tuple(columns or ())
        self._check_writable()
        storage.key_by(self.snapshot, chosen)  # refused before anything is written
        return self._move_to(self.stored.transaction().key_by(chosen).commit(summary={"columns": list(chosen)}))
