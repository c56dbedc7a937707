"""The part of ``table.inspect`` that shows upkeep: what is due, and what was done."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa

from fuse_index.signals.plans import LOG_PROPERTY, forget_plans, plan_row, recent_plans
from fuse_index.table.arguments import check_limit
from fuse_index.table.inspection.card import TablePart
from fuse_index.table.upkeep.account import maintenance_table
from fuse_index.upkeep.due import due_table, due_tasks, upkeep_context
from fuse_storage import MaintenancePolicy

PLANS_SCHEMA = pa.schema(
    [
        ("made", pa.timestamp("us", "UTC")),
        ("snapshot", pa.string()),
        ("where", pa.string()),
        *((name, pa.int64()) for name in ("blocks", "blocks_read", "rows_read", "bytes_read")),
        ("seconds", pa.float64()),
        ("removed", pa.map_(pa.string(), pa.int64())),
    ]
)


class InspectUpkeep(TablePart):
    """Upkeep that a table is due for, and that was done."""

    def due(self) -> pa.Table:
        """Tell what upkeep this snapshot is due for, by the policy in its properties, the worst first.

        ``table.maintenance.run`` does it. Tables whose properties say nothing of it have the default limits; none is
        told where the property ``maintain`` is ``off``. The source of an attached table is asked for its version.

        Returns:
            A row for each task: ``task``, ``index`` (NULL where it is about none), ``why``, ``bytes`` (of files of rows
            that it reads and, where it rewrites them, writes again), ``gain``, ``excess`` (how many times the limit of
            the policy it is) and ``since``. The task ``repair`` is that of an index that cannot be used: it is told
            with its reason, and is not done by itself.

        Raises:
            InvalidArgument: A property of an older version has a value that cannot be meant.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://inspect-due", "id BIGINT", properties={"block_rows": 8})
            >>> for number in range(6):
            ...     snapshot = table.append([{"id": number}])
            >>> table.inspect.due().select(["task", "gain"]).to_pylist()
            [{'task': 'compact', 'gain': '6 blocks become 1'}]
        """
        table = self._table.stored
        policy = MaintenancePolicy.from_properties(table.snapshot.properties)
        return due_table(due_tasks(upkeep_context(table, self._table.host, policy, datetime.now(UTC))))

    def plans(self) -> pa.Table:
        """List the plans of late of this table in this process, the oldest first: what was asked, and what it read.

        At most 256 plans are kept, of all tables; those of a table whose property ``plan_log`` is ``off`` are not.

        Returns:
            A row for each: ``made``, ``snapshot``, ``where``, ``blocks`` and ``blocks_read``, ``rows_read``,
            ``bytes_read``, ``seconds`` of planning, and ``removed``: by index, how many blocks it left out.

        Raises:
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://inspect-plans", "id BIGINT", properties={"block_rows": 2})
            >>> snapshot = table.append([{"id": number} for number in range(6)])
            >>> table.count("id = 3")
            1
            >>> table.inspect.plans().select(["where", "blocks_read", "removed"]).to_pylist()
            [{'where': 'id = 3', 'blocks_read': 1, 'removed': [('min_max', 2)]}]
        """
        url = self._table.stored.store.url
        if self._table.snapshot.properties.get(LOG_PROPERTY) == "off":
            forget_plans(url)  # those of before it was switched off
        rows = [plan_row(plan) for plan in recent_plans(url)]
        return pa.Table.from_pylist(rows, PLANS_SCHEMA)

    def maintenance(self, limit: int | None = None) -> pa.Table:
        """List the commits of upkeep up to this snapshot, newest first: why each was made, and what it cost.

        Args:
            limit: At most so many; by default all.

        Returns:
            A row for each: ``sequence``, ``timestamp``, ``operation``, ``task``, ``index``, ``why`` and ``seconds``
            (NULL of those that nobody was asked to do by itself), ``bytes_read`` and ``bytes_written`` (of blocks'
            files), and ``bytes_ingested``: what other commits brought since the upkeep before. Of a snapshot that was
            vacuumed only the first three are known.

        Raises:
            InputError: ``limit`` is below 0.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://inspect-maintenance", "id BIGINT")
            >>> for number in range(6):
            ...     snapshot = table.append([{"id": number}])
            >>> done = table.maintenance.run()
            >>> table.inspect.maintenance().select(["task", "why"]).to_pylist()
            [{'task': 'compact', 'why': '6 of 6 blocks are small'}]
        """
        return maintenance_table(self._table.stored, check_limit(limit, "commits, 0 or more, or None for all"))
