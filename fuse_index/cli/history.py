"""The commands about a table's history: names for its snapshots, branches, and ways back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, TypeVar

import pyarrow as pa
import typer
from rich.text import Text

from fuse_index import open_table, recover_table
from fuse_index.cli import output
from fuse_index.cli.options import (
    AtOption,
    BranchOption,
    JsonOption,
    TableArgument,
    WhereOption,
    parse_pairs,
    split_names,
)
from fuse_index.errors import InputError
from fuse_index.table.arguments import parse_duration, parse_time_or_duration

history_app = typer.Typer()
_Parsed = TypeVar("_Parsed")

_NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name to give.")]
_SinceArgument = Annotated[str, typer.Argument(metavar="SINCE", help="Snapshot id, tag, or time.")]
_UntilArgument = Annotated[
    str | None, typer.Argument(metavar="[UNTIL]", help="The same; by default the newest snapshot.")
]


@history_app.command("tag")
def _tag(
    table: TableArgument,
    name: _NameArgument,
    expires: Annotated[
        str | None, typer.Option("--expires", help="After how long (30d, 12h), or when (2026-01-31T12:00:00Z).")
    ] = None,
    branch: BranchOption = "main",
    at: AtOption = None,
    as_json: JsonOption = False,
) -> None:
    """Name a snapshot, by default the newest; readers take the name as --at."""
    made = open_table(table, branch=branch, at=at).tag(
        name, None if expires is None else _parse_option(expires, "expires", parse_time_or_duration)
    )
    until = "" if made.expires is None else f" until {made.expires.isoformat()}"
    record = {"tag": name, "snapshot": made.snapshot_id, "expires": made.expires}
    output.print_result(record, f"tag {name} is snapshot {made.snapshot_id}{until}", as_json)


@history_app.command("untag")
def _untag(table: TableArgument, name: _NameArgument, as_json: JsonOption = False) -> None:
    """Forget a tag."""
    open_table(table).untag(name)
    output.print_result({"tag": name, "dropped": True}, f"dropped tag {name}", as_json)


@history_app.command("branch")
def _branch(
    table: TableArgument,
    name: _NameArgument,
    source: Annotated[str, typer.Option("--from", help="The branch to begin from.")] = "main",
    at: AtOption = None,
    drop: Annotated[bool, typer.Option("--drop", help="End the branch instead.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Begin a branch at a snapshot, by default the newest; work on it with --branch."""
    if drop:
        open_table(table).drop_branch(name)
        output.print_result({"branch": name, "dropped": True}, f"dropped branch {name}", as_json)
        return
    made = open_table(table, branch=source, at=at).branch(name)
    record = {"branch": name, "snapshot": made.snapshot.id, "from": made.snapshot.parent}
    output.print_result(record, f"branch {name} begins at snapshot {made.snapshot.parent}", as_json)


@history_app.command(name="fast-forward")
def _fast_forward(
    table: TableArgument,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="The branch that holds all of this one's history, and more.")
    ],
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Bring a branch to where another is."""
    snapshot = open_table(table, branch=branch).fast_forward(source)
    output.print_result(
        {"branch": branch, "snapshot": snapshot.id}, f"{branch} is where {source} is, snapshot {snapshot.id}", as_json
    )


@history_app.command("restore")
def _restore(
    table: TableArgument,
    at: Annotated[str, typer.Argument(metavar="AT", help="Snapshot id, tag, or time (2026-01-31T12:00:00Z).")],
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Make a table what it was; what happened since stays in its log."""
    snapshot = open_table(table, branch=branch).restore(at)
    output.print_result(
        {"branch": branch, "snapshot": snapshot.id}, f"{branch} is as it was at {at}, snapshot {snapshot.id}", as_json
    )


