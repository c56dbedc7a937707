"""The commands that delete, change and join rows."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Annotated

import pyarrow as pa
import typer

from fuse_index import open_table
from fuse_index.cli import output
from fuse_index.cli.front.interrupt import ended_by_interrupt
from fuse_index.cli.front.progress import WorkProgress
from fuse_index.cli.front.short_process import resume_garbage_collection
from fuse_index.cli.options import (
    BranchOption,
    FilesArgument,
    FormatOption,
    JsonOption,
    MergeSchemaOption,
    NullOption,
    SparkOption,
    TableArgument,
    open_spark_session,
    split_names,
)
from fuse_index.ingest.input_files import find_input_files
from fuse_index.ingest.input_formats import InputFormat
from fuse_index.ingest.read_files import InputFiles
from fuse_index.table.arguments import parse_duration
from fuse_index.table.table import Table
from fuse_storage import CodedError, Snapshot

rows_app = typer.Typer(add_completion=False)

_ConditionOption = Annotated[
    str, typer.Option("--where", "-w", help="Spark SQL condition: the rows on which it is true.")
]
_MATCHED_ACTIONS = ("update", "delete", "keep")
_MATCHED_HELP = (
    "What happens to rows whose key the files have: update, delete, keep, update=source.n > target.n; "
    "repeatable, the first counts."
)


@rows_app.command("delete")
def _delete(
    table: TableArgument,
    where: _ConditionOption,
    spark: SparkOption = None,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Delete rows; blocks that hold none of them are not touched."""
    target = open_table(table, branch=branch)
    before = target.snapshot
    if spark is None:
        target.delete(where)
    else:
        with open_spark_session(spark) as (jobs, running):
            jobs.delete(running, table, where, branch=branch)
    _report(before, target.refresh().snapshot, as_json)


