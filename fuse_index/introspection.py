"""What there is to see of a table: its commits, segments, blocks and indexes, as Arrow tables."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from fuse_index.ask import Failure, ask
from fuse_index.batch import Batch
from fuse_index.definitions import Definition, Unavailable, load
from fuse_index.host import Host
from fuse_index.predicate import Column
from fuse_index.render import term
from fuse_storage import Table

SECONDS = 60.0
"""How long a kind may look at its own sidecars."""

INDEXES = pa.schema([
    ("name", pa.string()), ("kind", pa.string()), ("columns", pa.list_(pa.string())), ("options", pa.string()),
    ("blocks_indexed", pa.int64()), ("blocks", pa.int64()), ("bytes", pa.int64()), ("version", pa.int64()), ("key", pa.string()),
    ("problem", pa.string()),
])  # fmt: skip

HISTORY = pa.schema([
    ("sequence", pa.int64()), ("timestamp", pa.timestamp("us", "UTC")), ("operation", pa.string()), ("snapshot", pa.string()),
    ("commit", pa.string()), ("parent", pa.string()),
])  # fmt: skip


def indexes(table: Table, host: Host) -> pa.Table:
    """One row per definition of the table's snapshot."""
    listed = table.segments()
    rows = []
    for found in load(table.snapshot, host):
        rows.append({
            "name": found.name, "kind": found.kind, "columns": [term(given.term) for given in found.inputs],
            "options": json.dumps(_options(found)), "blocks_indexed": int(listed.sidecar_counts(found.key).sum()),
            "blocks": listed.total_blocks, "bytes": int(listed.sidecar_bytes(found.key).sum()),
            "version": found.version if isinstance(found, Definition) else None, "key": found.key, "problem": _problem(found, host),
        })  # fmt: skip
    return pa.Table.from_pylist(rows, INDEXES)


def _options(found: Definition | Unavailable) -> Mapping[str, Any]:
    return dataclasses.asdict(found.options) if isinstance(found, Definition) else dict(found.content.get("options", {}))


def _problem(found: Definition | Unavailable, host: Host) -> str | None:
    if isinstance(found, Unavailable):
        return f"{found.refusal.reason}: {found.refusal.detail}"
    kind = host.kinds[found.kind]
    if found.version != kind.writes:
        return f"built by version {found.version} of the kind, which now writes {kind.writes}: rebuild it to index new blocks"
    return None


def inspect(table: Table, host: Host, name: str) -> dict[str, Any]:
    """One index: its row of ``indexes``, and what its kind says of the blocks that are indexed."""
    row = next(row for row in indexes(table, host).to_pylist() if row["name"] == name)
    found = next(found for found in load(table.snapshot, host) if found.name == name)
    return row if isinstance(found, Unavailable) else row | {"contents": _contents(table, host, found)}


def _contents(table: Table, host: Host, definition: Definition) -> Any:
    blocks = table.blocks()
    sidecars = blocks.sidecars(definition.key)
    if sidecars is None:
        return {}
    kind = host.kinds[definition.kind]
    chosen = np.flatnonzero(sidecars.indexed & np.isin(sidecars.versions, list(kind.reads)))
    schema = table.snapshot.schema
    fields = [schema.find(given.term.path).id if isinstance(given.term, Column) else None for given in definition.inputs]
    batch = Batch.indexed(blocks, fields, (blocks.zone_offsets, blocks.zone_rows), sidecars, chosen)
    told = ask(lambda: dict(kind.inspect(batch, definition.options)), SECONDS)
    return {"problem": told.detail} if isinstance(told, Failure) else told


def history(table: Table) -> pa.Table:
    """Commits of the table's branch, newest first."""
    rows = [
        {
            "sequence": entry.sequence, "timestamp": entry.timestamp, "operation": entry.operation, "snapshot": entry.snapshot_id,
            "commit": entry.commit_id, "parent": entry.parent,
        }
        for entry in table.history()
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, HISTORY)


def segments(table: Table) -> pa.Table:
    """One row per segment of the snapshot."""
    listed = table.segments()
    return pa.table(
        {"segment": listed.ids, "rows": listed.row_counts, "blocks": listed.block_counts, "zones": listed.zone_counts, "bytes": listed.sizes}
    )


def blocks(table: Table) -> pa.Table:
    """One row per block of the snapshot, in order."""
    listed, found = table.segments(), table.blocks()
    owners = np.repeat(np.arange(len(listed)), listed.block_counts)
    ids = pa.array(listed.ids, pa.string()).take(pa.array(owners))
    return pa.table(
        {
            "block": pa.array(found.ids, pa.string()), "segment": ids, "rows": found.row_counts, "zones": np.diff(found.zone_offsets),
            "bytes": found.sizes, "location": pa.array(found.locations, pa.string()),
        }
    )  # fmt: skip
