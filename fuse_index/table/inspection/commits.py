"""Commits, tags and branches of a table, as Arrow tables of one row each."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

import fuse_storage as storage
from fuse_index.table.arguments import check_limit
from fuse_storage import Snapshot

SNAPSHOTS_SCHEMA = pa.schema(
    [
        ("snapshot", pa.string()),
        ("sequence", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("operation", pa.string()),
        ("parent", pa.string()),
        ("rows", pa.int64()),
        ("blocks", pa.int64()),
        ("segments", pa.int64()),
        ("bytes", pa.int64()),
        ("schema", pa.int64()),
        ("cluster_by", pa.list_(pa.string())),
        ("indexes", pa.list_(pa.string())),
        ("summary", pa.string()),
    ]
)
"""``bytes``: of the blocks' files. ``summary``: JSON. Of a snapshot that was collected only its log entry is known."""

HISTORY_SCHEMA = pa.schema(
    [
        ("sequence", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("operation", pa.string()),
        ("snapshot", pa.string()),
        ("commit", pa.string()),
        ("parent", pa.string()),
    ]
)

REFS_SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("kind", pa.string()),
        ("snapshot", pa.string()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("expires", pa.timestamp("us", "UTC")),
        ("holder", pa.string()),
    ]
)


def history_table(table: storage.StoredTable) -> pa.Table:
    """List the commits of the table's branch, newest first."""
    rows = [
        {
            "sequence": entry.version,
            "timestamp": entry.timestamp,
            "operation": entry.operation,
            "snapshot": entry.snapshot_id,
            "commit": entry.commit_id,
            "parent": entry.parent,
        }
        for entry in table.history()
    ]
    return pa.Table.from_pylist(rows, HISTORY_SCHEMA)


def snapshots_table(table: storage.StoredTable, limit: int | None) -> pa.Table:
    """List the commits of the table's branch up to its snapshot, newest first; see ``SNAPSHOTS_SCHEMA``.

    Raises InputError for a limit below 0.
    """
    limit = check_limit(limit, "commits, 0 or more, or None for all")
    rows = [_snapshot_row(entry, snapshot) for entry, snapshot in table.snapshots(limit)]
    return pa.Table.from_pylist(rows, SNAPSHOTS_SCHEMA)


def refs_table(table: storage.StoredTable) -> pa.Table:
    """List all branches and tags of the table; see ``REFS_SCHEMA``."""
    store = table.store
    rows: list[dict[str, Any]] = [
        {"name": name, "kind": "branch", "snapshot": head.snapshot_id, "timestamp": head.timestamp}
        for name, head in storage.list_branches(store).items()
    ]
    rows += [
        {
            "name": tag.name,
            "kind": "tag",
            "snapshot": tag.snapshot_id,
            "timestamp": tag.timestamp,
            "expires": tag.expires,
            "holder": tag.holder,
        }
        for tag in storage.list_tags(store)
    ]
    return pa.Table.from_pylist(rows, REFS_SCHEMA)


def _snapshot_row(entry: storage.RefEntry, snapshot: Snapshot | None) -> dict[str, Any]:
    row: dict[str, Any] = {"snapshot": entry.snapshot_id, "sequence": entry.version}
    row |= {"timestamp": entry.timestamp, "operation": entry.operation}
    if snapshot is None:
        return row
    return row | {
        "parent": snapshot.parent,
        "rows": snapshot.row_count,
        "blocks": snapshot.block_count,
        "segments": snapshot.segment_count,
        "bytes": snapshot.bytes,
        "schema": snapshot.schema_id,
        "cluster_by": snapshot.cluster_by,
        "indexes": list(snapshot.definitions),
        "summary": json.dumps(dict(snapshot.summary), ensure_ascii=False),
    }
