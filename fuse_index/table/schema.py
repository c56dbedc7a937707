"""Other columns for a table, and what becomes of the indexes that are on them. No row is rewritten."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal

import pyarrow as pa

import fuse_storage as storage
from fuse_index.errors import DefinitionError, InputError
from fuse_index.operations import arrow_input
from fuse_index.table.indexes import IndexesMixin
from fuse_storage import SchemaChange, Snapshot

_FIRST = ""


class SchemaMixin(IndexesMixin):
    """The part of ``fuse_index.Table`` that changes columns.

    A path with dots names a field of a struct, also of one within arrays and maps: ``items.element.price``,
    ``prices.value.net``.
    """

    def add_column(
        self,
        path: str,
        type: Any,
        default: Any = None,
        nullable: bool = True,
        *,
        first: bool = False,
        after: str | None = None,
    ) -> Snapshot:
        """A new column, last unless told otherwise. ``type``: Spark SQL's name of it, or a pa.DataType.

        ``default`` is what rows hold that are there already; blocks full of it are skipped like any other. Raises
        SchemaError.
        """
        kind = _parse_type(type)
        place = _column_position(first, after)
        step = partial(storage.add_column, path=path, data_type=kind, default=default, nullable=nullable, after=place)
        return self._evolve(step, "add column", path)

    def drop_column(self, path: str, indexes: Literal["refuse", "drop"] = "refuse") -> Snapshot:
        """Forget a column; older snapshots keep it. Raises DefinitionError for indexes on it, unless these are to be
        dropped.

        Raises SchemaError for a column that rows are clustered by, and for the last one.
        """
        return self._evolve(partial(storage.drop_column, path=path), "drop column", path, indexes)

    def rename_column(self, path: str, to: str) -> Snapshot:
        """Call a column, or the field at this path, ``to``; indexes on it stay. Raises SchemaError."""
        return self._evolve(partial(storage.rename_column, path=path, to=to), "rename column", path)

    def move_column(self, path: str, *, first: bool = False, after: str | None = None) -> Snapshot:
        """Put a column first, or after another. Raises SchemaError, InputError."""
        place = _column_position(first, after)
        if place is None:
            raise InputError(f"where is {path!r} to go? say first=True, or after= which column")
        return self._evolve(partial(storage.move_column, path=path, after=place), "move column", path)

    def change_type(self, path: str, type: Any, indexes: Literal["refuse", "drop", "rebuild"] = "refuse") -> Snapshot:
        """Widen a column's type; old blocks are widened as they are read. Raises SchemaError saying to which types it
        can be.

        What indexes know of the old type is of no use: they are refused with DefinitionError, dropped, or rebuilt at
        once.
        """
        step = partial(storage.change_type, path=path, data_type=_parse_type(type))
        return self._evolve(step, "change type", path, indexes)

    def key_by(self, columns: Sequence[str] | None) -> Snapshot:
        """Say which columns identify a row, or none for None; nothing sees to it that they do. Only metadata changes.

        ``changes`` tells updates as pairs by them, and ``merge`` matches rows by them, unless told otherwise. They may
        be renamed, and are not dropped before another key is chosen. Raises InputError, SchemaError, Conflict.
        """
        chosen = tuple(columns or ())
        self._begin_write()
        storage.key_by(self.snapshot, chosen)  # refused before anything is written
        return self._move_to(self.stored.transaction().key_by(chosen).commit(summary={"columns": list(chosen)}))

    def _evolve(self, step: SchemaChange, operation: str, path: str, indexes: str | None = None) -> Snapshot:
        """Commit a step; ``indexes``: what is to become of those on this column, where the step is none of their
        kind.
        """
        self._begin_write()
        if step(self.snapshot) is self.snapshot:
            return self.snapshot
        transaction = self.stored.transaction()
        touched = [] if indexes is None else self._indexes_on(path)
        if touched and indexes not in ("drop", "rebuild"):
            advice = "drop it first, or say indexes='drop'" + (" or 'rebuild'" if operation == "change type" else "")
            raise DefinitionError(f"column {path!r} has index {touched[0]!r} on it: {advice}")
        for name in touched if indexes == "drop" else ():
            transaction.drop_index(name)
        transaction.evolve_schema(step, depends_on_indexes=indexes is not None)
        self._move_to(transaction.commit(operation, summary={"column": path}))
        for name in touched if indexes == "rebuild" else ():
            self.rebuild_index(name)
        return self.snapshot

    def _indexes_on(self, path: str) -> list[str]:
        """Those that are on this column or any part of it, even where their kind is not installed."""
        ids = {part.id for part in self.snapshot.schema.find(path, into_collections=True).walk()}
        stored = {name: [found.get("inputs"), found.get("where")] for name, found in self.snapshot.definitions.items()}
        return [name for name, on in stored.items() if ids.intersection(_referenced_column_ids(on))]


def missing_columns_change(rows_schema: pa.Schema, column_names: Sequence[str]) -> SchemaChange | None:
    """The step that adds the columns that rows have and a table lacks; None if there are none."""
    new = [field for field in rows_schema if field.name not in column_names]

    def step(shape: Snapshot) -> Snapshot:
        for field in new:
            shape = storage.add_column(shape, field.name, field.type)
        return shape

    return step if new else None


def _referenced_column_ids(stored: Any) -> Iterator[int]:
    """Ids of the columns that stored terms and conditions are on."""
    if isinstance(stored, dict):
        if isinstance(id := stored.get("column"), int):
            yield id
        stored = list(stored.values())
    if isinstance(stored, list):
        for part in stored:
            yield from _referenced_column_ids(part)


def _parse_type(given: Any) -> pa.DataType:
    """Raises InputError, WhereError."""
    if isinstance(given, pa.DataType):
        return given
    if not isinstance(given, str):
        raise InputError(f"type={given!r}: give Spark SQL's name of a type, such as 'bigint', or a pa.DataType")
    return arrow_input.resolve_arrow_schema(f"c {given}").field(0).type


def parse_typed_value(text: str, type_name: Any) -> Any:
    """A value of this type, written as text. Raises SchemaError."""
    kind = _parse_type(type_name)
    try:
        return pa.scalar(text).cast(kind).as_py()
    except (pa.ArrowException, ValueError) as problem:
        raise storage.SchemaError(f"{text!r} is no value of type {type_name}: {problem}") from problem


def _column_position(first: bool, after: str | None) -> str | None:
    if first and after is not None:
        raise InputError(f"first=True and after={after!r} are two places: say one")
    return _FIRST if first else after
