"""The commands between tables of ours and those of other formats: attach and sync, convert, export."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from typing import Annotated, Any

import pyarrow as pa
import typer

from fuse_index import InputError, attach, catalog, open_table
from fuse_index.cli import output
from fuse_index.cli.front.progress import WorkProgress
from fuse_index.cli.options import (
    AtOption,
    BranchOption,
    JsonOption,
    NewTableArgument,
    TableArgument,
    join_repeated,
    parse_pairs,
    split_names,
    split_table_name,
    split_terms,
)

foreign_app = typer.Typer(add_completion=False)


class _ExportFormat(StrEnum):
    delta = "delta"
    iceberg = "iceberg"


@foreign_app.command("export")
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


class _SourceFormat(StrEnum):
    parquet = "parquet"
    delta = "delta"
    iceberg = "iceberg"


@foreign_app.command("attach")
def _attach(
    source: Annotated[str, typer.Argument(help="A folder of Parquet files, a Delta or an Iceberg table.")],
    table: NewTableArgument,
    format_: Annotated[_SourceFormat, typer.Option("--format", help="What the source is.")] = _SourceFormat.parquet,
    votes_only: Annotated[
        bool, typer.Option("--votes-only", help="For indexes alone, which readers of the source ask: read no row here.")
    ] = False,
    columns: Annotated[
        list[str] | None, typer.Option("--columns", help="The columns that it is to have, by commas; all if left out.")
    ] = None,
    widen: Annotated[
        bool, typer.Option("--widen", help="Whole numbers beside doubles of other files are doubles.")
    ] = False,
    max_age: Annotated[
        str | None, typer.Option("--max-age", help="Such as 1m: who opens it later has it synced if it is older.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a table over files that others write: nothing is copied, and nothing is written there."""
    chosen = None if columns is None else split_names(join_repeated(columns))
    about: dict[str, Any] = {"columns": chosen, "widen": widen, "max_age": max_age}
    if (named := split_table_name(table)) is None:
        made = attach(source, table, format_.value, votes_only=votes_only, **about)
    elif votes_only:
        raise InputError(f"{table} is a name, by which rows are read: with --votes-only give the table a place")
    else:
        made = catalog(named[0]).attach_table(named[1], source, format_.value, **about)
    snapshot = made.snapshot
    content: dict[str, Any] = {
        "table": table,
        "snapshot": snapshot.id,
        "files": snapshot.block_count,
        "rows": snapshot.row_count,
    }
    if left_out := made.inspect.left_out():
        content["left_out"] = dict(left_out)
    text = f"attached {snapshot.block_count:,} files, {snapshot.row_count:,} rows"
    if unknown := snapshot.summary.get("unknown_files"):
        content["unknown_files"] = unknown
        reasons = "; ".join(unknown["reasons"].values())
        text = f"{text}; no votes on {unknown['count']:,} more, which cannot be looked into: {reasons}"
    output.print_result(content, text, as_json)


@foreign_app.command("sync")
def _sync(
    table: TableArgument,
    to: Annotated[str | None, typer.Option("--to", help="A version of the source; the newest if left out.")] = None,
    indexes: Annotated[bool, typer.Option(help="Build the table's indexes on the files that came.")] = True,
    reread: Annotated[bool, typer.Option("--reread", help="Look into all files: some were copied.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Bring an attached table to a state of its source."""
    with WorkProgress("sync") as progress:
        done = open_table(table).sync(
            to,
            indexes=indexes,
            reread=reread,
            progress=lambda count, total: progress.blocks_done(count, total, "files"),
        )
    text = f"{done.added_files:,} files came, {done.removed_files:,} went: {done.rows:,} rows at {done.version}"
    output.print_result(dict(done.to_dict()), text, as_json)


@foreign_app.command("convert")
def _convert(table: TableArgument, as_json: JsonOption = False) -> None:
    """Make an attached table one of its own: rows change here from now on, and no file is rewritten."""
    snapshot = open_table(table).convert()
    output.print_result({"snapshot": snapshot.id}, f"{table} no longer follows its source", as_json)


_SOURCE_INDEXES = pa.schema(
    [
        *((name, pa.string()) for name in ("source", "format")),
        ("indexes", pa.list_(pa.string())),
        *((name, pa.string()) for name in ("url", "problem")),
    ]
)
_SourceArgument = Annotated[str, typer.Argument(help="A folder of Parquet files, a Delta or an Iceberg table.")]
_WarehouseOption = Annotated[str, typer.Option("--warehouse", "-w", help="Where indexes of sources are kept.")]


@foreign_app.command("index-source")
def _index_source(
    source: _SourceArgument,
    warehouse: _WarehouseOption,
    kind: Annotated[str, typer.Option("--kind", "-k", help="One of `fuse-index plugins`, such as bloom.")],
    columns: Annotated[list[str], typer.Option("--columns", "-c", help="Columns or terms, separated by commas.")],
    name: Annotated[
        str | None, typer.Option("--name", help="Of the index; by default of its kind and columns.")
    ] = None,
    format_: Annotated[_SourceFormat | None, typer.Option("--format", help="What the source is, if not told.")] = None,
    options: Annotated[list[str] | None, typer.Option("--option", "-o", help="The kind's own, key=value.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Give a source an index, which its own readers ask; nothing is written at the source."""
    made = catalog(warehouse, create=True).index_source(
        source,
        kind,
        split_terms(join_repeated(columns) or ""),
        name,
        format=format_ and format_.value,
        **parse_pairs(options or [], "--option"),
    )
    content = {
        "table": made.stored.store.url,
        "files": made.snapshot.block_count,
        "indexes": [*made.snapshot.definitions],
    }
    output.print_result(content, f"indexed {made.snapshot.block_count:,} files of {source}", as_json)


@foreign_app.command("source-indexes")
def _source_indexes(warehouse: _WarehouseOption, as_json: JsonOption = False) -> None:
    """List the sources that have indexes in a warehouse."""
    records = [{**asdict(each), "indexes": list(each.indexes)} for each in catalog(warehouse).source_indexes()]
    if as_json:
        output.print_json(records)
    else:
        output.print_rows(pa.Table.from_pylist(records, _SOURCE_INDEXES))


@foreign_app.command("drop-source-index")
def _drop_source_index(source: _SourceArgument, warehouse: _WarehouseOption, as_json: JsonOption = False) -> None:
    """Forget all indexes of a source: its readers read as ever."""
    catalog(warehouse).drop_source_index(source)
    output.print_result({"source": source}, f"{source} has no indexes any more", as_json)
