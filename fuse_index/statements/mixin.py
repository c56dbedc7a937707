"""The statements of a table, each with one docstring, over the two ways in which rows are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

import fuse_storage as storage
from fuse_index.hot.append import Committed
from fuse_index.operations.merge_clauses import MergeClauseSpec
from fuse_index.predicate import Predicate
from fuse_index.statements.heap_rows import HeapRows
from fuse_index.statements.jobs import StatementJobsMixin
from fuse_index.statements.keyed_rows import KeyedRows
from fuse_storage import Snapshot


class StatementsMixin(StatementJobsMixin):
    """The part of ``fuse_index.Table`` that adds, changes and deletes rows, and finds them by their keys."""

    @property
    def row_store(self) -> HeapRows | KeyedRows:
        """How the snapshot that this handle reads keeps its rows: by a primary key, or without one."""
        return KeyedRows(self) if storage.is_keyed(self.snapshot) else HeapRows(self)

    def append(
        self,
        data: Any,
        application: tuple[str, int] | None = None,
        hot: bool | None = None,
        *,
        strict: bool = False,
        merge_schema: bool = False,
    ) -> Snapshot:
        """Add rows, indexed as they are written, in one commit; nothing happens if there are none.

        By a clustering key they are sorted, as many at a time as the property ``sort_bytes`` (256 MiB) allows.

        ``data``: a pa.Table, RecordBatchReader, pandas DataFrame, list of dicts or Parquet path(s), with the table's
        columns by name; what they lack is its default, or NULL.
        ``application``: (id, version) of a writer that wants each version written once. ``strict``: an index that fails
        on a block raises IndexFault, instead of leaving it out with a PluginWarning. ``merge_schema``: columns, and
        fields of structs, that the table lacks are added, NULL in all older rows, and types are widened as far as
        ``change_type`` can, in the same commit. ``hot``: by a hot commit (see docs/hot.md), which costs two writes and
        leaves indexes for later; by default where there are at most as many rows as the property ``hot_rows`` says, and
        no column changes. Raises InputError, TailFull, SchemaError naming the column that does not fit,
        Conflict, CommitUnknown and other StorageErrors. With a primary key: see ``upsert``.
        """
        self._check_writable()
        return self._finish(self.row_store.append(data, application, hot, strict=strict, merge_schema=merge_schema))

    def upsert(self, data: Any, application: tuple[str, int] | None = None) -> Snapshot:
        """Put rows: each takes the place of the row of its key, or comes. One hot commit, whatever their number.

        ``data``: as for ``append``; of several rows of one key the last counts. Rows that lack columns set those that
        they have: the others stay, and of a new key they are their defaults or NULL. ``application``: as for
        ``append``. Raises InputError for a table without a primary key, and for dicts that differ in their columns,
        SchemaError, TailFull, Conflict, StorageError.
        """
        return self._finish(self._keyed_rows("upsert").upsert(data, application))

    def delete_keys(self, keys: Any, application: tuple[str, int] | None = None) -> Snapshot:
        """Delete the rows of these keys, where there are such. One hot commit, and nothing is read.

        ``keys``: rows with the columns of the key, in any form that ``append`` takes, or a list of values if it is one
        column. Raises as ``upsert``.
        """
        return self._finish(self._keyed_rows("delete_keys").delete_keys(keys, application))

    def apply(self, changes: Any, application: tuple[str, int] | None = None) -> Snapshot:
        """Do what the rows of another table's ``changes`` say, in one hot commit.

        ``changes``: rows with a column ``_change_type``: ``insert`` and ``update_postimage`` (and NULL) put a row,
        ``delete`` deletes that of its key, ``update_preimage`` is passed over. They are done in the order of
        ``_commit_version``, if there is such a column; of several of one key the last counts. Raises as ``upsert``,
        and InputError for a change of another type.
        """
        return self._finish(self._keyed_rows("apply").apply(changes, application))

    def lookup(self, keys: Any, columns: Sequence[str] | None = None) -> pa.Table:
        """Find the rows of these keys, in the order of the keys; keys that have no row are left out.

        ``keys``: as for ``delete_keys``. ``columns``: those wanted, by default all. Raises as ``scan``, and InputError
        for a table without a primary key.
        """
        rows = self.row_store.by_key("lookup")
        return rows.lookup(keys, tuple(self.schema.names) if columns is None else self._column_names(columns))

    def delete(self, where: str | Predicate) -> Snapshot:
        """Delete the rows that the condition is true on. Nothing is committed if there are none.

        With a primary key blocks that have been tiered and hold such rows alone go unread, and the keys of the others
        are deleted, by one commit, a hot one if no block goes; then rows on which it is true that others change
        meanwhile are a Conflict. Raises WhereError, OpaqueError for what only Spark can evaluate, Conflict,
        StorageError.
        """
        self._check_writable()
        return self._finish(self.row_store.delete(where))

    def update(self, where: str | Predicate | None, set: Mapping[str, Any]) -> Snapshot:  # noqa: A002  # promised
        """Give columns other values in the rows that the condition is true on, in all rows if it is None.

        ``set``: by column, Spark SQL text such as ``"upper(name)"`` or ``"'Bonn'"``; another Python value; or a
        function from the matching rows, a pa.Table, to their values. With a primary key the rows are put, by one hot
        commit, and its columns stay. Raises as ``delete``, SchemaError for values that do not fit, and InputError for
        columns of a primary key.
        """
        return self._finish(self.row_store.update(where, set))

    def overwrite(self, data: Any, where: str | Predicate | None = None, *, merge_schema: bool = False) -> Snapshot:
        """Replace the rows that the condition is true on, by default all, with others on which it is true too.

        ``merge_schema``: as for ``append``. With a primary key all rows are replaced, those of the tail, too, and each
        key comes once; the keys of the rows that come are held in memory. Raises InputError for a row on which the
        condition is not true, and as ``append`` and ``delete`` do.
        """
        self._check_writable()
        return self._finish(self.row_store.overwrite(data, where, merge_schema=merge_schema))

    def merge(
        self,
        source: Any,
        on: Sequence[str] | None = None,
        matched: MergeClauseSpec = "update",
        not_matched: MergeClauseSpec = "insert",
        not_matched_by_source: MergeClauseSpec = None,
        *,
        merge_schema: bool = False,
    ) -> Snapshot:
        """Bring in rows by their keys, the columns ``on``, by default the table's key (see ``key_by``).

        NULL equals nothing. Rows of the table whose key the source has get the source's columns, or go; rows of the
        source whose key the table lacks come, with defaults or NULL in columns that the source lacks;
        ``not_matched_by_source`` deletes the rows whose key the source lacks. ``source`` is held in memory.

        ``matched``: ``update`` or ``delete``; ``not_matched``: ``insert``; ``not_matched_by_source``: ``delete``; each
        None for nothing, or a dict that says on which condition: ``{"delete": "source.gone", "update": "source.at >
        target.at"}``. The first whose condition is true on a row counts, None is always true, and rows of no clause
        stay, or do not come. Columns of the source that the table lacks may be named there, and nowhere else, unless
        ``merge_schema`` adds them, as for ``append``; then those that a condition names are added, too.

        With a primary key, which ``on`` is then, rows are put and keys deleted by one hot commit, and no column is
        added; rows that are read are held in memory, and if others change them meanwhile that is a Conflict.

        Raises InputError if several rows of the source match one, SchemaError for columns that do not fit, WhereError,
        OpaqueError, Conflict.
        """
        self._check_writable()
        clauses = (matched, not_matched, not_matched_by_source)
        return self._finish(self.row_store.merge(source, on, clauses, merge_schema=merge_schema))

    def _keyed_rows(self, method: str) -> KeyedRows:
        """The rows by their primary key, to be changed. Raises InputError where there is none, ReadOnly."""
        rows = self.row_store.by_key(method)
        self._check_writable()
        return rows

    def _finish(self, committed: Committed) -> Snapshot:
        """Move to where a statement ended; give the snapshot that it made, or that is read if it made none."""
        self.stored = committed.head
        return committed.state.snapshot
