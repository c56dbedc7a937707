"""Tables over the files of others: attached, synced with their source, and made tables of their own."""

from __future__ import annotations

from fuse_index.handle import TableHandle
from fuse_index.operations.build_index import ProgressCallback
from fuse_index.sources.formats import open_source
from fuse_index.sources.renew import renew_files
from fuse_index.sources.sync import SyncResult, sync_table
from fuse_index.table.indexes import refresh_indexes
from fuse_storage import InvalidArgument, Snapshot, SourceVersion, TableUrl, adopt_files


class SourcesMixin(TableHandle):
    """The part of ``fuse_index.Table`` that follows a source."""

    def sync(
        self,
        to: str | int | None = None,
        *,
        indexes: bool = True,
        reread: bool = False,
        progress: ProgressCallback | None = None,
    ) -> SyncResult:
        """Bring an attached table to the present state of its source, in one commit.

        Nothing is committed if nothing changed.

        Args:
            to: A version of the source, as Delta and Iceberg have them; by default the newest.
            indexes: Build the table's indexes on the files that came, in further commits; else ``refresh_index`` does
                it later.
            reread: Read the footers of all files again, and take those that were touched, copied or restored as new
                ones, also where the source's log knows of no change, as are those of a converted table.
            progress: Called with how many files were looked into, and of how many.

        Returns:
            What came and went: ``version`` of the source, ``added_files``, ``removed_files``, ``kept_files``, ``rows``,
            ``reread`` and ``snapshot``.

        Raises:
            InvalidArgument: The table follows no source.
            Conflict: Somebody else synced it just now.
            InputError: What cannot be followed, naming it; or SchemaError, Unsupported.
            NotFound: A file vanished meanwhile.
            Corrupt: A file is damaged.
            StorageError: A store fails.

        Example:
            >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
            >>> folder = tempfile.mkdtemp()
            >>> pq.write_table(pa.table({"id": [1, 2]}), f"{folder}/one.parquet")
            >>> table = fuse.attach(folder, "memory://sync", options={"shared_places": folder})
            >>> pq.write_table(pa.table({"id": [3]}), f"{folder}/two.parquet")
            >>> table.sync().added_files, table.count()
            (1, 3)
        """
        head = self._writable_head()
        version = SourceVersion.of(head.snapshot)
        if version.adopted and (not reread or to is not None):
            raise InvalidArgument(
                TableUrl(head.store.url) + " was converted: it no longer follows " + TableUrl(version.url)
            )
        if version.adopted:
            done, result = renew_files(head, version, progress)
        else:
            options = dict(getattr(head.store, "options", None) or {})
            source = open_source(version.format, version.url, options)
            done, result = sync_table(head, source, to, progress, reread)
        self._move_on(head, done)
        if indexes and result.added_files:
            refresh_indexes(self)
        return result

    def convert(self) -> Snapshot:
        """Make an attached table one of its own, where it is: no file is rewritten, and from now on rows change here.

        Its files stay where they are, those of the source among them, which must stay, too: nothing here deletes them,
        and the source is not told. It cannot be undone.

        Returns:
            The new snapshot.

        Raises:
            InvalidArgument: The table was not attached.
            ReadOnly: The handle only reads.
            StorageError: A store fails.

        Example:
            >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
            >>> folder = tempfile.mkdtemp()
            >>> pq.write_table(pa.table({"id": [1, 2]}), f"{folder}/one.parquet")
            >>> table = fuse.attach(folder, "memory://convert", options={"shared_places": folder})
            >>> snapshot = table.convert()
            >>> table.delete("id = 1").row_count
            1
        """
        head = self._writable_head()
        SourceVersion.of(head.snapshot)
        head.snapshot.check_rows()
        return self._move_on(head, head.transaction().evolve_schema(adopt_files).commit("convert"))