@rows_app.command("delete-keys")
def _delete_keys(
    table: TableArgument,
    files: FilesArgument,
    format_: FormatOption = None,
    null: NullOption = None,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Delete the rows of the primary keys that files have, by one hot commit; keys without a row are passed over."""
    target = open_table(table, branch=branch)
    found = find_input_files(files, format_, null or ())
    keys = InputFiles.open(found, target.schema, in_part=True).reader().read_all()
    snapshot = target.delete_keys(keys)
    record = {"snapshot": snapshot.id, "keys": len(keys)}
    counted = "1 key" if len(keys) == 1 else f"{len(keys):,} keys"
    output.print_result(record, f"{counted} deleted, snapshot {snapshot.id}", as_json)


@rows_app.command("update")
def _update(
    table: TableArgument,
    set_: Annotated[
        list[str], typer.Option("--set", help="column=SQL, such as city='Bonn' or name=upper(name); repeatable.")
    ],
    where: Annotated[str | None, typer.Option("--where", "-w", help="Spark SQL condition; without, all rows.")] = None,
    spark: SparkOption = None,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Give columns other values in some rows."""
    parts = [text.partition("=") for text in set_]
    if unreadable := [name for name, equals, value in parts if not (name and equals and value)]:
        raise typer.BadParameter(f"{unreadable[0]!r} is not of the form column=SQL", param_hint="--set")
    values = {name.strip(): value for name, _, value in parts}
    target = open_table(table, branch=branch)
    before = target.snapshot
    if spark is None:
        target.update(where, values)
    else:
        with open_spark_session(spark) as (jobs, running):
            jobs.update(running, table, where, values, branch=branch)
    _report(before, target.refresh().snapshot, as_json)


@rows_app.command("overwrite")
def _overwrite(
    table: TableArgument,
    files: FilesArgument,
    where: Annotated[
        str | None, typer.Option("--where", "-w", help="Replace the rows on which this is true; without, all.")
    ] = None,
    format_: FormatOption = None,
    null: NullOption = None,
    merge_schema: MergeSchemaOption = False,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Replace rows by those of files, in one commit."""
    target = open_table(table, branch=branch)
    before = target.snapshot
    with _rows_read("overwrite", files, format_, null, target) as rows:
        after = target.overwrite(rows, where, merge_schema=merge_schema)
    _report(before, after, as_json)


@rows_app.command("merge")
def _merge(
    table: TableArgument,
    files: FilesArgument,
    on: Annotated[
        str | None, typer.Option("--on", help="Columns to match by, separated by commas; by default the table's key.")
    ] = None,
    matched: Annotated[list[str] | None, typer.Option("--matched", metavar="ACTION[=SQL]", help=_MATCHED_HELP)] = None,
    insert: Annotated[bool, typer.Option("--insert/--no-insert", help="Insert rows whose key the table lacks.")] = True,
    insert_where: Annotated[
        str | None, typer.Option("--insert-where", help="Insert only where this is true: source.n > 0.")
    ] = None,
    delete_others: Annotated[
        bool, typer.Option("--delete-others", help="Delete rows whose key the files lack.")
    ] = False,
    delete_others_where: Annotated[
        str | None,
        typer.Option("--delete-others-where", help="Delete those of them on which this is true: target.n > 0."),
    ] = None,
    format_: FormatOption = None,
    null: NullOption = None,
    merge_schema: MergeSchemaOption = False,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Bring in the rows of files by their keys."""
    target = open_table(table, branch=branch)
    before = target.snapshot
    if insert_where is not None and not insert:
        raise typer.BadParameter("--no-insert leaves no rows to insert", param_hint="--insert-where")
    others = {"delete": delete_others_where} if delete_others or delete_others_where is not None else None
    with _rows_read("merge", files, format_, null, target) as rows:
        after = target.merge(
            rows,
            None if on is None else split_names(on, "--on"),
            matched=_clauses(matched),
            not_matched={"insert": insert_where} if insert else None,
            not_matched_by_source=others,
            merge_schema=merge_schema,
        )
    _report(before, after, as_json)


def _clauses(texts: list[str] | None) -> dict[str, str | None]:
    """``delete=source.gone`` as an action and its condition. Raises typer.BadParameter."""
    parts = [text.partition("=") for text in texts or ["update"]]
    conditions = {action.strip(): sql if equals else None for action, equals, sql in parts if action.strip() != "keep"}
    if unknown := [
        text for text, part in zip(texts or [], parts, strict=False) if part[0].strip() not in _MATCHED_ACTIONS
    ]:
        advice = f"say {', '.join(_MATCHED_ACTIONS)}, or on which condition: delete=source.gone"
        raise typer.BadParameter(f"{unknown[0]!r}: {advice}", param_hint="--matched")
    return conditions


@rows_app.command("compact")
def _compact(
    table: TableArgument,
    where: Annotated[str | None, typer.Option(help="Only blocks that may hold rows of this condition.")] = None,
    spark: SparkOption = None,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Join small blocks and segments; rows keep their order."""
    target = open_table(table, branch=branch)
    before = target.snapshot
    if spark is None:
        with WorkProgress("compact") as progress:
            target.maintenance.compact(progress.blocks_done, where=where)
    else:
        with open_spark_session(spark) as (jobs, running):
            jobs.compact(running, table, where, branch=branch)
    after = target.refresh().snapshot
    record = {
        "snapshot": after.id,
        "blocks_before": before.block_count,
        "blocks": after.block_count,
        "segments_before": before.segment_count,
        "segments": after.segment_count,
    }
    blocks = f"{before.block_count:,} blocks are {after.block_count:,}"
    output.print_result(
        record, f"{blocks}, {before.segment_count:,} segments are {after.segment_count:,}, snapshot {after.id}", as_json
    )


@rows_app.command("tier")
def _tier(
    tables: Annotated[list[str], typer.Argument(metavar="TABLE", help="Paths or URLs of tables.")],
    every: Annotated[str | None, typer.Option("--every", help="Go on for ever, so often: 30s, 5m.")] = None,
    min_age: Annotated[str | None, typer.Option("--min-age", help="Leave commits that are younger: 10s.")] = None,
    spark: SparkOption = None,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Move hot rows into sorted, indexed blocks; any number of these may run at once."""
    pause = None if every is None else parse_duration(every, "--every").total_seconds()
    if min_age is not None:
        parse_duration(min_age, "--min-age")
    opened: dict[str, Table] = {}
    with ExitStack() as stack:
        session = None if spark is None else stack.enter_context(open_spark_session(spark))
        resume_garbage_collection()
        while True:
            problems: dict[str, Exception] = {}
            for table in tables:
                try:
                    target = opened[table] = opened.get(table) or open_table(table, branch=branch)
                    before = target.refresh().tail
                    if session is None:
                        target.maintenance.tier(min_age)
                    else:
                        session[0].tier(session[1], table, min_age, branch=branch)
                    rows = max(before.rows - target.refresh().tail.rows, 0)
                    record = {"table": table, "snapshot": target.snapshot.id, "tiered_rows": rows}
                    output.print_result(record, f"{rows:,} rows tiered of {table}", as_json)
                except CodedError as problem:
                    problems[table] = problem
            if pause is None or not opened:
                return _raise_problems(problems)
            for table, hindrance in problems.items():
                output.stderr_console().print(f"{table} is tried again in {every}: {hindrance}", markup=False)
            time.sleep(pause)


def _raise_problems(problems: Mapping[str, Exception]) -> None:
    """Raise what hindered some tables, together."""
    if problems:
        raise ExceptionGroup("not all tables were tiered", list(problems.values()))


@contextmanager
def _rows_read(
    what: str, files: list[str], format_: InputFormat | None, null: list[str] | None, target: Table
) -> Iterator[pa.RecordBatchReader]:
    """The rows of files, and beside them how far they were read."""
    with ended_by_interrupt():
        sources = InputFiles.open(find_input_files(files, format_, null or ()), target.schema)
        with WorkProgress(what, sources.size) as progress:
            yield progress.count_rows(sources.reader(progress.add_bytes))


def _report(before: Snapshot, after: Snapshot, as_json: bool) -> None:
    summary = after.summary if after.id != before.id else {}
    counts = {name: summary.get(name, 0) for name in ("deleted_rows", "updated_rows", "inserted_rows")}
    counted = ", ".join(f"{count:,} rows {name.removesuffix('_rows')}" for name, count in counts.items() if count)
    sentence = counted or ("nothing to change" if after.id == before.id else "rows changed by their keys")
    output.print_result({"snapshot": after.id, **counts}, f"{sentence}, snapshot {after.id}", as_json)
