"""Aggregate states of each block, by group: a GROUP BY is answered from what was added up when rows were written.

On columns, or on terms such as ``date_trunc('day', ts)``, by whose values rows are grouped. The payload of a block is a
small Parquet file with a row for each group: the group's values, then counts, sums and bounds, under names that say
what they are. An average is a sum and a count. The summary is how many groups there are.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from fuse_index.plugin import (
    DEFAULT_LG_K,
    Aggregate,
    Aggregation,
    BlockBatch,
    IndexKind,
    Input,
    Part,
    Probe,
    Reason,
    Refusal,
    Sidecar,
    hookimpl,
    read_untrusted_parquet,
    state_of,
)
from fuse_index.predicate import Column, Context, Term

_FREE_STATE_BYTES, _STATE_BYTES_PER_BYTE = 64 << 20, 16
"""The most bytes of a block's state in memory: so many, and as many for each byte of its payload."""
_EXAMPLES = "sum(amount) or hll_sketch_agg(user_id, 14)"


@dataclass(frozen=True)
class AggregateOptions:
    """Options of an aggregate index.

    ``aggregates``: such as ``count(*)``, ``sum(amount)``, ``min``, ``max`` and ``avg``.

    ``where``: a condition; of other rows nothing is kept, and only queries that make it too are answered.
    ``most_groups``: a block with more groups keeps no state, which would be about as large as its rows; it is scanned.
    """

    aggregates: tuple[str, ...] = ("count(*)",)
    where: str | None = None
    most_groups: int = 100_000

    def __post_init__(self) -> None:
        object.__setattr__(self, "aggregates", tuple(self.aggregates))  # JSON has lists
        if not self.aggregates:
            raise ValueError("aggregates is empty: name what is to be kept, such as count(*)")
        if self.most_groups < 1:
            raise ValueError(f"most_groups = {self.most_groups}: it must be 1 or more")


@dataclass(frozen=True)
class StateColumns:
    """The columns of a payload that make up a state, in the order of ``schema``."""

    columns: tuple[str, ...]
    schema: pa.Schema


