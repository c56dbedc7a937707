"""Who judges: the tables of a session, opened once each, and the planner that all ways of reading share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.aggregates.sketches import to_spark_sketches
from fuse_index.errors import OpaqueError
from fuse_index.expressions.errors import UnsupportedAggregate
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.registry import Host
from fuse_index.predicate import Context
from fuse_index.pruning.explanation import Vote
from fuse_index.pruning.planner import plan_scan
from fuse_index.query.aggregate import AggregatePlan, describe_aggregation, plan_aggregate
from fuse_index.reasons import Reason
from fuse_index.spark.native.file_listing import pack_file_listing
from fuse_index.spark.native.planner_callback import AggregateReply, LruCache, PruneReply, RefreshReply
from fuse_index.sql.catalyst import decode_aggregation, decode_filter
from fuse_storage import SchemaError, StoredTable

INDEXED_MODE = "indexes"
"""The mode in which indexes are asked; in any other, every block is read."""


MAX_PLAN_GROUPS = 100_000
"""States with more groups stay where they are: they travel inside of Spark's plan, which with more is no faster than
its own way.
"""
MAX_PLAN_BYTES = 64 << 20
"""Likewise of what their Arrow stream takes: sketches are 4 kB each."""


@dataclass(frozen=True, slots=True)
class _SparkLocation:
    """What a URL does not say: the scheme that Spark knows it by, and how our store reaches it."""

    scheme: str
    options: Mapping[str, str]


class SnapshotPlanner:
    """The snapshots that queries ask about, by URL and id. Implements ``voting.Judge``."""

    MAX_OPEN_TABLES: ClassVar[int] = 16

    def __init__(self, host: Host) -> None:
        self._host = host
        self._open_tables: LruCache[tuple[str, str], StoredTable] = LruCache(self.MAX_OPEN_TABLES)
        self._locations: dict[str, _SparkLocation] = {}

    def register_table(self, table: StoredTable, scheme: str, options: Mapping[str, str]) -> bytes:
        """Remember an open table, that Spark reads its files as ``scheme``, and our store's options. Gives its files,
        packed.
        """
        self._locations[table.store.url] = _SparkLocation(scheme, options)
        self._open_tables.put((table.store.url, table.snapshot.id), table)
        return self._listing(table)

    def prune_blocks(self, request: Mapping[str, Any]) -> PruneReply:
        table = self._table(request["url"], request["snapshot"])
        context = Context(**request["context"])
        predicate = decode_filter(request["filters"], table.snapshot.schema, context) if request["filters"] else None
        made = plan_scan(table, predicate, Engine(self._host, context), indexes=request["mode"] == INDEXED_MODE)
        return PruneReply(made.block_mask, made.explanation)

    def answer_aggregate(self, request: Mapping[str, Any]) -> AggregateReply:
        """What indexes and statistics know of an aggregate; why not, where that is nothing."""
        table = self._table(request["url"], request["snapshot"])
        context = Context(**request["context"])
        predicate = decode_filter(request["filters"], table.snapshot.schema, context) if request["filters"] else None
        indexes = request["mode"] == INDEXED_MODE
        try:
            asked, unscaled = decode_aggregation(request, table.snapshot.schema, context)
            found = plan_aggregate(table, asked, predicate, Engine(self._host, context), indexes=indexes)
        except (UnsupportedAggregate, OpaqueError) as refusal:
            made = plan_scan(table, predicate, Engine(self._host, context), indexes=indexes)
            vote = Vote("(aggregate)", "", "", Reason.LEAF_UNSUPPORTED, str(refusal))
            return AggregateReply(
                made.block_mask, None, replace(made.explanation, votes=(*made.explanation.votes, vote))
            )
        states = (
            _states_as_arrow_stream(found, unscaled)
            if found.answered_blocks and found.states.num_rows <= MAX_PLAN_GROUPS
            else None
        )
        if found.states.num_rows > MAX_PLAN_GROUPS or len(states or b"") > MAX_PLAN_BYTES:
            size = f"{found.states.num_rows:,} groups" if states is None else f"{len(states) >> 20} MiB of states"
            many = (
                f"{size} are more than go into a plan ({MAX_PLAN_GROUPS:,} groups, {MAX_PLAN_BYTES >> 20} "
                f"MiB): Spark adds up the rows"
            )
            vote = Vote(describe_aggregation(asked), "", "", Reason.USED_NO_GAIN, many)
            return AggregateReply(
                found.scan_plan.block_mask, None, replace(found.explanation, votes=(*found.explanation.votes, vote))
            )
        return AggregateReply(found.scan_plan.block_mask, states, found.explanation)

    def refresh_snapshot(self, url: str, branch: str, snapshot: str) -> RefreshReply | None:
        head = StoredTable.open(url, branch=branch, options=self._location(url).options)
        if head.snapshot.id == snapshot:
            return None
        if head.snapshot.schema.fields != self._table(url, snapshot).snapshot.schema.fields:
            raise SchemaError(f"the schema of {url} has changed since this DataFrame was made: read the table again")
        self._open_tables.put((url, head.snapshot.id), head)
        return RefreshReply(head.snapshot.id, self._listing(head))

    def _table(self, url: str, snapshot: str) -> StoredTable:
        return self._open_tables.get(
            (url, snapshot), lambda: StoredTable.open(url, at=snapshot, options=self._location(url).options)
        )

    def _location(self, url: str) -> _SparkLocation:
        return self._locations.get(url, _SparkLocation("", {}))

    def _listing(self, table: StoredTable) -> bytes:
        paths, sizes = table.block_files()
        scheme = self._location(table.store.url).scheme
        return pack_file_listing([_hadoop_path(path, scheme) for path in paths], sizes)


def _states_as_arrow_stream(found: AggregatePlan, unscaled: Sequence[bool]) -> bytes:
    """The states as one batch, with the parts of each aggregate in turn."""
    groups = len(found.request.groups)
    parts = dict(zip(found.request.parts, found.states.columns[groups:], strict=True))
    columns = found.states.columns[:groups]
    for aggregate, digits in zip(found.request.aggregates, unscaled, strict=True):
        own = [parts[part] for part in aggregate.parts]
        if digits:
            own[0] = _unscaled_digits(own[0]).cast(
                pa.float64() if aggregate.function == "avg" else pa.int64(), safe=False
            )
        if aggregate.function == "hll_sketch_agg":  # of a union there may be none, which Spark is to know
            own[0] = to_spark_sketches(own[0])
        columns += own
    names = [f"column{number}" for number in range(len(columns))]
    batch = pa.record_batch([column.combine_chunks() for column in columns], names)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _unscaled_digits(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decimals without their point, which at most 18 digits then are."""
    return pc.multiply(values, pa.scalar(Decimal(10) ** values.type.scale)).cast(pa.int64())


def _hadoop_path(path: str, scheme: str) -> str:
    """As Hadoop opens it: local paths are URLs to it, and some object stores have another scheme."""
    return f"file:{path}" if path.startswith("/") else f"{scheme}:{path.partition(':')[2]}"
