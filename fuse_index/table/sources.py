"""Tables over the files of others: attached, synced with their source, and made tables of their own."""

from __future__ import annotations

from fuse_index.handle import TableHandle
from fuse_index.operations.build_index import ProgressCallback
from fuse_index.sources.formats import open_source
from fuse_index.sources.renew import renew_files
from fuse_index.sources.sync import SyncResult, sync_table
from fuse_index.table.indexes import refresh_indexes
from fuse_storage import InvalidArgument, Snapshot, SourceVersion, adopt_files


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
        """Bring an attached table to the present state of its source, in one commit; tell what came and went.

        ``to``: a version of the source, as Delta and Iceberg have them. ``indexes``: those of the table are built on
        the files that came, in further commits; else ``refresh_index`` does it later. ``reread``: the footers of all
        files are read again, and those that were touched, copied or restored are taken as new ones, also where the
        source's log knows of no change, as are those of a converted table. ``progress`` is told how many files were
        looked into, and of how many. Nothing is committed if nothing changed. Raises InvalidArgument for a table that
        follows no source, Conflict where somebody else synced it just now; InputError, SchemaError and Unsupported for
        what cannot be followed, naming it; NotFound where a file vanished meanwhile; Corrupt and other StorageErrors.
        """
        head = self._writable_head()
        version = SourceVersion.of(head.snapshot)
        if version.adopted and (not reread or to is not None):
            raise InvalidArgument(f"{head.store.url} was converted: it no longer follows {version.url}")
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
        and the source is not told. It cannot be undone. Raises InvalidArgument for a table that was not attached.
        """
        head = self._writable_head()
        SourceVersion.of(head.snapshot)
        return self._move_on(head, head.transaction().evolve_schema(adopt_files).commit("convert"))
