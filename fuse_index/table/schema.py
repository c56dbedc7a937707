"""Columns of a table are added, changed and dropped, with the indexes on them. No row is rewritten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import pyarrow as pa

import fuse_storage as storage
from fuse_index.errors import DefinitionError, InputError, TermError
from fuse_index.export.keep_up import check_exports
from fuse_index.expressions.serialize import decode_term
from fuse_index.ingest import arrow_input
from fuse_index.ingest.schema_merge import indexes_on_columns
from fuse_index.table.indexes import IndexesMixin, rebuild_index
from fuse_index.table.read import ReadMixin
from fuse_storage import Schema, SchemaChange, Snapshot

_FIRST = ""


class SchemaMixin(ReadMixin, IndexesMixin):
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
        """Add a column, last unless told otherwise. ``type``: Spark SQL's name of it, or a pa.DataType.

        ``default`` is what rows hold that are there already; blocks full of it are skipped like any other. Raises
        SchemaError.
        """
        data_type, position = _parse_type(type), _column_position(first, after)
        step = partial(
            storage.add_column, path=path, data_type=data_type, default=default, nullable=nullable, after=position
        )
        return self._evolve(step, "add column", path)

    def drop_column(self, path: str, indexes: Literal["refuse", "drop"] = "refuse") -> Snapshot:
        """Forget a column; older snapshots keep it.

        Raises DefinitionError for indexes on it, unless these are to be dropped; SchemaError for a column that rows are
        clustered by, and for the last one.
        """
        return self._evolve(partial(storage.drop_column, path=path), "drop column", path, indexes)

    def rename_column(self, path: str, to: str) -> Snapshot:
        """Call a column, or the field at this path, ``to``; indexes on it stay. Raises SchemaError."""
        return self._evolve(partial(storage.rename_column, path=path, to=to), "rename column", path)

    def move_column(self, path: str, *, first: bool = False, after: str | None = None) -> Snapshot:
        """Put a column first, or after another. Raises SchemaError, InputError."""
        position = _column_position(first, after)
        if position is None:
            raise InputError(f"where is {path!r} to go? say first=True, or after= which column")
        return self._evolve(partial(storage.move_column, path=path, after=position), "move column", path)

    def change_type(
        self,
        path: str,
        type: Any,  # noqa: A002  # promised
        indexes: Literal["refuse", "drop", "rebuild"] = "refuse",
    ) -> Snapshot:
        """Widen a column's type; old blocks are widened as they are read.

        Raises SchemaError that names the types to which the column can be widened. What indexes know of the old
        type is of no use: they are refused with DefinitionError, dropped, or rebuilt at once.
        """
        step = partial(storage.change_type, path=path, data_type=_parse_type(type))
        return self._evolve(step, "change type", path, indexes)

    def set_comment(self, path: str, comment: str | None) -> Snapshot:
        """Say what a column or field is for; None takes the comment away. Raises SchemaError."""
        return self._evolve(partial(storage.set_comment, path=path, comment=comment), "set comment", path)

    def set_default(self, column: str, default: Any) -> Snapshot:
        """Choose what a column holds in rows that come without it; None for NULL.

        Raises SchemaError for a table that holds rows: they have the default that the column came with.
        """
        return self._evolve(partial(storage.set_default, name=column, value=default), "set default", column)

    def set_nullable(self, path: str, nullable: bool) -> Snapshot:
        """Let a column or field be NULL; or, with False, a column no more, if it is NULL in no row now.

        Blocks whose statistics know of no NULL are not read. Raises SchemaError where there are NULLs, Conflict for
        rows that come meanwhile, ReadOnly for a table whose rows come from a source.
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
        """Set and remove properties, such as ``block_rows``; None removes one. What is written already stays as it is.

        Raises InvalidArgument for one that cannot be.
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
        """Say which columns identify a row, or none for None; nothing sees to it that they do. Only metadata changes.

        ``changes`` tells updates as pairs by them, and ``merge`` matches rows by them, unless told otherwise. They may
        be renamed, and are not dropped before another key is chosen. Raises InputError, SchemaError, Conflict.
        """
        chosen = tuple(columns or ())
        self._check_writable()
        storage.key_by(self.snapshot, chosen)  # refused before anything is written
        return self._move_to(self.stored.transaction().key_by(chosen).commit(summary={"columns": list(chosen)}))

    def _evolve(self, step: SchemaChange, operation: str, path: str, indexes: str | None = None) -> Snapshot:
        """Commit a step. ``indexes``: what becomes of the indexes on this column; None if the step leaves them be."""
        self._check_writable()
        if step(self.snapshot) is self.snapshot:
            return self.snapshot
        transaction = self.stored.transaction()
        affected = [] if indexes is None else self._indexes_on(path)
        if affected and indexes not in ("drop", "rebuild"):
            advice = "drop it first, or say indexes='drop'" + (" or 'rebuild'" if operation == "change type" else "")
            raise DefinitionError(f"column {path!r} has index {affected[0]!r} on it: {advice}")
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


def _parse_type(data_type: Any) -> pa.DataType:
    """Make an Arrow type of one, or of Spark SQL's name of it. Raises InputError, WhereError."""
    if isinstance(data_type, pa.DataType):
        return data_type
    if not isinstance(data_type, str):
        raise InputError(f"type={data_type!r}: give Spark SQL's name of a type, such as 'bigint', or a pa.DataType")
    columns = arrow_input.resolve_arrow_schema(f"c {data_type}")
    if len(columns) > 1 or not columns.field(0).nullable:
        raise InputError(f"type={data_type!r}: give the type alone; nullable=False says that it is NOT NULL")
    return columns.field(0).type


def parse_typed_value(text: str, type_name: Any) -> Any:
    """Read a value of this type from text. Raises SchemaError."""
    data_type = _parse_type(type_name)
    try:
        return pa.scalar(text).cast(data_type).as_py()
    except (pa.ArrowException, ValueError) as problem:
        raise storage.SchemaError(f"{text!r} is no value of type {type_name}: {problem}") from problem


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
