"""Indexes of a table: created, refreshed, rebuilt, planned as tasks, and dropped.

In: an index by its name, its kind and what it is on. Out: the snapshot that has it, or what is known of it.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from fuse_index.errors import DefinitionError
from fuse_index.handle import TableHandle, move_on, naming_left_out, writable_head
from fuse_index.indexes.define import define_index
from fuse_index.indexes.definition import IndexDefinition, UnavailableIndex, load_definitions
from fuse_index.indexes.registry import Host
from fuse_index.operations import build_index
from fuse_index.operations.build_index import ProgressCallback
from fuse_storage import Snapshot, StoredTable


class IndexesMixin(TableHandle):
    """The part of ``fuse_index.Table`` that makes and drops indexes."""

    def create_index(
        self, name: str, kind: str, columns: Sequence[str], build: bool = True, **options: Any
    ) -> Snapshot:
        """Define an index, and index the blocks that are there. New blocks are indexed as they come.

        Args:
            name: Of the index, as ``explain`` and ``drop_index`` call it.
            kind: Which kind, such as ``"bloom"`` or ``"full_text"``; ``fuse-index plugins`` lists them.
            columns: Names, or terms such as ``lower(email)``.
            build: False leaves the blocks that are there to ``table.maintenance.refresh_index``.
            options: Of the kind.

        Returns:
            The snapshot that the table reads then.

        Raises:
            DefinitionError: There is an index of this name, no such kind, or the kind refuses the columns or options.
            WhereError: A term is none.
            BuildError: A block could not be indexed.
            Conflict: Somebody else just took the name.
            ReadOnly: The handle only reads.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://create-index", "id BIGINT, email STRING")
            >>> snapshot = table.append([{"id": 1, "email": "Ann@example.com"}])
            >>> snapshot = table.create_index("by_email", "bloom", ["lower(email)"], fpp=0.001)
            >>> [vote.reason.value for vote in table.explain("lower(email) = 'bob@example.com'").votes]
            ['USED']
        """
        head = self._writable_head()
        if name in head.snapshot.definitions:
            raise DefinitionError(f"there is an index {name!r} already: drop it first, or choose another name")
        with naming_left_out(head.snapshot, str(columns)):
            definition = define_index(name, kind, columns, options, head.snapshot.schema, self.engine)
        transaction = head.transaction().add_index(name, definition.content)
        self._move_to(transaction.commit("create index", summary={"index": name, "kind": kind}))
        return refresh_indexes(self, name) if build else self.snapshot

    def drop_index(self, name: str) -> Snapshot:
        """Forget an index. Only metadata changes; its files stay for older snapshots.

        Args:
            name: Which index.

        Returns:
            The snapshot that the table reads then.

        Raises:
            DefinitionError: There is no such index; a near name is said.
            Conflict: This handle's snapshot has another index of this name than there is now.
            ReadOnly: The handle only reads.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://drop-index", "id BIGINT")
            >>> snapshot = table.create_index("by_id", "bloom", ["id"])
            >>> list(table.drop_index("by_id").definitions)
            []
        """
        head = self._writable_head()
        seen = self.stored if name in self.snapshot.definitions else head
        find_index(seen, self.host, name)
        dropped = seen.transaction().drop_index(name).commit("drop index", summary={"index": name})
        return self._move_on(seen, dropped)


def refresh_indexes(
    table: TableHandle,
    name: str | None = None,
    processes: int = 1,
    progress: ProgressCallback | None = None,
    *,
    strict: bool = False,
) -> Snapshot:
    """Index what an index lacks of a table's head, and move the table there; see ``Maintenance.refresh_index``."""
    head = writable_head(table)
    done = head
    for definition in (
        [usable_definition(head, table.host, name)]
        if name is not None
        else _usable_definitions(head.snapshot, table.host)
    ):
        tasks = build_index.plan_refresh(done, definition, table.host, processes, strict)
        done = build_index.run_build_tasks(done, tasks, processes, progress)
    return move_on(table, head, done)


def rebuild_index(
    table: TableHandle,
    name: str,
    processes: int = 1,
    progress: ProgressCallback | None = None,
    *,
    strict: bool = False,
) -> Snapshot:
    """Index all of a table's head anew, and move the table there; see ``Maintenance.rebuild_index``."""
    head = writable_head(table)
    tasks = build_index.plan_rebuild(head, find_index(head, table.host, name), table.host, processes, strict)
    stored = tasks[0].table if tasks else head.refresh()  # it may have a new definition, and no blocks
    return move_on(table, head, build_index.run_build_tasks(stored, tasks, processes, progress, must_build=True))


def plan_index_tasks(
    table: TableHandle, name: str, rebuild: bool = False, processes: int = 1
) -> list[build_index.BuildTask]:
    """Plan ``refresh_indexes`` or, with ``rebuild``, ``rebuild_index`` as tasks for about so many processes.

    Spark's executors run the tasks (``build_index.run_build_task``). Raises as they do.
    """
    head = writable_head(table)
    if rebuild:
        return build_index.plan_rebuild(head, find_index(head, table.host, name), table.host, processes)
    return build_index.plan_refresh(head, usable_definition(head, table.host, name), table.host, processes)


def usable_definition(stored: StoredTable, host: Host, name: str) -> IndexDefinition:
    """Find an index that can be used here. Raises DefinitionError, saying why it cannot."""
    definition = find_index(stored, host, name)
    if isinstance(definition, UnavailableIndex):
        refusal = definition.refusal
        raise DefinitionError(f"index {name!r} cannot be used here: {refusal.detail or refusal.reason}")
    return definition


def find_index(stored: StoredTable, host: Host, name: str) -> IndexDefinition | UnavailableIndex:
    """Find an index by its name. Raises DefinitionError naming a near name, or all."""
    for definition in load_definitions(stored.snapshot, host):
        if definition.name == name:
            return definition
    near_names = difflib.get_close_matches(name, stored.snapshot.definitions, 1)
    hint = (
        f"did you mean {near_names[0]!r}?"
        if near_names
        else f"the table has {', '.join(stored.snapshot.definitions) or 'none'}"
    )
    raise DefinitionError(f"no index {name!r}: {hint}")


def _usable_definitions(snapshot: Snapshot, host: Host) -> list[IndexDefinition]:
    definitions = load_definitions(snapshot, host)
    return [definition for definition in definitions if isinstance(definition, IndexDefinition)]
