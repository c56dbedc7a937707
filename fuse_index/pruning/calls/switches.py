"""Indexes that are not to be asked: switched off for a query, a session, a table or a process, and by whom.

A switch names an index, ``by_email``; all of a kind, ``kind:bloom``; or all that a distribution brings,
``distribution:acme-roaring``. It is about asking alone: new blocks are indexed as ever, and upkeep goes on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from fuse_index.errors import InputError
from fuse_index.indexes.definition import IndexDefinition, UnavailableIndex, load_definitions
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.interface import IndexKind, Refusal
from fuse_index.reasons import Reason
from fuse_storage import Snapshot, StoredTable

SWITCH_PROPERTY = "indexes_off"
"""The property of a table that says what is off in every query of it."""
VARIABLE = "FUSE_INDEX_OFF"
"""The environment variable that says so of this process."""
_FORMS = ("index", "kind", "distribution")

_CALLS: ContextVar[Mapping[str, str] | None] = ContextVar("fuse_index_off", default=None)
"""By switch, who said so: of the code that runs within ``indexes_off``."""


@contextmanager
def indexes_off(*switches: str, by: str = "indexes_off()") -> Iterator[None]:
    """Switch indexes off for the queries that are planned within, in this thread; answers stay the same.

    Args:
        switches: Names of indexes; ``kind:bloom`` for all of a kind, ``distribution:acme`` for all that one brings.
        by: What ``explain`` is to say of it.

    Yields:
        Nothing.

    Raises:
        InputError: A switch has another form.

    Example:
        >>> table = fuse.create_table("memory://indexes-off", "id BIGINT", properties={"block_rows": 2})
        >>> snapshot = table.append([{"id": number} for number in range(6)])
        >>> with fuse.indexes_off("kind:min_max"):
        ...     print(table.explain("id = 3").blocks, table.explain("id = 3").votes[0].detail)
        Totals(total=3, kept=3) switched off by indexes_off()
    """
    token = _CALLS.set({**(_CALLS.get() or {}), **dict.fromkeys(_parse(switches, by), by)})
    try:
        yield
    finally:
        _CALLS.reset(token)


@dataclass(frozen=True, slots=True)
class Switches:
    """What is off in a query: by switch, such as ``kind:bloom``, who said so."""

    said_by: Mapping[str, str]

    @classmethod
    def of(cls, properties: Mapping[str, Any]) -> Switches:
        """All that hold now for a table with these properties. Raises InputError for one that switches nothing off."""
        said: dict[str, str] = {}
        for text, by in (
            (properties.get(SWITCH_PROPERTY), f"the property {SWITCH_PROPERTY}"),
            (os.environ.get(VARIABLE), f"{VARIABLE} in the environment"),
        ):
            if text:
                said |= dict.fromkeys(_parse(split_switches(str(text)), by), by)
        return cls({**said, **(_CALLS.get() or {})})

    def definitions(self, snapshot: Snapshot, engine: Engine) -> list[IndexDefinition | UnavailableIndex]:
        """The indexes of a snapshot, of which those that are off are unavailable."""
        found = load_definitions(snapshot, engine.host, engine.context)
        return [self._definition(each, engine) for each in found] if self.said_by else found

    def refuse(self, kind: IndexKind, engine: Engine, name: str = "") -> Refusal | None:
        """Why an index, or a kind that needs none, is not asked; None if it may be."""
        distribution = engine.host.source_of(kind).distribution
        for switch in (f"index:{name}", f"kind:{kind.name}", f"distribution:{distribution}"):
            if (by := self.said_by.get(switch)) is not None:
                return Refusal(Reason.DISABLED, f"switched off by {by}")
        return None

    def _definition(
        self, definition: IndexDefinition | UnavailableIndex, engine: Engine
    ) -> IndexDefinition | UnavailableIndex:
        if isinstance(definition, UnavailableIndex):
            return definition
        refusal = self.refuse(definition.kind_in(engine.host), engine, definition.name)
        if refusal is None:
            return definition
        return UnavailableIndex(definition.name, definition.kind, definition.key, refusal, definition.inputs)


NO_SWITCHES = Switches({})


def askable_definitions(table: StoredTable, engine: Engine) -> list[IndexDefinition | UnavailableIndex]:
    """The indexes of a table; those that are off are unavailable. Raises as ``Switches.of``."""
    return Switches.of(table.snapshot.properties).definitions(table.snapshot, engine)


def split_switches(text: str) -> tuple[str, ...]:
    """The switches of a text that has them by commas."""
    return tuple(part for part in (part.strip() for part in text.split(",")) if part)


def _parse(switches: tuple[str, ...], by: str) -> Iterator[str]:
    """Spell switches with their form. Raises InputError for one that has none of these."""
    for switch in switches:
        form, colon, name = switch.partition(":") if isinstance(switch, str) else ("", "", "")
        if not colon and form.strip():
            yield f"index:{form.strip()}"
        elif form.strip() in _FORMS and name.strip():
            yield f"{form.strip()}:{name.strip()}"
        else:
            raise InputError(
                f"{switch!r} of {by} switches nothing off: give the name of an index, kind:NAME or distribution:NAME"
            )
