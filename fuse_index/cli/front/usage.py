"""What is wrong with a command line, in the words of who typed it: Typer says what its parser and its checks say."""

from __future__ import annotations

import re
import shlex
from typing import Any

import typer

USAGE_ERROR: type[Exception] = typer.BadParameter.__bases__[0]
_EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", re.DOTALL)
_MEANT = ("--where", "--schema")
"""Options whose values people type behind a table without them."""


def reword_usage(error: Any) -> None:
    """Say what to type in place of an argument that no command takes, and nothing of the kind of error within."""
    error.message = error.message.replace("Value error, ", "")
    extra, context = _EXTRA.fullmatch(error.message), getattr(error, "ctx", None)
    if extra is None or context is None:
        return
    options = {option for parameter in context.command.params for option in parameter.opts}
    for option in _MEANT:
        if option in options and re.search(r"\W", extra[1]):
            error.message += f": say {option} {shlex.quote(extra[1])}"
            return
