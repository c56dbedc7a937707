"""What a catalogue answers to statements about names, columns and what there is to see.

In: requests of ``CatalogClient.java``. Out: bytes; nothing where there is nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec
from pyspark.sql import SparkSession

from fuse_index.errors import InputError
from fuse_index.spark.catalog.alter import alteration, evolution, widens_column
from fuse_index.spark.catalog.create import StagedCreation, create, new_number, stage
from fuse_index.spark.catalog.definitions import (
    CLUSTER_PROPERTY_NAME,
    NOT_NULL_PROPERTY_NAME,
    describe_not_null,
    parse_definition,
)
from fuse_index.spark.catalog.metadata_tables import metadata_rows, to_arrow_stream
from fuse_index.spark.catalog.table_names import TableNames, TableReference, is_place, why_fixed
from fuse_index.spark.native.relation import quote_path
from fuse_index.spark.native.snapshot_planner import INDEXED_MODE, Described, SnapshotPlanner
from fuse_index.spark.protocol.replies import Framed, MetadataDescription, TableDescription
from fuse_index.spark.protocol.requests import (
    AbortStagedRequest,
    AlterTableRequest,
    CommitStagedRequest,
    CreateTableRequest,
    DropTableRequest,
    ListTablesRequest,
    LoadTableRequest,
    ReadMetadataRequest,
    RenameTableRequest,
    StageTableRequest,
    TableExistsRequest,
    WidensColumnRequest,
)
from fuse_index.spark.session import native_scan, register_session
from fuse_index.spark.source.options import STORE_PREFIX
from fuse_index.spark.text_limits import TEXT_LIMITS_PROPERTY
from fuse_index.table.table import Table
from fuse_storage import PARTITION_PROPERTY, InvalidArgument, NotFound, PartitionSpec, Snapshot

_YES, _NO = b"1", b""


@dataclass(frozen=True)
class CatalogRequests:
    """The names of one catalogue of one session, and the tables that are being made in it."""

    spark: SparkSession
    names: TableNames
    _staged: dict[str, StagedCreation] = field(default_factory=dict)

    @cached_property
    def _planner(self) -> SnapshotPlanner:
        return register_session(self.spark).planner

    def load(self, request: LoadTableRequest) -> bytes:
        """A table, or a view of one; nothing where Spark goes on, or where a statement that writes is to say so."""
        if request.namespace and is_place(request.name):  # parquet.`/path`, which Spark reads as files
            return _NO
        try:
            reference = self.names.resolve_request(request, request.at)
        except NotFound:
            if request.purpose == "write":
                return _NO
            raise
        table = self.names.open(reference)
        if reference.view is not None:
            rows = to_arrow_stream(metadata_rows(table, reference.view, {}))
            return Framed(MetadataDescription(view=reference.view, at=request.at, shown=reference.shown), rows).encode()
        if request.changes is not None:
            planner = register_session(self.spark).planner
            evolved = planner.evolved(table.stored, evolution(table, request.changes))
            table = Table(evolved, table.host, table.context)
        return self.describe(reference, table)

    def widens_column(self, request: WidensColumnRequest) -> bytes:
        """Whether what a statement's rows have in a column is of a wider type, which the column can get."""
        _, table = self.names.open_to_change(request)
        return _YES if widens_column(table, request.changes[0]) else _NO

    def rows(self, request: ReadMetadataRequest) -> bytes:
        """The rows of a view, as options ask for them."""
        reference = self.names.resolve_request(request, request.at)
        return to_arrow_stream(metadata_rows(self.names.open(reference), reference.view or "", request.options))

    def describe(self, reference: TableReference, table: Table, staged: str | None = None) -> bytes:
        """A table as ``CatalogClient.java`` reads it. Raises NotNative for one that Spark's reader cannot read."""
        snapshot, branch = table.snapshot, "" if reference.is_fixed else reference.branch
        reader = branch, tuple(sorted(self.names.options.items()))
        scan, files = self._planner.described(table.stored, reader, lambda: self._scan(table, branch))
        description = TableDescription(
            **msgspec.structs.asdict(scan),
            properties=shown_properties(reference, table),
            cluster_by=list(snapshot.cluster_by),
            partition_by=[quote_path([name]) for name in _partition_names(snapshot)],
            indexes=list(snapshot.definitions),
            place=_place_options(reference, self.names.options),
            staged=msgspec.UNSET if staged is None else staged,
            read_only=why_fixed(reference) or msgspec.UNSET,
        )
        return Framed(description, files).encode()

    def _scan(self, table: Table, branch: str) -> Described:
        table.snapshot.check_rows()
        scan = native_scan(self.spark, table.stored, branch, INDEXED_MODE, self.names.options)
        return scan.describe(), scan.file_listing

    def exists(self, request: TableExistsRequest) -> bytes:
        try:
            self.names.open(self.names.resolve_request(request))
        except (NotFound, InvalidArgument):
            return _NO
        return _YES

    def list_tables(self, request: ListTablesRequest) -> bytes:
        return _json(self.names.require_warehouse().list_tables(request.namespace))

    def create_table(self, request: CreateTableRequest) -> bytes:
        create(self.names, request.identifier, parse_definition(request))
        return _YES

    def stage_table(self, request: StageTableRequest) -> bytes:
        """A table without a name, which rows are written to before it gets one."""
        parts, number = request.identifier, new_number()
        staged = stage(self.names, parts, parse_definition(request), request.mode)
        stored = staged.table.stored
        reference = TableReference(".".join(parts), stored.store.url, branch=stored.branch)
        try:
            described = self.describe(reference, staged.table, number)
        except Exception:
            staged.abort()
            raise
        self._staged[number] = staged
        return described

    def commit_staged(self, request: CommitStagedRequest) -> bytes:
        self._staged.pop(request.staged).commit()
        return _YES

    def abort_staged(self, request: AbortStagedRequest) -> bytes:
        if (staged := self._staged.pop(request.staged, None)) is not None:
            staged.abort()
        return _YES

    def alter_table(self, request: AlterTableRequest) -> bytes:
        """Change a table, and what the warehouse says of its name. Raises as ``Table``'s own methods do."""
        reference, table = self.names.open_to_change(request)
        changes = alteration(table, request.changes)
        if (changes.updates or changes.removals) and reference.named is None:
            raise InputError(f"{reference.shown} has no name that a comment or an owner could go with: register it")
        changes.commit()
        if reference.named is not None and (changes.updates or changes.removals):
            warehouse = self.names.require_warehouse()
            warehouse.update_table_properties(reference.named.identifier, changes.removals, changes.updates)
        return _YES

    def drop_table(self, request: DropTableRequest) -> bytes:
        parts = request.identifier
        if is_place(parts[0]):
            raise InputError(f"the table at {parts[0]!r} has no name that could be dropped: delete its folder")
        warehouse = self.names.require_warehouse()
        if not warehouse.table_exists(parts):
            self.names.raise_if_part(parts, request.within, "dropped")
            return _NO
        warehouse.drop_table(parts, purge=request.purge)
        return _YES

    def rename_table(self, request: RenameTableRequest) -> bytes:
        """A bare name stays in the table's namespace; the catalogue's own name may stand before a new one."""
        parts, to = request.identifier, request.to
        if is_place(parts[0]):
            raise InputError(
                f"the table at {parts[0]!r} has no name that could be changed: register it, or move its folder"
            )
        warehouse = self.names.require_warehouse()
        self.names.raise_if_part(parts, request.within, "renamed")
        if len(to) > 1 and to[0].lower() == self.names.catalog.lower() and not warehouse.namespace_exists(to[:1]):
            to = to[1:]
        warehouse.rename_table(parts, (*parts[:-1], *to) if len(to) == 1 and len(request.to) == 1 else to)
        return _YES