@history_app.command("diff")
def _diff(
    table: TableArgument,
    since: _SinceArgument,
    until: _UntilArgument = None,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Say what changed between two snapshots: blocks, rows and bytes, columns and indexes."""
    found = open_table(table, branch=branch).diff(since, until)
    if as_json:
        output.print_json(found.to_dict())
        return
    rows = [{"": name} | found.to_dict()[name] for name in ("added", "removed", "kept")]
    output.print_rows(output.records_to_table(rows, ("", "blocks", "rows", "bytes")))
    for what, sentences in (("column", found.columns), ("index", found.definitions)):
        for sentence in sentences:
            output.stdout_console().print(Text(f"{what}: {sentence}"))


@history_app.command("changes")
def _changes(
    table: TableArgument,
    since: _SinceArgument,
    until: _UntilArgument = None,
    columns: Annotated[
        str | None, typer.Option("--columns", "-c", help="Columns to print, separated by commas.")
    ] = None,
    where: WhereOption = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key", help="Columns that identify a row: an update is a pair of rows then. Default: the table's key."
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Rows at most; 0 for all.")] = 20,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Print the rows that were inserted, deleted and updated between two snapshots; with --json one JSON object a
    line.
    """
    target = open_table(table, branch=branch)
    found = target.changes(since, until, split_names(columns) or None, where, None if key is None else split_names(key))
    shown = _first_rows(found.to_batches(), limit)
    if as_json:
        for batch in shown:
            output.print_json_lines(batch)
        return
    rows = pa.Table.from_batches(shown, found.schema)
    output.print_rows(rows)
    if limit and rows.num_rows == limit:
        output.print_note(f"the first {limit:,} rows; --limit 0 prints all")


def _first_rows(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """The first so many rows, all if 0."""
    left = limit
    for batch in batches:
        yield batch.slice(0, left) if limit else batch
        left -= len(batch)
        if limit and left <= 0:
            return


@history_app.command("refs")
def _refs(table: TableArgument, as_json: JsonOption = False) -> None:
    """List the branches and tags of a table."""
    found = open_table(table).refs()
    output.print_json(found.to_pylist()) if as_json else output.print_rows(found)


@history_app.command("clone")
def _clone(
    table: TableArgument,
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="Where the new table is to be: an empty path or URL.")
    ],
    branch: BranchOption = "main",
    at: AtOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a new table that begins as this one, sharing its files; each has its own history from then on."""
    made = open_table(table, branch=branch, at=at).clone(target).snapshot
    held = made.summary["cloned_from"]["tag"]
    record = {"table": table, "target": target, "snapshot": made.id, "rows": made.row_count, "tag": held}
    output.print_result(
        record, f"{target} has the {made.row_count:,} rows of {table}, whose tag {held} keeps what they share", as_json
    )


@history_app.command("recover")
def _recover(
    table: TableArgument,
    heads: Annotated[
        list[str] | None,
        typer.Option("--head", help="The newest snapshot of a branch, where it is in doubt: main=<id>; repeatable."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be written, and write nothing.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Make the lost refs of a table anew, from its snapshots."""
    chosen = {name: str(id) for name, id in parse_pairs(heads or [], "--head").items()}
    found = recover_table(table, chosen, dry_run=dry_run).to_dict()
    if as_json:
        output.print_json(found)
        return
    for key, why in found["unreadable"].items():
        output.print_note(f"{key} cannot be read: {why}")
    for name, ids in found["later"].items():
        output.print_note(
            f"{name} ends before snapshot {', '.join(ids)}: if that was committed, say --head {name}={ids[-1]}"
        )
    if not found["branches"]:
        output.print_note("nothing was written" if found["later"] else "nothing is missing")
        return
    columns = ("branch", "entries", "lost", "newest", "timestamp", "operation")
    output.print_rows(
        output.records_to_table(found["branches"], columns), title="written" if found["done"] else "would be written"
    )


@history_app.command("vacuum")
def _vacuum(
    table: TableArgument,
    retention: Annotated[
        str, typer.Option("--retention", help="What was the newest snapshot within it stays: 12h, 7d.")
    ] = "7d",
    keep: Annotated[int, typer.Option("--keep", min=1, help="Snapshots of each branch that stay in any case.")] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count, and delete nothing.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Take a retention below an hour; readers may lose their files.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete files that no snapshot leads to any more; tags and branches keep theirs."""
    found = open_table(table).vacuum(
        _parse_option(retention, "retention", parse_duration), keep, dry_run=dry_run, force=force
    )
    if as_json:
        output.print_json(found.to_dict())
        return
    rows = [{"kind": kind, "files": count, "bytes": found.bytes[kind]} for kind, count in found.files.items()]
    output.print_rows(
        output.records_to_table(rows, ("kind", "files", "bytes")),
        title="deleted" if found.deleted else "would be deleted",
    )


def _parse_option(text: str, option: str, reader: Callable[[str, str], _Parsed]) -> _Parsed:
    """What is written there. Raises typer.BadParameter."""
    try:
        return reader(text, option)
    except InputError as problem:
        raise typer.BadParameter(str(problem), param_hint=f"--{option}") from problem
