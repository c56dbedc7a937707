"""What becomes of blocks beside being read: by a statement that changes rows, and by a ranked search."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class StatementUse:
    """What a statement does to blocks that may hold its rows.

    ``unread``: blocks that go as a whole, since all their rows match, and are not opened. ``writes``: what is written
    for the rows that it finds in the blocks that it reads.
    """

    operation: str
    unread: int
    writes: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        whole = "1 block goes" if self.unread == 1 else f"{self.unread:,} blocks go"
        return f"{self.operation} writes {self.writes}" + (f"; {whole} unread" if self.unread else "")


@dataclass(frozen=True, slots=True)
class SearchUse:
    """How a ranked search found its rows.

    ``opened``: blocks whose best rows were looked up, in the order of what they could hold; ``unindexed``: blocks that
    an index does not know, or not well, which were read and indexed in memory.
    """

    query: str
    opened: int
    unindexed: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        text = f"{self.query!r}: the best rows of {self.opened:,} blocks were looked up"
        if not self.unindexed:
            return text
        return (
            f"{text}; {self.unindexed:,} blocks have no index that can be read, and were indexed in memory: refresh it"
        )
