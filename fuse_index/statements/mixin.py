"""The statements of every table, each with one docstring, over the two ways in which rows are kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fuse_index.operations.merge_clauses import MergeClauseSpec
from fuse_index.predicate import Predicate
from fuse_index.statements.by_key import ByKeyMixin
from fuse_storage import Snapshot


class StatementsMixin(ByKeyMixin):
    """The part of ``fuse_index.Table`` that adds, changes and deletes rows."""

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

        By a clustering key they are sorted, as many at a time as the property ``sort_bytes`` (256 MiB) allows. Into a
        table with a primary key they are put, as by ``upsert``, and ``hot=False`` and ``merge_schema`` are not taken.

        Args:
            data: A pa.Table, RecordBatchReader, pandas DataFrame, list of dicts or Parquet path(s), with the table's
                columns by name; what they lack is its default, or NULL.
            application: The id of a writer that wants each of its versions written once, and the version.
            hot: Add by a hot commit (see docs/hot.md), which costs two writes and leaves indexes for later; by default
                where there are at most as many rows as the property ``hot_rows`` says, and no column changes.
            strict: Raise IndexFault for an index that fails on a block, instead of leaving it out with a PluginWarning.
            merge_schema: Add columns, and fields of structs, that the table lacks, NULL in all older rows, and widen
                types as far as ``change_type`` can, in the same commit.

        Returns:
            The snapshot that has the rows.

        Raises:
            InputError: The rows are none, or too many for ``hot``.
            SchemaError: A column does not fit; it is named.
            IndexFault: With ``strict``, an index failed.
            TailFull: The commit is hot, and a job does not keep up with tiering.
            Conflict: Columns were changed meanwhile.
            CommitUnknown: The store did not say whether the commit was made.
            ReadOnly: The handle is of an older state, or of a store that is only read.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://append", "id BIGINT, name STRING")
            >>> table.append([{"id": 1, "name": "ann"}, {"id": 2}]).row_count
            2
        """
        self._check_writable()
        return self._finish(self.row_store.append(data, application, hot, strict=strict, merge_schema=merge_schema))

    def delete(self, where: str | Predicate) -> Snapshot:
        """Delete the rows that the condition is true on. Nothing is committed if there are none.

        With a primary key blocks that have been tiered and hold such rows alone go unread, and the keys of the others
        are deleted, by one commit, a hot one if no block goes.

        Args:
            where: A condition in Spark SQL, or a predicate.

        Returns:
            The snapshot without these rows.

        Raises:
            WhereError: The condition is none, showing the place.
            OpaqueError: Only Spark can evaluate the condition.
            Conflict: Others changed such rows meanwhile, or added some.
            ReadOnly: As for ``append``.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://delete", "id BIGINT")
            >>> snapshot = table.append([{"id": 1}, {"id": 2}])
            >>> table.delete("id = 1").row_count
            1
        """
        self._check_writable()
        return self._finish(self.row_store.delete(where))

    def update(self, where: str | Predicate | None, set: Mapping[str, Any]) -> Snapshot:  # noqa: A002  # promised
        """Give columns other values in the rows that a condition is true on.

        With a primary key the rows are put, by one hot commit, and its columns stay.

        Args:
            where: A condition in Spark SQL, or a predicate; None for all rows.
            set: By column, Spark SQL text such as ``"upper(name)"`` or ``"'Bonn'"``; another Python value; or a
                function from the matching rows, a pa.Table, to their values.

        Returns:
            The snapshot with the new values; nothing is committed if the condition is true on no row.

        Raises:
            InputError: ``set`` is empty, a value is none of its column, or a column is of the primary key.
            SchemaError: A column is unknown, or values do not fit it.
            WhereError: The condition, or a text of ``set``, is none.
            OpaqueError: Only Spark can evaluate one of these.
            Conflict: As for ``delete``.
            ReadOnly: As for ``append``.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://update", "id BIGINT, name STRING")
            >>> snapshot = table.append([{"id": 1, "name": "ann"}])
            >>> snapshot = table.update("id = 1", {"name": "upper(name)"})
            >>> table.to_arrow().to_pylist()
            [{'id': 1, 'name': 'ANN'}]
        """
        return self._finish(self.row_store.update(where, set))

    def overwrite(self, data: Any, where: str | Predicate | None = None, *, merge_schema: bool = False) -> Snapshot:
        """Replace rows by others.

        With a primary key all rows are replaced, those of the tail, too, and each key comes once; the keys of the rows
        that come are held in memory.

        Args:
            data: As for ``append``.
            where: The rows to be replaced: those on which this condition is true, by default all. It must be true on
                all that come, too.
            merge_schema: As for ``append``.

        Returns:
            The snapshot with the new rows.

        Raises:
            InputError: The condition is not true on a row that comes; or there is a primary key, and a condition or
                ``merge_schema``.
            SchemaError: A column does not fit.
            WhereError: The condition is none.
            OpaqueError: Only Spark can evaluate the condition.
            Conflict: As for ``delete``.
            ReadOnly: As for ``append``.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://overwrite", "day INT, n INT")
            >>> snapshot = table.append([{"day": 1, "n": 1}, {"day": 2, "n": 2}])
            >>> snapshot = table.overwrite([{"day": 2, "n": 7}], "day = 2")
            >>> table.to_arrow().sort_by("day").to_pylist()
            [{'day': 1, 'n': 1}, {'day': 2, 'n': 7}]
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
        """Bring in rows by their keys: rows that match are updated, others are added.

        NULL equals nothing. With a primary key, rows are put and keys deleted by one hot commit, and no column is
        added; rows that are read are held in memory.

        Args:
            source: Rows as for ``append``, held in memory.
            on: The columns by which rows match, by default the table's key (see ``key_by``), and the primary key always
                where there is one.
            matched: What becomes of rows of the table whose key the source has: ``update`` gives them the source's
                columns, ``delete`` takes them away, None leaves them. A dict says on which condition:
                ``{"delete": "source.gone", "update": "source.at > target.at"}``. The first whose condition is true on a
                row counts, None is always true, and rows of no clause stay.
            not_matched: What becomes of rows of the source whose key the table lacks: ``insert``, with defaults or NULL
                in columns that the source lacks, None, or a dict.
            not_matched_by_source: What becomes of rows of the table whose key the source lacks: ``delete``, None, or a
                dict.
            merge_schema: Add columns as for ``append``, those that conditions name, too. Without it conditions may name
                columns that the table lacks, and these go nowhere else.

        Returns:
            The snapshot that has them; nothing is committed if nothing changes.

        Raises:
            InputError: Several rows of the source match one, or there is no such clause or key.
            SchemaError: Columns do not fit.
            WhereError: A clause's condition is none.
            OpaqueError: Only Spark can evaluate a condition.
            Conflict: As for ``delete``.
            ReadOnly: As for ``append``.
            StorageError: The store fails.

        Example:
            >>> table = fuse.create_table("memory://merge", "id BIGINT, n INT", key=["id"])
            >>> snapshot = table.append([{"id": 1, "n": 1}])
            >>> snapshot = table.merge([{"id": 1, "n": 5}, {"id": 2, "n": 6}])
            >>> table.to_arrow().sort_by("id").to_pylist()
            [{'id': 1, 'n': 5}, {'id': 2, 'n': 6}]
        """
        self._check_writable()
        clauses = (matched, not_matched, not_matched_by_source)
        return self._finish(self.row_store.merge(source, on, clauses, merge_schema=merge_schema))
