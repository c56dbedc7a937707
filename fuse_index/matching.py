"""Rows of a table and of a source that have the same key, for ``merge``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.errors import InputError
from fuse_index.predicate import And, Column, Compare, In, Literal, Predicate
from fuse_storage import Schema, SchemaError, conformed, exact

MANY = 10_000
"""Keys beyond which a block is judged by their least and greatest alone."""
ROW, SOURCE = "\0row", "\0source"


@dataclass
class Match:
    """Which rows of the source match which of the table, block by block.

    ``source`` has columns of the table alone, in its types; ``seen``: which of its rows matched so far.
    """

    source: pa.Table
    on: tuple[str, ...]
    schema: Schema
    matched: str | None
    by_source: str | None
    seen: npt.NDArray[np.bool_]
    counts: dict[str, int] = field(default_factory=dict)

    @staticmethod
    def of(source: pa.Table, on: Sequence[str], schema: Schema, matched: str | None, by_source: str | None) -> Match:
        """Raises InputError for keys that cannot be, SchemaError for columns that do not fit."""
        if isinstance(on, str) or not on:
            raise InputError(f"on={on!r}: give a list of the columns that are the key")
        if twice := [name for place, name in enumerate(on) if name in on[:place]]:
            raise InputError(f"on={list(on)!r} has {twice[0]!r} twice: name it once")
        for name in on:
            kind = schema.find([name]).type
            if not exact(kind):
                raise InputError(f"column {name!r} is {kind}, and rows cannot be matched by it: choose columns of exact, plain types")
            if name not in source.column_names:
                raise InputError(f"the source lacks column {name!r}, by which rows are to be matched: it has {source.column_names}")
        if unknown := [name for name in source.column_names if name not in schema.names]:
            raise SchemaError(f"the source has a column {unknown[0]!r} that the table lacks: it has {schema.names}")
        fields = [schema.find([name]) for name in source.column_names]
        fitted = [conformed(source.select([one.name]), Schema(schema.id, (one,))).column(0) for one in fields]
        whole = pa.table(fitted, names=source.column_names) if fields else source
        return Match(whole, tuple(on), schema, matched, by_source, np.zeros(len(whole), np.bool_))

    @property
    def possible(self) -> bool:
        """Whether any row of the source has a key at all."""
        return bool(self._keys().num_rows)

    @property
    def predicate(self) -> Predicate:
        """True on every row of the table that the source may match."""
        keys = self._keys()
        return And(tuple(part for name in self.on for part in self._about(name, pc.unique(keys.column(name)))))

    def _about(self, name: str, values: pa.Array) -> list[Predicate]:
        column = Column((name,), self.schema.find([name]).type)
        if len(values) <= MANY:
            return [In(column, tuple(Literal(value, column.type) for value in values.to_pylist()))]
        least, greatest = (Literal(bound.as_py(), column.type) for bound in pc.min_max(values).values())
        return [Compare(">=", column, least), Compare("<=", column, greatest)]

    def _keys(self) -> pa.Table:
        """The keys that can match: those without NULL."""
        return self.source.select(list(self.on)).drop_null()

    def __call__(self, block: pa.Table) -> pa.Table | None:
        """What is to be of these rows; None if they stay."""
        places, sources = self._pairs(block)
        self.seen[sources] = True
        mask = np.zeros(block.num_rows, np.bool_)
        mask[places] = True
        gone = np.zeros(block.num_rows, np.bool_)
        if self.matched == "delete":
            gone |= mask
        if self.by_source == "delete":
            gone |= ~mask
        update = self.matched == "update" and len(places) > 0
        if not update and not gone.any():
            return None
        if update:
            block = self._updated(block, places, sources)
            self.counts["updated_rows"] = self.counts.get("updated_rows", 0) + len(places)
        self.counts["deleted_rows"] = self.counts.get("deleted_rows", 0) + int(gone.sum())
        return block.filter(pa.array(~gone))

    def left(self) -> list[pa.Table]:
        """The rows of the source that matched none, with every column of the table."""
        rest = self.source.filter(pa.array(~self.seen))
        if not rest.num_rows:
            return []
        for one in self.schema.fields:
            if one.name not in rest.column_names:
                rest = rest.append_column(one.name, pa.repeat(one.default_scalar, rest.num_rows))
        return [rest]

    def _pairs(self, block: pa.Table) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Rows of the block, each once and in order, and the row of the source that each matches. Raises InputError."""
        keys = list(self.on)
        left = block.select(keys).append_column(ROW, pa.array(np.arange(block.num_rows)))
        right = self.source.select(keys).append_column(SOURCE, pa.array(np.arange(self.source.num_rows)))
        pairs = left.join(right, keys=keys, join_type="inner").sort_by(ROW)
        places, sources = (np.asarray(pairs.column(name).to_numpy(), np.int64) for name in (ROW, SOURCE))
        if (twice := np.flatnonzero(places[1:] == places[:-1])).size:
            key = block.select(keys).slice(int(places[twice[0]]), 1).to_pylist()[0]
            raise InputError(f"several rows of the source match {key}: leave one for each key")
        return places, sources

    def _updated(self, block: pa.Table, places: npt.NDArray[np.int64], sources: npt.NDArray[np.int64]) -> pa.Table:
        """The block with columns of these rows of the source in these places."""
        from_source = np.arange(block.num_rows)
        from_source[places] = block.num_rows + np.arange(len(places))
        chosen = self.source.take(pa.array(sources))
        for name in self.source.column_names:
            both = pa.chunked_array([*block.column(name).chunks, *chosen.column(name).chunks], block.column(name).type)
            block = block.set_column(block.column_names.index(name), block.schema.field(name), both.take(pa.array(from_source)))
        return block