class AggregateIndex(IndexKind):
    """An index of aggregate states of blocks, by group."""

    name = "aggregate"
    Options = AggregateOptions

    def aggregates(self, options: AggregateOptions) -> Sequence[str]:
        return options.aggregates

    def condition(self, options: AggregateOptions) -> str | None:
        return options.where

    def accepts(self, inputs: Sequence[Input], options: AggregateOptions) -> Refusal | None:
        groups = tuple(index_input.term for index_input in inputs if not index_input.function)
        aggregates = [index_input.aggregate for index_input in inputs if index_input.function]
        try:
            Aggregation(groups, tuple(aggregates)).check()
        except ValueError as refusal:
            return Refusal(Reason.TYPE_MISMATCH, str(refusal))
        for text, aggregate in zip(options.aggregates, aggregates, strict=True):
            if _parse_aggregate(text, aggregate.argument) != aggregate:  # as ``build`` reads it
                return Refusal(Reason.OPTION_MISMATCH, f"{text}: write it without comments, as in {_EXAMPLES}")
        return None

    def summary_type(self, inputs: Sequence[Input], options: AggregateOptions) -> pa.DataType:
        return pa.int32()

    def build(self, rows: pa.Table, zones: npt.NDArray[np.int64], options: AggregateOptions) -> Sidecar:
        """Add up the rows of one block; its zones, int64 offsets of shape (n + 1,), play no part."""
        terms = [Column((field.name,), field.type) for field in rows.schema]
        key_count = len(terms) - len(options.aggregates)
        numbered_texts = zip(options.aggregates, _input_numbers(key_count, options), strict=True)
        aggregation = Aggregation(
            tuple(terms[:key_count]), tuple(_parse_aggregate(text, terms[number]) for text, number in numbered_texts)
        )
        state = state_of(aggregation, lambda term: rows.column(term.path[0]), rows.num_rows)  # type: ignore[union-attr]
        if state.num_rows > options.most_groups:
            return Sidecar(state.num_rows)
        names = [f"group_{key}" for key in range(key_count)]
        names += [f"{part.function}_{part.argument.path[0]}" for part in aggregation.parts]  # type: ignore[union-attr]
        return Sidecar(state.num_rows, _parquet_bytes(state.rename_columns(names)))

    def match(
        self, request: Aggregation, inputs: Sequence[Input], options: AggregateOptions, context: Context
    ) -> Probe[StateColumns] | Refusal:
        key_names = {
            index_input.term: f"group_{number}" for number, index_input in enumerate(inputs) if not index_input.function
        }
        part_names: dict[Part, str] = {}
        for index_input, number in zip(inputs[len(key_names) :], _input_numbers(len(key_names), options), strict=True):
            for part in index_input.aggregate.parts:
                part_names.setdefault(part, f"{part.function}_{number}")
        if any(term not in key_names for term in request.groups):
            return Refusal(Reason.LEAF_UNSUPPORTED, "it does not group by such values")
        for part in request.parts:
            if part not in part_names:
                return Refusal(Reason.LEAF_UNSUPPORTED, f"it keeps no {part.function} of such values")
        columns = [*(key_names[term] for term in request.groups), *(part_names[part] for part in request.parts)]
        return Probe(StateColumns(tuple(columns), request.schema), cost=1000.0)

    def state(self, probe: Probe[StateColumns], batch: BlockBatch, unit: int) -> pa.Table | Refusal | None:
        payload = batch.payload(unit)
        if payload is None:
            groups = batch.summaries[unit].as_py() if batch.summaries is not None else None
            detail = (
                f"a block has {groups:,} groups, more than most_groups, so that no state of it is kept"
                if groups
                else ""
            )
            return Refusal(Reason.BLOCK_NOT_INDEXED, detail) if detail else None
        [data] = payload.read([(0, payload.size)])
        state_columns = probe.what
        rows = int(batch.row_counts[unit])  # each group has one of them; without groups there is one state of none
        most_bytes = _FREE_STATE_BYTES + _STATE_BYTES_PER_BYTE * len(data)
        stored = read_untrusted_parquet(data, state_columns.columns, max(rows, 1), most_bytes)
        arrays = [
            stored.column(name).cast(field.type)
            for name, field in zip(state_columns.columns, state_columns.schema, strict=True)
        ]
        return pa.table(arrays, schema=state_columns.schema)

    def inspect(self, sidecars: BlockBatch, options: AggregateOptions) -> Mapping[str, Any]:
        groups = [] if sidecars.summaries is None else sidecars.summaries.drop_null().to_pylist()
        return {
            "aggregates": list(options.aggregates),
            "groups_per_block": round(sum(groups) / len(groups), 1) if groups else None,
            "blocks_with_too_many_groups": sum(count > options.most_groups for count in groups),
        }


def _input_numbers(keys: int, options: AggregateOptions) -> list[int]:
    """Number, for each aggregate, the input that it is of: where two name the same argument, the first one's."""
    first_numbers: dict[str, int] = {}
    return [
        first_numbers.setdefault(text.partition("(")[2].strip(), keys + number)
        for number, text in enumerate(options.aggregates)
    ]


def _parse_aggregate(text: str, term: Term) -> Aggregate:
    """Rebuild the aggregate that the engine has read in this text, of this term."""
    function = text.partition("(")[0].strip().lower()
    if function != "hll_sketch_agg":
        return Aggregate(function, term)  # type: ignore[arg-type]  # one that it knows
    sketch_size = re.search(r",\s*(\d+)\s*\)\s*$", text)
    return Aggregate("hll_sketch_agg", term, int(sketch_size[1]) if sketch_size else DEFAULT_LG_K)


def _parquet_bytes(state: pa.Table) -> bytes:
    sink = io.BytesIO()
    pq.write_table(state, sink, compression="zstd", write_statistics=False, store_schema=False)
    return sink.getvalue()


@hookimpl
def fuse_index_kinds() -> Iterable[type[IndexKind]]:
    return [AggregateIndex]