_OF_TABLES = ("key_ids", PARTITION_PROPERTY, "foreign_source", TEXT_LIMITS_PROPERTY)
"""Properties that tables keep for themselves; SHOW CREATE TABLE says them otherwise."""


def _place_options(reference: TableReference, store_options: Mapping[str, str]) -> dict[str, str]:
    """Where a table is, as options of ``format("fuse")``."""
    store = {STORE_PREFIX + name: value for name, value in store_options.items()}
    return {"path": reference.url, "branch": reference.branch, **store}


def shown_properties(reference: TableReference, table: Table) -> dict[str, str]:
    """The properties of a table as Spark shows them."""
    own = {name: _text(value) for name, value in table.snapshot.properties.items() if name not in _OF_TABLES}
    named = {} if reference.named is None else dict(reference.named.properties)
    key = {table.row_store.key_argument: ", ".join(table.snapshot.key)} if table.snapshot.key else {}
    if table.snapshot.cluster_ids and _partition_names(table.snapshot):  # of two clauses a statement may have one
        key[CLUSTER_PROPERTY_NAME] = ", ".join(table.snapshot.cluster_by)
    required = describe_not_null(table.snapshot.schema)
    not_null = {NOT_NULL_PROPERTY_NAME: required} if required else {}
    managed = {"is_managed_location": "true"} if reference.named is not None and reference.named.managed else {}
    return {**own, **key, **not_null, **named, **managed, "provider": "fuse", "location": reference.url}


def _partition_names(snapshot: Snapshot) -> tuple[str, ...]:
    spec = PartitionSpec.from_snapshot(snapshot)
    return () if spec is None else spec.names


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
