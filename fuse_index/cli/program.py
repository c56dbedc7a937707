"""The commands about tables, and how a run ends: 0 done, 1 failed (one or two lines why), 2 wrong usage."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.text import Text

from fuse_index import create_table, open_table
from fuse_index.cli import input_files, output
from fuse_index.cli.clustering import clustering_app
from fuse_index.cli.columns import columns_app
from fuse_index.cli.history import history_app
from fuse_index.cli.index import INDEX_LIST_COLUMNS, index_app, parse_json_fields
from fuse_index.cli.options import (
    AtOption,
    BranchOption,
    JsonOption,
    TableArgument,
    WhereOption,
    parse_pairs,
    split_names,
)
from fuse_index.cli.rows import rows_app
from fuse_index.errors import FuseIndexError
from fuse_index.indexes.registry import Host, PluginWarning
from fuse_index.table.views import METADATA_VIEWS
from fuse_storage import StorageError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Tables on plain Parquet whose queries skip blocks.",
)
app.add_typer(history_app)
app.add_typer(columns_app)
app.add_typer(rows_app)
app.add_typer(clustering_app)
app.add_typer(index_app, name="index", help="Build, look at and check the indexes of a table.")

_View = StrEnum("View", {name: name for name in METADATA_VIEWS})  # type: ignore[misc]
_FormatOption = Annotated[
    input_files.InputFormat | None, typer.Option("--format", help="What the files are, where their names do not say.")
]
_NullOption = Annotated[
    list[str] | None, typer.Option("--null", help="Text that means NULL in CSV; repeatable. Default: empty.")
]
_ColumnsOption = Annotated[
    str | None, typer.Option("--columns", "-c", help="Columns to print, separated by commas; odd names in back-quotes.")
]


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command line and exit; errors of ours end it without a traceback."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: output.print_note(f"warning: {message}")
            app(args=arguments, prog_name="fuse-index")
    except BrokenPipeError:
        # The reader (head, less) has seen enough; without this, Python complains again while it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (FuseIndexError, StorageError, OSError, pa.ArrowException) as error:
        told = str(error) if isinstance(error, FuseIndexError | StorageError) else _brief(error)
        output.stderr_console().print(Text.assemble(("error: ", "bold red"), told))
        sys.exit(1)


@app.command("create")
def _create(
    table: TableArgument,
    schema: Annotated[
        str | None, typer.Option("--schema", help='Columns as in SQL: "id BIGINT NOT NULL, name STRING".')
    ] = None,
    like: Annotated[
        Path | None, typer.Option("--like", help="Take the columns of this Parquet, CSV or JSON lines file.")
    ] = None,
    format_: _FormatOption = None,
    null: _NullOption = None,
    cluster_by: Annotated[
        str | None, typer.Option("--cluster-by", help="Columns that writers sort by, separated by commas.")
    ] = None,
    key: Annotated[str | None, typer.Option("--key", help="Columns that identify a row, separated by commas.")] = None,
    properties: Annotated[
        list[str] | None, typer.Option("--property", help="Such as block_rows=100000; repeatable.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make an empty table."""
    if (schema is None) == (like is None):
        raise typer.BadParameter("give either --schema or --like", param_hint="--schema")
    columns = schema
    if like is not None:
        columns = input_files.infer_file_schema(input_files.find_input_files([like], format_, null or ())[0])
    settings = parse_pairs(properties or [], "--property")
    made = create_table(table, columns, cluster_by=split_names(cluster_by), properties=settings, key=split_names(key))
    output.print_result({"table": table, "snapshot": made.snapshot.id}, f"created {table}", as_json)


