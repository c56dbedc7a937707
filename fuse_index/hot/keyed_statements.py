"""Merges and overwrites of tables with a primary key: puts and deletes of what comes out, or a base of other rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

import fuse_storage as storage
from fuse_index.errors import InputError
from fuse_index.hot.by_key import KeyedMixin
from fuse_index.indexes.builder import index_builders
from fuse_index.ingest import arrow_input
from fuse_index.operations.merge_clauses import MergeClauseSpec
from fuse_index.operations.row_edits import stage_rows
from fuse_index.predicate import Predicate
from fuse_storage import Snapshot


class KeyedStatementsMixin(KeyedMixin):
    """The part of ``fuse_index.Table`` that merges and overwrites, with regard to a primary key where there is one."""

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
        if not storage.is_keyed(self.snapshot):
            return super().merge(source, on, matched, not_matched, not_matched_by_source, merge_schema=merge_schema)
        self._check_writable()
        key = self.snapshot.key
        if on is not None and set(on) != set(key):
            raise InputError(f"on={list(on)!r}: rows of a table with a primary key are merged by it, {list(key)}")
        if merge_schema:
            raise InputError("merge_schema: columns of a table with a primary key are added by add_column, before")
        rows = self._source_rows(source)
        spec = self.merge_spec(rows.schema, key, (matched, not_matched, not_matched_by_source))
        merge_rows = spec.match(rows)

        def change(found: pa.Table) -> tuple[pa.Table, pa.Table]:
            updated, gone, matched_rows = merge_rows.change(found)
            inserted = [
                storage.conform_rows(part, self.snapshot.schema) for part in merge_rows.unmatched_rows(matched_rows)
            ]
            return pa.concat_tables([updated, *inserted]), gone.select(list(key))

        if not len(rows) and not spec.clauses.not_matched_by_source:
            return self.snapshot
        condition = self._predicate(spec.predicate(merge_rows.key_values()))
        return self._change_matching("merge", condition, self.schema.names, change, merge_rows.relevant_rows)

    def overwrite(self, data: Any, where: str | Predicate | None = None, *, merge_schema: bool = False) -> Snapshot:
        """Replace the rows that the condition is true on, by default all, with others on which it is true too.

        ``merge_schema``: as for ``append``. With a primary key all rows are replaced, those of the tail, too, and each
        key comes once; the keys of the rows that come are held in memory. Raises InputError for a row on which the
        condition is not true, and as ``append`` and ``delete`` do.
        """
        if not storage.is_keyed(self.snapshot):
            return super().overwrite(data, where, merge_schema=merge_schema)
        self._check_writable()
        if where is not None:
            raise InputError(
                "overwrite(where=...) could bring a second row of a key that stays: delete what is to go, and upsert"
            )
        if merge_schema:
            raise InputError("merge_schema: columns of a table with a primary key are added by add_column, before")
        builders = index_builders(self.snapshot, self.host)
        staged = stage_rows(
            self.stored, builders, self._each_key_once(arrow_input.to_record_batches(data, self.schema))
        )
        transaction = self.stored.transaction(builders)
        transaction.stage(storage.OverwriteSegments(tuple(staged), keys_once=True), staged)
        return self._move_to(transaction.commit("overwrite"))

    def _each_key_once(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
        """Conform rows to the table. Raises RepeatedKey, after the last of them, for a key that comes twice."""
        keys, names = list[pa.Table](), list(self.snapshot.key)
        for batch in batches:
            rows = storage.conform_rows(batch, self.snapshot.schema)
            keys.append(rows.select(names))
            yield rows
        if keys:
            storage.check_keys_once(pa.concat_tables(keys), names)
