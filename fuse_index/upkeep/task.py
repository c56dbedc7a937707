"""One thing that is due at a table, and what tells whether it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from fuse_index.indexes.definition import IndexDefinition, UnavailableIndex
from fuse_index.indexes.registry import Host
from fuse_storage import MaintenancePolicy, StoredTable, upkeep_record

REPAIR = "repair"
"""The task of an index that cannot be used: it is told, and nobody does it."""

DUE_SCHEMA = pa.schema(
    [
        ("task", pa.string()),
        ("index", pa.string()),
        ("why", pa.string()),
        ("bytes", pa.int64()),
        ("gain", pa.string()),
        ("excess", pa.float64()),
        ("since", pa.timestamp("us", "UTC")),
    ]
)


@dataclass(frozen=True, slots=True)
class DueTask:
    """One thing that is to be done.

    ``index``: which, where it is about one. ``bytes``: of files of rows that are to be read, and written again where
    they are rewritten. ``gain``: what will be better, for people. ``excess``: how many times the policy's limit it is;
    the greatest comes first. ``since``: when it became due or, if that is not known, when what it is about came.
    """

    task: str
    why: str
    bytes: int
    gain: str
    excess: float
    index: str | None = None
    since: datetime | None = None

    def to_dict(self) -> dict[str, Any]:
        """The task as a row of ``DUE_SCHEMA``."""
        return {name: getattr(self, name) for name in DUE_SCHEMA.names}


@dataclass(frozen=True, slots=True)
class UpkeepContext:
    """What tells whether a task is due: a state of a table, its indexes, usable or not, limits and the time."""

    table: StoredTable
    host: Host
    policy: MaintenancePolicy
    now: datetime
    definitions: tuple[IndexDefinition, ...]
    broken: tuple[UnavailableIndex, ...] = ()

    def is_of_no_use(self, record: str) -> bool:
        """Whether the task of this record was tried, and gained nothing, since the last block came."""
        tried = upkeep_record(self.table.snapshot, record)
        return tried is not None and int(self.table.segments().added_by.max(initial=0)) <= tried


Finder = Callable[[UpkeepContext], Iterable[DueTask]]
"""Finds the tasks of one kind that are due."""


def total_bytes(sizes: Any, chosen: Any) -> int:
    """The bytes of some blocks. ``sizes``: int64, shape (blocks,); ``chosen``: int64, shape (n,), their numbers."""
    return int(np.asarray(sizes)[np.asarray(chosen, np.int64)].sum())
