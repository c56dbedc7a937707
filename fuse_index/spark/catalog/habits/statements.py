"""Statements of other lakehouses as calls of our procedures: what each may say, and what it becomes.

In: a statement whose verb and table were read, and the table. Out: SQL of Spark's own grammar.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from fuse_index.errors import InputError
from fuse_index.spark.catalog.habits.reader import StatementReader
from fuse_index.spark.native.relation import quote_path
from fuse_index.table.table import Table

_PLAIN_TEXT = re.compile(r"[^'\\$\n]*")
_DAYS = {"DAYS": "d", "DAY": "d", "HOURS": "h", "HOUR": "h", "MINUTES": "m", "MINUTE": "m"}


@dataclass(frozen=True, slots=True)
class Target:
    """The table of a statement: its catalogue, its name there, and how to open it.

    ``read_time``: makes a time with its zone of one as the session reads it. Raises InputError.
    """

    catalog: str
    path: tuple[str, ...]
    open: Callable[[], Table]
    read_time: Callable[[str], str]

    @property
    def shown(self) -> str:
        return ".".join((self.catalog, *self.path))

    def call(self, procedure: str, **arguments: str) -> str:
        """The CALL of a procedure; ``arguments``: SQL, by name, beside the table."""
        told = {"table": sql_text(".".join(self.path))} | arguments
        listed = ", ".join(f"{name} => {value}" for name, value in told.items())
        return f"CALL {quote_path((self.catalog,))}.system.{procedure}({listed})"

    def rows(self, view: str) -> str:
        """The query of a view of metadata."""
        return f"SELECT * FROM {quote_path((self.catalog, *self.path, view))}"


def sql_text(text: str) -> str:
    """A string of SQL, whichever way the session reads quotes and backslashes within one."""
    return f"'{text}'" if _PLAIN_TEXT.fullmatch(text) else f"CAST(X'{text.encode().hex()}' AS STRING)"


def optimize(reader: StatementReader, to: Target) -> str:
    """OPTIMIZE [WHERE condition] [ZORDER BY (a, b)], or FULL."""
    condition = reader.take_until("ZORDER") if reader.take("WHERE") else None
    if condition == "":
        return ""
    if reader.take("ZORDER", "BY"):
        columns = reader.take_names()
        if condition is not None:
            raise InputError(f"OPTIMIZE {to.shown}: a key is one for all rows: say WHERE or ZORDER BY, not both")
        return to.call("recluster", zorder=f"array({', '.join(map(sql_text, columns))})") if columns else ""
    if condition is None:
        reader.take("FULL")
        return to.call("compact")
    return to.call("compact", where=sql_text(condition))


def vacuum(reader: StatementReader, to: Target) -> str:
    """VACUUM [RETAIN n HOURS] [DRY RUN]: without these two words files are deleted, as wherever people type it."""
    reader.take("FULL")
    told = {}
    if reader.take("RETAIN"):
        span = _span(reader, ("HOURS", "HOUR"))
        if not span:
            return ""
        told["retention"] = sql_text(span)
    return to.call("vacuum", **told, dry_run=str(reader.take("DRY", "RUN")).lower())


def restore(reader: StatementReader, to: Target) -> str:
    """RESTORE TO VERSION AS OF n, or a tag; TO TIMESTAMP AS OF a text, in the time zone of the session."""
    if not reader.take("TO"):
        return ""
    state = _state(reader, to)
    return to.call("restore", at=state) if state else ""


def describe_history(reader: StatementReader, to: Target) -> str:
    """DESCRIBE HISTORY [LIMIT n]."""
    if reader.take("LIMIT"):
        limit = reader.take_one("number")
        return to.call("history", limit=limit.text) if limit is not None and limit.text.isdecimal() else ""
    return to.call("history")


def describe_detail(_: StatementReader, to: Target) -> str:
    """DESCRIBE DETAIL."""
    return to.call("detail")


def show_indexes(_: StatementReader, to: Target) -> str:
    """SHOW INDEXES ON, FROM or IN."""
    return to.rows("indexes")


def alter_refs(reader: StatementReader, to: Target) -> str:
    """ALTER TABLE … CREATE or DROP, TAG or BRANCH."""
    creates = reader.take("CREATE")
    if reader.take("REPLACE") or reader.take("OR", "REPLACE"):
        raise InputError(f"{to.shown}: a tag or branch that is there is not moved: drop it, and create it again")
    if not creates and not reader.take("DROP"):
        return ""
    kind = "tag" if reader.take("TAG") else "branch" if reader.take("BRANCH") else ""
    lenient = reader.take("IF", "NOT", "EXISTS") if creates else reader.take("IF", "EXISTS")
    name = reader.take_name()
    if not kind or name is None:
        return ""
    told = {"name": sql_text(name)}
    if creates and reader.take("AS", "OF"):
        state = _state(reader, to, after_as_of=True)
        if not state:
            return ""
        told["at"] = state
    if kind == "tag" and creates and reader.take("RETAIN"):
        span = _span(reader, tuple(_DAYS))
        if not span:
            return ""
        told["expires"] = sql_text(span)
    if lenient:
        refs = to.open().inspect.refs().to_pylist()
        if any(each["name"] == name and each["kind"] == kind for each in refs) == creates:
            return to.rows("refs")  # there is nothing to do: what a call would show
    procedure = {"tag": "tag" if creates else "untag", "branch": "branch" if creates else "drop_branch"}[kind]
    return to.call(procedure, **told)


def _state(reader: StatementReader, to: Target, after_as_of: bool = False) -> str:
    """The SQL of what VERSION AS OF or TIMESTAMP AS OF says, or AS OF VERSION; empty for what is neither."""
    version, timestamp = ((word,) if after_as_of else (word, "AS", "OF") for word in ("VERSION", "TIMESTAMP"))
    if reader.take(*version):
        state = reader.take_one("number", "string")
        return "" if state is None else sql_text(state.content if state.kind == "string" else state.text)
    if reader.take(*timestamp):
        time = reader.take_one("string")
        return "" if time is None else sql_text(to.read_time(time.content))
    return ""


def _span(reader: StatementReader, units: tuple[str, ...]) -> str:
    """A duration as our procedures take it; empty for what is none."""
    number = reader.take_one("number")
    for unit in units:
        if number is not None and reader.take(unit):
            return number.text + _DAYS[unit]
    return ""


@dataclass(frozen=True, slots=True)
class Habit:
    """A statement: what it begins with, what may stand before the table, how it goes on, and what it becomes."""

    verb: tuple[str, ...]
    before: tuple[tuple[str, ...], ...]
    says: str
    becomes: Callable[[StatementReader, Target], str]


HABITS: tuple[Habit, ...] = (
    Habit(("OPTIMIZE",), (("TABLE",),), "[WHERE condition] [ZORDER BY (a, b)]", optimize),
    Habit(("VACUUM",), (("TABLE",),), "[RETAIN n HOURS] [DRY RUN]", vacuum),
    Habit(("RESTORE",), (("TABLE",),), "TO VERSION AS OF 3, or TO TIMESTAMP AS OF '2026-11-22 10:00:00'", restore),
    *(
        Habit((verb, what), (("TABLE",),), says, becomes)
        for verb in ("DESCRIBE", "DESC")
        for what, says, becomes in (("HISTORY", "[LIMIT n]", describe_history), ("DETAIL", "", describe_detail))
    ),
    *(Habit(("SHOW", what), (("ON",), ("FROM",), ("IN",)), "", show_indexes) for what in ("INDEXES", "INDEX")),
    Habit(
        ("ALTER", "TABLE"),
        (),
        "CREATE TAG x [AS OF VERSION 3] [RETAIN 30 DAYS], CREATE BRANCH x, DROP TAG x or DROP BRANCH x",
        alter_refs,
    ),
)
"""All of them. ``TypedStatements.java`` asks about texts that begin so."""


def check_end(habit: Habit, reader: StatementReader, to: Target, sql: str) -> str:
    """The SQL of a statement that was read to its end. Raises InputError for one that says something else."""
    if sql and not reader.rest:
        return sql
    verb, rest = " ".join(habit.verb), reader.rest
    told = f"{rest!r} is not taken" if rest else "it ends too early"
    form = f"say {verb} {to.shown} {habit.says}".rstrip()
    raise InputError(f"{verb} {to.shown}: {told}; {form}")
