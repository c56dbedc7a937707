"""The procedures that every catalogue has: upkeep, versions and advice, with the semantics of ``Table``'s methods.

In: calls. Out: their rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from fuse_index.operations.recluster import DEFAULT_PASSES
from fuse_index.spark.catalog.procedures import Parameter, Procedure, ProcedureCall
from fuse_index.spark.catalog.table_names import is_place
from fuse_index.spark.explanations import explain_query
from fuse_index.spark.jobs import upkeep
from fuse_index.spark.jobs.write import build_index
from fuse_index.spark.lakes.procedures import SOURCE_PROCEDURES
from fuse_index.table.arguments import parse_time_or_duration
from fuse_index.table.open import attach
from fuse_index.table.table import Table

_TABLE = Parameter("table", "its name, or its path or URL")
_INDEX = Parameter("index", "its name")
_AT = Parameter("at", "a snapshot id, a tag, a version or a time; the head if it is left out", default="NULL")

_SNAPSHOT_SCHEMA = pa.schema([("snapshot", pa.string()), ("blocks", pa.int64()), ("rows", pa.int64())])
_VACUUM_SCHEMA = pa.schema(
    [("kind", pa.string()), ("files", pa.int64()), ("bytes", pa.int64()), ("deleted", pa.bool_())]
)
_VERIFICATION_SCHEMA = pa.schema(
    [
        ("index", pa.string()),
        ("sound", pa.bool_()),
        ("blocks", pa.int64()),
        ("payloads", pa.int64()),
        ("leaves", pa.int64()),
        ("problems", pa.list_(pa.string())),
    ]
)
_SYNC_SCHEMA = pa.schema(
    [
        ("version", pa.string()),
        *((name, pa.int64()) for name in ("added_files", "removed_files", "kept_files", "rows")),
        ("reread", pa.bool_()),
        ("snapshot", pa.string()),
    ]
)
_PLACE_SCHEMA = pa.schema([("table", pa.string()), ("location", pa.string())])


def _snapshot(table: Table) -> pa.Table:
    snapshot = table.snapshot
    row = {"snapshot": snapshot.id, "blocks": snapshot.block_count, "rows": snapshot.row_count}
    return pa.Table.from_pylist([row], _SNAPSHOT_SCHEMA)


def _build(call: ProcedureCall, rebuild: bool) -> pa.Table:
    table, index = call.table_to_change(), call["index"]
    chosen = [index] if index is not None else [row["name"] for row in table.inspect.indexes().to_pylist()]
    for name in chosen:
        build_index(call.spark, call.reference().url, name, rebuild, **call.job())
    rows = call.table().inspect.indexes()
    return rows.filter(pa.array([name in chosen for name in rows.column("name").to_pylist()], pa.bool_()))


def _verify_index(call: ProcedureCall) -> pa.Table:
    found = call.table().maintenance.verify_index(call["index"], call["blocks"])
    return pa.Table.from_pylist([found.to_dict()], _VERIFICATION_SCHEMA)


def _compact(call: ProcedureCall) -> pa.Table:
    upkeep.compact(call.spark, call.reference().url, **call.job())
    return _snapshot(call.table())


def _tier(call: ProcedureCall) -> pa.Table:
    upkeep.tier(call.spark, call.reference().url, call["min_age"], **call.job())
    return _snapshot(call.table())


def _recluster(call: ProcedureCall) -> pa.Table:
    upkeep.recluster(call.spark, call.reference().url, passes=call["passes"], **call.job())
    return _snapshot(call.table())


def _vacuum(call: ProcedureCall) -> pa.Table:
    found = call.table_to_change().maintenance.vacuum(
        call["retention"],
        call["keep"],
        dry_run=call["dry_run"],
        force=call["force"],
        hot_retention=call["hot_retention"],
    )
    rows = [
        {"kind": kind, "files": count, "bytes": found.bytes[kind], "deleted": found.deleted}
        for kind, count in found.files.items()
    ]
    return pa.Table.from_pylist(rows, _VACUUM_SCHEMA)


def _snapshot_after(change: Callable[[Table, ProcedureCall], object]) -> Callable[[ProcedureCall], pa.Table]:
    """A procedure that changes a table and shows what it is then."""

    def run(call: ProcedureCall) -> pa.Table:
        table = call.table_to_change()
        change(table, call)
        return _snapshot(table)

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
    source, to = call.table(call["at"]), call.identifier("to")
    if is_place(to[0]):
        made = source.clone(to[0], call.names.options)
    else:
        made = call.names.require_warehouse().clone_table(to, source)
    return _place(".".join(to), made)


def _attach(call: ProcedureCall) -> pa.Table:
    name, source, format_ = call.identifier(), call["source"], call["format"]
    if is_place(name[0]):
        made = attach(source, name[0], format_, options=call.names.options)
    else:
        made = call.names.require_warehouse().attach_table(name, source, format_)
    return _place(".".join(name), made)


def _sync(call: ProcedureCall) -> pa.Table:
    done = call.table_to_change().sync(call["to"], indexes=call["indexes"], reread=call["reread"])
    return pa.Table.from_pylist([{**done.to_dict(), "version": str(done.version)}], _SYNC_SCHEMA)


def _undrop(call: ProcedureCall) -> pa.Table:
    warehouse = call.names.require_warehouse()
    name = call.former_identifier(warehouse.list_dropped().column("name").to_pylist())
    to = None if call["to"] is None else call.identifier("to")
    return _place(".".join(to or name), warehouse.undrop_table(name, call["table_id"], to))


def _place(name: str, table: Table) -> pa.Table:
    return pa.Table.from_pylist([{"table": name, "location": table.stored.store.url}], _PLACE_SCHEMA)


def _name_history(call: ProcedureCall) -> pa.Table:
    warehouse = call.names.require_warehouse()
    inside = warehouse.history((*call.namespace, *call.identifier()))
    return inside if inside.num_rows else warehouse.history(call.identifier())


def _purge_dropped(call: ProcedureCall) -> pa.Table:
    warehouse = call.names.require_warehouse()
    return warehouse.purge_dropped(call["older_than"], dry_run=call["dry_run"])


def _optional(name: str, comment: str, default: Any = None, kind: type = str) -> Parameter:
    sql = "NULL" if default is None else f"'{default}'" if kind is str else str(default).lower()
    return Parameter(name, comment, kind, sql)


_DRY_RUN = _optional("dry_run", "only count what would be deleted", True, bool)

SYSTEM_PROCEDURES: Mapping[str, Procedure] = {
    "refresh_index": Procedure(
        "Index the blocks that an index lacks, or any of a table's indexes",
        [_TABLE, _optional("index", "its name; all if it is left out")],
        lambda call: _build(call, rebuild=False),
    ),
    "rebuild_index": Procedure("Index every block anew", [_TABLE, _INDEX], lambda call: _build(call, rebuild=True)),
    "verify_index": Procedure(
        "Check an index against rows",
        [_TABLE, _INDEX, _optional("blocks", "how many blocks to read again", 16, int)],
        _verify_index,
    ),
    "compact": Procedure("Join small blocks", [_TABLE], _compact),
    "recluster": Procedure(
        "Sort blocks that overlap apart, by the clustering key",
        [_TABLE, _optional("passes", "how often at most", DEFAULT_PASSES, int)],
        _recluster,
    ),
    "tier": Procedure(
        "Move hot rows into sorted, indexed blocks",
        [_TABLE, _optional("min_age", "of the commits that are moved, such as 10s")],
        _tier,
    ),
    "vacuum": Procedure(
        "Delete files that nothing needs; a dry run unless told otherwise",
        [
            _TABLE,
            _optional("retention", "how long versions stay, such as 12h or 7d", "7d"),
            _optional("keep", "how many snapshots of each branch stay", 1, int),
            _DRY_RUN,
            _optional("force", "also below an hour's retention", False, bool),
            _optional("hot_retention", "how long hot commits stay, as retention by default", None),
        ],
        _vacuum,
    ),
    "restore": Procedure(
        "Make a table what it was",
        [_TABLE, Parameter("at", "a snapshot id, a tag, a version or a time")],
        _snapshot_after(lambda table, call: table.restore(call["at"])),
        changes_rows=True,
    ),
    "set_not_null": Procedure(
        "Refuse NULL in a column from now on, if no row has it",
        [_TABLE, Parameter("column", "its name")],
        _snapshot_after(lambda table, call: table.set_nullable(call["column"], False)),
    ),
    "tag": Procedure(
        "Name a snapshot",
        [_TABLE, Parameter("name", "of the tag"), _AT, _optional("expires", "a time, or how long from now: 30d")],
        _tag,
    ),
    "untag": Procedure(
        "Forget a tag",
        [_TABLE, Parameter("name", "of the tag")],
        _refs_after(lambda table, call: table.untag(call["name"])),
    ),
    "branch": Procedure("Begin a branch", [_TABLE, Parameter("name", "of the branch"), _AT], _branch),
    "drop_branch": Procedure(
        "End a branch",
        [_TABLE, Parameter("name", "of the branch")],
        _refs_after(lambda table, call: table.drop_branch(call["name"])),
    ),
    "fast_forward": Procedure(
        "Bring a table, or t.branch_x, to the head of a branch that has all its history",
        [_TABLE, Parameter("source", "the branch")],
        _snapshot_after(lambda table, call: table.fast_forward(call["source"])),
        changes_rows=True,
    ),
    "clone": Procedure(
        "Make a table of a snapshot that shares its files", [_TABLE, Parameter("to", "a name or a place"), _AT], _clone
    ),
    "attach": Procedure(
        "Make a table over files that others write: a Parquet folder, a Delta or an Iceberg table",
        [Parameter("source", "its path or URL"), _TABLE, _optional("format", "what the source is", "parquet")],
        _attach,
    ),
    "sync": Procedure(
        "Bring an attached table to a state of its source",
        [
            _TABLE,
            _optional("to", "a version of the source; the newest if it is left out"),
            _optional("indexes", "build indexes on the files that came", True, bool),
            _optional("reread", "look into all files, since some were copied or restored", False, bool),
        ],
        _sync,
        changes_rows=True,
    ),
    "convert": Procedure(
        "Make an attached table one of its own", [_TABLE], _snapshot_after(lambda table, call: table.convert())
    ),
    "undrop": Procedure(
        "Bring a dropped table back",
        [_TABLE, _optional("table_id", "which, if several had the name"), _optional("to", "another name")],
        _undrop,
    ),
    "dropped": Procedure(
        "The tables that can be undropped", [], lambda call: call.names.require_warehouse().list_dropped()
    ),
    "purge_dropped": Procedure(
        "Delete the files of dropped tables; a dry run unless told otherwise",
        [_optional("older_than", "for how long they were dropped, such as 7d", "7d"), _DRY_RUN],
        _purge_dropped,
    ),
    "explain": Procedure(
        "What indexes remove from a query, which is not run",
        [Parameter("query", "its text")],
        lambda call: pa.table({"explanation": str(explain_query(call.spark, call["query"] or "")).splitlines()}),
    ),
    "suggest": Procedure(
        "Which columns want an index or clustering", [_TABLE], lambda call: call.table().inspect.suggest()
    ),
    "history": Procedure("The commits of a table", [_TABLE], lambda call: call.table().history()),
    "name_history": Procedure("What was done to a name", [_TABLE], _name_history),
    **SOURCE_PROCEDURES,
}
"""By name."""
