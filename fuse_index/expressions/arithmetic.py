"""Arithmetic and ``||`` as Spark has them: what ``update`` may set a column to.

Conditions have none of it: there Spark may pass over an operand on which it would raise, and who evaluates whole
columns cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_index.expressions.coercion import INTEGER_TYPES, coerce_term, common_type
from fuse_index.expressions.errors import AnalysisError, SparkWouldRaise
from fuse_index.expressions.types import spark_type_name
from fuse_index.predicate import Call, Context, Term

_Values = Any

_CHECKED_KERNELS: Mapping[str, Callable[[_Values, _Values], _Values]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
}
_WRAPPING_KERNELS: Mapping[str, Callable[[_Values, _Values], _Values]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
}
ARITHMETIC_OPERATORS = frozenset([*_CHECKED_KERNELS, "/", "||"])


def arithmetic_call(operator: str, left: Term, right: Term, context: Context) -> Call:
    """The term, with the casts that Spark adds.

    Raises AnalysisError, or NotReproducible where Spark's type is not known here.
    """
    told = f"{spark_type_name(left.type)} {operator} {spark_type_name(right.type)}"
    if left.type == right.type == pa.null() or (
        operator == "||" and any(_is_no_text(side.type) for side in (left, right))
    ):
        raise AnalysisError(f"{told} is not known here; in Python, give a function of the rows")
    if operator == "||":
        return Call(
            operator, (coerce_term(left, pa.string(), context), coerce_term(right, pa.string(), context)), pa.string()
        )
    data_type = common_type(left.type, right.type, context)
    if (data_type not in INTEGER_TYPES and not is_.is_floating(data_type)) or pa.string() in (left.type, right.type):
        raise AnalysisError(
            f"{told} is not known here, which reckons with integers and floats; in Python, give a function of the rows"
        )
    data_type = pa.float64() if operator == "/" else data_type
    return Call(operator, (coerce_term(left, data_type, context), coerce_term(right, data_type, context)), data_type)


def evaluate_arithmetic(operator: str, left: _Values, right: _Values, ansi: bool) -> _Values:
    """The result, of one type as both sides. Raises SparkWouldRaise on overflow and division by zero."""
    if operator == "||":
        return pc.binary_join_element_wise(left, right, "")
    if operator == "/":
        zero = pc.and_(pc.equal(right, 0.0), pc.is_valid(left))
        if ansi and pc.any(_array(zero), min_count=0).as_py():
            raise SparkWouldRaise("a division by zero")
        return pc.divide(left, pc.if_else(pc.equal(right, 0.0), pa.scalar(None, pa.float64()), right))
    try:
        return (_CHECKED_KERNELS if ansi and not is_.is_floating(left.type) else _WRAPPING_KERNELS)[operator](
            left, right
        )
    except pa.ArrowInvalid as overflow:
        raise SparkWouldRaise(f"{spark_type_name(left.type)} overflows") from overflow


def _is_no_text(data_type: pa.DataType) -> bool:
    return bool(is_.is_nested(data_type) or data_type == pa.binary())


def _array(values: _Values) -> pa.Array:
    return pa.array([values.as_py()], pa.bool_()) if isinstance(values, pa.Scalar) else values
