"""The program ``fuse-index``: its commands, and how a run ends: 0 done, 1 failed, 2 wrong usage.

In: one command line. Out: results on standard output, all else on standard error, and an exit code.
"""

from __future__ import annotations

import io
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated, Any

import pyarrow as pa
import typer
from rich.text import Text
from typer.main import get_command

from fuse_index import __version__
from fuse_index.cli import output
from fuse_index.cli.catalog import catalog_app
from fuse_index.cli.clustering import clustering_app
from fuse_index.cli.columns import columns_app
from fuse_index.cli.foreign import foreign_app
from fuse_index.cli.history import history_app
from fuse_index.cli.index import index_app
from fuse_index.cli.inspect import inspect_app
from fuse_index.cli.rows import rows_app
from fuse_index.cli.tables import tables_app
from fuse_index.errors import FuseIndexError
from fuse_storage import StorageError

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(tables_app)
app.add_typer(inspect_app)
app.add_typer(history_app)
app.add_typer(columns_app)
app.add_typer(rows_app)
app.add_typer(foreign_app)
app.add_typer(clustering_app)
app.add_typer(catalog_app, name="catalog", help="Make, list, rename, drop and bring back the names of a warehouse.")
app.add_typer(index_app, name="index", help="Build, look at and check the indexes of a table.")


def _print_version(wanted: bool) -> None:
    if wanted:
        output.print_text(f"fuse-index {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Tables on plain Parquet whose queries skip blocks."""


_SHELL_WORDS = [
    (re.compile(python), shell)
    for python, shell in (
        (r"\bfirst=True, or after=", "--first, or --after"),
        (r"\bindexes='drop'", "--indexes drop"),
        (r"\b(cluster|key)_by\(\[[^\]]*\]\)", r"`\1-by`"),
        (r"\bpreimages=False\b", "--no-preimages"),
        (r"\bby=\[\.\.\.\]", "--by"),
        (r"\bon=\['([^']*)'\]", r"--on \1"),
        (r"\bprimary_key=\[\.\.\.\]", "--primary-key"),
        (r"\bpartition_by=\[\.\.\.\]", "--partition-by"),
        (r"\bcluster_by=\[\.\.\.\]", "--cluster-by"),
        (r"\bkey=\[\.\.\.\]", "--key"),
        (r"\bby add_column\b", "by add-column"),
        (r"^delete_keys is\b", "delete-keys is"),
        (r"^apply is\b", "ingest --changes is"),
        (r"^upsert needs\b", "ingest needs"),
        (r"\bno hot=False, merge_schema\b", "no --no-hot, no --merge-schema"),
        (r"^merge_schema: ", "--merge-schema: "),
        (r"^overwrite\(where=\.\.\.\)", "overwrite --where"),
        (r"\band upsert$", "and ingest others"),
        (r"\bformat='(\w+)'", r"--format \1"),
        (r"\bsay force\b", "say --force"),
        (r"\buse upsert, delete_keys or apply\b", "use ingest, delete-keys or ingest --changes"),
        (r"\bsay create=True", "run catalog init"),
        (r"\bwith cascade\b", "with --cascade"),
        (r"\bdrop it without purge\b", "drop it without --purge"),
        (r"\blook at list_dropped\b", "look at catalog dropped"),
    )
]
"""What messages advise in Python, and what a shell calls it."""


@cache
def _command() -> Callable[..., Any]:
    """The program for Typer's parser: made once a process, since all signatures are read for it."""
    return get_command(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command line and exit; errors of ours end it without a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may not know all letters of a table
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: output.print_note(f"warning: {message}")
            _command()(args=arguments, prog_name="fuse-index")
    except BrokenPipeError:
        # The reader (head, less) has seen enough; without this, Python complains again while it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except (FuseIndexError, StorageError, OSError, pa.ArrowException) as error:
        message = str(error) if isinstance(error, FuseIndexError | StorageError) else _brief(error)
        output.stderr_console().print(Text.assemble(("error: ", "bold red"), _in_words_of_the_shell(message)))
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)  # as shells say of whom Ctrl-C ended


def _in_words_of_the_shell(message: str) -> str:
    """A message whose advice is in Python's words, in those of the command line."""
    for python, shell in _SHELL_WORDS:
        message = python.sub(shell, message)
    return message


def _brief(error: BaseException) -> str:
    """An error in two lines at most; libraries below us sometimes send a page."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return "\n".join(lines[:2]) or type(error).__name__
