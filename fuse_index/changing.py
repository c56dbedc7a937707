"""Rows that came and went between two snapshots: net, whatever happened in between.

Only blocks that one of the two lacks are looked at. Where blocks came in the place of others, their rows are compared by
fingerprints, as multisets: rows that were merely copied, by a compaction or an update of their neighbours, are no change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.types as is_

import fuse_storage as storage
from fuse_index.errors import InputError, OpaqueError
from fuse_index.fingerprints import KIND, fingerprints
from fuse_index.host import Host
from fuse_index.judge import leaves
from fuse_index.multisets import paired, surplus
from fuse_index.oracle import evaluate
from fuse_index.plan import plan
from fuse_index.predicate import Context, Opaque, Predicate
from fuse_storage import Blocks

if TYPE_CHECKING:
    import pandas

Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

ROWS_PER_COMMIT = 50_000
"""So many rows are compared in about the time in which a commit in between is looked at."""

CHANGE_TYPE = "_change_type"
INSERT, DELETE, BEFORE, AFTER = "insert", "delete", "update_preimage", "update_postimage"


class Changing:
    """The part of ``fuse_index.Table`` that says which rows changed."""

    if TYPE_CHECKING:
        stored: storage.Table
        host: Host
        context: Context

        def _at(self, at: str | datetime | None, branch: str | None = None) -> storage.Table: ...
        @property
        def schema(self) -> pa.Schema: ...
        def _columns(self, names: Sequence[str]) -> tuple[str, ...]: ...
        def _predicate(self, where: str | Predicate | None) -> Predicate | None: ...

    def changes(
        self, since: str | datetime, until: str | datetime | None = None, columns: Sequence[str] | None = None,
        where: str | Predicate | None = None, key: Sequence[str] = (),
    ) -> Changes:  # fmt: skip
        """The rows inserted and deleted from one snapshot to a later one, by default to the one that this handle reads.

        Snapshots are named by id, tag or time. Rows have the columns of the later snapshot, ``columns`` of them or all, and
        ``_change_type``: ``insert`` or ``delete``; with a ``key``, the columns that identify a row, what was deleted and inserted
        under one key is a pair of ``update_preimage`` and ``update_postimage``. Changes are net: rows that were copied, or came
        and went, are none. ``where``: only of the rows on which it is true, so that a row that comes to match is inserted.
        Raises NotFound for a snapshot that was never there or was collected, InvalidArgument if the one did not lead to the
        other, SchemaError, InputError, WhereError, OpaqueError.
        """
        before, after = self._at(since), self.stored if until is None else self._at(until)
        refuse_strangers(before, after)
        later = replace(self, stored=after)  # type: ignore[type-var]
        names = tuple(later.schema.names) if columns is None else later._columns(columns)
        if isinstance(key, str):
            raise InputError(f"key={key!r}: give a list of columns")
        return Changes(before, after, after, names, later._columns(key), later._predicate(where), self.host, self.context).checked()


def refuse_strangers(before: storage.Table, after: storage.Table) -> None:
    """Raise InvalidArgument unless the one snapshot led to the other."""
    if not storage.leads_to(before, after):
        raise storage.InvalidArgument(
            f"snapshot {after.snapshot.id} did not come of {before.snapshot.id}: give an older snapshot of its branch as since"
        )


@dataclass(frozen=True)
class Changes:
    """The net changes between two snapshots. Nothing is read before one of the methods is called.

    ``shape``: the snapshot in whose columns rows come, and which ``columns``, ``key`` and ``predicate`` are about.

    Where blocks were replaced by commits that may have changed rows, up to some 100 bytes are held for each of their rows, besides
    the blocks at hand; otherwise the blocks at hand alone.
    """

    before: storage.Table
    after: storage.Table
    shape: storage.Table
    columns: tuple[str, ...]
    key: tuple[str, ...]
    predicate: Predicate | None
    host: Host
    context: Context

    def checked(self) -> Changes:
        """Itself. Raises SchemaError, InputError or OpaqueError for what cannot be told."""
        if CHANGE_TYPE in self.shape.snapshot.schema.names:
            raise storage.SchemaError(f"the table has a column {CHANGE_TYPE!r}, which is what changes are told by: rename it")
        if narrow := storage.narrowed(self.before.snapshot.schema, self.shape.snapshot.schema):
            raise storage.SchemaError(
                f"column {narrow[0]!r} had a wider type at snapshot {self.before.snapshot.id}, so that its rows do not fit the columns of "
                f"{self.shape.snapshot.id}: ask for the changes until before it was restored, and since then"
            )
        for name in self.key:
            kind = self.shape.snapshot.schema.find([name]).type
            if is_.is_floating(kind) or is_.is_nested(kind):
                raise InputError(f"column {name!r} is {kind}, and no key: choose columns of exact, plain types")
        for leaf in [] if self.predicate is None else leaves(self.predicate):
            if isinstance(leaf, Opaque):
                raise OpaqueError(f"only Spark can evaluate {leaf.sql}")
        return self

    @property
    def schema(self) -> pa.Schema:
        """Those of the later snapshot; what was deleted may be NULL where it no longer may."""
        was = self.before.snapshot.schema.arrow
        fields = [self.shape.snapshot.schema.arrow.field(name) for name in self.columns]
        fields = [field.with_nullable(True) if field.name in was.names and was.field(field.name).nullable else field for field in fields]
        return pa.schema([*fields, pa.field(CHANGE_TYPE, pa.string(), nullable=False)])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Record batches: what was deleted, block after block, then what came, updated rows next to what they were."""
        for rows in self._tables():
            yield from (batch for batch in rows.cast(self.schema).to_batches() if len(batch))

    def to_arrow(self) -> pa.Table:
        return pa.Table.from_batches(list(self.to_batches()), self.schema)

    def to_pandas(self) -> pandas.DataFrame:
        return self.to_arrow().to_pandas()

    def count(self) -> int:
        """How many rows ``to_batches`` gives; a pair counts twice."""
        return sum(rows.num_rows for rows in self._tables())

    def _tables(self) -> Iterator[pa.Table]:
        gone, came = (self._side(blocks) for blocks in storage.exchanged(self.before, self.after))
        if len(gone.blocks) and len(came.blocks):
            compared = int(gone.blocks.row_counts.sum() + came.blocks.row_counts.sum())
            if (added := _added(self.before, self.after, most=20 + compared // ROWS_PER_COMMIT)) is not None:
                for blocks in added:
                    yield from _Side(self, blocks).tables(INSERT)
                return
            gone.chosen, came.chosen = surplus(gone.fingerprints(), came.fingerprints())
            if self.key:
                yield from _Pairs(gone, came, self.key).tables()
                return
        yield from gone.tables(DELETE)
        yield from came.tables(INSERT)

    def _side(self, blocks: Blocks) -> _Side:
        return _Side(self, blocks.take(np.flatnonzero(np.isin(blocks.ids, self._possible(blocks)))))

    def _possible(self, blocks: Blocks) -> list[str]:
        """The blocks that may hold rows on which the predicate is true, by the votes."""
        owner = self.before if blocks.segments.snapshot.id == self.before.snapshot.id else self.after
        if self.predicate is None or not len(blocks) or owner.snapshot.schema != self.shape.snapshot.schema:
            return blocks.ids  # the predicate is on columns that this snapshot may call otherwise
        return plan(owner, self.predicate, self.host, self.context).blocks.ids


@dataclass
class _Side:
    """Blocks that only one of the snapshots has. ``chosen``: which of their rows are changes; None: not known yet."""

    changes: Changes
    blocks: Blocks
    chosen: list[Mask] | None = None

    def read(self, block: int, columns: Sequence[str], rows: Mask | None = None) -> pa.Table:
        """In the schema of the later snapshot."""
        return self.changes.shape.read(self.blocks, block, columns, rows=rows)

    def fingerprints(self) -> list[pa.Array]:
        """Of the rows of each block; NULL where the predicate is not true."""
        return [self._fingerprints(block) for block in range(len(self.blocks))]

    def _fingerprints(self, block: int) -> pa.Array:
        rows = self.read(block, self.changes.shape.snapshot.schema.names)
        truth = self._true(rows)
        return fingerprints(rows) if truth is None else _spread(fingerprints(rows.filter(pa.array(truth))), truth)

    def tables(self, kind: str) -> Iterator[pa.Table]:
        """The rows that are changes, block after block."""
        columns = self.changes.columns
        for block in range(len(self.blocks)):
            mask = self._true(self.read(block, self.changes.shape.snapshot.schema.names)) if self.chosen is None else self.chosen[block]
            if mask is None or mask.any():
                yield _marked(self.read(block, columns, mask), kind)

    def _true(self, rows: pa.Table) -> Mask | None:
        predicate, context, host = self.changes.predicate, self.changes.context, self.changes.host
        if predicate is None:
            return None
        return np.asarray(evaluate(predicate, rows, context, host.functions).fill_null(False).to_numpy(zero_copy_only=False), np.bool_)

    def keys(self, names: Sequence[str]) -> list[pa.Array]:
        """Fingerprints of the keys of the rows that are changes; NULL of the others, and where a part of the key is."""
        return [self._keys(block, mask, names) for block, mask in enumerate(self.chosen or ())]

    def _keys(self, block: int, mask: Mask, names: Sequence[str]) -> pa.Array:
        if not mask.any():
            return pa.nulls(len(mask), KIND)
        rows = self.read(block, names, mask)
        whole = np.logical_and.reduce([np.asarray(column.is_valid()) for column in rows.columns])
        found, places = mask.copy(), np.flatnonzero(mask)
        found[places[~whole]] = False
        return _spread(fingerprints(rows.filter(pa.array(whole))), found)

    @cached_property
    def starts(self) -> Indices:
        """Where each block begins if rows are counted through all, and at last where all end."""
        return np.concatenate([[0], np.cumsum(self.blocks.row_counts)])


@dataclass
class _Pairs:
    """Changes with a key: what went and what came under the same one are what a row was and what it became."""

    gone: _Side
    came: _Side
    key: Sequence[str]

    def tables(self) -> Iterator[pa.Table]:
        was, now = paired(self.gone.keys(self.key), self.came.keys(self.key))
        matched = np.zeros(self.gone.starts[-1], np.bool_)
        matched[was] = True
        assert self.gone.chosen is not None
        assert self.came.chosen is not None
        self.gone.chosen = [mask & ~part for mask, part in zip(self.gone.chosen, np.split(matched, self.gone.starts[1:-1]), strict=True)]
        yield from self.gone.tables(DELETE)
        for block, mask in enumerate(self.came.chosen):
            start = self.came.starts[block]
            first, last = np.searchsorted(now, [start, start + len(mask)])
            after, rest = np.zeros(len(mask), np.bool_), mask.copy()
            after[now[first:last] - start] = True
            rest[after] = False
            if after.any():
                yield self._updated(was[first:last], self.came.read(block, self.gone.changes.columns, after))
            if rest.any():
                yield _marked(self.came.read(block, self.gone.changes.columns, rest), INSERT)

    def _updated(self, was: Indices, after: pa.Table) -> pa.Table:
        """Each row that was, and after it the one that it became."""
        both = pa.concat_tables([_marked(self._rows(was), BEFORE), _marked(after, AFTER)])
        return both.take(pa.array(np.arange(2 * len(was)).reshape(2, -1).T.ravel()))

    def _rows(self, places: Indices) -> pa.Table:
        """Rows that went, in this order, from whichever blocks."""
        order = np.argsort(places)
        found, owners = [], np.searchsorted(self.gone.starts, places[order], side="right") - 1
        for block in np.unique(owners).tolist():
            mask = np.zeros(self.gone.blocks.row_counts[block], np.bool_)
            mask[places[order][owners == block] - self.gone.starts[block]] = True
            found.append(self.gone.read(block, self.gone.changes.columns, mask))
        return pa.concat_tables(found).take(pa.array(np.argsort(order)))


def _added(before: storage.Table, after: storage.Table, most: int) -> list[Blocks] | None:
    """What appends brought, commit by commit, where all others in between left rows as they were; None if that is not known.

    No more than ``most`` commits are looked at. Where it is known, copied rows need not be compared with those that they are copies of.
    """
    found: list[Blocks] = []
    here = after
    for _ in range(most):
        if here.snapshot.id == before.snapshot.id:
            return found[::-1]
        if here.snapshot.parent is None:
            return None
        try:
            earlier = after.at(here.snapshot.parent)
        except storage.NotFound:
            return None
        if not here.snapshot.same_rows:
            gone, came = storage.exchanged(earlier, here)
            if len(gone):
                return None
            found.append(came)
        here = earlier
    return None


def _marked(rows: pa.Table, kind: str) -> pa.Table:
    return rows.append_column(CHANGE_TYPE, pa.repeat(pa.scalar(kind, pa.string()), rows.num_rows))


def _spread(values: pa.Array, mask: Mask) -> pa.Array:
    """The values where the mask is set, in order, and NULL elsewhere."""
    return values.take(pa.array(np.where(mask, np.cumsum(mask) - 1, 0), mask=~mask)) if len(values) else pa.nulls(len(mask), KIND)
