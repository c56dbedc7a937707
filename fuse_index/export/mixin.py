"""The exports that a table has."""

from __future__ import annotations

from fuse_index.handle import TableHandle


class ExportMixin(TableHandle):
    """The part of ``fuse_index.Table`` that writes metadata of other formats."""

    def export_delta(self) -> int:
        """Let readers of Delta read the snapshot of this handle, without us: write a Delta log beside our metadata.

        The first export begins the log, and another snapshot's is its next version. No file of rows is copied, and only
        vacuum deletes them: tag a snapshot for as long as it is read so. Nobody may write to the table through Delta.

        Returns:
            The log's version.

        Raises:
            SchemaError: What Delta cannot say: blocks that are older than a column's default.
            InputError: Rows were deleted, and pyroaring is not installed.
            Conflict: Somebody else wrote the log.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://export-delta", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}])
            >>> table.export_delta()
            0
        """
        from fuse_index.export.delta import export_delta

        return export_delta(self.stored)

    def export_iceberg(self) -> str:
        """Let readers of Iceberg read the snapshot of this handle, without us: write its metadata beside ours.

        Each export of another snapshot is the metadata's next version, and holds that snapshot alone. No file of rows
        is copied, and only vacuum deletes them: tag a snapshot for as long as it is read so.

        Returns:
            The URL of the metadata, such as PyIceberg's ``StaticTable.from_metadata`` takes.

        Raises:
            InputError: PyIceberg is not installed.
            SchemaError: What Iceberg cannot say: blocks that are older than a type to which Iceberg cannot widen.
            Conflict: Somebody else wrote the metadata.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://export-iceberg", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}])
            >>> table.export_iceberg().endswith(".metadata.json")
            True
        """
        from fuse_index.export.iceberg import export_iceberg

        return export_iceberg(self.stored)
