"""Docstrings as griffe reads them: its section of examples is named in the plural, and sessions elsewhere are code."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^Example:$", re.MULTILINE)
_SESSION = re.compile(r"^(>>> .+(?:\n.+)*)$", re.MULTILINE)


class Examples(griffe.Extension):
    """Takes ``Example:`` for ``Examples:``, so that its lines are code and not a box of prose."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Rename the section of one object."""
        if obj.docstring is not None:
            text = _EXAMPLE.sub("Examples:", obj.docstring.value)
            obj.docstring.value = _SESSION.sub(r"```pycon\n\1\n```", text)
