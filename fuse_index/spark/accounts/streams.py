"""Accounts of streams: what the first batch of a query would read that begins now, found without reading a row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from pyspark.sql import DataFrame

from fuse_index.changes.account import explain_changes
from fuse_index.indexes.registry import Host
from fuse_index.pruning.account.uses import ChangesUse
from fuse_index.pruning.explanation import Explanation, Totals, explain_plan
from fuse_index.pruning.planner import ScanPlan
from fuse_index.spark.source.data_source import FuseSource, session_context, source_class
from fuse_index.spark.source.stream_reader import StreamReader
from fuse_storage import BlockFrame

_RELATION, _NAMED = "StreamingRelationV2", "CatalogFuseTable"
_LEVELS = ("segments", "blocks", "zones", "rows", "bytes")


def explain_streams(df: DataFrame, host: Host) -> list[Explanation]:
    """Explain the streams of ours that a streaming DataFrame reads.

    Raises as a query that begins does: StreamError, OptionError, StorageError, WhereError.
    """
    leaves = df._jdf.queryExecution().analyzed().collectLeaves()
    found = (leaves.apply(number) for number in range(leaves.length()))
    options = [_options_of(leaf) for leaf in found if leaf.getClass().getSimpleName() == _RELATION]
    source = source_class(host, session_context(df.sparkSession))
    return [_first_batch(source(each)) for each in options if each is not None]


def _options_of(leaf: Any) -> dict[str, str] | None:
    """The options by which a stream of ours is read, by its place or by a name; None for one of others."""
    table, given = leaf.table(), dict(leaf.extraOptions())
    if table.getClass().getSimpleName() == _NAMED:
        return {**given, **dict(table.place())}
    return given if leaf.sourceName() == "fuse" else None


def _first_batch(source: FuseSource) -> Explanation:
    reader = source.commit_reader(source.schema())
    start, end, steps = reader.first_batch()
    accounts = []
    for step in steps:
        changes = reader.query.changes_of(step)
        read = explain_changes(changes) if changes else _scanned(reader.query.plan_of(step), step.added_blocks)
        accounts.append(read)
    return _together(reader, accounts, (start.sequence, end.sequence))


def _scanned(plan: ScanPlan[BlockFrame], came: BlockFrame) -> Explanation:
    """What is read of the blocks that came with a commit."""
    counted = explain_plan(plan.table, 0, plan.blocks, plan.zones, plan.row_masks, plan.explanation.votes)
    totals = (0, len(came), int(np.sum(came.zone_counts)), int(came.row_counts.sum()), int(came.sizes.sum()))
    levels: dict[str, Any] = {
        level: Totals(total, getattr(counted, level).kept) for level, total in zip(_LEVELS, totals, strict=True)
    }
    return replace(counted, changes=ChangesUse(0, 0, len(came), 0, ""), **levels)


def _together(reader: StreamReader, accounts: Sequence[Explanation], versions: tuple[int, int]) -> Explanation:
    table = reader.query.schema_table
    uses = [each.changes for each in accounts if each.changes is not None]
    came, gone = sum(use.came for use in uses), sum(use.gone for use in uses)
    batch = (
        f"the first batch reads what {len(accounts):,} commits brought" if accounts else "there is nothing to read yet"
    )
    levels: dict[str, Any] = {
        level: Totals(*(sum(getattr(getattr(each, level), part) for each in accounts) for part in ("total", "kept")))
        for level in _LEVELS
    }
    return Explanation(
        snapshot=table.snapshot.id,
        predicate=reader.query.where,
        votes=tuple(dict.fromkeys(vote for each in accounts for vote in each.votes)),
        table=table.store.url,
        changes=ChangesUse(*versions, came, gone, batch),
        **levels,
    )
