"""What all operations on an open table share: one snapshot, the kinds that are installed, and how conditions are meant.

In: a stored table, a ``Host`` and a ``Context``. Out: ``TableHandle``, the base of every part of ``fuse_index.Table``.
Knows no operation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

import pyarrow as pa

import fuse_storage as storage
from fuse_index.display.arrow import show_arrow_in_notebooks
from fuse_index.errors import WhereError
from fuse_index.expressions.constant_folding import fold_constants
from fuse_index.expressions.depth import open_chains
from fuse_index.expressions.evaluable import check_evaluable, check_literals
from fuse_index.expressions.normalize import normalize
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.registry import Host
from fuse_index.predicate import Context, Predicate
from fuse_index.sql.parse import parse_predicate
from fuse_storage import ReadOnly, Snapshot, TableUrl


@dataclass(repr=False)
class TableHandle:
    """One snapshot of a table, and the way to its next one.

    A handle reads the snapshot that it was opened at, and what it changes is what it reads: others' commits after that
    are met by the commit, which goes together with them or raises Conflict. A commit through it moves it to the
    snapshot that the commit made, and ``refresh`` to the head; nothing else does. ``pinned``: it was opened at an older
    state, and stays there. ``with_tail``: whether it reads rows that are not tiered yet. ``name``: the one by
    which a catalogue opened it; None where it was opened by its place.
    """

    stored: storage.StoredTable
    host: Host
    context: Context = field(default_factory=Context)
    pinned: bool = False
    with_tail: bool = True
    name: str | None = None

    def __post_init__(self) -> None:
        show_arrow_in_notebooks()

    @property
    def snapshot(self) -> Snapshot:
        """The snapshot this handle reads.

        Example:
            >>> fuse.create_table("memory://table-snapshot", "id BIGINT").snapshot.operation
            'create'
        """
        return self.stored.snapshot

    @property
    def engine(self) -> Engine:
        """The installed kinds and functions, and how conditions are meant."""
        return Engine(self.host, self.context)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the snapshot, as an Arrow schema without metadata of ours.

        Example:
            >>> fuse.create_table("memory://table-schema", "id BIGINT, name STRING").schema.names
            ['id', 'name']
        """
        return self.snapshot.schema.arrow

    def refresh(self) -> Self:
        """Move to the newest snapshot of the branch, if this handle is not pinned to an older one.

        Returns:
            The handle itself.

        Raises:
            NotFound: The branch was dropped meanwhile.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://refresh", "id BIGINT")
            >>> snapshot = fuse.open_table("memory://refresh").append([{"id": 1}])
            >>> table.count(), table.refresh().count()
            (0, 1)
        """
        if not self.pinned:
            self.stored = self.stored.refresh()
        return self

    def _check_writable(self) -> None:
        """Raise ReadOnly for a handle of an older state, and for one of a store that is only read."""
        if self.pinned:
            raise ReadOnly(
                f"this handle reads snapshot {self.snapshot.id} as it was: open the table without at= to change it, "
                f"and without version= and tail="
            )
        if isinstance(self.stored.store, storage.ReadOnlyStore):
            raise ReadOnly(
                TableUrl(self.stored.store.url) + " was opened to be read only: open it without read_only to change it"
            )

    def _check_whole(self) -> None:
        """Raise ReadOnly for a handle that leaves rows out: what is named or copied of it would lack them."""
        if not self.with_tail:
            raise ReadOnly(
                "this handle of "
                + TableUrl(self.stored.store.url)
                + " leaves out rows that are not tiered yet: open the table "
                "without tail= to name or copy a snapshot"
            )

    def _writable_head(self) -> storage.StoredTable:
        """Open the head, for work on whatever is there, such as compaction; this handle stays where it is.

        Raises as ``_check_writable``.
        """
        self._check_writable()
        return self.stored.refresh()

    def _move_on(self, head: storage.StoredTable, done: storage.StoredTable) -> Snapshot:
        """Move to where work that began at ``head`` ended, if it committed anything; give the snapshot that is read."""
        if done is not head:
            self.stored = done
        return self.snapshot

    def _move_to(self, stored: storage.StoredTable) -> Snapshot:
        self.stored = stored
        return self.snapshot

    def _stored_at(self, at: str | int | datetime | None, branch: str | None = None) -> storage.StoredTable:
        """Open the table at a snapshot id, tag or time, by default at the head of its branch. Raises NotFound."""
        chosen = self.stored.branch if branch is None else branch
        stored = storage.StoredTable.open(self.stored.store, branch=chosen, at=at)
        return stored if self.with_tail else stored.without_tail()

    def _predicate(self, where: str | Predicate | None) -> Predicate | None:
        """Resolve a condition that is to be evaluated here. Raises as ``resolve_evaluable``."""
        return resolve_evaluable(where, self.snapshot, self.engine)

    def _column_names(self, names: Sequence[str]) -> tuple[str, ...]:
        """Spell columns as this snapshot does. Raises as ``resolve_column_names``."""
        return resolve_column_names(names, self.snapshot, self.context)


def writable_head(table: TableHandle) -> storage.StoredTable:
    """Open the head of a table's branch, for work on whatever is there; the table stays. Raises ReadOnly."""
    return table._writable_head()  # noqa: SLF001  # what stands beside the class


def move_on(table: TableHandle, head: storage.StoredTable, done: storage.StoredTable) -> Snapshot:
    """Move a table to where work that began at ``head`` ended, if it committed anything; return what it reads then."""
    return table._move_on(head, done)  # noqa: SLF001  # what stands beside the class


def resolve_predicate(where: str | Predicate | None, snapshot: Snapshot, engine: Engine) -> Predicate | None:
    """Normalise a condition, or parse one that is SQL text, with the columns of a snapshot.

    Raises WhereError, and InputError for a constant that its type cannot hold.
    """
    if where is None:
        return None
    if isinstance(where, Predicate):
        check_literals(where := open_chains(where))
        return normalize(fold_constants(where, engine.context, engine.functions), engine.context)
    with naming_left_out(snapshot, where):
        return parse_predicate(where, snapshot.schema, engine.context, engine.functions)


@contextmanager
def naming_left_out(snapshot: Snapshot, text: str) -> Iterator[None]:
    """Add to a WhereError about a text why a column of the source that it names is none of the table's."""
    try:
        yield
    except WhereError as error:
        for name, reason in ((snapshot.source or {}).get("left_out") or {}).items():
            if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text):
                was = "has no votes here" if snapshot.votes_only else "was left out when the table was attached"
                raise WhereError(f"{error}\n{name!r} {was}: {reason}") from error
        raise


def resolve_evaluable(where: str | Predicate | None, snapshot: Snapshot, engine: Engine) -> Predicate | None:
    """Resolve a condition that is to be evaluated here. Raises OpaqueError, and as ``resolve_predicate``."""
    predicate = resolve_predicate(where, snapshot, engine)
    if predicate is not None:  # else nobody asks which functions are installed
        check_evaluable(predicate, engine.context, engine.functions)
    return predicate


def resolve_column_names(names: Sequence[str], snapshot: Snapshot, context: Context) -> tuple[str, ...]:
    """Spell columns as a snapshot does. Raises SchemaError for a name that is unknown, or given twice."""
    spelled = [snapshot.schema.find([name], context.case_sensitive).name for name in names]
    if repeated := [name for index, name in enumerate(spelled) if name in spelled[:index]]:
        raise storage.SchemaError(f"column {repeated[0]!r} is asked for twice: name it once")
    return tuple(spelled)
