"""Tables with a primary key: rows are put, deleted and looked up by their keys. Each change is one commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import fuse_storage as storage
from fuse_index.changes.row_hash import row_hashes
from fuse_index.errors import InputError
from fuse_index.hot.append import commit_by_key
from fuse_index.hot.delete_by_key import KeyedDelete
from fuse_index.hot.key_changes import (
    KeyChanges,
    check_keyed,
    check_same_columns,
    in_columns,
    missing_columns,
    no_keys,
    read_uniform_rows,
)
from fuse_index.hot.lookup import look_up
from fuse_index.hot.rows_read import RowsRead
from fuse_index.ingest import arrow_input
from fuse_index.operations.dml import DmlMixin
from fuse_index.operations.row_edits import UpdateRows
from fuse_index.predicate import Predicate
from fuse_index.pruning.planner import plan_scan
from fuse_index.query.scan import Scan
from fuse_storage import Conflict, Snapshot, StoredTable

_ATTEMPTS = 20
"""How often rows that lack columns are completed anew, where others commit in between."""


class KeyedMixin(DmlMixin):
    """The part of ``fuse_index.Table`` that changes and finds rows by their keys."""

    def upsert(self, data: Any, application: tuple[str, int] | None = None) -> Snapshot:
        """Put rows: each takes the place of the row of its key, or comes. One hot commit, whatever their number.

        ``data``: as for ``append``; of several rows of one key the last counts. Rows that lack columns set those that
        they have: the others stay, and of a new key they are their defaults or NULL. ``application``: as for
        ``append``. Raises InputError for a table without a primary key, and for dicts that differ in their columns,
        SchemaError, TailFull, Conflict, StorageError.
        """
        self._check_keyed("upsert")
        self._check_writable()
        rows = read_uniform_rows(data, self.schema)
        if not len(rows):
            return self.snapshot
        found = KeyChanges.from_rows(rows, self.snapshot, "upsert")
        return self._put(found.puts, found.deletes, application)

    def delete_keys(self, keys: Any, application: tuple[str, int] | None = None) -> Snapshot:
        """Delete the rows of these keys, where there are such. One hot commit, and nothing is read.

        ``keys``: rows with the columns of the key, in any form that ``append`` takes, or a list of values if it is one
        column. Raises as ``upsert``.
        """
        self._check_keyed("delete_keys")
        self._check_writable()
        found = storage.last_of_each_key(self._key_rows(keys), self.snapshot.key)
        if not len(found):
            return self.snapshot
        committed, self.stored = commit_by_key(
            self.stored, self.host, self.snapshot.schema.arrow.empty_table(), found, application
        )
        return committed.snapshot

    def apply(self, changes: Any, application: tuple[str, int] | None = None) -> Snapshot:
        """Do what the rows of another table's ``changes`` say, in one hot commit.

        ``changes``: rows with a column ``_change_type``: ``insert`` and ``update_postimage`` (and NULL) put a row,
        ``delete`` deletes that of its key, ``update_preimage`` is passed over. They are done in the order of
        ``_commit_version``, if there is such a column; of several of one key the last counts. Raises as ``upsert``,
        and InputError for a change of another type.
        """
        self._check_keyed("apply")
        self._check_writable()
        rows = read_uniform_rows(changes, self.schema)
        if not len(rows):
            return self.snapshot
        found = KeyChanges.from_changes(rows, self.snapshot)
        if not len(found.puts) and not len(found.deletes):
            return self.snapshot
        return self._put(found.puts, found.deletes, application)

    def lookup(self, keys: Any, columns: Sequence[str] | None = None) -> pa.Table:
        """Find the rows of these keys, in the order of the keys; keys that have no row are left out.

        ``keys``: as for ``delete_keys``. ``columns``: those wanted, by default all. Raises as ``scan``, and InputError
        for a table without a primary key.
        """
        self._check_keyed("lookup")
        names = tuple(self.schema.names) if columns is None else self._column_names(columns)
        return look_up(self.stored, self._key_rows(keys), names, self.engine)

    def delete(self, where: str | Predicate) -> Snapshot:
        """Delete the rows that the condition is true on. Nothing is committed if there are none.

        With a primary key blocks that have been tiered and hold such rows alone go unread, and the keys of the others
        are deleted, by one commit, a hot one if no block goes; then rows on which it is true that others change
        meanwhile are a Conflict. Raises WhereError, OpaqueError for what only Spark can evaluate, Conflict,
        StorageError.
        """
        if not storage.is_keyed(self.snapshot):
            return super().delete(where)
        job = self.deleting(where)
        done = KeyedDelete(job.condition.predicate, self.engine, job.builders).run(self.stored)
        if done is None:
            return self.snapshot
        committed, self.stored = done
        return committed.snapshot

    def update(self, where: str | Predicate | None, set: Mapping[str, Any]) -> Snapshot:  # noqa: A002  # promised
        """Give columns other values in the rows that the condition is true on, in all rows if it is None.

        ``set``: by column, Spark SQL text such as ``"upper(name)"`` or ``"'Bonn'"``; another Python value; or a
        function from the matching rows, a pa.Table, to their values. With a primary key the rows are put, by one hot
        commit, and its columns stay. Raises as ``delete``, SchemaError for values that do not fit, and InputError for
        columns of a primary key.
        """
        if not storage.is_keyed(self.snapshot):
            return super().update(where, set)
        edit = self.updating(where, set).edit
        assert isinstance(edit, UpdateRows)
        if keys := [name for name in edit.setters if name in self.snapshot.key]:
            raise InputError(f"column {keys[0]!r} is of the primary key, and stays: delete the rows, and put others")

        def put(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
            return edit.apply(rows).rows or rows, no_keys(self.snapshot)

        return self._change_matching("update", edit.condition.predicate, self.schema.names, put)

    def _change_matching(
        self,
        operation: str,
        predicate: Predicate | None,
        names: Sequence[str],
        change: Callable[[pa.Table], tuple[pa.Table, pa.Table]],
        relevant: Callable[[pa.Table], pa.Table] = lambda rows: rows,
    ) -> Snapshot:
        """Commit what is made of the rows that a condition is true on, as long as these are the same.

        ``names``: the columns that are read. ``change``: from these rows to those that are put, and keys that go.
        ``relevant``: from these rows to those on which that depends.
        """
        head, first = self.stored, None
        for _ in range(_ATTEMPTS):
            if head.snapshot.schema != self.snapshot.schema:
                break
            rows = Scan(plan_scan(head, predicate, self.engine), tuple(names), self.host.functions).to_arrow()
            rows = rows.sort_by([(name, "ascending") for name in head.snapshot.key])
            if first is not None and not row_hashes(relevant(rows)).equals(first):
                break
            puts, deletes = change(rows)
            if not len(puts) and not len(deletes):
                return self.snapshot
            try:
                own = pa.concat_tables([part.select(list(self.snapshot.key)) for part in (rows, puts, deletes)])
                read = RowsRead(head, own, self.engine, True, predicate)
                committed, self.stored = commit_by_key(head, self.host, puts, deletes, still_holds=read.still_hold)
                return committed.snapshot
            except Conflict:
                head, first = head.refresh(), row_hashes(relevant(rows))
        raise Conflict(
            f"rows that this {operation} read were changed up to {head.entry}: read them again, and decide again",
            str(head.entry),
        )

    def _put(self, rows: pa.Table, deletes: pa.Table, application: tuple[str, int] | None) -> Snapshot:
        """Commit puts, which may lack columns, and deletes, of which each key is once.

        Columns that others added since this handle's state are columns that the rows lack. Raises Conflict where others
        renamed or dropped one that they have.
        """
        head, names = self.stored, [*rows.column_names, *self.snapshot.key]
        for attempt in range(_ATTEMPTS):
            check_same_columns(self.snapshot.schema, names, head.snapshot)
            missing = missing_columns(rows.column_names, head.snapshot) if len(rows) else []
            whole, still_holds = head.snapshot.schema.arrow.empty_table(), None
            if len(rows):
                same = head.snapshot.schema == self.snapshot.schema
                whole = rows if same else in_columns(rows, head.snapshot)
            if missing:
                whole = self._completed(head, whole, missing)
                still_holds = RowsRead(head, rows.select(list(head.snapshot.key)), self.engine).still_hold
            try:
                committed, self.stored = commit_by_key(head, self.host, whole, deletes, application, still_holds)
                return committed.snapshot
            except Conflict:
                later = head.refresh()
                if attempt == _ATTEMPTS - 1 or not (missing or later.snapshot.schema != head.snapshot.schema):
                    raise
                head = later
        raise AssertionError

    def _completed(self, head: StoredTable, rows: pa.Table, missing: Sequence[str]) -> pa.Table:
        """Rows with the columns that they lack: those of the rows that are there, or their defaults."""
        schema, key = head.snapshot.schema, head.snapshot.key
        there = look_up(head, rows.select(list(key)), tuple(dict.fromkeys([*key, *missing])), self.engine)
        places = storage.places_of_keys(storage.key_table(rows, key), storage.key_table(there, key))
        is_new = pa.array(places < 0)
        for name in missing:
            field = schema.find([name])
            values = there.column(name).take(pa.array(places, mask=places < 0))
            if field.default is not None:
                values = pc.if_else(is_new, pa.repeat(field.default_scalar, len(rows)), values)
            rows = rows.append_column(pa.field(name, field.type), values)
        return rows.select(schema.names)

    def _key_rows(self, keys: Any) -> pa.Table:
        """Keys, in whatever form they are given, as rows of the key's columns."""
        key = self.snapshot.key
        if _are_values(keys):
            if len(key) > 1:
                raise InputError(f"the primary key is {list(key)}: give rows of these columns, such as a list of dicts")
            keys = {key[0]: keys}
        rows = read_uniform_rows(keys, self.schema)
        if not len(rows):
            return no_keys(self.snapshot)
        if odd := [name for name in rows.column_names if name not in key]:
            raise storage.SchemaError(f"the keys have a column {odd[0]!r}: the primary key is {list(key)}")
        if lacking := [name for name in key if name not in rows.column_names]:
            raise storage.SchemaError(f"the keys lack column {lacking[0]!r}: the primary key is {list(key)}")
        return storage.conform_rows(rows, storage.key_schema_of(self.snapshot))

    def _check_keyed(self, method: str) -> None:
        check_keyed(self.stored, method)


def _are_values(keys: Any) -> bool:
    """Whether keys are given as values of one column, and not as rows."""
    if isinstance(keys, list | tuple):
        return len(keys) > 0 and not isinstance(keys[0], dict) and not arrow_input.holds_rows(keys[0])
    if isinstance(keys, pa.Array | pa.ChunkedArray):
        return not pa.types.is_struct(keys.type)
    return hasattr(keys, "dtype")
