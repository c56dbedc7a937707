"""Advice on which columns an index or clustering might help, from statistics alone: no row is read, no query known.

So this is where to look, not what to do: whether anybody asks for a column is for its users to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as is_

from fuse_index.clustering import overlaps
from fuse_index.handle import TableHandle
from fuse_index.indexes.definition import UnavailableIndex, load_definitions
from fuse_index.indexes.interface import IndexKind, Input, Probe, Votes
from fuse_index.indexes.sandbox import sandboxed_call
from fuse_index.predicate import Column, Compare, Context, Literal
from fuse_storage import ColumnStatistics, Field

_KIND_TIMEOUT_SECONDS = 10.0
"""How long a kind may think about a column."""
_MIN_BLOCKS = 8
"""Blocks of a table below which there is little to skip."""
_MAX_SELECTIVE_SHARE = 0.1
"""An equality that reads no more than this share of the blocks needs no help."""
_MAX_LOW_CARDINALITY_VALUES = 64
"""Different values of a block below which each is likely to be in every block: only sorting skips those, no index."""

SUGGESTIONS_SCHEMA = pa.schema(
    [
        ("column", pa.string()),
        ("reads", pa.float64()),
        ("distinct_per_block", pa.int64()),
        ("nulls", pa.float64()),
        ("advice", pa.string()),
        ("kinds", pa.list_(pa.string())),
        ("why", pa.string()),
    ]
)
"""``reads``: the share of blocks within whose bounds a value lies, on average; ``distinct_per_block``: the median, NULL
where it is not known, as for values that hardly repeat; ``nulls``: the share of rows, NULL where it is not known.
``advice``: ``none``, ``cluster`` or ``index``; ``kinds``: those installed that vote on equality.
"""


def suggest_indexes(table: TableHandle) -> pa.Table:
    """Advise on each column that has statistics what might help ``column = value``; see ``SUGGESTIONS_SCHEMA``."""
    blocks = table.stored.blocks(statistics=[field.id for _, field in table.snapshot.schema.leaves()])
    rows = []
    for path, field in table.snapshot.schema.leaves():
        statistics = blocks.statistics(field.id) or ColumnStatistics.unknown(field.type, len(blocks))
        measured = overlaps.measure_overlaps(overlaps.column_intervals(statistics, blocks.row_counts))
        row_count = int(blocks.row_counts.sum())
        row = {
            "column": ".".join(path),
            "reads": measured.average_depth / max(measured.blocks, 1),
            "distinct_per_block": _distinct_per_block(field, statistics),
            "nulls": None
            if statistics.null_count.null_count or not row_count
            else int(np.sum(statistics.null_count.to_numpy())) / row_count,
        }
        rows.append(row | _advise(table, path, field, statistics, measured.blocks, row))
    return pa.Table.from_pylist(rows, SUGGESTIONS_SCHEMA)


def _advise(
    table: TableHandle,
    path: tuple[str, ...],
    field: Field,
    statistics: ColumnStatistics,
    block_count: int,
    row: dict[str, Any],
) -> dict[str, Any]:
    reads = f"an equality reads {row['reads']:.0%} of the blocks by their bounds"
    if block_count < _MIN_BLOCKS:
        return _advice_row("none", f"there are only {block_count} blocks to skip")
    if not statistics.min.null_count < block_count:
        return _advice_row("none", "no block has a value, or none has known bounds")
    if row["reads"] <= _MAX_SELECTIVE_SHARE:
        return _advice_row("none", reads)
    if row["distinct_per_block"] is not None and row["distinct_per_block"] <= _MAX_LOW_CARDINALITY_VALUES:
        repeats = f"a block holds {row['distinct_per_block']} different values"
        return _advice_row("cluster", f"{reads}, and {repeats}: an index cannot skip what is everywhere, sorting can")
    column = Column(path, field.type)
    if index_names := _voting_indexes_on(table, column):
        return _advice_row("none", f"{reads}, and index {index_names[0]!r} is on it")
    kinds = sorted(_voting_kinds(table, column, statistics))
    if not kinds:
        return _advice_row("cluster", f"{reads}, and no kind of index that is installed votes on equality")
    return _advice_row(
        "index", f"{reads}; an index skips blocks that lack a value, and clustering helps ranges too", kinds
    )


def _voting_indexes_on(table: TableHandle, column: Column) -> list[str]:
    """Name the indexes on this column alone that vote."""
    definitions = load_definitions(table.snapshot, table.host)
    usable = [definition for definition in definitions if not isinstance(definition, UnavailableIndex)]
    on_column = [definition for definition in usable if [each.term for each in definition.inputs] == [column]]
    return [definition.name for definition in on_column if isinstance(definition.kind_in(table.host), Votes)]


def _voting_kinds(table: TableHandle, column: Column, statistics: ColumnStatistics) -> Iterator[str]:
    """Name the kinds that could vote on equality with a value of this column."""
    inputs = (Input(column, column.type),)
    value = statistics.min.drop_null()[0].as_py()
    for name, kind in table.host.kinds.items():
        if not kind.implicit and isinstance(kind, Votes) and _votes_on_equality(kind, inputs, value, table.context):
            yield name


def _votes_on_equality(kind: IndexKind, inputs: tuple[Input, ...], value: Any, context: Context) -> bool:
    def accepts_equality() -> bool:
        options = kind.Options()
        leaf = Compare("=", inputs[0].term, Literal(value, inputs[0].type))
        assert isinstance(kind, Votes)
        return kind.accepts(inputs, options) is None and isinstance(kind.compile(leaf, inputs, options, context), Probe)

    # Whatever a kind raises, it is not suggested then.
    return sandboxed_call(accepts_equality, _KIND_TIMEOUT_SECONDS) is True


def _advice_row(advice: str, why: str, kinds: list[str] | None = None) -> dict[str, Any]:
    return {"advice": advice, "kinds": kinds or [], "why": why}


def _distinct_per_block(field: Field, statistics: ColumnStatistics) -> int | None:
    """Estimate how many different values a block holds, by the median; None if most blocks have no count."""
    counts = statistics.distinct_count.drop_null().to_numpy()
    if is_.is_boolean(field.type):
        return 2
    return int(np.median(counts)) if len(counts) * 2 > len(statistics) else None
