"""A scan as a lazy frame of Polars: columns, conditions and a limit reach the indexes, and the rest stays with Polars.

A condition of Polars is read from the JSON in which Polars writes it. What cannot be read so, or has no equivalent
here, asks no index; Polars' own condition is applied to what is read in any case.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fuse_index.errors import InputError
from fuse_index.predicate import Operator, Predicate
from fuse_index.query.foreign_predicate import ForeignPredicates, Translator

if TYPE_CHECKING:
    import duckdb
    import polars

    from fuse_index.query.arrow_dataset import NarrowScan, ScanDataset

_OPERATORS: dict[str, Operator] = {"Eq": "=", "NotEq": "<>", "Lt": "<", "LtEq": "<=", "Gt": ">", "GtEq": ">="}
_INTEGERS = ("Int", "Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64")
_UNITS = {"Milliseconds": "ms", "Microseconds": "us", "Nanoseconds": "ns"}
_BOUNDS: dict[str, tuple[Operator, Operator]] = {
    "Both": (">=", "<="),
    "Left": (">=", "<"),
    "Right": (">", "<="),
    "None": (">", "<"),
}


def duckdb_relation(dataset: Callable[[], ScanDataset], connection: Any) -> duckdb.DuckDBPyRelation:
    """A relation of DuckDB's over a dataset. Raises InputError where DuckDB is not installed, or for no connection."""
    try:
        import duckdb
    except ImportError as missing:
        raise InputError("rows for DuckDB need it: pip install duckdb") from missing
    if connection is not None and not isinstance(connection, duckdb.DuckDBPyConnection):
        raise InputError(f"connection={connection!r}: give a connection of DuckDB, or leave it out")
    relation: duckdb.DuckDBPyRelation = (connection or duckdb).from_arrow(dataset())
    return relation


def import_polars() -> Any:
    """The module ``polars``. Raises InputError where it is not installed."""
    try:
        import polars
    except ImportError as missing:
        raise InputError("rows for Polars need it: pip install polars") from missing
    return polars


def lazy_frame(schema: pa.Schema, narrow: NarrowScan, name: str) -> polars.LazyFrame:
    """A lazy frame of a scan's rows; ``narrow`` reads them. Raises InputError where Polars is not installed."""
    pl = import_polars()
    from polars.io.plugins import register_io_source

    def read(
        columns: list[str] | None, predicate: polars.Expr | None, limit: int | None, batch_size: int | None
    ) -> Iterator[polars.DataFrame]:
        wanted = list(schema.names) if columns is None else columns
        names = wanted if predicate is None else list(dict.fromkeys([*wanted, *predicate.meta.root_names()]))
        # Both at once would mean the first rows, of which some are kept: they are read without asking indexes.
        asked = None if predicate is None or limit is not None else polars_predicate(predicate, schema)
        for batch in narrow(asked, names or schema.names[:1], limit):
            rows = pl.DataFrame(batch)
            yield (rows if predicate is None else rows.filter(predicate)).select(wanted)

    return register_io_source(read, schema=pl.DataFrame(schema.empty_table()).schema, is_pure=True, explain_name=name)


def polars_predicate(expression: polars.Expr, schema: pa.Schema) -> Predicate | None:
    """A predicate that is true wherever an expression of Polars is; None if there is none that is known."""
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the JSON may change with each version: it is read with care
            written = json.loads(expression.meta.serialize(format="json"))
        return _ExpressionReader(ForeignPredicates(schema)).condition(written)(False)
    except Exception:  # whatever it is, it only means that no index is asked
        return None


@dataclass(frozen=True)
class _ExpressionReader:
    make: ForeignPredicates

    def condition(self, node: Any) -> Translator:
        return partial(self._condition, node)

    def _condition(self, node: Any, exact: bool) -> Predicate | None:
        match node:
            case {"BinaryExpr": {"left": left, "op": "And" | "LogicalAnd", "right": right}}:
                return self.make.all_of([self.condition(left), self.condition(right)], exact)
            case {"BinaryExpr": {"left": left, "op": "Or" | "LogicalOr", "right": right}}:
                return self.make.any_of([self.condition(left), self.condition(right)], exact)
            case {"BinaryExpr": {"left": left, "op": operator, "right": right}} if operator in _OPERATORS:
                return self.make.compare(_OPERATORS[operator], self._term(left), self._term(right), exact)
            case {"Function": {"input": arguments, "function": {"Boolean": function}}}:
                return self._boolean(function, arguments, exact)
            case {"Function": {"input": [column, {"Literal": literal}], "function": {"StringExpr": "StartsWith"}}}:
                return self.make.starts_with(self._term(column), _scalar(literal).as_py())
            case {"Column": _}:
                return self.make.is_true(self._term(node))
        return None

    def _boolean(self, function: Any, arguments: list[Any], exact: bool) -> Predicate | None:
        match function, arguments:
            case "Not", [part]:
                return self.make.none_of(self.condition(part))
            case "IsNull", [column]:
                return self.make.is_null(self._term(column))
            case "IsNotNull", [column]:
                return self.make.none_of(lambda _: self.make.is_null(self._term(column)))
            case {"IsBetween": {"closed": closed}}, [column, low, high]:
                term, bounds = self._term(column), [self._term(low), self._term(high)]
                compare = partial(self.make.compare, left=term)
                pairs = zip(_BOUNDS[closed], bounds, strict=True)
                return self.make.all_of([partial(_compare, compare, op, bound) for op, bound in pairs], exact)
            case {"IsIn": {"nulls_equal": nulls_equal}}, [column, {"Literal": {"Scalar": {"List": data}}}]:
                if exact and nulls_equal:  # then NULL is in no set, which is FALSE, not NULL
                    return None
                with pa.ipc.open_stream(bytes(data)) as stream:
                    values = list(stream.read_all().column(0).combine_chunks())
                return self.make.is_in(self._term(column), values, exact)
        return None

    def _term(self, node: Any) -> Any:
        """A column, a scalar, or None."""
        match node:
            case {"Column": str(name)}:
                return self.make.column([name])
            case {"Literal": literal}:
                return _scalar(literal)
            case {"Function": {"input": [{"Column": str(name)}], "function": {"StructExpr": {"FieldByName": field}}}}:
                return self.make.column([name, field])
        return None


def _compare(compare: Any, operator: Operator, bound: Any, exact: bool) -> Predicate | None:
    found: Predicate | None = compare(operator, right=bound, exact=exact)
    return found


def _scalar(literal: Any) -> pa.Scalar:
    """A literal of Polars in Arrow. Raises ValueError for one that is not known."""
    ((_, value),) = literal.items()
    match value:
        case {"Boolean": bool(plain)}:
            return pa.scalar(plain)
        case {"String": str(plain)} | {"Str": str(plain)}:
            return pa.scalar(plain, pa.string())
        case {"Float": int() | float() as plain} | {"Float64": int() | float() as plain}:
            return pa.scalar(float(plain), pa.float64())
        case {"Date": int(days)}:
            return pa.scalar(date(1970, 1, 1) + timedelta(days=days))
        case {"Datetime": [int(plain), str(unit), zone]}:
            return pa.scalar(plain, pa.timestamp(_UNITS[unit], zone and zone["inner"]))
        case {"Binary": list(data)}:
            return pa.scalar(bytes(data))
    ((kind, plain),) = value.items()
    if kind not in _INTEGERS or not isinstance(plain, int):
        raise ValueError(f"{kind!r} is no literal that is known")
    return pa.scalar(plain, pa.int64())
