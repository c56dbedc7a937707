"""The commands about columns: added, dropped, renamed, moved and widened, without a row being rewritten."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from fuse_index import open_table
from fuse_index.cli import output
from fuse_index.cli.front.completion import complete_columns
from fuse_index.cli.options import BranchOption, JsonOption, TableArgument, split_names
from fuse_index.table.schema.types import parse_typed_value
from fuse_storage import Snapshot

columns_app = typer.Typer(add_completion=False)

_ColumnArgument = Annotated[
    str,
    typer.Argument(
        autocompletion=complete_columns,
        metavar="COLUMN",
        help="A column, or with dots a field of a struct: place.lat, items.element.price.",
    ),
]
_TypeArgument = Annotated[
    str, typer.Argument(metavar="TYPE", help="Spark SQL's name of a type: bigint, decimal(12,2), struct<a: int>.")
]
_FirstOption = Annotated[bool, typer.Option("--first", help="Before all others.")]
_AfterOption = Annotated[str | None, typer.Option("--after", help="Right after this column.")]


class _OnDrop(StrEnum):
    refuse = "refuse"
    drop = "drop"


class _OnTypeChange(StrEnum):
    refuse = "refuse"
    drop = "drop"
    rebuild = "rebuild"


@columns_app.command(name="add-column")
def _add_column(
    table: TableArgument,
    path: _ColumnArgument,
    type_: _TypeArgument,
    default: Annotated[
        str | None, typer.Option("--default", help="What rows hold that are there already; default: NULL.")
    ] = None,
    not_null: Annotated[bool, typer.Option("--not-null", help="Refuse NULL in it; needs a default.")] = False,
    first: _FirstOption = False,
    after: _AfterOption = None,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Add a column to a table."""
    target = open_table(table, branch=branch)
    value = None if default is None else parse_typed_value(default, type_)
    _report(
        target.add_column(path, type_, value, not not_null, first=first, after=after), f"added {path} {type_}", as_json
    )


@columns_app.command(name="drop-column")
def _drop_column(
    table: TableArgument,
    path: _ColumnArgument,
    indexes: Annotated[_OnDrop, typer.Option("--indexes", help="What to do where indexes are on it.")] = _OnDrop.refuse,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Drop a column; older snapshots keep it."""
    _report(open_table(table, branch=branch).drop_column(path, indexes.value), f"dropped {path}", as_json)


@columns_app.command(name="rename-column")
def _rename_column(
    table: TableArgument,
    path: _ColumnArgument,
    to: Annotated[str, typer.Argument(metavar="NAME", help="The new name, without dots.")],
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Rename a column; indexes on it stay."""
    _report(open_table(table, branch=branch).rename_column(path, to), f"{path} is now {to}", as_json)


@columns_app.command(name="move-column")
def _move_column(
    table: TableArgument,
    path: _ColumnArgument,
    first: _FirstOption = False,
    after: _AfterOption = None,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Put a column elsewhere in the order."""
    _report(open_table(table, branch=branch).move_column(path, first=first, after=after), f"moved {path}", as_json)


@columns_app.command(name="change-type")
def _change_type(
    table: TableArgument,
    path: _ColumnArgument,
    type_: _TypeArgument,
    indexes: Annotated[
        _OnTypeChange, typer.Option("--indexes", help="What to do where indexes are on it.")
    ] = _OnTypeChange.refuse,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Widen the type of a column."""
    _report(open_table(table, branch=branch).change_type(path, type_, indexes.value), f"{path} is now {type_}", as_json)


@columns_app.command(name="set-nullable")
def _set_nullable(
    table: TableArgument,
    path: _ColumnArgument,
    not_null: Annotated[bool, typer.Option("--not-null", help="Refuse NULL in it, if no row has it.")] = False,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Let a column hold NULL, or forbid it."""
    sentence = f"{path} {'is NOT NULL' if not_null else 'may be NULL'}"
    _report(open_table(table, branch=branch).set_nullable(path, not not_null), sentence, as_json)


@columns_app.command(name="set-default")
def _set_default(
    table: TableArgument,
    column: Annotated[
        str, typer.Argument(autocompletion=complete_columns, metavar="COLUMN", help="A column, by its name.")
    ],
    value: Annotated[str | None, typer.Argument(metavar="VALUE", help="A value of the column's type.")] = None,
    none: Annotated[bool, typer.Option("--none", help="No default from now on: NULL.")] = False,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Choose what a column holds in rows that come without it; rows that are there keep what they hold."""
    if none != (value is None):
        raise typer.BadParameter("give a value, or --none", param_hint="VALUE")
    target = open_table(table, branch=branch)
    default = None if value is None else parse_typed_value(value, target.snapshot.schema.find([column]).type)
    sentence = f"{column} has no default" if value is None else f"the default of {column} is {value}"
    _report(target.set_default(column, default), sentence, as_json)


@columns_app.command(name="key-by")
def _key_by(
    table: TableArgument,
    columns: Annotated[str | None, typer.Argument(metavar="COLUMNS", help="Columns, separated by commas.")] = None,
    none: Annotated[bool, typer.Option("--none", help="No columns from now on.")] = False,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Say which columns identify a row: changes are told, and rows merged, by them."""
    if none != (columns is None):
        raise typer.BadParameter("give columns, or --none", param_hint="COLUMNS")
    snapshot = open_table(table, branch=branch).key_by(split_names(columns, "COLUMNS") or None)
    sentence = f"the key is {', '.join(snapshot.key)}" if snapshot.key else "there is no key"
    output.print_result({"snapshot": snapshot.id, "key": list(snapshot.key)}, sentence, as_json)


def _report(snapshot: Snapshot, sentence: str, as_json: bool) -> None:
    output.print_result({"snapshot": snapshot.id, "columns": snapshot.schema.to_json()["fields"]}, sentence, as_json)
