"""The command that begins a plugin: a folder with a distribution, its kind, and tests that pass."""

from __future__ import annotations

import keyword
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from fuse_index import __version__
from fuse_index.cli import output
from fuse_index.cli.kinds.files_of_new_plugin import FILES
from fuse_index.cli.options import JsonOption
from fuse_index.errors import InputError

plugin_app = typer.Typer(add_completion=False, no_args_is_help=True)


@plugin_app.callback()
def _plugin() -> None:
    """Write index kinds of your own."""


@plugin_app.command("new")
def _new(
    name: Annotated[str, typer.Argument(help="Of the kind, such as endings: a word in lower case.")],
    folder: Annotated[
        Path | None, typer.Option("--into", help="The new folder; by default fuse-index-NAME, here.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Make a distribution with one index kind whose tests pass, to be changed into yours."""
    if not name.isidentifier() or name != name.lower() or keyword.iskeyword(name):
        raise InputError(f"{name!r} cannot be the name of a kind: take letters in lower case, digits and _")
    place = Path(f"fuse-index-{name.replace('_', '-')}") if folder is None else folder
    if place.exists():
        raise InputError(f"{place} is there already: choose another folder by --into")
    words = {
        "name": name,
        "module": f"fuse_index_{name}",
        "distribution": f"fuse-index-{name.replace('_', '-')}",
        "kind": "".join(part.capitalize() for part in name.split("_") if part) or "Kind",
        "version": __version__,
    }
    place.mkdir(parents=True)
    written = []
    for path, text in FILES.items():
        target = place / Template(path).substitute(words)
        target.write_text(Template(text).substitute(words), encoding="utf-8")
        written.append(target.name)
    steps = f"cd {place} && pip install -e '.[test]' && pytest"
    output.print_result(
        {"folder": str(place), "files": written},
        f"{place} has the kind {name!r} in {words['module']}.py. Next: {steps}",
        as_json,
    )
