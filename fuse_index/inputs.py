"""What people hand over: checked where it comes in, so that what is refused is named as they know it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fuse_index.errors import InputError


def named(given: Any, argument: str) -> tuple[str, ...]:
    """A list of names. Raises InputError; a text is none, though Python would take it for a list of letters."""
    if isinstance(given, str) or not isinstance(given, Sequence) or not all(isinstance(name, str) for name in given):
        raise InputError(f"{argument}={given!r}: give a list of names, such as ['id']")
    return tuple(given)
