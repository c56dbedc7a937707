"""Who judges: the tables of a session, opened once each, and the planner that all ways of reading share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.aggregates.sketches import as_spark_writes
from fuse_index.aggregates.state import Unaggregatable
from fuse_index.errors import OpaqueError
from fuse_index.indexes.registry import Host
from fuse_index.predicate import Context
from fuse_index.pruning.explanation import Vote
from fuse_index.pruning.planner import plan
from fuse_index.query.aggregate import Answer, answer, titled
from fuse_index.reasons import Reason
from fuse_index.spark.native.file_listing import packed
from fuse_index.spark.native.planner_callback import Answered, Judgement, Moved, Recent
from fuse_index.sql.catalyst import decode, decode_aggregation
from fuse_storage import SchemaError, Table

INDEXES = "indexes"
"""The mode in which indexes are asked; in any other, every block is read."""


MOST_GROUPS = 100_000
"""States with more groups stay where they are: they travel inside of Spark's plan, which with more is no faster than
its own way.
"""
MOST_BYTES = 64 << 20
"""Likewise of what their Arrow stream takes: sketches are 4 kB each."""


@dataclass(frozen=True, slots=True)
class _Place:
    """What a URL does not say: the scheme that Spark knows it by, and how our store reaches it."""

    scheme: str
    options: Mapping[str, str]


class Tables:
    """The snapshots that queries ask about, by URL and id. Implements ``voting.Judge``."""

    MOST: ClassVar[int] = 16

    def __init__(self, host: Host) -> None:
        self._host = host
        self._open: Recent[tuple[str, str], Table] = Recent(self.MOST)
        self._places: dict[str, _Place] = {}

    def keep(self, table: Table, scheme: str, options: Mapping[str, str]) -> bytes:
        """Remember an open table, that Spark reads its files as ``scheme``, and our store's options. Gives its files,
        packed.
        """
        self._places[table.store.url] = _Place(scheme, options)
        self._open.put((table.store.url, table.snapshot.id), table)
        return self._listing(table)

    def judge(self, question: Mapping[str, Any]) -> Judgement:
        table = self._table(question["url"], question["snapshot"])
        context = Context(**question["context"])
        predicate = decode(question["filters"], table.snapshot.schema, context) if question["filters"] else None
        made = plan(table, predicate, self._host, context, indexes=question["mode"] == INDEXES)
        return Judgement(made.block_mask, made.explanation)

    def answer(self, question: Mapping[str, Any]) -> Answered:
        """What indexes and statistics know of an aggregate; why not, where that is nothing."""
        table = self._table(question["url"], question["snapshot"])
        context = Context(**question["context"])
        predicate = decode(question["filters"], table.snapshot.schema, context) if question["filters"] else None
        indexes = question["mode"] == INDEXES
        try:
            asked, unscaled = decode_aggregation(question, table.snapshot.schema, context)
            found = answer(table, asked, predicate, self._host, context, indexes=indexes)
        except (Unaggregatable, OpaqueError) as refusal:
            made = plan(table, predicate, self._host, context, indexes=indexes)
            vote = Vote("(aggregate)", "", "", Reason.LEAF_UNSUPPORTED, str(refusal))
            return Answered(made.block_mask, None, replace(made.explanation, votes=(*made.explanation.votes, vote)))
        states = _stream(found, unscaled) if found.answered and found.states.num_rows <= MOST_GROUPS else None
        if found.states.num_rows > MOST_GROUPS or len(states or b"") > MOST_BYTES:
            size = f"{found.states.num_rows:,} groups" if states is None else f"{len(states) >> 20} MiB of states"
            many = (
                f"{size} are more than go into a plan ({MOST_GROUPS:,} groups, {MOST_BYTES >> 20} "
                f"MiB): Spark adds up the rows"
            )
            vote = Vote(titled(asked), "", "", Reason.USED_NO_GAIN, many)
            return Answered(
                found.left.block_mask, None, replace(found.explanation, votes=(*found.explanation.votes, vote))
            )
        return Answered(found.left.block_mask, states, found.explanation)

    def move(self, url: str, branch: str, snapshot: str) -> Moved | None:
        head = Table.open(url, branch=branch, options=self._place(url).options)
        if head.snapshot.id == snapshot:
            return None
        if head.snapshot.schema.fields != self._table(url, snapshot).snapshot.schema.fields:
            raise SchemaError(f"the schema of {url} has changed since this DataFrame was made: read the table again")
        self._open.put((url, head.snapshot.id), head)
        return Moved(head.snapshot.id, self._listing(head))

    def _table(self, url: str, snapshot: str) -> Table:
        return self._open.get((url, snapshot), lambda: Table.open(url, at=snapshot, options=self._place(url).options))

    def _place(self, url: str) -> _Place:
        return self._places.get(url, _Place("", {}))

    def _listing(self, table: Table) -> bytes:
        paths, sizes = table.listing()
        scheme = self._place(table.store.url).scheme
        return packed([_for_spark(path, scheme) for path in paths], sizes)


def _stream(found: Answer, unscaled: Sequence[bool]) -> bytes:
    """The states as one batch, with the parts of each aggregate in turn."""
    groups = len(found.asked.groups)
    parts = dict(zip(found.asked.parts, found.states.columns[groups:], strict=True))
    columns = found.states.columns[:groups]
    for aggregate, digits in zip(found.asked.aggregates, unscaled, strict=True):
        own = [parts[part] for part in aggregate.parts]
        if digits:
            own[0] = _digits(own[0]).cast(pa.float64() if aggregate.function == "avg" else pa.int64(), safe=False)
        if aggregate.function == "hll_sketch_agg":  # of a union there may be none, which Spark is to know
            own[0] = as_spark_writes(own[0])
        columns += own
    names = [f"column{number}" for number in range(len(columns))]
    batch = pa.record_batch([column.combine_chunks() for column in columns], names)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _digits(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Decimals without their point, which at most 18 digits then are."""
    return pc.multiply(values, pa.scalar(Decimal(10) ** values.type.scale)).cast(pa.int64())


def _for_spark(path: str, scheme: str) -> str:
    """As Hadoop opens it: local paths are URLs to it, and some object stores have another scheme."""
    return f"file:{path}" if path.startswith("/") else f"{scheme}:{path.partition(':')[2]}"
