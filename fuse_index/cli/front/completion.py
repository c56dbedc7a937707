"""What the shell completes: tables, columns, indexes, branches, tags and kinds, as far as they can be known at once.

A completion never fails: where a table cannot be opened, nothing is completed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec

import typer

import fuse_index as fuse

if TYPE_CHECKING:
    from fuse_index import Table

_P = ParamSpec("_P")
_CATALOG_FOLDER = "_catalog"


def _never_fails(complete: Callable[_P, list[str]]) -> Callable[_P, list[str]]:
    @wraps(complete)
    def words(*arguments: _P.args, **named: _P.kwargs) -> list[str]:
        try:
            return complete(*arguments, **named)
        except Exception:
            return []

    return words


@_never_fails
def complete_tables(incomplete: str) -> list[str]:
    """Folders that begin so, and the names of a warehouse after ``#``."""
    warehouse, sign, name = incomplete.rpartition("#")
    if sign:
        return [f"{warehouse}#{each}" for each in _names(warehouse, name)]
    folder = Path(incomplete).expanduser()
    parent = folder if incomplete.endswith("/") else folder.parent
    found = [path for path in parent.iterdir() if path.is_dir() and not path.name.startswith((".", "_"))]
    written = incomplete[: len(incomplete) - len("" if incomplete.endswith("/") else folder.name)]
    words = []
    for path in sorted(found):
        word = f"{written}{path.name}"
        if word.startswith(incomplete):
            words.append(f"{word}#" if (path / _CATALOG_FOLDER).is_dir() else word)
    return words


def _names(warehouse: str, begin: str) -> Iterator[str]:
    opened = fuse.catalog(warehouse)
    for namespace in opened.list_namespaces():
        for table in opened.list_tables(namespace):
            if (name := ".".join(table)).startswith(begin):
                yield name


@_never_fails
def complete_columns(context: typer.Context, incomplete: str) -> list[str]:
    """The columns of the table that was typed; of several by commas, the last."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in _table(context).schema.names if name.startswith(last)]


@_never_fails
def complete_indexes(context: typer.Context, incomplete: str) -> list[str]:
    """The indexes of the table that was typed."""
    names = _table(context).inspect.indexes().column("name").to_pylist()
    return [name for name in names if name.startswith(incomplete)]


@_never_fails
def complete_branches(context: typer.Context, incomplete: str) -> list[str]:
    """The branches of the table that was typed."""
    return _refs(context, incomplete, "branch")


@_never_fails
def complete_tags(context: typer.Context, incomplete: str) -> list[str]:
    """The tags of the table that was typed."""
    return _refs(context, incomplete, "tag")


@_never_fails
def complete_kinds(incomplete: str) -> list[str]:
    """The index kinds that are installed."""
    from fuse_index.indexes.registry import Host

    return [name for name in sorted(Host.discover().kinds) if name.startswith(incomplete)]


def _refs(context: typer.Context, incomplete: str, kind: str) -> list[str]:
    refs = _table(context).inspect.refs().to_pylist()
    return [each["name"] for each in refs if each["kind"] == kind and each["name"].startswith(incomplete)]


def _table(context: typer.Context) -> Table:
    typed: Any = context.params["table"] or context.args[0]  # what stands before an option without a value yet
    warehouse, sign, name = typed.rpartition("#")
    if sign and not Path(typed).exists():
        return fuse.catalog(warehouse).load_table(name)
    return fuse.open_table(typed)
