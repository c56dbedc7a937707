"""Votes are used rightly: a table with the index gives the rows that it gives without."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from uuid import uuid4

import pyarrow as pa

from fuse_index.errors import OpaqueError
from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.function import Function
from fuse_index.expressions.to_sql import predicate_sql
from fuse_index.indexes.builder import index_builders
from fuse_index.indexes.define import define_index
from fuse_index.indexes.engine import Engine
from fuse_index.indexes.interface import IndexKind, hookimpl
from fuse_index.indexes.registry import Host
from fuse_index.predicate import And, Not, Predicate
from fuse_index.pruning.planner import full_scan_plan, plan_scan
from fuse_index.query.scan import Scan
from fuse_index.testing.memory_batch import KindUnderTest, MemoryBatch
from fuse_index.testing.vote_tests import VoteTests
from fuse_storage import StoredTable, open_store

_BLOCK_ROWS, _ZONE_ROWS, _ROWS = 50, 15, 130
"""Three blocks: of zones of 15, 15, 15 and 5 rows, twice, and of 15 and 15."""
_QUESTIONS = 8
"""Conditions that are asked about each input."""


class TableTests(VoteTests):
    """The part of ``IndexTests`` that puts the kind on a table, in a store, and reads it as queries do."""

    def test_a_table_of_unequal_zones_gives_the_rows_that_it_gives_without_the_index(self) -> None:
        for subject in self.subjects():
            rows = self.many_rows(subject, _ROWS)
            indexed = _IndexedTable.of(subject, rows)
            for asked in self.table_predicates(subject, rows):
                indexed.check(asked)

    def table_predicates(self, subject: KindUnderTest, rows: pa.Table) -> Iterator[Predicate]:
        """Some questions about the rows: conditions as they are, negated, and two at once."""
        questions = islice(self.about(MemoryBatch.index_blocks(subject, [[rows]]), _QUESTIONS), 3 * _QUESTIONS)
        leaves: list[Predicate] = [
            And(question.leaf.leaves) if isinstance(question.leaf, Conjunction) else question.leaf
            for question in questions
        ]
        for leaf, other in zip(leaves, leaves[1:] + leaves[:1], strict=True):
            yield leaf
            yield Not(leaf)
            yield Not(And((leaf, other)))


@dataclass(frozen=True)
class _IndexedTable:
    """A table in memory with one index, of the kind under test."""

    stored: StoredTable
    engine: Engine

    @classmethod
    def of(cls, subject: KindUnderTest, rows: pa.Table) -> _IndexedTable:
        engine = Engine(Host([_KindPlugin(type(subject.kind), subject.functions.values())]), subject.context)
        assert not engine.host.problems, engine.host.problems
        limits = {"block_rows": _BLOCK_ROWS, "zone_rows": _ZONE_ROWS}
        stored = StoredTable.create(open_store(f"memory://index-tests-{uuid4().hex}"), rows.schema, properties=limits)
        if not subject.kind.implicit:
            terms = [given.term for given in subject.inputs]
            schema = stored.snapshot.schema
            definition = define_index("tested", subject.kind.name, terms, asdict(subject.options), schema, engine)
            stored = stored.transaction().add_index("tested", definition.content).commit("create index")
        builders = index_builders(stored.snapshot, engine.host, strict=True)
        with stored.writer(builders) as writer:
            writer.write(rows)
            staged = writer.finish()
        return cls(stored.transaction(builders).append(staged).commit("append"), engine)

    def check(self, predicate: Predicate) -> None:
        """Read the matching rows with the index and without; AssertionError where they differ."""
        everything = full_scan_plan(self.stored, predicate, self.engine.context)
        try:
            expected = self._rows(Scan(everything, self._columns, self.engine.functions))
        except OpaqueError:  # only Spark knows what the condition is
            return
        plan = plan_scan(self.stored, predicate, self.engine, budget=60.0, strict=True)
        found = self._rows(Scan(plan, self._columns, self.engine.functions))
        assert found == expected, (
            f"{predicate_sql(predicate)}: {len(found)} rows with the index, and {len(expected)} without it\n"
            f"{plan.explanation}"
        )

    @property
    def _columns(self) -> tuple[str, ...]:
        return tuple(self.stored.snapshot.schema.arrow.names)

    def _rows(self, scan: Scan) -> list[str]:
        """Rows as text, in which NaN is equal to itself."""
        return [str(row) for row in scan.to_arrow().to_pylist()]


class _KindPlugin:
    """A plugin that brings one kind, and the functions that its leaves call."""

    def __init__(self, kind: type[IndexKind], functions: Iterable[Function]) -> None:
        self.kind, self.functions = kind, tuple(functions)

    @hookimpl
    def fuse_index_kinds(self) -> Iterable[type[IndexKind]]:
        return [self.kind]

    @hookimpl
    def fuse_index_functions(self) -> Iterable[Function]:
        return self.functions
