"""A table with a primary key: rows are put, deleted and looked up by their keys, and no statement rewrites a block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import fuse_storage as storage
from fuse_index.changes.row_hash import row_hashes
from fuse_index.errors import InputError
from fuse_index.expressions.variant.columns import with_texts
from fuse_index.handle import resolve_evaluable
from fuse_index.hot.append import Committed, commit_by_key
from fuse_index.indexes.builder import index_builders
from fuse_index.ingest import arrow_input
from fuse_index.operations.dml_job import DmlJob
from fuse_index.operations.row_edits import UpdateRows, stage_rows
from fuse_index.predicate import Predicate
from fuse_index.pruning.explanation import Explanation
from fuse_index.pruning.planner import plan_scan
from fuse_index.query.scan import Scan
from fuse_index.statements.delete_by_key import KeyedDelete
from fuse_index.statements.explain import explain_by_key
from fuse_index.statements.jobs import read_source
from fuse_index.statements.key_changes import (
    KeyChanges,
    check_has_key,
    check_same_columns,
    in_columns,
    missing_columns,
    no_keys,
    read_uniform_rows,
)
from fuse_index.statements.lookup import look_up
from fuse_index.statements.row_store import MergeClauseSpecs, RowStore
from fuse_index.statements.rows_read import RowsRead
from fuse_storage import Advice, Conflict, Operation, Schema, StoredTable

_ATTEMPTS = 20
"""How often rows that lack columns are completed anew, where others commit in between."""


class KeyedRows(RowStore):
    """The rows of a table with a primary key, and what is done there by keys alone."""

    rewrites_blocks = False
    may_lack_columns = True
    key_argument = "primary_key"
    writes = "puts and deletes by key"

    def by_key(self, method: str) -> KeyedRows:
        return self

    def conform(self, data: Any, since: Schema | None = None) -> pa.Table:
        rows = read_uniform_rows(data, self.table.schema)
        if not len(rows):
            return rows
        if since is not None:
            check_same_columns(since, rows.column_names, self.snapshot)
        check_has_key(rows, self.snapshot, "send")
        return in_columns(rows, self.snapshot)

    def append(
        self, data: Any, application: tuple[str, int] | None, hot: bool | None, *, strict: bool, merge_schema: bool
    ) -> Committed:
        if hot is False or merge_schema:
            raise InputError(
                "rows of a table with a primary key are put by hot commits: no "
                + Operation.argument("append", hot=False)
                + ", no "
                + Operation.argument("append", merge_schema=True)
            )
        return self.upsert(data, application)

    def upsert(self, data: Any, application: tuple[str, int] | None) -> Committed:
        rows = read_uniform_rows(data, self.table.schema)
        return (
            self._put(KeyChanges.from_rows(rows, self.snapshot, "upsert"), application) if len(rows) else self._nothing
        )

    def apply(self, changes: Any, application: tuple[str, int] | None) -> Committed:
        rows = read_uniform_rows(changes, self.table.schema)
        return self._put(KeyChanges.from_changes(rows, self.snapshot), application) if len(rows) else self._nothing

    def delete_keys(self, keys: Any, application: tuple[str, int] | None) -> Committed:
        found = storage.last_of_each_key(self._key_rows(keys), self.snapshot.key)
        if not len(found):
            return self._nothing
        no_rows = self.snapshot.schema.empty_table()
        return commit_by_key(self.stored, self.table.host, no_rows, found, application)

    def lookup(self, keys: Any, names: Sequence[str]) -> pa.Table:
        return with_texts(look_up(self.stored, self._key_rows(keys), names, self.table.engine))

    def delete(self, where: str | Predicate) -> Committed:
        job = self.table.deleting(where)
        return KeyedDelete(job.condition.predicate, self.table.engine, job.builders).run(self.stored) or self._nothing

    def update(self, where: str | Predicate | None, setters: Mapping[str, Any]) -> Committed:
        edit = self.table.updating(where, setters).edit
        assert isinstance(edit, UpdateRows)
        if keys := [name for name in edit.setters if name in self.snapshot.key]:
            raise InputError(f"column {keys[0]!r} is of the primary key, and stays: delete the rows, and put others")

        def put(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
            return edit.apply(rows).rows or rows, no_keys(self.snapshot)

        return self._change_matching("update", edit.condition.predicate, put)

    def merge(
        self, source: Any, on: Sequence[str] | None, clauses: MergeClauseSpecs, *, merge_schema: bool
    ) -> Committed:
        key = self.merge_key(on)
        _refuse_columns(merge_schema)
        rows = read_source(source, self.table.schema)
        spec = self.table.merge_spec(rows.schema, key, clauses)
        merge_rows = spec.match(rows)

        def change(found: pa.Table) -> tuple[pa.Table, pa.Table]:
            updated, gone, matched_rows = merge_rows.change(found)
            inserted = [
                storage.conform_rows(part, self.snapshot.schema) for part in merge_rows.unmatched_rows(matched_rows)
            ]
            return pa.concat_tables([updated, *inserted]), gone.select(list(key))

        if not len(rows) and not spec.clauses.not_matched_by_source:
            return self._nothing
        condition = resolve_evaluable(spec.predicate(merge_rows.key_values()), self.snapshot, self.table.engine)
        return self._change_matching("merge", condition, change, merge_rows.relevant_rows)

    def overwrite(self, data: Any, where: str | Predicate | None, *, merge_schema: bool) -> Committed:
        if where is not None:
            raise InputError(
                Operation.call("overwrite", where=...)
                + " could bring a second row of a key that stays: delete what is to go, and "
                + Advice.call("upsert")
                + " others"
            )
        _refuse_columns(merge_schema)
        builders = index_builders(self.snapshot, self.table.host)
        batches = arrow_input.to_record_batches(data, self.table.schema)
        staged = stage_rows(self.stored, builders, self._each_key_once(batches))
        transaction = self.stored.transaction(builders)
        transaction.stage(storage.OverwriteSegments(tuple(staged), keys_once=True), staged)
        return self._committed(transaction.commit("overwrite"))

    def merge_key(self, on: Sequence[str] | None) -> Sequence[str]:
        key = self.snapshot.key
        if on is not None and set(on) != set(key):
            raise InputError(f"on={list(on)!r}: rows of a table with a primary key are merged by it, {list(key)}")
        return key

    def explain(self, job: DmlJob) -> Explanation:
        predicate = job.condition.predicate
        if job.operation == "delete":
            plans = KeyedDelete(predicate, self.table.engine, job.builders).plan_blocks(self.stored)
            return explain_by_key(job, self.writes, plans)
        return explain_by_key(job, self.writes)

    def _each_key_once(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Conform rows to the table. Raises RepeatedKey, after the last of them, for a key that comes twice."""
        keys, names = list[pa.Table](), list(self.snapshot.key)
        for batch in batches:
            rows = storage.conform_rows(batch, self.snapshot.schema)
            keys.append(rows.select(names))
            yield rows
        if keys:
            storage.check_keys_once(pa.concat_tables(keys), names)

    def _change_matching(
        self,
        operation: str,
        predicate: Predicate | None,
        change: Callable[[pa.Table], tuple[pa.Table, pa.Table]],
        relevant: Callable[[pa.Table], pa.Table] = lambda rows: rows,
    ) -> Committed:
        """Commit what is made of the rows that a condition is true on, as long as these are the same.

        ``change``: from these rows to those that are put, and keys that go. ``relevant``: from these rows to those on
        which that depends.
        """
        head, first = self.stored, None
        for _ in range(_ATTEMPTS):
            if head.snapshot.schema != self.snapshot.schema:
                break
            names = tuple(self.snapshot.schema.names)
            rows = Scan(plan_scan(head, predicate, self.table.engine), names, self.table.host.functions).to_arrow()
            rows = rows.sort_by([(name, "ascending") for name in head.snapshot.key])
            if first is not None and not row_hashes(relevant(rows)).equals(first):
                break
            puts, deletes = change(rows)
            if not len(puts) and not len(deletes):
                return self._nothing
            try:
                own = pa.concat_tables([part.select(list(self.snapshot.key)) for part in (rows, puts, deletes)])
                read = RowsRead(head, own, self.table.engine, True, predicate)
                return commit_by_key(head, self.table.host, puts, deletes, still_holds=read.still_hold)
            except Conflict:
                head, first = head.refresh(), row_hashes(relevant(rows))
        raise Conflict(
            f"rows that this {operation} read were changed up to {head.entry}: read them again, and decide again",
            str(head.entry),
        )

    def _put(self, changes: KeyChanges, application: tuple[str, int] | None) -> Committed:
        """Commit puts, which may lack columns, and deletes.

        Columns that others added since this handle's state are columns that the rows lack. Raises Conflict where others
        renamed or dropped one that they have.
        """
        rows, deletes = changes.puts, changes.deletes
        if not len(rows) and not len(deletes):
            return self._nothing
        head, names = self.stored, [*rows.column_names, *self.snapshot.key]
        for attempt in range(_ATTEMPTS):
            check_same_columns(self.snapshot.schema, names, head.snapshot)
            missing = missing_columns(rows.column_names, head.snapshot) if len(rows) else []
            whole, still_holds = head.snapshot.schema.empty_table(), None
            if len(rows):
                same = head.snapshot.schema == self.snapshot.schema
                whole = rows if same else in_columns(rows, head.snapshot)
            if missing:
                whole = self._completed(head, whole, missing)
                still_holds = RowsRead(head, rows.select(list(head.snapshot.key)), self.table.engine).still_hold
            try:
                return commit_by_key(head, self.table.host, whole, deletes, application, still_holds)
            except Conflict:
                later = head.refresh()
                if attempt == _ATTEMPTS - 1 or not (missing or later.snapshot.schema != head.snapshot.schema):
                    raise
                head = later
        raise AssertionError

    def _completed(self, head: StoredTable, rows: pa.Table, missing: Sequence[str]) -> pa.Table:
        """Rows with the columns that they lack: those of the rows that are there, or their defaults."""
        schema, key = head.snapshot.schema, head.snapshot.key
        there = look_up(head, rows.select(list(key)), tuple(dict.fromkeys([*key, *missing])), self.table.engine)
        places = storage.places_of_keys(storage.key_table(rows, key), storage.key_table(there, key))
        is_new = pa.array(places < 0)
        for name in missing:
            field = schema.find([name])
            values = there.column(name).take(pa.array(places, mask=places < 0))
            if field.write_default is not None:
                values = pc.if_else(is_new, pa.repeat(field.write_scalar, len(rows)), values)
            rows = rows.append_column(pa.field(name, field.type), values)
        return rows.select(schema.names)

    def _key_rows(self, keys: Any) -> pa.Table:
        """Keys, in whatever form they are given, as rows of the key's columns."""
        key = self.snapshot.key
        if isinstance(keys, str) and not (set(keys) & set("/.*")):
            raise InputError(f"keys={keys!r}: give a list of keys, [{keys!r}], or the path of a file that holds some")
        if _are_values(keys):
            if len(key) > 1:
                raise InputError(f"the primary key is {list(key)}: give rows of these columns, such as a list of dicts")
            keys = {key[0]: keys}
        rows = read_uniform_rows(keys, self.table.schema)
        if not len(rows):
            return no_keys(self.snapshot)
        if odd := [name for name in rows.column_names if name not in key]:
            raise storage.SchemaError(f"the keys have a column {odd[0]!r}: the primary key is {list(key)}")
        if lacking := [name for name in key if name not in rows.column_names]:
            raise storage.SchemaError(f"the keys lack column {lacking[0]!r}: the primary key is {list(key)}")
        return storage.conform_rows(rows, storage.key_schema_of(self.snapshot))


def _refuse_columns(merge_schema: bool) -> None:
    if merge_schema:
        raise InputError(
            Operation.argument("merge", merge_schema=True)
            + ": columns of a table with a primary key are added by "
            + Advice.call("add_column")
            + ", before"
        )


def _are_values(keys: Any) -> bool:
    """Whether keys are given as values of one column, and not as rows."""
    if isinstance(keys, list | tuple):
        return len(keys) > 0 and not isinstance(keys[0], dict) and not arrow_input.holds_rows(keys[0])
    if isinstance(keys, pa.Array | pa.ChunkedArray):
        return not pa.types.is_struct(keys.type)
    return hasattr(keys, "dtype")
