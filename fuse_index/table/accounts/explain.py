"""``table.explain``: what a question, a search or a statement would read, and which index removed how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import fuse_storage as storage
from fuse_index.changes.account import explain_changes
from fuse_index.changes.mixin import ChangesMixin
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.expressions.traversal import predicate_leaves
from fuse_index.operations.merge_clauses import MergeClauseSpec
from fuse_index.predicate import Predicate
from fuse_index.pruning.explanation import Explanation
from fuse_index.statements.jobs import merge_job, read_source
from fuse_index.table.accounts.sample import SampledTable
from fuse_index.table.accounts.tried_indexes import TriedIndexes
from fuse_index.table.arguments import check_arguments, check_public_methods
from fuse_index.table.query import explain_question, explain_search


class ExplainedTable(SampledTable, ChangesMixin):
    """The part of ``fuse_index.Table`` that says beforehand what it would do."""

    @property
    def explain(self) -> Explain:
        """What ``scan``, ``aggregate``, ``search`` and statements would read: ``table.explain("id = 3")``."""
        return Explain(self)


@check_public_methods
class Explain(TriedIndexes):
    """Accounts of questions and statements that are not done: ``table.explain``.

    Called, it tells of ``scan`` and ``aggregate``; its methods take what those of ``Table`` take. Requests are counted.
    """

    _table: ExplainedTable

    @check_arguments
    def __call__(
        self,
        where: str | Predicate | None = None,
        group_by: Sequence[str] = (),
        aggregates: Sequence[str] = (),
        index_seconds: float | None = None,
    ) -> Explanation:
        """Tell what ``scan``, or with ``aggregates`` what ``aggregate``, would read, and which index removed how much.

        Args:
            where: A condition in Spark SQL, or a predicate; by default all rows. It may be one that only Spark can
                evaluate.
            group_by: As for ``aggregate``.
            aggregates: As for ``aggregate``.
            index_seconds: As for ``scan``.

        Returns:
            Counts of segments, blocks, zones, rows and bytes, and the vote of each index, with the reason why it could
            remove nothing; ``print`` shows it.

        Raises:
            WhereError: The condition is none.
            InputError: An aggregate is none.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://explain", "id BIGINT", properties={"block_rows": 2})
            >>> snapshot = table.append([{"id": number} for number in range(6)])
            >>> explanation = table.explain("id = 3")
            >>> explanation.blocks
            Totals(total=3, kept=1)
            >>> [(vote.index, vote.blocks_removed) for vote in explanation.votes]
            [('min_max', 2)]
        """
        return explain_question(self._metered(), where, group_by, aggregates, index_seconds)

    def search(
        self,
        columns: str | Sequence[str],
        query: Any,
        limit: int = 10,
        where: str | Predicate | None = None,
        options: str | None = None,
        recall: float = 1.0,
    ) -> Explanation:
        """Tell how ``search`` finds its rows: which index ranks them, and of how many blocks it looks up the best ones.

        The search is done, but for reading the rows that it finds.

        Args:
            columns: As for ``search``.
            query: As for ``search``.
            limit: As for ``search``.
            where: As for ``search``.
            options: As for ``search``.
            recall: As for ``search``.

        Returns:
            The account; ``search`` in it says how many blocks were opened, and how many no index knows.

        Raises:
            DefinitionError: No index ranks this column.
            InputError: ``limit`` is below 0.
            WhereError: The condition is none.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://explain-search", "id BIGINT, text STRING")
            >>> snapshot = table.create_index("words", "full_text", ["text"])
            >>> snapshot = table.append([{"id": 1, "text": "a red fox"}])
            >>> snapshot = table.append([{"id": 2, "text": "a blue one"}])
            >>> table.explain.search("text", "red").blocks
            Totals(total=2, kept=1)
        """
        return explain_search(self._metered(), columns, query, limit, where, options, recall)

    def delete(self, where: str | Predicate) -> Explanation:
        """Tell what ``delete`` would read, and which blocks go without being read.

        Args:
            where: As for ``delete``.

        Returns:
            The account: ``blocks`` are those that are read, ``statement`` says what else is done.

        Raises:
            WhereError: The condition is none.
            OpaqueError: Only Spark can evaluate the condition.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://explain-delete", "id BIGINT", properties={"block_rows": 2})
            >>> snapshot = table.append([{"id": number} for number in range(6)])
            >>> account = table.explain.delete("id > 2")
            >>> account.blocks.kept, account.statement.unread
            (1, 1)
        """
        table = self._metered()
        return table.row_store.explain(table.deleting(where))

    def update(self, where: str | Predicate | None, set: Mapping[str, Any]) -> Explanation:  # noqa: A002  # as update
        """Tell what ``update`` would read.

        Args:
            where: As for ``update``.
            set: As for ``update``.

        Returns:
            The account, as for ``delete``.

        Raises:
            InputError: As for ``update``.
            WhereError: The condition, or a text of ``set``, is none.
            OpaqueError: Only Spark can evaluate one of these.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://explain-update", "id BIGINT", properties={"block_rows": 2})
            >>> snapshot = table.append([{"id": number} for number in range(6)])
            >>> table.explain.update("id = 3", {"id": "id + 10"}).blocks.kept
            1
        """
        table = self._metered()
        return table.row_store.explain(table.updating(where, set))

    def overwrite(self, where: str | Predicate | None = None) -> Explanation:
        """Tell what ``overwrite`` would read, whatever rows come.

        Args:
            where: As for ``overwrite``.

        Returns:
            The account, as for ``delete``.

        Raises:
            WhereError: The condition is none.
            OpaqueError: Only Spark can evaluate the condition.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://explain-overwrite", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}])
            >>> str(table.explain.overwrite().statement)
            'overwrite writes no block anew; 1 block goes unread'
        """
        table = self._metered()
        return table.row_store.explain(table.overwriting(where))

    def merge(
        self,
        source: Any,
        on: Sequence[str] | None = None,
        matched: MergeClauseSpec = "update",
        not_matched: MergeClauseSpec = "insert",
        not_matched_by_source: MergeClauseSpec = None,
    ) -> Explanation:
        """Tell what ``merge`` would read. Conditions on the keys of the source are marked as added.

        Args:
            source: As for ``merge``.
            on: As for ``merge``.
            matched: As for ``merge``.
            not_matched: As for ``merge``.
            not_matched_by_source: As for ``merge``.

        Returns:
            The account, as for ``delete``.

        Raises:
            InputError: As for ``merge``.
            SchemaError: Columns do not fit.
            WhereError: A clause's condition is none.
            OpaqueError: Only Spark can evaluate a condition.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://explain-merge", "id BIGINT", key=["id"])
            >>> snapshot = table.append([{"id": 1}])
            >>> snapshot = table.append([{"id": 5}])
            >>> table.explain.merge([{"id": 1}]).blocks
            Totals(total=2, kept=1)
        """
        table, clauses = self._metered(), (matched, not_matched, not_matched_by_source)
        rows = read_source(source, table.schema)
        spec = table.merge_spec(rows.schema, table.row_store.merge_key(on), clauses)
        explanation = table.row_store.explain(merge_job(table, spec, rows))
        parts = spec.clauses.unmatched_target_predicates or ()
        own = {predicate_sql(leaf) for part in parts for leaf in predicate_leaves(part)}
        votes = tuple(replace(vote, added=vote.leaf not in own) for vote in explanation.votes)
        return replace(explanation, votes=votes)

    def changes(
        self,
        since: str | int | datetime,
        until: str | int | datetime | None = None,
        columns: Sequence[str] | None = None,
        where: str | Predicate | None = None,
        key: Sequence[str] | None = None,
        preimages: bool = True,
    ) -> Explanation:
        """Tell what ``changes`` would read: counted are the blocks that came and went in between.

        Args:
            since: As for ``changes``.
            until: As for ``changes``.
            columns: As for ``changes``.
            where: As for ``changes``.
            key: As for ``changes``.
            preimages: As for ``changes``.

        Returns:
            The account; ``changes`` in it says how many blocks came and went, and whether rows are compared.

        Raises:
            FuseIndexError: As ``changes`` raises.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://explain-changes", "id BIGINT", properties={"block_rows": 2})
            >>> snapshot = table.append([{"id": number} for number in range(6)])
            >>> table.explain.changes(1, where="id = 5").blocks
            Totals(total=3, kept=1)
        """
        return explain_changes(self._metered().changes(since, until, columns, where, key, preimages))

    def _metered(self) -> ExplainedTable:
        """The table, as it counts its requests from now on."""
        stored = self._table.stored
        store = storage.meter_requests(stored.store)
        counted = storage.StoredTable(store, stored.branch, stored.entry, stored.snapshot)
        return replace(self._table, stored=counted)
