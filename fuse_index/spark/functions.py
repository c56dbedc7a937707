"""Functions of plugins in Spark: in SQL text by their names, in DataFrame code as functions of columns.

    from fuse_index.spark.functions import match

What a call means is written in SQL while Spark analyses the query: natively where the function can say it so, else as a
Python UDF that runs its ``evaluate`` on Arrow batches; and beside it a mark by which the scan learns of the call
(``sql/call_markers.py``). A Connect client has no analyser at hand: there each function is a plain UDF, which no scan
sees.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column
from pyspark.sql import functions as sf

from fuse_index.expressions import literals
from fuse_index.expressions import types as spark_types
from fuse_index.expressions.errors import AnalysisError
from fuse_index.expressions.evaluate import broadcast_constants
from fuse_index.expressions.function import Function, build_call
from fuse_index.indexes.registry import Host, PluginWarning
from fuse_index.predicate import Call, Cast, Context, Literal, Term
from fuse_index.predicate import Column as Argument
from fuse_index.spark.native.java_compiler import jvm_bridge
from fuse_index.spark.native.request_server import serve_requests
from fuse_index.spark.placement import is_connect
from fuse_index.spark.protocol.words import ARGUMENT, UDF
from fuse_index.spark.schemas import to_spark_type
from fuse_index.spark.workers import for_workers
from fuse_index.sql.call_markers import VALUE_MARK_PREFIX, render_call_mark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BOOLEAN_SQL = {True: "TRUE", False: "FALSE", None: "CAST(NULL AS BOOLEAN)"}


def __getattr__(name: str) -> Callable[..., Column]:
    """A function that an installed plugin brings, for columns: ``match("body", "late refund")``.

    A text is the name of a column, except where the function wants a constant.
    """
    function = None if name.startswith("_") else Host.discover().functions.get(name)
    if function is None:
        raise AttributeError(f"no plugin brings a function {name!r}")
    return column_function(function)


def column_function(function: Function) -> Callable[..., Column]:
    """A function of Columns; it is looked up by its name in the session in which it is used."""

    def build(*arguments: Any) -> Column:
        columns = [_as_column(argument, number in function.constants) for number, argument in enumerate(arguments)]
        return sf.call_function(function.name, *columns)

    build.__name__ = build.__qualname__ = function.name
    build.__doc__ = function.evaluate.__doc__
    return build


def register_functions(spark: SparkSession, host: Host) -> None:
    """Make the host's functions known to a session by their names. Registering again replaces them."""
    for function in host.functions.values():
        if is_connect(spark):
            spark.udf.register(function.name, _unbound_udf(function))
        elif not _register_function(spark, function):
            message = f"function {function.name!r} of a plugin is not used in SQL: Spark has one of that name"
            warnings.warn(message, PluginWarning, stacklevel=3)


def _register_function(spark: SparkSession, function: Function) -> bool:
    """Let the analyser of a classic session ask us to write calls of a function; False if Spark has one of its name."""
    bridge = jvm_bridge(spark)
    key = f"{spark._jsparkSession.sessionUUID()}/{os.getpid()}/{function.name}"
    serve_requests(spark, key, FunctionCallback(function, bridge).apply)
    return bool(bridge.function(spark._jsparkSession, function.name, key))


@dataclass(frozen=True)
class FunctionCallback:
    """Writes the calls of one function, of which the JVM gives the arguments; never raises.

    The answer is ``+`` and Spark SQL text, or ``-`` and what is wrong; or a ``SqlFunctions.CallOfUdf``.
    """

    function: Function
    bridge: Any

    def apply(self, arguments: str) -> Any:
        try:
            return self._call_sql(arguments)
        except AnalysisError as refusal:
            return f"-{refusal}"
        except BaseException as failure:  # whatever it is, the query must be told
            return f"-{self.function.name}(): {type(failure).__name__}: {failure}"

    def _call_sql(self, arguments: str) -> Any:
        trees = json.loads(arguments)
        call = build_call(self.function, [_argument_term(tree, number) for number, tree in enumerate(trees)], Context())
        constants = [pa.scalar(term.value, term.type) if isinstance(term, Literal) else None for term in call.arguments]
        inputs = [_sql(term) for term in call.arguments if not isinstance(term, Literal)]
        if not inputs:
            answer = self.function.evaluate(*broadcast_constants(self.function, constants, 1))[0].as_py()
            return f"+{_BOOLEAN_SQL[answer] if _is_condition(self.function) else _value_sql(answer, call.type)}"
        if not _is_condition(self.function):
            mark = render_call_mark(call, inputs, False, VALUE_MARK_PREFIX)
            udf = _bound_udf(self.function, constants)
            return self.bridge.callOfUdf(f"if({mark}, {UDF}, NULL)", udf._unwrapped._judf, inputs)
        mark = render_call_mark(call, inputs, self.function.null_on_null)
        if (sql := _sql_by(self.function.native, call)) is not None:
            return f"+({sql}) AND {mark}"
        implied = _sql_by(self.function.narrows, call)
        sql = UDF if implied is None else f"({implied}) AND {UDF}"
        udf = _bound_udf(self.function, constants)
        return self.bridge.callOfUdf(f"({sql}) AND {mark}", udf._unwrapped._judf, inputs)


