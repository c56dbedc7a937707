"""The commands that make a table, fill it with files, and query it."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

import fuse_index as fuse
from fuse_index.cli import output
from fuse_index.cli.front.completion import complete_columns
from fuse_index.cli.front.interrupt import ended_by_interrupt
from fuse_index.cli.front.progress import WorkProgress
from fuse_index.cli.options import (
    AtOption,
    BranchOption,
    FilesArgument,
    FormatOption,
    JsonOption,
    MergeSchemaOption,
    NewTableArgument,
    NullOption,
    TableArgument,
    TailOption,
    VersionOption,
    WhereOption,
    join_repeated,
    parse_pairs,
    split_names,
    split_table_name,
)
from fuse_index.errors import InputError
from fuse_index.table.arguments import check_limit

if TYPE_CHECKING:
    import pyarrow as pa

tables_app = typer.Typer(add_completion=False)
_ColumnsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--columns",
        "-c",
        help="Columns to print, by commas, or given several times; odd names in back-quotes.",
        autocompletion=complete_columns,
    ),
]


@tables_app.command("create")
def _create(
    table: NewTableArgument,
    schema: Annotated[
        str | None, typer.Option("--schema", help='Columns as in SQL: "id BIGINT NOT NULL, name STRING".')
    ] = None,
    like: Annotated[
        str | None, typer.Option("--like", help="Take the columns of this file, or of the files of a folder or glob.")
    ] = None,
    format_: FormatOption = None,
    null: NullOption = None,
    cluster_by: Annotated[
        str | None, typer.Option("--cluster-by", help="Columns that writers sort by, separated by commas.")
    ] = None,
    key: Annotated[str | None, typer.Option("--key", help="Columns that identify a row, separated by commas.")] = None,
    primary_key: Annotated[
        str | None, typer.Option("--primary-key", help="Columns of which each key has one row at most, always.")
    ] = None,
    partition_by: Annotated[
        str | None, typer.Option("--partition-by", help="Columns whose values no block mixes, separated by commas.")
    ] = None,
    properties: Annotated[
        list[str] | None, typer.Option("--property", help="Such as block_rows=100000; repeatable.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make an empty table."""
    from fuse_index.ingest.input_files import find_input_files
    from fuse_index.ingest.read_files import InputFiles

    if (schema is None) == (like is None):
        raise typer.BadParameter("give either --schema or --like", param_hint="--schema")
    columns = schema
    if like is not None:
        columns = InputFiles.open(find_input_files([like], format_, null or ())).schema
    settings = parse_pairs(properties or [], "--property")
    order = split_names(cluster_by, "--cluster-by")
    keys: dict[str, Any] = {
        "key": split_names(key, "--key"),
        "primary_key": split_names(primary_key, "--primary-key"),
        "partition_by": split_names(partition_by, "--partition-by"),
    }
    if (named := split_table_name(table)) is None:
        created = fuse.create_table(table, columns, order, settings, **keys)
    else:
        created = fuse.catalog(named[0]).create_table(named[1], columns, order, settings, **keys)
    output.print_result({"table": table, "snapshot": created.snapshot.id}, f"created {table}", as_json)


@tables_app.command("set")
def _set_properties(
    table: TableArgument,
    settings: Annotated[list[str], typer.Argument(metavar="NAME=VALUE", help="Such as hot_rows=1000; null removes.")],
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Set properties of a table, or remove some."""
    snapshot = fuse.open_table(table, branch=branch).set_properties(parse_pairs(settings, "NAME=VALUE"))
    properties = dict(snapshot.properties)
    sentence = ", ".join(f"{name} = {value}" for name, value in properties.items()) or "there are no properties"
    output.print_result({"table": table, "snapshot": snapshot.id, "properties": properties}, sentence, as_json)


@tables_app.command("ingest")
def _ingest(
    table: TableArgument,
    files: FilesArgument,
    format_: FormatOption = None,
    null: NullOption = None,
    merge_schema: MergeSchemaOption = False,
    hot: Annotated[
        bool | None, typer.Option("--hot/--no-hot", help="Seen at once and indexed later; by default as hot_rows says.")
    ] = None,
    changes: Annotated[
        bool, typer.Option("--changes", help="Do what the files' _change_type says, by the table's primary key.")
    ] = False,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Append files to a table, all of them in one commit; indexes are built along. By a primary key they are put."""
    from fuse_index.ingest.input_files import find_input_files
    from fuse_index.ingest.read_files import InputFiles

    target = fuse.open_table(table, branch=branch)
    if changes and (hot is not None or merge_schema):
        raise typer.BadParameter("changes are made by a hot commit, in the table's columns", param_hint="--changes")
    found = find_input_files(files, format_, null or ())
    before = target.snapshot
    started = time.perf_counter()
    with ended_by_interrupt():
        sources = InputFiles.open(found, target.schema, in_part=target.row_store.may_lack_columns)
        with WorkProgress("ingest", sources.size) as progress:
            rows_read = progress.count_rows(sources.reader(progress.add_bytes))
            if changes:
                snapshot = target.apply(rows_read)
            else:
                snapshot = target.append(rows_read, hot=hot, merge_schema=merge_schema)
    seconds = time.perf_counter() - started
    rows = snapshot.summary.get("added_rows", 0) if snapshot.id != before.id else 0
    record = {
        "table": table,
        "files": len(sources.files),
        "rows": rows,
        "snapshot": snapshot.id,
        "seconds": round(seconds, 3),
    }
    counted = "1 file" if len(sources.files) == 1 else f"{len(sources.files)} files"
    output.print_result(record, f"{rows:,} rows from {counted} in {seconds:.1f} s, snapshot {snapshot.id}", as_json)


@tables_app.command("query")
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
    version: VersionOption = None,
    tail: TailOption = True,
    as_json: JsonOption = False,
) -> None:
    """Print the rows that a condition is true on, or aggregates of them; with --json one JSON object a line."""
    source = fuse.open_table(table, branch=branch, at=at, version=version, tail=tail)
    if group_by or aggregates:
        if columns or count:
            raise typer.BadParameter("--columns and --count are of rows, not of aggregates", param_hint="--aggregate")
        answer = source.aggregate(group_by or [], aggregates or [], where, indexes=indexes)
        answer = answer.slice(0, check_limit(limit or None, "rows"))
        if as_json:
            for batch in answer.to_batches():
                output.print_json_lines(batch)
        else:
            _print_rows(answer, limit)
        return
    names = split_names(join_repeated(columns)) or None
    scan = source.scan(where, columns=names, limit=None if count else limit or None, indexes=indexes)
    if count:
        number = scan.count()
        output.print_json({"count": number}) if as_json else output.print_text(f"{number}")
    elif as_json:
        for batch in scan.to_batches():
            output.print_json_lines(batch)
    else:
        _print_rows(scan.to_arrow(), limit)


