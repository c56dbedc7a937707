"""Rows of a table and of a source that have the same key, for ``merge``."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.errors import InputError
from fuse_index.operations.merge_clauses import SOURCE, TARGET, MergeClauses, action_masks
from fuse_index.operations.rewrite_job import RowNumbers
from fuse_index.operations.row_edits import EditedBlock, MarkedRows, spread_mask
from fuse_index.predicate import And, Column, Compare, In, Literal, Or, Predicate
from fuse_storage import (
    BlockFrame,
    Schema,
    SchemaChange,
    SchemaError,
    StoredTable,
    conform_rows,
    is_exact_type,
    live_among,
    pack_mask,
)

MAX_KEYS_IN_PREDICATE = 10_000
"""Keys beyond which a block is judged by their least and greatest alone."""
_TARGET_ROW_COLUMN, _SOURCE_ROW_COLUMN = "\0row", "\0match"


def merge_source_schema(source: pa.Schema, schema: Schema) -> Schema:
    """A source's columns: those of the table as the table has them, others as they come. Raises SchemaError."""
    known = {field.name: field for field in schema.fields}
    others = Schema.create(pa.schema([field for field in source if field.name not in known]))
    return Schema(schema.id, tuple(known.get(name) or others.find([name]) for name in source.names))


@dataclass(frozen=True)
class KeyValues:
    """What a source has in one column of the key: all values or, ``is_range``, the least and the greatest."""

    values: pa.Array
    is_range: bool = False

    @staticmethod
    def from_column(values: pa.ChunkedArray) -> KeyValues:
        distinct = pc.unique(values)
        if len(distinct) <= MAX_KEYS_IN_PREDICATE:
            return KeyValues(distinct)
        return KeyValues(pa.array([bound.as_py() for bound in pc.min_max(distinct).values()], distinct.type), True)

    def predicates(self, column: Column) -> list[Predicate]:
        """What is true on every row of the table that has such a value."""
        literals = tuple(Literal(value, column.type) for value in self.values.to_pylist())
        if not self.is_range:
            return [In(column, literals)]
        return [Compare(">=", column, literals[0]), Compare("<=", column, literals[1])]


@dataclass(frozen=True)
class MergeSpec:
    """What a merge does, whatever rows come: by which columns rows match, and what the clauses say.

    ``source_schema``: see ``merge_source_schema``. ``schema``: the table's columns as they will be, and
    ``schema_change`` the step to them. Picklable.
    """

    key_columns: tuple[str, ...]
    source_schema: Schema
    schema: Schema
    clauses: MergeClauses
    schema_change: SchemaChange | None = None

    def validate(self) -> MergeSpec:
        """Check it; returns itself. Raises InputError for keys that cannot be, SchemaError for unknown columns."""
        on, names = self.key_columns, self.source_schema.names
        if twice := [name for place, name in enumerate(on) if name in on[:place]]:
            raise InputError(f"on={list(on)!r} has {twice[0]!r} twice: name it once")
        for name in on:
            kind = self.schema.find([name]).type
            if not is_exact_type(kind):
                raise InputError(f"column {name!r} is {kind}, and rows cannot be matched by it: choose another column")
            if name not in names:
                raise InputError(f"the source lacks column {name!r}, by which rows are to be matched: it has {names}")
        known = {*self.schema.names, *self.clauses.source_columns}
        if unknown := [name for name in names if name not in known]:
            near = difflib.get_close_matches(unknown[0], self.schema.names, 1)
            has = f"it has {self.schema.names}, and no condition names it."
            hint = f"did you mean {near[0]!r}?" if near else has
            raise SchemaError(
                f"the source has a column {unknown[0]!r} that the table lacks: {hint} "
                f"To add it, write with merge_schema"
            )
        return self

    def match(self, source: pa.Table) -> MergeRows:
        """The edit by these rows of a source. Raises SchemaError for values that do not fit."""
        return MergeRows(conform_rows(source, self.source_schema), self)

    def predicate(self, keys: Mapping[str, KeyValues]) -> Predicate | None:
        """True on every row of the table that the source may match, or that a clause is about; None: on all.

        ``keys``: by column of the key, what values the source has.
        """
        if missing := [name for name in self.key_columns if name not in keys]:
            raise InputError(f"keys={sorted(keys)!r} lack column {missing[0]!r} of the key")
        others = self.clauses.unmatched_target_predicates
        if others is None:
            return None
        columns = {name: Column((name,), self.schema.find([name]).type) for name in self.key_columns}
        matching = And(tuple(part for name, column in columns.items() for part in keys[name].predicates(column)))
        return Or((matching, *others)) if others else matching


