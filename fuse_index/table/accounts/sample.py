"""Some blocks of a table as a small table in memory, on which an index is built that is not there, to see what it does.

The blocks are drawn from those that conditions read today, so that what is measured is what an index adds to the
statistics and indexes that there are.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from time import process_time
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import fuse_storage as storage
from fuse_index.errors import BuildError
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.expressions.traversal import column_names, predicate_terms
from fuse_index.indexes.inputs import resolve_input
from fuse_index.indexes.registry import PluginWarning
from fuse_index.predicate import Predicate
from fuse_index.pruning.explanation import Vote
from fuse_index.pruning.planner import plan_scan
from fuse_index.reasons import Reason
from fuse_index.signals.build_failures import BUILD_FAILURES
from fuse_index.signals.listeners import unheard
from fuse_index.statements.mixin import StatementsMixin
from fuse_index.table.indexes import IndexesMixin, rebuild_index
from fuse_index.table.query import QueryMixin

MAX_BLOCKS = 16
"""Blocks of a sample, unless more are asked for."""
_INDEX = "what_if"
_SEED = 7


class SampledTable(QueryMixin, StatementsMixin, IndexesMixin):
    """The parts of ``fuse_index.Table`` that a sample needs."""


@dataclass(frozen=True)
class AskedCondition:
    """A condition, and the blocks that are read for it today: their numbers, int64, ascending."""

    predicate: Predicate
    blocks: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Measured:
    """What an index on a sample did for one condition.

    ``sampled``: blocks of the sample that are read for it today; ``left``: of these, those that the index leaves.
    """

    condition: AskedCondition
    sampled: int
    left: int
    vote: Vote | None

    @property
    def blocks_then(self) -> int:
        """An estimate of the blocks that would be read of the whole table."""
        return round(len(self.condition.blocks) * self.left / self.sampled) if self.sampled else 0

    def to_dict(self) -> dict[str, Any]:
        """The condition, what is read now and would be then, and what the index said."""
        return {
            "where": predicate_sql(self.condition.predicate),
            "blocks_now": len(self.condition.blocks),
            "blocks_then": self.blocks_then,
            "sampled": self.sampled,
            "left": self.left,
            "reason": (self.vote.reason if self.vote else Reason.NO_INDEX).value,
            "detail": self.vote.detail if self.vote else "",
        }


@dataclass(frozen=True)
class Trial:
    """An index that was built on a sample. ``bytes`` and ``seconds`` of processor time: estimates for all blocks."""

    bytes: int
    seconds: float
    measured: tuple[Measured, ...]


@dataclass(frozen=True)
class Sample:
    """Blocks of a table in memory. ``ordinals``: their numbers in the table, int64, ascending."""

    table: SampledTable
    ordinals: npt.NDArray[np.int64]
    conditions: tuple[AskedCondition, ...]
    scale: float

    def try_index(
        self, kind: str, columns: Sequence[str], options: Mapping[str, Any], asked: Sequence[int] | None = None
    ) -> Trial:
        """Build an index on the sample, and ask it of conditions, by their numbers.

        Raises DefinitionError, BuildError.
        """
        before, began = self._index_bytes(), process_time()
        self.table.create_index(_INDEX, kind, columns, build=False, **options)
        try:
            self._build()
            seconds, size = process_time() - began, self._index_bytes() - before
            chosen = self.conditions if asked is None else [self.conditions[number] for number in asked]
            measured = tuple(self._measure(condition) for condition in chosen)
        finally:
            self.table.drop_index(_INDEX)
        return Trial(round(size * self.scale), seconds * self.scale, measured)

    def _build(self) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", PluginWarning)  # who tries an index has not got it yet
                rebuild_index(self.table, _INDEX)
        except BuildError:
            definition = self.table.snapshot.definitions[_INDEX]
            failure = BUILD_FAILURES.find(str(definition["key"])) or "build()"
            raise BuildError(f"kind {definition['kind']!r} failed on each block, in {failure}") from None

    def _measure(self, condition: AskedCondition) -> Measured:
        plan = plan_scan(self.table.stored, condition.predicate, self.table.engine)
        today = np.isin(self.ordinals, condition.blocks)
        left = np.zeros(len(self.ordinals), np.bool_)
        left[plan.blocks.ordinals] = True
        votes = [vote for vote in plan.explanation.votes if vote.index == _INDEX]
        best = max(votes, key=lambda vote: (vote.blocks_removed, vote.zones_removed, vote.rows_removed), default=None)
        return Measured(condition, int(today.sum()), int((today & left).sum()), best)

    def _index_bytes(self) -> int:
        store = self.table.stored.store
        return sum(found.size for prefix in ("_i/", "_x/") for found in store.list(prefix))


@contextmanager
def sampled(
    table: SampledTable, conditions: Sequence[Predicate], columns: Sequence[str], max_blocks: int = MAX_BLOCKS
) -> Iterator[Sample]:
    """Draw a sample of the blocks that conditions read today; it is forgotten afterwards.

    ``columns``: what an index may be on, beside the columns that conditions name. Raises StorageError.
    """
    with unheard():
        plans = [plan_scan(table.stored, each, table.engine) for each in conditions]
    asked = tuple(AskedCondition(each, plan.blocks.ordinals) for each, plan in zip(conditions, plans, strict=True))
    chosen = _draw([condition.blocks for condition in asked], max_blocks)
    schema, engine = table.snapshot.schema, table.engine
    terms = [term for each in conditions for term in predicate_terms(each)]
    terms += [resolve_input(column, schema, engine).term for column in columns]
    wanted = set(column_names(terms))
    names = [name for name in schema.names if name in wanted] or schema.names[:1]
    store = storage.open_store(f"memory://what-if-{storage.new_id()}")
    with unheard():
        try:
            small, rows = _copy(table, chosen, names, store)
            yield Sample(small, chosen, asked, table.snapshot.row_count / max(rows, 1))
        finally:
            store.delete([found.key for found in store.list("")])


def _draw(kept: Sequence[npt.NDArray[np.int64]], max_blocks: int) -> npt.NDArray[np.int64]:
    """Draw as many blocks for each condition, by numbers, int64, ascending. ``kept``: int64, shape (k,), of each."""
    pick = np.random.default_rng(_SEED)
    share = max(max_blocks // max(len(kept), 1), 2)
    drawn = [pick.choice(blocks, min(share, len(blocks)), replace=False) for blocks in kept if len(blocks)]
    return np.unique(np.concatenate(drawn)).astype(np.int64) if drawn else np.zeros(0, np.int64)


def _copy(
    table: SampledTable, chosen: npt.NDArray[np.int64], names: list[str], store: storage.Store
) -> tuple[SampledTable, int]:
    """Write rows of blocks, each as one, to a table in memory; the table, and how many rows these are."""
    whole, blocks = table.snapshot.schema.arrow, table.stored.blocks().take(chosen)
    properties: dict[str, Any] = {"block_rows": int(max(blocks.row_counts, default=1)), "plan_log": "off"}
    if (zone_rows := table.snapshot.properties.get("zone_rows")) is not None:
        properties["zone_rows"] = zone_rows
    made = storage.StoredTable.create(store, pa.schema([whole.field(name) for name in names]), properties=properties)
    with made.writer(()) as writer:
        for position in range(len(blocks)):
            writer.write(storage.read_live_rows(table.stored, blocks, position, names))
            writer.end_block()
        staged = writer.finish()
    made = made.transaction(()).append(staged).commit("append")
    return replace(table, stored=made, pinned=False), made.snapshot.row_count