def _is_condition(function: Function) -> bool:
    return bool(function.returns == pa.bool_())


def _value_sql(value: Any, data_type: pa.DataType) -> str:
    written = "NULL" if value is None else "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
    return f"CAST({written} AS {spark_types.spark_type_name(data_type)})"


def _sql_by(writer: Callable[..., str | None] | None, call: Call) -> str | None:
    return (
        None
        if writer is None
        else writer(*(term if isinstance(term, Literal) else _sql(term) for term in call.arguments))
    )


def _argument_term(tree: Mapping[str, Any], number: int) -> Term:
    """An argument as Spark has analysed it: a constant, or something of which only the type matters here."""
    kind = spark_types.type_from_spark_json(tree["type"])
    if kind is None:
        raise AnalysisError(f"argument {number + 1} is {tree['type']}, which is not supported")
    if tree["node"] == "Literal":
        return Literal(literals.decode_literal(tree["value"], kind), kind)
    return Argument((f"{ARGUMENT}{number}",), kind)


def _sql(term: Term) -> str:
    match term:
        case Argument((name,), _):
            return name
        case Cast(inner, kind, _):
            return f"CAST({_sql(inner)} AS {spark_types.spark_type_name(kind)})"
    raise AssertionError(term)


def _bound_udf(function: Function, constants: Sequence[pa.Scalar | None]) -> Any:
    """A UDF of the arguments of one call that are no constants."""
    types = function.argument_types
    kinds = [types[number] for number, constant in enumerate(constants) if constant is None]

    def evaluate(*columns: pa.Array) -> pa.Array:
        values = iter(columns)
        return function.evaluate(*(next(values) if constant is None else constant for constant in constants))

    return _vectorised_udf(evaluate, kinds, function)


def _unbound_udf(function: Function) -> Any:
    """A UDF of all arguments, which come as columns, the constants too."""

    def evaluate(*columns: pa.Array) -> pa.Array:
        if not len(columns[0]):
            return pa.array([], function.returns)
        constants = {number: columns[number][0] for number in function.constants if number < len(columns)}
        for number, constant in constants.items():
            if not pc.all(pc.equal(columns[number], constant)).as_py():
                raise ValueError(f"{function.name}(): argument {number + 1} must be a constant, and not NULL")
        if function.check is not None:
            function.check(*(constants[n].as_py() if n in constants else None for n in range(len(columns))))
        return function.evaluate(*(constants.get(number, column) for number, column in enumerate(columns)))

    return _vectorised_udf(evaluate, function.argument_types, function)


def _vectorised_udf(evaluate: Callable[..., pa.Array], kinds: Sequence[pa.DataType | None], function: Function) -> Any:
    """A UDF on Arrow arrays where Spark has them (4.1), else on pandas' series; it names no module of ours."""
    vectorised: Any = sf
    name, returns = function.name, to_spark_type(function.returns)
    evaluate = for_workers(evaluate)
    if hasattr(sf, "arrow_udf"):

        def on_arrays(*columns: pa.Array) -> pa.Array:
            given = zip(columns, kinds, strict=False)
            return evaluate(*(column if kind is None else column.cast(kind) for column, kind in given))

        on_arrays.__annotations__ = {"columns": pa.Array, "return": pa.Array}
        on_arrays.__name__ = name
        return vectorised.arrow_udf(on_arrays, returns)

    import pandas as pd  # a quarter of what a planning process would take to begin, and rarely needed

    def on_series(*columns: pd.Series) -> pd.Series:
        arrays = [pa.Array.from_pandas(column, type=kind) for column, kind in zip(columns, kinds, strict=False)]
        return pd.Series(evaluate(*arrays).to_pylist(), dtype=object)

    on_series.__annotations__ = {"columns": pd.Series, "return": pd.Series}
    on_series.__name__ = name
    return vectorised.pandas_udf(on_series, returns)


def _as_column(argument: Any, constant: bool) -> Column:
    if isinstance(argument, Column):
        return argument
    return sf.col(argument) if isinstance(argument, str) and not constant else sf.lit(argument)
