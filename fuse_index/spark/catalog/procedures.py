"""Procedures, ``CALL fuse.system.compact('db.t')``: what is asked of them, and how texts become arguments.

In: requests of ``FuseProcedure.java``. Out: descriptions as JSON, rows as Arrow streams.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from fuse_index.errors import InputError
from fuse_index.spark.catalog.metadata_tables import to_arrow_stream
from fuse_index.spark.catalog.table_names import TableNames, TableReference, check_changeable, is_place
from fuse_index.spark.failures import NO_TABLE, SparkCondition, refusal
from fuse_index.spark.native.relation import quote_path
from fuse_index.spark.protocol.replies import ProcedureDescription, ProcedureParameter
from fuse_index.spark.protocol.requests import CallProcedureRequest, DescribeProcedureRequest, ListProceduresRequest
from fuse_index.table.table import Table
from fuse_storage import Identifier, NotFound, join_identifier

SYSTEM = "system"
"""The namespace of all procedures."""

_NULL = "NULL"
_TYPES: Mapping[type, str] = {
    str: "STRING",
    int: "BIGINT",
    bool: "BOOLEAN",
    list: "ARRAY<STRING>",
    dict: "MAP<STRING, STRING>",
}


@dataclass(frozen=True, slots=True)
class Parameter:
    """What a procedure is told. ``default``: SQL, ``NULL`` for what may be left out; None for what must be given."""

    name: str
    comment: str
    kind: type = str
    default: str | None = None

    def parse(self, text: str | None) -> Any:
        """The value of an argument, which Spark has cast to its type."""
        if text is None:
            return None
        if self.kind in (list, dict):
            return json.loads(text)
        return text == "true" if self.kind is bool else self.kind(text)


@dataclass(frozen=True, slots=True)
class ProcedureCall:
    """A call, with its arguments by name. ``namespace``: the current one, in which tables are looked for, too."""

    spark: SparkSession
    names: TableNames
    namespace: Identifier
    arguments: Mapping[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]

    def identifier(self, name: str = "table") -> Identifier:
        """The parts of a name, without the catalogue's own."""
        text = self[name] or ""
        if is_place(text):
            return (text.strip("`"),)
        parts = tuple(part.strip("`") for part in text.split("."))
        return parts[1:] if len(parts) > 1 and parts[0].lower() == self.names.catalog.lower() else parts

    def new_identifier(self, name: str = "table") -> Identifier:
        """The parts of a name that is to be: a bare one is in the current namespace."""
        text, parts = self[name], self.identifier(name)
        return parts if is_place(text) or "." in text else (*self.namespace, *parts)

    def former_identifier(self, names: Collection[str]) -> Identifier:
        """The name of a table that need not be there: in the current namespace if ``names`` have it so."""
        parts = self.identifier()
        within = (*self.namespace, *parts)
        return within if join_identifier(within).lower() in {name.lower() for name in names} else parts

    def reference(self) -> TableReference:
        """The table that the call is about. Raises SparkCondition with a NotFound that names near names."""
        parts = self.identifier()
        try:
            if self.namespace and not is_place(parts[0]):
                with suppress(NotFound):
                    return self.names.resolve((*self.namespace, *parts))
            return self.names.resolve(parts)
        except NotFound as missing:
            raise SparkCondition(NO_TABLE, missing) from missing

    def table(self, at: str | None = None) -> Table:
        """The table, as it is now or was. Raises NotFound, StorageError."""
        return self.names.open_at(self.reference(), at)

    def refresh_caches(self) -> None:
        """Let go what ``CACHE TABLE`` keeps of the table under its name, as Spark does after its own statements."""
        self.spark.sql(f"REFRESH TABLE {quote_path((self.names.catalog, *self.reference().path))}")

    def table_to_change(self) -> Table:
        """The table, as it is now. Raises ReadOnly for an old version, and for a view of its metadata, NotFound."""
        reference = self.reference()
        check_changeable(reference)
        return self.names.open(reference)

    def job(self) -> dict[str, Any]:
        """What jobs of Spark take beside the session and the URL. Raises as ``table_to_change`` does."""
        reference = self.reference()
        check_changeable(reference)
        return {"branch": reference.branch, "host": self.names.host, **self.names.options}


@dataclass(frozen=True, slots=True)
class Procedure:
    """A procedure: ``run`` does it and gives its rows. ``changes_rows``: those of its table may be others then."""

    description: str
    parameters: Sequence[Parameter]
    run: Callable[[ProcedureCall], pa.Table]
    changes_rows: bool = False


@dataclass(frozen=True, slots=True)
class ProcedureRequests:
    """The procedures of a catalogue, by their names."""

    spark: SparkSession
    names: TableNames
    procedures: Mapping[str, Procedure]

    def describe(self, request: DescribeProcedureRequest) -> bytes:
        """What a procedure takes. Raises NotFound naming near names."""
        asked = request.identifier
        if len(asked) != 2 or asked[0].lower() != SYSTEM or asked[1].lower() not in self.procedures:
            near = difflib.get_close_matches(asked[-1].lower(), self.procedures, 1)
            there = (
                f"did you mean {SYSTEM}.{near[0]}?" if near else f"there are {', '.join(self.procedures)} in {SYSTEM}"
            )
            raise NotFound(f"no procedure {'.'.join(asked)!r}: {there}")
        procedure = self.procedures[asked[1].lower()]
        parameters = [
            ProcedureParameter(
                name=each.name,
                type=_TYPES[each.kind],
                comment=each.comment,
                default=msgspec.UNSET if each.default is None else each.default,
            )
            for each in procedure.parameters
        ]
        return ProcedureDescription(description=procedure.description, parameters=parameters).encode()

    def list(self, request: ListProceduresRequest) -> bytes:
        asked = [part.lower() for part in request.namespace]
        return json.dumps([[SYSTEM, name] for name in self.procedures] if asked in ([], [SYSTEM]) else []).encode()

    def call(self, request: CallProcedureRequest) -> bytes:
        procedure = self.procedures[request.procedure.lower()]
        for each in procedure.parameters:
            if each.default != _NULL and request.arguments.get(each.name) is None:
                raise InputError(f"{request.procedure}: {each.name} ({each.comment}) cannot be NULL")
        given = {each.name: each.parse(request.arguments.get(each.name)) for each in procedure.parameters}
        call = ProcedureCall(self.spark, self.names, request.namespace, given)
        try:
            rows = procedure.run(call)
            if procedure.changes_rows:
                call.refresh_caches()
        except PySparkException as failure:  # in its first line, which Spark's parser leaves empty
            raise refusal(failure, str(failure).strip().splitlines()[0]) from failure
        return to_arrow_stream(rows)
