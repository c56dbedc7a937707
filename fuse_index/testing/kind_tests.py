"""What every kind must be, whatever it answers: importable, configurable, and of bounded size."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from fuse_index.expressions.function import Function
from fuse_index.expressions.traversal import columns_of
from fuse_index.indexes.interface import APIS, IndexKind, Input, Refusal
from fuse_index.predicate import Column
from fuse_index.testing.failure import ReportsPlainly
from fuse_index.testing.worlds import small_worlds, strategies
from fuse_index.testing.worlds.memory_batch import BlockZones, KindUnderTest, MemoryBatch

__tracebackhide__ = True  # authors look for nothing here: pytest shows frames of theirs

_FEW = 3


class KindTests(ReportsPlainly):
    """The part of ``IndexTests`` that all kinds share; see there for what may be overridden."""

    index: ClassVar[type[IndexKind]]
    inputs: ClassVar[Sequence[Input] | None] = None
    options: ClassVar[Any] = None
    functions: ClassVar[Mapping[str, Function]] = {}
    summary_bytes: ClassVar[int] = 1024
    """How large a block's summary may be."""
    payload_bytes: ClassVar[float] = 64.0
    """How large a block's payload may be, for each of its rows."""

    # --- what a kind is put on --------------------------------------------------------------------------------------

    def rows(self, column: Column) -> Sequence[Any]:
        """The values that a small world's rows hold in this column, besides NULL."""
        return small_worlds.samples_of_type(column.type).data

    def drawn(self, column: Column) -> st.SearchStrategy[Any]:
        """The values that a wide world's rows hold in this column, besides NULL."""
        return strategies.values_of_type(column.type)

    def kind(self) -> IndexKind:
        return self.index()

    def made_options(self) -> Any:
        made = self.options if self.options is not None else {}
        return self.index.Options(**made) if isinstance(made, Mapping) else made

    def subjects(self) -> Sequence[KindUnderTest]:
        """The kind on its inputs; where it names none, on a column of each type that it accepts."""
        found = self.subjects_with(self.made_options())
        assert found, (
            f"{self.index.name} accepts no column of {', '.join(map(str, small_worlds.SAMPLE_TYPES))}, so that "
            f"nothing is tested: give the suite inputs"
        )
        return found

    def few_subjects(self) -> Sequence[KindUnderTest]:
        """At most three of them, for what does not hang on the type."""
        found = self.subjects()
        return found if len(found) <= _FEW else [found[0], found[len(found) // 2], found[-1]]

    def subjects_with(self, options: Any) -> list[KindUnderTest]:
        """The kind with these options, on all that it accepts with them."""
        kind = self.kind()
        if self.inputs is not None:
            refusal = None if kind.implicit else kind.accepts(self.inputs, options)
            assert refusal is None or options != self.made_options(), (
                f"{kind.name} refuses the suite's inputs: {refusal}"
            )
            return [] if refusal else [KindUnderTest(kind, tuple(self.inputs), options, self.functions)]
        columns = [Input(Column(("c",), data_type), data_type) for data_type in small_worlds.SAMPLE_TYPES]
        return [
            KindUnderTest(kind, (given,), options, self.functions)
            for given in columns
            if kind.implicit or kind.accepts((given,), options) is None
        ]

    def option_sets(self) -> Iterator[Any]:
        """Other options that are tried: of each number half and double, of each truth the opposite."""
        usual = self.made_options()
        for option in fields(usual):
            value = getattr(usual, option.name)
            others: tuple[Any, ...] = ()
            if isinstance(value, bool):
                others = (not value,)
            elif isinstance(value, int | float):
                others = (value // 2 if isinstance(value, int) else value / 2, value * 2)
            for other in others:
                try:
                    yield replace(usual, **{option.name: other})
                except ValueError:  # such options make no sense to the kind
                    continue

    def columns(self, subject: KindUnderTest) -> list[Column]:
        """The columns that the inputs are made of."""
        found = list(dict.fromkeys(column for given in subject.inputs for column in columns_of(given.term)))
        assert all(len(column.path) == 1 for column in found), (
            "put the kind on top-level columns: to it, a nested field is no different"
        )
        return found

    def table(self, subject: KindUnderTest, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
        """Rows with a value for each column, in the order of ``columns``."""
        columns = self.columns(subject)
        arrays = [pa.array([row[i] for row in rows], column.type) for i, column in enumerate(columns)]
        return pa.table(arrays, [column.path[0] for column in columns])

    def zones(self, subject: KindUnderTest, blocks: Sequence[Sequence[Sequence[tuple[Any, ...]]]]) -> list[BlockZones]:
        return [[self.table(subject, rows) for rows in zones] for zones in blocks]

    def many_rows(self, subject: KindUnderTest, count: int, seed: int = 0) -> pa.Table:
        """Rows of values that mostly differ, some NULL; of the kind's own ``rows`` where it has its own."""
        random = np.random.default_rng(seed)
        own = type(self).rows is not KindTests.rows
        arrays = []
        for column in self.columns(subject):
            values = None if own else random_values(column.type, count, random)
            if values is None:
                known = self.rows(column)
                values = [known[i] for i in random.integers(0, len(known), count)]
            arrays.append(pa.array(values, column.type, mask=random.random(count) < 0.05))
        return pa.table(arrays, [column.path[0] for column in self.columns(subject)])

    # --- tests ------------------------------------------------------------------------------------------------------

    def test_the_kind_is_named_versioned_and_pickled_by_reference(self) -> None:
        kind = self.kind()

        assert kind.name.isidentifier()
        assert kind.name == kind.name.lower()
        assert kind.api in APIS
        assert kind.writes in kind.reads, f"{kind.name} writes version {kind.writes} and reads {sorted(kind.reads)}"
        assert type(pickle.loads(pickle.dumps(kind))) is type(kind)
        assert len(pickle.dumps(kind)) < 500, "a kind is stateless: what it needs to know stands in its options"

    def test_options_are_frozen_and_json(self) -> None:
        options = self.made_options()

        assert is_dataclass(self.index.Options)
        assert self.index.Options(**json.loads(json.dumps(asdict(options)))) == options
        assert self.index.Options.__hash__ is not None, f"{self.index.Options.__name__} needs @dataclass(frozen=True)"
        assert hash(options) == hash(pickle.loads(pickle.dumps(options)))
        taken = {"name", "kind", "columns", "build"} & {option.name for option in fields(options)}
        assert not taken, f"create_index() has {sorted(taken)} already"

    def test_what_is_refused_is_refused_with_a_reason(self) -> None:
        column = Column(("c",), pa.map_(pa.string(), pa.int64()))

        refusal = self.kind().accepts([Input(column, column.type)], self.made_options())

        assert refusal is None or isinstance(refusal, Refusal)
        assert refusal is None or refusal.detail

    def test_summaries_and_payloads_are_of_bounded_size(self) -> None:
        for subject in self.subjects():
            if subject.kind.implicit:
                continue
            blocks: list[BlockZones] = [[self.many_rows(subject, 2000, seed) for seed in range(8)]]
            shelf = MemoryBatch.index_blocks(subject, blocks)

            assert shelf.summaries is not None
            assert shelf.summaries.nbytes <= self.summary_bytes, (
                f"{subject}: the summary of a block takes {shelf.summaries.nbytes} bytes, and may {self.summary_bytes}"
            )
            stored = sum(len(data) for data in shelf.files.data.values())
            assert stored <= self.payload_bytes * shelf.rows.num_rows, (
                f"{subject}: {stored} bytes for {shelf.rows.num_rows} rows"
            )

    def test_what_is_inspected_is_json(self) -> None:
        for subject in self.subjects():
            shelf = MemoryBatch.index_blocks(subject, [[self.many_rows(subject, 50)], [self.many_rows(subject, 20)]])

            assert isinstance(json.loads(json.dumps(dict(subject.kind.inspect(shelf, subject.options)))), dict)


def random_values(data_type: pa.DataType, count: int, random: np.random.Generator) -> list[Any] | None:
    """Values of a type that mostly differ; None where only samples are known."""
    numbers = pa.array(random.integers(-(10**6), 10**6, count))
    if (
        pa.types.is_floating(data_type)
        or pa.types.is_timestamp(data_type)
        or data_type in (pa.int32(), pa.int64(), pa.string())
    ):
        return list(numbers.cast(data_type).to_pylist())
    return None
