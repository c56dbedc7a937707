"""``table.maintenance``: upkeep of a table, which changes files and no answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pyarrow as pa

import fuse_storage as storage
from fuse_index.handle import move_on, writable_head
from fuse_index.hot.tier import tier_table
from fuse_index.operations.build_index import ProgressCallback
from fuse_index.operations.compact import compact_table
from fuse_index.operations.recluster import (
    DEFAULT_PASSES,
    DEFAULT_STEP_BLOCKS,
    DEFAULT_STEP_BYTES,
    ReclusterCallback,
    recluster_table,
)
from fuse_index.predicate import Predicate
from fuse_index.table.arguments import check_public_methods, parse_duration
from fuse_index.table.upkeep.account import MaintenanceCallback, done_table
from fuse_index.table.upkeep.indexes import IndexMaintenance
from fuse_index.table.upkeep.maintainer import KeptTable, Maintainer, RunLimits
from fuse_storage import Snapshot, VacuumResult


@check_public_methods
class Maintenance(IndexMaintenance):
    """Upkeep of a table: ``table.maintenance``. Rows stay as they are; only their order may change.

    Each works on the newest snapshot of the branch, whatever the table reads, and moves the table to what it commits.
    Any number may run beside writers. ``spark.compact``, ``spark.tier``, ``spark.recluster`` and ``spark.build_index``
    do the same by Spark's executors.
    """

    def compact(self, progress: ProgressCallback | None = None, *, where: str | Predicate | None = None) -> Snapshot:
        """Join neighbouring blocks of less than half the rows that a block may have, and segments that fit into one.

        Blocks of which more than a fifth was deleted are written without those rows. Order is kept, and the new blocks
        are indexed. Nothing is committed if there is nothing to join.

        Args:
            progress: Called with how many blocks are done, and of how many.
            where: Only blocks that may hold rows of this condition, by what indexes and statistics say; by default all.

        Returns:
            The snapshot that the table reads then.

        Raises:
            WhereError: The condition cannot be read.
            OpaqueError: Only Spark can evaluate it.
            Conflict: Somebody replaced one of the blocks meanwhile; what was committed before is kept.
            ReadOnly: The table was opened at an older state, or to be read only.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://maintenance-compact", "id BIGINT")
            >>> for number in range(3):
            ...     snapshot = table.append([{"id": number}])
            >>> snapshot.block_count, table.maintenance.compact().block_count
            (3, 1)
        """
        return compact_table(self._table, progress, where)

    def recluster(
        self,
        depth: int = 2,
        step_blocks: int = DEFAULT_STEP_BLOCKS,
        step_bytes: int = DEFAULT_STEP_BYTES,
        passes: int = DEFAULT_PASSES,
        progress: ReclusterCallback | None = None,
    ) -> Snapshot:
        """Sort overlapping blocks by the clustering key, until no value is within the bounds of more than ``depth``.

        Blocks of one value, and those that only touch, are not counted. Of a curve there is no such depth: there,
        blocks are sorted as long as they become narrower. Rows change their order and nothing else, and new blocks are
        indexed. Each step is one commit. Nothing is committed if nothing is to be done.

        Args:
            depth: How many blocks a value may be within the bounds of, 1 or more.
            step_blocks: Blocks of a step, 2 or more.
            step_bytes: Rows of a step in memory, in bytes, at most 2 GiB; they are there twice while they are sorted.
            passes: How often at most a row is sorted in this run, 1 or more.
            progress: Called with a ``ReclusterStep`` after each: its ``number``, blocks ``read`` and ``written``, and
                ``rows``.

        Returns:
            The snapshot that the table reads then.

        Raises:
            InputError: The table has no clustering key (see ``Table.cluster_by``), or a number is out of its range.
            Conflict: Somebody replaced one of the blocks meanwhile; what was committed before is kept.
            ReadOnly: The table was opened at an older state, or to be read only.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://recluster", "id BIGINT", ["id"], {"block_rows": 2})
            >>> snapshot = table.append([{"id": 1}, {"id": 4}])
            >>> snapshot = table.append([{"id": 3}, {"id": 2}])
            >>> snapshot = table.maintenance.recluster(depth=1)
            >>> table.inspect.statistics(["id"]).select(["min", "max"]).to_pylist()
            [{'min': '1', 'max': '2'}, {'min': '3', 'max': '4'}]
        """
        return recluster_table(self._table, depth, step_blocks, step_bytes, passes, progress)

    def tier(self, min_age: timedelta | str | None = None, progress: ProgressCallback | None = None) -> Snapshot:
        """Move the tail, or its commits older than ``min_age``, into blocks that are sorted and indexed.

        Nothing is committed if there is nothing to move, and it does not matter how many do it at once.

        Args:
            min_age: A timedelta, or text such as ``"10s"``; by default all commits of the tail are moved.
            progress: Called with how many hot blocks are done, and of how many.

        Returns:
            The snapshot that the table reads then.

        Raises:
            InputError: ``min_age`` is no duration.
            ReadOnly: The table was opened at an older state, or to be read only.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://tier", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}], hot=True)
            >>> table.tail.rows
            1
            >>> snapshot = table.maintenance.tier()
            >>> table.tail.rows
            0
        """
        age = None if min_age is None else parse_duration(min_age, "min_age")
        head = writable_head(self._table)
        return move_on(self._table, head, tier_table(head, self._table.host, age, progress))

    def vacuum(
        self,
        retention: timedelta | str = timedelta(days=7),
        keep: int = 1,
        *,
        dry_run: bool = True,
        force: bool = False,
        hot_retention: timedelta | str | None = None,
    ) -> VacuumResult:
        """Delete the files that neither tags nor what was the head of a branch within the retention lead to.

        Files younger than the longest allowed write (the property ``max_write_seconds``, a day by default) stay too, so
        writers may be running.

        Args:
            retention: A timedelta, or text such as ``"12h"``, ``"7d"``.
            keep: How many snapshots of each branch stay in any case.
            dry_run: Count, and delete nothing, which is what happens unless it is False.
            force: Allow a retention below an hour.
            hot_retention: How long states that hot commits made can be opened after they were tiered or carried along;
                by default as long as snapshots. What older snapshots had tiered by then stays (``tail=False``).

        Returns:
            Counts and bytes of files by kind: ``files``, ``bytes``, and whether they were ``deleted``.

        Raises:
            InvalidArgument: The retention is below an hour, and ``force`` is not given.
            InputError: A text is no duration.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://vacuum", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}])
            >>> table.maintenance.vacuum("30d").deleted
            False
            >>> table.maintenance.vacuum("30d", dry_run=False).deleted
            True
        """
        duration = parse_duration(retention, "retention")
        hot = None if hot_retention is None else parse_duration(hot_retention, "hot_retention")
        return storage.vacuum_table(self._table.stored.store, duration, keep, dry_run, force, hot)

    def run(
        self,
        budget: timedelta | str | None = None,
        max_bytes: int | None = None,
        only: Sequence[str] | None = None,
        *,
        dry_run: bool = False,
        progress: MaintenanceCallback | None = None,
    ) -> pa.Table:
        """Do what ``table.inspect.due`` tells, the worst first, a step at a time, until nothing is due.

        Limits are those of the table's properties (``maintain_target_depth`` and others). A step that loses to a writer
        ends the run; what fails is told. Any number may run at once: a lease keeps two from doing the same.

        Args:
            budget: After so long no further step begins: a timedelta, or text such as ``"10m"``.
            max_bytes: How many bytes of blocks may be rewritten.
            only: Which tasks: ``tier``, ``sync``, ``refresh``, ``compact``, ``recluster``, ``vacuum``, ``verify``; by
                default all that the property ``maintain`` allows.
            dry_run: Only tell what would be done first.
            progress: Called with a ``DoneTask`` for each.

        Returns:
            A row for each step: ``table``, ``task``, ``index``, ``why``, ``outcome`` (``done``, ``no gain``, ``lost``,
            ``failed``, ``told``, or ``due`` of a dry run), ``seconds``, ``bytes_read``, ``bytes_written``, ``problem``.

        Raises:
            InputError: A limit is none, or there is no such task.
            ReadOnly: The table was opened at an older state, or to be read only.

        Example:
            >>> table = fuse.create_table("memory://maintenance-run", "id BIGINT", properties={"block_rows": 8})
            >>> for number in range(6):
            ...     snapshot = table.append([{"id": number}])
            >>> table.maintenance.run().select(["task", "outcome"]).to_pylist()
            [{'task': 'compact', 'outcome': 'done'}]
            >>> table.inspect.due().num_rows, table.snapshot.block_count
            (0, 1)
        """
        duration = None if budget is None else parse_duration(budget, "budget")
        limits = RunLimits.of(duration, max_bytes, only, dry_run)
        writable_head(self._table)
        kept = KeptTable(self._table.stored.store.url, lambda: self._table.refresh(), asked=True)
        return done_table(Maintainer([kept], limits, progress or (lambda _: None)).run())
