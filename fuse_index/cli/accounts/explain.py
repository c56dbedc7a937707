"""The command that tells what a question, a search or a statement would read."""

from __future__ import annotations

from typing import Annotated

import typer

from fuse_index import Table, open_table
from fuse_index.cli import output
from fuse_index.cli.options import (
    AtOption,
    BranchOption,
    JsonOption,
    TableArgument,
    TailOption,
    VersionOption,
    WhereOption,
    join_repeated,
    parse_pairs,
    split_names,
    split_terms,
)
from fuse_index.errors import InputError
from fuse_index.pruning.explanation import Explanation

accounts_app = typer.Typer(add_completion=False)


@accounts_app.command("explain")
def _explain(
    table: TableArgument,
    where: WhereOption = None,
    delete: Annotated[bool, typer.Option("--delete", help="Of deleting the rows of --where, which stay.")] = False,
    search: Annotated[
        str | None, typer.Option("--search", metavar="QUERY", help="Of searching these --columns for the best rows.")
    ] = None,
    columns: Annotated[
        list[str] | None, typer.Option("--columns", "-c", help="Columns that are searched, by commas.")
    ] = None,
    changes: Annotated[
        str | None,
        typer.Option("--changes", metavar="STATE", help="Of the changes since a snapshot, a version or a time."),
    ] = None,
    stages: Annotated[bool, typer.Option("--stages", help="Also what was asked and fetched in each stage.")] = False,
    branch: BranchOption = "main",
    at: AtOption = None,
    version: VersionOption = None,
    tail: TailOption = True,
    as_json: JsonOption = False,
) -> None:
    """Say for each part of a condition which index was asked, and what it removed or why it could not."""
    opened = open_table(table, branch=branch, at=at, version=version, tail=tail)
    if sum((delete, search is not None, changes is not None)) > 1:
        raise InputError("--search, --delete and --changes: give one of them")
    if changes is not None:
        explanation = opened.explain.changes(changes, where=where)
    else:
        explanation = _account(opened, where, delete, search, split_names(join_repeated(columns)))
    if as_json:
        output.print_json(explanation.to_dict())
        return
    output.stdout_console().print(explanation)
    if stages:
        output.stdout_console().print(str(explanation.stages))


@accounts_app.command("what-if")
def _what_if(
    table: TableArgument,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="Which kind of index, such as bloom.")],
    columns: Annotated[list[str], typer.Option("--columns", "-c", help="Columns or terms, by commas; repeatable.")],
    where: Annotated[list[str], typer.Option("--where", "-w", help="A condition that is asked; repeatable.")],
    options: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="The kind's own, key=value; repeatable.")
    ] = None,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Say what an index that is not there would leave out, weigh and cost: it is tried in memory, on a sample."""
    terms, chosen = split_terms(join_repeated(columns) or ""), parse_pairs(options or [], "--option")
    rows = open_table(table, branch=branch).explain.what_if(kind, terms, chosen, where)
    output.print_json(rows.to_pylist()) if as_json else output.print_rows(rows)


def _account(table: Table, where: str | None, delete: bool, search: str | None, columns: list[str]) -> Explanation:
    if bool(columns) != (search is not None):
        raise InputError("--search and --columns go together: give the query, and the columns that are searched")
    if search is not None:
        return table.explain.search(columns, search, where=where)
    if not delete:
        return table.explain(where)
    if where is None:
        raise InputError("--delete needs --where: say which rows")
    return table.explain.delete(where)
