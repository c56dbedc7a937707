"""What a table is asked beside its rows: the best rows for a query, aggregates, and what would be read for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from fuse_index.aggregates.state import Aggregation
from fuse_index.errors import InputError
from fuse_index.expressions.errors import UnsupportedAggregate
from fuse_index.expressions.types import spark_type_name
from fuse_index.expressions.variant.columns import with_texts
from fuse_index.handle import resolve_predicate
from fuse_index.indexes.inputs import resolve_term
from fuse_index.predicate import Column, Literal, Predicate
from fuse_index.pruning.explanation import Explanation
from fuse_index.query.aggregate import AggregatePlan, describe_aggregation, plan_aggregate
from fuse_index.query.ranking.explain import explain_ranking
from fuse_index.query.ranking.rankings import RankedQuery
from fuse_index.query.ranking.search import SearchRequest, ranked_search
from fuse_index.sql.parse import parse_aggregate
from fuse_index.table.arguments import check_limit
from fuse_index.table.read import ReadMixin, check_index_seconds
from fuse_storage import Field, scalar_of_type


class QueryMixin(ReadMixin):
    """The part of ``fuse_index.Table`` that searches and aggregates."""

    def search(
        self,
        columns: str | Sequence[str],
        query: Any,
        limit: int = 10,
        where: str | Predicate | None = None,
        select: Sequence[str] | None = None,
        options: str | None = None,
        highlight: tuple[str, str] | None = None,
        recall: float = 1.0,
    ) -> pa.Table:
        """Find the best rows for a query, best first, by indexes such as ``full_text``.

        Args:
            columns: A column, or several, whose scores are added.
            query: What to look for: a text in the language of the index, or a value of the column's type (a vector).
            limit: How many rows at most.
            where: A condition that leaves rows out and changes no score.
            select: The columns wanted; by default all.
            options: Of the index's function.
            highlight: Signs before and after what matches, in a column ``_highlight`` of the first column's text.
            recall: Which share of the best rows is enough; below 1, an index may guess.

        Returns:
            The rows with their ``_score``.

        Raises:
            DefinitionError: No index ranks this column.
            InputError: ``limit`` is below 0, ``recall`` is none, or the query is no value of the column's type.
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
        request = self._search_request(columns, query, limit, where, options, recall)
        return with_texts(ranked_search(self.stored, self.engine, replace(request, names=names, highlight=highlight)))

    def aggregate(
        self,
        group_by: Sequence[str],
        aggregates: Sequence[str],
        where: str | Predicate | None = None,
        indexes: bool = True,
        strict: bool = False,
        index_seconds: float | None = None,
    ) -> pa.Table:
        """Aggregate as Spark would.

        Statistics and indexes that keep aggregates answer what they can; other rows are read.

        Args:
            group_by: None for one row of all, or columns, or terms such as ``date_trunc('day', ts)``.
            aggregates: ``count(*)``, or count, sum, min, max, avg, hll_sketch_agg or hll_union_agg of a term.
            where: A condition in Spark SQL, or a predicate; by default all rows.
            indexes: False reads every block.
            strict: Raise IndexFault for an index that does something wrong.
            index_seconds: As for ``scan``.

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
        plan = self._aggregate_plan(group_by, aggregates, self._predicate(where), indexes, strict, index_seconds)
        try:
            return plan.to_table([*group_by, *aggregates], self.host.functions)
        except UnsupportedAggregate as refusal:
            raise InputError(f"{describe_aggregation(plan.request)}: {refusal}") from refusal

    def _search_request(
        self,
        columns: str | Sequence[str],
        query: Any,
        limit: int,
        where: str | Predicate | None,
        options: str | None,
        recall: float,
    ) -> SearchRequest:
        self.snapshot.check_rows()
        check_limit(limit, "rows")
        if not 0 < recall <= 1:
            raise InputError(f"recall={recall!r}: give a share of the best rows, above 0 and at most 1")
        searched_names = [columns] if isinstance(columns, str) else columns
        fields = [self.snapshot.schema.find([name], self.context.case_sensitive) for name in searched_names]
        queries = [
            RankedQuery(Column((field.name,), field.type), _query_literal(query, field), options, recall)
            for field in fields
        ]
        return SearchRequest(queries, limit, self._predicate(where), ())

    def _aggregate_plan(
        self,
        group_by: Sequence[str],
        aggregates: Sequence[str],
        predicate: Predicate | None,
        indexes: bool,
        strict: bool,
        seconds: float | None = None,
    ) -> AggregatePlan:
        check_index_seconds(seconds)
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
            return plan_aggregate(
                self.stored, aggregation, predicate, self.engine, indexes=indexes, budget=seconds, strict=strict
            )
        except UnsupportedAggregate as refusal:
            raise InputError(f"{describe_aggregation(aggregation)}: {refusal}") from refusal


def explain_question(
    table: QueryMixin,
    where: str | Predicate | None,
    group_by: Sequence[str],
    aggregates: Sequence[str],
    seconds: float | None,
) -> Explanation:
    """Explain a scan of a table, or an aggregate if there is anything to add up. Raises as ``Table.explain``."""
    predicate = resolve_predicate(where, table.snapshot, table.engine)
    if aggregates or group_by:
        return table._aggregate_plan(group_by, aggregates, predicate, True, False, seconds).explanation  # noqa: SLF001
    return table._plan(predicate, True, False, seconds).explanation  # noqa: SLF001


def explain_search(table: QueryMixin, *asked: Any) -> Explanation:
    """Explain a ranked search of a table, by the arguments of ``_search_request``. Raises as ``Table.search``."""
    request = table._search_request(*asked)  # noqa: SLF001
    return explain_ranking(table.stored, table.engine, request)


def _query_literal(query: Any, field: Field) -> Literal:
    """What is searched for: a text as it is, or a value of the field's type. Raises InputError."""
    if isinstance(query, str) or query is None:
        return Literal(query, pa.string())
    try:
        value = scalar_of_type(query.tolist() if hasattr(query, "tolist") else query, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError) as problem:
        described = spark_type_name(field.type)
        raise InputError(f"the query is no value of column {field.name!r}, which is {described}: {problem}") from None
    return Literal(value.as_py(), field.type)
