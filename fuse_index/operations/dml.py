"""Rows that go or change: blocks that cannot hold one stay, blocks full of them go unread, and only the rest is
rewritten.

Each change is one commit. It is refused with a Conflict where somebody else replaced a block that it read, or added
rows that it should have seen: indexes and statistics are asked about those alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from fuse_index.errors import InputError, OpaqueError
from fuse_index.expressions.evaluate import evaluate_term
from fuse_index.expressions.traversal import predicate_leaves
from fuse_index.handle import TableHandle
from fuse_index.indexes.builder import index_builders
from fuse_index.indexes.inputs import resolve_term
from fuse_index.operations import arrow_input
from fuse_index.operations.merge_clauses import MergeClauses, MergeClauseSpec
from fuse_index.operations.merge_match import MergeRows, merge_source_schema
from fuse_index.operations.rewrite_job import RewriteJob
from fuse_index.operations.row_edits import RowCondition, UpdateRows, run_rewrite_task, stage_rows
from fuse_index.predicate import Opaque, Predicate
from fuse_storage import Snapshot


class DmlMixin(TableHandle):
    """The part of ``fuse_index.Table`` that deletes and changes rows."""

    def delete(self, where: str | Predicate) -> Snapshot:
        """Delete the rows that the condition is true on. Nothing is committed if there are none.

        Raises WhereError, OpaqueError for what only Spark can evaluate, Conflict as above, StorageError.
        """
        return self._run_locally(self.deleting(where))

    def update(self, where: str | Predicate | None, set: Mapping[str, Any]) -> Snapshot:
        """Give columns other values in the rows that the condition is true on, in all rows if it is None.

        ``set``: by column, Spark SQL text such as ``"upper(name)"`` or ``"'Bonn'"``; another Python value; or a
        function from the matching rows, a pa.Table, to their values. Raises as ``delete``, and SchemaError for values
        that do not fit.
        """
        return self._run_locally(self.updating(where, set))

    def overwrite(self, data: Any, where: str | Predicate | None = None) -> Snapshot:
        """Replace the rows that the condition is true on, by default all, with others on which it is true too.

        Raises InputError for a row on which it is not, and as ``append`` and ``delete`` do.
        """
        work = self.overwriting(where)
        work.add_staged(
            stage_rows(
                self.stored,
                work.builders,
                arrow_input.to_record_batches(data, self.snapshot.schema.arrow),
                work.condition,
            )
        )
        return self._run_locally(work)

    def merge(
        self,
        source: Any,
        on: Sequence[str] | None = None,
        matched: MergeClauseSpec = "update",
        not_matched: MergeClauseSpec = "insert",
        not_matched_by_source: MergeClauseSpec = None,
    ) -> Snapshot:
        """Bring in rows by their keys, the columns ``on``, by default the table's key (see ``key_by``): NULL equals
        nothing.

        Rows of the table whose key the source has get the source's columns, or go; rows of the source whose key the
        table lacks come, with defaults or NULL in columns that the source lacks; ``not_matched_by_source`` deletes the
        rows whose key the source lacks. ``source`` is held in memory.

        ``matched``: ``update`` or ``delete``; ``not_matched``: ``insert``; ``not_matched_by_source``: ``delete``; each
        None for nothing, or a dict that says on which condition: ``{"delete": "source.gone", "update": "source.at >
        target.at"}``. The first whose condition is true on a row counts, None is always true, and rows of no clause
        stay, or do not come. Columns of the source that the table lacks may be named there, and nowhere else.

        Raises InputError if several rows of the source match one, SchemaError for columns that do not fit, WhereError,
        OpaqueError, Conflict.
        """
        return self._run_locally(self.merging(source, on, matched, not_matched, not_matched_by_source))

    # --- the same as work, which may be done elsewhere ----------------------------------------------------------

    def deleting(self, where: str | Predicate, pieces: int = 1) -> RewriteJob:
        """What ``delete`` does, in about so many portions."""
        work = self._start_job("delete", where)
        work.plan_delete(pieces)
        return work

    def updating(self, where: str | Predicate | None, set: Mapping[str, Any], pieces: int = 1) -> RewriteJob:
        """What ``update`` does, in about so many portions."""
        if not isinstance(set, Mapping) or not set:
            raise InputError(f"set={set!r}: give a value for one column at least, such as {{'city': \"'Bonn'\"}}")
        work = self._start_job("update", where)
        setters = {name: self._setter(name, value) for name, value in set.items()}
        work.plan_rewrite(UpdateRows(work.condition, setters, self.snapshot.schema), pieces)
        return work

    def overwriting(self, where: str | Predicate | None, pieces: int = 1) -> RewriteJob:
        """What ``overwrite`` does, but for the rows that come."""
        work = self._start_job("overwrite", where)
        work.plan_delete(pieces)
        return work

    def merging(
        self,
        source: Any,
        on: Sequence[str] | None = None,
        matched: MergeClauseSpec = "update",
        not_matched: MergeClauseSpec = "insert",
        not_matched_by_source: MergeClauseSpec = None,
        pieces: int = 1,
    ) -> RewriteJob:
        """What ``merge`` does, in about so many portions."""
        self._begin_write()
        schema = self.snapshot.schema
        batches = list(arrow_input.to_record_batches(source, schema.arrow))
        coming = _concat_batches(batches) if batches else schema.arrow.empty_table()
        if on is None and not (on := self.snapshot.key):
            raise InputError(
                "the table has no key: say by which columns rows are matched, on=['id'], or give it "
                "a key with key_by(['id'])"
            )
        sides = merge_source_schema(coming, schema), schema
        clauses = MergeClauses.parse(matched, not_matched, not_matched_by_source, *sides, self.engine)
        match = MergeRows.from_source(coming, on, schema, clauses)
        work = self._new_job("merge", match.predicate)
        if match.has_keys or clauses.not_matched_by_source:
            work.plan_rewrite(match, pieces)
        if clauses.not_matched:
            work.merge_rows = match
        return work

    def _run_locally(self, work: RewriteJob) -> Snapshot:
        return self._move_to(work.commit_results([run_rewrite_task(portion) for portion in work.tasks]))

    def _start_job(self, operation: str, where: str | Predicate | None) -> RewriteJob:
        self._begin_write()
        return self._new_job(operation, where)

    def _new_job(self, operation: str, where: str | Predicate | None) -> RewriteJob:
        """Work on the snapshot that this handle reads."""
        predicate = self._predicate(where)
        for leaf in [] if predicate is None else predicate_leaves(predicate):
            if isinstance(leaf, Opaque):
                raise OpaqueError(f"{where!r}: only Spark can evaluate {leaf.sql}")
        condition = RowCondition(predicate, self.engine)
        return RewriteJob(operation, self.stored, condition, index_builders(self.snapshot, self.host))

    def _setter(self, name: str, value: Any) -> Callable[[pa.Table], Any]:
        """From matching rows to their new values."""
        if name not in (schema := self.snapshot.schema).names:
            schema.find([name])
        if callable(value):
            return lambda found: value(found)
        if isinstance(value, str):
            term = resolve_term(value, schema, self.engine, arithmetic=True)
            return lambda found: evaluate_term(term, found, self.context, self.host.functions, strict=True)
        kind = schema.find([name]).type
        try:
            scalar = pa.scalar(value, kind)
        except (pa.ArrowException, ValueError, TypeError, OverflowError) as problem:
            raise InputError(f"{value!r} is no value of column {name!r}, which is {kind}: {problem}") from problem
        return lambda found: pa.repeat(scalar, found.num_rows)


def _concat_batches(batches: Sequence[pa.RecordBatch]) -> pa.Table:
    """Raises InputError for batches whose columns differ."""
    if odd := next((batch for batch in batches if not batch.schema.equals(batches[0].schema)), None):
        first, other = (
            ", ".join(f"{field.name} {field.type}" for field in batch.schema) for batch in (batches[0], odd)
        )
        raise InputError(f"parts of the source differ in their columns: {first}; and {other}: make them alike")
    return pa.Table.from_batches(batches)
