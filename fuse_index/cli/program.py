"""The program ``fuse-index``: its commands, and how a run ends: 0 done, 1 failed, 2 wrong usage.

In: one command line. Out: results on standard output, all else on standard error, and an exit code.
"""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.main import get_command

from fuse_index import __version__
from fuse_index.cli import output
from fuse_index.cli.front.interrupt import INTERRUPTED, INTERRUPTED_WORD
from fuse_index.cli.front.lazy_group import LazyGroup
from fuse_index.cli.front.short_process import spare_garbage_collection
from fuse_index.cli.options import Typed, parse_texts
from fuse_storage import EXTERNAL_ERROR, CodedError, Operation, StorageError, Words

app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        output.print_text(f"fuse-index {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    plugins: Annotated[
        list[Path] | None,
        typer.Option("--plugin", metavar="FILE.py", help="Try a plugin of one file, without installing it."),
    ] = None,
    store: Annotated[
        list[str] | None,
        typer.Option("--store", metavar="NAME=VALUE", help="An option of remote stores: region, endpoint; repeatable."),
    ] = None,
) -> None:
    """Tables on plain Parquet whose queries skip blocks."""
    if store:
        from fuse_storage import set_store_defaults

        set_store_defaults(parse_texts(store, "--store"))
    if plugins:
        from fuse_index.indexes.plugins import try_plugin

        for file in plugins:
            try_plugin(file)


_COMMANDS = {
    "append": "ingest",
    "apply": "ingest --changes",
    "create_table": "create",
    "drop_namespace": "catalog drop-namespace",
    "drop_table": "catalog drop",
    "list_dropped": "catalog dropped",
    "upsert": "ingest",
}
"""The commands that are not called as the operations in Python are, by these."""


class ShellWords(Words):
    """The words of the command line: commands, options, and tables as they were typed."""

    def __init__(self, tables: Mapping[str, str]) -> None:
        self._tables = tables

    def table(self, url: str) -> str:
        from fuse_storage import open_store

        for typed, place in self._tables.items():
            with suppress(StorageError):
                if url in (place, open_store(place).url):
                    return typed
        return url

    def operation(self, meant: Operation) -> str:
        if meant.name.endswith(".load_table"):
            return "WAREHOUSE#NAME"
        options = " ".join(_option(name, value) for name, value in meant.arguments if name)
        if not meant.whole:
            return options
        command = f"{shell_command(meant.name)} {options}".strip()
        return f"`{command}`" if meant.arguments and not options else command  # as text would hide `key-by`

    def say(self, meant: Operation) -> str:
        if meant.name == "catalog" and meant.arguments == (("create", True),):
            return "run catalog init"
        return super().say(meant)


def shell_command(operation: str) -> str:
    """The command that does what a method of a table or of a catalogue does."""
    return _COMMANDS.get(operation, operation.replace("_", "-"))


def _option(name: str, value: Any) -> str:
    """An argument of a method as an option: ``--no-hot``, ``--on id``, ``--by``."""
    option = name.replace("_", "-")
    if isinstance(value, bool):
        return f"--{option}" if value else f"--no-{option}"
    values = [each for each in (value if isinstance(value, list) else [value]) if each is not ...]
    return " ".join([f"--{option}", *([",".join(map(str, values))] if values else [])])


@cache
def _command() -> Callable[..., Any]:
    """The program for Typer's parser: made once a process, since all signatures are read for it."""
    return get_command(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command line and exit; errors of ours end it without a traceback."""
    if arguments is None:  # a process of its own
        spare_garbage_collection()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may not know all letters of a table
    typed = Typed()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: output.print_note(f"warning: {message}")
            _command()(args=arguments, prog_name="fuse-index", obj=typed)
    except BrokenPipeError:
        # The reader (head, less) has seen enough; without this, Python complains again while it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except _printed_errors() as error:
        for each in error.exceptions if isinstance(error, ExceptionGroup) else [error]:
            output.print_error(*_in_words_of_the_shell(each, typed), typed.as_json)
        sys.exit(1)
    except (KeyboardInterrupt, SystemExit) as ended:
        if isinstance(ended, SystemExit) and ended.code != INTERRUPTED:
            raise
        output.print_note(INTERRUPTED_WORD)  # a commit is whole or not there, so nothing is to be said of the table
        sys.exit(INTERRUPTED)


def _printed_errors() -> tuple[type[Exception], ...]:
    """The errors that are printed as a sentence; those of Arrow where it is loaded, as only then can one have come."""
    arrow = sys.modules.get("pyarrow")
    return (CodedError, OSError, ExceptionGroup, *([] if arrow is None else [arrow.ArrowException]))


def _in_words_of_the_shell(error: BaseException, typed: Typed) -> tuple[str, str]:
    """The code of an error and its message."""
    if isinstance(error, CodedError):
        return error.code, error.spell(ShellWords(typed.tables))
    return EXTERNAL_ERROR, _brief(error)


def _brief(error: BaseException) -> str:
    """An error in two lines at most; libraries below us sometimes send a page."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return "\n".join(lines[:2]) or type(error).__name__
