"""CREATE INDEX and DROP INDEX: built by all executors before the statement ends, unless it is told to wait.

In: requests of ``CatalogFuseTable.java``, and of ``SourceIndexStatements.java`` for tables of others. Out: commits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from fuse_index.errors import DefinitionError, InputError
from fuse_index.spark.catalog.definitions import parse_index_options
from fuse_index.spark.catalog.table_names import TableNames, TableReference
from fuse_index.spark.jobs.write import build_index, undefined_on_failure
from fuse_index.spark.lakes.index import NewIndex, index_in_warehouse
from fuse_index.spark.lakes.source import NamedSource, find_source
from fuse_index.spark.lakes.use import renew
from fuse_index.spark.native.relation import quote_path
from fuse_index.spark.protocol.changes import IndexedColumn
from fuse_index.spark.protocol.requests import (
    CreateIndexRequest,
    CreateSourceIndexRequest,
    DropIndexRequest,
    DropSourceIndexRequest,
    SourceIndexRequest,
)
from fuse_index.table.table import Table
from fuse_storage import AlreadyExists, Conflict

_KIND = "type"
"""The option in which Spark hands over what stands behind USING."""
_DEFERRED = "deferred"
_EXPRESSION = "expression"
_TRUTHS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class IndexRequests:
    """Statements on the indexes of the tables of a catalogue."""

    spark: SparkSession
    names: TableNames

    def create(self, request: CreateIndexRequest) -> bytes:
        """Define an index and build it; what cannot be built is not defined. Raises as ``Table.create_index``."""
        reference, table = self.names.open_to_change(request)
        name, options = request.index, dict(request.options)
        kind, deferred = options.pop(_KIND, ""), _is_true(options.pop(_DEFERRED, "false"))
        if not kind:
            raise InputError(f"index {name!r} is of no kind: say USING and one of {self._kinds()}")
        if name in table.snapshot.definitions:
            raise AlreadyExists(f"there is an index {name!r} already: drop it first, or choose another name")
        terms = [_term(column) for column in request.columns]
        try:
            table.create_index(name, kind, terms, build=False, **parse_index_options(options))
        except (Conflict, DefinitionError) as refused:
            # Another session took the name before the commit, or before this handle went to the newest snapshot.
            if isinstance(refused, Conflict) or name in table.refresh().snapshot.definitions:
                raise AlreadyExists(str(refused)) from refused
            raise
        if deferred:
            return b"1"
        with undefined_on_failure(table, name):
            build_index(self.spark, reference.url, name, **self._job(reference))
        return b"1"

    def _job(self, reference: TableReference) -> dict[str, Any]:
        return {"branch": reference.branch, "host": self.names.host, **self.names.options}

    def drop(self, request: DropIndexRequest) -> bytes:
        """Drop an index. Raises DefinitionError, which names near ones, where there is none, or none any more."""
        _, table = self.names.open_to_change(request)
        table.drop_index(request.index)
        return b"1"

    def create_of_source(self, request: CreateSourceIndexRequest) -> bytes:
        """Give a table of somebody else's an index that the warehouse keeps. Raises as ``fuse_spark.index`` does."""
        options = dict(request.options)
        kind = request.kind or options.pop(_KIND, "")
        if not kind:
            raise InputError(f"index {request.index!r} is of no kind: say USING and one of {self._kinds()}")
        source = self._source(request)
        terms, known = [_term(column) for column in request.columns], self._table_of(source)
        if known is not None and request.index in known.snapshot.definitions:
            if request.ignore:
                return b"1"
            raise AlreadyExists(f"there is an index {request.index!r} already: drop it first, or choose another name")
        new = NewIndex(kind, terms, parse_index_options(options), request.index)
        try:
            index_in_warehouse(self.spark, source, new, self.names.require_warehouse())
        except (Conflict, DefinitionError) as refused:
            known = self._table_of(source)
            if known is None or request.index not in known.snapshot.definitions:
                raise
            if not request.ignore:  # another session took the name meanwhile
                raise AlreadyExists(str(refused)) from refused
        return b"1"

    def drop_of_source(self, request: DropSourceIndexRequest) -> bytes:
        """Drop an index that the warehouse keeps of a table of others. Raises DefinitionError where there is none."""
        table, name = self._table_of(self._source(request)), request.index
        if request.ignore and (table is None or name not in table.snapshot.definitions):
            return b"1"
        if table is None:
            raise DefinitionError(f"no index {name!r}: the warehouse has no index of {quote_path(request.path)}")
        table.drop_index(name)
        renew(self.spark)
        return b"1"

    def _source(self, request: SourceIndexRequest) -> NamedSource:
        return find_source(self.spark, quote_path(request.path), None, self.names.options)

    def _table_of(self, source: NamedSource) -> Table | None:
        return self.names.require_warehouse().find_source_index(source.location)

    def _kinds(self) -> str:
        return ", ".join(sorted(self.names.host.kinds))


def _term(column: IndexedColumn) -> str:
    """A column, or the expression that its option gives in its place: Spark's grammar has columns alone there."""
    options = dict(column.options)
    expression = options.pop(_EXPRESSION, None)
    if options:
        raise InputError(
            f"column {'.'.join(column.path)!r} has no option {next(iter(options))!r}: there is {_EXPRESSION}, "
            f"and what a kind takes stands in OPTIONS behind the columns"
        )
    return expression if expression is not None else quote_path(column.path)


def _is_true(text: str) -> bool:
    if text.lower() not in _TRUTHS:
        raise InputError(f"{_DEFERRED} = {text!r}: say true or false")
    return _TRUTHS[text.lower()]
