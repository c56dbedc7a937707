"""``+``, ``-``, ``*`` and ``/`` of integers and floats, as Spark has them: what ``update`` may set a column to.

Conditions have none of it: there Spark may pass over an operand on which it would raise, and who evaluates whole columns cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as is_

from fuse_index.coercion import INTEGERS, Refused, common_type, converted
from fuse_index.predicate import Call, Context, Term
from fuse_index.spark_types import name_of

Values = Any

CHECKED: Mapping[str, Callable[[Values, Values], Values]] = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}
WRAPPING: Mapping[str, Callable[[Values, Values], Values]] = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}
OPERATORS = frozenset([*CHECKED, "/"])


class Raises(ArithmeticError):
    """Spark raises, too, in an ANSI session: the message says on what."""


def made(operator: str, left: Term, right: Term, context: Context) -> Call:
    """The term, with the casts that Spark adds. Raises Refused, or Unsure where Spark's type is not known here."""
    if left.type == right.type == pa.null():
        raise Refused(f"NULL {operator} NULL")
    kind = common_type(left.type, right.type, context)
    if (kind not in INTEGERS and not is_.is_floating(kind)) or pa.string() in (left.type, right.type):
        told = f"{name_of(left.type)} {operator} {name_of(right.type)}"
        raise Refused(f"{told} is left to Spark: numbers are added here that are neither text nor decimals")
    kind = pa.float64() if operator == "/" else kind
    return Call(operator, (converted(left, kind, context), converted(right, kind, context)), kind)


def computed(operator: str, left: Values, right: Values, ansi: bool) -> Values:
    """Both of one type. Raises Raises where Spark does: on overflow, and on a division by zero."""
    if operator == "/":
        zero = pc.and_(pc.equal(right, 0.0), pc.is_valid(left))
        if ansi and pc.any(_array(zero), min_count=0).as_py():
            raise Raises("a division by zero")
        return pc.divide(left, pc.if_else(pc.equal(right, 0.0), pa.scalar(None, pa.float64()), right))
    try:
        return (CHECKED if ansi and not is_.is_floating(left.type) else WRAPPING)[operator](left, right)
    except pa.ArrowInvalid as overflow:
        raise Raises(f"{name_of(left.type)} overflows") from overflow


def _array(values: Values) -> pa.Array:
    return pa.array([values.as_py()], pa.bool_()) if isinstance(values, pa.Scalar) else values
