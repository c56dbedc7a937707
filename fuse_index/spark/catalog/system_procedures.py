"""The procedures that every catalogue has: upkeep, versions and advice, with the semantics of ``Table``'s methods.

In: calls. Out: their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pyarrow as pa

from fuse_index.spark.catalog.procedures import Parameter, Procedure, ProcedureCall
from fuse_index.spark.catalog.requests import shown_properties
from fuse_index.spark.catalog.table_names import is_place
from fuse_index.spark.catalog.upkeep.procedures import DRY_RUN, TABLE, UPKEEP_PROCEDURES, optional, snapshot_row
from fuse_index.spark.explanations import explain_query
from fuse_index.spark.lakes.procedures import SOURCE_PROCEDURES
from fuse_index.table.arguments import check_limit, parse_time_or_duration
from fuse_index.table.open import attach
from fuse_index.table.table import Table
from fuse_storage import PartitionSpec

_AT = Parameter("at", "a snapshot id, a tag, a version or a time; the head if it is left out", default="NULL")

_SYNC_SCHEMA = pa.schema(
    [
        ("version", pa.string()),
        *((name, pa.int64()) for name in ("added_files", "removed_files", "kept_files", "rows")),
        ("reread", pa.bool_()),
        ("snapshot", pa.string()),
    ]
)
_DETAIL_SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("format", "name", "location", "branch")),
        ("version", pa.int64()),
        ("last_modified", pa.timestamp("us", "UTC")),
        *((name, pa.int64()) for name in ("rows", "blocks", "bytes")),
        *((name, pa.list_(pa.string())) for name in ("partition_by", "cluster_by", "key", "indexes")),
        ("properties", pa.map_(pa.string(), pa.string())),
    ]
)
_PLACE_SCHEMA = pa.schema([("table", pa.string()), ("location", pa.string())])


def _snapshot_after(change: Callable[[Table, ProcedureCall], object]) -> Callable[[ProcedureCall], pa.Table]:
    """A procedure that changes a table and shows what it is then."""

    def run(call: ProcedureCall) -> pa.Table:
        table = call.table_to_change()
        change(table, call)
        return snapshot_row(table)

    return run


def _refs_after(change: Callable[[Table, ProcedureCall], object]) -> Callable[[ProcedureCall], pa.Table]:
    """A procedure that changes the tags or branches of a table and shows which there are then."""

    def run(call: ProcedureCall) -> pa.Table:
        table = call.table_to_change()
        change(table, call)
        return table.inspect.refs()

    return run


def _tag(call: ProcedureCall) -> pa.Table:
    table, expires = call.table(call["at"]), call["expires"]
    table.tag(call["name"], None if expires is None else parse_time_or_duration(expires, "expires"))
    return table.inspect.refs()


def _branch(call: ProcedureCall) -> pa.Table:
    return call.table(call["at"]).branch(call["name"]).inspect.refs()


def _clone(call: ProcedureCall) -> pa.Table:
    source, to = call.table(call["at"]), call.new_identifier("to")
    if is_place(to[0]):
        made = source.clone(to[0], call.names.options)
    else:
        made = call.names.require_warehouse().clone_table(to, source)
    return _place(".".join(to), made)


def _attach(call: ProcedureCall) -> pa.Table:
    name, source, format_ = call.new_identifier(), call["source"], call["format"]
    chosen = None if call["columns"] is None else [each.strip() for each in call["columns"].split(",") if each.strip()]
    about = {"columns": chosen, "widen": call["widen"], "max_age": call["max_age"]}
    if is_place(name[0]):
        made = attach(source, name[0], format_, options=call.names.options, **about)
    else:
        made = call.names.require_warehouse().attach_table(name, source, format_, **about)
    return _place(".".join(name), made)


def _sync(call: ProcedureCall) -> pa.Table:
    done = call.table_to_change().sync(call["to"], indexes=call["indexes"], reread=call["reread"])
    return pa.Table.from_pylist([{**done.to_dict(), "version": str(done.version)}], _SYNC_SCHEMA)


def _undrop(call: ProcedureCall) -> pa.Table:
    warehouse = call.names.require_warehouse()
    name = call.former_identifier(warehouse.list_dropped().column("name").to_pylist())
    to = None if call["to"] is None else call.new_identifier("to")
    return _place(".".join(to or name), warehouse.undrop_table(name, call["table_id"], to))


def _place(name: str, table: Table) -> pa.Table:
    return pa.Table.from_pylist([{"table": name, "location": table.stored.store.url}], _PLACE_SCHEMA)


def _name_history(call: ProcedureCall) -> pa.Table:
    warehouse = call.names.require_warehouse()
    inside = warehouse.history((*call.namespace, *call.identifier()))
    return inside if inside.num_rows else warehouse.history(call.identifier())


def _detail(call: ProcedureCall) -> pa.Table:
    table, reference = call.table(), call.reference()
    snapshot, spec = table.snapshot, PartitionSpec.from_snapshot(table.snapshot)
    row = {
        "format": "fuse",
        "name": reference.shown,
        "location": reference.url,
        "branch": table.stored.branch,
        "version": snapshot.version,
        "last_modified": snapshot.timestamp,
        "rows": snapshot.row_count,
        "blocks": snapshot.block_count,
        "bytes": snapshot.bytes,
        "partition_by": spec.names if spec else (),
        "cluster_by": snapshot.cluster_by,
        "key": snapshot.key,
        "indexes": sorted(snapshot.definitions),
        "properties": sorted(shown_properties(reference, table).items()),
    }
    return pa.Table.from_pylist([row], _DETAIL_SCHEMA)


def _purge_dropped(call: ProcedureCall) -> pa.Table:
    warehouse = call.names.require_warehouse()
    return warehouse.purge_dropped(call["older_than"], dry_run=call["dry_run"])


SYSTEM_PROCEDURES: Mapping[str, Procedure] = {
    **UPKEEP_PROCEDURES,
    "restore": Procedure(
        "Make a table what it was",
        [TABLE, Parameter("at", "a snapshot id, a tag, a version or a time")],
        _snapshot_after(lambda table, call: table.restore(call["at"])),
        changes_rows=True,
    ),
    "set_not_null": Procedure(
        "Refuse NULL in a column from now on, if no row has it",
        [TABLE, Parameter("column", "its name")],
        _snapshot_after(lambda table, call: table.set_nullable(call["column"], False)),
    ),
    "tag": Procedure(
        "Name a snapshot",
        [TABLE, Parameter("name", "of the tag"), _AT, optional("expires", "a time, or how long from now: 30d")],
        _tag,
    ),
    "untag": Procedure(
        "Forget a tag",
        [TABLE, Parameter("name", "of the tag")],
        _refs_after(lambda table, call: table.untag(call["name"])),
    ),
    "branch": Procedure("Begin a branch", [TABLE, Parameter("name", "of the branch"), _AT], _branch),
    "drop_branch": Procedure(
        "End a branch",
        [TABLE, Parameter("name", "of the branch")],
        _refs_after(lambda table, call: table.drop_branch(call["name"])),
    ),
    "fast_forward": Procedure(
        "Bring a table, or t.branch_x, to the head of a branch that has all its history",
        [TABLE, Parameter("source", "the branch")],
        _snapshot_after(lambda table, call: table.fast_forward(call["source"])),
        changes_rows=True,
    ),
    "clone": Procedure(
        "Make a table of a snapshot that shares its files", [TABLE, Parameter("to", "a name or a place"), _AT], _clone
    ),
    "attach": Procedure(
        "Make a table over files that others write: a Parquet folder, a Delta or an Iceberg table",
        [
            Parameter("source", "its path or URL"),
            TABLE,
            optional("format", "what the source is", "parquet"),
            optional("columns", "those that the table is to have, by commas; all that can be read if left out"),
            optional("widen", "whole numbers beside doubles of other files are doubles", False, bool),
            optional("max_age", "such as 1m: who opens it later has it synced if it is older"),
        ],
        _attach,
    ),
    "sync": Procedure(
        "Bring an attached table to a state of its source",
        [
            TABLE,
            optional("to", "a version of the source; the newest if it is left out"),
            optional("indexes", "build indexes on the files that came", True, bool),
            optional("reread", "look into all files, since some were copied or restored", False, bool),
        ],
        _sync,
        changes_rows=True,
    ),
    "convert": Procedure(
        "Make an attached table one of its own", [TABLE], _snapshot_after(lambda table, call: table.convert())
    ),
    "undrop": Procedure(
        "Bring a dropped table back",
        [TABLE, optional("table_id", "which, if several had the name"), optional("to", "another name")],
        _undrop,
    ),
    "dropped": Procedure(
        "The tables that can be undropped", [], lambda call: call.names.require_warehouse().list_dropped()
    ),
    "purge_dropped": Procedure(
        "Delete the files of dropped tables; a dry run unless told otherwise",
        [optional("older_than", "for how long they were dropped, such as 7d", "7d"), DRY_RUN],
        _purge_dropped,
    ),
    "explain": Procedure(
        "What indexes remove from a query, which is not run",
        [Parameter("query", "its text")],
        lambda call: pa.table({"explanation": str(explain_query(call.spark, call["query"] or "")).splitlines()}),
    ),
    "suggest": Procedure(
        "Which columns want an index or clustering", [TABLE], lambda call: call.table().inspect.suggest()
    ),
    "suggest_for": Procedure(
        "Which index would leave out most for conditions, by default those of late: tried on a sample",
        [TABLE, optional("queries", "conditions", None, list)],
        lambda call: call.table().explain.suggest(call["queries"] or ()),
    ),
    "what_if": Procedure(
        "What an index that is not there would leave out, weigh and cost: tried on a sample",
        [
            TABLE,
            Parameter("kind", "of the index"),
            Parameter("columns", "that it would be on", list),
            optional("options", "of the kind", None, dict),
            optional("where", "conditions, by default those of late", None, list),
        ],
        lambda call: call.table().explain.what_if(call["kind"], call["columns"], call["options"], call["where"] or ()),
    ),
    "history": Procedure(
        "The commits of a table, newest first",
        [TABLE, optional("limit", "at most so many; all if it is left out", None, int)],
        lambda call: call.table().history().slice(0, check_limit(call["limit"], "commits, 0 or more, or NULL for all")),
    ),
    "detail": Procedure("What a table is, in one row", [TABLE], _detail),
    "name_history": Procedure("What was done to a name", [TABLE], _name_history),
    **SOURCE_PROCEDURES,
}
"""By name."""
