"""What is wrong with a command line, in the words of who typed it: Typer says what its parser and its checks say."""

from __future__ import annotations

import difflib
import re
import shlex
from typing import Any

import typer

USAGE_ERROR: type[Exception] = typer.BadParameter.__bases__[0]
_EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", re.DOTALL)
_EXAMPLES = {
    "--where": "--where 'id = 1', or --where TRUE for every row",
    "--key": "--key id=7",
    "--set": "--set city=\"'Bonn'\"",
    "--kind": "--kind bloom; fuse-index plugins lists all kinds",
    "--columns": "--columns city",
}
"""What to say for an option that is missing."""
_MEANT = ("--where", "--schema")
"""Options whose values people type behind a table without them."""
_NO_COMMAND = re.compile(r"No such command '([^']*)'\..*", re.DOTALL)


def reword_usage(error: Any) -> None:
    """Say what to type in place of what no command takes, and nothing of the kind of error within."""
    from fuse_index.cli.front.others_words import OTHERS_COMMANDS, OTHERS_OPTIONS  # nobody else needs them

    error.message = error.message.replace("Value error, ", "")
    context = getattr(error, "ctx", None)
    if (option := getattr(error, "option_name", None)) is not None and error.message.startswith("No such option"):
        error.possibilities = difflib.get_close_matches(option, error.possibilities or (), 2, 0.75)
        if option in OTHERS_OPTIONS:
            error.message, error.possibilities = f"No such option: {option}: {OTHERS_OPTIONS[option]}", []
    elif (unknown := _NO_COMMAND.match(error.message)) is not None:
        is_program = getattr(context, "parent", None) is None  # and no group of commands
        if is_program and unknown[1] in OTHERS_COMMANDS:
            error.message = f"No such command '{unknown[1]}': {OTHERS_COMMANDS[unknown[1]]}"
    elif (example := _EXAMPLES.get(_missing_option(error))) is not None:
        error.message = f"Say {example}"
    elif (extra := _EXTRA.fullmatch(error.message)) is not None and context is not None:
        error.message += _meant(extra[1], {option for parameter in context.command.params for option in parameter.opts})


def _missing_option(error: Any) -> str:
    missing = type(error).__name__ == "MissingParameter" and not error.message
    return str(getattr(getattr(error, "param", None), "opts", [""])[0]) if missing else ""


def _meant(extra: str, options: set[str]) -> str:
    """The option that an argument is the value of, in a few words; empty if it looks like none."""
    value = re.sub(r"^where\s+", "", extra, flags=re.IGNORECASE)
    meant = next((option for option in _MEANT if option in options and re.search(r"\W", value)), "")
    return f": say {meant} {shlex.quote(value)}" if meant else ""