@dataclass(frozen=True)
class _Actions:
    """What becomes of the rows of a block. ``deleted``: bool, shape (rows,). All others are int64.

    ``updated``: rows of the block, ascending, and ``update_rows``: those of the source that each gets its values from.
    ``matched_rows``: all rows of the source that match one.
    """

    deleted: npt.NDArray[np.bool_]
    updated: RowNumbers
    update_rows: RowNumbers
    matched_rows: RowNumbers

    @property
    def counts(self) -> dict[str, int]:
        """Rows by what becomes of them; none if nothing does."""
        deleted, updated = int(np.count_nonzero(self.deleted)), len(self.updated)
        counts = {"updated_rows": updated} if updated else {}
        return counts | {"deleted_rows": deleted} if updated or deleted else {}


@dataclass(frozen=True)
class MergeRows:
    """The edit of a merge: finds which rows of the source match which of a block, and does what the clauses say.

    ``source``: rows in the types of the spec's ``source_schema``.
    """

    source: pa.Table
    spec: MergeSpec

    def key_values(self) -> dict[str, KeyValues]:
        """By column of the key, the values that rows with a whole key have: NULL matches nothing."""
        keys = self.source.select(list(self.spec.key_columns)).drop_null()
        return {name: KeyValues.from_column(keys.column(name)) for name in self.spec.key_columns}

    def apply(self, block: pa.Table) -> EditedBlock:
        actions = self._decide(block)
        if not actions.counts:
            return EditedBlock(None, matched_rows=actions.matched_rows)
        if len(actions.updated):
            block = self._update_rows(block, actions.updated, actions.update_rows)
        return EditedBlock(block.filter(pack_mask(~actions.deleted)), actions.counts, actions.matched_rows)

    def change(self, rows: pa.Table) -> tuple[pa.Table, pa.Table, RowNumbers]:
        """Split rows of the table into those that are updated, as they become, and those that go.

        And the numbers of the rows of the source that match one: int64, shape (n,).
        """
        actions = self._decide(rows)
        updated = rows.take(pa.array(actions.updated))
        updated = self._update_rows(updated, np.arange(len(updated)), actions.update_rows)
        return updated, rows.filter(pack_mask(actions.deleted)), actions.matched_rows

    def relevant_rows(self, rows: pa.Table) -> pa.Table:
        """Keep the rows of the table that match a row of the source, or go."""
        mask = self._decide(rows).deleted
        mask[self._matching_rows(rows)[0]] = True
        return rows.filter(pack_mask(mask))

    def mark(self, table: StoredTable, blocks: BlockFrame, position: int) -> MarkedRows:
        """Mark rows that go or are updated. Reads the key and what clauses name, and of updated rows the rest later."""
        live = live_among(blocks, position)
        names = [name for name in self.spec.schema.names if name in self._decisive_columns]
        actions = self._decide(table.read_block(blocks, position, names, row_mask=live))
        updated = np.zeros(len(actions.deleted), np.bool_)
        updated[actions.updated] = True

        def read_new() -> pa.Table:
            mask = spread_mask(updated, live)
            rows = table.read_block(blocks, position, self.spec.schema.names, row_mask=mask)
            return self._update_rows(rows, np.arange(len(rows)), actions.update_rows)

        gone = spread_mask(updated | actions.deleted, live)
        return MarkedRows(gone, actions.counts, read_new if updated.any() else None, actions.matched_rows)

    @property
    def _decisive_columns(self) -> set[str]:
        """Columns of the table by which it is decided what becomes of a row."""
        clauses = (*self.spec.clauses.matched, *self.spec.clauses.not_matched_by_source)
        named = {column.path[1] for clause in clauses for column in clause.columns if column.path[0] == TARGET}
        return {*self.spec.key_columns, *named}

    def _decide(self, block: pa.Table) -> _Actions:
        """What the clauses do to the rows of a block, which has the decisive columns at least."""
        matching, source_rows = self._matching_rows(block)
        is_matching = np.zeros(block.num_rows, np.bool_)
        is_matching[matching] = True
        others = np.flatnonzero(~is_matching)
        on_matching = action_masks(
            self.spec.clauses.matched, len(matching), {SOURCE: (self.source, source_rows), TARGET: (block, matching)}
        )
        on_others = action_masks(self.spec.clauses.not_matched_by_source, len(others), {TARGET: (block, others)})
        deleted = np.zeros(block.num_rows, np.bool_)
        deleted[matching] = on_matching.get("delete", False)
        deleted[others] = on_others.get("delete", False)
        update = on_matching.get("update", np.zeros(len(matching), np.bool_))
        return _Actions(deleted, matching[update], source_rows[update], source_rows)

    def unmatched_rows(self, matched_rows: RowNumbers) -> list[pa.Table]:
        """The rows of the source that are to be inserted since they matched none, in columns of the table.

        ``matched_rows``: numbers of those that did match, int64, shape (n,). Gives one table, or none.
        """
        is_unmatched = np.ones(self.source.num_rows, np.bool_)
        is_unmatched[matched_rows] = False
        unmatched = np.flatnonzero(is_unmatched)
        inserted = action_masks(self.spec.clauses.not_matched, len(unmatched), {SOURCE: (self.source, unmatched)}).get(
            "insert", np.zeros(len(unmatched), np.bool_)
        )
        rows = self.source.select(self._shared_columns).take(pa.array(unmatched[inserted]))
        return [rows] if rows.num_rows else []

    @property
    def _shared_columns(self) -> list[str]:
        """The columns of the source that the table has."""
        return [name for name in self.source.column_names if name in self.spec.schema.names]

    def _matching_rows(self, block: pa.Table) -> tuple[RowNumbers, RowNumbers]:
        """Find the rows of a block whose key the source has. Raises InputError if it has one twice.

        Returns two int64 arrays of one length: numbers of those rows, ascending, and of the row of the source that each
        matches.
        """
        keys = list(self.spec.key_columns)
        target = block.select(keys).append_column(_TARGET_ROW_COLUMN, pa.array(np.arange(block.num_rows)))
        source = self.source.select(keys).append_column(_SOURCE_ROW_COLUMN, pa.array(np.arange(self.source.num_rows)))
        pairs = target.join(source, keys=keys, join_type="inner").sort_by(_TARGET_ROW_COLUMN)
        target_rows, source_rows = (
            np.asarray(pairs.column(name).to_numpy(), np.int64) for name in (_TARGET_ROW_COLUMN, _SOURCE_ROW_COLUMN)
        )
        if (repeated := np.flatnonzero(target_rows[1:] == target_rows[:-1])).size:
            key = block.select(keys).slice(int(target_rows[repeated[0]]), 1).to_pylist()[0]
            raise InputError(f"several rows of the source match {key}: leave one for each key")
        return target_rows, source_rows

    def _update_rows(self, block: pa.Table, target_rows: RowNumbers, source_rows: RowNumbers) -> pa.Table:
        """The block with these of its rows in the values of these rows of the source, column by column."""
        row_numbers = np.arange(block.num_rows)
        row_numbers[target_rows] = block.num_rows + np.arange(len(target_rows))
        updates = self.source.take(pa.array(source_rows))
        for name in self._shared_columns:
            old, new = block.column(name), updates.column(name)
            both = pa.chunked_array([*old.chunks, *new.chunks], old.type)
            block = block.set_column(
                block.column_names.index(name), block.schema.field(name), both.take(pa.array(row_numbers))
            )
        return block
