"""Tables over the files of others: attached, synced with their source, and made tables of their own."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from fuse_index.handle import TableHandle
from fuse_index.operations.build_index import ProgressCallback
from fuse_index.table.indexes import refresh_indexes
from fuse_storage import (
    VOTES_PROPERTIES,
    CodedError,
    Conflict,
    InvalidArgument,
    ReadOnlyStore,
    Snapshot,
    SourceVersion,
    TableUrl,
    adopt_files,
)

if TYPE_CHECKING:
    from fuse_index.sources.sync import SyncResult

_LEAST_SECONDS = 60.0
"""A source whose unknown files a sync did not make known is asked again only after so long."""
_asked: dict[str, float] = {}
_lock = Lock()
_logger = logging.getLogger("fuse_index")


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
        from fuse_index.sources.formats import open_source
        from fuse_index.sources.renew import renew_files
        from fuse_index.sources.sync import sync_table

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
            done, result = sync_table(head, source, to, progress, reread, self.host)
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


def refresh_if_due(table: SourcesMixin, unknown_files: int = 0, *, indexes: bool = True) -> bool:
    """Sync a table for votes alone with its source, and build its indexes on what came, if its properties say so.

    It is due where a query met ``max_unknown_files`` that the table does not know, and, if it has ``max_age_seconds``,
    where its newest commit is older. Any number of threads and processes may ask: a process asks a source once in a
    while, and of two that sync at once one gives way. A source that cannot be followed now is told in the log, since
    an index that is stale changes no answer.

    Args:
        table: A table that was attached with ``votes_only=True``.
        unknown_files: How many files a query met that the table does not know.
        indexes: Build indexes here; else ``refresh_index`` does it later.

    Returns:
        Whether this call made files known.

    Example:
        >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> pq.write_table(pa.table({"id": [1, 2]}), f"{folder}/one.parquet")
        >>> places = {"shared_places": folder}
        >>> table = fuse.attach(folder, "memory://due", votes_only=True, options=places)
        >>> pq.write_table(pa.table({"id": [3]}), f"{folder}/two.parquet")
        >>> refresh_if_due(table, unknown_files=1), refresh_if_due(table, unknown_files=100)
        (False, True)
    """
    url, properties = table.stored.store.url, table.snapshot.properties
    max_age = properties.get("max_age_seconds")
    enough = int(properties.get("max_unknown_files", VOTES_PROPERTIES["max_unknown_files"]))
    is_old = max_age is not None and (datetime.now(UTC) - table.snapshot.timestamp).total_seconds() >= max_age
    if not is_old and unknown_files < enough:
        return False
    if not _may_ask(url, _LEAST_SECONDS if unknown_files >= enough else float(max_age or 0)):
        return False
    try:
        return table.sync(indexes=indexes).added_files > 0
    except Conflict:
        return False
    except CodedError as problem:
        _logger.warning("%s stays as it is, and knows no newer files: %s", url, problem)
        return False


def follow_source(table: SourcesMixin) -> bool:
    """Sync a table with its source where its property ``max_age_seconds`` says so, and the source moved on.

    It is due where nobody in this process has asked the source for so long, and nobody has committed since. To know
    whether a log moved takes two requests. Who cannot sync now, because the source fails or somebody else does it,
    reads the table as it is, and a line of the log says so.

    Args:
        table: Any table; one that is attached, and in its newest state, may follow.

    Returns:
        Whether this call brought the table to another state of its source.

    Example:
        >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
        >>> folder = tempfile.mkdtemp()
        >>> pq.write_table(pa.table({"id": [1, 2]}), f"{folder}/one.parquet")
        >>> places = {"shared_places": folder}
        >>> table = fuse.attach(folder, "memory://follow", max_age="0.001s", options=places)
        >>> pq.write_table(pa.table({"id": [3]}), f"{folder}/two.parquet")
        >>> fuse.open_table("memory://follow", options=places).count()
        3
    """
    snapshot, store = table.snapshot, table.stored.store
    max_age = snapshot.properties.get("max_age_seconds")
    is_fixed = table.pinned or isinstance(store, ReadOnlyStore) or snapshot.votes_only
    if max_age is None or snapshot.source is None or is_fixed:
        return False
    version = SourceVersion.of(snapshot)
    is_young = (datetime.now(UTC) - snapshot.timestamp).total_seconds() < max_age
    if is_young or version.adopted or not _may_ask(store.url, float(max_age)):
        return False
    from fuse_index.sources.formats import open_source

    try:
        source = open_source(version.format, version.url, dict(getattr(store, "options", None) or {}))
        return source.has_moved(version.version, version.etag) and table.sync().snapshot != snapshot.id
    except Conflict:
        return False
    except CodedError as problem:
        _logger.warning("%s stays as it is, and does not follow its source: %s", store.url, problem)
        return False


def _may_ask(url: str, wait: float) -> bool:
    """Whether nobody in this process asked the source of the table for so many seconds; then this counts as asked."""
    with _lock:
        now = monotonic()
        if url in _asked and now - _asked[url] < wait:
            return False
        _asked[url] = now
        return True
