"""Upkeep of all tables of a warehouse: what is due, and doing it, by the policies of tables and of their namespaces."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

import pyarrow as pa

import fuse_storage as storage
from fuse_index.table.arguments import parse_duration
from fuse_index.table.upkeep.account import done_table
from fuse_index.table.upkeep.maintainer import KeptTable, Maintainer, RunLimits
from fuse_index.upkeep.task import DUE_SCHEMA
from fuse_index.warehouse.handle import namespaces_within, tables_within
from fuse_index.warehouse.tables import TablesMixin
from fuse_storage import (
    MAINTENANCE_PROPERTIES,
    CatalogState,
    CatalogTable,
    Identifier,
    InvalidArgument,
    MaintenancePolicy,
)

_DUE_SCHEMA = DUE_SCHEMA.insert(0, pa.field("table", pa.string()))
_THREADS = 8
"""Tables that are asked at a time: where a store is far, asking is mostly waiting."""


class UpkeepMixin(TablesMixin):
    """The part of ``fuse_index.Catalog`` that keeps tables."""

    def due(self, namespace: str | Sequence[str] = (), *, defaults: Mapping[str, str] | None = None) -> pa.Table:
        """Tell what upkeep tables are due for, the worst first: those of a namespace and of all within it.

        A table's own properties come first, then those of its namespace, and of the namespaces around it.

        Args:
            namespace: Its name; by default the whole warehouse.
            defaults: Properties ``maintain…`` where neither a table nor a namespace says so.

        Returns:
            A row for each task: ``table``, and what ``table.inspect.due`` has. A table that cannot be asked has one row
            with the task ``repair``, and the reason.

        Raises:
            NotFound: There is no such namespace.
            InvalidArgument: A default cannot be meant.
            StorageError: The store of the warehouse fails.

        Example:
            >>> catalog = fuse.catalog("memory://catalog-due", create=True)
            >>> table = catalog.create_table("orders", "id BIGINT")
            >>> for number in range(6):
            ...     snapshot = table.append([{"id": number}])
            >>> catalog.due().select(["table", "task"]).to_pylist()
            [{'table': 'orders', 'task': 'compact'}]
        """
        kept = kept_tables(self, namespace, defaults, asked=True)
        with ThreadPoolExecutor(_THREADS, "fuse-due") as threads:
            problems = list(threads.map(KeptTable.try_look, kept))
        rows = [{"table": each.name, **task.to_dict()} for each in kept for task in each.due]
        told = [(each.name, str(problem)) for each, problem in zip(kept, problems, strict=True) if problem is not None]
        rows += [{"table": name, "task": "repair", "why": why, "bytes": 0, "excess": 0.0} for name, why in told]
        return pa.Table.from_pylist(sorted(rows, key=lambda row: (-row["excess"], row["bytes"])), _DUE_SCHEMA)

    def maintain(
        self,
        namespace: str | Sequence[str] = (),
        budget: timedelta | str | None = None,
        max_bytes: int | None = None,
        only: Sequence[str] | None = None,
        *,
        dry_run: bool = False,
        defaults: Mapping[str, str] | None = None,
    ) -> pa.Table:
        """Do what ``due`` tells, the worst first, at tables with the property ``maintain``, or in a namespace with it.

        Others are left alone. What fails at a table is told, and leaves the others; any number may run at once.

        Args:
            namespace: Whose tables, and those of all within it; by default the whole warehouse.
            budget: As for ``table.maintenance.run``, and so the following.
            max_bytes: Of all tables together.
            only: Which tasks.
            dry_run: Only tell what would be done first.
            defaults: As for ``due``: ``{"maintain": "on"}`` keeps all tables that do not say otherwise.

        Returns:
            A row for each step, as ``table.maintenance.run`` gives them.

        Raises:
            NotFound: There is no such namespace.
            InputError: A limit is none, or there is no such task.
            InvalidArgument: A default cannot be meant.
            StorageError: The store of the warehouse fails.

        Example:
            >>> catalog = fuse.catalog("memory://catalog-maintain", create=True)
            >>> table = catalog.create_table("orders", "id BIGINT", properties={"maintain": "on"})
            >>> for number in range(6):
            ...     snapshot = table.append([{"id": number}])
            >>> catalog.maintain().select(["table", "task", "outcome"]).to_pylist()
            [{'table': 'orders', 'task': 'compact', 'outcome': 'done'}]
        """
        duration = None if budget is None else parse_duration(budget, "budget")
        limits = RunLimits.of(duration, max_bytes, only, dry_run)
        kept = kept_tables(self, namespace, defaults)
        return done_table(Maintainer(kept, limits).run())


def kept_tables(
    catalog: TablesMixin,
    namespace: str | Sequence[str] = (),
    defaults: Mapping[str, str] | None = None,
    asked: bool = False,
) -> list[KeptTable]:
    """List the tables of a namespace and of all within it, with what their namespaces say of upkeep.

    ``asked``: whether tables of which nobody says so are kept, too. Raises NotFound, InvalidArgument, StorageError.
    """
    check_defaults(defaults or {})
    state = catalog.warehouse.state()
    within = storage.parse_identifier(namespace) if namespace else ()
    return [
        KeptTable(
            table.name,
            partial(catalog.load_table, table.identifier),
            {**(defaults or {}), **_defaults(state, table.identifier)},
            asked,
        )
        for table in _all_tables(state, within)
    ]


def check_defaults(defaults: Mapping[str, Any]) -> None:
    """Check properties that hold where nobody says so. Raises InvalidArgument, for a name that is none, too."""
    MaintenancePolicy.from_properties(defaults)
    if unknown := [name for name in defaults if name not in MAINTENANCE_PROPERTIES]:
        near = difflib.get_close_matches(unknown[0], MAINTENANCE_PROPERTIES, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(MAINTENANCE_PROPERTIES)}"
        raise InvalidArgument(f"{unknown[0]!r} is no default of upkeep: {hint}")


def _all_tables(state: CatalogState, namespace: Identifier) -> Iterator[CatalogTable]:
    yield from tables_within(state, namespace)
    for inner in namespaces_within(state, namespace):
        yield from _all_tables(state, inner.identifier)


def _defaults(state: CatalogState, identifier: Identifier) -> dict[str, str]:
    """What the namespaces around a table say of its upkeep: the nearest decides."""
    found: dict[str, str] = {}
    for depth in range(1, len(identifier)):
        found |= state.find_namespace(identifier[:depth]).properties
    return {name: value for name, value in found.items() if name in MAINTENANCE_PROPERTIES}
