"""What a predicate is on each row: TRUE, FALSE or NULL, as Spark has it. Everything else is judged by this.

Clear before fast, but vectorised: it also filters what a local scan reads. Knows no index and no statistics. What
only Spark can evaluate raises OpaqueError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from fuse_index.errors import OpaqueError
from fuse_index.expressions import calls, casts, datetimes, kernels
from fuse_index.expressions.case import evaluate_case
from fuse_index.expressions.errors import NotReproducible, SparkWouldRaise
from fuse_index.expressions.json import path as json_paths
from fuse_index.expressions.json.found_texts import texts_at_path
from fuse_index.expressions.kernels import COMPARISON_KERNELS, array_wall_clocks, casts_alike, in_list, like
from fuse_index.expressions.to_sql import predicate_sql, term_sql
from fuse_index.expressions.traversal import compares_columns_only
from fuse_index.expressions.types import spark_type_name
from fuse_index.expressions.variant.get import variant_get
from fuse_index.predicate import (
    And,
    Call,
    Case,
    Cast,
    Column,
    Compare,
    Contains,
    Context,
    EndsWith,
    In,
    IsNull,
    JsonPath,
    Like,
    Literal,
    Not,
    Opaque,
    Or,
    Predicate,
    StartsWith,
    Term,
)
from fuse_storage import is_variant, repeat_scalar

if TYPE_CHECKING:
    from fuse_index.expressions.function import Function

_Values = Any
"""A pa.Array, or a pa.Scalar that stands for the same value on every row."""
_UTC_CONTEXT = Context()
_DATE, _NTZ, _TIMESTAMP = pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")


def evaluate(
    predicate: Predicate,
    rows: pa.Table,
    context: Context = _UTC_CONTEXT,
    functions: Mapping[str, Function] | None = None,
    strict: bool = False,
) -> pa.BooleanArray:
    """One value per row, null for NULL. ``rows`` has the columns under their logical names.

    Raises OpaqueError for what only Spark can evaluate, if ``strict`` also for a cast on which Spark raises.
    """
    parts = [
        _Rows(batch, context, functions or {}, strict, not strict).predicate(predicate) for batch in rows.to_batches()
    ]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.bool_())


def evaluate_term(
    term: Term,
    rows: pa.Table,
    context: Context = _UTC_CONTEXT,
    functions: Mapping[str, Function] | None = None,
    strict: bool = False,
) -> pa.ChunkedArray:
    """The values of a term, of type ``term.type``, one per row.

    Raises OpaqueError, if ``strict`` also for a cast on which Spark raises.
    """
    parts = [_Rows(batch, context, functions or {}, strict).term_array(term) for batch in rows.to_batches()]
    return pa.chunked_array(parts, term.type)


def evaluate_constant(
    predicate: Predicate, context: Context = _UTC_CONTEXT, functions: Mapping[str, Function] | None = None
) -> bool | None:
    """The value of a predicate that names no column. Raises OpaqueError."""
    nothing = pa.RecordBatch.from_arrays([pa.nulls(1)], ["none"])
    value: bool | None = _Rows(nothing, context, functions or {}).predicate(predicate)[0].as_py()
    return value


def evaluate_constant_term(
    term: Term, context: Context = _UTC_CONTEXT, functions: Mapping[str, Function] | None = None
) -> Any:
    """The value of a term that names no column, None for NULL.

    Raises OpaqueError, also for a cast on which Spark raises, and for a value that Python cannot hold.
    """
    nothing = pa.RecordBatch.from_arrays([pa.nulls(1)], ["none"])
    values = _Rows(nothing, context, functions or {}, strict=True).term_array(term)
    try:
        return values[0].as_py()
    except (ValueError, OverflowError) as beyond:
        raise OpaqueError(f"only Spark can evaluate {term_sql(term)}: {beyond}") from None


def broadcast_constants(function: Function, arguments: Sequence[pa.Scalar], rows: int) -> list[_Values]:
    """The arguments of a call of constants alone, as arrays of ``rows`` but for those that must be constants.

    So no function has to do without an array.
    """
    return [
        argument if number in function.constants else pa.repeat(argument, rows)
        for number, argument in enumerate(arguments)
    ]


@dataclass(frozen=True)
class _Rows:
    rows: pa.RecordBatch
    context: Context
    functions: Mapping[str, Function]
    strict: bool = False
    lenient: bool = False  # a call is NULL on a row on which Spark raises

    def predicate(self, predicate: Predicate) -> pa.BooleanArray:
        result = self._predicate(predicate)
        return pa.repeat(result, len(self.rows)) if isinstance(result, pa.Scalar) else result

    def term_array(self, term: Term) -> pa.Array:
        values = self.term(term)
        return repeat_scalar(values, len(self.rows)) if isinstance(values, pa.Scalar) else values

    def _predicate(self, predicate: Predicate) -> _Values:
        match predicate:
            case And(terms) | Or(terms):
                return self._chain(terms, isinstance(predicate, Or))
            case Not(term):
                return pc.invert(self._predicate(term))
            case Compare():
                return self._comparison(predicate)
            case In(term, values):
                return in_list(self.term_array(term), values)
            case IsNull(JsonPath(inner, function="get_json_object") as found):
                return pc.is_null(texts_at_path(found, self.term_array(inner), json_paths.SPELLING))
            case IsNull(term):
                return pc.is_null(self.term(term))
            case StartsWith(term, text):
                return self._text(pc.starts_with, lambda value, part: value.startswith(part), term, text)
            case EndsWith(term, text):
                return self._text(pc.ends_with, lambda value, part: value.endswith(part), term, text)
            case Contains(term, text):
                return self._text(pc.match_substring, lambda value, part: part in value, term, text)
            case Like(term, Literal(pattern), escape):
                return like(self.term(term), pattern, escape)
            case Call():
                return self.term(predicate)
            case Like() | Opaque():
                raise OpaqueError(f"only Spark can evaluate {predicate_sql(predicate)}")

    def _chain(self, terms: Sequence[Predicate], is_or: bool) -> pa.BooleanArray:
        """AND or OR of these terms. What changes nothing is passed over, unless it may raise."""
        kernel, rows = (pc.or_kleene if is_or else pc.and_kleene), len(self.rows)
        result = self.predicate(terms[0])
        for term in terms[1:]:
            if _is_all(result, is_or, rows) and compares_columns_only(term):
                continue
            part = self.predicate(term)
            if not _is_all(part, not is_or, rows):
                result = kernel(result, part)
        return result

    def term(self, term: Term) -> _Values:
        match term:
            case Column(path, _):
                return self._column(path)
            case Literal(value, data_type):
                return pa.scalar(value, data_type)
            case Cast(JsonPath(inner, function="get_json_object") as found, data_type, _) if data_type == pa.float64():
                # a double is the same in all its spellings
                texts = texts_at_path(found, self.term_array(inner), json_paths.SPELLING)
                return self._cast(term, texts, found.type, data_type)
            case Cast(inner, data_type, _):
                return self._cast(term, self.term(inner), inner.type, data_type)
            case JsonPath(inner, path, data_type, function) if is_variant(inner.type):
                strict = self.strict and function == "variant_get"
                found = self.term_array(inner)
                return self._known(term, lambda: variant_get(found, path, data_type, strict, self.context))
            case JsonPath(inner):
                return texts_at_path(term, self.term_array(inner))
            case Call(name) if calls.is_known_call(name, self.functions):
                return self._known(term, lambda: self._known_call(term))
            case Case():
                return evaluate_case(term, self, len(self.rows))
            case Call(name, arguments, _):
                return self._call(term, name, [self.term(argument) for argument in arguments])

    def _column(self, path: tuple[str, ...]) -> pa.Array:
        values = self.rows.column(path[0])
        for name in path[1:]:
            values = pc.struct_field(values, name)
        return values

    def _call(self, term: Term, name: str, arguments: list[_Values]) -> _Values:
        function = self.functions.get(name)
        if function is None:
            raise OpaqueError(f"only Spark can evaluate {term_sql(term)}: no plugin brings a function {name!r}")
        if all(isinstance(argument, pa.Scalar) for argument in arguments):
            arguments = broadcast_constants(function, arguments, len(self.rows))
        result = function.evaluate(*arguments)
        return result.combine_chunks() if isinstance(result, pa.ChunkedArray) else result

    def at(self, places: npt.NDArray[np.int64]) -> _Rows:
        return replace(self, rows=self.rows.take(pa.array(places)))

    def _known_call(self, term: Call, approximate: bool = False) -> _Values:
        operands = [self.term(argument) for argument in term.arguments]
        rows = len(self.rows)
        if rows and all(isinstance(each, pa.Scalar) for each in operands):  # array(0.1, 0.2) beside each row
            values = calls.evaluate_known_call(term, operands, 1, self.context, self.lenient, approximate)
            return values[0] if isinstance(values, pa.Array | pa.ChunkedArray) else values
        return calls.evaluate_known_call(term, operands, rows, self.context, self.lenient, approximate)

    def _known(self, term: Term, evaluate: Callable[[], _Values]) -> _Values:
        try:
            return evaluate()
        except NotReproducible as doubt:
            raise OpaqueError(f"only Spark can evaluate {term_sql(term)}: {doubt}") from None
        except SparkWouldRaise as reason:
            raise OpaqueError(f"Spark raises on {term_sql(term)}: {reason}") from None

    def _comparison(self, leaf: Compare) -> _Values:
        kernel, left, right = COMPARISON_KERNELS[leaf.operator], leaf.left, leaf.right
        if left.type != right.type:
            told = f"{spark_type_name(left.type)} with {spark_type_name(right.type)}"
            raise OpaqueError(f"cannot compare {told}: {predicate_sql(leaf)}")
        if left.type == pa.null():
            left = right = Literal(None, pa.bool_())
        if (call := calls.compared_approximation(leaf)) is None:
            return kernel(self.term(left), self.term(right))
        found = self._known(call, lambda: self._known_call(call, approximate=True))
        return self._known(call, lambda: calls.compare_nearby(call, found, self.term(right), kernel))

    def _cast(self, term: Cast, values: _Values, source: pa.DataType, target: pa.DataType) -> _Values:
        if casts_alike(source, target):
            return pc.cast(values, target)
        try:
            if source == _TIMESTAMP and target in (_NTZ, _DATE) and isinstance(values, pa.Array):
                return pc.cast(
                    array_wall_clocks(values, datetimes.parse_time_zone(self.context.time_zone)), target, safe=False
                )
            if isinstance(values, pa.Scalar):
                value = casts.cast_value(values.as_py(), source, target, term.mode, self.context)
                if self.strict and term.mode == "ansi" and value is None and values.is_valid:
                    raise OpaqueError(f"Spark raises on {term_sql(term)}")
                return pa.scalar(value, target)
            casts.check_cast(source, target, self.context)
            distinct = values.dictionary_encode()
            known = distinct.dictionary.to_pylist()
            made = [casts.cast_value(value, source, target, term.mode, self.context) for value in known]
            if self.strict and term.mode == "ansi" and (failed := kernels.failed_values(known, made, target)):
                raise OpaqueError(f"Spark raises on {term_sql(term)} of {failed[0]!r}")
            return pa.array(made, target).take(distinct.indices)
        except (NotReproducible, OverflowError) as doubt:
            raise OpaqueError(f"only Spark can evaluate {term_sql(term)}: {doubt}") from None

    def _text(
        self, kernel: Callable[..., _Values], each: Callable[[Any, Any], bool], term: Term, text: Term
    ) -> _Values:
        values = self.term(term)
        if isinstance(text, Literal) and text.value is not None:
            return kernel(values, pattern=text.value)
        pairs = zip(self.term_array(term).to_pylist(), self.term_array(text).to_pylist(), strict=True)
        return pa.array(
            [None if value is None or part is None else each(value, part) for value, part in pairs], pa.bool_()
        )


def _is_all(values: pa.BooleanArray, value: bool, rows: int) -> bool:
    """Whether each of so many rows is this, none of them NULL."""
    return bool(values.null_count == 0 and values.true_count == (rows if value else 0))
