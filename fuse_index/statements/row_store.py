"""How a table keeps its rows: what its two ways have in common, and how a statement on either ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fuse_index.after_commit import after_commit
from fuse_index.hot.append import Committed
from fuse_index.operations.merge_clauses import MergeClauseSpec
from fuse_index.statements.jobs import StatementJobsMixin
from fuse_storage import Snapshot, StoredTable

MergeClauseSpecs = tuple[MergeClauseSpec, MergeClauseSpec, MergeClauseSpec]
"""What becomes of rows that match, of others of the source, and of others of the table."""


@dataclass(frozen=True)
class RowStore:
    """The rows of the snapshot that a handle reads: a heap (``HeapRows``), or one for each primary key (``KeyedRows``).

    Both have the same statements, each at most one commit; the method of ``Table`` of that name says what it takes and
    raises. ``conform`` gives rows that are to be appended the table's types, ``writes`` says what is written for rows
    that change, and ``by_key`` gives the rows by their primary key, or raises InputError, which names a method, where
    there is none.
    """

    table: StatementJobsMixin
    rewrites_blocks: ClassVar[bool]
    """Whether statements rewrite blocks, each by itself, so that tasks can share the work."""
    may_lack_columns: ClassVar[bool]
    """Whether rows that come may lack columns, which then stay as they are."""
    key_argument: ClassVar[str]
    """The argument of ``create_table`` that declares the table's key, and the property by which Spark shows it."""

    @property
    def stored(self) -> StoredTable:
        return self.table.stored

    @property
    def snapshot(self) -> Snapshot:
        return self.table.snapshot

    @property
    def _nothing(self) -> Committed:
        return Committed(self.stored, self.stored)

    def _committed(self, done: StoredTable) -> Committed:
        """End in a commit that is not hot, if it is one."""
        return Committed(done, after_commit(done, host=self.table.host) if done is not self.stored else done)
