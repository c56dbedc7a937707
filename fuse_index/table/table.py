"""The table with its indexes that users open. Everything here hands on to the modules that know how."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fuse_index.after_commit import after_commit
from fuse_index.aggregates.state import Aggregation
from fuse_index.changes.changes import ChangesMixin
from fuse_index.clustering.report import ClusteringMixin
from fuse_index.errors import InputError
from fuse_index.export.mixin import ExportMixin
from fuse_index.expressions.errors import UnsupportedAggregate
from fuse_index.handle import resolve_predicate
from fuse_index.hot.producer import Producer
from fuse_index.indexes.inputs import resolve_term
from fuse_index.predicate import Column, Predicate
from fuse_index.pruning.explanation import Explanation
from fuse_index.query.aggregate import AggregatePlan, describe_aggregation, plan_aggregate
from fuse_index.query.search import SearchRequest, ranked_search
from fuse_index.sql.parse import parse_aggregate
from fuse_index.statements.mixin import StatementsMixin
from fuse_index.table.arguments import check_public_methods
from fuse_index.table.former_names import former_method
from fuse_index.table.inspection.inspect import Inspect
from fuse_index.table.maintenance import Maintenance
from fuse_index.table.read import ReadMixin
from fuse_index.table.refs import RefsMixin
from fuse_index.table.schema import SchemaMixin
from fuse_index.table.sources import SourcesMixin
from fuse_index.table.tier import TierMixin
from fuse_storage import Snapshot, StoredTable


@check_public_methods
class Table(
    RefsMixin,
    SchemaMixin,
    ReadMixin,
    SourcesMixin,
    StatementsMixin,
    ChangesMixin,
    ClusteringMixin,
    TierMixin,
    ExportMixin,
):
    """One snapshot of a table, and the way to its next one.

    A handle reads the snapshot that it was opened at, and what it changes is what it reads: a change of rows, columns
    or keys is a Conflict with commits after that snapshot that matter to it (appends never are). A commit through a
    handle moves it to the snapshot that the commit made, ``refresh`` to the head. Compaction, clustering and indexes
    are about what is there by then. ``pinned``: it was opened at an older state, and stays there.

    ``table.inspect`` shows metadata, ``table.maintenance`` is upkeep; rows, columns, indexes, branches and tags are
    here.
    """

    def __repr__(self) -> str:
        return f"Table({self.stored.store.url!r}, branch={self.stored.branch!r}, snapshot={self.snapshot.id!r})"

    @property
    def inspect(self) -> Inspect:
        """What there is to see of the table's metadata: commits, blocks, columns, indexes, partitions and refs."""
        return Inspect(self)

    @property
    def maintenance(self) -> Maintenance:
        """Upkeep of the table: ``compact``, ``recluster``, ``tier``, ``vacuum``, and indexes kept and verified."""
        return Maintenance(self)

    if not TYPE_CHECKING:  # so that mypy knows what is no longer there

        def __getattr__(self, name: str) -> Callable[..., Any]:
            return former_method(self, name)

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