@tables_app.command("lookup")
def _lookup(
    table: TableArgument,
    key: Annotated[
        list[str],
        typer.Option("--key", help="column=value; repeatable: for each column of the primary key, and for each key."),
    ],
    columns: _ColumnsOption = None,
    branch: BranchOption = "main",
    at: AtOption = None,
    version: VersionOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the rows of these primary keys, in their order; with --json one JSON object a line."""
    source = fuse.open_table(table, branch=branch, at=at, version=version)
    rows = source.lookup(_parse_keys(key, source.schema), split_names(join_repeated(columns)) or None)
    output.print_json_lines(rows) if as_json else output.print_rows(rows)


def _parse_keys(texts: list[str], schema: pa.Schema) -> pa.Table:
    """``column=value`` texts as rows: the n-th of each column make the n-th. Raises typer.BadParameter."""
    import pyarrow as pa

    values: dict[str, list[str]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"{text!r} is not of the form column=value", param_hint="--key")
        values.setdefault(name, []).append(value)
    if len({len(each) for each in values.values()}) > 1:
        counts = ", ".join(f"{name} {len(each)} times" for name, each in values.items())
        raise typer.BadParameter(
            f"each column of the key is given as often as the others: {counts}", param_hint="--key"
        )
    columns = {}
    for name, each in values.items():
        kind = schema.field(name).type if name in schema.names else pa.string()
        try:
            columns[name] = pa.array(each).cast(kind)
        except pa.ArrowException as problem:
            raise typer.BadParameter(f"{name} is {kind}: {problem}", param_hint="--key") from problem
    return pa.table(columns)


@tables_app.command("search")
def _search(
    table: TableArgument,
    column: Annotated[str, typer.Argument(help="The column to search; several, separated by commas.")],
    query: Annotated[str, typer.Argument(help='Such as "+late refund*".')],
    where: WhereOption = None,
    columns: _ColumnsOption = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Rows at most.")] = 10,
    options: Annotated[str | None, typer.Option("--options", help='Such as "operator=and; tokenizer=en_stem".')] = None,
    recall: Annotated[float, typer.Option("--recall", help="The share of the best rows that is enough.")] = 1.0,
    branch: BranchOption = "main",
    at: AtOption = None,
    version: VersionOption = None,
    tail: TailOption = True,
    as_json: JsonOption = False,
) -> None:
    """Print the best rows for a query, best first, with their scores; with --json one JSON object a line."""
    source = fuse.open_table(table, branch=branch, at=at, version=version, tail=tail)
    printed = split_names(join_repeated(columns)) or None
    searched = split_names(column, "COLUMN")
    wanted = _query_value(source.schema, searched, query)
    best_rows = source.search(searched, wanted, limit, where, printed, options, recall=recall)
    output.print_json_lines(best_rows) if as_json else _print_rows(best_rows, limit)


def _print_rows(rows: pa.Table, limit: int) -> None:
    output.print_rows(rows)
    if limit and rows.num_rows == limit:
        output.print_note(f"the first {limit} rows; --limit 0 prints all")


def _query_value(schema: pa.Schema, columns: list[str], query: str) -> Any:
    """A text as it is; of a column of arrays or structs the value that it is in JSON, such as a vector."""
    from pyarrow.types import is_nested

    types = [schema.field(name).type for name in columns if name in schema.names]
    if not any(map(is_nested, types)):
        return query
    try:
        return json.loads(query)
    except ValueError as problem:
        raise InputError(f"{query!r} is no value of {columns[0]}: write it in JSON, such as [0.5, 1.0]") from problem
