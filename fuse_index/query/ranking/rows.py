"""Rows that a search found, read in the order of their scores, and signs around what matches in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fuse_storage import StoredTable


class ScoredRow(NamedTuple):
    """A row that was found, and its score."""

    block: int
    row: int
    """Its number in the block."""
    score: float


def read_scored_rows(table: StoredTable, scored_rows: Sequence[ScoredRow], names: list[str]) -> pa.Table:
    """Read these columns of the rows, in the order of the rows."""
    blocks = table.blocks()
    tables: list[pa.Table] = []
    position: dict[tuple[int, int], int] = {}  # of each (block, row) among all rows that are read
    for block in dict.fromkeys(scored.block for scored in scored_rows):
        mask = np.zeros(int(blocks.row_counts[block]), np.bool_)
        mask[[scored.row for scored in scored_rows if scored.block == block]] = True
        tables.append(table.read_block(blocks, block, names, None, mask))
        for row in np.flatnonzero(mask).tolist():
            position[block, row] = len(position)
    if not tables:
        return table.snapshot.schema.empty_table().select(names)
    return pa.concat_tables(tables).take(pa.array([position[scored.block, scored.row] for scored in scored_rows]))


def insert_signs(text: str | None, spans: Sequence[tuple[int, int]], signs: tuple[str, str]) -> str | None:
    """Put the signs before and after each span of the text, (start, end) in characters."""
    if text is None:
        return None
    parts, last = [], 0
    for start, end in spans:
        parts += [text[last:start], signs[0], text[start:end], signs[1]]
        last = end
    return "".join([*parts, text[last:]])
