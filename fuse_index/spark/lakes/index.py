"""Give a source an index, which queries of it by its own name ask from then on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from fuse_index.errors import InputError
from fuse_index.expressions.to_sql import term_sql
from fuse_index.expressions.traversal import columns_of, substitute
from fuse_index.indexes.definition import IndexDefinition, UnavailableIndex, load_definitions
from fuse_index.indexes.inputs import resolve_term
from fuse_index.predicate import Term
from fuse_index.reasons import Reason
from fuse_index.spark.jobs.write import build_index, undefined_on_failure
from fuse_index.spark.lakes.source import NamedSource, find_source
from fuse_index.spark.lakes.use import renew, use
from fuse_index.spark.placement import is_connect
from fuse_index.spark.session import register_session
from fuse_index.table.arguments import check_arguments
from fuse_index.table.open import attach, open_table
from fuse_index.table.table import Table
from fuse_index.warehouse.catalog import Catalog
from fuse_index.warehouse.source_indexes import default_index_name
from fuse_storage import AlreadyExists, Schema


@dataclass(frozen=True, slots=True)
class NewIndex:
    """What an index is to be: its kind, what it is on, options of the kind, and a name, by default made of these."""

    kind: str
    columns: Sequence[str]
    options: Mapping[str, Any]
    given_name: str | None = None

    @property
    def name(self) -> str:
        return self.given_name or default_index_name(self.kind, self.columns)


@check_arguments
def index(
    spark: SparkSession,
    source: str | DataFrame,
    kind: str,
    columns: Sequence[str],
    name: str | None = None,
    *,
    at: str | Path | None = None,
    **options: Any,
) -> Table:
    """Give a Parquet folder, a Delta or an Iceberg table an index; its queries stay as they are, and skip files.

    Nothing is written at the source. A table for votes alone is made with the first index, in the warehouse that the
    session was given, and executors build the index. Any later session that is given the warehouse asks it, too.

    Args:
        spark: A classic session.
        source: A name such as ``"spark_catalog.db.t"``, a path or URL, or a DataFrame that reads the source.
        kind: Which kind of index, such as ``"bloom"``.
        columns: Names, or terms such as ``lower(email)``.
        name: Of the index; by default made of the kind and the columns.
        at: Where the table for votes alone is to be, in place of the warehouse; ``use`` tells later sessions of it.
        options: Of the kind.

    Returns:
        The table for votes alone.

    Raises:
        NotFound: There is no source.
        InputError: No connector that is known reads it, or there is no warehouse.
        DefinitionError: There is an index of this name, no such kind, or the kind refuses the columns or options.
        BuildError: Executors lack the plugin of its kind.
        StorageError: A store fails.

    Example:
        fuse_spark.install(spark, warehouse="/data/warehouse")
        fuse_spark.index(spark, "spark_catalog.db.events", "bloom", ["user_id"])
        spark.sql("SELECT * FROM db.events WHERE user_id = 'u7'").show()
    """
    if is_connect(spark):
        raise InputError("a Spark Connect session has no JVM here that could ask indexes: do so where its server runs")
    found, new = find_source(spark, source, None, {}), NewIndex(kind, columns, options, name)
    if at is not None:
        return index_at_place(spark, found, new, str(at), {})
    warehouse = register_session(spark).source_indexes.first_warehouse()
    if warehouse is None:
        raise InputError(
            "the session has no warehouse where the index could be: install(spark, warehouse=…), or say at="
        )
    return index_in_warehouse(spark, found, new, warehouse)


def index_in_warehouse(spark: SparkSession, source: NamedSource, new: NewIndex, warehouse: Catalog) -> Table:
    """Give a source an index that a warehouse keeps, built by executors. Raises as ``index`` does."""
    table = warehouse.source_index(source.location, source.format)
    _add_index(spark, table, source, new)
    renew(spark)
    return table


def index_at_place(
    spark: SparkSession, source: NamedSource, new: NewIndex, place: str, store: Mapping[str, str]
) -> Table:
    """Give a source an index at a place of its own. ``store``: options of its store. Raises as ``index`` does."""
    with suppress(AlreadyExists):
        attach(source.location, place, source.format, votes_only=True, options=store)
    table = open_table(place, options=store)
    _add_index(spark, table, source, new)
    use(spark, place, options=store)
    return table


def refresh_source(spark: SparkSession, table: Table) -> None:
    """Make the files known that came to a source, and have executors index them; all, where a column became wider.

    Indexes that cannot be used here for other reasons stay as they are. Raises BuildError, StorageError, and what
    ``Table.sync`` does.
    """
    table.sync(indexes=False)
    for index in load_definitions(table.snapshot, table.host):
        is_of_other_types = isinstance(index, UnavailableIndex) and index.refusal.reason is Reason.TYPE_MISMATCH
        if is_of_other_types or isinstance(index, IndexDefinition):
            _build(spark, table, index.name, rebuild=is_of_other_types)
    table.refresh()
    renew(spark)


def _add_index(spark: SparkSession, table: Table, source: NamedSource, new: NewIndex) -> None:
    """Define an index and have executors build it; what cannot be built is not defined."""
    if source.columns is not None:
        new = replace(new, columns=[_in_source_names(each, source.columns, table) for each in new.columns])
    table.create_index(new.name, new.kind, new.columns, build=False, **new.options)
    with undefined_on_failure(table, new.name):
        _build(spark, table, new.name)
    table.refresh()


def _in_source_names(column_or_term: str, names: Mapping[str, str | None], table: Table) -> str:
    """A column of a view or query, or a term of some, as the source writes it. Raises InputError, WhereError."""
    if names.get(column_or_term, "") is None:
        raise InputError(f"column {column_or_term!r} is computed: give the term that it is, in columns of the source")
    schema = table.snapshot.schema
    known = {field.name: field for field in schema.fields}
    given = {name: of_source for name, of_source in names.items() if of_source in known}
    seen = Schema(schema.id, tuple(replace(known[of_source], name=name) for name, of_source in given.items()))
    term = resolve_term(column_or_term, seen, table.engine)
    columns: dict[Term, Term] = {
        each: replace(each, path=(given[each.path[0]], *each.path[1:])) for each in columns_of(term)
    }
    return term_sql(substitute(term, columns))


def _build(spark: SparkSession, table: Table, name: str, rebuild: bool = False) -> None:
    store = table.stored.store
    options = dict(getattr(store, "options", None) or {})
    build_index(spark, store.url, name, rebuild, host=table.host, **options)
