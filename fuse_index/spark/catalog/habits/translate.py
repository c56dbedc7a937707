"""Whose table a statement is about, and what Spark is to read in its place.

In: requests of ``TypedStatements.java``. Out: SQL; nothing where the statement goes to the next parser as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from pyspark.sql import SparkSession

from fuse_index.errors import InputError
from fuse_index.spark.catalog.habits.reader import StatementReader
from fuse_index.spark.catalog.habits.statements import HABITS, Habit, Target, check_end, sql_text
from fuse_index.spark.catalog.table_names import TableNames, TableReference, is_place
from fuse_index.spark.protocol.requests import TypedStatementRequest
from fuse_storage import NotFound


@dataclass(frozen=True, slots=True)
class HabitRequests:
    """Statements of other lakehouses in a session. ``catalogs``: those of ours that it has, by name."""

    spark: SparkSession
    catalogs: Mapping[str, TableNames]

    def translate(self, request: TypedStatementRequest) -> bytes:
        """The statement in Spark's words; empty where its table is not ours.

        Raises NotFound for a table that could only be ours and is not there, InputError for what cannot be said of one.
        """
        reader = StatementReader(request.text)
        habit = next((each for each in HABITS if reader.take(*each.verb)), None)
        if habit is None:
            return b""
        for words in habit.before:
            reader.take(*words)
        parts = reader.take_table()
        target = self._find(habit, parts, request) if parts else None
        return b"" if target is None else check_end(habit, reader, target, habit.becomes(reader, target)).encode()

    def _find(self, habit: Habit, parts: tuple[str, ...], request: TypedStatementRequest) -> Target | None:
        if len(parts) > 1 and parts[0] in self.catalogs:
            return self._target(self.catalogs[parts[0]], parts[1:])
        if len(parts) == 1 and is_place(parts[0]):
            return self._at_place(parts[0])
        current = self.catalogs.get(request.catalog)
        if current is None:
            return None
        try:
            return self._target(current, (*request.within, *parts))
        except NotFound as missing:
            if self._may_be_of_others(habit, parts, current, request.within):
                return None
            try:
                return self._target(current, parts)
            except NotFound:
                raise missing from None

    def _at_place(self, place: str) -> Target | None:
        """The table of ours at a path or URL, if there is one: others have theirs there."""
        for names in self.catalogs.values():
            try:
                names.open(TableReference(place, place))
            except NotFound:
                continue
            return self._target(names, (place,))
        return None

    def _may_be_of_others(
        self, habit: Habit, parts: tuple[str, ...], names: TableNames, within: tuple[str, ...]
    ) -> bool:
        """Whether a name that our current catalogue lacks may mean something: delta.`/path`, a table named HISTORY."""
        if len(parts) > 1 and (
            is_place(parts[-1])
            or self.spark._jsparkSession.sessionState().catalogManager().isCatalogRegistered(parts[0])
        ):
            return True
        return habit.verb[0] in ("DESCRIBE", "DESC") and _is_there(names, (*within, habit.verb[1].lower()))

    def _target(self, names: TableNames, parts: tuple[str, ...]) -> Target:
        """A table of ours that is there. Raises NotFound naming near names."""
        reference = names.resolve(parts)
        return Target(names.catalog, parts, lambda: names.open(replace(reference, view=None)), self._read_time)

    def _read_time(self, text: str) -> str:
        moment = self.spark.sql(f"SELECT unix_micros(try_cast({sql_text(text)} AS TIMESTAMP))").collect()[0][0]
        if moment is None:
            raise InputError(f"{text!r} is no time: say one such as '2026-11-22 10:00:00', in the session's time zone")
        return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment)).isoformat()


def _is_there(names: TableNames, parts: tuple[str, ...]) -> bool:
    try:
        names.resolve(parts)
    except NotFound:
        return False
    return True
