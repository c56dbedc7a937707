"""What becomes of blocks beside being read: by hot commits, sources, statements that change rows, and searches."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from fuse_storage import BlockFrame, StoredTable, tail_keys


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
class ChangesUse:
    """What changes are told from.

    ``since``, ``until``: versions. ``came``, ``gone``: blocks that only the later state has, and only the earlier one.
    ``how``: what is done with those of them that may hold changes.
    """

    since: int
    until: int
    came: int
    gone: int
    how: str

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        blocks = "block" if self.came == 1 else "blocks"
        return (
            f"{self.came:,} {blocks} came and {self.gone:,} went from version {self.since} to {self.until}; {self.how}"
        )


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


@dataclass(frozen=True, slots=True)
class TailUse:
    """The hot commits that are in no segment, their blocks and rows, and how many blocks have to be read.

    With a primary key also how many ``keys`` they put or delete, and how many blocks of the base they
    hide rows of (``touched``); None without.
    """

    commits: int
    blocks: int
    rows: int
    kept: int
    keys: int | None = None
    touched: int | None = None

    def to_dict(self) -> dict[str, int]:
        return {name: count for name, count in asdict(self).items() if count is not None}

    def __str__(self) -> str:
        text = f"{self.kept:,} of {self.blocks:,} blocks of {self.commits:,} hot commits to read"
        if self.keys is None:
            return text
        return f"{text}; {self.keys:,} keys, which hide rows of {self.touched:,} tiered blocks"


@dataclass(frozen=True, slots=True)
class SourceUse:
    """What votes left out of a scan by the source's own connector, which decides on files, versions and deleted rows.

    ``files``: how many it was about to read; ``left_out``: of them, no row can match; ``unknown``: of them, no index
    knows; ``in_part``: some row groups of them were left out. ``problem``: why every file was read; else empty.
    ``release``: of the connector, where it is none of those that were tested; else empty.
    """

    connector: str
    files: int = 0
    left_out: int = 0
    unknown: int = 0
    in_part: int = 0
    problem: str = ""
    release: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        connector = f"{self.connector} {self.release} (not tested)" if self.release else self.connector
        if self.problem:
            return f"{connector} reads every file: {self.problem}"
        text = f"{connector} reads {self.files - self.left_out:,} of {self.files:,} files"
        if self.in_part:
            text += f", {self.in_part:,} in part"
        return f"{text}; the index does not know {self.unknown:,} of these: refresh it" if self.unknown else text


def tail_use(table: StoredTable, blocks: BlockFrame) -> TailUse | None:
    """How much of the tail is among the blocks to read; None where the table has no tail."""
    if (tail := table.snapshot.tail) is None:
        return None
    segments = table.segments()
    kept = int((blocks.ordinals >= segments.base_block_count).sum())
    return TailUse(tail.commits, tail.blocks, tail.rows, kept, *(tail_keys(segments) or ()))
