"""What statements ask of a session's catalogue, as tagged values: ``operation`` says which one it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, get_args

import msgspec

from fuse_index.errors import InputError
from fuse_index.predicate import Context
from fuse_index.spark.protocol.changes import (
    KNOWN_CHANGES,
    ColumnDefinition,
    IndexedColumn,
    TableChange,
    Transform,
    UpdateColumnType,
)
from fuse_index.spark.protocol.words import Change, tag_of
from fuse_index.sql.catalyst_terms import CatalystTree


class CatalogRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="operation", tag=tag_of
):
    """What a catalogue is asked. ``rows``: the number of the DataFrame that comes with it; empty where none does."""

    rows: str


class NamespaceRequest(CatalogRequest, frozen=True, kw_only=True):
    """A request about a namespace, or within one. ``namespace``: its parts; none for the outermost."""

    namespace: tuple[str, ...]


class NamedRequest(NamespaceRequest, frozen=True, kw_only=True):
    """A request about what has a name. ``within``: the current namespace, where this catalogue is the current one."""

    name: str
    within: tuple[str, ...]

    @property
    def identifier(self) -> tuple[str, ...]:
        """The parts of the name, as they stood in the statement."""
        return (*self.namespace, self.name)


class LoadTableRequest(NamedRequest, frozen=True, kw_only=True):
    """Which table, or view of its metadata, is it? ``at``: as ``TableNames.resolve`` takes it.

    ``changes``: the columns that the rows of a statement have beside, which its commit adds.
    """

    at: str | int | None
    purpose: Literal["read", "write"]
    changes: tuple[TableChange, ...] | None = None


class ReadMetadataRequest(NamedRequest, frozen=True, kw_only=True):
    """Which are the rows of a view of metadata, with these options?"""

    at: str | int | None
    options: Mapping[str, str]


class TableExistsRequest(NamedRequest, frozen=True):
    """Is there such a table?"""


class ListTablesRequest(NamespaceRequest, frozen=True):
    """Which tables are in a namespace?"""


class DefineTableRequest(NamedRequest, frozen=True, kw_only=True):
    """What CREATE TABLE says of a table that is to be."""

    mode: Literal["create", "replace", "create or replace"]
    columns: tuple[ColumnDefinition, ...]
    partitioning: tuple[Transform, ...]
    properties: Mapping[str, str]


class CreateTableRequest(DefineTableRequest, frozen=True):
    """Make a table without rows."""


class StageTableRequest(DefineTableRequest, frozen=True):
    """Make a table that gets its name when its rows are there."""


class CommitStagedRequest(NamedRequest, frozen=True, kw_only=True):
    """Give a staged table its name. ``staged``: the number that the reply to StageTableRequest has."""

    staged: str


class AbortStagedRequest(NamedRequest, frozen=True, kw_only=True):
    """Remove a staged table."""

    staged: str


class AlterTableRequest(NamedRequest, frozen=True, kw_only=True):
    """Change columns, properties or keys."""

    changes: tuple[TableChange, ...]


class WidensColumnRequest(NamedRequest, frozen=True, kw_only=True):
    """Is the type of a statement's column wider than the table's, which the column can get?"""

    changes: tuple[UpdateColumnType]


class DropTableRequest(NamedRequest, frozen=True, kw_only=True):
    """Remove a name and, with ``purge``, the files."""

    purge: bool


class RenameTableRequest(NamedRequest, frozen=True, kw_only=True):
    """Give a table another name."""

    to: tuple[str, ...]


class ListNamespacesRequest(NamespaceRequest, frozen=True):
    """Which namespaces are in a namespace?"""


class NamespaceExistsRequest(NamespaceRequest, frozen=True):
    """Is there such a namespace?"""


class LoadNamespaceRequest(NamespaceRequest, frozen=True):
    """Which are the properties of a namespace?"""


class CreateNamespaceRequest(NamespaceRequest, frozen=True, kw_only=True):
    """Make a namespace."""

    properties: Mapping[str, str]


class AlterNamespaceRequest(NamespaceRequest, frozen=True, kw_only=True):
    """Change properties of a namespace."""

    updates: Mapping[str, str]
    removals: tuple[str, ...]


class DropNamespaceRequest(NamespaceRequest, frozen=True, kw_only=True):
    """Remove a namespace and, with ``cascade``, what is in it."""

    cascade: bool


class CreateIndexRequest(NamedRequest, frozen=True, kw_only=True):
    """CREATE INDEX on a table of this catalogue."""

    index: str
    columns: tuple[IndexedColumn, ...]
    options: Mapping[str, str]


class DropIndexRequest(NamedRequest, frozen=True, kw_only=True):
    """DROP INDEX of a table of this catalogue."""

    index: str


class SourceIndexRequest(CatalogRequest, frozen=True, kw_only=True):
    """A statement on an index of another catalogue's table. ``ignore``: it says IF EXISTS, or IF NOT EXISTS."""

    path: tuple[str, ...]
    index: str
    ignore: bool


