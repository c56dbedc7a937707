"""The commands about a table's history: names for its snapshots, branches, and ways back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, TypeVar

import pyarrow as pa
import typer
from rich.text import Text

from fuse_index import open_table, recover_table
from fuse_index.cli import output
from fuse_index.cli.front.completion import complete_tags
from fuse_index.cli.options import (
    AtOption,
    BranchOption,
    JsonOption,
    TableArgument,
    WhereOption,
    join_repeated,
    parse_pairs,
    split_names,
)
from fuse_index.errors import InputError
from fuse_index.table.arguments import check_limit, parse_duration, parse_time_or_duration

history_app = typer.Typer(add_completion=False)
_Parsed = TypeVar("_Parsed")

_NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The name to give.")]
_AtArgument = Annotated[
    str, typer.Argument(metavar="AT", help="Snapshot id, tag, version, or time.", autocompletion=complete_tags)
]
_SinceArgument = Annotated[
    str, typer.Argument(metavar="SINCE", help="Snapshot id, tag, or time.", autocompletion=complete_tags)
]
_UntilArgument = Annotated[
    str | None, typer.Argument(metavar="UNTIL", help="The same; by default the newest snapshot.")
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
    tag = open_table(table, branch=branch, at=at).tag(
        name, None if expires is None else _parse_option(expires, "expires", parse_time_or_duration)
    )
    until = "" if tag.expires is None else f" until {tag.expires.isoformat()}"
    record = {"tag": name, "snapshot": tag.snapshot_id, "expires": tag.expires}
    output.print_result(record, f"tag {name} is snapshot {tag.snapshot_id}{until}", as_json)


@history_app.command("untag")
def _untag(
    table: TableArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the tag.", autocompletion=complete_tags)],
    as_json: JsonOption = False,
) -> None:
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
    new_branch = open_table(table, branch=source, at=at).branch(name)
    record = {"branch": name, "snapshot": new_branch.snapshot.id, "from": new_branch.snapshot.parent}
    output.print_result(record, f"branch {name} begins at snapshot {new_branch.snapshot.parent}", as_json)


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
    at: _AtArgument,
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
    diff = open_table(table, branch=branch).diff(since, until)
    if as_json:
        output.print_json(diff.to_dict())
        return
    rows = [{"": name} | diff.to_dict()[name] for name in ("added", "removed", "kept")]
    output.print_rows(output.records_to_table(rows, ("", "blocks", "rows", "bytes")))
    for part, sentences in (("column", diff.columns), ("index", diff.definitions)):
        for sentence in sentences:
            output.stdout_console().print(Text(f"{part}: {sentence}"))


@history_app.command("changes")
def _changes(
    table: TableArgument,
    since: _SinceArgument,
    until: _UntilArgument = None,
    columns: Annotated[
        list[str] | None, typer.Option("--columns", "-c", help="Columns to print, separated by commas; repeatable.")
    ] = None,
    where: WhereOption = None,
    key: Annotated[
        str | None,
        typer.Option(
            "--key",
            help="Columns that identify a row: updates are pairs of rows then. Default: the table's key; empty: none.",
        ),
    ] = None,
    preimages: Annotated[
        bool, typer.Option("--preimages/--no-preimages", help="By a primary key: look up what rows were, or do not.")
    ] = True,
    by_commit: Annotated[bool, typer.Option("--by-commit", help="Of each commit, with its number and time.")] = False,
    limit: Annotated[int, typer.Option("--limit", "-n", min=0, help="Rows at most; 0 for all.")] = 20,
    branch: BranchOption = "main",
    as_json: JsonOption = False,
) -> None:
    """Print the rows that were inserted, deleted and updated between two snapshots.

    With --json one JSON object a line.
    """
    target = open_table(table, branch=branch)
    pairs_by = split_names(key, "--key") if key else None if key is None else []
    names = split_names(join_repeated(columns)) or None
    net = target.changes(since, until, names, where, pairs_by, preimages)
    changes = net.by_commit() if by_commit else net
    batches = _first_rows(changes.to_batches(), limit)
    if as_json:
        for batch in batches:
            output.print_json_lines(batch)
        return
    rows = pa.Table.from_batches(batches, changes.schema)
    output.print_rows(rows)
    if limit and rows.num_rows == limit:
        output.print_note(f"the first {limit:,} rows; --limit 0 prints all")


def _first_rows(batches: Iterator[pa.RecordBatch], limit: int) -> Iterator[pa.RecordBatch]:
    """The first so many rows, all if 0."""
    remaining = check_limit(limit, "rows") or 0
    for batch in batches:
        yield batch.slice(0, remaining) if limit else batch
        remaining -= len(batch)
        if limit and remaining <= 0:
            return


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
    snapshot = open_table(table, branch=branch, at=at).clone(target).snapshot
    tag = snapshot.summary["cloned_from"]["tag"]
    record = {"table": table, "target": target, "snapshot": snapshot.id, "rows": snapshot.row_count, "tag": tag}
    output.print_result(
        record,
        f"{target} has the {snapshot.row_count:,} rows of {table}, whose tag {tag} keeps what they share",
        as_json,
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
    chosen = {name: str(snapshot_id) for name, snapshot_id in parse_pairs(heads or [], "--head").items()}
    recovery = recover_table(table, chosen, dry_run=dry_run).to_dict()
    if as_json:
        output.print_json(recovery)
        return
    for key, why in recovery["unreadable"].items():
        output.print_note(f"{key} cannot be read: {why}")
    for name, later_ids in recovery["later"].items():
        output.print_note(
            f"{name} ends before snapshot {', '.join(later_ids)}: if that was committed, "
            f"say --head {name}={later_ids[-1]}"
        )
    if strays := recovery["stray_hot_blocks"]:
        output.print_note(
            f"{strays:,} blocks under _h/ are of no hot commit that is there: look for a copy of _refs/hot"
        )
    if not recovery["branches"]:
        output.print_note("nothing was written" if recovery["later"] else "nothing is missing")
        return
    columns = ("branch", "entries", "lost", "newest", "timestamp", "operation")
    output.print_rows(
        output.records_to_table(recovery["branches"], columns),
        title="written" if recovery["done"] else "would be written",
    )


@history_app.command("vacuum")
def _vacuum(
    table: TableArgument,
    retention: Annotated[str, typer.Option("--retention", help="Keep what was newest since then: 12h, 7d.")] = "7d",
    hot_retention: Annotated[
        str | None, typer.Option("--hot-retention", help="Keep hot commits tiered since then: 6h.")
    ] = None,
    keep: Annotated[int, typer.Option("--keep", min=1, help="Snapshots of each branch that stay in any case.")] = 1,
    dry_run: Annotated[bool, typer.Option("--dry-run/--no-dry-run", help="Count, and delete nothing.")] = True,
    force: Annotated[
        bool, typer.Option("--force", help="Take a retention below an hour; readers may lose their files.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Delete files that no snapshot leads to any more; tags and branches keep theirs."""
    hot = None if hot_retention is None else _parse_option(hot_retention, "hot-retention", parse_duration)
    age = _parse_option(retention, "retention", parse_duration)
    report = open_table(table).maintenance.vacuum(age, keep, dry_run=dry_run, force=force, hot_retention=hot)
    if as_json:
        output.print_json(report.to_dict())
        return
    for key in report.passed_over:
        output.print_note(f"{key} is no file of a table, and was passed over")
    if report.disk_full:
        output.print_note("the disk is full, so nobody was warned: try again a tag or branch that failed meanwhile")
    if report.refs:
        output.print_note(
            f"expired tags and notices, {'deleted' if report.deleted else 'to delete'}: {len(report.refs)}"
        )
    rows = [{"kind": kind, "files": count, "bytes": report.bytes[kind]} for kind, count in report.files.items()]
    output.print_rows(
        output.records_to_table(rows, ("kind", "files", "bytes")),
        title="deleted" if report.deleted else "would be deleted",
    )
    if not report.deleted:
        output.print_note("nothing is deleted yet: say --no-dry-run")


def _parse_option(text: str, option: str, reader: Callable[[str, str], _Parsed]) -> _Parsed:
    """The value of an option's text. Raises typer.BadParameter."""
    try:
        return reader(text, option)
    except InputError as problem:
        raise typer.BadParameter(str(problem), param_hint=f"--{option}") from problem
