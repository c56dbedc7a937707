"""The commands that say which plugins are installed, and what a kind of theirs can do."""

from __future__ import annotations

import inspect
import warnings
from dataclasses import fields
from typing import Annotated, Any

import typer

from fuse_index.cli import output
from fuse_index.cli.kinds.abilities import conditions_by_type
from fuse_index.cli.options import JsonOption
from fuse_index.indexes.interface import Answers, Approximates, IndexKind, Ranks, Votes
from fuse_index.indexes.registry import Host, PluginWarning

plugins_app = typer.Typer(add_completion=False, invoke_without_command=True)


@plugins_app.callback()
def _plugins(
    context: typer.Context,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 if a plugin cannot be used.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the index kinds and functions that are installed, and plugins that could not be loaded."""
    if context.invoked_subcommand is not None:
        return
    host = _host()
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
        {
            "function": name,
            "arguments": [str(type_) for type_ in function.argument_types],
            "from": host.function_sources[name].source,
        }
        for name, function in sorted(host.functions.items())
    ]
    if as_json:
        output.print_json({"kinds": kinds, "functions": functions, "problems": list(host.problems)})
    else:
        columns = ("kind", "from", "module", "writes", "reads")
        output.print_rows(output.records_to_table(kinds, columns), title="index kinds")
        if functions:
            listed = output.records_to_table(functions, ("function", "arguments", "from"))
            output.print_rows(listed, title="functions")
        for problem in host.problems:
            output.print_note(f"warning: {problem}")
    if check and host.problems:
        raise typer.Exit(1)


@plugins_app.command("show")
def _show(
    name: Annotated[str, typer.Argument(metavar="KIND", help="One that `fuse-index plugins` lists.")],
    as_json: JsonOption = False,
) -> None:
    """Say what an index kind can do: its options, the conditions that it judges, and where it is from."""
    host = _host()
    kind = host.kind(name)
    record = describe_kind(host, kind)
    if as_json:
        output.print_json(record)
        return
    options = record.pop("options")
    if isinstance(kind, Votes) and not record["votes"]:
        record["votes"] = "terms of its own, such as values of functions or several columns together"
    output.print_record({key: _text(value) for key, value in record.items()})
    if options:
        output.print_rows(output.records_to_table(options, ("option", "type", "default")), title="options")


def _host() -> Host:
    with warnings.catch_warnings(action="ignore", category=PluginWarning):  # commands list them
        host = Host.discover()
        _ = host.problems  # whose asking loads what there is
        return host


def describe_kind(host: Host, kind: IndexKind) -> dict[str, Any]:
    """What a kind can do: its options, the conditions that it judges, and where it is from."""
    source = host.source_of(kind)
    own = [name for name, by in host.function_sources.items() if by.reference == source.reference]
    defaults = kind.Options()
    return {
        "kind": kind.name,
        "what": (inspect.getdoc(type(kind)) or "").split("\n\n")[0].replace("\n", " "),
        "from": source.source,
        "module": type(kind).__module__,
        "writes": kind.writes,
        "reads": sorted(kind.reads),
        "made": "of every column, without being created" if kind.implicit else f"create_index(name, {kind.name!r}, …)",
        "votes": conditions_by_type(kind),
        "ranks": kind.searches if isinstance(kind, Ranks) else None,
        "orders": f"by {kind.searches}(), the {kind.best} first" if isinstance(kind, Ranks) and kind.best else None,
        "approximates": "where a search allows it" if isinstance(kind, Approximates) else None,
        "answers": "aggregates that it keeps" if isinstance(kind, Answers) else None,
        "functions": sorted(own),
        "options": [
            {
                "option": option.name,
                "type": option.type if isinstance(option.type, str) else getattr(option.type, "__name__", option.type),
                "default": str(getattr(defaults, option.name)),
            }
            for option in fields(kind.Options)
        ],
    }


def _text(value: Any) -> Any:
    """Lists and mappings as people read them."""
    if isinstance(value, dict):
        return "; ".join(f"{conditions} on {types}" for conditions, types in value.items()) or "-"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "-"
    return "-" if value is None or value == "" else value
