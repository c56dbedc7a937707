"""Names of namespaces and tables: what can be one, and which two are the same.

A name keeps its letters as they were given, and two that differ only in case are the same, since Spark's are.
"""

from __future__ import annotations

from collections.abc import Sequence

from fuse_storage.errors import InvalidArgument

Identifier = tuple[str, ...]
"""The parts of a name, outermost first: ("sales", "eu", "orders")."""

MAX_NAME_LENGTH = 255
"""Characters of one part."""
MAX_NAME_PARTS = 16
"""Namespaces within each other, the table included."""
_FORBIDDEN = frozenset("./\\`#")
"""Parts are joined by dots, quoted by back-quotes, and a ``#`` stands between a warehouse and a name in it."""


def parse_identifier(name: str | Sequence[str]) -> Identifier:
    """The parts of a name: of text, those between its dots. Raises InvalidArgument for what is no name.

    >>> parse_identifier("sales.orders"), parse_identifier(["sales", "orders"])
    (('sales', 'orders'), ('sales', 'orders'))
    """
    parts = tuple(name.split(".")) if isinstance(name, str) else tuple(name)
    return check_identifier(parts)


def check_identifier(parts: Identifier) -> Identifier:
    """The parts themselves. Raises InvalidArgument where they are no name."""
    shown = ".".join(map(str, parts))[:300]
    if not 1 <= len(parts) <= MAX_NAME_PARTS:
        raise InvalidArgument(f"{shown!r} is no name: it has {len(parts)} parts, and may have 1 to {MAX_NAME_PARTS}")
    for part in parts:
        if not part or len(part) > MAX_NAME_LENGTH:
            raise InvalidArgument(
                f"{shown!r} is no name: a part has {len(part)} characters, and may have 1 to {MAX_NAME_LENGTH}"
            )
        if not part.isprintable() or part != part.strip() or _FORBIDDEN.intersection(part):
            raise InvalidArgument(
                f"{shown!r} is no name: a part must not hold control characters, any of . / \\ ` # or a space at an end"
            )
    return parts


def fold_identifier(parts: Identifier) -> Identifier:
    """What two names have in common that are the same.

    >>> fold_identifier(("Sales", "ORDERS"))
    ('sales', 'orders')
    """
    return tuple(part.lower() for part in parts)


def join_identifier(parts: Identifier) -> str:
    """A name as text, which ``parse_identifier`` reads."""
    return ".".join(parts)
