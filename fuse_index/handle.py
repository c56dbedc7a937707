"""What all operations on an open table share: one snapshot, the kinds that are installed, and how conditions are meant.

In: a stored table, a ``Host`` and a ``Context``. Out: ``TableHandle``, the base of every part of ``fuse_index.Table``.
Knows no operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

import pyarrow as pa

import fuse_storage as storage
from fuse_index.expressions.normalize import normalize
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.registry import Host
from fuse_index.predicate import Context, Predicate
from fuse_index.sql.parse import parse_predicate
from fuse_storage import ReadOnly, Snapshot


@dataclass
class TableHandle:
    """One snapshot of a table, and the way to its next one.

    A handle reads the snapshot that it was opened at; a write through it moves it to the snapshot that the write made.
    ``pinned``: it was opened at an older state, and stays there.
    """

    stored: storage.StoredTable
    host: Host
    context: Context = field(default_factory=Context)
    pinned: bool = False

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot this handle reads."""
        return self.stored.snapshot

    @property
    def engine(self) -> Engine:
        """The installed kinds and functions, and how conditions are meant."""
        return Engine(self.host, self.context)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the snapshot, as an Arrow schema without metadata of ours."""
        return self.snapshot.schema.arrow

    def refresh(self) -> Self:
        """Move to the newest snapshot of the branch, if this handle is not pinned to an older one."""
        if not self.pinned:
            self.stored = self.stored.refresh()
        return self

    def _check_writable(self) -> None:
        """Raises ReadOnly for a handle of an older state, and for one of a store that is only read."""
        if self.pinned:
            raise ReadOnly(
                f"this handle reads snapshot {self.snapshot.id} as it was: open the table without at= to change it"
            )
        if isinstance(self.stored.store, storage.ReadOnlyStore):
            raise ReadOnly(
                f"{self.stored.store.url} was opened to be read only: open it without read_only to change it"
            )

    def _begin_write(self) -> None:
        """Move to the head, which is what a change is based on. Raises as ``_check_writable``."""
        self._check_writable()
        self.refresh()

    def _move_to(self, stored: storage.StoredTable) -> Snapshot:
        self.stored = stored
        return self.snapshot

    def _stored_at(self, at: str | datetime | None, branch: str | None = None) -> storage.StoredTable:
        """The table at a snapshot id, tag or time, by default at the head of its branch. Raises NotFound."""
        return storage.StoredTable.open(self.stored.store, branch=branch or self.stored.branch, at=at)

    def _predicate(self, where: str | Predicate | None) -> Predicate | None:
        """The condition, normalised; of SQL text, with columns of this snapshot. Raises WhereError."""
        if where is None:
            return None
        if isinstance(where, Predicate):
            return normalize(where, self.context)
        return parse_predicate(where, self.snapshot.schema, self.context, self.host.functions)

    def _column_names(self, names: Sequence[str]) -> tuple[str, ...]:
        """The columns as the table spells them. Raises SchemaError for a name that is unknown, or given twice."""
        spelled = [self.snapshot.schema.find([name], self.context.case_sensitive).name for name in names]
        if twice := [name for place, name in enumerate(spelled) if name in spelled[:place]]:
            raise storage.SchemaError(f"column {twice[0]!r} is asked for twice: name it once")
        return tuple(spelled)
