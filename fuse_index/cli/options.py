"""Arguments and options that several commands share, and what they open: a table by its name, a Spark session."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

import fuse_index as fuse
from fuse_index.cli.front.completion import complete_branches, complete_indexes, complete_tables, complete_tags
from fuse_index.cli.front.without_pandas import put_off_pandas
from fuse_index.errors import FuseIndexError
from fuse_index.ingest.input_formats import InputFormat
from fuse_storage import InvalidArgument

_TERM_TOKEN = re.compile(r"`(?:[^`]|``)*`|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[^`'\"(),]+|.", re.DOTALL)
_QUOTED_NAME = re.compile(r"\A`((?:[^`]|``)*)`\Z")

_LEAST_SPARK = (4, 0, 1)
_INSTALL_SPARK = "pip install 'pyspark>=4.0.1' 'pandas<3'"


class SparkNotInstalled(FuseIndexError):
    """A command was to run in Spark, which is not installed."""

    code = "SPARK_NOT_INSTALLED"


def split_table_name(text: str) -> tuple[str, str] | None:
    """The warehouse and the name of ``WAREHOUSE#name``; None for a path or URL of a table.

    >>> split_table_name("s3://bucket/w#sales.orders"), split_table_name("/data/c#/t")
    (('s3://bucket/w', 'sales.orders'), None)
    """
    warehouse, sign, name = text.rpartition("#")
    if not sign or not warehouse or Path(text).exists():
        return None
    from fuse_storage import parse_identifier

    try:
        parse_identifier(name)
    except InvalidArgument:
        return None
    return warehouse, name


@dataclass(slots=True)
class Typed:
    """What errors must know of a command line. ``tables``: the places of tables, by what was typed for each."""

    as_json: bool = False
    tables: dict[str, str] = field(default_factory=dict)


def find_table_url(context: typer.Context, text: str) -> str:
    """The path or URL of a table that is named by it, or by its name in a warehouse. Raises NotFound."""
    if context.resilient_parsing:
        return text
    put_off_pandas()
    named = split_table_name(text)
    return _remember_table(context, text, text if named is None else fuse.catalog(named[0]).table_url(named[1]))


def _remember_table(context: typer.Context, text: str, url: str) -> str:
    if (typed := context.find_object(Typed)) is not None:
        typed.tables[text] = url
    return url


def _remember_place(context: typer.Context, text: str) -> str:
    if not context.resilient_parsing:
        put_off_pandas()
    return _remember_table(context, text, text)


def _remember_json(context: typer.Context, as_json: bool) -> bool:
    if (typed := context.find_object(Typed)) is not None:
        typed.as_json = as_json
    return as_json


TableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="Path or URL of the table (/data/t, s3://bucket/t), or its name in a warehouse (/data/w#sales.orders).",
        callback=find_table_url,
        autocompletion=complete_tables,
    ),
]
NewTableArgument = Annotated[
    str,
    typer.Argument(
        metavar="TABLE",
        help="Path or URL for the table, or a name in a warehouse (/data/w#sales.t).",
        callback=_remember_place,
        autocompletion=complete_tables,
    ),
]
IndexArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="Name of the index.", autocompletion=complete_indexes)
]
JsonOption = Annotated[
    # Eager, as an argument before it may be refused.
    bool, typer.Option("--json", help="Print JSON instead of tables.", callback=_remember_json, is_eager=True)
]
BranchOption = Annotated[str, typer.Option("--branch", help="The branch to work on.", autocompletion=complete_branches)]
AtOption = Annotated[
    str | None,
    typer.Option(
        "--at",
        help="An older state: snapshot id, tag, version, or time (2026-01-31T12:00Z).",
        autocompletion=complete_tags,
    ),
]
VersionOption = Annotated[
    int | None, typer.Option("--version", "--version-number", min=1, help="An older state by its number: 3.")
]
TailOption = Annotated[bool, typer.Option("--tail/--no-tail", help="Without, rows that are not tiered are left out.")]
WhereOption = Annotated[
    str | None, typer.Option("--where", "-w", help="Spark SQL condition, such as \"price < 10 AND city = 'Bonn'\".")
]
FormatOption = Annotated[
    InputFormat | None, typer.Option("--format", help="What the files are, where their names do not say.")
]
NullOption = Annotated[
    list[str] | None, typer.Option("--null", help="Text that means NULL in CSV and TSV; repeatable. Default: empty.")
]
FilesArgument = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE",
        help="Parquet, CSV, TSV or JSON files, compressed or not; folders, globs, URLs; - is standard input.",
    ),
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


def join_repeated(texts: Sequence[str] | None) -> str | None:
    """What an option that was given several times says at once, separated by commas; None if it was not given.

    >>> join_repeated(["id,name", "city"])
    'id,name,city'
    """
    return ",".join(texts) if texts else None


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


def parse_texts(texts: Sequence[str], option: str) -> dict[str, str]:
    """``name=text`` pairs as a dict. Raises typer.BadParameter."""
    parse_pairs(texts, option)
    return {name: text for name, _, text in (pair.partition("=") for pair in texts)}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return text


def require_spark(what: str) -> None:
    """Raise SparkNotInstalled where ``what`` needs PySpark, and there is none, or one that is too old."""
    if importlib.util.find_spec("pyspark") is None:
        raise SparkNotInstalled(f"{what} needs PySpark: {_INSTALL_SPARK}")
    try:
        installed = importlib.metadata.version("pyspark")
    except importlib.metadata.PackageNotFoundError:  # of a cluster's own, or a client alone: it says what it lacks
        return
    if tuple(int(number) for number in re.findall(r"\d+", installed)[:3]) < _LEAST_SPARK:
        raise SparkNotInstalled(f"{what} needs PySpark 4.0.1 or later, and this is {installed}: {_INSTALL_SPARK}")


@contextmanager
def open_spark_session(master: str) -> Iterator[tuple[Any, Any]]:
    """``fuse_index.spark``, and a session there. Raises FuseIndexErrors for a Spark that cannot be had."""
    require_spark("--spark")
    from fuse_index import spark
    from fuse_index.spark.installation import start_session

    running = start_session(master)
    try:
        yield spark, running
    finally:
        running.stop()
