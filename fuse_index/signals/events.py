"""What happened, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fuse_index.signals.accounts import PlanAccount


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something that happened to a table. ``table``: its URL. ``seconds``: how long it took, 0 if that is not known."""

    table: str
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """JSON-able: the name of the event, and what it says."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        told = {name: value.to_dict() if hasattr(value, "to_dict") else value for name, value in values.items()}
        return {"event": type(self).__name__, **told}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMade(Event):
    """A condition was planned. ``explanation``: its account, as ``explain`` gives it."""

    explanation: PlanAccount

    def to_dict(self) -> dict[str, Any]:
        """JSON-able: the account without its segments and stages."""
        told = self.explanation.to_dict()
        kept = ("snapshot", "where", "blocks", "zones", "rows", "bytes", "predicates")
        return {"event": "PlanMade", "table": self.table, "seconds": self.seconds} | {name: told[name] for name in kept}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitMade(Event):
    """A commit was made. ``summary``: what its snapshot says of it."""

    snapshot: str
    version: int
    operation: str
    summary: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexBuilt(Event):
    """An index was built on blocks that had none, or anew."""

    index: str
    kind: str
    blocks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexFailed(Event):
    """An index did something wrong while it was asked or built. ``reason``: as ``explain`` names it."""

    index: str
    kind: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDone(Event):
    """Upkeep did, lost or failed a task. ``outcome``: as ``table.maintenance.run`` tells it."""

    task: str
    why: str
    outcome: str
    bytes_written: int
    problem: str | None
