"""Indexes of a table are described: their coverage and sizes, what stands in their way, and what they hold.

In: a stored table and the kinds that are installed. Out: an Arrow table with a row for each index, or all that is known
of one. No row of the table is read.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa

from fuse_index.indexes.block_batch import FrameBatch, ZoneMap
from fuse_index.indexes.definition import IndexDefinition, UnavailableIndex, load_definitions
from fuse_index.indexes.registry import Host
from fuse_index.indexes.sandbox import PluginFailure, sandboxed_call
from fuse_index.predicate import Column
from fuse_index.pruning.readable import readable_blocks
from fuse_index.reasons import Reason
from fuse_index.signals.build_failures import describe_failure, failure_of
from fuse_storage import BlockFrame, SidecarRows, StoredTable

_KIND_TIMEOUT_SECONDS = 60.0
"""How long a kind may look at its own sidecars."""

INDEXES_SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("kind", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("options", pa.string()),
        ("blocks_indexed", pa.int64()),
        ("blocks", pa.int64()),
        ("rows_indexed", pa.int64()),
        ("rows", pa.int64()),
        ("summary_bytes", pa.int64()),
        ("payload_bytes", pa.int64()),
        ("version", pa.int64()),
        ("key", pa.string()),
        ("problem", pa.string()),
    ]
)
"""``options``: JSON. ``summary_bytes`` as they are in memory while planning, ``payload_bytes`` as they lie in files."""


def describe_indexes(table: StoredTable, host: Host) -> pa.Table:
    """Describe every index of the table's snapshot, one row each; see ``INDEXES_SCHEMA``."""
    blocks = table.blocks()
    rows = [_index_row(table, definition, blocks, host) for definition in load_definitions(table.snapshot, host)]
    return pa.Table.from_pylist(rows, INDEXES_SCHEMA)


def _index_row(
    table: StoredTable, definition: IndexDefinition | UnavailableIndex, blocks: BlockFrame, host: Host
) -> dict[str, Any]:
    sidecars = blocks.sidecars(definition.key)
    row = {
        "name": definition.name,
        "kind": definition.kind,
        "columns": definition.columns,
        "options": json.dumps(dict(definition.content.get("options", {}))),
        "blocks_indexed": 0,
        "blocks": len(blocks),
        "rows_indexed": 0,
        "rows": int(blocks.row_counts.sum()),
        "summary_bytes": 0,
        "payload_bytes": 0,
        "version": definition.content.get("version"),
        "key": definition.key,
        "problem": _problem(definition, sidecars, host) or _failed_build(table, definition, sidecars, host),
    }
    if sidecars is not None:
        readable = (
            sidecars.indexed
            if isinstance(definition, UnavailableIndex)
            else readable_blocks(sidecars, definition.kind_in(host))
        )
        row |= {"blocks_indexed": int(readable.sum()), "rows_indexed": int(blocks.row_counts[readable].sum())}
        row |= {
            "summary_bytes": sidecars.summaries.nbytes,
            "payload_bytes": sum(pack.length for pack, _ in sidecars.packs()),
        }
    return row


def _problem(definition: IndexDefinition | UnavailableIndex, sidecars: SidecarRows | None, host: Host) -> str | None:
    if isinstance(definition, UnavailableIndex):
        return f"{definition.refusal.reason}: {definition.refusal.detail}"
    if sidecars is not None and sidecars.error is not None:
        return f"{Reason.CORRUPT}: {sidecars.error}; refresh the index"
    if sidecars is not None and (
        unreadable := int((sidecars.indexed & ~readable_blocks(sidecars, definition.kind_in(host))).sum())
    ):
        return (
            f"{Reason.PAYLOAD_TOO_NEW}: {unreadable} blocks are indexed in a version that cannot be "
            f"read here; refresh the index"
        )
    return None


def _failed_build(
    table: StoredTable, definition: IndexDefinition | UnavailableIndex, sidecars: SidecarRows | None, host: Host
) -> str | None:
    """What the kind failed at, where blocks are not indexed since it did."""
    if isinstance(definition, UnavailableIndex):
        return None
    base = table.segments().base_block_count
    known = 0 if sidecars is None else int(readable_blocks(sidecars, definition.kind_in(host))[:base].sum())
    if known == base or (failure := failure_of(table, definition.key)) is None:
        return None
    lacking = f"{base - known:,} of {base:,} blocks are not indexed"
    return f"{Reason.PLUGIN_ERROR}: {lacking}: {describe_failure(failure)}"


def describe_index(table: StoredTable, host: Host, name: str) -> dict[str, Any]:
    """Describe one index: its row of ``describe_indexes``, and what its kind says of the blocks that are indexed."""
    row: dict[str, Any] = next(row for row in describe_indexes(table, host).to_pylist() if row["name"] == name)
    definition = next(each for each in load_definitions(table.snapshot, host) if each.name == name)
    if isinstance(definition, UnavailableIndex):
        return row
    return row | {"contents": _index_contents(table, host, definition)}


def _index_contents(table: StoredTable, host: Host, definition: IndexDefinition) -> Any:
    blocks = table.blocks()
    sidecars = blocks.sidecars(definition.key)
    if sidecars is None:
        return {}
    kind = definition.kind_in(host)
    readable = np.flatnonzero(readable_blocks(sidecars, kind))
    schema = table.snapshot.schema
    fields = [schema.find(each.term.path).id if isinstance(each.term, Column) else None for each in definition.inputs]
    batch = FrameBatch.from_sidecars(blocks, fields, ZoneMap.of(blocks), sidecars, readable)
    contents = sandboxed_call(lambda: dict(kind.inspect(batch, definition.options)), _KIND_TIMEOUT_SECONDS)
    return {"problem": contents.detail} if isinstance(contents, PluginFailure) else contents
