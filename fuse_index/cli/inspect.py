"""The commands that list what there is: commits, and the parts of a table."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import pyarrow as pa
import typer

from fuse_index import Table, open_table
from fuse_index.cli import output
from fuse_index.cli.index import INDEX_LIST_COLUMNS, parse_json_fields
from fuse_index.cli.options import AtOption, BranchOption, JsonOption, TableArgument, TailOption, VersionOption
from fuse_index.table.arguments import check_limit
from fuse_index.table.views import METADATA_VIEWS

inspect_app = typer.Typer(add_completion=False)
_View = StrEnum("View", {name: name for name in METADATA_VIEWS})  # type: ignore[misc]


@inspect_app.command("log")
def _log(
    table: TableArgument,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Commits at most; 0 for all.")] = 20,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """List the commits of a table, newest first."""
    commits = open_table(table, branch=branch).history().slice(0, check_limit(limit or None, "commits"))
    output.print_json(commits.to_pylist()) if as_json else output.print_rows(commits)


@inspect_app.command("show")
def _show(
    table: TableArgument,
    what: Annotated[
        _View | None, typer.Argument(metavar="WHAT", help=f"List one of these instead: {', '.join(METADATA_VIEWS)}.")
    ] = None,
    branch: BranchOption = "main",
    at: AtOption = None,
    version: VersionOption = None,
    tail: TailOption = True,
    as_json: JsonOption = False,
) -> None:
    """Show what a table holds: columns, sizes, properties and indexes; or list all there is of one thing."""
    source = open_table(table, branch=branch, at=at, version=version, tail=tail)
    if what is not None:
        listed = METADATA_VIEWS[what.value](source)
        output.print_json([parse_json_fields(row) for row in listed.to_pylist()]) if as_json else output.print_rows(
            listed
        )
        return
    record = _table_record(table, source)
    if as_json:
        indexes = [parse_json_fields(row) for row in record["indexes"].to_pylist()]
        output.print_json(record | {"columns": record["columns"].to_pylist(), "indexes": indexes})
        return
    output.print_record({name: value for name, value in record.items() if not isinstance(value, pa.Table)})
    output.print_rows(record["columns"], title="columns")
    if record["indexes"].num_rows:
        output.print_rows(record["indexes"].select(INDEX_LIST_COLUMNS), title="indexes")


@inspect_app.command("refs")
def _refs(table: TableArgument, as_json: JsonOption = False) -> None:
    """List the branches and tags of a table."""
    refs = open_table(table).inspect.refs()
    output.print_json(refs.to_pylist()) if as_json else output.print_rows(refs)


def _table_record(url: str, table: Table) -> dict[str, Any]:
    snapshot = table.snapshot
    return {
        "table": url,
        "snapshot": snapshot.id,
        "sequence": snapshot.sequence,
        "timestamp": snapshot.timestamp,
        "rows": snapshot.row_count,
        "blocks": snapshot.block_count,
        "segments": snapshot.segment_count,
        "bytes": snapshot.bytes,
        "cluster_by": list(snapshot.cluster_by),
        "key": list(snapshot.key),
        "properties": dict(snapshot.properties),
        "columns": pa.table(
            {
                "name": [field.name for field in table.schema],
                "type": [str(field.type) for field in table.schema],
                "nullable": [field.nullable for field in table.schema],
            }
        ),
        "indexes": table.inspect.indexes(),
    }
