"""Tasks that are due since blocks are small, worn, too deep or not indexed: each as the job says that would do it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from datetime import datetime

import numpy as np

from fuse_index.clustering.key import ClusterKey
from fuse_index.expressions.traversal import columns_of, predicate_terms
from fuse_index.indexes.builder import IndexBuilder
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.registry import Host
from fuse_index.operations.compact import CompactJob
from fuse_index.operations.recluster import DEFAULT_STEP_BLOCKS, DEFAULT_STEP_BYTES, ReclusterJob
from fuse_index.operations.unindexed import blocks_to_index
from fuse_index.predicate import Predicate
from fuse_index.pruning.planner import plan_scan
from fuse_index.signals.build_failures import describe_failure, failure_of
from fuse_index.signals.listeners import unheard
from fuse_index.signals.plans import recent_plans
from fuse_index.upkeep.task import REPAIR, DueTask, Finder, UpkeepContext, total_bytes
from fuse_storage import BlockFrame, StoredTable, id_time, stored_blocks

MIN_PLANS = 8
"""Plans of late of a table, from which on it is told where queries read."""
MAX_CONDITIONS = 8
"""Different conditions of these that are planned anew: some milliseconds each."""
MIN_GROWTH = 4.0
"""Blocks are joined to one of so many times the rows of the largest: so a row is written again about five times while a
table grows a thousandfold.
"""


def compact_job(table: StoredTable, builders: tuple[IndexBuilder, ...] = ()) -> CompactJob:
    """Make the job by which a table is compacted in steps."""
    return CompactJob(table, builders, MIN_GROWTH)


def recluster_job(
    table: StoredTable, host: Host, depth: int, builders: tuple[IndexBuilder, ...] = ()
) -> ReclusterJob | None:
    """Make the job of one step of reclustering; None for a table without a clustering key.

    It is about the blocks that queries of late read, where enough are known of this process, and else about all.
    """
    key = ClusterKey.from_snapshot(table.snapshot)
    if key is None:
        return None
    job = ReclusterJob(table, key, builders, depth, DEFAULT_STEP_BLOCKS, DEFAULT_STEP_BYTES, 1)
    if (read := _blocks_of_late(table, host, {field.id for field in key.fields})) is not None:
        job.sort_counts = {block_id: count for block_id, count in job.sort_counts.items() if block_id in read}
    return job


def _blocks_of_late(table: StoredTable, host: Host, key_ids: Set[int]) -> Set[str] | None:
    """The blocks that conditions of late on the clustering key read of this state; None where too few are known."""
    plans = recent_plans(table.store.url)
    if len(plans) < MIN_PLANS:
        return None
    schema, on_key = table.snapshot.schema, list[Predicate]()
    for condition in dict.fromkeys(plan.account.predicate for plan in reversed(plans)):
        columns = {column for term in predicate_terms(condition) for column in columns_of(term)}
        known = [each for each in columns if each.path[0] in schema.names]
        if len(known) == len(columns) and key_ids & {schema.find(each.path).id for each in known}:
            on_key.append(condition)
    if not on_key:
        return None
    with unheard():
        read = [plan_scan(table, each, Engine(host)).blocks.ids for each in on_key[:MAX_CONDITIONS]]
    return frozenset().union(*read)


def _due_compaction(context: UpkeepContext) -> Iterator[DueTask]:
    table = context.table
    if _is_attached(table) or context.is_of_no_use("compact"):
        return
    groups = compact_job(table).remaining_groups()
    saved = sum(len(group) - 1 for group in groups)
    worn = sum(len(group) == 1 for group in groups)
    blocks = stored_blocks(table)
    excess = saved / max(context.policy.small_share * len(blocks), 1)
    if not worn and excess <= 1:
        return
    chosen = [number for group in groups for number in group]
    small = f"{len(chosen) - worn:,} of {len(blocks):,} blocks are small" if saved else ""
    deleted = f"of {worn:,} blocks more than a fifth was deleted" if worn else ""
    why = "; ".join(filter(None, [small, deleted]))
    gain = f"{len(chosen):,} blocks become {len(groups):,}"
    size = total_bytes(blocks.sizes, chosen)
    yield DueTask("compact", why, size, gain, max(excess, 1.0), since=_oldest(blocks, chosen))


def _due_reclustering(context: UpkeepContext) -> Iterator[DueTask]:
    table, limit = context.table, context.policy.target_depth
    if _is_attached(table) or context.is_of_no_use("recluster"):
        return
    job = recluster_job(table, context.host, limit)
    if job is None:
        return
    for task in job.plan_tasks(1):
        blocks, depth = stored_blocks(table), job.depth_of(task)
        chosen = task.block_numbers
        met = "are wider than others" if depth is None else f"meet {depth:,} deep, and {limit} is the limit"
        why = f"{len(chosen):,} blocks {met}"
        gain = "conditions on the clustering key read fewer of them"
        since = max((id_time(blocks.ids[number]) for number in chosen), default=None)
        excess = 1.0 if depth is None else depth / limit
        yield DueTask("recluster", why, total_bytes(blocks.sizes, chosen), gain, excess, since=since)


def _due_refreshes(context: UpkeepContext) -> Iterator[DueTask]:
    blocks = context.table.blocks()
    for definition in context.definitions:
        is_of_no_use = context.is_of_no_use(f"refresh:{definition.key}")
        failure = failure_of(context.table, definition.key) if is_of_no_use else None
        if is_of_no_use and failure is None:
            continue
        lacking = blocks_to_index(context.table, IndexBuilder.for_definition(definition, context.host))
        if not len(lacking):
            continue
        why = f"index {definition.name!r} lacks {len(lacking):,} of {len(blocks):,} blocks"
        if failure is not None:
            told = f"{why}: {describe_failure(failure)}"
            yield DueTask(REPAIR, told, 0, "the index helps again", 0.0, definition.name)
        else:
            gain = f"conditions on {', '.join(definition.columns)} need not read them all"
            size = total_bytes(blocks.sizes, lacking)
            excess = 1 + len(lacking) / len(blocks)
            yield DueTask("refresh", why, size, gain, excess, definition.name, _oldest(blocks, lacking.tolist()))


def _is_attached(table: StoredTable) -> bool:
    """Whether the files are a source's, where nothing is rewritten."""
    source = table.snapshot.source
    return source is not None and not source.get("adopted")


def _oldest(blocks: BlockFrame, chosen: list[int]) -> datetime | None:
    return min((id_time(blocks.ids[number]) for number in np.asarray(chosen).tolist()), default=None)


BLOCK_FINDERS: Mapping[str, Finder] = {
    "compact": _due_compaction,
    "recluster": _due_reclustering,
    "refresh": _due_refreshes,
}
