"""Statements as jobs on the snapshot that a handle reads: blocks that cannot hold a row of the condition stay.

Those full of such rows go unread, and only the rest is rewritten. Each job is one commit. It is refused with a Conflict
where somebody else replaced a block that it read, or added rows that it should have seen: indexes and statistics are
asked about those alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from fuse_index.errors import InputError, WhereError
from fuse_index.export.keep_up import merge_columns
from fuse_index.expressions.evaluate import evaluate_term
from fuse_index.expressions.variant.columns import encode_parts
from fuse_index.handle import TableHandle
from fuse_index.indexes.builder import index_builders
from fuse_index.indexes.inputs import resolve_term
from fuse_index.ingest import arrow_input
from fuse_index.ingest.schema_merge import evolved_table, schema_merge
from fuse_index.operations.dml_job import MAX_REPLANS, DmlJob
from fuse_index.operations.merge_clauses import MergeClauses, MergeClauseSpec
from fuse_index.operations.merge_match import KeyValues, MergeSpec, merge_source_schema
from fuse_index.operations.row_edits import DeleteRows, RowCondition, UpdateRows
from fuse_index.predicate import Predicate, Term
from fuse_storage import (
    VARIANT_STORAGE,
    Advice,
    Schema,
    describe_given,
    empty_table,
    repeat_scalar,
    type_without_variants,
)


class StatementJobsMixin(TableHandle):
    """The part of ``fuse_index.Table`` that starts statements as jobs, whose tasks Spark's executors run."""

    def deleting(self, where: str | Predicate | None, pieces: int = 1) -> DmlJob:
        """Start ``delete`` as a job of about so many tasks, which Spark's executors run; see ``RewriteJob``.

        Used by Spark's jobs. Raises as ``delete`` does.
        """
        return self._start_deletion("delete", where, pieces)

    def updating(self, where: str | Predicate | None, set: Mapping[str, Any], pieces: int = 1) -> DmlJob:  # noqa: A002  # as update
        """Start ``update`` as a job of about so many tasks, which Spark's executors run; see ``RewriteJob``.

        Used by Spark's jobs. Raises as ``update`` does.
        """
        if not isinstance(set, Mapping) or not set:
            raise InputError(f"set={set!r}: give a value for one column at least, such as {{'city': \"'Bonn'\"}}")
        job = self._start_job("update", where, pieces)
        setters = {name: self._setter(name, value) for name, value in set.items()}
        job.edit = UpdateRows(job.condition, setters, self.snapshot.schema)
        return job

    def changing(self, operation: str, condition: Predicate | None) -> DmlJob:
        """Start a job without an edit, for rows that Spark has chosen: those of its condition, which may be opaque.

        Used by Spark's jobs, which choose them again where they were moved. Raises ReadOnly.
        """
        self._check_writable()
        builders, rows = index_builders(self.snapshot, self.host), RowCondition(condition, self.engine)
        return DmlJob(operation, self.stored, builders, rows, replans=MAX_REPLANS)

    def overwriting(self, where: str | Predicate | None, merged: pa.Schema | None = None) -> DmlJob:
        """Start ``overwrite`` as a job, whose tasks Spark's executors run; see ``RewriteJob``.

        The rows that come are written apart and handed to ``add_staged``. ``merged``: their schema, if columns are to
        be made such that they fit. Used by Spark's jobs. Raises as ``delete``.
        """
        job = self._start_deletion("overwrite", where, 1)
        if merged is not None:  # where all rows go, no export has to say what they were
            all_rows = where is None
            job.schema_change = schema_merge(merged, self.snapshot) if all_rows else merge_columns(merged, self.stored)
        return job

    def merge_spec(
        self,
        source: pa.Schema,
        on: Sequence[str] | None,
        clauses: tuple[MergeClauseSpec, MergeClauseSpec, MergeClauseSpec],
        merge_schema: bool = False,
    ) -> MergeSpec:
        """Check what ``merge`` is to do with rows of a source, whose schema is given, before any row is looked at.

        ``clauses``: for rows that match, for others of the source, and for others of the table. Used by Spark's jobs.
        Raises as ``merge`` does.
        """
        self._check_writable()
        if on is None and not (on := self.snapshot.key):
            raise InputError(
                "the table has no key: say by which columns rows are matched, "
                + Advice.argument("merge", on=["id"])
                + ", or give it a key with "
                + Advice.call("key_by", ["id"])
            )
        if not on:
            raise InputError(f"on={on!r}: give a list of the columns that are the key")
        for name in on:
            self.snapshot.schema.find([name])
        step = merge_columns(source, self.stored) if merge_schema else None
        schema = evolved_table(self.stored, step).snapshot.schema
        source_schema = merge_source_schema(source, schema)
        matched, not_matched, not_matched_by_source = clauses
        parsed = MergeClauses.parse(matched, not_matched, not_matched_by_source, source_schema, schema, self.engine)
        return MergeSpec(tuple(on), source_schema, schema, parsed, step).validate()

    def merging(self, spec: MergeSpec, keys: Mapping[str, KeyValues]) -> DmlJob:
        """Start ``merge`` as a job without an edit; ``keys`` are the source's ``KeyValues`` by column of the key.

        Its edit is by no row if no block is to be rewritten, whatever matches. Used by Spark's jobs.
        """
        job = self._start_job("merge", spec.predicate(keys), 1)
        job.schema_change = spec.schema_change
        if spec.clauses.not_matched_by_source or all(len(values.values) for values in keys.values()):
            job.edit = spec.match(spec.source_schema.empty_table())
        return job

    def _start_deletion(self, operation: str, where: str | Predicate | None, task_count: int) -> DmlJob:
        job = self._start_job(operation, where, task_count)
        job.edit, job.drop_full_blocks = DeleteRows(job.condition), True
        return job

    def _start_job(self, operation: str, where: str | Predicate | None, task_count: int) -> DmlJob:
        """A job without an edit, on the snapshot that this handle reads."""
        self._check_writable()
        condition = RowCondition(self._predicate(where), self.engine)
        builders = index_builders(self.snapshot, self.host)
        return DmlJob(operation, self.stored, builders, condition, task_count=task_count, replans=MAX_REPLANS)

    def _value(self, text: str, schema: Schema) -> Term:
        """The term that a column is set to. Raises WhereError, which asks about a quote that may be missing."""
        try:
            return resolve_term(text, schema, self.engine, kept=False)
        except WhereError as refusal:
            if not text.isidentifier():
                raise
            message, _, place = str(refusal).partition("\n")
            raise WhereError(f"{message} Is there a quote missing: '{text}'?\n{place}") from None

    def _setter(self, name: str, value: Any) -> Callable[[pa.Table], Any]:
        """From matching rows to their new values."""
        if name not in (schema := self.snapshot.schema).names:
            schema.find([name])
        if callable(value):
            return lambda rows: value(rows)
        if isinstance(value, str):
            term = self._value(value, schema)
            return lambda rows: evaluate_term(term, rows, self.context, self.host.functions, strict=True)
        from fuse_index.ingest.python_values import REFUSALS, array_of_type

        kind = schema.find([name]).type
        try:
            told = encode_parts([value], kind, name)
            scalar = array_of_type(told, type_without_variants(kind, VARIANT_STORAGE), pa.array)[0]
        except (*REFUSALS, ValueError, TypeError) as problem:
            raise InputError(
                f"{value!r} is no value of column {name!r}, which is {kind}: give {describe_given(kind)}"
            ) from problem
        return lambda rows: repeat_scalar(scalar, rows.num_rows)


def merge_job(table: StatementJobsMixin, spec: MergeSpec, source: pa.Table) -> DmlJob:
    """Start a merge whose source fits into memory, here and wherever its tasks run. Raises as ``Table.merge``."""
    merge_rows = spec.match(source)
    job = table.merging(spec, merge_rows.key_values())
    if job.edit is not None:
        job.edit = merge_rows
    if spec.clauses.not_matched:
        job.unmatched_rows = merge_rows.unmatched_rows
    return job


def read_source(source: Any, schema: pa.Schema) -> pa.Table:
    """All rows of a merge's source, in whatever form they are given. Raises InputError where their columns differ."""
    batches = list(arrow_input.to_record_batches(source, schema))
    if odd := next((batch for batch in batches if not batch.schema.equals(batches[0].schema)), None):
        first, other = (
            ", ".join(f"{field.name} {field.type}" for field in batch.schema) for batch in (batches[0], odd)
        )
        raise InputError(f"parts of the source differ in their columns: {first}; and {other}: make them alike")
    return pa.Table.from_batches(batches) if batches else empty_table(schema)
