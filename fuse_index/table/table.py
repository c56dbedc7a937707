"""The table with its indexes that users open. Everything here hands on to the modules that know how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any

from fuse_index.after_commit import after_commit
from fuse_index.clustering.report import ClusteringMixin
from fuse_index.errors import InputError
from fuse_index.export.mixin import ExportMixin
from fuse_index.table.accounts.explain import ExplainedTable
from fuse_index.table.arguments import check_public_methods
from fuse_index.table.former_names import former_method
from fuse_index.table.inspection.card import table_facts, table_sections
from fuse_index.table.refs import RefsMixin
from fuse_index.table.report.mixin import ReportMixin
from fuse_index.table.schema.settings import SchemaMixin
from fuse_index.table.sources import SourcesMixin
from fuse_index.table.tier import TierMixin
from fuse_storage import Snapshot, StoredTable, show_card, show_line

_INNER = frozenset(
    (
        *("changing", "deleting", "merge_spec", "merging", "overwriting", "updating"),
        *("context", "engine", "host", "pinned", "row_store", "stored", "with_tail"),
    )
)
"""Names that engines go on with, which are not offered after a dot."""

if TYPE_CHECKING:
    from fuse_index.hot.producer import Producer
    from fuse_index.table.inspection.inspect import Inspect
    from fuse_index.table.maintenance import Maintenance


@check_public_methods
class Table(
    RefsMixin,
    SchemaMixin,
    ReportMixin,
    SourcesMixin,
    ExplainedTable,
    ClusteringMixin,
    TierMixin,
    ExportMixin,
):
    """One snapshot of a table, and the way to its next one.

    A handle reads the snapshot that it was opened at, and what it changes is what it reads: a change of rows, columns
    or keys is a Conflict with commits after that snapshot that matter to it (appends never are). A commit through a
    handle moves it to the snapshot that the commit made, ``refresh`` to the head. Compaction, clustering and indexes
    are about what is there by then. ``pinned``: it was opened at an older state, and stays there.

    ``table.inspect`` shows metadata, ``table.maintenance`` is upkeep, and ``table.explain`` says what would be read;
    rows, columns, indexes, branches and tags are here.
    """

    def __repr__(self) -> str:
        facts = {**table_facts(self), "columns": self.schema.names, "indexes": list(self.snapshot.definitions)}
        return show_line("Table", facts, self.name or self.stored.store.url)

    def _repr_html_(self) -> str:
        place = {"table": self.name, "at": self.stored.store.url}
        return show_card("Table", {**place, **table_facts(self)}, table_sections(self))

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if name not in _INNER]

    @property
    def inspect(self) -> Inspect:
        """What there is to see of the table's metadata: commits, blocks, columns, indexes, partitions and refs.

        Example:
            >>> fuse.create_table("memory://table-inspect", "id BIGINT").inspect.columns().column("name").to_pylist()
            ['id']
        """
        from fuse_index.table.inspection.inspect import Inspect

        return Inspect(self)

    @property
    def maintenance(self) -> Maintenance:
        """Upkeep of the table: ``compact``, ``recluster``, ``tier``, ``vacuum``, and indexes kept and verified.

        Example:
            >>> table = fuse.create_table("memory://table-maintenance", "id BIGINT")
            >>> table.maintenance.compact().operation
            'create'
        """
        from fuse_index.table.maintenance import Maintenance

        return Maintenance(self)

    if not TYPE_CHECKING:  # so that mypy knows what is no longer there

        def __new__(cls, stored: Any = None, *_: Any, **__: Any) -> Table:
            if isinstance(stored, str | PathLike):
                raise InputError(f"a table is opened by open_table({str(stored)!r}), and made by create_table")
            return super().__new__(cls)

        def __getattr__(self, name: str) -> Callable[..., Any]:
            return former_method(self, name)

    def _move_on(self, head: StoredTable, done: StoredTable) -> Snapshot:
        snapshot = super()._move_on(head, done)
        if done is not head:
            self.stored = after_commit(done, host=self.host)
        return snapshot

    def _move_to(self, stored: StoredTable) -> Snapshot:
        before, snapshot = self.stored, super()._move_to(stored)
        if stored is not before:
            self.stored = after_commit(stored, host=self.host)
        return snapshot

    def producer(self, linger: float = 0.5, rows: int = 10_000, application: str | None = None) -> Producer:
        """Batch what threads ``send`` into hot commits. Use it in a ``with``: leaving it commits what is left.

        Args:
            linger: Seconds between two commits, at least.
            rows: How many rows are committed sooner.
            application: Its name, by which a batch whose commit got no answer is not committed twice.

        Returns:
            A ``Producer``, whose ``send`` any thread may call.

        Raises:
            InputError: A number is out of its range.
            ReadOnly: The handle only reads.

        Example:
            >>> table = fuse.create_table("memory://producer", "id BIGINT")
            >>> with table.producer(linger=0.01) as producer:
            ...     future = producer.send([{"id": 1}])
            >>> future.result() == table.refresh().version, table.count()
            (True, 1)
        """
        from fuse_index.hot.producer import Producer

        self._check_writable()
        return Producer(replace(self), linger, rows, application)
