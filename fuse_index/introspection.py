"""What there is to see of a table's commits and indexes, as Arrow tables."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.ask import Failure, ask
from fuse_index.batch import Batch
from fuse_index.definitions import Definition, Unavailable, load
from fuse_index.host import Host
from fuse_index.predicate import Column
from fuse_index.reasons import Reason
from fuse_storage import Blocks, SidecarRows, Table

SECONDS = 60.0
"""How long a kind may look at its own sidecars."""

INDEXES = pa.schema([
    ("name", pa.string()), ("kind", pa.string()), ("columns", pa.list_(pa.string())), ("options", pa.string()),
    ("blocks_indexed", pa.int64()), ("blocks", pa.int64()), ("rows_indexed", pa.int64()), ("rows", pa.int64()),
    ("summary_bytes", pa.int64()), ("payload_bytes", pa.int64()), ("version", pa.int64()), ("key", pa.string()), ("problem", pa.string()),
])  # fmt: skip
"""``summary_bytes`` as they are in memory while planning, ``payload_bytes`` as they lie in files."""

HISTORY = pa.schema([
    ("sequence", pa.int64()), ("timestamp", pa.timestamp("us", "UTC")), ("operation", pa.string()), ("snapshot", pa.string()),
    ("commit", pa.string()), ("parent", pa.string()),
])  # fmt: skip


def indexes(table: Table, host: Host) -> pa.Table:
    """One row per definition of the table's snapshot."""
    blocks = table.blocks()
    return pa.Table.from_pylist([_described(found, blocks, host) for found in load(table.snapshot, host)], INDEXES)


def _described(found: Definition | Unavailable, blocks: Blocks, host: Host) -> dict[str, Any]:
    sidecars = blocks.sidecars(found.key)
    row = {
        "name": found.name, "kind": found.kind, "columns": found.columns, "options": json.dumps(dict(found.content.get("options", {}))),
        "blocks_indexed": 0, "blocks": len(blocks), "rows_indexed": 0, "rows": int(blocks.row_counts.sum()), "summary_bytes": 0,
        "payload_bytes": 0, "version": found.content.get("version"), "key": found.key, "problem": _problem(found, sidecars, host),
    }  # fmt: skip
    if sidecars is not None:
        usable = sidecars.indexed if isinstance(found, Unavailable) else _usable(found, sidecars, host)
        row |= {"blocks_indexed": int(usable.sum()), "rows_indexed": int(blocks.row_counts[usable].sum())}
        row |= {"summary_bytes": sidecars.summaries.nbytes, "payload_bytes": sum(pack.length for pack, _ in sidecars.packs())}
    return row


def _usable(found: Definition, sidecars: SidecarRows, host: Host) -> npt.NDArray[np.bool_]:
    """Blocks that are indexed in a version that the kind reads."""
    usable: npt.NDArray[np.bool_] = sidecars.indexed & np.isin(sidecars.versions, list(host.kinds[found.kind].reads))
    return usable


def _problem(found: Definition | Unavailable, sidecars: SidecarRows | None, host: Host) -> str | None:
    if isinstance(found, Unavailable):
        return f"{found.refusal.reason}: {found.refusal.detail}"
    if sidecars is not None and sidecars.error is not None:
        return f"{Reason.CORRUPT}: {sidecars.error}; refresh the index"
    if sidecars is not None and (other := int((sidecars.indexed & ~_usable(found, sidecars, host)).sum())):
        return f"{Reason.PAYLOAD_TOO_NEW}: {other} blocks are indexed in a version that cannot be read here; refresh the index"
    return None


def inspect(table: Table, host: Host, name: str) -> dict[str, Any]:
    """One index: its row of ``indexes``, and what its kind says of the blocks that are indexed."""
    row: dict[str, Any] = next(row for row in indexes(table, host).to_pylist() if row["name"] == name)
    found = next(found for found in load(table.snapshot, host) if found.name == name)
    return row if isinstance(found, Unavailable) else row | {"contents": _contents(table, host, found)}


def _contents(table: Table, host: Host, definition: Definition) -> Any:
    blocks = table.blocks()
    sidecars = blocks.sidecars(definition.key)
    if sidecars is None:
        return {}
    kind = host.kinds[definition.kind]
    chosen = np.flatnonzero(_usable(definition, sidecars, host))
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
