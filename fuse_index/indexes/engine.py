"""What every operation needs besides the table: the installed kinds and functions, and how conditions are meant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from fuse_index.expressions.function import Function
from fuse_index.indexes.registry import Host
from fuse_index.predicate import Context


@dataclass(frozen=True, slots=True)
class Engine:
    """The installed kinds and functions, and how conditions are meant. Picklable, as ``Host`` is."""

    host: Host
    context: Context = field(default_factory=Context)

    @property
    def functions(self) -> Mapping[str, Function]:
        """The functions that conditions may call, by name."""
        return self.host.functions
