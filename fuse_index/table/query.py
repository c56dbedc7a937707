"""What a table is asked beside its rows: the best rows for a query, aggregates, and what would be read for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from fuse_index.aggregates.state import Aggregation
from fuse_index.errors import InputError
from fuse_index.expressions.errors import UnsupportedAggregate
from fuse_index.handle import resolve_predicate
from fuse_index.indexes.inputs import resolve_term
from fuse_index.predicate import Column, Predicate
from fuse_index.pruning.explanation import Explanation
from fuse_index.query.aggregate import AggregatePlan, describe_aggregation, plan_aggregate
from fuse_index.query.ranking.explain import explain_ranking
from fuse_index.query.search import SearchRequest, ranked_search
from fuse_index.sql.parse import parse_aggregate
from fuse_index.table.read import ReadMixin


class QueryMixin(ReadMixin):
    """The part of ``fuse_index.Table`` that searches and aggregates."""

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
        """Find the best rows for a query, best first, by indexes such as ``full_text``.

        Args:
            columns: A column, or several, whose scores are added.
            query: What to look for, in the language of the index.
            limit: How many rows at most.
            where: A condition that leaves rows out and changes no score.
            select: The columns wanted; by default all.
            options: Of the index's function.
            highlight: Signs before and after what matches, in a column ``_highlight`` of the first column's text.

        Returns:
            The rows with their ``_score``.

        Raises:
            DefinitionError: No index ranks this column.
            InputError: ``limit`` is below 0.
            WhereError: The condition is none.
            OpaqueError: Only Spark can evaluate the condition.
            SchemaError: A column is unknown.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://search", "id BIGINT, text STRING")
            >>> snapshot = table.create_index("words", "full_text", ["text"])
            >>> snapshot = table.append([{"id": 1, "text": "a red fox"}, {"id": 2, "text": "a red, red rose"}])
            >>> table.search("text", "red", limit=1, select=["id"]).column("id").to_pylist()
            [2]
        """
        names = tuple(self.schema.names) if select is None else self._column_names(select)
        request = self._search_request(columns, query, limit, where, options)
        return ranked_search(self.stored, self.engine, replace(request, names=names, highlight=highlight))

    def aggregate(
        self,
        group_by: Sequence[str],
        aggregates: Sequence[str],
        where: str | Predicate | None = None,
        indexes: bool = True,
        strict: bool = False,
    ) -> pa.Table:
        """Aggregate as Spark would.

        Statistics and indexes that keep aggregates answer what they can; other rows are read.

        Args:
            group_by: None for one row of all, or columns, or terms such as ``date_trunc('day', ts)``.
            aggregates: ``count(*)``, or count, sum, min, max, avg, hll_sketch_agg or hll_union_agg of a term.
            where: A condition in Spark SQL, or a predicate; by default all rows.
            indexes: False reads every block.
            strict: Raise IndexFault for an index that does something wrong.

        Returns:
            One row for each combination of values of ``group_by``, with columns named as they are asked for.

        Raises:
            WhereError: A term, an aggregate or the condition is none.
            OpaqueError: Only Spark can evaluate them.
            InputError: Something is asked for twice, or an aggregate cannot be of such a term.
            SchemaError: A column is unknown.
            IndexFault: With ``strict``, an index failed.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://aggregate", "land STRING, price INT")
            >>> snapshot = table.append([{"land": "no", "price": 3}, {"land": "no", "price": 4}])
            >>> table.aggregate(["land"], ["count(*)", "sum(price)"]).to_pylist()
            [{'land': 'no', 'count(*)': 2, 'sum(price)': 7}]
        """
        plan = self._aggregate_plan(group_by, aggregates, self._predicate(where), indexes, strict)
        try:
            return plan.to_table([*group_by, *aggregates], self.host.functions)
        except UnsupportedAggregate as refusal:
            raise InputError(f"{describe_aggregation(plan.request)}: {refusal}") from refusal

    def _search_request(
        self, columns: str | Sequence[str], query: str, limit: int, where: str | Predicate | None, options: str | None
    ) -> SearchRequest:
        self.snapshot.check_rows()
        if limit < 0:
            raise InputError(f"limit={limit!r}: give a number of rows")
        searched_names = [columns] if isinstance(columns, str) else columns
        fields = [self.snapshot.schema.find([name], self.context.case_sensitive) for name in searched_names]
        terms = [Column((field.name,), field.type) for field in fields]
        return SearchRequest(terms, query, options, limit, self._predicate(where), ())

    def _aggregate_plan(
        self,
        group_by: Sequence[str],
        aggregates: Sequence[str],
        predicate: Predicate | None,
        indexes: bool,
        strict: bool,
    ) -> AggregatePlan:
        self.snapshot.check_rows()
        texts = [*group_by, *aggregates]
        if repeated := [text for index, text in enumerate(texts) if text in texts[:index]]:
            raise InputError(f"{repeated[0]!r} is asked for twice: name it once")
        schema, functions = self.snapshot.schema, self.host.functions
        groups = tuple(resolve_term(text, schema, self.engine, kept=False) for text in group_by)
        aggregation = Aggregation(
            groups, tuple(parse_aggregate(text, schema, self.context, functions) for text in aggregates)
        )
        try:
            return plan_aggregate(self.stored, aggregation, predicate, self.engine, indexes=indexes, strict=strict)
        except UnsupportedAggregate as refusal:
            raise InputError(f"{describe_aggregation(aggregation)}: {refusal}") from refusal


def explain_question(
    table: QueryMixin, where: str | Predicate | None, group_by: Sequence[str], aggregates: Sequence[str]
) -> Explanation:
    """Explain a scan of a table, or an aggregate if there is anything to add up. Raises as ``Table.explain``."""
    predicate = resolve_predicate(where, table.snapshot, table.engine)
    if aggregates or group_by:
        return table._aggregate_plan(group_by, aggregates, predicate, True, False).explanation  # noqa: SLF001
    return table._plan(predicate, True, False).explanation  # noqa: SLF001


def explain_search(
    table: QueryMixin,
    columns: str | Sequence[str],
    query: str,
    limit: int,
    where: str | Predicate | None,
    options: str | None,
) -> Explanation:
    """Explain a ranked search of a table. Raises as ``Table.search``."""
    request = table._search_request(columns, query, limit, where, options)  # noqa: SLF001
    return explain_ranking(table.stored, table.engine, request)
