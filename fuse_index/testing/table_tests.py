"""Votes are used rightly: real tables with the index give the rows that they give without."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fuse_index.errors import IndexFault, OpaqueError
from fuse_index.expressions.conjunction import Conjunction
from fuse_index.expressions.function import Function
from fuse_index.expressions.to_sql import predicate_sql, term_sql
from fuse_index.indexes.interface import IndexKind, hookimpl
from fuse_index.indexes.registry import Host
from fuse_index.predicate import And, Not, Predicate
from fuse_index.table.open import attach, create_table
from fuse_index.table.table import Table
from fuse_index.testing.vote_tests import VoteTests
from fuse_index.testing.worlds.memory_batch import KindUnderTest, MemoryBatch

__tracebackhide__ = True  # authors look for nothing here: pytest shows frames of theirs

_BLOCK_ROWS, _ZONE_ROWS, _ROWS, _TAIL_ROWS = 50, 15, 130, 20
"""Three blocks: of zones of 15, 15, 15 and 5 rows, twice, and of 15 and 15; and a block that nobody has indexed."""
_FOREIGN_ZONES = ((9, 1, 31, 4, 15), (2, 40))
"""Rows of the row groups of files that are attached."""
_QUESTIONS = 36
"""Conditions that are asked about all inputs together; at least four about each."""
_NUMBER = "number_of_row"


class TableTests(VoteTests):
    """The part of ``IndexTests`` that puts the kind on tables, and reads them as queries do."""

    def test_a_table_of_unequal_zones_gives_the_rows_that_it_gives_without_the_index(self) -> None:
        for subject in self.subjects():
            rows = self.many_rows(subject, _ROWS)
            table = IndexedTable.of(subject, rows)
            for asked in self.table_predicates(subject, rows):
                table.check(asked)

    def test_a_table_with_deleted_rows_and_a_tail_gives_the_rows_that_it_gives_without_the_index(self) -> None:
        for subject in self.few_subjects():
            rows = self.many_rows(subject, _ROWS)
            table = IndexedTable.of(subject, rows)
            table.table.delete(f"{_NUMBER} IN (0, 14, 15, 44, 49, 50) OR {_NUMBER} >= 101 AND {_NUMBER} < 117")
            table.append(self.many_rows(subject, _TAIL_ROWS, 1), hot=True)
            for asked in islice(self.table_predicates(subject, rows), 1, None, 2):
                table.check(asked)

    def test_attached_files_give_the_rows_that_they_give_without_the_index(self) -> None:
        for subject in self.few_subjects():
            files = [[self.many_rows(subject, count, count) for count in counts] for counts in _FOREIGN_ZONES]
            with tempfile.TemporaryDirectory() as folder:
                table = IndexedTable.of_files(subject, files, folder)
                for asked in islice(self.table_predicates(subject, pa.concat_tables(files[0])), 0, None, 2):
                    table.check(asked)

    def table_predicates(self, subject: KindUnderTest, rows: pa.Table) -> Iterator[Predicate]:
        """Some questions about the rows: conditions as they are, negated, and two at once."""
        count = max(4, min(_QUESTIONS // len(self.subjects()), 8))
        questions = islice(self.about(MemoryBatch.index_blocks(subject, [[rows]]), count), 3 * count)
        leaves: list[Predicate] = [
            And(question.leaf.leaves) if isinstance(question.leaf, Conjunction) else question.leaf
            for question in questions
        ]
        for leaf, other in zip(leaves, leaves[1:] + leaves[:1], strict=True):
            yield leaf
            yield Not(leaf)
            yield Not(And((leaf, other)))


@dataclass(frozen=True)
class IndexedTable:
    """A table with one index, of the kind under test, and a column that numbers its rows."""

    table: Table
    subject: KindUnderTest

    @classmethod
    def of(cls, subject: KindUnderTest, rows: pa.Table) -> IndexedTable:
        """A table in memory, of several blocks of several zones."""
        numbered = _numbered(rows)
        limits = {"block_rows": _BLOCK_ROWS, "zone_rows": _ZONE_ROWS, "delete_mode": "merge-on-read"}
        table = create_table(_new_place(), numbered.schema, properties=limits, host=_host(subject))
        made = cls(table, subject)
        made._create_index()
        made.append(rows)
        return made

    @classmethod
    def of_files(cls, subject: KindUnderTest, files: list[list[pa.Table]], folder: str) -> IndexedTable:
        """A table over files of others in this folder, indexed afterwards. ``files``: the row groups of each."""
        for number, groups in enumerate(files):
            numbered = [_numbered(group) for group in groups]
            with pq.ParquetWriter(f"{folder}/{number}.parquet", numbered[0].schema) as writer:
                for group in numbered:
                    writer.write_table(group)
        made = cls(attach(folder, _new_place(), options={"shared_places": folder}, host=_host(subject)), subject)
        made._create_index()
        return made

    def append(self, rows: pa.Table, *, hot: bool = False) -> None:
        self.table.append(_numbered(rows), hot=hot)

    def _create_index(self) -> None:
        if not self.subject.kind.implicit:
            terms = [term_sql(given.term) for given in self.subject.inputs if not given.function]
            self.table.create_index("tested", self.subject.kind.name, terms, **asdict(self.subject.options))

    def check(self, predicate: Predicate) -> None:
        """Read the matching rows with the index and without; AssertionError where they differ."""
        try:
            expected = _rows(self.table.scan(predicate, indexes=False).to_arrow())
        except OpaqueError:  # only Spark knows what the condition is
            return
        try:
            scan = self.table.scan(predicate, strict=True)
        except IndexFault as fault:
            raise AssertionError(f"{self.subject}: {predicate_sql(predicate)}: {fault}") from None
        found = _rows(scan.to_arrow())
        if found != expected:
            only = sorted(set(found) ^ set(expected))[:3]
            raise AssertionError(
                f"{self.subject}: {predicate_sql(predicate)}: {len(found)} rows with the index, and {len(expected)} "
                f"without it\n  rows   in one of both only: {', '.join(only)}\n{_votes(str(scan.explanation))}"
            )


def _votes(explanation: str) -> str:
    return "\n".join(line for line in explanation.splitlines() if line.startswith((" ", "blocks", "rows")))


def _rows(rows: pa.Table) -> list[str]:
    """Rows as text, in which NaN is equal to itself."""
    return [str(row) for row in rows.to_pylist()]


def _numbered(rows: pa.Table) -> pa.Table:
    return rows.append_column(_NUMBER, pa.array(np.arange(len(rows)), pa.int64()))


def _new_place() -> str:
    return f"memory://index-tests-{uuid4().hex}"


def _host(subject: KindUnderTest) -> Host:
    host = Host([_KindPlugin(type(subject.kind), subject.functions.values())])
    assert not host.problems, f"{subject}: {host.problems}"
    return host


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