@app.command("ingest")
def _ingest(
    table: TableArgument,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Parquet, CSV or JSON lines files, or folders of them.")
    ],
    format_: _FormatOption = None,
    null: _NullOption = None,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Append files to a table, all of them in one commit; indexes are built along."""
    found = input_files.find_input_files(files, format_, null or ())
    target = open_table(table, branch=branch)
    before = target.snapshot
    started = time.perf_counter()
    with output.progress_bar() as bar:
        task = bar.add_task("ingest", total=sum(source.size for source in found))
        snapshot = target.append(
            input_files.read_input_files(found, target.schema, lambda bytes_: bar.advance(task, bytes_))
        )
    seconds = time.perf_counter() - started
    rows = snapshot.summary.get("added_rows", 0) if snapshot.id != before.id else 0
    record = {"table": table, "files": len(found), "rows": rows, "snapshot": snapshot.id, "seconds": round(seconds, 3)}
    counted = "1 file" if len(found) == 1 else f"{len(found)} files"
    output.print_result(record, f"{rows:,} rows from {counted} in {seconds:.1f} s, snapshot {snapshot.id}", as_json)


@app.command("query")
def _query(
    table: TableArgument,
    where: WhereOption = None,
    columns: _ColumnsOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Rows at most; 0 for all.")] = 20,
    count: Annotated[bool, typer.Option("--count", help="Print how many rows there are.")] = False,
    group_by: Annotated[
        list[str] | None, typer.Option("--group-by", help="A column or term to group rows by; repeatable.")
    ] = None,
    aggregates: Annotated[
        list[str] | None, typer.Option("--aggregate", help='Such as "count(*)" or "sum(n)"; repeatable.')
    ] = None,
    indexes: Annotated[bool, typer.Option("--indexes/--no-indexes", help="Without, every block is read.")] = True,
    branch: BranchOption = "main",
    at: AtOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the rows that a condition is true on, or aggregates of them; with --json one JSON object a line."""
    source = open_table(table, branch=branch, at=at)
    if group_by or aggregates:
        if columns or count:
            raise typer.BadParameter("--columns and --count are of rows, not of aggregates", param_hint="--aggregate")
        answer = source.aggregate(group_by or [], aggregates or [], where, indexes=indexes)
        answer = answer.slice(0, limit) if limit else answer
        if as_json:
            for batch in answer.to_batches():
                output.print_json_lines(batch)
        else:
            _print(answer, limit)
        return
    scan = source.scan(
        where, columns=split_names(columns) or None, limit=None if count else limit or None, indexes=indexes
    )
    if count:
        number = scan.count()
        output.print_json({"count": number}) if as_json else output.print_text(f"{number}")
    elif as_json:
        for batch in scan.to_batches():
            output.print_json_lines(batch)
    else:
        _print(scan.to_arrow(), limit)


@app.command("search")
def _search(
    table: TableArgument,
    column: Annotated[str, typer.Argument(help="The column to search; several, separated by commas.")],
    query: Annotated[str, typer.Argument(help='Such as "+late refund*".')],
    where: WhereOption = None,
    columns: _ColumnsOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Rows at most.")] = 10,
    options: Annotated[str | None, typer.Option("--options", help='Such as "operator=and; tokenizer=en_stem".')] = None,
    branch: BranchOption = "main",
    at: AtOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the best rows for a query, best first, with their scores; with --json one JSON object a line."""
    source = open_table(table, branch=branch, at=at)
    found = source.search(split_names(column), query, limit, where, split_names(columns) or None, options)
    output.print_json_lines(found) if as_json else _print(found, limit)


@app.command("explain")
def _explain(
    table: TableArgument,
    where: WhereOption = None,
    branch: BranchOption = "main",
    at: AtOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say for each part of a condition which index was asked, and what it removed or why it could not."""
    explanation = open_table(table, branch=branch, at=at).explain(where)
    if as_json:
        output.print_json(explanation.to_dict())
    else:
        output.stdout_console().print(explanation)


@app.command("log")
def _log(
    table: TableArgument,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Commits at most; 0 for all.")] = 20,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """List the commits of a table, newest first."""
    history = open_table(table, branch=branch).history()
    shown = history.slice(0, limit) if limit else history
    output.print_json(shown.to_pylist()) if as_json else output.print_rows(shown)


@app.command("show")
def _show(
    table: TableArgument,
    what: Annotated[
        _View | None, typer.Argument(metavar="[WHAT]", help=f"List one of these instead: {', '.join(METADATA_VIEWS)}.")
    ] = None,
    branch: BranchOption = "main",
    at: AtOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what a table holds: columns, sizes, properties and indexes; or list all there is of one thing."""
    source = open_table(table, branch=branch, at=at)
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


@app.command("plugins")
def _plugins(as_json: JsonOption = False) -> None:
    """List the index kinds and functions that are installed, and plugins that could not be loaded."""
    with warnings.catch_warnings(action="ignore", category=PluginWarning):  # they are listed below
        host = Host.discover()
    kinds = [
        {
            "kind": name,
            "from": host.sources[name].source,
            "module": type(kind).__module__,
            "writes": kind.writes,
            "reads": sorted(kind.reads),
        }
        for name, kind in sorted(host.kinds.items())
    ]
    functions = [
        {"function": name, "arguments": [str(type_) for type_ in function.argument_types]}
        for name, function in sorted(host.functions.items())
    ]
    if as_json:
        output.print_json({"kinds": kinds, "functions": functions, "problems": list(host.problems)})
        return
    output.print_rows(
        output.records_to_table(kinds, ("kind", "from", "module", "writes", "reads")), title="index kinds"
    )
    if functions:
        output.print_rows(output.records_to_table(functions, ("function", "arguments")), title="functions")
    for problem in host.problems:
        output.print_note(f"warning: {problem}")


def _print(rows: pa.Table, limit: int) -> None:
    output.print_rows(rows)
    if limit and rows.num_rows == limit:
        output.print_note(f"the first {limit} rows; --limit 0 prints all")


def _table_record(url: str, table: Any) -> dict[str, Any]:
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
        "indexes": table.indexes(),
    }


def _brief(error: BaseException) -> str:
    """Two lines at most; libraries below us sometimes send a page."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return "\n".join(lines[:2]) or type(error).__name__
