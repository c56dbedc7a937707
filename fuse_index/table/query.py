"""What a table is asked beside its rows: the best rows for a query, aggregates, and what would be read for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from fuse_index.aggregates.state import Aggregation
from fuse_index.errors import InputError
from fuse_index.expressions.errors import UnsupportedAggregate
from fuse_index.expressions.types import spark_type_name
from fuse_index.handle import resolve_predicate
from fuse_index.indexes.inputs import resolve_term
from fuse_index.predicate import Column, Literal, Predicate
from fuse_index.pruning.explanation import Explanation
from fuse_index.query.aggregate import AggregatePlan, describe_aggregation, plan_aggregate
from fuse_index.query.ranked.first_rows import explain_search
from fuse_index.query.ranked.rankings import RankedQuery
from fuse_index.query.ranked.search import SearchRequest, ranked_search
from fuse_index.sql.parse import parse_aggregate
from fuse_index.table.read import ReadMixin, check_index_seconds
from fuse_storage import Field


class QueryMixin(ReadMixin):
    """The part of ``fuse_index.Table`` that searches, aggregates and explains."""

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
        queries = self._ranked_queries(columns, query, options, recall)
        request = SearchRequest(queries, self._limit(limit), self._predicate(where), names, highlight)
        return ranked_search(self.stored, self.engine, request)

    def _ranked_queries(
        self, columns: str | Sequence[str], query: Any, options: str | None = None, recall: float = 1.0
    ) -> list[RankedQuery]:
        self.snapshot.check_rows()
        if not isinstance(recall, int | float) or not 0 < recall <= 1:
            raise InputError(f"recall={recall!r}: give a share of the best rows, above 0 and at most 1")
        searched_names = [columns] if isinstance(columns, str) else columns
        fields = [self.snapshot.schema.find([name], self.context.case_sensitive) for name in searched_names]
        return [
            RankedQuery(Column((field.name,), field.type), _query_literal(query, field), options, recall)
            for field in fields
        ]

    def _limit(self, limit: int) -> int:
        if limit < 0:
            raise InputError(f"limit={limit!r}: give a number of rows")
        return limit

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

    def explain(
        self,
        where: str | Predicate | None = None,
        group_by: Sequence[str] = (),
        aggregates: Sequence[str] = (),
        search: Mapping[str, Any] | None = None,
        index_seconds: float | None = None,
    ) -> Explanation:
        """Tell what ``scan``, or with ``aggregates`` what ``aggregate``, would read, and which index removed how much.

        Args:
            where: A condition in Spark SQL, or a predicate; by default all rows. It may be one that only Spark can
                evaluate.
            group_by: As for ``aggregate``.
            aggregates: As for ``aggregate``.
            search: Arguments of ``search``: ``columns``, ``query``, ``limit``, ``options``, ``recall``. The search is
                made, and told: by which index, whether it is exact, and in how many blocks.
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
        if search is not None:
            return self._explain_search(where, **search)
        predicate = resolve_predicate(where, self.snapshot, self.engine)
        if aggregates or group_by:
            return self._aggregate_plan(group_by, aggregates, predicate, True, False, index_seconds).explanation
        return self._plan(predicate, True, False, index_seconds).explanation

    def _explain_search(
        self,
        where: str | Predicate | None,
        columns: str | Sequence[str],
        query: Any,
        limit: int = 10,
        options: str | None = None,
        recall: float = 1.0,
    ) -> Explanation:
        queries = self._ranked_queries(columns, query, options, recall)
        return explain_search(
            self.stored, self.engine, SearchRequest(queries, self._limit(limit), self._predicate(where), ())
        )

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


def _query_literal(query: Any, field: Field) -> Literal:
    """What is searched for: a text as it is, or a value of the field's type. Raises InputError."""
    if isinstance(query, str) or query is None:
        return Literal(query, pa.string())
    try:
        value = pa.scalar(query.tolist() if hasattr(query, "tolist") else query, field.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, ValueError) as problem:
        described = spark_type_name(field.type)
        raise InputError(f"the query is no value of column {field.name!r}, which is {described}: {problem}") from None
    return Literal(value.as_py(), field.type)
