"""What a statement asks of the way in which a table keeps its rows, and where it ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from fuse_index.hot.append import Committed
from fuse_index.operations.merge_clauses import MergeClauseSpec
from fuse_index.predicate import Predicate

if TYPE_CHECKING:
    from fuse_index.statements.keyed_rows import KeyedRows


class RowStore(Protocol):
    """The rows of a table: a heap (``HeapRows``), or at most one for each primary key (``KeyedRows``).

    Each statement is one commit, or none where there is nothing to do. The method of ``Table`` of the same name says
    what it takes and raises.
    """

    rewrites_blocks: bool
    """Whether statements rewrite blocks, each by itself, so that tasks can share the work."""
    may_lack_columns: bool
    """Whether rows that come may lack columns, which then stay as they are."""

    def by_key(self, method: str) -> KeyedRows:
        """Give the rows by their primary key. Raises InputError, which names the method, where there is none."""
        ...

    def conform(self, data: Any) -> pa.Table:
        """Give rows that are to be appended the table's types. Raises SchemaError, InputError."""
        ...

    def append(
        self, data: Any, application: tuple[str, int] | None, hot: bool | None, *, strict: bool, merge_schema: bool
    ) -> Committed: ...

    def delete(self, where: str | Predicate) -> Committed: ...

    def update(self, where: str | Predicate | None, setters: Mapping[str, Any]) -> Committed: ...

    def overwrite(self, data: Any, where: str | Predicate | None, *, merge_schema: bool) -> Committed: ...

    def merge(
        self,
        source: Any,
        on: Sequence[str] | None,
        clauses: tuple[MergeClauseSpec, MergeClauseSpec, MergeClauseSpec],
        *,
        merge_schema: bool,
    ) -> Committed: ...
