"""A table of a warehouse that is made anew under its own history, and keeps its name and its place."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import fuse_storage as storage
from fuse_index.after_commit import after_commit
from fuse_index.table.table import Table
from fuse_storage import CatalogTable, FormatError, NotFound, ReadOnly, Shown, Snapshot, UpdateTable, Warehouse


class _Loader(Protocol):
    """A catalogue, as far as it knows tables by name."""

    warehouse: Warehouse

    def find_table(self, identifier: str | Sequence[str]) -> CatalogTable: ...

    def load_table(self, identifier: str | Sequence[str]) -> Table: ...


def begin_replacement(
    catalog: _Loader, identifier: str | Sequence[str], fresh: Snapshot, about: Mapping[str, str]
) -> Replacement | None:
    """Begin to make a table anew under its own history; None if there is none that could go on with it.

    ``fresh``: the first snapshot of the new table. ``about``: what the warehouse is to say of it. Raises StorageError.
    """
    try:
        named, table = catalog.find_table(identifier), catalog.load_table(identifier)
        table.snapshot.check_writable()
    except (NotFound, FormatError, ReadOnly):  # there is none, or it is damaged or too new: another takes its place
        return None
    if not storage.can_be_replaced(table.stored, fresh):
        return None
    staged = dataclasses.replace(table, stored=storage.stage_replacement(table.stored, fresh))
    return Replacement(catalog.warehouse, named, table, staged, about)


@dataclass(repr=False)
class Replacement(Shown):
    """What a table is to become: rows can be written to ``table``, and others see them once it is committed.

    ``table``: a handle of the branch on which it is prepared, and after ``commit`` of the table itself. ``replaced``:
    the table as it was. ``named``: what the warehouse knew of it. ``about``: what it is to say of it.
    """

    _offered = "abort commit table replaced"

    warehouse: Warehouse
    named: CatalogTable
    replaced: Table
    table: Table
    about: Mapping[str, str]

    def _facts(self) -> Mapping[str, Any]:
        return {"name": self.named.name, "replaced version": self.replaced.version, "columns": self.table.schema.names}

    def commit(self) -> None:
        """Make it the next version of the table, whatever others did to it meanwhile.

        Raises Conflict if the table was dropped or renamed, StorageError; then nothing was changed.
        """
        branch = self.table.stored
        try:
            storage.same_table(self.warehouse.state(), self.named)
            self.table.stored = storage.commit_replacement(self.replaced.stored, branch)
        except storage.CommitUnknown:
            raise
        except storage.StorageError:
            storage.abort_replacement(branch)
            raise
        after_commit(self.table.stored)
        if dict(self.named.properties) != dict(self.about):
            old = tuple(name for name in self.named.properties if name not in self.about)
            update = UpdateTable(self.named.id, self.named.identifier, dict(self.about), old)
            self.warehouse.commit(lambda state: [update])

    def abort(self) -> None:
        """Give up what was prepared; the table stays as it was."""
        storage.abort_replacement(self.table.stored)
