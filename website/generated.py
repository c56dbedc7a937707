"""Pages that are made of the code: index kinds with their options, table properties, and the command line."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any

from fuse_index.cli.front.commands import ALIASES, COMMANDS_BY_TASK
from fuse_index.cli.front.lazy_group import load_command
from fuse_index.cli.kinds.installed import describe_kind
from fuse_index.indexes.registry import Host
from fuse_storage import (
    DELETE_MODES,
    HOT_PROPERTIES,
    KNOWN_PROPERTIES,
    VOTES_PROPERTIES,
    MaintenancePolicy,
    WriteOptions,
)

PROPERTIES: Mapping[str, Mapping[str, str]] = {
    "How rows are written": {
        "block_rows": "Rows of a block, at most.",
        "block_bytes": "Bytes that the rows of a block take in memory, at most.",
        "zone_rows": "Rows of a zone, the least that a local scan skips.",
        "page_rows": "Rows of a page, the least that is decompressed.",
        "segment_blocks": "Blocks that a segment lists, at most.",
        "pack_bytes": "Bytes of a file that holds payloads of indexes, about.",
        "sort_bytes": "Bytes of rows that a writer sorts at a time.",
        "max_partitions": "Partitions that one write may have blocks of.",
        "compression": "Of the blocks' columns.",
        "compression_level": "Of zstd, from 1 to 22.",
        "encoding": "How columns are encoded: chosen for each by its values, or as Parquet does by default.",
        "cluster_method": "The order of the clustering key: `linear`, or along the curves `zorder` and `hilbert`.",
        "delete_mode": "`copy-on-write` rewrites blocks; `merge-on-read` writes deletion vectors where few rows go.",
    },
    "Hot commits": {
        "hot_rows": "Appends of at most so many rows are hot commits.",
        "tail_rows": "Rows of a tail beyond which a writer tiers.",
        "tail_commits": "Commits of a tail beyond which a writer tiers.",
        "tiering": "Who tiers: the `writer`, or a `job`.",
        "max_hot_seconds": "How long a hot commit may take from its first block on.",
    },
    "Time that things may take": {
        "max_write_seconds": "How long a write may take; files that nothing refers to are kept for so long.",
        "index_seconds": "How long indexes may take in one query.",
        "max_age_seconds": "Age of what is known of a source, beyond which it is looked at again.",
    },
    "Indexes and plans": {
        "indexes_off": "Indexes that no query asks, by commas: `by_email, kind:bloom`.",
        "plan_log": "Whether plans are kept: `on`, or `off`.",
    },
    "Tables of others, and for others": {
        "exports": "Whose readers find each commit: `delta`, `iceberg`, or both.",
        "max_dropped_files": "Files that left the newest version of a source and stay known.",
        "max_unknown_files": "Files that are not known, by which the source is looked at again.",
    },
    "Upkeep": {
        "maintain": "Whether a table is kept by `maintain`, and by which tasks.",
        "maintain_target_depth": "Blocks that a value may be within the bounds of.",
        "maintain_small_share": "Share of blocks that joining would save.",
        "maintain_tail_age": "Age of the oldest hot commit.",
        "maintain_retention": "How long replaced files are kept.",
        "maintain_verify_every": "How often indexes are checked.",
        "maintain_window": "Times of day (UTC) between which files are rewritten.",
        "maintain_daily_bytes": "Bytes that are rewritten in 24 hours, at most.",
        "maintain_after_commit": "What a writer does in a small step after its commit.",
    },
}
"""What each property means, by what it is for; a test compares the names with those that the code knows."""


def property_defaults() -> dict[str, Any]:
    """The value of each property that nobody has set, as the code has it; None where there is none."""
    policy = MaintenancePolicy()
    members = {f"maintain_{each.name}": getattr(policy, each.name) for each in fields(policy)}
    written = {each.name: getattr(WriteOptions(), each.name) for each in fields(WriteOptions)}
    stated = {"max_write_seconds": 86_400, "max_hot_seconds": 600, "index_seconds": 10}
    others = {"delete_mode": DELETE_MODES[0], "tiering": "writer", "cluster_method": "linear"}
    found = {**HOT_PROPERTIES, **VOTES_PROPERTIES, **written, **members, **stated, **others}
    return {name: found.get(name) for name in KNOWN_PROPERTIES}


def properties_page() -> str:
    """All properties of tables, with their defaults."""
    defaults = property_defaults()
    lines = [
        "# Table properties",
        "",
        "Properties are set when a table is created, and later by `table.set_properties`, `fuse-index set` or",
        "`ALTER TABLE … SET TBLPROPERTIES`. A name that is near to one of these is refused with the right one; any",
        "other is kept for whoever set it.",
    ]
    for title, named in PROPERTIES.items():
        lines += ["", f"## {title}", "", "| property | default | meaning |", "|---|---|---|"]
        lines += [f"| `{name}` | {_default(defaults.get(name))} | {text} |" for name, text in named.items()]
    return "\n".join(lines) + "\n"


def _default(value: Any) -> str:
    match value:
        case None | ():
            return "none"
        case timedelta():
            return f"{value.total_seconds() / 86_400:g} d" if value.days else f"{value.total_seconds():g} s"
        case int() if not isinstance(value, bool):
            return f"{value:,}"
        case tuple():
            return ", ".join(f"`{each}`" for each in value)
        case _:
            return f"`{value}`"


def kinds_page() -> str:
    """All index kinds that come with the package, with their options."""
    host = Host.discover()
    lines = [
        "# Index kinds",
        "",
        "These come with the package. `fuse-index plugins` lists those that are installed, of others too, and",
        "`fuse-index plugins show KIND` says the same of each. An option is given by its name:",
        "`table.create_index('by_email', 'bloom', ['email'], fpp=0.01)`, `--option fpp=0.01`, or",
        "`OPTIONS (fpp = 0.01)` in SQL.",
    ]
    for name, kind in sorted(host.kinds.items()):
        if not host.sources[name].built_in:
            continue
        record = describe_kind(host, kind)
        lines += ["", f"## {name}", "", *inspect.cleandoc(type(kind).__doc__ or "").splitlines(), ""]
        lines += [f"- Made: `{record['made']}`" if "(" in record["made"] else f"- Made: {record['made']}"]
        lines += [f"- Judges {conditions} on {types}" for conditions, types in (record["votes"] or {}).items()]
        lines += [f"- {key.capitalize()}: {record[key]}" for key in ("ranks", "answers") if record[key]]
        if record["functions"]:
            lines += [f"- Functions: {', '.join(f'`{each}`' for each in record['functions'])}"]
        if record["options"]:
            lines += ["", "| option | type | default |", "|---|---|---|"]
            lines += [
                f"| `{each['option']}` | `{each['type']}`".replace(" | None", " or None").replace("] | str", "] or str")
                + f" | `{each['default'] or repr('')}` |"
                for each in record["options"]
            ]
            lines += ["", *inspect.cleandoc(kind.Options.__doc__ or "").splitlines()]
    return "\n".join(lines) + "\n"


def command_line_page() -> str:
    """All commands by task, with their arguments and options."""
    aliases = ", ".join(f"`{alias}` for `{name}`" for alias, name in ALIASES.items())
    lines = [
        "# Command line",
        "",
        "`fuse-index --help` lists the commands, and `fuse-index COMMAND --help` says what one takes. Results are",
        "tables for people; with `--json` they are JSON, and errors too. Exit code 0 is done, 1 failed, 2 wrong",
        "usage, 130 interrupted. `fuse-index --install-completion` lets the shell complete commands, tables,",
        f"columns, indexes, branches, tags and kinds. Some names from Python are taken as well: {aliases}.",
    ]
    for task, commands in COMMANDS_BY_TASK.items():
        lines += ["", f"## {task}"]
        for name, command in commands.items():
            loaded = load_command(name, command)
            lines += ["", f"### {name}", "", f"{loaded.help or command.summary}".strip(), ""]
            lines += ["```text", f"fuse-index {command.example}", "```"]
            for title, each in sorted(getattr(loaded, "commands", {"": loaded}).items()):
                if title:
                    lines += ["", f"#### {name} {title}", "", (each.help or "").strip()]
                lines += ["", *_parameters(each)]
    return "\n".join(lines) + "\n"


def _parameters(command: Any) -> Iterator[str]:
    shown = [one for one in command.params if one.name != "help"]
    if not shown:
        return
    yield "| argument or option | meaning |"
    yield "|---|---|"
    for one in shown:
        names = (
            one.metavar or one.name.upper()
            if one.param_type_name == "argument"
            else ", ".join([*one.opts, *one.secondary_opts])
        )
        text = (one.help or "").replace("|", "\\|")
        default = "" if one.default in (None, False, "", []) or callable(one.default) else f" Default: `{one.default}`."
        yield f"| `{names}` | {text}{default} |"
