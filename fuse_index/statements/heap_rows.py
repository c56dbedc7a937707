"""A table without a primary key: rows are written where they come, and blocks in which some change are rewritten."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import pyarrow as pa

import fuse_storage as storage
from fuse_index.clustering.key import ClusterKey
from fuse_index.clustering.sorted_writer import write_sorted_runs
from fuse_index.errors import InputError
from fuse_index.export.keep_up import merge_columns
from fuse_index.hot.append import Committed, commit_hot, hot_row_limit, take_rows
from fuse_index.indexes.builder import index_builders
from fuse_index.ingest import arrow_input
from fuse_index.ingest.schema_merge import evolved_table, peek_schema
from fuse_index.operations.dml_job import DmlJob
from fuse_index.operations.rewrite_job import RewriteJob, run_job
from fuse_index.operations.row_edits import stage_rows
from fuse_index.predicate import Predicate
from fuse_index.pruning.explanation import Explanation
from fuse_index.statements.explain import explain_rewrite
from fuse_index.statements.jobs import merge_job, read_source
from fuse_index.statements.row_store import MergeClauseSpecs, RowStore


class HeapRows(RowStore):
    """The rows of a table without a primary key."""

    rewrites_blocks = True
    may_lack_columns = False
    key_argument = "key"

    def by_key(self, method: str) -> NoReturn:
        raise InputError(
            storage.Operation.call(method)
            + " is for tables with a primary key, and "
            + storage.TableUrl(self.stored.store.url)
            + " has none: create one with "
            + storage.Advice.argument("create_table", primary_key=[...])
        )

    def conform(self, data: Any, since: storage.Schema | None = None) -> pa.Table:
        schema = self.snapshot.schema
        batches = arrow_input.to_record_batches(data, schema.arrow)
        parts = [storage.conform_rows(batch, schema) for batch in batches if batch.num_rows]
        return pa.concat_tables([schema.empty_table(), *parts])

    def append(
        self, data: Any, application: tuple[str, int] | None, hot: bool | None, *, strict: bool, merge_schema: bool
    ) -> Committed:
        stored, snapshot = self.stored, self.snapshot
        builders = index_builders(snapshot, self.table.host, strict)
        rows_schema, batches = peek_schema(arrow_input.to_record_batches(data, self.table.schema))
        step = merge_columns(rows_schema, stored) if merge_schema and rows_schema is not None else None
        if step is None and (limit := hot_row_limit(snapshot, hot)):
            rows, batches = take_rows(batches, limit, snapshot)
            if rows is not None:
                return commit_hot(stored, self.table.host, rows, application)
        if hot:
            raise InputError(
                f"hot=True takes at most {hot_row_limit(snapshot, hot):,} rows (the property tail_rows), and no "
                f"new columns: leave it out for an ordinary append"
            )
        with evolved_table(stored, step).writer(builders) as writer:
            write_sorted_runs(writer, batches, ClusterKey.from_snapshot(snapshot))
            staged = writer.finish()
        transaction = stored.transaction(builders)
        if step is not None and staged:
            transaction.evolve_schema(step)
        return self._committed(transaction.append(staged).commit("append", application=application))

    def delete(self, where: str | Predicate) -> Committed:
        return self._run(self.table.deleting(where))

    def update(self, where: str | Predicate | None, setters: Mapping[str, Any]) -> Committed:
        return self._run(self.table.updating(where, setters))

    def overwrite(self, data: Any, where: str | Predicate | None, *, merge_schema: bool) -> Committed:
        rows_schema, batches = peek_schema(arrow_input.to_record_batches(data, self.table.schema))
        job = self.table.overwriting(where, rows_schema if merge_schema else None)
        job.add_staged(stage_rows(job.evolved, job.builders, batches, job.condition))
        return self._run(job)

    def merge(
        self, source: Any, on: Sequence[str] | None, clauses: MergeClauseSpecs, *, merge_schema: bool
    ) -> Committed:
        rows = read_source(source, self.table.schema)
        spec = self.table.merge_spec(rows.schema, on, clauses, merge_schema)
        return self._run(merge_job(self.table, spec, rows))

    def merge_key(self, on: Sequence[str] | None) -> Sequence[str] | None:
        return on

    @property
    def writes(self) -> str:
        marks = self.snapshot.properties.get("delete_mode") == storage.DELETE_MODES[1]
        return "deletion vectors, and rows anew" if marks else "the blocks anew in which rows change"

    def explain(self, job: DmlJob) -> Explanation:
        return explain_rewrite(job, self.writes)

    def _run(self, job: RewriteJob) -> Committed:
        return self._committed(run_job(job))
