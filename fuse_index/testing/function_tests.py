"""Functions mean one thing: by rows, in what they imply, and in the SQL that Spark runs in their place."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.errors import OpaqueError, WhereError
from fuse_index.expressions.errors import AnalysisError
from fuse_index.expressions.evaluate import evaluate, evaluate_term
from fuse_index.expressions.function import Function, build_call
from fuse_index.expressions.to_sql import predicate_sql, term_sql
from fuse_index.predicate import Call, Column, Context, Literal, Predicate, Term
from fuse_index.sql.parse import parse_predicate
from fuse_index.testing.failure import ReportsPlainly
from fuse_index.testing.worlds import small_worlds
from fuse_storage import Schema

__tracebackhide__ = True  # authors look for nothing here: pytest shows frames of theirs

_MOST_ROWS, _MOST_PARTS = 2000, 200


class FunctionTests(ReportsPlainly):
    """Inherit, name your function, and it is tested.

    ``function``: a ``Function``. ``values``: what an argument holds besides NULL, by default samples of its type.
    """

    function: ClassVar[Function]

    def values(self, number: int) -> Sequence[Any]:
        """What argument ``number`` holds, besides NULL; each value of a constant makes a call of its own."""
        data_type = self.function.argument_types[number]
        assert data_type is not None, f"{self.function.name} takes any type as argument {number + 1}: give values"
        return small_worlds.samples_of_type(data_type).data

    def types(self) -> Sequence[pa.DataType]:
        """The types of the arguments; one that may be of any is of the type of its values."""
        known = self.function.argument_types
        return [pa.array(self.values(n)).type if known[n] is None else known[n] for n in range(len(known))]

    # --- tests ------------------------------------------------------------------------------------------------------

    def test_each_row_is_judged_by_itself(self) -> None:
        for call, rows in self.calls():
            found = self._evaluated(call, rows)
            assert found.type == call.type, f"{term_sql(call)}: evaluate() gave {found.type}, not {call.type}"
            assert len(found) == len(rows), (
                f"{term_sql(call)}: evaluate() gave {len(found)} values for {len(rows)} rows"
            )
            backwards = np.arange(len(rows))[::-1]
            turned = self._evaluated(call, rows.take(pa.array(backwards)))
            self._compare(call, rows.take(pa.array(backwards)), found.take(pa.array(backwards)), turned, "backwards")
            step = 1 + len(rows) // _MOST_PARTS
            parts = [self._evaluated(call, rows.slice(start, step)) for start in range(0, len(rows), step)]
            self._compare(call, rows, found, pa.concat_arrays(parts), "with fewer rows around it")

    def test_null_is_where_an_argument_is_null(self) -> None:
        if self.function.null_on_null:
            for call, rows in self.calls():
                names = [term.path[0] for term in call.arguments if isinstance(term, Column)]
                null = np.logical_or.reduce([rows.column(name).is_null().to_numpy() for name in names])
                said = self._evaluated(call, rows).is_null().to_numpy(zero_copy_only=False)
                for row in np.flatnonzero(null != said)[:1].tolist():
                    raise AssertionError(
                        f"{term_sql(call)} is {'NULL' if said[row] else 'not NULL'} on {_row(rows, row)}: say "
                        f"null_on_null=False, or be NULL exactly where an argument is"
                    )

    def test_what_is_implied_is_true_wherever_the_function_is(self) -> None:
        if self.function.implies is not None:
            for call, rows in self.calls():
                for leaf in self.function.implies(call):
                    self._check_implied(call, rows, leaf, predicate_sql(leaf))

    def test_what_spark_runs_instead_is_the_same(self) -> None:
        if self.function.native is not None:
            for call, rows, predicate, text in self._in_sql(self.function.native):
                self._compare(call, rows, self._evaluated(call, rows), _holds(predicate, rows), f"in SQL, {text}")

    def test_what_narrows_is_true_wherever_the_function_is(self) -> None:
        if self.function.narrows is not None:
            for call, rows, predicate, text in self._in_sql(self.function.narrows):
                self._check_implied(call, rows, predicate, text)
                null = self._evaluated(call, rows).is_null()
                wrong = pc.and_(null, pc.is_valid(_holds(predicate, rows))).to_numpy(zero_copy_only=False)
                for row in np.flatnonzero(wrong)[:1].tolist():
                    raise AssertionError(f"{term_sql(call)} is NULL on {_row(rows, row)}, and {text} is not")

    # --- worlds -----------------------------------------------------------------------------------------------------

    def calls(self) -> Iterator[tuple[Call, pa.Table]]:
        """Calls of the function on columns and constants, with rows that hold every mixture of their values."""
        types, found = self.types(), False
        constants = [self.values(number) for number in sorted(self.function.constants)]
        free = [number for number in range(len(types)) if number not in self.function.constants]
        rows = list(product(*[(*self.values(number), None) for number in free]))
        step = 1 + len(rows) // _MOST_ROWS
        columns = [pa.array([row[i] for row in rows[::step]], types[number]) for i, number in enumerate(free)]
        table = pa.table(columns, [f"c{number}" for number in free])
        for chosen in product(*constants):
            given = dict(zip(sorted(self.function.constants), chosen, strict=True))
            terms: list[Term] = [
                Literal(given[number], data_type) if number in given else Column((f"c{number}",), data_type)
                for number, data_type in enumerate(types)
            ]
            try:
                call = build_call(self.function, terms, Context())
            except AnalysisError:  # its own check refuses these constants
                continue
            found = True
            yield call, table
        assert found, f"{self.function.name}: check() refuses all constants that it is called with: give values"

    # --- judging ----------------------------------------------------------------------------------------------------

    def _evaluated(self, call: Call, rows: pa.Table) -> pa.Array:
        functions = {self.function.name: self.function}
        found = (evaluate if call.type == pa.bool_() else evaluate_term)(call, rows, Context(), functions)
        return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found

    def _in_sql(self, native: Callable[..., str | None]) -> Iterator[tuple[Call, pa.Table, Predicate, str]]:
        """What is given for Spark, as far as our own SQL can say what it is."""
        for call, rows in self.calls():
            given = [term if isinstance(term, Literal) else term_sql(term) for term in call.arguments]
            text = native(*given)
            if text is not None:
                try:
                    predicate = parse_predicate(text, Schema.create(rows.schema))
                    _holds(predicate, rows.slice(0, 1))
                except (WhereError, OpaqueError):
                    continue
                yield call, rows, predicate, text

    def _check_implied(self, call: Call, rows: pa.Table, leaf: Predicate, text: str) -> None:
        true = self._evaluated(call, rows).fill_null(False)
        wrong = pc.and_not(true, _holds(leaf, rows).fill_null(False)).to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(wrong)[:1].tolist():
            raise AssertionError(f"{term_sql(call)} is TRUE on {_row(rows, row)}, and {text} is not")

    def _compare(self, call: Call, rows: pa.Table, expected: pa.Array, found: pa.Array, how: str) -> None:
        for row, (one, other) in enumerate(zip(expected.to_pylist(), found.to_pylist(), strict=True)):
            assert one == other or (one != one and other != other), (
                f"{term_sql(call)} is {_outcome(one)} on {_row(rows, row)}, and {_outcome(other)} {how}"
            )


def _holds(predicate: Predicate, rows: pa.Table) -> pa.Array:
    found = evaluate(predicate, rows, Context(), {})
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def _outcome(value: Any) -> str:
    return "NULL" if value is None else str(value).upper()


def _row(rows: pa.Table, row: int) -> str:
    return str(rows.slice(row, 1).to_pylist()[0])
