"""The account of a plan: what was skipped, by whom, and why not more.

One value for every reader: text, a dict for programs, a rich table for terminals, HTML for notebooks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fuse_index.display.block_map import BlockMap
from fuse_index.display.plan_card import plan_card
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.predicate import Predicate
from fuse_index.pruning.account.stages import NO_STAGES, Stages
from fuse_index.pruning.account.uses import ChangesUse, SearchUse, SourceUse, StatementUse, TailUse, tail_use
from fuse_index.reasons import FAULTS, Reason
from fuse_storage import BlockFrame, StoredTable

if TYPE_CHECKING:
    from rich.console import Group

_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Totals:
    """How many there are, and how many have to be read."""

    total: int
    kept: int

    def to_dict(self) -> dict[str, int]:
        return {"total": self.total, "kept": self.kept}


@dataclass(frozen=True, slots=True)
class Vote:
    """What one index did for one leaf of the predicate.

    ``rows_removed`` counts single rows of zones that are still read, beside the blocks and zones that are not.
    ``added``: nobody wrote this condition; the engine, or Spark, has it follow from what was asked.
    """

    leaf: str
    index: str
    kind: str
    reason: Reason
    detail: str = ""
    blocks_removed: int = 0
    zones_removed: int = 0
    rows_removed: int = 0
    added: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {
            "leaf": self.leaf,
            **({"added": True} if self.added else {}),
            "index": self.index,
            "kind": self.kind,
            "blocks_removed": self.blocks_removed,
            "zones_removed": self.zones_removed,
            "rows_removed": self.rows_removed,
            "reason": self.reason.value,
            "detail": self.detail,
        }


@dataclass(frozen=True)
class Explanation:
    """What a plan reads of a snapshot, and which index removed how much.

    ``table``: its URL, or its name where the query has one; ``alias``: what the query calls it, if it does.

    ``tail``: of these blocks those that no index knows yet, where there are any. ``rows`` counts the rows of kept zones
    (or fewer, where an index knew rows); ``bytes`` those of the block files.

    ``source``: where the table only votes on files that another connector reads. Counted are then the files that the
    table knows; the connector may read others, or fewer. ``left_out``: columns of its source that the table lacks,
    since they cannot be read.

    ``statement``: what a statement does beside reading. ``search``: how a ranked search found its rows.
    ``changes``: which blocks came and went, where changes are told; counted are then these.
    ``stages``: what was asked in each stage of the plan, and what that cost.

    ``map``: what became of each block, which is drawn in a notebook.
    """

    snapshot: str
    predicate: Predicate | None
    segments: Totals
    blocks: Totals
    zones: Totals
    rows: Totals
    bytes: Totals
    votes: tuple[Vote, ...] = ()
    seconds: float = 0.0
    tail: TailUse | None = None
    table: str = ""
    alias: str = ""
    source: SourceUse | None = None
    left_out: tuple[str, ...] = ()
    statement: StatementUse | None = None
    search: SearchUse | None = None
    changes: ChangesUse | None = None
    stages: Stages = NO_STAGES
    map: BlockMap | None = field(default=None, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, with the keys that design promises."""
        return {
            "table": self.table,
            **({"alias": self.alias} if self.alias else {}),
            "snapshot": self.snapshot,
            "where": None if self.predicate is None else predicate_sql(self.predicate),
            **{level: totals.to_dict() for level, totals in self._levels()},
            **{name: use.to_dict() for name, use in self._uses().items()},
            **({"left_out": list(self.left_out)} if self.left_out else {}),
            "predicates": [vote.to_dict() for vote in self.votes],
            "stages": [stage.to_dict() for stage in self.stages],
            "seconds": self.seconds,
        }

    @property
    def faulty(self) -> bool:
        """Whether an index that could have said something failed to: another try may tell more."""
        return any(vote.reason in FAULTS for vote in self.votes)

    @property
    def called(self) -> str:
        """The table, and what the query calls it."""
        return f"{self.table} AS {self.alias}" if self.alias else self.table

    @property
    def where(self) -> str:
        """The condition as text of SQL."""
        return predicate_sql(self.predicate) if self.predicate is not None else "(everything)"

    def _levels(self) -> list[tuple[str, Totals]]:
        return [
            ("segments", self.segments),
            ("blocks", self.blocks),
            ("zones", self.zones),
            ("rows", self.rows),
            ("bytes", self.bytes),
        ]

    def __str__(self) -> str:
        lines = [
            f"table    {self.called}",
            f"snapshot {self.snapshot}",
            f"where    {self.where}",
        ]
        lines += [f"{level:8} {totals.kept:,} of {totals.total:,} to read" for level, totals in self._levels()]
        lines += self._notes()
        rows = self._rows()
        widths = [max((len(row[i]) for row in rows), default=0) for i in range(3)]
        for row in rows:
            padded = [cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)]
            lines.append("  " + "  ".join(padded).rstrip())
        return "\n".join(lines)

    def _uses(self) -> dict[str, TailUse | SourceUse | StatementUse | SearchUse | ChangesUse]:
        uses = (
            *(("tail", self.tail), ("source", self.source), ("change", self.statement)),
            *(("search", self.search), ("changes", self.changes)),
        )
        return {name: use for name, use in uses if use is not None}

    def _notes(self) -> list[str]:
        left_out = [f"left out {', '.join(self.left_out)}"] if self.left_out else []
        return [*(f"{name:8} {use}" for name, use in self._uses().items()), *left_out]

    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [(_leaf(vote), vote.index or "-", vote.reason.value, _effect(vote)) for vote in self.votes]

    def __rich__(self) -> Group:
        from rich.console import Group
        from rich.table import Table

        reading = Table("", "to read", "of")
        for level, totals in self._levels():
            reading.add_row(level, f"{totals.kept:,}", f"{totals.total:,}")
        why = Table("predicate", "index", "kind", "reason", "effect")
        for vote in self.votes:
            cells = (_leaf(vote), vote.index, vote.kind, vote.reason.value, _effect(vote))
            why.add_row(*(cell.replace("[", r"\[") for cell in cells))
        return Group(f"table    {self.called}", f"snapshot {self.snapshot}", reading, *self._notes(), why)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        facts = {"table": self.called, "snapshot": self.snapshot, "where": self.where}
        levels = [(level, totals.kept, totals.total) for level, totals in self._levels()]
        return plan_card(facts, levels, self._notes(), self._rows(), self.map)


