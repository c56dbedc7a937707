"""Rows of a table and of a source that have the same key, for ``merge``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.errors import InputError
from fuse_index.operations.merge_clauses import SOURCE, TARGET, MergeClauses, action_masks
from fuse_index.predicate import And, Column, Compare, In, Literal, Or, Predicate
from fuse_storage import Schema, SchemaError, conform_rows, is_exact_type

MAX_KEYS_IN_PREDICATE = 10_000
"""Keys beyond which a block is judged by their least and greatest alone."""
_TARGET_ROW_COLUMN, _SOURCE_ROW_COLUMN = "\0row", "\0match"


def merge_source_schema(source: pa.Table, schema: Schema) -> Schema:
    """A source's columns: those of the table as the table has them, others as they come. Raises SchemaError."""
    known = {field.name: field for field in schema.fields}
    others = Schema.create(pa.schema([field for field in source.schema if field.name not in known]))
    return Schema(schema.id, tuple(known.get(name) or others.find([name]) for name in source.column_names))


@dataclass
class MergeRows:
    """Which rows of the source match which of the table, block by block.

    ``source`` has columns of the table, in its types, and such as conditions look at; ``seen``: which of its rows
    matched so far.
    """

    source: pa.Table
    key_columns: tuple[str, ...]
    schema: Schema
    clauses: MergeClauses
    matched_rows: npt.NDArray[np.bool_]
    counts: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def from_source(source: pa.Table, on: Sequence[str], schema: Schema, clauses: MergeClauses) -> MergeRows:
        """Raises InputError for keys that cannot be, SchemaError for columns that do not fit."""
        if isinstance(on, str) or not on:
            raise InputError(f"on={on!r}: give a list of the columns that are the key")
        if twice := [name for place, name in enumerate(on) if name in on[:place]]:
            raise InputError(f"on={list(on)!r} has {twice[0]!r} twice: name it once")
        for name in on:
            kind = schema.find([name]).type
            if not is_exact_type(kind):
                raise InputError(
                    f"column {name!r} is {kind}, and rows cannot be matched by it: choose columns of exact, plain types"
                )
            if name not in source.column_names:
                raise InputError(
                    f"the source lacks column {name!r}, by which rows are to be matched: it has {source.column_names}"
                )
        if unknown := [
            name for name in source.column_names if name not in schema.names and name not in clauses.source_columns
        ]:
            has = f"it has {schema.names}, and no condition names it"
            raise SchemaError(f"the source has a column {unknown[0]!r} that the table lacks: {has}")
        fitted = conform_rows(source, merge_source_schema(source, schema))
        return MergeRows(fitted, tuple(on), schema, clauses, np.zeros(len(fitted), np.bool_))

    @property
    def has_keys(self) -> bool:
        """Whether any row of the source has a key at all."""
        return bool(self._non_null_keys().num_rows)

    @property
    def predicate(self) -> Predicate | None:
        """True on every row of the table that the source may match, or that a clause is about; None: on all."""
        keys, others = self._non_null_keys(), self.clauses.unmatched_target_predicates
        if others is None:
            return None
        matching = And(
            tuple(
                part for name in self.key_columns for part in self._key_predicates(name, pc.unique(keys.column(name)))
            )
        )
        return Or((matching, *others)) if others else matching

    def _key_predicates(self, name: str, values: pa.Array) -> list[Predicate]:
        column = Column((name,), self.schema.find([name]).type)
        if len(values) <= MAX_KEYS_IN_PREDICATE:
            return [In(column, tuple(Literal(value, column.type) for value in values.to_pylist()))]
        least, greatest = (Literal(bound.as_py(), column.type) for bound in pc.min_max(values).values())
        return [Compare(">=", column, least), Compare("<=", column, greatest)]

    def _non_null_keys(self) -> pa.Table:
        """The keys that can match: those without NULL."""
        return self.source.select(list(self.key_columns)).drop_null()

    def __call__(self, block: pa.Table) -> pa.Table | None:
        """What is to be of these rows; None if they stay."""
        places, sources = self._matched_pairs(block)
        self.matched_rows[sources] = True
        mask = np.zeros(block.num_rows, np.bool_)
        mask[places] = True
        matched = action_masks(
            self.clauses.matched, len(places), {SOURCE: (self.source, sources), TARGET: (block, places)}
        )
        alone = np.flatnonzero(~mask)
        others = action_masks(self.clauses.not_matched_by_source, len(alone), {TARGET: (block, alone)})
        gone = np.zeros(block.num_rows, np.bool_)
        gone[places] = matched.get("delete", False)
        gone[alone] = others.get("delete", False)
        update = matched.get("update", np.zeros(len(places), np.bool_))
        if not update.any() and not gone.any():
            return None
        if update.any():
            block = self._update_rows(block, places[update], sources[update])
            self.counts["updated_rows"] = self.counts.get("updated_rows", 0) + int(update.sum())
        self.counts["deleted_rows"] = self.counts.get("deleted_rows", 0) + int(gone.sum())
        return block.filter(pa.array(~gone))

    def unmatched_rows(self) -> list[pa.Table]:
        """The rows of the source that matched none and are to be inserted, with every column of the table."""
        left = np.flatnonzero(~self.matched_rows)
        chosen = action_masks(self.clauses.not_matched, len(left), {SOURCE: (self.source, left)}).get(
            "insert", np.zeros(len(left), np.bool_)
        )
        rest = self.source.select(self._shared_columns).take(pa.array(left[chosen]))
        if not rest.num_rows:
            return []
        for one in self.schema.fields:
            if one.name not in rest.column_names:
                rest = rest.append_column(one.name, pa.repeat(one.default_scalar, rest.num_rows))
        return [rest]

    @property
    def _shared_columns(self) -> list[str]:
        """The columns of the source that the table has."""
        return [name for name in self.source.column_names if name in self.schema.names]

    def _matched_pairs(self, block: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Rows of the block, each once and in order, and the row of the source that each matches. Raises InputError."""
        keys = list(self.key_columns)
        left = block.select(keys).append_column(_TARGET_ROW_COLUMN, pa.array(np.arange(block.num_rows)))
        right = self.source.select(keys).append_column(_SOURCE_ROW_COLUMN, pa.array(np.arange(self.source.num_rows)))
        pairs = left.join(right, keys=keys, join_type="inner").sort_by(_TARGET_ROW_COLUMN)
        places, sources = (
            np.asarray(pairs.column(name).to_numpy(), np.int64) for name in (_TARGET_ROW_COLUMN, _SOURCE_ROW_COLUMN)
        )
        if (twice := np.flatnonzero(places[1:] == places[:-1])).size:
            key = block.select(keys).slice(int(places[twice[0]]), 1).to_pylist()[0]
            raise InputError(f"several rows of the source match {key}: leave one for each key")
        return places, sources

    def _update_rows(self, block: pa.Table, places: npt.NDArray[np.int64], sources: npt.NDArray[np.int64]) -> pa.Table:
        """The block with columns of these rows of the source in these places."""
        from_source = np.arange(block.num_rows)
        from_source[places] = block.num_rows + np.arange(len(places))
        chosen = self.source.take(pa.array(sources))
        for name in self._shared_columns:
            both = pa.chunked_array([*block.column(name).chunks, *chosen.column(name).chunks], block.column(name).type)
            block = block.set_column(
                block.column_names.index(name), block.schema.field(name), both.take(pa.array(from_source))
            )
        return block
