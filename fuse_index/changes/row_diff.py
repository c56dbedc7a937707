"""Blocks that only one of two snapshots has, row by row: which of their rows are changes, and which of these belong
together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from fuse_index.changes.multiset import paired
from fuse_index.changes.row_hash import KIND, fingerprints
from fuse_index.expressions.evaluate import evaluate
from fuse_storage import Blocks

if TYPE_CHECKING:
    from fuse_index.changes.changes import Changes

Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.int64]

CHANGE_TYPE = "_change_type"
INSERT, DELETE, BEFORE, AFTER = "insert", "delete", "update_preimage", "update_postimage"


@dataclass
class Side:
    """Blocks that only one of the snapshots has. ``chosen``: which of their rows are changes; None: not known yet."""

    changes: Changes
    blocks: Blocks
    chosen: list[Mask] | None = None

    def read(self, block: int, columns: Sequence[str], rows: Mask | None = None) -> pa.Table:
        """In the schema of the later snapshot."""
        return self.changes.shape.read(self.blocks, block, columns, rows=rows)

    def fingerprints(self) -> list[pa.Array]:
        """Of the rows of each block; NULL where the predicate is not true."""
        return [self._fingerprints(block) for block in range(len(self.blocks))]

    def _fingerprints(self, block: int) -> pa.Array:
        rows = self.read(block, self.changes.shape.snapshot.schema.names)
        truth = self._true(rows)
        return fingerprints(rows) if truth is None else _spread(fingerprints(rows.filter(pa.array(truth))), truth)

    def tables(self, kind: str) -> Iterator[pa.Table]:
        """The rows that are changes, block after block."""
        columns = self.changes.columns
        for block in range(len(self.blocks)):
            mask = (
                self._true(self.read(block, self.changes.shape.snapshot.schema.names))
                if self.chosen is None
                else self.chosen[block]
            )
            if mask is None or mask.any():
                yield _marked(self.read(block, columns, mask), kind)

    def _true(self, rows: pa.Table) -> Mask | None:
        predicate, context, host = self.changes.predicate, self.changes.context, self.changes.host
        if predicate is None:
            return None
        return np.asarray(
            evaluate(predicate, rows, context, host.functions).fill_null(False).to_numpy(zero_copy_only=False), np.bool_
        )

    def keys(self, names: Sequence[str]) -> list[pa.Array]:
        """Fingerprints of the keys of the rows that are changes; NULL of the others, and where a part of the key is."""
        return [self._keys(block, mask, names) for block, mask in enumerate(self.chosen or ())]

    def _keys(self, block: int, mask: Mask, names: Sequence[str]) -> pa.Array:
        if not mask.any():
            return pa.nulls(len(mask), KIND)
        rows = self.read(block, names, mask)
        whole = np.logical_and.reduce([np.asarray(column.is_valid()) for column in rows.columns])
        found, places = mask.copy(), np.flatnonzero(mask)
        found[places[~whole]] = False
        return _spread(fingerprints(rows.filter(pa.array(whole))), found)

    @cached_property
    def starts(self) -> Indices:
        """Where each block begins if rows are counted through all, and at last where all end."""
        return np.concatenate([[0], np.cumsum(self.blocks.row_counts)])


@dataclass
class Pairs:
    """Changes with a key: what went and what came under the same one are what a row was and what it became."""

    gone: Side
    came: Side
    key: Sequence[str]

    def tables(self) -> Iterator[pa.Table]:
        was, now = paired(self.gone.keys(self.key), self.came.keys(self.key))
        matched = np.zeros(self.gone.starts[-1], np.bool_)
        matched[was] = True
        assert self.gone.chosen is not None
        assert self.came.chosen is not None
        self.gone.chosen = [
            mask & ~part for mask, part in zip(self.gone.chosen, np.split(matched, self.gone.starts[1:-1]), strict=True)
        ]
        yield from self.gone.tables(DELETE)
        for block, mask in enumerate(self.came.chosen):
            start = self.came.starts[block]
            first, last = np.searchsorted(now, [start, start + len(mask)])
            after, rest = np.zeros(len(mask), np.bool_), mask.copy()
            after[now[first:last] - start] = True
            rest[after] = False
            if after.any():
                yield self._updated(was[first:last], self.came.read(block, self.gone.changes.columns, after))
            if rest.any():
                yield _marked(self.came.read(block, self.gone.changes.columns, rest), INSERT)

    def _updated(self, was: Indices, after: pa.Table) -> pa.Table:
        """Each row that was, and after it the one that it became."""
        both = pa.concat_tables([_marked(self._rows(was), BEFORE), _marked(after, AFTER)])
        return both.take(pa.array(np.arange(2 * len(was)).reshape(2, -1).T.ravel()))

    def _rows(self, places: Indices) -> pa.Table:
        """Rows that went, in this order, from whichever blocks."""
        order = np.argsort(places)
        found, owners = [], np.searchsorted(self.gone.starts, places[order], side="right") - 1
        for block in np.unique(owners).tolist():
            mask = np.zeros(self.gone.blocks.row_counts[block], np.bool_)
            mask[places[order][owners == block] - self.gone.starts[block]] = True
            found.append(self.gone.read(block, self.gone.changes.columns, mask))
        return pa.concat_tables(found).take(pa.array(np.argsort(order)))


def _marked(rows: pa.Table, kind: str) -> pa.Table:
    return rows.append_column(CHANGE_TYPE, pa.repeat(pa.scalar(kind, pa.string()), rows.num_rows))


def _spread(values: pa.Array, mask: Mask) -> pa.Array:
    """The values where the mask is set, in order, and NULL elsewhere."""
    return (
        values.take(pa.array(np.where(mask, np.cumsum(mask) - 1, 0), mask=~mask))
        if len(values)
        else pa.nulls(len(mask), KIND)
    )
