"""Arguments and options that several commands share."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from fuse_index.cli.input_files import InputFormat

_TERM_TOKEN = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^`'\"(),]+|.", re.DOTALL)
_QUOTED_NAME = re.compile(r"\A`((?:[^`]|``)*)`\Z")

TableArgument = Annotated[
    str, typer.Argument(metavar="TABLE", help="Path or URL of the table (/data/t, s3://bucket/t).")
]
IndexArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the index.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
BranchOption = Annotated[str, typer.Option("--branch", help="The branch to work on.")]
AtOption = Annotated[
    str | None, typer.Option("--at", help="An older state: snapshot id, tag, or time (2026-01-31T12:00:00Z).")
]
WhereOption = Annotated[
    str | None, typer.Option("--where", "-w", help="Spark SQL condition, such as \"price < 10 AND city = 'Bonn'\".")
]
FormatOption = Annotated[
    InputFormat | None, typer.Option("--format", help="What the files are, where their names do not say.")
]
NullOption = Annotated[
    list[str] | None, typer.Option("--null", help="Text that means NULL in CSV; repeatable. Default: empty.")
]
MergeSchemaOption = Annotated[
    bool, typer.Option("--merge-schema", help="Add the columns that the table lacks, and widen types that can be.")
]
ProcessesOption = Annotated[
    int, typer.Option("--processes", "-p", min=1, help="Processes that build at the same time.")
]
SparkOption = Annotated[
    str | None,
    typer.Option("--spark", metavar="MASTER", help="Run as a Spark job there (local[4], spark://host:7077)."),
]


def split_terms(text: str) -> list[str]:
    """``a, date_trunc('day', b)`` as a list; commas separate, but not within quotes, back-quotes and parentheses."""
    terms, depth = [""], 0
    for part in _TERM_TOKEN.findall(text):
        depth += (part == "(") - (part == ")")
        if part == "," and depth <= 0:
            terms.append("")
        else:
            terms[-1] += part
    return [term.strip() for term in terms if term.strip()]


def split_names(text: str | None, option: str = "--columns") -> list[str]:
    """``a, `b, c``` as a list of column names, without their back-quotes; empty for None.

    Raises typer.BadParameter for a text that names none.
    """
    if text is None:
        return []
    if not (terms := split_terms(text)):  # such as an empty variable of a script: not "all", and not "none"
        raise typer.BadParameter(f"{text!r} names no column", param_hint=option)
    return [_QUOTED_NAME.sub(lambda name: name[1].replace("``", "`"), term) for term in terms]


def parse_pairs(texts: Sequence[str], option: str) -> dict[str, Any]:
    """``key=value`` texts as a dict, values read as JSON where they are JSON. Raises typer.BadParameter."""
    pairs: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"{text!r} is not of the form key=value", param_hint=option)
        pairs[key] = _value(value)
    return pairs


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
