"""The commands about indexes: ``fuse-index index …``."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from fuse_index import open_table
from fuse_index.cli import output
from fuse_index.cli.options import At, Branch, IndexArgument, Json, Processes, Spark, TableArgument, pairs, terms
from fuse_index.cli.spark_session import session

app = typer.Typer(no_args_is_help=True)

COLUMNS = [
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


@app.command()
def create(
    table: TableArgument,
    name: IndexArgument,
    kind: Annotated[str, typer.Option("--kind", "-k", help="One of `fuse-index plugins`, such as bloom.")],
    columns: Annotated[
        str, typer.Option("--columns", "-c", help="Columns or terms such as lower(email), separated by commas.")
    ],
    options: Annotated[
        list[str] | None, typer.Option("--option", "-o", help="The kind's own, key=value; repeatable.")
    ] = None,
    build: Annotated[bool, typer.Option("--build/--no-build", help="Index the blocks that are there already.")] = True,
    processes: Processes = 1,
    spark: Spark = None,
    branch: Branch = "main",
    as_json: Json = False,
) -> None:
    """Define an index; new blocks are indexed as they are written."""
    started = time.perf_counter()
    open_table(table, branch=branch).create_index(
        name, kind, terms(columns), build=False, **pairs(options or [], "--option")
    )
    if build:
        _build(table, branch, name, False, processes, spark)
    _report(table, branch, name, "created" if build else "defined", started, as_json)


@app.command(name="list")
def list_(table: TableArgument, branch: Branch = "main", at: At = None, as_json: Json = False) -> None:
    """List the indexes of a table, and how many blocks each covers."""
    indexes = open_table(table, branch=branch, at=at).indexes()
    output.print_json([opened(row) for row in indexes.to_pylist()]) if as_json else output.print_rows(
        indexes.select(COLUMNS)
    )


@app.command()
def show(
    table: TableArgument, name: IndexArgument, branch: Branch = "main", at: At = None, as_json: Json = False
) -> None:
    """Show one index: what it is on, its options, coverage and size, and what its kind says of itself."""
    shown = open_table(table, branch=branch, at=at).inspect_index(name)
    output.print_json(opened(shown)) if as_json else output.print_record(shown)


@app.command()
def refresh(
    table: TableArgument,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="Name of the index; without, all of them.")
    ] = None,
    processes: Processes = 1,
    spark: Spark = None,
    branch: Branch = "main",
    as_json: Json = False,
) -> None:
    """Index the blocks that an index lacks, and only those."""
    started = time.perf_counter()
    wanted = [name] if name is not None else open_table(table, branch=branch).indexes().column("name").to_pylist()
    for each in wanted:
        _build(table, branch, each, False, processes, spark)
    records = [_record(table, branch, each, started) for each in wanted]
    if as_json:
        output.print_json(records if name is None else records[0])
    else:
        for record in records:
            output.say(_sentence(record, "refreshed"))


@app.command()
def rebuild(
    table: TableArgument,
    name: IndexArgument,
    processes: Processes = 1,
    spark: Spark = None,
    branch: Branch = "main",
    as_json: Json = False,
) -> None:
    """Index every block anew, whatever was there; rows are not rewritten."""
    started = time.perf_counter()
    _build(table, branch, name, True, processes, spark)
    _report(table, branch, name, "rebuilt", started, as_json)


@app.command()
def drop(table: TableArgument, name: IndexArgument, branch: Branch = "main", as_json: Json = False) -> None:
    """Forget an index; queries read more, and answer the same."""
    open_table(table, branch=branch).drop_index(name)
    output.print_json({"index": name, "dropped": True}) if as_json else output.say(f"dropped {name}")


@app.command()
def verify(table: TableArgument, name: IndexArgument, branch: Branch = "main", as_json: Json = False) -> None:
    """Judge an index anew against the rows it is on; exit code 1 if it would have lost any."""
    result = open_table(table, branch=branch).verify_index(name)
    output.print_json(result.to_dict()) if as_json else output.say(str(result))
    if not result.sound:
        raise typer.Exit(1)


def _build(url: str, branch: str, name: str, rebuild: bool, processes: int, spark: str | None) -> None:
    if spark is not None:
        with session(spark) as (jobs, running):
            jobs.build_index(running, url, name, rebuild=rebuild, branch=branch)
        return
    table = open_table(url, branch=branch)
    with output.progress() as bar:
        task = bar.add_task(f"index {name}", total=None)

        def blocks(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        build = table.rebuild_index if rebuild else table.refresh_index
        build(name, processes=processes, progress=blocks)


def opened(record: Mapping[str, Any]) -> dict[str, Any]:
    """A row of what there is to see, with JSON objects instead of their text: options of indexes, summaries of
    snapshots.
    """
    texts = {name: record[name] for name in ("options", "summary") if isinstance(record.get(name), str)}
    return {**record, **{name: json.loads(text) for name, text in texts.items()}}


def _report(url: str, branch: str, name: str, done: str, started: float, as_json: bool) -> None:
    record = _record(url, branch, name, started)
    output.report(record, _sentence(record, done), as_json)


def _record(url: str, branch: str, name: str, started: float) -> dict[str, Any]:
    table = open_table(url, branch=branch)
    record = next(opened(row) for row in table.indexes().to_pylist() if row["name"] == name)
    return record | {"seconds": round(time.perf_counter() - started, 3), "snapshot": table.snapshot.id}


def _sentence(record: Mapping[str, Any], done: str) -> str:
    indexed = f"{record['blocks_indexed']:,} of {record['blocks']:,} blocks indexed"
    return f"{done} {record['name']}: {indexed}, {record['seconds']:.1f} s"
