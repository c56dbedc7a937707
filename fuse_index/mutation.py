"""Rows that go or change: blocks that cannot hold one stay, blocks full of them go unread, and only the rest is rewritten.

Each change is one commit. It is refused with a Conflict where somebody else replaced a block that it read, or added rows
that it should have seen: indexes and statistics are asked about those alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import fuse_storage as storage
from fuse_index import rows
from fuse_index.build import Builder, builders
from fuse_index.errors import InputError, OpaqueError
from fuse_index.host import Host
from fuse_index.judge import leaves
from fuse_index.matching import Match
from fuse_index.naming import read_term
from fuse_index.oracle import evaluate, evaluate_term
from fuse_index.ordering import ClusterKey
from fuse_index.plan import Plan, plan
from fuse_index.predicate import Context, Opaque, Predicate
from fuse_index.runs import write_runs
from fuse_storage import Snapshot, StagedSegment, Swap, conformed

if TYPE_CHECKING:
    from fuse_index.table import Table

Edit = Callable[[pa.Table], pa.Table | None]
"""The rows of a block, and what is to be of them: None if they stay as they are."""


class Mutations:
    """The part of ``fuse_index.Table`` that deletes and changes rows."""

    if TYPE_CHECKING:
        stored: storage.Table
        host: Host
        context: Context

        @property
        def snapshot(self) -> Snapshot: ...
        def refresh(self) -> Table: ...
        def _predicate(self, where: str | Predicate | None) -> Predicate | None: ...
        def _writable(self) -> None: ...
        def _move(self, stored: storage.Table) -> Snapshot: ...

    def delete(self, where: str | Predicate) -> Snapshot:
        """Delete the rows that the condition is true on. Nothing is committed if there are none.

        Raises WhereError, OpaqueError for what only Spark can evaluate, Conflict as above, StorageError.
        """
        work = self._work(where)
        work.remove()
        return self._move(work.commit("delete"))

    def update(self, where: str | Predicate | None, set: Mapping[str, Any]) -> Snapshot:
        """Give columns other values in the rows that the condition is true on, in all rows if it is None.

        ``set``: by column, Spark SQL text such as ``"upper(name)"`` or ``"'Bonn'"``; another Python value; or a function from
        the matching rows, a pa.Table, to their values. Raises as ``delete``, and SchemaError for values that do not fit.
        """
        work = self._work(where)
        work.change({name: self._setter(name, value) for name, value in set.items()})
        return self._move(work.commit("update"))

    def overwrite(self, data: Any, where: str | Predicate | None = None) -> Snapshot:
        """Replace the rows that the condition is true on, by default all, with others on which it is true too.

        Raises InputError for a row on which it is not, and as ``append`` and ``delete`` do.
        """
        work = self._work(where)
        work.add(rows.batches(data, self.snapshot.schema.arrow), checked=True)
        work.remove()
        return self._move(work.commit("overwrite"))

    def merge(
        self, source: Any, on: Sequence[str], matched: Literal["update", "delete"] | None = "update",
        not_matched: Literal["insert"] | None = "insert", not_matched_by_source: Literal["delete"] | None = None,
    ) -> Snapshot:  # fmt: skip
        """Bring in rows by their keys, the columns ``on``: NULL equals nothing.

        Rows of the table whose key the source has get the source's columns, or go; rows of the source whose key the table
        lacks come, with defaults or NULL in columns that the source lacks; ``not_matched_by_source`` deletes the rows whose
        key the source lacks. ``source`` is held in memory. Raises InputError if several rows of it match one, SchemaError for
        columns that do not fit, Conflict.
        """
        for name, value, known in (
            ("matched", matched, ("update", "delete")), ("not_matched", not_matched, ("insert",)),
            ("not_matched_by_source", not_matched_by_source, ("delete",)),
        ):  # fmt: skip
            if value is not None and value not in known:
                raise InputError(f"{name}={value!r}: give {' or '.join(map(repr, known))}, or None")
        self._writable()
        self.refresh()
        schema = self.snapshot.schema
        batches = list(rows.batches(source, schema.arrow))
        coming = pa.Table.from_batches(batches) if batches else schema.arrow.empty_table()
        match = Match.of(coming, on, schema, matched, not_matched_by_source)
        work = self._planned(None if not_matched_by_source else match.predicate)
        if match.possible or not_matched_by_source:
            work.rewrite(match.edit)
        work.counts |= match.counts
        if not_matched:
            work.add(match.left())
        return self._move(work.commit("merge"))

    def _work(self, where: str | Predicate | None) -> _Work:
        self._writable()
        self.refresh()
        return self._planned(where)

    def _planned(self, where: str | Predicate | None) -> _Work:
        """Work on the snapshot that this handle reads."""
        predicate = self._predicate(where)
        for leaf in [] if predicate is None else leaves(predicate):
            if isinstance(leaf, Opaque):
                raise OpaqueError(f"{where!r}: only Spark can evaluate {leaf.sql}")
        return _Work(self.stored, predicate, self.host, self.context, builders(self.snapshot, self.host))

    def _setter(self, name: str, value: Any) -> Callable[[pa.Table], Any]:
        """From matching rows to their new values."""
        if name not in (schema := self.snapshot.schema).names:
            schema.find([name])
        if callable(value):
            return lambda found: value(found)
        if isinstance(value, str):
            term = read_term(value, schema, self.host, self.context)
            return lambda found: evaluate_term(term, found, self.context, self.host.functions)
        kind = schema.find([name]).type
        try:
            scalar = pa.scalar(value, kind)
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as problem:
            raise InputError(f"{value!r} is no value of column {name!r}, which is {kind}: {problem}") from problem
        return lambda found: pa.repeat(scalar, found.num_rows)


@dataclass
class _Work:
    """One change: what goes, what is rewritten and what is added, all of it staged, then committed."""

    stored: storage.Table
    predicate: Predicate | None
    host: Host
    context: Context
    building: tuple[Builder, ...]
    swaps: list[Swap] = field(default_factory=list)
    staged: list[StagedSegment] = field(default_factory=list)
    added: list[StagedSegment] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)
    counts: dict[str, int] = field(default_factory=dict)

    def remove(self) -> None:
        """Rows that the condition is true on go; blocks that are known to hold no other go unread."""
        found = plan(self.stored, self.predicate, self.host, self.context)
        full = found.fully
        self._drop(found, np.flatnonzero(full).tolist())

        def edit(block: pa.Table) -> pa.Table | None:
            mask = self._true(block)
            gone = int(pc.sum(mask).as_py() or 0)
            self._count("deleted_rows", gone)
            return block.filter(pc.invert(mask)) if gone else None

        self._rewrite(found.take(np.flatnonzero(~full)), edit)

    def change(self, setters: Mapping[str, Callable[[pa.Table], Any]]) -> None:
        """Rows that the condition is true on get other values."""
        schema = self.stored.snapshot.schema

        def edit(block: pa.Table) -> pa.Table | None:
            mask = self._true(block)
            found = block.filter(mask)
            if not found.num_rows:
                return None
            self._count("updated_rows", found.num_rows)
            values = {name: setter(found) for name, setter in setters.items()}
            changed = conformed(pa.table({name: values.get(name, found.column(name)) for name in block.column_names}), schema)
            return replaced(block, np.asarray(mask), changed)

        self.rewrite(edit)

    def rewrite(self, edit: Edit) -> None:
        self._rewrite(plan(self.stored, self.predicate, self.host, self.context), edit)

    def add(self, batches: Iterable[pa.RecordBatch | pa.Table], checked: bool = False) -> None:
        """Rows that come; ``checked``: each must be one that the condition is true on."""
        with self.stored.writer(self.building) as writer:
            coming = map(self._inside, batches) if checked and self.predicate is not None else batches
            write_runs(writer, coming, ClusterKey.of(self.stored.snapshot))
            self.added = writer.finish()
        if inserted := sum(segment.row_count for segment in self.added):
            self._count("inserted_rows", inserted)

    def commit(self, operation: str) -> storage.Table:
        transaction = self.stored.transaction(self.building)
        if self.swaps or self.added:
            transaction.rewrite(self.swaps, self.staged, self.touched, self._unseen, operation)
            transaction.append(self.added)
        return transaction.commit(operation, summary=self.counts)

    def _rewrite(self, found: Plan, edit: Edit) -> None:
        names = self.stored.snapshot.schema.names
        with self.stored.writer(self.building) as writer:
            for number in range(len(found.blocks)):
                made = edit(self.stored.read(found.blocks, number, names))
                if made is None:
                    continue
                before = writer.block_count
                writer.write(made)
                writer.cut()
                self._touch(found, number, writer.block_count - before)
            self.staged += writer.finish()

    def _drop(self, found: Plan, blocks: Sequence[int]) -> None:
        for number in blocks:
            self._touch(found, number, 0)
            self._count("deleted_rows", int(found.blocks.row_counts[number]))

    def _touch(self, found: Plan, number: int, made: int) -> None:
        self.swaps.append(Swap((found.blocks.ids[number],), made))
        listed = self.stored.segments()
        self.touched.add(listed.ids[int(np.searchsorted(listed.first_block, found.blocks.ordinals[number], side="right")) - 1])

    def _true(self, block: pa.Table) -> Any:
        if self.predicate is None:
            return pa.array(np.ones(block.num_rows, np.bool_))
        return evaluate(self.predicate, block, self.context, self.host.functions).fill_null(False)

    def _inside(self, batch: pa.RecordBatch | pa.Table) -> pa.Table:
        """These rows, on all of which the condition must be true. Raises InputError."""
        found = conformed(batch, self.stored.snapshot.schema)
        outside = found.filter(pc.invert(self._true(found)))
        if outside.num_rows:
            one = outside.slice(0, 1).to_pylist()[0]
            raise InputError(f"the condition is not true on {outside.num_rows} of the rows to be written, such as {one}: leave them out")
        return found

    def _unseen(self, snapshot_id: str) -> Collection[str]:
        """Blocks of a later snapshot that may hold rows that matter."""
        return frozenset(plan(self.stored.at(snapshot_id), self.predicate, self.host, self.context).blocks.ids)

    def _count(self, name: str, rows: int) -> None:
        self.counts[name] = self.counts.get(name, 0) + rows


def replaced(block: pa.Table, mask: Any, changed: pa.Table) -> pa.Table:
    """The same rows in the same order, but where the mask is set the next of ``changed``."""
    places = np.where(mask, len(mask) + np.cumsum(mask) - 1, np.arange(len(mask)))
    return pa.concat_tables([block, changed.select(block.column_names)]).take(pa.array(places))
