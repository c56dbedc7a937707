"""Indexes of a table: created, refreshed, rebuilt, verified, described and dropped.

In: an index by its name, its kind and what it is on. Out: the snapshot that has it, or what is known of it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from fuse_index.errors import DefinitionError
from fuse_index.handle import TableHandle
from fuse_index.indexes.builder import IndexBuilder, index_builders
from fuse_index.indexes.define import define_index
from fuse_index.indexes.definition import IndexDefinition, UnavailableIndex, load_definitions
from fuse_index.operations import build_index
from fuse_index.operations.build_index import ProgressCallback
from fuse_index.operations.verify_index import Verification, check_index
from fuse_index.table import describe_indexes
from fuse_storage import Snapshot, StoredTable


class IndexesMixin(TableHandle):
    """The part of ``fuse_index.Table`` that makes and keeps indexes."""

    def create_index(
        self, name: str, kind: str, columns: Sequence[str], build: bool = True, **options: Any
    ) -> Snapshot:
        """Define an index, and with ``build`` index the blocks that are there. New blocks are indexed as they come.

        ``columns``: names, or terms such as ``lower(email)``. Raises DefinitionError or WhereError for what cannot be,
        Conflict if somebody else just took the name.
        """
        head = self._writable_head()
        if name in head.snapshot.definitions:
            raise DefinitionError(f"there is an index {name!r} already: drop it first, or choose another name")
        definition = define_index(name, kind, columns, options, head.snapshot.schema, self.engine)
        transaction = head.transaction().add_index(name, definition.content)
        self._move_to(transaction.commit("create index", summary={"index": name, "kind": kind}))
        return self.refresh_index(name) if build else self.snapshot

    def refresh_index(
        self,
        name: str | None = None,
        processes: int = 1,
        progress: ProgressCallback | None = None,
        *,
        strict: bool = False,
    ) -> Snapshot:
        """Index the blocks that an index lacks, and only those; without a name, of every index that can be used here.

        ``progress`` is told how many blocks are done, and of how many. ``strict`` as in ``append``. Raises
        DefinitionError, BuildError, StorageError.
        """
        head = self._writable_head()
        done = head
        for definition in (
            [self._usable_definition(name, head)] if name is not None else self._usable_definitions(head.snapshot)
        ):
            tasks = build_index.plan_refresh(done, definition, self.host, processes, strict)
            done = build_index.run_build_tasks(done, tasks, processes, progress)
        return self._move_on(head, done)

    def rebuild_index(
        self, name: str, processes: int = 1, progress: ProgressCallback | None = None, *, strict: bool = False
    ) -> Snapshot:
        """Index every block anew, with the kind as it is installed; no row is rewritten.

        Raises as ``refresh_index`` does.
        """
        head = self._writable_head()
        tasks = build_index.plan_rebuild(head, self._find_index(name, head), self.host, processes, strict)
        stored = tasks[0].table if tasks else head.refresh()  # it may have a new definition, and no blocks
        return self._move_on(head, build_index.run_build_tasks(stored, tasks, processes, progress))

    def index_tasks(self, name: str, rebuild: bool = False, processes: int = 1) -> list[build_index.BuildTask]:
        """Plan ``refresh_index`` or, with ``rebuild``, ``rebuild_index`` as tasks for about so many processes.

        Used by Spark's jobs, whose executors run the tasks (``build_index.run_build_task``). Raises as they do.
        """
        head = self._writable_head()
        if rebuild:
            return build_index.plan_rebuild(head, self._find_index(name, head), self.host, processes)
        return build_index.plan_refresh(head, self._usable_definition(name, head), self.host, processes)

    def drop_index(self, name: str) -> Snapshot:
        """Forget an index. Only metadata changes; its files stay for older snapshots.

        Raises DefinitionError, and Conflict if this handle's snapshot has another index of this name than there is now.
        """
        head = self._writable_head()
        seen = self.stored if name in self.snapshot.definitions else head
        self._find_index(name, seen)
        dropped = seen.transaction().drop_index(name).commit("drop index", summary={"index": name})
        return self._move_on(seen, dropped)

    def verify_index(self, name: str, blocks: int = 16, seed: int = 0) -> Verification:
        """Check an index against the rows of up to ``blocks`` blocks, and its payloads against their checksums."""
        return check_index(self.stored, self._usable_definition(name, self.stored), self.host, blocks, seed)

    def indexes(self) -> pa.Table:
        """List the indexes, one row each: what each is on, its options, coverage, sizes, and what stands in its way."""
        return describe_indexes.describe_indexes(self.stored, self.host)

    def inspect_index(self, name: str) -> Mapping[str, Any]:
        """Describe one index, and what its kind says of its contents. Raises DefinitionError."""
        self._find_index(name, self.stored)
        return describe_indexes.describe_index(self.stored, self.host, name)

    def builders(self) -> tuple[IndexBuilder, ...]:
        """Make the builders that index rows as they are written, for whoever writes through ``stored``."""
        return index_builders(self.snapshot, self.host)

    def _usable_definitions(self, snapshot: Snapshot) -> list[IndexDefinition]:
        definitions = load_definitions(snapshot, self.host)
        return [definition for definition in definitions if isinstance(definition, IndexDefinition)]

    def _usable_definition(self, name: str, stored: StoredTable) -> IndexDefinition:
        definition = self._find_index(name, stored)
        if isinstance(definition, UnavailableIndex):
            refusal = definition.refusal
            raise DefinitionError(f"index {name!r} cannot be used here: {refusal.detail or refusal.reason}")
        return definition

    def _find_index(self, name: str, stored: StoredTable) -> IndexDefinition | UnavailableIndex:
        for definition in load_definitions(stored.snapshot, self.host):
            if definition.name == name:
                return definition
        near_names = difflib.get_close_matches(name, stored.snapshot.definitions, 1)
        hint = (
            f"did you mean {near_names[0]!r}?"
            if near_names
            else f"the table has {', '.join(stored.snapshot.definitions) or 'none'}"
        )
        raise DefinitionError(f"no index {name!r}: {hint}")
