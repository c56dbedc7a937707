"""The commands about indexes: ``fuse-index index …``."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from fuse_index import open_table
from fuse_index.cli import output
from fuse_index.cli.front.completion import complete_columns, complete_indexes, complete_kinds
from fuse_index.cli.front.progress import WorkProgress
from fuse_index.cli.options import (
    AtOption,
    BranchOption,
    IndexArgument,
    JsonOption,
    ProcessesOption,
    SparkOption,
    TableArgument,
    join_repeated,
    open_spark_session,
    parse_pairs,
    split_terms,
)

index_app = typer.Typer(
    add_completion=False, no_args_is_help=True, help="Build, look at and check the indexes of a table."
)

INDEX_LIST_COLUMNS = [
    "name",
    "kind",
    "columns",
    "options",
    "blocks_indexed",
    "blocks",
    "summary_bytes",
    "payload_bytes",
    "problem",
]
"""What people see of an index in a list; JSON has all."""


@index_app.command("create")
def _create(
    table: TableArgument,
    name: IndexArgument,
    kind: Annotated[
        str,
        typer.Option("--kind", "-k", help="One of `fuse-index plugins`, such as bloom.", autocompletion=complete_kinds),
    ],
    columns: Annotated[
        list[str],
        typer.Option(
            "--columns",
            "-c",
            help="Columns or terms such as lower(email), separated by commas; repeatable.",
            autocompletion=complete_columns,
        ),
    ],
    options: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="The kind's own, key=value; repeatable.")
    ] = None,
    build: Annotated[bool, typer.Option("--build/--no-build", help="Index the blocks that are there already.")] = True,
    processes: ProcessesOption = 1,
    spark: SparkOption = None,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Define an index; new blocks are indexed as they are written."""
    started = time.perf_counter()
    open_table(table, branch=branch).create_index(
        name, kind, split_terms(join_repeated(columns) or ""), build=False, **parse_pairs(options or [], "--option")
    )
    if build:
        _build(table, branch, name, False, processes, spark)
    _report(table, branch, name, "created" if build else "defined", started, as_json)


@index_app.command(name="list")
def _list(
    table: TableArgument, branch: BranchOption = "main", at: AtOption = None, as_json: JsonOption = False
) -> None:
    """List the indexes of a table, and how many blocks each covers."""
    indexes = open_table(table, branch=branch, at=at).inspect.indexes()
    output.print_json([parse_json_fields(row) for row in indexes.to_pylist()]) if as_json else output.print_rows(
        indexes.select(INDEX_LIST_COLUMNS)
    )


@index_app.command("show")
def _show(
    table: TableArgument,
    name: IndexArgument,
    branch: BranchOption = "main",
    at: AtOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show one index: what it is on, its options, coverage and size, and what its kind says of itself."""
    record = open_table(table, branch=branch, at=at).inspect.index(name)
    output.print_json(parse_json_fields(record)) if as_json else output.print_record(record)


@index_app.command("refresh")
def _refresh(
    table: TableArgument,
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="Name of the index; without, all of them.", autocompletion=complete_indexes
        ),
    ] = None,
    processes: ProcessesOption = 1,
    spark: SparkOption = None,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Index the blocks that an index lacks, and only those."""
    started = time.perf_counter()
    wanted = (
        [name] if name is not None else open_table(table, branch=branch).inspect.indexes().column("name").to_pylist()
    )
    for each in wanted:
        _build(table, branch, each, False, processes, spark)
    records = [_record(table, branch, each, started) for each in wanted]
    if as_json:
        output.print_json(records if name is None else records[0])
    else:
        for record in records:
            output.print_text(_sentence(record, "refreshed"))


@index_app.command("rebuild")
def _rebuild(
    table: TableArgument,
    name: IndexArgument,
    processes: ProcessesOption = 1,
    spark: SparkOption = None,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Index every block anew, whatever was there; rows are not rewritten."""
    started = time.perf_counter()
    _build(table, branch, name, True, processes, spark)
    _report(table, branch, name, "rebuilt", started, as_json)


@index_app.command("drop")
def _drop(
    table: TableArgument, name: IndexArgument, branch: BranchOption = "main", as_json: JsonOption = False
) -> None:
    """Forget an index; queries read more, and answer the same."""
    open_table(table, branch=branch).drop_index(name)
    output.print_json({"index": name, "dropped": True}) if as_json else output.print_text(f"dropped {name}")


@index_app.command("verify")
def _verify(
    table: TableArgument, name: IndexArgument, branch: BranchOption = "main", as_json: JsonOption = False
) -> None:
    """Judge an index anew against the rows it is on; exit code 1 if it would have lost any."""
    result = open_table(table, branch=branch).maintenance.verify_index(name)
    output.print_json(result.to_dict()) if as_json else output.print_text(str(result))
    if not result.sound:
        raise typer.Exit(1)


def _build(url: str, branch: str, name: str, rebuild: bool, processes: int, spark: str | None) -> None:
    if spark is not None:
        with open_spark_session(spark) as (jobs, running):
            jobs.build_index(running, url, name, rebuild=rebuild, branch=branch)
        return
    table = open_table(url, branch=branch)
    with WorkProgress(f"index {name}") as progress:
        build = table.maintenance.rebuild_index if rebuild else table.maintenance.refresh_index
        build(name, processes=processes, progress=progress.blocks_done)


def parse_json_fields(record: Mapping[str, Any]) -> dict[str, Any]:
    """A row of a metadata view with JSON objects in place of their text: options of indexes, summaries of snapshots."""
    texts = {name: record[name] for name in ("options", "summary") if isinstance(record.get(name), str)}
    return {**record, **{name: json.loads(text) for name, text in texts.items()}}


def _report(url: str, branch: str, name: str, done: str, started: float, as_json: bool) -> None:
    record = _record(url, branch, name, started)
    output.print_result(record, _sentence(record, done), as_json)


def _record(url: str, branch: str, name: str, started: float) -> dict[str, Any]:
    table = open_table(url, branch=branch)
    record = next(parse_json_fields(row) for row in table.inspect.indexes().to_pylist() if row["name"] == name)
    return record | {"seconds": round(time.perf_counter() - started, 3), "snapshot": table.snapshot.id}


def _sentence(record: Mapping[str, Any], done: str) -> str:
    indexed = f"{record['blocks_indexed']:,} of {record['blocks']:,} blocks indexed"
    return f"{done} {record['name']}: {indexed}, {record['seconds']:.1f} s"