class CreateSourceIndexRequest(SourceIndexRequest, frozen=True, kw_only=True):
    """CREATE INDEX on another catalogue's table."""

    kind: str
    columns: tuple[IndexedColumn, ...]
    options: Mapping[str, str]


class DropSourceIndexRequest(SourceIndexRequest, frozen=True):
    """DROP INDEX of another catalogue's table."""


class DescribeProcedureRequest(NamedRequest, frozen=True):
    """What does a procedure take?"""


class ListProceduresRequest(NamespaceRequest, frozen=True):
    """Which procedures are in a namespace?"""


class CallProcedureRequest(NamespaceRequest, frozen=True, kw_only=True):
    """CALL. ``arguments``: by name, as texts; None for NULL. ``namespace``: the current one."""

    procedure: str
    arguments: Mapping[str, str | None]


class ChangeRowsRequest(CatalogRequest, frozen=True, kw_only=True):
    """A statement that changes rows of a table, begun at the snapshot on which Spark analysed it.

    ``filters``: the conjuncts of its condition; None for all rows, and where only Spark can say which. ``session``: the
    key of the session whose planner was given the table. ``name``: of the table, to be shown. ``options``: the names of
    those that the statement has. ``off``: indexes that are not asked, as for a ``ScanQuestion``. ``condition``: of an
    overwrite, in SQL's words.
    """

    url: str
    snapshot: str
    mode: str
    context: Context
    filters: list[CatalystTree] | None
    session: str
    branch: str
    change: Change
    name: str
    options: tuple[str, ...]
    off: str = ""
    condition: str = ""


class TypedStatementRequest(CatalogRequest, frozen=True, kw_only=True):
    """A statement that Spark's grammar lacks: which of its own is meant?

    ``catalog``, ``within``: the current catalogue, and the current namespace there.
    """

    text: str
    catalog: str
    within: tuple[str, ...]


Request = (
    LoadTableRequest
    | ReadMetadataRequest
    | TableExistsRequest
    | ListTablesRequest
    | CreateTableRequest
    | StageTableRequest
    | CommitStagedRequest
    | AbortStagedRequest
    | AlterTableRequest
    | WidensColumnRequest
    | DropTableRequest
    | RenameTableRequest
    | ListNamespacesRequest
    | NamespaceExistsRequest
    | LoadNamespaceRequest
    | CreateNamespaceRequest
    | AlterNamespaceRequest
    | DropNamespaceRequest
    | CreateIndexRequest
    | DropIndexRequest
    | CreateSourceIndexRequest
    | DropSourceIndexRequest
    | DescribeProcedureRequest
    | ListProceduresRequest
    | CallProcedureRequest
    | ChangeRowsRequest
    | TypedStatementRequest
)


def decode_request(text: str) -> Request:
    """The request that the JVM wrote.

    Raises InputError for a change of a table that there is none of here, and msgspec.ValidationError, which names the
    member, for any other text.
    """
    # Metadata of columns, which trees have, may hold numbers that only Python's own reader takes.
    request: Any = json.loads(text)
    for change in request.get("changes", ()):
        if change["change"] not in KNOWN_CHANGES:
            raise InputError(f"a table has no {change['change']} to change")
    return msgspec.convert(request, Request)  # type: ignore[no-any-return]


_TYPES: Mapping[str, type[CatalogRequest]] = {each.__struct_config__.tag: each for each in get_args(Request)}


def request_type(text: str) -> type[CatalogRequest]:
    """The type of a request by its tag, even if its members are wrong; CatalogRequest itself for any other tag."""
    return _TYPES.get(json.loads(text).get("operation"), CatalogRequest)
