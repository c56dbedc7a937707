"""The changes of each commit between two snapshots, with its number and time: for whoever keeps a copy in step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import pyarrow as pa

import fuse_storage as storage
from fuse_index.changes.columns import CHANGE_COLUMNS, CHANGE_TYPE, COMMIT_TIMESTAMP, COMMIT_VERSION

if TYPE_CHECKING:
    import pandas

NetChanges = Callable[[storage.StoredTable, storage.StoredTable], Iterator[pa.RecordBatch]]
"""The net changes between two states of a table."""


@dataclass(frozen=True)
class ChangesByCommit:
    """The changes of each commit between two snapshots, oldest first, of which nothing is read yet.

    Rows have the columns of net changes, ``net_schema``, and those of the commit that made them: ``_commit_version``,
    its number, and ``_commit_timestamp``. A row that came in one commit and went in another is there twice.
    ``with_tail``: whether hot rows come with their commits; else with the one that tiers them.
    """

    before: storage.StoredTable
    after: storage.StoredTable
    net_schema: pa.Schema
    net_changes: NetChanges
    with_tail: bool = True

    def validate(self) -> ChangesByCommit:
        """Check that these changes can be told; returns itself. Raises SchemaError."""
        for name in (COMMIT_VERSION, COMMIT_TIMESTAMP):
            if name in self.net_schema.names:
                raise storage.SchemaError(
                    f"the table has a column {name!r}, which is what commits are told by: rename it"
                )
        return self

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of net changes, in which each may be NULL that was so at any commit, and those of the commit."""
        rows = [field if field.name == CHANGE_TYPE else field.with_nullable(True) for field in self.net_schema]
        return pa.schema([*rows, *(CHANGE_COLUMNS.field(name) for name in (COMMIT_VERSION, COMMIT_TIMESTAMP))])

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the changes, commit after commit. Raises NotFound if one of the states between was collected."""
        for before, after in pairwise(self._states()):
            if after.snapshot.same_rows and self.with_tail:
                continue
            version, timestamp = after.snapshot.version, after.snapshot.timestamp
            for batch in self.net_changes(before, after):
                told = [
                    pa.repeat(pa.scalar(value, self.schema.field(name).type), len(batch))
                    for name, value in ((COMMIT_VERSION, version), (COMMIT_TIMESTAMP, timestamp))
                ]
                yield pa.record_batch([*batch.columns, *told], schema=self.schema)

    def to_arrow(self) -> pa.Table:
        return pa.Table.from_batches(list(self.to_batches()), self.schema)

    def to_pandas(self) -> pandas.DataFrame:
        return self.to_arrow().to_pandas()

    def count(self) -> int:
        """Count the rows that ``to_batches`` gives."""
        return sum(batch.num_rows for batch in self.to_batches())

    def _states(self) -> list[storage.StoredTable]:
        """The states from the earlier to the later snapshot, oldest first."""
        states = [self.after]
        while states[-1].snapshot.id != self.before.snapshot.id:
            states.append(storage.state_before(states[-1]))
        return [state if self.with_tail else state.without_tail() for state in reversed(states)]
