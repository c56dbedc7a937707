"""The part of ``table.maintenance`` that keeps indexes."""

from __future__ import annotations

from fuse_index.operations.build_index import ProgressCallback
from fuse_index.operations.verify_index import Verification, check_index
from fuse_index.table.indexes import rebuild_index, refresh_indexes, usable_definition
from fuse_index.table.inspection.card import TablePart
from fuse_storage import Snapshot


class IndexMaintenance(TablePart):
    """Indexes of a table, brought up to its blocks, made anew and checked."""

    def refresh_index(
        self,
        name: str | None = None,
        processes: int = 1,
        progress: ProgressCallback | None = None,
        *,
        strict: bool = False,
    ) -> Snapshot:
        """Index the blocks that an index lacks, and only those.

        Args:
            name: Which index; by default every one that can be used here.
            processes: How many processes build it.
            progress: Called with how many blocks are done, and of how many.
            strict: Raise IndexFault where the index fails on a block, instead of leaving it out with a PluginWarning.

        Returns:
            The snapshot that the table reads then.

        Raises:
            DefinitionError: There is no such index, or it cannot be used here.
            BuildError: A process that builds ended early.
            IndexFault: With ``strict``, the index failed on a block.
            ReadOnly: The table was opened at an older state, or to be read only.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://refresh-index", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}])
            >>> snapshot = table.create_index("by_id", "bloom", ["id"], build=False)
            >>> snapshot = table.maintenance.refresh_index("by_id")
            >>> table.inspect.indexes().column("blocks_indexed").to_pylist()
            [1]
        """
        return refresh_indexes(self._table, name, processes, progress, strict=strict)

    def rebuild_index(
        self, name: str, processes: int = 1, progress: ProgressCallback | None = None, *, strict: bool = False
    ) -> Snapshot:
        """Index every block anew, with the kind as it is installed; no row is rewritten.

        Args:
            name: Which index.
            processes: How many processes build it.
            progress: Called with how many blocks are done, and of how many.
            strict: Raise IndexFault where the index fails on a block, instead of leaving it out with a PluginWarning.

        Returns:
            The snapshot that the table reads then.

        Raises:
            DefinitionError: There is no such index, or its kind refuses it.
            BuildError: A process that builds ended early; or the index failed on every block.
            IndexFault: With ``strict``, the index failed on a block.
            ReadOnly: The table was opened at an older state, or to be read only.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://rebuild-index", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}])
            >>> snapshot = table.create_index("by_id", "bloom", ["id"])
            >>> table.maintenance.rebuild_index("by_id").row_count
            1
        """
        return rebuild_index(self._table, name, processes, progress, strict=strict)

    def verify_index(self, name: str, blocks: int = 16, seed: int = 0) -> Verification:
        """Check an index against the rows of some blocks, and its payloads against their checksums.

        Args:
            name: Which index.
            blocks: How many blocks at most are read again, drawn at random.
            seed: Of the draw.

        Returns:
            What was looked at, and what is wrong: ``sound``, ``problems``, and counts; ``print`` shows it.

        Raises:
            DefinitionError: There is no such index, or it cannot be used here.
            StorageError: The table itself cannot be read.

        Example:
            >>> table = fuse.create_table("memory://verify-index", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}])
            >>> snapshot = table.create_index("by_id", "bloom", ["id"])
            >>> table.maintenance.verify_index("by_id").sound
            True
        """
        definition = usable_definition(self._table.stored, self._table.host, name)
        return check_index(self._table.stored, definition, self._table.host, blocks, seed)
