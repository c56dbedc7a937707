"""The commands ``ui`` and ``report``: what is in a table and what a condition skips, in a browser or in one file."""

from __future__ import annotations

import sys
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from fuse_index import NotFound, catalog, open_table
from fuse_index.cli import output
from fuse_index.cli.options import AtOption, BranchOption, TableArgument, WhereOption, split_table_name
from fuse_index.cli.servers.pages import PageServer, TablePages

ui_app = typer.Typer(add_completion=False)


@ui_app.command("ui")
def _ui(
    place: Annotated[
        str, typer.Argument(metavar="TABLE|WAREHOUSE", help="Path or URL of a table or a warehouse; or WAREHOUSE#NAME.")
    ],
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on this machine; 0 is any.")] = 8765,
    open_browser: Annotated[bool, typer.Option("--open", help="Open a browser there.")] = False,
) -> None:
    """Show tables in a browser on this machine: columns, indexes, blocks, commits, and what a condition skips.

    Nothing is written, and only this machine is answered. Ctrl-C ends it.
    """
    with PageServer(_pages(place), port) as server:
        output.print_text(server.url)
        sys.stdout.flush()
        if open_browser:
            webbrowser.open(server.url)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            output.print_note("ended")


@ui_app.command("report")
def _report(
    table: TableArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The HTML file, which is replaced.")],
    where: WhereOption = None,
    branch: BranchOption = "main",
    at: AtOption = None,
) -> None:
    """Write a page about a table into one HTML file, which needs nothing else."""
    output.print_text(str(open_table(table, branch=branch, at=at, read_only=True).report(file, where)))


def _pages(place: str) -> TablePages:
    """What is shown of a place. Raises NotFound where there is neither a table nor a warehouse."""
    if (named := split_table_name(place)) is not None:
        warehouse, name = catalog(named[0]), named[1]
        warehouse.find_table(name)
        return TablePages(lambda _: warehouse.load_table(name, read_only=True))
    try:
        warehouse = catalog(place)
    except NotFound:
        open_table(place, read_only=True)  # raises where there is none
        return TablePages(lambda _: open_table(place, read_only=True))
    return TablePages(lambda name: warehouse.load_table(name, read_only=True), warehouse)
