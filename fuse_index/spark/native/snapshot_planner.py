"""The planner behind a session's endpoint: its tables, opened once each, and the planning that all reading shares.

In: requests with typed trees of Catalyst. Out: masks of blocks, aggregate states, explanations.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from fuse_index.errors import InputError, OpaqueError
from fuse_index.expressions.errors import UnsupportedAggregate, UnsupportedExpression
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.registry import Host
from fuse_index.ingest.schema_merge import evolved_table
from fuse_index.predicate import Context, Predicate, Term
from fuse_index.pruning.explanation import Explanation, Vote
from fuse_index.pruning.planner import plan_scan
from fuse_index.query.aggregate import describe_aggregation, plan_aggregate
from fuse_index.query.ranking.first_rows import RankedOrder, keep_first_rows
from fuse_index.reasons import Reason
from fuse_index.spark.native.column_estimates import ColumnEstimate, estimate_columns
from fuse_index.spark.native.driver_rows import PlannedScan, RowBounds, certain_row_count, named_row_count, read_rows
from fuse_index.spark.native.file_listing import (
    ListedFiles,
    list_deleted_rows,
    list_foreign_files,
    list_partitions,
    pack_file_listing,
)
from fuse_index.spark.native.join_keys import may_prune_by_keys
from fuse_index.spark.native.lru_cache import LruCache
from fuse_index.spark.native.top_rows import TopRows, decode_top_rows, keep_top_rows
from fuse_index.spark.native.zone_ranges import partial_ranges
from fuse_index.spark.protocol import questions
from fuse_index.spark.protocol.replies import AggregateReply, PruneReply, RefreshReply, ScanDescription, encode_states
from fuse_index.spark.protocol.requests import ChangeRowsRequest
from fuse_index.sql.catalyst import decode_aggregation, decode_catalyst_term, decode_filter
from fuse_index.sql.catalyst_terms import CatalystTree
from fuse_index.table.table import Table
from fuse_storage import SchemaChange, SchemaError, StoredTable, new_id

INDEXED_MODE = "indexes"
"""The mode in which indexes are asked; in any other, every block is read."""

MAX_PLAN_GROUPS = 100_000
"""States of more groups are not sent: they travel inside of Spark's plan, which is then no faster than its own way."""
MAX_PLAN_BYTES = 64 << 20
"""States whose Arrow stream is larger are not sent either: sketches are 4 kB each."""


@dataclass(frozen=True, slots=True)
class _SparkLocation:
    """What a URL does not say: the scheme that Spark knows it by, and how our store reaches it."""

    scheme: str
    options: Mapping[str, str]


_WITHOUT_TAIL = "-"
"""What follows the id of a state in its key, where rows that are not tiered yet are left out."""


Reader = Hashable
"""Who reads a table, as far as what Spark is told of it hangs on that."""
Described = tuple[ScanDescription, bytes]
"""A snapshot, and its files as ``register_table`` returns them."""

_EVOLVED = "+"
"""What stands in the id of a state between that of the table's and the number of its step to other columns."""


def state_key(table: StoredTable) -> str:
    """The key of what an open table reads: the id of its state, and whether all of it is meant."""
    return table.snapshot.id + (_WITHOUT_TAIL if table.snapshot.is_cut else "")


@dataclass(frozen=True, slots=True)
class _OpenState:
    """A state of a table, and what Spark was told of it, by who reads it."""

    table: StoredTable
    described: Mapping[Reader, Described] = field(default_factory=dict)


