"""The command that lets other engines read a table without us."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from fuse_index import open_table
from fuse_index.cli import output
from fuse_index.cli.options import AtOption, BranchOption, JsonOption, TableArgument

export_app = typer.Typer()


class _ExportFormat(StrEnum):
    delta = "delta"
    iceberg = "iceberg"


@export_app.command("export")
def _export(
    table: TableArgument,
    format_: Annotated[_ExportFormat, typer.Option("--format", help="Whose readers are to read it.")],
    branch: BranchOption = "main",
    at: AtOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let readers of Delta or Iceberg read a snapshot: metadata is written beside ours, and no row is copied."""
    source = open_table(table, branch=branch, at=at)
    written: int | str = source.export_delta() if format_ is _ExportFormat.delta else source.export_iceberg()
    text = f"version {written}" if format_ is _ExportFormat.delta else f"{written}"
    output.print_result({"snapshot": source.snapshot.id, "format": format_, "written": written}, text, as_json)
