"""The table with its indexes that users open. Everything here hands on to the modules that know how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from fuse_index.after_commit import after_commit
from fuse_index.aggregates.state import Aggregation
from fuse_index.changes.changes import ChangesMixin
from fuse_index.clustering.key import ClusterKey
from fuse_index.clustering.report import ClusteringMixin
from fuse_index.clustering.sorted_writer import write_sorted_runs
from fuse_index.errors import InputError
from fuse_index.export.keep_up import merge_columns
from fuse_index.export.mixin import ExportMixin
from fuse_index.expressions.errors import UnsupportedAggregate
from fuse_index.handle import resolve_predicate
from fuse_index.hot.append import commit_hot, hot_row_limit, take_rows
from fuse_index.hot.keyed_statements import KeyedStatementsMixin
from fuse_index.hot.producer import Producer
from fuse_index.indexes.builder import index_builders
from fuse_index.indexes.inputs import resolve_term
from fuse_index.ingest import arrow_input
from fuse_index.ingest.schema_merge import evolved_table, peek_schema
from fuse_index.operations.advise import AdviceMixin
from fuse_index.operations.compact import CompactionMixin
from fuse_index.operations.recluster import ReclusteringMixin
from fuse_index.predicate import Column, Predicate
from fuse_index.pruning.explanation import Explanation
from fuse_index.query.aggregate import AggregatePlan, describe_aggregation, plan_aggregate
from fuse_index.query.search import SearchRequest, ranked_search
from fuse_index.sql.parse import parse_aggregate
from fuse_index.table.arguments import check_public_methods
from fuse_index.table.inspect import InspectionMixin
from fuse_index.table.read import ReadMixin
from fuse_index.table.refs import RefsMixin
from fuse_index.table.schema import SchemaMixin
from fuse_index.table.sources import SourcesMixin
from fuse_index.table.tier import TierMixin
from fuse_storage import Snapshot, StoredTable, is_keyed


@check_public_methods
class Table(
    RefsMixin,
    SchemaMixin,
    ReadMixin,
    SourcesMixin,
    KeyedStatementsMixin,
    CompactionMixin,
    ChangesMixin,
    ClusteringMixin,
    ReclusteringMixin,
    TierMixin,
    InspectionMixin,
    AdviceMixin,
    ExportMixin,
):
    """One snapshot of a table, and the way to its next one.

    A handle reads the snapshot that it was opened at, and what it changes is what it reads: a change of rows, columns
    or keys is a Conflict with commits after that snapshot that matter to it (appends never are). A commit through a
    handle moves it to the snapshot that the commit made, ``refresh`` to the head. Compaction, clustering and indexes
    are about what is there by then. ``pinned``: it was opened at an older state, and stays there.
    """

    def __repr__(self) -> str:
        return f"Table({self.stored.store.url!r}, branch={self.stored.branch!r}, snapshot={self.snapshot.id!r})"

    def _move_on(self, head: StoredTable, done: StoredTable) -> Snapshot:
        snapshot = super()._move_on(head, done)
        if done is not head:
            after_commit(done)
        return snapshot

    def _move_to(self, stored: StoredTable) -> Snapshot:
        before, snapshot = self.stored, super()._move_to(stored)
        if stored is not before:
            after_commit(stored)
        return snapshot

    # --- rows -------------------------------------------------------------------------------------------------

    def append(
        self,
        data: Any,
        application: tuple[str, int] | None = None,
        hot: bool | None = None,
        *,
        strict: bool = False,
        merge_schema: bool = False,
    ) -> Snapshot:
        """Add rows, indexed as they are written, in one commit; nothing happens if there are none.

        By a clustering key they are sorted, as many at a time as the property ``sort_bytes`` (256 MiB) allows.

        ``data``: a pa.Table, RecordBatchReader, pandas DataFrame, list of dicts or Parquet path(s), with the table's
        columns by name; what they lack is its default, or NULL.
        ``application``: (id, version) of a writer that wants each version written once. ``strict``: an index that fails
        on a block raises IndexFault, instead of leaving it out with a PluginWarning. ``merge_schema``: columns, and
        fields of structs, that the table lacks are added, NULL in all older rows, and types are widened as far as
        ``change_type`` can, in the same commit. ``hot``: by a hot commit (see docs/hot.md), which costs two writes and
        leaves indexes for later; by default where there are at most as many rows as the property ``hot_rows`` says, and
        no column changes. Raises InputError, TailFull, SchemaError naming the column that does not fit,
        Conflict, CommitUnknown and other StorageErrors. With a primary key: see ``upsert``.
        """
        self._check_writable()
        if is_keyed(self.snapshot):
            if hot is False or merge_schema:
                raise InputError(
                    "rows of a table with a primary key are put by hot commits: no hot=False, merge_schema"
                )
            return self.upsert(data, application)
        builders = index_builders(self.snapshot, self.host, strict)
        rows_schema, batches = peek_schema(arrow_input.to_record_batches(data, self.schema))
        step = merge_columns(rows_schema, self.stored) if merge_schema and rows_schema is not None else None
        if step is None and (limit := hot_row_limit(self.snapshot, hot)):
            rows, batches = take_rows(batches, limit, self.snapshot)
            if rows is not None:
                committed, self.stored = commit_hot(self.stored, self.host, rows, application)
                return committed.snapshot
        if hot:
            raise InputError(
                f"hot=True takes at most {hot_row_limit(self.snapshot, hot):,} rows (the property tail_rows), and no "
                f"new columns: leave it out for an ordinary append"
            )
        with evolved_table(self.stored, step).writer(builders) as writer:
            write_sorted_runs(writer, batches, ClusterKey.from_snapshot(self.snapshot))
            staged = writer.finish()
        transaction = self.stored.transaction(builders)
        if step is not None and staged:
            transaction.evolve_schema(step)
        return self._move_to(transaction.append(staged).commit("append", application=application))

    def producer(self, linger: float = 0.5, rows: int = 10_000, application: str | None = None) -> Producer:
        """Batch what threads ``send`` into hot commits, at most one in ``linger`` seconds, sooner after ``rows`` rows.

        Use it in a ``with``: leaving it commits what is left. ``application``: its name, by which a batch whose commit
        got no answer is not committed twice. Raises InputError, ReadOnly.
        """
        self._check_writable()
        return Producer(replace(self), linger, rows, application)

    def search(
        self,
        columns: str | Sequence[str],
        query: str,
        limit: int = 10,
        where: str | Predicate | None = None,
        select: Sequence[str] | None = None,
        options: str | None = None,
        highlight: tuple[str, str] | None = None,
    ) -> pa.Table:
        """Find the best rows for a query, best first, with their ``_score``, by indexes such as ``full_text``.

        Of several ``columns`` the scores are added. ``where`` leaves rows out and changes no score; ``select``: the
        columns wanted, by default all; ``options``: of the index's function; ``highlight``: signs before and after what
        matches, in a column ``_highlight`` of the first column's text. Raises DefinitionError where no index ranks, and
        as ``scan`` does.
        """
        if limit < 0:
            raise InputError(f"limit={limit!r}: give a number of rows")
        names = tuple(self.schema.names) if select is None else self._column_names(select)
        searched_names = [columns] if isinstance(columns, str) else columns
        fields = [self.snapshot.schema.find([name], self.context.case_sensitive) for name in searched_names]
        terms = [Column((field.name,), field.type) for field in fields]
        request = SearchRequest(terms, query, options, limit, self._predicate(where), names, highlight)
        return ranked_search(self.stored, self.engine, request)

    def aggregate(
        self,
        group_by: Sequence[str],
        aggregates: Sequence[str],
        where: str | Predicate | None = None,
        indexes: bool = True,
        strict: bool = False,
    ) -> pa.Table:
        """Aggregate as Spark would, with one row for each combination of values of ``group_by``.

        ``group_by``: none for one row of all, or columns, or terms such as ``date_trunc('day', ts)``; ``aggregates``:
        ``count(*)``, or count, sum, min, max, avg, hll_sketch_agg or hll_union_agg of a term. Columns are named as they
        are asked for. Statistics and indexes that keep aggregates answer what they can, other rows are read. Raises
        WhereError, OpaqueError for what only Spark can evaluate, and as ``scan`` does.
        """
        plan = self._aggregate_plan(group_by, aggregates, self._predicate(where), indexes, strict)
        try:
            return plan.to_table([*group_by, *aggregates], self.host.functions)
        except UnsupportedAggregate as refusal:
            raise InputError(f"{describe_aggregation(plan.request)}: {refusal}") from refusal

    def explain(
        self, where: str | Predicate | None = None, group_by: Sequence[str] = (), aggregates: Sequence[str] = ()
    ) -> Explanation:
        """Tell what ``scan``, or with ``aggregates`` what ``aggregate``, would read, and which index removed how much.

        Of each other index it says why it could remove nothing.
        """
        predicate = resolve_predicate(where, self.snapshot, self.engine)
        if aggregates or group_by:
            return self._aggregate_plan(group_by, aggregates, predicate, True, False).explanation
        return self._plan(predicate, True, False).explanation

    def _aggregate_plan(
        self,
        group_by: Sequence[str],
        aggregates: Sequence[str],
        predicate: Predicate | None,
        indexes: bool,
        strict: bool,
    ) -> AggregatePlan:
        texts = [*group_by, *aggregates]
        if repeated := [text for index, text in enumerate(texts) if text in texts[:index]]:
            raise InputError(f"{repeated[0]!r} is asked for twice: name it once")
        schema, functions = self.snapshot.schema, self.host.functions
        groups = tuple(resolve_term(text, schema, self.engine) for text in group_by)
        aggregation = Aggregation(
            groups, tuple(parse_aggregate(text, schema, self.context, functions) for text in aggregates)
        )
        try:
            return plan_aggregate(self.stored, aggregation, predicate, self.engine, indexes=indexes, strict=strict)
        except UnsupportedAggregate as refusal:
            raise InputError(f"{describe_aggregation(aggregation)}: {refusal}") from refusal
