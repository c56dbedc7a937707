"""Arguments and options that several commands share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

import typer

TableArgument = Annotated[str, typer.Argument(metavar="TABLE", help="Path or URL of the table (/data/t, s3://bucket/t).")]
IndexArgument = Annotated[str, typer.Argument(metavar="NAME", help="Name of the index.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Branch = Annotated[str, typer.Option("--branch", help="The branch to work on.")]
At = Annotated[str | None, typer.Option("--at", help="An older state: snapshot id, tag, or time (2026-01-31T12:00:00Z).")]
Where = Annotated[str | None, typer.Option("--where", "-w", help="Spark SQL condition, such as \"price < 10 AND city = 'Bonn'\".")]
Processes = Annotated[int, typer.Option("--processes", "-p", min=1, help="Processes that build at the same time.")]
Spark = Annotated[str | None, typer.Option("--spark", metavar="MASTER", help="Build as a Spark job there (local[4], spark://host:7077).")]


def names(text: str | None) -> list[str]:
    """``a, b`` as a list; commas separate, spaces around them do not count."""
    return [name.strip() for name in text.split(",") if name.strip()] if text else []


def pairs(texts: Sequence[str], option: str) -> dict[str, Any]:
    """``key=value`` texts as a dict, values read as JSON where they are JSON. Raises typer.BadParameter."""
    found: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"{text!r} is not of the form key=value", param_hint=option)
        found[key] = _value(value)
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text