class SnapshotPlanner:
    """A ``Planner`` for the snapshots that queries ask about, by URL and id, of the tables that it was given."""

    MAX_OPEN_STATES: ClassVar[int] = 32
    MAX_PLAN_BYTES: ClassVar[int] = 64 << 20
    """Plans that take no more are kept: rows, or what is known of columns, may be asked for next."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._states: LruCache[tuple[str, str], _OpenState] = LruCache(self.MAX_OPEN_STATES)
        self._locations: dict[str, _SparkLocation] = {}
        self._schema_changes: LruCache[str, SchemaChange] = LruCache(self.MAX_OPEN_STATES)

    def with_host(self, host: Host) -> SnapshotPlanner:
        """A planner of the same tables that asks other index kinds."""
        other = SnapshotPlanner(host)
        other._states, other._locations = self._states, self._locations
        other._schema_changes = self._schema_changes
        return other

    def evolved(self, table: StoredTable, step: SchemaChange) -> StoredTable:
        """The table with the columns that it gets by the commit of a statement, which finds the step by the state's id.

        Only to be read. Raises what the step raises.
        """
        changed = replace(step(table.snapshot), id=f"{table.snapshot.id}{_EVOLVED}{new_id()}")
        self._schema_changes.put(changed.id, step)
        return table.at_entry(table.entry, changed)

    def register_table(self, table: StoredTable, scheme: str, options: Mapping[str, str]) -> bytes:
        """Remember an open table, the scheme by which Spark reads its files, and our store's options.

        Returns its files as ``pack_file_listing`` gives them.
        """
        self._locations[table.store.url] = _SparkLocation(scheme, options)
        return self.register_state(table)

    def register_votes(self, table: StoredTable, options: Mapping[str, str]) -> bytes:
        """Remember a table that only votes here; its files as ``register_table`` returns them."""
        self._locations.setdefault(table.store.url, _SparkLocation(table.store.url.partition(":")[0], options))
        return self.register_state(table)

    def register_state(self, table: StoredTable) -> bytes:
        """Remember another state of a table that is known; its files as ``register_table`` returns them."""
        self._keep(table)
        return self._listing(table)

    def described(self, table: StoredTable, reader: Reader, describe: Callable[[], Described]) -> Described:
        """What Spark is told of a state of a table, described once for a reader. ``describe`` registers the table."""
        state = self._states.find((table.store.url, state_key(table)))
        if state is None or reader not in state.described:
            state = self._keep(table, {reader: describe()})
        return state.described[reader]

    def _keep(self, table: StoredTable, described: Mapping[Reader, Described] = MappingProxyType({})) -> _OpenState:
        key = table.store.url, state_key(table)
        known = self._states.find(key)
        return self._states.put(key, _OpenState(table, {**(known.described if known else {}), **described}))

    def prune_blocks(self, request: questions.Prune) -> PruneReply:
        planned = self._plan(request)
        plan, kept = planned.plan, planned if planned.nbytes <= self.MAX_PLAN_BYTES else None
        rows = certain_row_count(plan), named_row_count(plan)
        return PruneReply(plan.block_mask, plan.explanation, partial_ranges(plan), *rows, kept)

    def read_rows(self, request: questions.ReadRows, planned: PlannedScan | None) -> bytes:
        planned = planned or self._plan(request)
        bounds = RowBounds(request.max_bytes, request.seconds, request.exact)
        return read_rows(planned.plan, request.columns, planned.engine.functions, bounds)

    def column_statistics(
        self, request: questions.EstimateColumns, planned: PlannedScan | None
    ) -> dict[str, ColumnEstimate]:
        plan = (planned or self._plan(request)).plan
        left = np.flatnonzero(plan.block_mask[plan.blocks.ordinals])
        return estimate_columns(plan.blocks.take(left), request.columns)

    def may_prune_by_keys(self, request: questions.JoinKeys) -> list[bool]:
        table, _, engine = self.decode(request)
        terms = [_term_or_none(tree, table, engine.context) for tree in request.keys]
        return may_prune_by_keys(table, terms, engine)

    def _plan(self, request: questions.ScanQuestion) -> PlannedScan:
        """What the filters have to read, and the first rows alone where no more are wanted."""
        table, predicate, engine = self.decode(request)
        indexes = request.mode == INDEXED_MODE
        plan = plan_scan(table, predicate, engine, indexes=indexes)
        top = decode_top_rows(request.top, table.snapshot.schema, engine.context) if request.top else None
        if isinstance(top, RankedOrder) and indexes:
            plan = keep_first_rows(plan, top, engine)
        elif isinstance(top, TopRows) and indexes:
            plan = keep_top_rows(plan, top)
        return PlannedScan(plan, engine)

    def answer_aggregate(self, request: questions.AnswerAggregate) -> AggregateReply:
        """What indexes and statistics know of an aggregate; why not, where that is nothing."""
        table, predicate, engine = self.decode(request)
        indexes, schema = request.mode == INDEXED_MODE, table.snapshot.schema
        try:
            aggregation, unscaled = decode_aggregation(request.groups, request.aggregates, schema, engine.context)
            plan = plan_aggregate(table, aggregation, predicate, engine, indexes=indexes)
        except (UnsupportedAggregate, OpaqueError) as refusal:
            scan_plan = plan_scan(table, predicate, engine, indexes=indexes)
            vote = Vote("(aggregate)", "", "", Reason.LEAF_UNSUPPORTED, str(refusal))
            return _unanswered(scan_plan.block_mask, scan_plan.explanation, vote)
        group_count = plan.states.num_rows
        states = encode_states(plan, unscaled) if plan.answered_blocks and group_count <= MAX_PLAN_GROUPS else None
        if group_count > MAX_PLAN_GROUPS or len(states or b"") > MAX_PLAN_BYTES:
            size = f"{group_count:,} groups" if states is None else f"{len(states) >> 20} MiB of states"
            detail = (
                f"{size} are more than go into a plan ({MAX_PLAN_GROUPS:,} groups, {MAX_PLAN_BYTES >> 20} "
                f"MiB): Spark adds up the rows"
            )
            vote = Vote(describe_aggregation(aggregation), "", "", Reason.USED_NO_GAIN, detail)
            return _unanswered(plan.scan_plan.block_mask, plan.explanation, vote)
        return AggregateReply(plan.scan_plan.block_mask, states, plan.explanation)

    def table_to_change(self, request: ChangeRowsRequest) -> tuple[Table, Predicate | None, SchemaChange | None]:
        """The table of a statement on its branch, at the snapshot that the statement was analysed on; its condition.

        And the step to the columns that the statement writes, if these are others. Raises NotFound where the branch has
        that snapshot no longer.
        """
        step = None
        snapshot_id, evolved, _ = request.snapshot.partition(_EVOLVED)
        if evolved:
            step = self._schema_changes.get(request.snapshot, partial(_forgotten, request.url))
        options = self._location(request.url).options
        stored = StoredTable.open(request.url, branch=request.branch, options=options)
        if stored.snapshot.id != snapshot_id:
            stored = stored.at_version(stored.at(snapshot_id).snapshot.version)
        schema = evolved_table(stored, step).snapshot.schema
        predicate = None if request.filters is None else decode_filter(request.filters, schema, request.context)
        return Table(stored, self.host, request.context), predicate, step

    def refresh_snapshot(self, request: questions.Refresh) -> RefreshReply | None:
        url = request.url
        head = StoredTable.open(url, branch=request.branch, options=self._location(url).options)
        if head.snapshot.id == request.snapshot:
            return None
        if head.snapshot.schema.fields != self._table(url, request.snapshot).snapshot.schema.fields:
            raise SchemaError(f"the schema of {url} has changed since this DataFrame was made: read the table again")
        return RefreshReply(head.snapshot.id, self.register_state(head))

    def decode(self, request: questions.ScanQuestion) -> tuple[StoredTable, Predicate | None, Engine]:
        """The snapshot that a request is about, its filters, and what decides what they mean."""
        table = self._table(request.url, request.snapshot)
        filters, context = request.filters, request.context
        predicate = decode_filter(filters, table.snapshot.schema, context) if filters else None
        return table, predicate, Engine(self.host, context)

    def _table(self, url: str, snapshot: str) -> StoredTable:
        options = self._location(url).options

        def open_state() -> _OpenState:
            table = StoredTable.open(url, at=snapshot.removesuffix(_WITHOUT_TAIL), options=options)
            return _OpenState(table.without_tail() if snapshot.endswith(_WITHOUT_TAIL) else table)

        return self._states.get((url, snapshot), open_state).table

    def _location(self, url: str) -> _SparkLocation:
        """What is known of a table that was registered. Raises InputError for any other: nobody may ask about it."""
        try:
            return self._locations[url]
        except KeyError:
            raise InputError(f"this session was not given the table {url}: read it by fuse_index.spark.read") from None

    def _listing(self, table: StoredTable) -> bytes:
        paths, sizes = table.block_files()
        scheme = self._location(table.store.url).scheme
        blocks = table.blocks()
        foreign = list_foreign_files(table) if blocks.foreign.mask.any() else None
        seals = np.where(blocks.foreign.mask, 0, blocks.seals)  # theirs is of the footer, which Spark's reader reads
        hadoop_paths = [_hadoop_path(path, scheme) for path in paths]
        more = foreign, list_deleted_rows(table), list_partitions(table, foreign)
        return pack_file_listing(ListedFiles(hadoop_paths, sizes, blocks.live_row_counts, seals), *more)


def _term_or_none(tree: CatalystTree, table: StoredTable, context: Context) -> Term | None:
    try:
        return decode_catalyst_term(tree, table.snapshot.schema, context)
    except UnsupportedExpression:
        return None


def _forgotten(url: str) -> SchemaChange:
    raise InputError(
        f"too many statements since then give tables other columns, and that on {url} is forgotten: repeat it"
    )


def _unanswered(block_mask: npt.NDArray[np.bool_], explanation: Explanation, vote: Vote) -> AggregateReply:
    return AggregateReply(block_mask, None, replace(explanation, votes=(*explanation.votes, vote)))


def _hadoop_path(path: str, scheme: str) -> str:
    """A path as Hadoop opens it: local paths are URLs to it, and some object stores have another scheme."""
    return f"file:{path}" if path.startswith("/") else f"{scheme}:{path.partition(':')[2]}"