def _leaf(vote: Vote) -> str:
    return f"{vote.leaf} (added)" if vote.added else vote.leaf


def _effect(vote: Vote) -> str:
    removed = [
        f"{count:,} {what if count == 1 else f'{what}s'} removed"
        for count, what in ((vote.blocks_removed, "block"), (vote.zones_removed, "zone"), (vote.rows_removed, "row"))
        if count
    ]
    return "; ".join([*removed, *([vote.detail] if vote.detail else [])])


def explain_plan(
    table: StoredTable,
    segments: int,
    blocks: BlockFrame,
    zones: _Mask,
    rows: Mapping[int, _Mask],
    votes: Iterable[Vote],
) -> Explanation:
    """Count what a plan leaves to read of a snapshot, beside what there is.

    ``segments``: how many are left. ``zones``: bool, one per zone of ``blocks``. ``rows``: bool, one per row of the
    zone of this number, where only some may match.
    """
    listed = table.segments()
    zone_rows = np.where(zones, blocks.zone_rows, 0)
    for zone, mask in rows.items():
        zone_rows[zone] = np.count_nonzero(mask)
    return Explanation(
        snapshot=table.snapshot.id,
        predicate=None,
        segments=Totals(len(listed), segments),
        blocks=Totals(listed.total_blocks, len(blocks)),
        zones=Totals(int(listed.zone_counts.sum()), int(zones.sum())),
        rows=Totals(listed.total_rows, int(zone_rows.sum())),
        bytes=Totals(table.snapshot.bytes, int(blocks.sizes.sum())),
        votes=tuple(votes),
        seconds=0.0,
        tail=tail_use(table, blocks),
        table=table.store.url,
        left_out=() if table.snapshot.votes_only else tuple((table.snapshot.source or {}).get("left_out") or ()),
    )
