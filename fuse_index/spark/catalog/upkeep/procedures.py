"""The procedures by which a table is kept: indexes, blocks and files, one by one or whatever is due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from fuse_index.errors import InputError
from fuse_index.operations.recluster import DEFAULT_PASSES
from fuse_index.spark.catalog.procedures import Parameter, Procedure, ProcedureCall
from fuse_index.spark.jobs import upkeep
from fuse_index.spark.jobs.write import build_index
from fuse_index.table.arguments import parse_duration
from fuse_index.table.table import Table
from fuse_index.table.upkeep.account import done_table
from fuse_index.table.upkeep.maintainer import STEPS, KeptTable, Maintainer, RunLimits
from fuse_index.warehouse.upkeep import kept_tables

TABLE = Parameter("table", "its name, or its path or URL")
INDEX = Parameter("index", "its name")

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


def snapshot_row(table: Table) -> pa.Table:
    """Give what a table is now, in one row."""
    snapshot = table.snapshot
    row = {"snapshot": snapshot.id, "blocks": snapshot.block_count, "rows": snapshot.row_count}
    return pa.Table.from_pylist([row], _SNAPSHOT_SCHEMA)


def optional(name: str, comment: str, default: Any = None, kind: type = str) -> Parameter:
    """Make a parameter that may be left out."""
    sql = "NULL" if default is None else f"'{default}'" if kind is str else str(default).lower()
    return Parameter(name, comment, kind, sql)


DRY_RUN = optional("dry_run", "only count what would be deleted", True, bool)


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
    upkeep.compact(call.spark, call.reference().url, call["where"], **call.job())
    return snapshot_row(call.table())


def _maintain(call: ProcedureCall) -> pa.Table:
    budget, only = call["budget"], call["only"]
    if call["table"] is not None and call["namespace"] is not None:
        raise InputError("table and namespace: give one of them")
    limits = RunLimits.of(
        None if budget is None else parse_duration(budget, "budget"),
        call["bytes"],
        None if only is None else [name.strip() for name in only.split(",")],
        call["dry_run"],
    )
    if call["table"] is None:
        kept = kept_tables(call.names.require_warehouse(), call["namespace"] or ())
    else:
        table = call.table_to_change()
        kept = [KeptTable(call["table"], table.refresh, asked=True)]
    return done_table(Maintainer(kept, limits, steps={**STEPS, **upkeep.spark_steps(call.spark)}).run())


def _tier(call: ProcedureCall) -> pa.Table:
    upkeep.tier(call.spark, call.reference().url, call["min_age"], **call.job())
    return snapshot_row(call.table())


def _recluster(call: ProcedureCall) -> pa.Table:
    if call["zorder"]:
        _cluster_on_curve(call.table_to_change(), call["zorder"])
    upkeep.recluster(call.spark, call.reference().url, passes=call["passes"], **call.job())
    return snapshot_row(call.table())


def _cluster_on_curve(table: Table, columns: Sequence[str]) -> None:
    """Give a table a clustering key, along a Z-curve if it has several columns. Raises InputError beside another."""
    asked, method = ({name.lower() for name in columns}, "zorder" if len(columns) > 1 else "linear")
    present, present_method = table.snapshot.cluster_by, table.snapshot.cluster_method
    if present and ({name.lower() for name in present}, present_method) != (asked, method):
        raise InputError(
            f"the table is clustered by {', '.join(present)} ({present_method}), which writers keep to: recluster "
            f"without other columns, or give it another key first, ALTER TABLE … CLUSTER BY"
        )
    if not present:
        table.cluster_by(columns, method)


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


UPKEEP_PROCEDURES: Mapping[str, Procedure] = {
    "refresh_index": Procedure(
        "Index the blocks that an index lacks, or any of a table's indexes",
        [TABLE, optional("index", "its name; all if it is left out")],
        lambda call: _build(call, rebuild=False),
    ),
    "rebuild_index": Procedure("Index every block anew", [TABLE, INDEX], lambda call: _build(call, rebuild=True)),
    "verify_index": Procedure(
        "Check an index against rows",
        [TABLE, INDEX, optional("blocks", "how many blocks to read again", 16, int)],
        _verify_index,
    ),
    "compact": Procedure(
        "Join small blocks",
        [TABLE, optional("where", "only blocks that may hold rows of this condition")],
        _compact,
    ),
    "recluster": Procedure(
        "Sort blocks that overlap apart, by the clustering key",
        [
            TABLE,
            optional("passes", "how often at most", DEFAULT_PASSES, int),
            optional(
                "zorder", "columns by which a table without a key is clustered from now on, on a Z-curve", None, list
            ),
        ],
        _recluster,
    ),
    "tier": Procedure(
        "Move hot rows into sorted, indexed blocks",
        [TABLE, optional("min_age", "of the commits that are moved, such as 10s")],
        _tier,
    ),
    "maintain": Procedure(
        "Do what is due at a table or, without one, at those of a warehouse that say so; the worst first",
        [
            optional("table", "its name, or its path or URL; all of the warehouse if it is left out"),
            optional("namespace", "whose tables; all of the warehouse if it is left out"),
            optional("budget", "after which no step begins, such as 10m"),
            optional("bytes", "of blocks that are rewritten at most", None, int),
            optional("only", "tasks, separated by commas"),
            optional("dry_run", "only tell what would be done first", False, bool),
        ],
        _maintain,
    ),
    "vacuum": Procedure(
        "Delete files that nothing needs; a dry run unless told otherwise",
        [
            TABLE,
            optional("retention", "how long versions stay, such as 12h or 7d", "7d"),
            optional("keep", "how many snapshots of each branch stay", 1, int),
            DRY_RUN,
            optional("force", "also below an hour's retention", False, bool),
            optional("hot_retention", "how long hot commits stay, as retention by default", None),
        ],
        _vacuum,
    ),
}
"""By name."""
