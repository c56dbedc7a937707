"""Whether keys of a join could leave out anything of a table: only then are they worth waiting for.

In: a snapshot, and what a join compares with its other side's keys. Knows no key: it is asked before any is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.clustering.overlaps import column_intervals, measure_overlaps
from fuse_index.expressions.normalize import normalize
from fuse_index.expressions.traversal import leaf_terms, predicate_leaves
from fuse_index.indexes.engine import Engine
from fuse_index.predicate import Column, Compare, Literal, Predicate, Term
from fuse_index.pruning.calls.budget import CallBudget, budget_of
from fuse_index.pruning.calls.switches import Switches
from fuse_index.pruning.compile import IndexSet
from fuse_storage import StoredTable

MAX_OVERLAP = 0.5
"""The share of zones that may hold a typical value of a column, by their bounds. Where they are more, statistics leave
little out for one key, and nothing for several."""
MAX_SEGMENTS = 8
"""Bounds are compared within so many segments, some thousand blocks, that stand for all."""


def may_prune_by_keys(table: StoredTable, terms: Sequence[Term | None], engine: Engine) -> list[bool]:
    """Whether statistics, or an index, may leave out zones by ``term IN (keys)``, for each term; None never does.

    An index may if it understands ``term = value``. Statistics may if the zones differ in their bounds: a column that
    is in no order has nearly all its values in each zone. Indexes have as long to say so as they have to vote.
    """
    budget = budget_of(table.store.url, table.snapshot.properties)
    return [term is not None and _may_prune(table, term, engine, budget) for term in terms]


def _may_prune(table: StoredTable, term: Term, engine: Engine, budget: CallBudget) -> bool:
    value = _any_value(term.type)
    if value is None:
        return False
    comparison = normalize(Compare("=", term, value), engine.context)
    if _is_indexed(table, comparison, engine, budget):
        return True
    columns = [each for leaf in predicate_leaves(comparison) for each in leaf_terms(leaf) if isinstance(each, Column)]
    return any(_overlap(table, column) <= MAX_OVERLAP for column in columns)


def _is_indexed(table: StoredTable, comparison: Predicate, engine: Engine, budget: CallBudget) -> bool:
    switches = Switches.of(table.snapshot.properties)
    definitions = switches.definitions(table.snapshot, engine)
    if not definitions:
        return False
    probes = IndexSet(engine, definitions, budget, switches).compile(comparison)
    return any(probe.definition is not None for leaf in probes.by_leaf.values() for probe in leaf.probes)


def _any_value(data_type: pa.DataType) -> Literal | None:
    """Some value of a type that keys may have; None of any other."""
    if pa.types.is_nested(data_type):  # Arrow takes a text for a list of its characters
        return None
    for value in (1, True, "1", b"1", Decimal(1)):
        with suppress(pa.ArrowException, TypeError):
            return Literal(pa.scalar(value, data_type).as_py(), data_type)
    return None


def _overlap(table: StoredTable, column: Column) -> float:
    """The share of all zones that a zone has values in common with, by their bounds: 1 where all overlap.

    Four zones of which each follows on the one before: each has values in common with itself alone, a quarter.
    """
    field = table.snapshot.schema.find(column.path)
    if not field.is_leaf:
        return 1.0
    count = len(table.segments())
    chosen = np.unique(np.linspace(0, count - 1, min(count, MAX_SEGMENTS)).astype(np.int64))
    zones = table.zones(table.blocks(chosen, [field.id]))
    statistics = zones.statistics(field.id)
    if statistics is None or not len(statistics):
        return 1.0
    # A key is never NULL: zones that are NULL throughout go for any, and in others only values count.
    all_null = np.asarray(pc.equal(statistics.null_count, pa.array(zones.row_counts)).fill_null(False), np.bool_)
    if all_null.all():
        return 0.0
    holding = np.flatnonzero(~all_null)
    values = statistics.take(holding)
    values = replace(values, null_count=pa.array(np.zeros(len(values), np.int64)))
    measured = measure_overlaps(column_intervals(values, zones.row_counts[holding]))
    return (measured.average_overlaps + 1) / len(zones)
