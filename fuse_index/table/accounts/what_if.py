"""What an index would do that is not there, and which would do most for what is asked: measured on a sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from fuse_index.errors import FuseIndexError, InputError
from fuse_index.expressions.to_sql import term_sql
from fuse_index.expressions.traversal import columns_of, leaf_terms, predicate_leaves
from fuse_index.handle import resolve_predicate
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.inputs import resolve_input
from fuse_index.indexes.interface import IndexKind, Input, Probe, Votes
from fuse_index.indexes.sandbox import sandboxed_call
from fuse_index.predicate import Leaf, Literal, Opaque, Predicate
from fuse_index.pruning.nulls import strip_nulls_for_kind
from fuse_index.signals.plans import recent_plans
from fuse_index.table.accounts.sample import MAX_BLOCKS, Sample, SampledTable, Trial, sampled

WHAT_IF_SCHEMA = pa.schema(
    [
        ("where", pa.string()),
        ("blocks_now", pa.int64()),
        ("blocks_then", pa.int64()),
        ("sampled", pa.int64()),
        ("left", pa.int64()),
        ("reason", pa.string()),
        ("detail", pa.string()),
        ("bytes", pa.int64()),
        ("seconds", pa.float64()),
    ]
)
SUGGEST_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("columns", pa.list_(pa.string())),
        ("source", pa.string()),
        ("queries", pa.int64()),
        ("blocks_now", pa.int64()),
        ("blocks_then", pa.int64()),
        ("bytes", pa.int64()),
        ("seconds", pa.float64()),
        ("problem", pa.string()),
    ]
)
_MAX_CONDITIONS = 32
"""Different conditions of a log that are asked about, the last ones."""
_MAX_TRIALS = 12
"""Indexes that are built on the sample, those first that most conditions could ask."""
_KIND_TIMEOUT_SECONDS = 10.0


def try_index(
    table: SampledTable, kind: str, columns: Sequence[str], options: Mapping[str, Any], where: Sequence[str | Predicate]
) -> pa.Table:
    """Say what an index would do for conditions, or for those of the log; see ``WHAT_IF_SCHEMA``.

    Raises as ``what_if``.
    """
    table.engine.host.kind(kind)
    for column in columns:
        resolve_input(column, table.snapshot.schema, table.engine)
    with sampled(table, _conditions(table, where), columns, MAX_BLOCKS) as sample:
        trial = sample.try_index(kind, columns, options)
    rows = [each.to_dict() | {"bytes": trial.bytes, "seconds": round(trial.seconds, 3)} for each in trial.measured]
    return pa.Table.from_pylist(rows, WHAT_IF_SCHEMA)


def suggest_for(table: SampledTable, queries: Sequence[str | Predicate]) -> pa.Table:
    """Rank indexes by what they would leave out for queries, or for those of the log; see ``SUGGEST_SCHEMA``."""
    conditions = _conditions(table, queries)
    candidates = dict[tuple[str, str], list[int]]()
    for number, condition in enumerate(conditions):
        for candidate in dict.fromkeys(_candidates(condition, table.engine)):
            candidates.setdefault(candidate, []).append(number)
    tried = sorted(candidates, key=lambda candidate: -len(candidates[candidate]))[:_MAX_TRIALS]
    with sampled(table, conditions, [column for _, column in tried], MAX_BLOCKS) as sample:
        rows = [_suggestion(table, sample, kind, column, candidates[kind, column]) for kind, column in tried]
    rows.sort(key=lambda row: (row["problem"] is not None, row["blocks_then"] - row["blocks_now"], row["bytes"]))
    return pa.Table.from_pylist(rows, SUGGEST_SCHEMA)


def _suggestion(table: SampledTable, sample: Sample, kind: str, column: str, asked: list[int]) -> dict[str, Any]:
    source = table.host.sources[kind].source
    row = {"kind": kind, "columns": [column], "source": source, "queries": len(asked), "problem": None}
    try:
        trial = sample.try_index(kind, [column], {}, asked)
    except FuseIndexError as refusal:
        trial = Trial(0, 0.0, ())
        row["problem"] = str(refusal).splitlines()[0]
    return row | {
        "blocks_now": sum(len(each.condition.blocks) for each in trial.measured),
        "blocks_then": sum(each.blocks_then for each in trial.measured),
        "bytes": trial.bytes,
        "seconds": round(trial.seconds, 3),
    }


def _conditions(table: SampledTable, where: Sequence[str | Predicate]) -> list[Predicate]:
    """The conditions, or those of late of this table. Raises InputError where there are none."""
    if where:
        found = [resolve_predicate(each, table.snapshot, table.engine) for each in where]
        return [each for each in found if each is not None]
    kept = (plan.account for plan in reversed(recent_plans(table.stored.store.url)))
    latest = dict.fromkeys(account.predicate for account in kept if account.snapshot is not None)
    if not latest:
        raise InputError("no query of this table is in the log of plans: give conditions")
    return list(latest)[:_MAX_CONDITIONS]


def _candidates(condition: Predicate, engine: Engine) -> Iterator[tuple[str, str]]:
    """Kinds that would vote on a leaf, with the term that they would be on, as text."""
    for leaf in predicate_leaves(condition):
        if isinstance(leaf, Opaque):
            continue
        terms = [term for term in leaf_terms(leaf) if not isinstance(term, Literal)]
        for term in dict.fromkeys([*terms, *(column for each in terms for column in columns_of(each))]):
            for name, kind in engine.host.kinds.items():
                if not kind.implicit and _would_vote(kind, leaf, Input(term, term.type), engine):
                    yield name, term_sql(term)


def _would_vote(kind: IndexKind, leaf: Leaf, given: Input, engine: Engine) -> bool:
    def compiles() -> bool:
        options = kind.Options()
        assert isinstance(kind, Votes)
        accepted = kind.accepts((given,), options) is None
        stripped = strip_nulls_for_kind(leaf)
        return accepted and isinstance(kind.compile(stripped, (given,), options, engine.context), Probe)

    # Whatever a kind raises, it is not suggested then.
    return isinstance(kind, Votes) and sandboxed_call(compiles, _KIND_TIMEOUT_SECONDS) is True
